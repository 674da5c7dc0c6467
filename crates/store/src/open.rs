//! Connections and schema migration.

use super::error::{Failure, StoreError, WithPath as _, primary_code};
use super::waits::{BUSY_TIMEOUT, report_wait};
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::sqlite::{SqliteConnectOptions, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _, SqlSafeStr as _, SqliteConnection};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use tuner_core::record::Verdict;

/// Versions, descriptions and texts of the migrations.
const MIGRATION_TEXTS: &[(i64, &str, &str)] = &include!(concat!(env!("OUT_DIR"), "/migrations.rs"));

static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    let migrations = MIGRATION_TEXTS.iter().map(|(version, description, text)| {
        let description = Cow::Borrowed(*description);
        let text = text.into_sql_str();
        Migration::new(*version, description, MigrationType::Simple, text, false)
    });
    Migrator::with_migrations(migrations.collect())
});

/// Returns the newest schema version of this program.
pub(super) fn known_version() -> i64 {
    MIGRATIONS.iter().map(|m| m.version).max().unwrap_or(0)
}

fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(BUSY_TIMEOUT)
        .foreign_keys(true)
        // FULL, not the usual NORMAL of WAL: an acknowledged result must survive power loss. Grouping many
        // results in one transaction compensates for the cost.
        .synchronous(SqliteSynchronous::Full)
        .statement_cache_capacity(64)
        // 32 MiB: a group's dirty pages stay in memory until its commit. The default of 2 MiB spills them
        // and reads them again.
        .pragma("cache_size", "-32768")
        // Checkpoint every 32 MiB instead of every 4: pages that many groups modify are then written once.
        .pragma("wal_autocheckpoint", "8192")
}

/// Opens for writing: creates directories and file, switches to WAL, applies migrations.
pub(super) async fn writable(path: &Path) -> Result<SqliteConnection, StoreError> {
    create_parent(path)?;
    create_private(path)?;
    ignore_file_size_signal();
    let mut connection = options(path)
        .create_if_missing(true)
        .connect()
        .await
        .with_path(path)?;
    let result = report_wait(path, async {
        refuse_foreign(path, &mut connection).await?;
        switch_to_wal(path, &mut connection).await?;
        migrate(path, &mut connection).await?;
        check_verdicts(path, &mut connection).await
    })
    .await;
    match result {
        Ok(()) => Ok(connection),
        Err(error) => {
            let _ = connection.close().await;
            Err(error)
        }
    }
}

/// Reopens a database for writing: after a failed write a connection may be inside a transaction that
/// SQLite itself has ended.
pub(super) async fn again(path: &Path, wait: Duration) -> Result<SqliteConnection, StoreError> {
    let options = options(path).busy_timeout(wait);
    let connection = options.connect().await;
    connection.with_path(path)
}

/// Returns the identity of a file, which distinguishes it from another one of the same name.
pub(super) fn file_identity(path: &Path) -> std::io::Result<(u64, u64)> {
    let facts = std::fs::metadata(path)?;
    Ok((facts.dev(), facts.ino()))
}

/// Treatment of a database with an older schema that is opened for reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OlderSchema {
    /// Migrates the file.
    Migrate,
    /// Reads a migrated copy and leaves the file unchanged.
    Copy,
}

/// Opens for reading, including from read-only folders: a database without pending log in a
/// directory that cannot be written is read as immutable.
pub(super) async fn readable(
    path: &Path,
    older: OlderSchema,
) -> Result<SqliteConnection, StoreError> {
    match std::fs::metadata(path) {
        // SQLite would accept an empty file as a database without tables.
        Ok(facts) if facts.is_file() && facts.len() == 0 => {
            return Err(Failure::Missing.with_path(path));
        }
        Ok(facts) if facts.is_dir() => {
            let error = std::io::Error::from(std::io::ErrorKind::IsADirectory);
            return Err(cannot_open(path, &error));
        }
        Ok(facts) if !facts.is_file() => return Err(cannot_open(path, &not_regular())),
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(Failure::Missing.with_path(path));
        }
        Err(error) => return Err(cannot_open(path, &error)),
    }
    let mut connection = match open_read_only(path, false).await {
        Err(error) if cannot_write(&error) => {
            if has_pending_log(path) {
                return read_copy(path, Some("its log cannot be read in")).await;
            }
            open_read_only(path, true).await?
        }
        opened => opened?,
    };
    match check_history(path, &mut connection).await? {
        History::Current => {
            check_verdicts(path, &mut connection).await?;
            Ok(connection)
        }
        History::None => Err(Failure::Foreign.with_path(path)),
        History::OlderSchema if older == OlderSchema::Copy => {
            drop(connection);
            read_copy(path, None).await
        }
        History::OlderSchema => {
            // Migrate through a writing connection, then read.
            drop(connection);
            match writable(path).await {
                Err(error) if cannot_write(&error) => {
                    read_copy(
                        path,
                        Some("its older schema cannot be brought up to date in"),
                    )
                    .await
                }
                migrated => {
                    migrated?.close().await.with_path(path)?;
                    open_read_only(path, false).await
                }
            }
        }
    }
}

fn cannot_write(error: &StoreError) -> bool {
    matches!(
        error.failure,
        Failure::CannotOpen(_) | Failure::ReadOnly(_) | Failure::HardLinked(_)
    )
}

/// Reads a copy in a temporary folder, which is removed once the copy is open. Used for a database that
/// must be written before it can be read, but must not be, or cannot be for the reason `why`.
async fn read_copy(path: &Path, why: Option<&str>) -> Result<SqliteConnection, StoreError> {
    let folder = tempfile::tempdir().map_err(|error| cannot_open(path, &error))?;
    let copy = folder.path().join("copy.db");
    let copy_writable = |from: &Path, to: &Path| {
        std::fs::copy(from, to)?;
        // A copy of a read-only file is also read-only.
        std::fs::set_permissions(to, std::fs::Permissions::from_mode(0o600))
    };
    let copied = copy_writable(path, &copy).and_then(|()| {
        if has_pending_log(path) {
            copy_writable(&log_of(path), &log_of(&copy))?;
        }
        Ok(())
    });
    copied.map_err(|error| cannot_open(path, &error))?;
    let mut connection = writable(&copy).await?;
    if let Some(why) = why {
        tracing::warn!(
            "{}: {why} a folder that cannot be written: a copy is read, and the file stays as it is",
            path.display()
        );
    }
    // An immutable database is read without its log.
    sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)")
        .execute(&mut connection)
        .await
        .with_path(path)?;
    connection.close().await.with_path(path)?;
    // SQLite keeps reading the file after its name is removed.
    open_read_only(&copy, true).await
}

async fn open_read_only(path: &Path, immutable: bool) -> Result<SqliteConnection, StoreError> {
    let mut connection = options(path)
        .read_only(true)
        .immutable(immutable)
        .connect()
        .await
        .with_path(path)?;
    // Opening is lazy: the first read detects a damaged header or a log that cannot be opened.
    sqlx::query("SELECT count(*) FROM sqlite_schema")
        .execute(&mut connection)
        .await
        .with_path(path)?;
    Ok(connection)
}

/// Returns the path of the write-ahead log.
pub(super) fn log_of(path: &Path) -> PathBuf {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    log.into()
}

fn has_pending_log(path: &Path) -> bool {
    std::fs::metadata(log_of(path)).is_ok_and(|facts| facts.len() > 0)
}

fn not_regular() -> std::io::Error {
    let why = "it is not a regular file but a FIFO, socket or device";
    std::io::Error::new(std::io::ErrorKind::InvalidInput, why)
}

fn cannot_open(path: &Path, error: &std::io::Error) -> StoreError {
    Failure::CannotOpen(error.to_string()).with_path(path)
}

fn create_parent(path: &Path) -> Result<(), StoreError> {
    let Some(parent) = path.parent().filter(|p| !p.as_os_str().is_empty()) else {
        return Ok(());
    };
    if parent.is_dir() {
        return Ok(());
    }
    std::fs::create_dir_all(parent).map_err(|error| cannot_open(path, &error))?;
    // The new directory's entry must survive power loss too.
    if let Some(Ok(above)) = parent.parent().map(std::fs::File::open) {
        let _ = above.sync_all();
    }
    Ok(())
}

/// Creates the file if missing, for its owner only: results name hosts, paths and commits. SQLite
/// gives its companion files the same permissions.
fn create_private(path: &Path) -> Result<(), StoreError> {
    let made = std::fs::File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    match made {
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        // SQLite reports the failure as well.
        Err(_) => return Ok(()),
    }
    let links = match std::fs::metadata(path) {
        Ok(facts) if facts.is_file() => facts.nlink(),
        // SQLite reports a folder itself.
        Ok(facts) if !facts.is_dir() => return Err(cannot_open(path, &not_regular())),
        _ => 1,
    };
    if links > 1 {
        return Err(Failure::HardLinked(links).with_path(path));
    }
    Ok(())
}

/// Ignores SIGXFSZ: a write beyond `ulimit -f` raises it, and its default action is termination. If it is
/// ignored the write fails instead, with an error that lists the stored results.
fn ignore_file_size_signal() {
    let kind = tokio::signal::unix::SignalKind::from_raw(libc::SIGXFSZ);
    if let Err(error) = tokio::signal::unix::signal(kind) {
        tracing::debug!(%error, "no handler for SIGXFSZ");
    }
}

/// Refuses another program's database.
async fn refuse_foreign(path: &Path, connection: &mut SqliteConnection) -> Result<(), StoreError> {
    let (tables, ours): (i64, i64) = sqlx::query_as(
        "SELECT count(*), count(*) FILTER (WHERE name = '_sqlx_migrations') FROM sqlite_schema",
    )
    .fetch_one(connection)
    .await
    .with_path(path)?;
    if tables > 0 && ours == 0 {
        return Err(Failure::Foreign.with_path(path));
    }
    Ok(())
}

/// Switches to WAL. The switch needs exclusive access and does not wait for a lock like statements (SQLite
/// does not call the busy handler if waiting could deadlock). Two processes that start on a new database
/// would make each other fail, so it is retried until the timeout.
async fn switch_to_wal(path: &Path, connection: &mut SqliteConnection) -> Result<(), StoreError> {
    let started = Instant::now();
    loop {
        let mode: Result<String, sqlx::Error> = sqlx::query_scalar("PRAGMA journal_mode = WAL")
            .fetch_one(&mut *connection)
            .await;
        match mode {
            // A file system without shared memory keeps its old mode; slower, but equally safe.
            Ok(_) => return Ok(()),
            Err(error) => {
                let busy = matches!(primary_code(&error), Some(5 | 6));
                if !busy || started.elapsed() > BUSY_TIMEOUT {
                    return Err(StoreError::from_sqlx(path, &error));
                }
            }
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

enum History {
    Current,
    OlderSchema,
    None,
}

/// Compares the applied migrations with the known ones.
async fn check_history(
    path: &Path,
    connection: &mut SqliteConnection,
) -> Result<History, StoreError> {
    let ours: i64 =
        sqlx::query_scalar("SELECT count(*) FROM sqlite_schema WHERE name = '_sqlx_migrations'")
            .fetch_one(&mut *connection)
            .await
            .with_path(path)?;
    if ours == 0 {
        return Ok(History::None);
    }
    let applied: Vec<(i64, Vec<u8>)> =
        sqlx::query_as("SELECT version, checksum FROM _sqlx_migrations ORDER BY version")
            .fetch_all(&mut *connection)
            .await
            .with_path(path)?;
    let known = known_version();
    if let Some((found, _)) = applied.last().filter(|(version, _)| *version > known) {
        let found = *found;
        return Err(Failure::Newer { found, known }.with_path(path));
    }
    for (version, checksum) in &applied {
        let reason = match MIGRATIONS.iter().find(|m| m.version == *version) {
            None => "unknown here",
            Some(ours) if ours.checksum.as_ref() != checksum.as_slice() => "different text",
            Some(_) => continue,
        };
        let version = *version;
        return Err(Failure::OtherHistory { version, reason }.with_path(path));
    }
    Ok(if applied.len() == MIGRATIONS.iter().count() {
        History::Current
    } else {
        History::OlderSchema
    })
}

/// Compares the consequences of verdicts in the database with those of this program.
async fn check_verdicts(path: &Path, connection: &mut SqliteConnection) -> Result<(), StoreError> {
    let stored: Vec<(String, String, bool)> =
        sqlx::query_as("SELECT name, class, knowledge FROM verdict_facts")
            .fetch_all(connection)
            .await
            .with_path(path)?;
    let ours = Verdict::ALL.iter().map(|verdict| {
        let facts = verdict.facts();
        let (name, class) = (verdict.name().to_owned(), facts.class.name().to_owned());
        (name, class, facts.knowledge)
    });
    let (stored, ours): (BTreeSet<_>, BTreeSet<_>) = (stored.into_iter().collect(), ours.collect());
    match stored.symmetric_difference(&ours).next() {
        None => Ok(()),
        Some((name, ..)) => Err(StoreError::broken(
            path,
            format!(
                "the table verdict_facts of the database disagrees with this tuner about `{name}`: \
                 it was changed, or a migration is missing"
            ),
        )),
    }
}

/// Applies the missing migrations in one transaction for which other processes wait.
async fn migrate(path: &Path, connection: &mut SqliteConnection) -> Result<(), StoreError> {
    if matches!(check_history(path, connection).await?, History::Current) {
        return Ok(());
    }
    let mut transaction = connection
        .begin_with("BEGIN IMMEDIATE")
        .await
        .with_path(path)?;
    // Another process may have migrated in the meantime.
    if !matches!(
        check_history(path, &mut transaction).await?,
        History::Current
    ) {
        MIGRATIONS
            .run(&mut *transaction)
            .await
            .map_err(|error| match error {
                sqlx::migrate::MigrateError::Execute(error)
                | sqlx::migrate::MigrateError::ExecuteMigration(error, _) => {
                    StoreError::from_sqlx(path, &error)
                }
                other => StoreError::broken(path, other.to_string()),
            })?;
    }
    transaction.commit().await.with_path(path)
}
