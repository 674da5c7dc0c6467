//! Compiles remembered on disk, by the hash of everything that decides them.
//!
//! Safe among processes without locks: an entry appears by rename, complete, and carries its key and
//! a checksum, so a torn, renamed or foreign file is a miss. A folder that is a link, that belongs to
//! another user or that others may write to is not used: its entries become code that runs. The cache is an optimisation: where it cannot be
//! read or written, compiling goes on without it after one warning.

use super::discover::variable;
use super::image::{RawResult, RawStatus};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use tuner_core::files;
use tuner_core::units::ContentHash;
use tuner_process::{Decoder, encode as frame, to_json};

/// Size of the cache unless told otherwise: about 20 000 candidates.
pub(crate) const CACHE_BYTES_MAX: u64 = 2 << 30;
/// First bytes of an entry; the digit is the format's version.
const MAGIC: &[u8] = b"tuner-image-4\n";
/// Largest entry that is read: a cubin of some megabytes, its PTX, and a log.
const MAX_ENTRY_BYTES: u64 = 256 << 20;
/// Length of the checksum that ends an entry.
const CHECKSUM_BYTES: usize = 64;
/// A temporary file older than this belongs to a process that died.
const TEMPORARY_AGE_MAX: Duration = Duration::from_secs(3600);

/// The disk cache of one folder.
#[derive(Debug)]
pub struct DiskCache {
    folder: PathBuf,
    bytes_max: u64,
    /// Estimate of the folder's size; `None` until the first store has counted it.
    bytes: Mutex<Option<u64>>,
    warned: AtomicBool,
    serial: AtomicU64,
}

impl DiskCache {
    /// A cache in a folder, which is made when the first entry is stored.
    #[must_use]
    pub fn new(folder: PathBuf, bytes_max: u64) -> Self {
        Self {
            folder,
            bytes_max,
            bytes: Mutex::new(None),
            warned: AtomicBool::new(false),
            serial: AtomicU64::new(0),
        }
    }

    /// The folder: `$TUNER_CACHE`, else `$XDG_CACHE_HOME/tuner`, else `~/.cache/tuner`; `None`
    /// where none of them is set.
    #[must_use]
    pub fn default_folder() -> Option<PathBuf> {
        variable("TUNER_CACHE")
            .or_else(|| variable("XDG_CACHE_HOME").map(|folder| folder.join("tuner")))
            .or_else(|| variable("HOME").map(|folder| folder.join(".cache/tuner")))
    }

    /// The folder in use.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn path_of(&self, key: &ContentHash) -> PathBuf {
        // Two digits a subfolder keep directories short.
        let (shard, rest) = key.as_str().split_at(2);
        self.folder.join("compile").join(shard).join(rest)
    }

    /// A remembered result. Marks the entry as used.
    pub(super) fn load(&self, key: &ContentHash) -> Option<RawResult> {
        let path = self.path_of(key);
        let read = self
            .trusted()
            .and_then(|()| files::read(&path, MAX_ENTRY_BYTES));
        let bytes = match read {
            Ok(bytes) => bytes,
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound {
                    self.warn("read", &path, &error);
                }
                return None;
            }
        };
        let Some(mut result) = decode(key, &bytes) else {
            tracing::debug!("cache entry {} is corrupt and is ignored", path.display());
            let _ = std::fs::remove_file(&path);
            return None;
        };
        result.head.compile_us = 0;
        // The time of last use orders eviction. Not being allowed to set it costs only that.
        if let Ok(file) = std::fs::File::options().append(true).open(&path) {
            let _ = file.set_modified(SystemTime::now());
        }
        Some(result)
    }

    /// Remembers a result that would be the same again: compiled or refused.
    pub(super) fn store(&self, key: &ContentHash, result: &RawResult) {
        if !matches!(result.head.status, RawStatus::Compiled | RawStatus::Refused) {
            return;
        }
        let path = self.path_of(key);
        let written =
            encode(key, result).and_then(|bytes| self.write(&path, &bytes).map(|()| bytes));
        let bytes = match written {
            Ok(bytes) => bytes,
            Err(error) => return self.warn("write", &path, &error),
        };
        let Ok(mut estimate) = self.bytes.lock() else {
            return;
        };
        let counted = estimate.map(|known| known + bytes.len() as u64);
        let total = counted.unwrap_or_else(|| self.entries().iter().map(|entry| entry.bytes).sum());
        *estimate = Some(if total > self.bytes_max {
            self.evict()
        } else {
            total
        });
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let folder = path.parent().unwrap_or(&self.folder);
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        self.trusted()?;
        let serial = self.serial.fetch_add(1, Ordering::Relaxed);
        let temporary = folder.join(format!(".tmp-{}-{serial}", std::process::id()));
        let written =
            std::fs::write(&temporary, bytes).and_then(|()| std::fs::rename(&temporary, path));
        if written.is_err() {
            let _ = std::fs::remove_file(&temporary);
        }
        written
    }

    /// Whether nobody else can put entries into the folder; `NotFound` where there is none yet.
    fn trusted(&self) -> io::Result<()> {
        let untrusted = |path: &Path, why: &str| {
            io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("{} {why}", path.display()),
            )
        };
        for path in [&self.folder, &self.folder.join("compile")] {
            let facts = std::fs::symlink_metadata(path)?;
            if !facts.is_dir() {
                return Err(untrusted(path, "is a link or a file, not a folder"));
            }
            if facts.uid() != rustix::process::geteuid().as_raw() {
                return Err(untrusted(path, "belongs to another user"));
            }
            if facts.mode() & 0o022 != 0 {
                return Err(untrusted(
                    path,
                    "can be written by other users (chmod go-w)",
                ));
            }
        }
        Ok(())
    }

    /// Removes the entries not used for longest until a tenth of the room is free, and temporary
    /// files of dead processes. Returns the size that remains.
    fn evict(&self) -> u64 {
        let mut entries = self.entries();
        entries.sort_by_key(|entry| entry.used);
        let mut total: u64 = entries.iter().map(|entry| entry.bytes).sum();
        let goal = self.bytes_max - self.bytes_max / 10;
        for entry in &entries {
            let stale = entry.temporary
                && entry
                    .used
                    .elapsed()
                    .is_ok_and(|age| age > TEMPORARY_AGE_MAX);
            if stale || (total > goal && !entry.temporary) {
                // Another process may have been faster: gone is gone.
                let _ = std::fs::remove_file(&entry.path);
                total -= entry.bytes;
            }
        }
        total
    }

    fn entries(&self) -> Vec<Entry> {
        let children = |folder: &Path| {
            std::fs::read_dir(folder)
                .into_iter()
                .flatten()
                .filter_map(Result::ok)
        };
        let mut entries = Vec::new();
        for shard in children(&self.folder.join("compile")) {
            for file in children(&shard.path()) {
                let Ok(metadata) = file.metadata() else {
                    continue;
                };
                entries.push(Entry {
                    path: file.path(),
                    bytes: metadata.len(),
                    used: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
                    temporary: file.file_name().to_string_lossy().starts_with(".tmp-"),
                });
            }
        }
        entries
    }

    fn warn(&self, what: &str, path: &Path, error: &io::Error) {
        if !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "cannot {what} the compile cache {}: {error}; going on without it (set TUNER_CACHE \
                 to a writable folder)",
                path.display()
            );
        }
    }
}

struct Entry {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
    temporary: bool,
}

fn encode(key: &ContentHash, result: &RawResult) -> io::Result<Vec<u8>> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(key.as_str().as_bytes());
    let head = to_json(&result.head)?;
    bytes.extend(frame(0, &[&head, &result.ptx, &result.cubin])?);
    let checksum = ContentHash::of([bytes.as_slice()]);
    bytes.extend_from_slice(checksum.as_str().as_bytes());
    Ok(bytes)
}

fn decode(key: &ContentHash, bytes: &[u8]) -> Option<RawResult> {
    let (content, checksum) = bytes.split_at_checked(bytes.len().checked_sub(CHECKSUM_BYTES)?)?;
    if ContentHash::of([content]).as_str().as_bytes() != checksum {
        return None;
    }
    let frame = content
        .strip_prefix(MAGIC)?
        .strip_prefix(key.as_str().as_bytes())?;
    let mut decoder = Decoder::default();
    decoder.push(frame);
    RawResult::from_parts(decoder.take().ok()??)
}

#[cfg(test)]
mod tests;
