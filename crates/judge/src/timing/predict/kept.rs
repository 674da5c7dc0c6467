//! Predictions on disk, by the content of what they are made from: code, launches, arguments and the
//! GPU's table, and the build of this program that made them.

use super::{Forecast, PROTOCOL};
use crate::folder::Folder;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;
use tuner_core::plan::Plan;
use tuner_core::units::ContentHash;
use vgpu::Arch;

/// Bytes of each of the 256 folders: 80 MB in all.
const SHARD_BYTES: u64 = 320 << 10;

/// A folder of predictions.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    folder: PathBuf,
    /// What tells this build of the program from another.
    build: String,
}

impl Kept {
    /// A folder that need not exist yet; `None` where the program cannot tell its own build.
    pub(super) fn new(folder: PathBuf) -> Option<Self> {
        let facts = std::fs::metadata(std::env::current_exe().ok()?).ok()?;
        let changed = facts.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        let build = format!("{PROTOCOL} {} {}", facts.len(), changed.as_nanos());
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

    fn shard(&self, key: &ContentHash) -> Folder {
        let (shard, _) = key.as_str().split_at(2);
        Folder::new(self.folder.join(shard), SHARD_BYTES)
    }

    /// The prediction kept under `key`; `None` where there is none, or a damaged one.
    pub(super) fn read(&self, key: &ContentHash) -> Option<Forecast> {
        rmp_serde::from_slice(&self.shard(key).read(key)?).ok()
    }

    /// Keeps a prediction.
    pub(super) fn write(&self, key: &ContentHash, forecast: &Forecast) {
        if let Ok(content) = rmp_serde::to_vec(forecast) {
            self.shard(key).write(key, &content);
        }
    }
}

#[cfg(test)]
mod tests;
