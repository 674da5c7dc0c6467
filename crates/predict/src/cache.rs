//! Predictions on disk, by the content of their inputs: code, launches, arguments, the GPU's table, and the
//! build of this program.

use super::{Forecast, PROTOCOL};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::UNIX_EPOCH;
use tuner_core::cache::CacheFolder;
use tuner_core::plan::Plan;
use tuner_core::units::ContentHash;
use vgpu::Arch;

/// Maximum size of the cache, bytes.
const MAX_BYTES: u64 = 80 << 20;

/// A folder of predictions.
#[derive(Debug, Clone)]
pub(super) struct PredictionCache {
    folder: Arc<CacheFolder>,
    /// Identity of this build of the program.
    build: String,
}

impl PredictionCache {
    /// Opens the predictions in the user's folder of caches; `None` if the program cannot identify
    /// its own build.
    pub(super) fn new(folder: PathBuf) -> Option<Self> {
        let facts = std::fs::metadata(std::env::current_exe().ok()?).ok()?;
        let changed = facts.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        // A rebuilt program may predict differently although its protocol has the same name.
        let build = format!("{PROTOCOL} {} {}", facts.len(), changed.as_nanos());
        let folder = Arc::new(CacheFolder::new(folder, "predictions", MAX_BYTES));
        Some(Self { folder, build })
    }

    /// Returns the key of a plan's prediction for a GPU; `None` for a plan that cannot be encoded.
    pub(super) fn key(&self, arch: &Arch, plan: &Plan) -> Option<ContentHash> {
        let rest = (
            &plan.arguments,
            &plan.launches,
            &plan.variables,
            &plan.generators,
            &plan.code,
        );
        let rest = rmp_serde::to_vec(&rest).ok()?;
        let table = format!("{arch:?}");
        Some(ContentHash::from_parts([
            self.build.as_bytes(),
            table.as_bytes(),
            &rest,
        ]))
    }

    /// Reads the prediction under `key`; `None` if it is absent or damaged.
    pub(super) fn read(&self, key: &ContentHash) -> Option<Forecast> {
        rmp_serde::from_slice(&self.folder.load(key)?).ok()
    }

    /// Stores a prediction.
    pub(super) fn write(&self, key: &ContentHash, forecast: &Forecast) {
        if let Ok(content) = rmp_serde::to_vec(forecast) {
            self.folder.store(key, &content);
        }
    }
}

#[cfg(test)]
mod tests;
