//! Watches the write-ahead log of an open database. SQLite keeps the log open and does not notice that its
//! file is deleted, replaced or truncated: transactions then succeed, but are lost when the process ends.
//!
//! The database and the index of its log (`-shm`) are never opened here. Closing them would release every
//! lock of this process on them (fcntl(2)).

use super::error::Failure;
use std::fs::File;
use std::io::{ErrorKind, Read as _};
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
/// Event that shortened a log's file.
pub(super) const CUT: &str = "cut";

/// State of a log's file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LogState {
    identity: (u64, u64),
    bytes: u64,
    /// `None` if the file cannot be opened for lack of descriptors.
    header: Option<Header>,
}

/// Start of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Header {
    /// Without a header the log is empty.
    Empty,
    /// The salts.
    Salts(Vec<u8>),
}

/// The log of one database, as of its last transaction.
#[derive(Debug)]
pub(super) struct LogWatch {
    path: PathBuf,
    /// `None`: no log exists, or the file system does not support one.
    last: Option<LogState>,
}

impl LogWatch {
    /// Starts watching a log.
    pub(super) fn new(path: PathBuf) -> Self {
        let last = read_state(&path).ok();
        Self { path, last }
    }

    /// Checks the log; may be called at any time.
    ///
    /// # Errors
    /// [`Failure::LogLost`]: its file is another one, missing, or shorter than its content.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let Some(last) = &self.last else {
            return Ok(());
        };
        let state = match read_state(&self.path) {
            Ok(state) => state,
            Err(ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Err(Failure::LogLost(DELETED));
            }
            // A shortage of system resources is not a fault of the file.
            Err(_) => return Ok(()),
        };
        if state.identity != last.identity {
            return Err(Failure::LogLost(DELETED));
        }
        // A checkpoint of another process may empty the log and restart it with other salts.
        let same_log = state.header.is_some() && state.header == last.header;
        if state.bytes > 0 && state.bytes < last.bytes && same_log {
            return Err(Failure::LogLost(CUT));
        }
        Ok(())
    }

    /// Reports whether the log had content and is now empty. A checkpoint of another process can also cause
    /// this; then SQLite has no frames in it.
    pub(super) fn is_emptied(&self) -> bool {
        let had_content = self.last.as_ref().is_some_and(|last| last.bytes > 0);
        had_content && std::fs::metadata(&self.path).is_ok_and(|facts| facts.len() == 0)
    }

    /// Checks the log after a transaction, which it then contains, and records its state.
    ///
    /// # Errors
    /// As [`LogWatch::check`], and if the log has no header: it was emptied during the transaction.
    pub(super) fn check_written(&mut self) -> Result<(), Failure> {
        self.check()?;
        let Ok(state) = read_state(&self.path) else {
            return Ok(());
        };
        if self.last.is_some() && state.header == Some(Header::Empty) {
            return Err(Failure::LogLost(CUT));
        }
        self.last = Some(state);
        Ok(())
    }
}

fn read_state(path: &Path) -> Result<LogState, ErrorKind> {
    let facts = std::fs::metadata(path).map_err(|error| error.kind())?;
    Ok(LogState {
        identity: (facts.dev(), facts.ino()),
        bytes: facts.len(),
        header: read_header(path),
    })
}

fn read_header(path: &Path) -> Option<Header> {
    let mut file = File::open(path).ok()?;
    let mut header = [0; HEADER_BYTES];
    let read = file.read_exact(&mut header);
    let (magic, _) = header.split_first_chunk()?;
    let is_whole = read.is_ok() && u32::from_be_bytes(*magic) & !1 == MAGIC;
    Some(match header.get(SALTS) {
        Some(salts) if is_whole => Header::Salts(salts.to_vec()),
        _ => Header::Empty,
    })
}
