//! Cache on disk, by the hash of everything that determines a result.
//!
//! Safe among processes without locks. An entry is created complete, by rename. It contains the name of
//! its cache, its key and a checksum of all, so that a torn, renamed, swapped or foreign file is a miss. A
//! folder or file is not used if it is a link, is owned by another user or is writable by others, because
//! entries become executed code and ranked times. If the cache cannot be read or written, work continues
//! without it after one warning.

use crate::private::{self, TEMPORARY_PREFIX};
use crate::units::ContentHash;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

/// Largest entry that is read, bytes.
const MAX_ENTRY_BYTES: u64 = 1 << 30;
/// Length of the checksum at the end of an entry.
const CHECKSUM_BYTES: usize = 64;
/// Age above which a temporary file is assumed to be of a dead process.
const MAX_TEMPORARY_AGE: Duration = Duration::from_secs(3600);

/// One cache in the user's folder of caches.
#[derive(Debug)]
pub struct CacheFolder {
    root: PathBuf,
    name: &'static str,
    max_bytes: u64,
    /// Estimate of the cache's size; `None` before the first store has counted it.
    bytes: Mutex<Option<u64>>,
    warned: AtomicBool,
}

impl CacheFolder {
    /// Creates the cache `name` in the folder `root`, which is created with the first entry. The
    /// least recently used entries are evicted above `max_bytes`.
    #[must_use]
    pub fn new(root: PathBuf, name: &'static str, max_bytes: u64) -> Self {
        Self {
            root,
            name,
            max_bytes,
            bytes: Mutex::new(None),
            warned: AtomicBool::new(false),
        }
    }

    /// Returns the path of an entry. Subfolders of two digits keep directories short.
    #[must_use]
    pub fn path(&self, key: &ContentHash) -> PathBuf {
        let (shard, rest) = key.as_str().split_at(2);
        self.root.join(self.name).join(shard).join(rest)
    }

    /// Loads an entry and marks it as used; `None` without a trustworthy one.
    pub fn load(&self, key: &ContentHash) -> Option<Vec<u8>> {
        let path = self.path(key);
        let mut bytes = match self.read(key, &path) {
            Ok(bytes) => bytes,
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound {
                    self.warn("read", &path, &error);
                }
                return None;
            }
        };
        let Some(length) = self.checked_length(key, &bytes) else {
            tracing::debug!("cache entry {} is corrupt and is ignored", path.display());
            let _ = std::fs::remove_file(&path);
            return None;
        };
        bytes.truncate(bytes.len() - CHECKSUM_BYTES);
        bytes.drain(..bytes.len() - length);
        Some(bytes)
    }

    /// Stores an entry. An unusable folder costs one warning.
    pub fn store(&self, key: &ContentHash, content: &[u8]) {
        let path = self.path(key);
        if let Err(error) = self.write(key, &path, content) {
            return self.warn("write", &path, &error);
        }
        let Ok(mut estimate) = self.bytes.lock() else {
            return;
        };
        let counted = estimate.map(|known| known + content.len() as u64);
        let total = counted.unwrap_or_else(|| self.entries().iter().map(|entry| entry.bytes).sum());
        *estimate = Some(if total > self.max_bytes {
            self.evict()
        } else {
            total
        });
    }

    fn read(&self, key: &ContentHash, path: &Path) -> io::Result<Vec<u8>> {
        let (shard, _) = key.as_str().split_at(2);
        private::check_folder(&self.root, &[self.name, shard])?;
        let file = private::open_file(path)?;
        if file.metadata()?.len() > MAX_ENTRY_BYTES {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        // The time of last use determines eviction. If it cannot be set, only that order suffers.
        let _ = file.set_modified(SystemTime::now());
        let mut bytes = Vec::new();
        file.take(MAX_ENTRY_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn write(&self, key: &ContentHash, path: &Path, content: &[u8]) -> io::Result<()> {
        let (shard, _) = key.as_str().split_at(2);
        private::create_folder(&self.root, &[self.name, shard])?;
        let head = self.head(key);
        let checksum = checksum(&head, content);
        private::write_file(path, &[&head, content, checksum.as_str().as_bytes()])
    }

    /// Returns the first bytes of an entry; the digit is the format's version.
    fn head(&self, key: &ContentHash) -> Vec<u8> {
        format!("tuner-cache-1 {} {}\n", self.name, key.as_str()).into_bytes()
    }

    /// Returns the length of an entry's content, between head and checksum; `None` for a damaged or
    /// foreign one.
    fn checked_length(&self, key: &ContentHash, bytes: &[u8]) -> Option<usize> {
        let (rest, sum) = bytes.split_at_checked(bytes.len().checked_sub(CHECKSUM_BYTES)?)?;
        let head = self.head(key);
        let content = rest.strip_prefix(head.as_slice())?;
        (checksum(&head, content).as_str().as_bytes() == sum).then_some(content.len())
    }

    /// Removes the least recently used entries until a tenth of the space is free, and temporary
    /// files of dead processes. Returns the remaining size.
    fn evict(&self) -> u64 {
        let mut entries = self.entries();
        entries.sort_by_key(|entry| entry.used);
        let mut total: u64 = entries.iter().map(|entry| entry.bytes).sum();
        // A tenth more than necessary, so that few stores list the whole cache.
        let goal = self.max_bytes - self.max_bytes / 10;
        for entry in &entries {
            let age = entry.used.elapsed();
            let stale = entry.temporary && age.is_ok_and(|age| age > MAX_TEMPORARY_AGE);
            if stale || (total > goal && !entry.temporary) {
                // Another process may have removed it first.
                let _ = std::fs::remove_file(&entry.path);
                total -= entry.bytes;
            }
        }
        total
    }

    /// Returns all files of the cache, including those of earlier versions.
    fn entries(&self) -> Vec<Entry> {
        let children = |folder: &Path| {
            let found = std::fs::read_dir(folder).into_iter().flatten();
            found.filter_map(Result::ok)
        };
        let mut entries = Vec::new();
        let mut folders = vec![self.root.join(self.name)];
        while let Some(folder) = folders.pop() {
            for child in children(&folder) {
                match child.metadata() {
                    Ok(facts) if facts.is_file() => entries.push(Entry {
                        path: child.path(),
                        bytes: facts.len(),
                        used: facts.modified().unwrap_or(SystemTime::UNIX_EPOCH),
                        temporary: child
                            .file_name()
                            .to_string_lossy()
                            .starts_with(TEMPORARY_PREFIX),
                    }),
                    // Only shards: entries are one level below the cache's folder.
                    Ok(facts) if facts.is_dir() && child.file_name().len() == 2 => {
                        folders.push(child.path());
                    }
                    _ => {}
                }
            }
        }
        entries
    }

    fn warn(&self, action: &str, path: &Path, error: &io::Error) {
        if !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "cannot {action} the {} cache {}: {error}; going on without it (set TUNER_CACHE to a \
                 folder of your own)",
                self.name,
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

fn checksum(head: &[u8], content: &[u8]) -> ContentHash {
    ContentHash::from_parts([head, content])
}

#[cfg(test)]
mod tests;
