//! What can go wrong with the database, each with the way out.

use std::path::{Path, PathBuf};

/// A failure of the store. Cheap to clone, because one failed commit answers many waiters.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}: {failure}", path.display())]
pub struct StoreError {
    /// The database.
    pub path: PathBuf,
    /// What is wrong with it.
    pub failure: Failure,
}

/// What can be wrong with a database.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The file to read does not exist.
    #[error("no such database; `tuner run` makes one, --db FILE names another")]
    Missing,
    /// A newer tuner wrote it.
    #[error(
        "the database has schema version {found}, written by a newer tuner; this one ({}) knows up \
         to {known}: update the tuner, or name another file with --db",
        env!("CARGO_PKG_VERSION")
    )]
    Newer {
        /// Newest migration applied to it.
        found: i64,
        /// Newest migration known here.
        known: i64,
    },
    /// Its recorded history differs from ours.
    #[error(
        "migration {version} of the database is not the one this tuner knows ({reason}); it was \
         written by a development version: name another file with --db"
    )]
    OtherHistory {
        /// The migration.
        version: i64,
        /// In which way it differs.
        reason: &'static str,
    },
    /// Not SQLite at all.
    #[error(
        "not a SQLite database; nothing was changed: name another file with --db, or move this one \
         away"
    )]
    NotADatabase,
    /// A SQLite database, but not ours.
    #[error(
        "a SQLite database of another program (no tuner tables in it); nothing was changed: name \
         another file with --db"
    )]
    Foreign,
    /// Truncated or damaged.
    #[error(
        "the database is damaged or cut short ({detail}); rescue what can be read with `sqlite3 {} \
         .recover | sqlite3 rescued.db` and use --db rescued.db, or start a new one",
        path.display()
    )]
    Corrupt {
        /// The database, for the command that rescues it.
        path: PathBuf,
        /// SQLite's words.
        detail: String,
    },
    /// May be read, not written; the system's or SQLite's words.
    #[error(
        "the database cannot be written ({0}); make the file and its directory writable (SQLite \
         keeps two files beside it), or name another file with --db"
    )]
    ReadOnly(String),
    /// Another file, or none, has its name now.
    #[error(
        "the database was moved, deleted or replaced while it was in use; what was announced before \
         is in the file that had this name, and nothing after it is stored: put it back, or start \
         again with another --db"
    )]
    Replaced,
    /// The file of its write-ahead log is not the one that is in use; what happened to it.
    #[error(
        "the write-ahead log of the database (the file that ends in -wal) was {0} while it was in use; \
         results announced since its last checkpoint may be lost, and nothing more is stored: end every \
         process that uses the database, check it with `sqlite3 FILE 'PRAGMA integrity_check'`, start \
         again, and leave the files beside it alone"
    )]
    LogLost(&'static str),
    /// More names than one, and how many: SQLite keeps its log beside the name that it was given.
    #[error(
        "the file has {0} names (hard links), and SQLite would keep a log of its own for each, which \
         destroys the database; use one name: remove the others, or copy the file (`cp`) where two \
         databases are wanted"
    )]
    HardLinked(u64),
    /// As many runs wait as may.
    #[error(
        "{0} runs wait already, and no more are taken; stop some with `tuner stop RUN` or wait until \
         they are done"
    )]
    QueueFull(u64),
    /// Cannot be opened; the system's or SQLite's words.
    #[error(
        "the database cannot be opened ({0}); check the path and its permissions, or name another \
         file with --db"
    )]
    CannotOpen(String),
    /// The disk, a quota or a file-size limit is full.
    #[error(
        "the disk is full or failing, or a limit on file size is reached ({detail}). The {stored} results \
         stored by this process are safe and nothing stored before is lost; {lost} judged after \
         them could not be stored. Free space, then continue with `tuner run … --resume`"
    )]
    Full {
        /// SQLite's words.
        detail: String,
        /// Results that this process stored, and that stay stored.
        stored: u64,
        /// Results of the failed transaction.
        lost: u64,
    },
    /// Another process holds it; how long was waited, seconds.
    #[error(
        "another process has kept the database locked for {0} s; end that process, or name another \
         file with --db. Nothing stored is lost"
    )]
    Busy(u64),
    /// The disk or file system failed; SQLite's words.
    #[error(
        "the disk or file system failed ({0}); check it (`dmesg`), or name a file on another with \
         --db. Nothing stored is known to be lost"
    )]
    Disk(String),
    /// Something that should not happen.
    #[error("{0}")]
    Broken(String),
}

impl Failure {
    /// The failure of that database.
    pub(super) fn at(self, path: &Path) -> StoreError {
        StoreError {
            path: path.to_owned(),
            failure: self,
        }
    }
}

impl StoreError {
    /// Whether naming another file is the way out (exit code 2), rather than repairing the machine
    /// (exit code 1).
    #[must_use]
    pub fn is_bad_input(&self) -> bool {
        match self.failure {
            Failure::Missing
            | Failure::Newer { .. }
            | Failure::OtherHistory { .. }
            | Failure::NotADatabase
            | Failure::HardLinked(_)
            | Failure::Foreign
            | Failure::Corrupt { .. }
            | Failure::CannotOpen(_) => true,
            Failure::Disk(_)
            | Failure::ReadOnly(_)
            | Failure::Full { .. }
            | Failure::QueueFull(_)
            | Failure::Busy(_)
            | Failure::Replaced
            | Failure::LogLost(_)
            | Failure::Broken(_) => false,
        }
    }

    /// A database whose content contradicts itself, or a store that is used after its end.
    pub fn broken(path: &Path, detail: impl Into<String>) -> Self {
        Failure::Broken(detail.into()).at(path)
    }

    /// Sorts a SQLite failure by its result code (<https://sqlite.org/rescode.html>).
    pub(super) fn from_sqlx(path: &Path, error: &sqlx::Error) -> Self {
        let detail = match error {
            sqlx::Error::Database(database) => database.message().to_owned(),
            sqlx::Error::Decode(said) => said.to_string(),
            other => other.to_string(),
        };
        // Beyond a quota or size limit: SQLITE_IOERR_WRITE, _FSYNC, _TRUNCATE or _SHMSIZE.
        let cannot_grow = matches!(extended_code(error), Some(778 | 1034 | 1546 | 4874));
        let failure = match primary_code(error) {
            Some(10) if !cannot_grow => Failure::Disk(detail),
            Some(5 | 6) => Failure::Busy(super::open::BUSY_TIMEOUT.as_secs()),
            Some(8) => Failure::ReadOnly(detail),
            Some(10 | 13) => Failure::Full {
                detail,
                stored: 0,
                lost: 0,
            },
            Some(11) => Failure::Corrupt {
                path: path.to_owned(),
                detail,
            },
            Some(14) if no_descriptors() => Failure::CannotOpen(
                "this process has as many files open as it may: raise `ulimit -n`".to_owned(),
            ),
            Some(14) => Failure::CannotOpen(detail),
            Some(7) => Failure::Broken(format!(
                "SQLite gets no memory ({detail}): raise `ulimit -v` or the container's limit; what \
                 was announced is stored"
            )),
            Some(26) => Failure::NotADatabase,
            _ => Failure::Broken(match error {
                // A connection is a thread.
                sqlx::Error::Io(io) if io.raw_os_error() == Some(libc::EAGAIN) => format!(
                    "the database gets no thread ({io}): raise `ulimit -u` or `ulimit -v`; what was \
                     announced is stored"
                ),
                _ => detail,
            }),
        };
        failure.at(path)
    }

    /// Adds what is safe and what is not to an error of a full disk.
    pub(super) fn with_counts(mut self, safe: u64, failed: u64) -> Self {
        if let Failure::Full { stored, lost, .. } = &mut self.failure {
            (*stored, *lost) = (safe, failed);
        }
        self
    }
}

/// Whether no file can be opened any more: SQLite does not say why one could not.
fn no_descriptors() -> bool {
    let opened = std::fs::File::open("/dev/null");
    let code = opened.err().and_then(|error| error.raw_os_error());
    matches!(code, Some(libc::EMFILE | libc::ENFILE))
}

/// Names the database that an error of SQLite is about.
pub(super) trait At<T> {
    fn at(self, path: &Path) -> Result<T, StoreError>;
}

impl<T> At<T> for Result<T, sqlx::Error> {
    fn at(self, path: &Path) -> Result<T, StoreError> {
        self.map_err(|error| StoreError::from_sqlx(path, &error))
    }
}

/// Rows that contradict one another or a question, as an error beside SQLite's own.
pub(super) fn broken(detail: impl Into<String>) -> sqlx::Error {
    sqlx::Error::Decode(detail.into().into())
}

fn extended_code(error: &sqlx::Error) -> Option<i32> {
    let sqlx::Error::Database(database) = error else {
        return None;
    };
    database.code()?.parse().ok()
}

/// SQLite's primary result code; the low byte of the extended one.
pub(super) fn primary_code(error: &sqlx::Error) -> Option<i32> {
    extended_code(error).map(|code| code & 0xff)
}
