//! Predictions on disk, by the content of what they are made from: code, launches, arguments and the
//! GPU's table, and the build of this program that made them.

use super::{Forecast, PROTOCOL};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use tuner_core::plan::Plan;
use tuner_core::units::ContentHash;
use vgpu::Arch;

/// Hexadecimal digits of the hash before each entry.
const HASH_BYTES: usize = 64;
/// Largest entry, bytes.
const MAX_BYTES: u64 = 1 << 20;
/// Most entries of each of the 256 folders: 80 MB in all.
const MAX_ENTRIES: usize = 128;

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

    fn path(&self, key: &ContentHash) -> PathBuf {
        let (shard, rest) = key.as_str().split_at(2);
        self.folder.join(shard).join(rest)
    }

    /// The prediction kept under `key`; `None` where there is none, or a damaged one.
    pub(super) fn read(&self, key: &ContentHash) -> Option<Forecast> {
        let path = self.path(key);
        if std::fs::symlink_metadata(&path).ok()?.len() > MAX_BYTES {
            return None;
        }
        let bytes = std::fs::read(&path).ok()?;
        let (hash, content) = bytes.split_at_checked(HASH_BYTES)?;
        if ContentHash::of([content]).as_str().as_bytes() != hash {
            return None;
        }
        rmp_serde::from_slice(content).ok()
    }

    /// Keeps a prediction. A disk that is full or read-only costs time and nothing else.
    pub(super) fn write(&self, key: &ContentHash, forecast: &Forecast) {
        let path = self.path(key);
        let written = path.parent().map(|shard| self.put(shard, &path, forecast));
        drop(written);
    }

    fn put(&self, shard: &Path, path: &Path, forecast: &Forecast) -> io::Result<()> {
        let content = rmp_serde::to_vec(forecast).map_err(io::Error::other)?;
        std::fs::create_dir_all(shard)?;
        let mut bytes = ContentHash::of([&content[..]]).as_str().as_bytes().to_vec();
        bytes.extend(content);
        let temporary = path.with_extension(format!("tmp{}", std::process::id()));
        std::fs::write(&temporary, bytes)?;
        std::fs::rename(&temporary, path)?;
        make_room(shard)
    }
}

/// Removes the older half of a folder that holds too many entries.
fn make_room(shard: &Path) -> io::Result<()> {
    let mut entries: Vec<(SystemTime, PathBuf)> = std::fs::read_dir(shard)?
        .filter_map(|entry| {
            let entry = entry.ok()?;
            Some((entry.metadata().ok()?.modified().ok()?, entry.path()))
        })
        .collect();
    if entries.len() <= MAX_ENTRIES {
        return Ok(());
    }
    entries.sort();
    for (_, path) in entries.iter().take(MAX_ENTRIES / 2) {
        std::fs::remove_file(path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
