//! Database failures, each with its remedy.

use std::path::{Path, PathBuf};

/// A failure of the store. Cheap to clone, because one failed commit is reported to many callers.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}: {failure}", path.display())]
pub struct StoreError {
    /// The database.
    pub path: PathBuf,
    /// The failure.
    pub failure: Failure,
}

/// Kind of database failure.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The file to read does not exist.
    #[error("no such database; `tuner run` makes one, --db FILE names another")]
    Missing,
    /// Written by a newer tuner.
    #[error(
        "the database has schema version {found}, written by a newer tuner; this one ({}) knows up \
         to {known}: update the tuner, or name another file with --db",
        env!("CARGO_PKG_VERSION")
    )]
    Newer {
        /// Newest migration applied to it.
        found: i64,
        /// Newest migration known to this program.
        known: i64,
    },
    /// Its migration history differs.
    #[error(
        "migration {version} of the database is not the one this tuner knows ({reason}); it was \
         written by a development version: name another file with --db"
    )]
    OtherHistory {
        /// The migration.
        version: i64,
        /// The difference.
        reason: &'static str,
    },
    /// Not a SQLite database.
    #[error(
        "not a SQLite database; nothing was changed: name another file with --db, or move this one \
         away"
    )]
    NotADatabase,
    /// A SQLite database of another program.
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
        /// SQLite's message.
        detail: String,
    },
    /// Readable but not writable; the system's or SQLite's message.
    #[error(
        "the database cannot be written ({0}); make the file and its directory writable (SQLite \
         keeps two files beside it), or name another file with --db"
    )]
    ReadOnly(String),
    /// Its name now refers to another file, or to none.
    #[error(
        "the database was moved, deleted or replaced while it was in use; what was announced before \
         is in the file that had this name, and nothing after it is stored: put it back, or start \
         again with another --db"
    )]
    Replaced,
    /// Its write-ahead log was replaced; the event.
    #[error(
        "the write-ahead log of the database (the file that ends in -wal) was {0} while it was in use; \
         results announced since its last checkpoint may be lost, and nothing more is stored: end every \
         process that uses the database, check it with `sqlite3 FILE 'PRAGMA integrity_check'`, start \
         again, and leave the files beside it alone"
    )]
    LogLost(&'static str),
    /// Several hard links, with their number: SQLite would keep a separate log for each name.
    #[error(
        "the file has {0} names (hard links), and SQLite would keep a separate log for each, which \
         destroys the database; use one name: remove the others, or copy the file (`cp`) where two \
         databases are wanted"
    )]
    HardLinked(u64),
    /// The queue is full.
    #[error(
        "{0} runs wait already, and no more are taken; stop some with `tuner stop RUN` or wait until \
         they are done"
    )]
    QueueFull(u64),
    /// It cannot be opened; the system's or SQLite's message.
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
        /// SQLite's message.
        detail: String,
        /// Results that this process stored and that remain stored.
        stored: u64,
        /// Results of the failed transaction.
        lost: u64,
    },
    /// Locked by another process; the waiting time, seconds.
    #[error(
        "another process has kept the database locked for {0} s; end that process, or name another \
         file with --db. Nothing stored is lost"
    )]
    Busy(u64),
    /// The disk or file system failed; SQLite's message.
    #[error(
        "the disk or file system failed ({0}); check it (`dmesg`), or name a file on another with \
         --db. Nothing stored is known to be lost"
    )]
    Disk(String),
    /// An internal error.
    #[error("{0}")]
    Broken(String),
}

impl Failure {
    /// Converts to the error of that database.
    pub(super) fn with_path(self, path: &Path) -> StoreError {
        StoreError {
            path: path.to_owned(),
            failure: self,
        }
    }
}

impl StoreError {
    /// Reports whether naming another file is the remedy (exit code 2), rather than repairing the
    /// machine (exit code 1).
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

    /// Returns the error of a database with contradictory content, or of a store that is used after
    /// its end.
    pub fn broken(path: &Path, detail: impl Into<String>) -> Self {
        Failure::Broken(detail.into()).with_path(path)
    }

    /// Classifies a SQLite failure by its result code (<https://sqlite.org/rescode.html>).
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
            Some(5 | 6) => Failure::Busy(super::waits::BUSY_TIMEOUT.as_secs()),
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
            Some(7) => no_memory(&detail),
            Some(26) => Failure::NotADatabase,
            // sqlx has no result code if SQLite cannot allocate the connection itself.
            None if is_out_of_memory(error) => no_memory(&detail),
            _ => Failure::Broken(match error {
                // A connection is a thread.
                sqlx::Error::Io(io) if io.raw_os_error() == Some(libc::EAGAIN) => format!(
                    "the database gets no thread ({io}): raise `ulimit -u` or `ulimit -v`; what was \
                     announced is stored"
                ),
                _ => detail,
            }),
        };
        failure.with_path(path)
    }

    /// Adds the counts of stored and lost results to an error of a full disk.
    pub(super) fn with_counts(mut self, safe: u64, failed: u64) -> Self {
        if let Failure::Full { stored, lost, .. } = &mut self.failure {
            (*stored, *lost) = (safe, failed);
        }
        self
    }
}

fn no_memory(detail: &str) -> Failure {
    Failure::Broken(format!(
        "SQLite gets no memory ({detail}): raise `ulimit -v` or the container's limit; what was \
         announced is stored"
    ))
}

fn is_out_of_memory(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Io(io) if io.kind() == std::io::ErrorKind::OutOfMemory)
}

/// Reports whether no more files can be opened: SQLite does not report that reason.
fn no_descriptors() -> bool {
    let opened = std::fs::File::open("/dev/null");
    let code = opened.err().and_then(|error| error.raw_os_error());
    matches!(code, Some(libc::EMFILE | libc::ENFILE))
}

/// Adds the database to an error of SQLite.
pub(super) trait WithPath<T> {
    fn with_path(self, path: &Path) -> Result<T, StoreError>;
}

impl<T> WithPath<T> for Result<T, sqlx::Error> {
    fn with_path(self, path: &Path) -> Result<T, StoreError> {
        self.map_err(|error| StoreError::from_sqlx(path, &error))
    }
}

/// Returns contradictory rows as an error like SQLite's own.
pub(super) fn broken(detail: impl Into<String>) -> sqlx::Error {
    sqlx::Error::Decode(detail.into().into())
}

fn extended_code(error: &sqlx::Error) -> Option<i32> {
    let sqlx::Error::Database(database) = error else {
        return None;
    };
    database.code()?.parse().ok()
}

/// Returns SQLite's primary result code; the low byte of the extended one.
pub(super) fn primary_code(error: &sqlx::Error) -> Option<i32> {
    extended_code(error).map(|code| code & 0xff)
}

#[cfg(test)]
mod tests {
    use super::{Failure, Path, StoreError};

    #[test]
    fn a_connection_without_memory_says_which_limit_to_raise() {
        let kind = std::io::ErrorKind::OutOfMemory;
        let error = sqlx::Error::Io(std::io::Error::new(
            kind,
            "no memory for the sqlite3 object",
        ));
        let failure = StoreError::from_sqlx(Path::new("t.db"), &error).failure;
        assert!(
            matches!(&failure, Failure::Broken(said) if said.contains("ulimit -v")),
            "{failure:?}"
        );
    }
}
