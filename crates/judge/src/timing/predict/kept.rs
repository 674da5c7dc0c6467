//! Predictions on disk, by the content of what they are made from: code, launches, arguments and the
//! GPU's table, and the build of this program that made them.

use super::{Forecast, PROTOCOL};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::UNIX_EPOCH;
use tuner_core::cache::CacheFolder;
use tuner_core::plan::Plan;
use tuner_core::units::ContentHash;
use vgpu::Arch;

/// Bytes of the cache.
const MAX_BYTES: u64 = 80 << 20;

/// A folder of predictions.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    folder: Arc<CacheFolder>,
    /// What tells this build of the program from another.
    build: String,
}

impl Kept {
    /// The predictions in the user's folder of caches; `None` where the program cannot tell its own build.
    pub(super) fn new(folder: PathBuf) -> Option<Self> {
        let facts = std::fs::metadata(std::env::current_exe().ok()?).ok()?;
        let changed = facts.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        let build = format!("{PROTOCOL} {} {}", facts.len(), changed.as_nanos());
        let folder = Arc::new(CacheFolder::new(folder, "predictions", MAX_BYTES));
        Some(Self { folder, build })
    }

    /// What a plan's prediction for a GPU is kept under; `None` for a plan that cannot be written.
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
        Some(ContentHash::of([
            self.build.as_bytes(),
            table.as_bytes(),
            &rest,
        ]))
    }

    /// The prediction kept under `key`; `None` where there is none, or a damaged one.
    pub(super) fn read(&self, key: &ContentHash) -> Option<Forecast> {
        rmp_serde::from_slice(&self.folder.load(key)?).ok()
    }

    /// Keeps a prediction.
    pub(super) fn write(&self, key: &ContentHash, forecast: &Forecast) {
        if let Ok(content) = rmp_serde::to_vec(forecast) {
            self.folder.store(key, &content);
        }
    }
}

#[cfg(test)]
mod tests;
