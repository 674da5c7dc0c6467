//! What took long to work out, on disk by the content that it follows from: a fresh process need not
//! work it out again.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tuner_core::files;
use tuner_core::units::ContentHash;

/// Hexadecimal digits of the hash before each entry.
const HASH_BYTES: usize = 64;

/// A folder of entries, up to so many bytes.
#[derive(Debug, Clone)]
pub struct Folder {
    path: PathBuf,
    most: u64,
}

impl Folder {
    /// A folder that need not exist yet.
    #[must_use]
    pub fn new(path: PathBuf, most: u64) -> Self {
        Self { path, most }
    }

    fn file(&self, key: &ContentHash) -> PathBuf {
        self.path.join(key.as_str())
    }

    /// The entry of that key; `None` where there is none, or a damaged one.
    pub(crate) fn read(&self, key: &ContentHash) -> Option<Vec<u8>> {
        let path = self.file(key);
        let bytes = files::read(&path, self.most).ok()?;
        let (hash, content) = bytes.split_at_checked(HASH_BYTES)?;
        if ContentHash::of([content]).as_str().as_bytes() != hash {
            return None;
        }
        // Used lately: others make room first.
        if let Ok(file) = std::fs::File::open(&path) {
            let _ = file.set_modified(SystemTime::now());
        }
        Some(content.to_vec())
    }

    /// Keeps an entry. A disk that is full or read-only costs time and nothing else.
    pub(crate) fn write(&self, key: &ContentHash, content: &[u8]) {
        let _ = self.store(&self.file(key), content);
    }

    fn store(&self, path: &Path, content: &[u8]) -> std::io::Result<()> {
        std::fs::create_dir_all(&self.path)?;
        self.make_room(content.len() as u64)?;
        let new = path.with_extension(format!("new-{}", std::process::id()));
        let mut file = std::fs::File::create(&new)?;
        file.write_all(ContentHash::of([content]).as_str().as_bytes())?;
        file.write_all(content)?;
        std::fs::rename(&new, path)
    }

    /// Removes what was used longest ago until so many bytes more fit.
    fn make_room(&self, wanted: u64) -> std::io::Result<()> {
        let mut files: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            let entry = entry?;
            if let Ok(known) = entry.metadata() {
                let used = known.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                files.push((used, known.len(), entry.path()));
            }
        }
        let mut bytes = files.iter().map(|(_, bytes, _)| bytes).sum::<u64>() + wanted;
        files.sort();
        for (_, size, path) in files {
            if bytes <= self.most {
                break;
            }
            // Another process may have been faster.
            let _ = std::fs::remove_file(path);
            bytes = bytes.saturating_sub(size);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
