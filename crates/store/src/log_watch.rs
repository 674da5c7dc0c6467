//! Watches the write-ahead log of an open database. SQLite keeps the log open and does not notice
//! that its file is deleted, replaced or cut: transactions then succeed, and are gone with the process.

use super::error::Failure;
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Length of the log's header, bytes (<https://sqlite.org/fileformat.html#walformat>).
const HEADER_BYTES: usize = 32;
/// Position of the two salts in the header: they change where the log begins anew.
const SALTS: std::ops::Range<usize> = 16..24;
/// First bytes of a log, without the last bit, which tells the order of bytes of the checksums.
const MAGIC: u32 = 0x377f_0682;
/// Length of a frame's header, bytes.
const FRAME_HEADER_BYTES: u64 = 24;
/// Length of the header of the log's index, bytes; a copy follows it
/// (<https://sqlite.org/walformat.html#the_wal_index_file_format>).
const INDEX_HEADER_BYTES: usize = 48;
/// Version of the index that is read here.
const INDEX_VERSION: u32 = 3_007_000;

/// Event that took a log's file away.
pub(super) const DELETED: &str = "deleted or replaced";
/// Event that shortened a log's file.
const CUT: &str = "cut";

/// State of a log's file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LogState {
    identity: (u64, u64),
    bytes: u64,
    /// `None` where the file cannot be opened, for want of descriptors.
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

/// The log of one database, as its last transaction left it.
#[derive(Debug)]
pub(super) struct LogWatch {
    path: PathBuf,
    /// The index of the log, which SQLite keeps beside it.
    index: PathBuf,
    /// `None`: there is no log yet, or the file system keeps none.
    last: Option<LogState>,
}

impl LogWatch {
    /// Watches the log of a database from now on.
    pub(super) fn new(path: PathBuf, index: PathBuf) -> Self {
        let last = read_state(&path).ok();
        Self { path, index, last }
    }

    /// Checks the log, which may be done at any time.
    ///
    /// # Errors
    /// [`Failure::LogLost`]: its file is another one, missing, or shorter than what it holds.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let Some(last) = &self.last else {
            return Ok(());
        };
        let before = frames_bytes(&self.index);
        let state = match read_state(&self.path) {
            Ok(state) => state,
            Err(ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Err(Failure::LogLost(DELETED));
            }
            // A shortage of the system says nothing of the file.
            Err(_) => return Ok(()),
        };
        if state.identity != last.identity {
            return Err(Failure::LogLost(DELETED));
        }
        // A checkpoint of another process may empty the log, and begin it anew with other salts.
        let same_log = state.header.is_some() && state.header == last.header;
        let shorter = state.bytes > 0 && state.bytes < last.bytes && same_log;
        // The index says how much of the file is in use. A checkpoint changes it before the file.
        let missing = before.is_some_and(|bytes| state.bytes < bytes);
        if shorter || (missing && frames_bytes(&self.index) == before) {
            return Err(Failure::LogLost(CUT));
        }
        Ok(())
    }

    /// Checks the log after a transaction, which it then holds, and remembers its state.
    ///
    /// # Errors
    /// As [`LogWatch::check`], and where the log has no header: it was emptied below the transaction.
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

/// Length of a log that holds every frame its index knows, bytes. `None` where the index has no frames,
/// cannot be read or is being written.
fn frames_bytes(index: &Path) -> Option<u64> {
    let mut bytes = [0; 2 * INDEX_HEADER_BYTES];
    File::open(index).ok()?.read_exact(&mut bytes).ok()?;
    let (header, copy) = bytes.split_at(INDEX_HEADER_BYTES);
    if header != copy {
        return None;
    }
    let word = |at: usize| Some(u32::from_ne_bytes(header.get(at..at + 4)?.try_into().ok()?));
    let half = |at: usize| Some(u16::from_ne_bytes(header.get(at..at + 2)?.try_into().ok()?));
    let (version, page, frames) = (word(0)?, half(14)?, word(16)?);
    if version != INDEX_VERSION || frames == 0 {
        return None;
    }
    // 1 stands for 65,536 bytes.
    let page_bytes = if page == 1 { 65_536 } else { u64::from(page) };
    let frame = page_bytes + FRAME_HEADER_BYTES;
    Some(HEADER_BYTES as u64 + u64::from(frames) * frame)
}
