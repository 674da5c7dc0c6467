//! What can go wrong with the database, each with the way out.

use std::path::{Path, PathBuf};

/// A failure of the store. Cheap to clone, because one failed commit answers many waiters.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file to read does not exist.
    #[error(
        "{}: no such database; `tuner run` makes one, --db FILE names another",
        path.display()
    )]
    Missing {
        /// The database.
        path: PathBuf,
    },
    /// A newer tuner wrote it.
    #[error(
        "{}: the database has schema version {found}, written by a newer tuner; this one \
         ({}) knows up to {known}: update the tuner, or name another file with --db",
        path.display(),
        env!("CARGO_PKG_VERSION")
    )]
    Newer {
        /// The database.
        path: PathBuf,
        /// Newest migration applied to it.
        found: i64,
        /// Newest migration known here.
        known: i64,
    },
    /// Its recorded history differs from ours.
    #[error(
        "{}: migration {version} of the database is not the one this tuner knows ({reason}); \
         it was written by a development version: name another file with --db",
        path.display()
    )]
    OtherHistory {
        /// The database.
        path: PathBuf,
        /// The migration.
        version: i64,
        /// In which way it differs.
        reason: &'static str,
    },
    /// Not SQLite at all.
    #[error(
        "{}: not a SQLite database; nothing was changed: name another file with --db, or move \
         this one away",
        path.display()
    )]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// A SQLite database, but not ours.
    #[error(
        "{}: a SQLite database of another program (no tuner tables in it); nothing was changed: \
         name another file with --db",
        path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Truncated or damaged.
    #[error(
        "{}: the database is damaged or cut short ({detail}); rescue what can be read with \
         `sqlite3 {} .recover | sqlite3 rescued.db` and use --db rescued.db, or start a new one",
        path.display(),
        path.display()
    )]
    Corrupt {
        /// The database.
        path: PathBuf,
        /// SQLite's words.
        detail: String,
    },
    /// May be read, not written.
    #[error(
        "{}: the database cannot be written ({detail}); make the file and its directory writable \
         (SQLite keeps two files beside it), or name another file with --db",
        path.display()
    )]
    ReadOnly {
        /// The database.
        path: PathBuf,
        /// The system's or SQLite's words.
        detail: String,
    },
    /// Another file, or none, has its name now.
    #[error(
        "{}: the database was moved, deleted or replaced while it was in use; what was announced \
         before is in the file that had this name, and nothing after it is stored: put it back, \
         or start again with another --db",
        path.display()
    )]
    Replaced {
        /// The database.
        path: PathBuf,
    },
    /// More names than one: SQLite keeps its log beside the name that it was given.
    #[error(
        "{}: the file has {links} names (hard links), and SQLite would keep a log of its own for \
         each, which destroys the database; use one name: remove the others, or copy the file \
         (`cp`) where two databases are wanted",
        path.display()
    )]
    HardLinked {
        /// The database.
        path: PathBuf,
        /// How many names.
        links: u64,
    },
    /// As many runs wait as may.
    #[error(
        "{}: {limit} runs wait already, and no more are taken; stop some with `tuner stop RUN` or \
         wait until they are done",
        path.display()
    )]
    QueueFull {
        /// The database.
        path: PathBuf,
        /// How many may wait.
        limit: u64,
    },
    /// Cannot be opened.
    #[error(
        "{}: the database cannot be opened ({detail}); check the path and its permissions, or \
         name another file with --db",
        path.display()
    )]
    CannotOpen {
        /// The database.
        path: PathBuf,
        /// The system's or SQLite's words.
        detail: String,
    },
    /// The disk, a quota or a file-size limit is full.
    #[error(
        "{}: the disk is full or failing, or a limit on file size is reached ({detail}). The {stored} results \
         stored by this process are safe and nothing stored before is lost; {lost} judged after \
         them could not be stored. Free space, then continue with `tuner run … --resume`",
        path.display()
    )]
    Full {
        /// The database.
        path: PathBuf,
        /// SQLite's words.
        detail: String,
        /// Results that this process stored, and that stay stored.
        stored: u64,
        /// Results of the failed transaction.
        lost: u64,
    },
    /// Another process holds it.
    #[error(
        "{}: another process has kept the database locked for {waited_s} s; end that process, or \
         name another file with --db. Nothing stored is lost",
        path.display()
    )]
    Busy {
        /// The database.
        path: PathBuf,
        /// How long was waited, seconds.
        waited_s: u64,
    },
    /// The disk or file system failed.
    #[error(
        "{}: the disk or file system failed ({detail}); check it (`dmesg`), or name a file on \
         another with --db. Nothing stored is known to be lost",
        path.display()
    )]
    Disk {
        /// The database.
        path: PathBuf,
        /// SQLite's words.
        detail: String,
    },
    /// Something that should not happen.
    #[error("{}: {detail}", path.display())]
    Broken {
        /// The database.
        path: PathBuf,
        /// What.
        detail: String,
    },
}

impl StoreError {
    /// Whether naming another file is the way out (exit code 2), rather than repairing the machine
    /// (exit code 1).
    #[must_use]
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::Missing { .. }
            | Self::Newer { .. }
            | Self::OtherHistory { .. }
            | Self::NotADatabase { .. }
            | Self::HardLinked { .. }
            | Self::Foreign { .. }
            | Self::Corrupt { .. }
            | Self::CannotOpen { .. } => true,
            Self::Disk { .. }
            | Self::ReadOnly { .. }
            | Self::Full { .. }
            | Self::QueueFull { .. }
            | Self::Busy { .. }
            | Self::Replaced { .. }
            | Self::Broken { .. } => false,
        }
    }

    /// A database whose content contradicts itself, or a store that is used after its end.
    pub fn broken(path: &Path, detail: impl Into<String>) -> Self {
        Self::Broken {
            path: path.to_owned(),
            detail: detail.into(),
        }
    }

    /// Sorts a SQLite failure by its result code (<https://sqlite.org/rescode.html>).
    pub(super) fn from_sqlx(path: &Path, error: &sqlx::Error) -> Self {
        let path = path.to_owned();
        let detail = match error {
            sqlx::Error::Database(database) => database.message().to_owned(),
            sqlx::Error::Decode(said) => said.to_string(),
            other => other.to_string(),
        };
        // Beyond a quota or size limit: SQLITE_IOERR_WRITE, _FSYNC, _TRUNCATE or _SHMSIZE.
        let cannot_grow = matches!(extended_code(error), Some(778 | 1034 | 1546 | 4874));
        match primary_code(error) {
            Some(10) if !cannot_grow => Self::Disk { path, detail },
            Some(5 | 6) => Self::Busy {
                path,
                waited_s: super::open::BUSY_TIMEOUT.as_secs(),
            },
            Some(8) => Self::ReadOnly { path, detail },
            Some(10 | 13) => Self::Full {
                path,
                detail,
                stored: 0,
                lost: 0,
            },
            Some(11) => Self::Corrupt { path, detail },
            Some(14) => Self::CannotOpen {
                path,
                detail: match no_descriptors() {
                    true => {
                        "this process has as many files open as it may: raise `ulimit -n`".into()
                    }
                    false => detail,
                },
            },
            Some(7) => Self::Broken {
                path,
                detail: format!(
                    "SQLite gets no memory ({detail}): raise `ulimit -v` or the container's limit; \
                     what was announced is stored"
                ),
            },
            Some(26) => Self::NotADatabase { path },
            _ => Self::Broken { path, detail },
        }
    }

    /// Adds what is safe and what is not to an error of a full disk.
    pub(super) fn with_counts(self, stored: u64, lost: u64) -> Self {
        match self {
            Self::Full { path, detail, .. } => Self::Full {
                path,
                detail,
                stored,
                lost,
            },
            other => other,
        }
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
