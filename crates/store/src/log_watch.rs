//! Watches the write-ahead log of an open database. SQLite keeps the log open and does not notice
//! that its file is deleted, replaced or cut: transactions then succeed, and are lost with the
//! process.

use super::error::Failure;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Length of the log's header, bytes (<https://sqlite.org/fileformat.html#walformat>).
const HEADER_BYTES: usize = 32;
/// Position of the two salts in the header: they change when the log restarts.
const SALTS: std::ops::Range<usize> = 16..24;
/// First bytes of a log, without the last bit, which encodes the byte order of the checksums.
const MAGIC: u32 = 0x377f_0682;

/// Event of a log whose file is missing or replaced.
pub(super) const DELETED: &str = "deleted or replaced";

/// State of a log's file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LogState {
    identity: (u64, u64),
    bytes: u64,
    /// The salts; `None` if the file has no header.
    salts: Option<Vec<u8>>,
}

/// The log of one database, as of its last transaction.
#[derive(Debug)]
pub(super) struct LogWatch {
    path: PathBuf,
    /// `None`: no log exists.
    last: Option<LogState>,
}

impl LogWatch {
    /// Starts watching a log.
    pub(super) fn new(path: PathBuf) -> Self {
        let last = read_state(&path);
        Self { path, last }
    }

    /// Checks the log before a transaction.
    ///
    /// # Errors
    /// [`Failure::LogLost`]: its file is another one, missing, or shorter than it was.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let Some(last) = &self.last else {
            return Ok(());
        };
        let state = read_state(&self.path).filter(|state| state.identity == last.identity);
        let Some(state) = state else {
            return Err(Failure::LogLost(DELETED));
        };
        // A checkpoint of another process may empty the log, and restart it with other salts.
        let cut = state.bytes > 0 && state.bytes < last.bytes && state.salts == last.salts;
        if cut {
            return Err(Failure::LogLost("cut"));
        }
        Ok(())
    }

    /// Checks the log after a transaction, which it then contains, and records its state.
    ///
    /// # Errors
    /// As [`LogWatch::check`], and if the log has no header: it was emptied during the transaction.
    pub(super) fn check_written(&mut self) -> Result<(), Failure> {
        self.check()?;
        if self.last.is_none() {
            return Ok(());
        }
        let state = read_state(&self.path);
        if state.as_ref().is_none_or(|state| state.salts.is_none()) {
            return Err(Failure::LogLost("cut"));
        }
        self.last = state;
        Ok(())
    }
}

fn read_state(path: &Path) -> Option<LogState> {
    let mut file = File::open(path).ok()?;
    let facts = file.metadata().ok()?;
    let mut header = [0; HEADER_BYTES];
    let read = file.read_exact(&mut header);
    let (magic, _) = header.split_first_chunk()?;
    let whole = read.is_ok() && u32::from_be_bytes(*magic) & !1 == MAGIC;
    Some(LogState {
        identity: (facts.dev(), facts.ino()),
        bytes: facts.len(),
        salts: whole.then(|| header.get(SALTS).unwrap_or_default().to_vec()),
    })
}
