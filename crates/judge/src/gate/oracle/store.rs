//! Answers of oracles on disk, by their content: a fresh worker process need not work them out again.

use super::Expected;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tuner_core::units::ContentHash;

/// First bytes of a file; the digit is the format's.
const MAGIC: &[u8; 8] = b"tuner-o1";
/// Bytes of an element: value, tolerance and rms.
const ELEMENT_BYTES: usize = 24;
/// Hexadecimal digits of the hash of the content.
const HASH_BYTES: usize = 64;

/// A folder of answers, up to so many bytes.
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

    fn file(&self, name: &str) -> PathBuf {
        self.path.join(ContentHash::of([name.as_bytes()]).as_str())
    }

    /// The answer of that name with so many elements; `None` where there is none, or a damaged one.
    pub(super) fn read(&self, name: &str, count: u64) -> Option<Vec<Expected>> {
        let path = self.file(name);
        let bytes = std::fs::read(&path).ok()?;
        let (magic, rest) = bytes.split_at_checked(MAGIC.len())?;
        let (hash, content) = rest.split_at_checked(HASH_BYTES)?;
        let right = magic == MAGIC
            && content.len() as u64 == count.checked_mul(ELEMENT_BYTES as u64)?
            && ContentHash::of([content]).as_str().as_bytes() == hash;
        if !right {
            return None;
        }
        // Used lately: others make room first.
        if let Ok(file) = std::fs::File::open(&path) {
            let _ = file.set_modified(SystemTime::now());
        }
        let number = |bytes: &[u8]| bytes.try_into().map_or(f64::NAN, f64::from_le_bytes);
        let element = |bytes: &[u8]| Expected {
            value: number(&bytes[..8]),
            tolerance: number(&bytes[8..16]),
            rms: number(&bytes[16..]),
        };
        Some(content.chunks_exact(ELEMENT_BYTES).map(element).collect())
    }

    /// Keeps an answer. A disk that is full or read-only costs time and nothing else.
    pub(super) fn write(&self, name: &str, all: &[Expected]) {
        let mut content = Vec::with_capacity(all.len() * ELEMENT_BYTES);
        for expected in all {
            for number in [expected.value, expected.tolerance, expected.rms] {
                content.extend_from_slice(&number.to_le_bytes());
            }
        }
        let _ = self.store(&self.file(name), &content);
    }

    fn store(&self, path: &Path, content: &[u8]) -> std::io::Result<()> {
        std::fs::create_dir_all(&self.path)?;
        self.make_room(content.len() as u64)?;
        let new = path.with_extension(format!("new-{}", std::process::id()));
        let mut file = std::fs::File::create(&new)?;
        file.write_all(MAGIC)?;
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
