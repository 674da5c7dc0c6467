//! Disk cache of compiles, by the hash of their complete input.

use super::discover::{absolute_variable, variable};
use super::image::{RawResult, RawStatus};
use std::io;
use std::path::PathBuf;
use tuner_core::cache::CacheFolder;
use tuner_core::units::ContentHash;
use tuner_process::{Decoder, encode as frame, to_json};

/// Default maximum size of the cache, bytes: about 20 000 candidates.
pub(crate) const CACHE_BYTES_MAX: u64 = 2 << 30;
/// First bytes of an entry's content; the digit is the format's version.
const MAGIC: &[u8] = b"tuner-image-5\n";

/// The disk cache of one folder.
#[derive(Debug)]
pub struct DiskCache {
    entries: CacheFolder,
}

impl DiskCache {
    /// Creates a cache in a folder, which is created with the first entry.
    #[must_use]
    pub fn new(folder: PathBuf, bytes_max: u64) -> Self {
        Self {
            entries: CacheFolder::new(folder, "compile", bytes_max),
        }
    }

    /// Returns the folder of all caches: `$TUNER_CACHE`, else `$XDG_CACHE_HOME/tuner`, else
    /// `~/.cache/tuner`; `None` if none of them is set. A relative path in `XDG_CACHE_HOME` or
    /// `HOME` counts as unset (XDG Base Directory Specification).
    #[must_use]
    pub fn default_folder() -> Option<PathBuf> {
        variable("TUNER_CACHE")
            .or_else(|| absolute_variable("XDG_CACHE_HOME").map(|folder| folder.join("tuner")))
            .or_else(|| absolute_variable("HOME").map(|folder| folder.join(".cache/tuner")))
    }

    /// Loads a cached result and marks the entry as used.
    pub(super) fn load(&self, key: &ContentHash) -> Option<RawResult> {
        let mut result = decode(&self.entries.load(key)?)?;
        result.head.compile_us = 0;
        Some(result)
    }

    /// Stores a reproducible result: compiled or refused.
    pub(super) fn store(&self, key: &ContentHash, result: &RawResult) {
        // A compiler that ran out of memory or is broken may succeed next time.
        if !matches!(result.head.status, RawStatus::Compiled | RawStatus::Refused) {
            return;
        }
        match encode(result) {
            Ok(content) => self.entries.store(key, &content),
            Err(error) => tracing::debug!("a compile is too large for the cache: {error}"),
        }
    }
}

fn encode(result: &RawResult) -> io::Result<Vec<u8>> {
    let mut bytes = MAGIC.to_vec();
    let head = to_json(&result.head)?;
    bytes.extend(frame(0, &[&head, &result.ptx, &result.cubin])?);
    Ok(bytes)
}

fn decode(content: &[u8]) -> Option<RawResult> {
    let mut decoder = Decoder::default();
    decoder.push(content.strip_prefix(MAGIC)?);
    RawResult::from_parts(decoder.take().ok()??)
}

#[cfg(test)]
mod tests;
