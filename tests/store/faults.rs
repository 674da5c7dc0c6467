//! Broken, foreign, locked, full: each is a message with the way out, and nothing stored is lost.

use crate::store::child::{as_child, command, last_number};
use crate::store::support::{config, finished, key, proven, start, timed};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use tuner_core::record::DeviceKind;
use tuner_store::{Failure, LeaderboardQuery, RunEnd, Store, StoreError};

/// A closed database with some rows.
async fn filled(path: &Path, rows: u64) {
    open_and_filled(path, rows).await.close().await.unwrap();
}

/// A store that is open, so that its rows are in the log.
async fn open_and_filled(path: &Path, rows: u64) -> Store {
    let store = Store::open(path).await.unwrap();
    let start = start(DeviceKind::Cuda);
    let trial = |sequence: u64| {
        let config = config(i64::try_from(sequence).unwrap(), 0);
        timed(&start, sequence, config, 1.0 + sequence as f64)
    };
    let trials: Vec<_> = (0..rows).map(trial).collect();
    finished(&store, &start, &trials).await;
    store
}

pub(super) async fn rows(path: &Path) -> Result<usize, StoreError> {
    let store = Store::open_read(path).await?;
    let rows = store.leaderboard(&LeaderboardQuery::default()).await?;
    Ok(rows.len())
}

pub(super) async fn sql(path: &Path, text: &'static str) {
    use sqlx::Connection as _;
    let options = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true);
    let mut connection = sqlx::SqliteConnection::connect_with(&options)
        .await
        .unwrap();
    sqlx::raw_sql(text).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

/// Both ways of opening must refuse, for the same reason.
async fn check_refused(path: &Path, expected: fn(&StoreError) -> bool, words: &str) {
    for (way, error) in [
        ("open", Store::open(path).await.unwrap_err()),
        ("open_read", rows(path).await.unwrap_err()),
    ] {
        assert!(expected(&error), "{way}: {error:?}");
        assert!(error.is_bad_input(), "{way}: {error:?}");
        let text = error.to_string();
        assert!(text.contains(words), "{way}: {text}");
        assert!(text.contains(path.to_str().unwrap()), "{way}: {text}");
        assert!(text.contains("--db"), "{way} does not say the fix: {text}");
    }
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_says_to_update() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tuner.db");
    filled(&path, 1).await;
    sql(
        &path,
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (99990101000000, 'future', true, x'00', 0)",
    )
    .await;
    let newer = |error: &StoreError| matches!(error.failure, Failure::Newer { .. });
    check_refused(&path, newer, "99990101000000").await;
}

#[tokio::test]
async fn an_edited_migration_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tuner.db");
    filled(&path, 1).await;
    sql(&path, "UPDATE _sqlx_migrations SET checksum = x'00'").await;
    let other = |error: &StoreError| matches!(error.failure, Failure::OtherHistory { .. });
    check_refused(&path, other, "different text").await;
}

#[tokio::test]
async fn text_is_no_database_and_stays_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notes.txt");
    for text in ["hello".to_owned(), "not a database at all\n".repeat(1000)] {
        std::fs::write(&path, &text).unwrap();
        let not = |error: &StoreError| matches!(error.failure, Failure::NotADatabase);
        check_refused(&path, not, "not a SQLite database").await;
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
}

#[tokio::test]
async fn another_programs_database_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("places.db");
    sql(&path, "CREATE TABLE bookmarks (url TEXT)").await;
    let before = std::fs::read(&path).unwrap();
    let foreign = |error: &StoreError| matches!(error.failure, Failure::Foreign);
    check_refused(&path, foreign, "another program").await;
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[tokio::test]
async fn a_database_cut_short_is_damaged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tuner.db");
    filled(&path, 300).await;
    let bytes = std::fs::read(&path).unwrap();
    let corrupt = |error: &StoreError| matches!(error.failure, Failure::Corrupt { .. });
    for keep in [bytes.len() / 2, 4096, 5000] {
        std::fs::write(&path, &bytes[..keep]).unwrap();
        check_refused(&path, corrupt, "damaged or cut short").await;
    }
    // Damage inside: whatever the page held, reading ends in words and not in a panic.
    let mut scrambled = bytes.clone();
    scrambled[8192..].fill(0xa5);
    std::fs::write(&path, &scrambled).unwrap();
    assert!(corrupt(&rows(&path).await.unwrap_err()));
}

#[tokio::test]
async fn reading_what_is_missing_or_a_directory_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let missing = rows(&directory.path().join("none.db")).await.unwrap_err();
    assert!(matches!(missing.failure, Failure::Missing), "{missing:?}");
    assert!(missing.to_string().contains("tuner run"), "{missing}");
    let open = |error: &StoreError| matches!(error.failure, Failure::CannotOpen { .. });
    check_refused(directory.path(), open, "cannot be opened").await;
}

/// A process without root's power to ignore permissions, started from a copy it may execute.
fn ordinary(directory: &Path, job: &str, database: &Path) -> String {
    let program = directory.join("child");
    if !program.exists() {
        crate::rig::executable::copied(&std::env::current_exe().unwrap(), &program);
    }
    let mut command = Command::new(program);
    as_child(&mut command, job, database, 1, 5);
    if std::fs::metadata("/proc/self")
        .unwrap()
        .permissions()
        .mode()
        & 0o111
        != 0
        && is_root()
    {
        command.uid(65534).gid(65534);
    }
    let output = command.output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata("/proc/self").unwrap().uid() == 0
}

#[tokio::test]
async fn a_read_only_database_can_be_read_and_refuses_to_be_written() {
    let directory = tempfile::tempdir().unwrap();
    let mode = |path: &Path, bits| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(bits)).unwrap();
    };
    mode(directory.path(), 0o755);
    let inside = directory.path().join("inside");
    std::fs::create_dir(&inside).unwrap();
    let path = inside.join("tuner.db");
    filled(&path, 7).await;
    mode(&path, 0o444);
    mode(&inside, 0o555);
    let read = ordinary(directory.path(), "read", &path);
    assert_eq!(last_number(&read, "rows "), Some(7), "{read}");
    let written = ordinary(directory.path(), "submit", &path);
    assert!(written.contains("cannot be written"), "{written}");
    let fresh = ordinary(directory.path(), "submit", &inside.join("new/tuner.db"));
    assert!(fresh.contains("cannot be opened"), "{fresh}");
    mode(&inside, 0o755);
}

#[tokio::test]
async fn an_older_database_or_one_with_a_log_is_read_where_nothing_can_be_written() {
    let directory = tempfile::tempdir().unwrap();
    let mode = |path: &Path, bits| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(bits)).unwrap();
    };
    mode(directory.path(), 0o755);
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/old.db");
    let logged = directory.path().join("logged.db");
    let store = open_and_filled(&logged, 7).await;
    for (name, from) in [("old", &old), ("logged", &logged)] {
        let inside = directory.path().join(name);
        std::fs::create_dir(&inside).unwrap();
        let path = inside.join("tuner.db");
        std::fs::copy(from, &path).unwrap();
        if let Ok(log) = std::fs::read(from.with_extension("db-wal")) {
            std::fs::write(inside.join("tuner.db-wal"), log).unwrap();
            mode(&inside.join("tuner.db-wal"), 0o444);
        }
        mode(&path, 0o444);
        mode(&inside, 0o555);
        let before = std::fs::read(&path).unwrap();
        let read = ordinary(directory.path(), "read", &path);
        assert!(last_number(&read, "rows ") > Some(0), "{name}: {read}");
        assert_eq!(std::fs::read(&path).unwrap(), before, "{name}");
        mode(&inside, 0o755);
    }
    drop(store);
}

#[tokio::test]
async fn a_full_disk_ends_the_run_in_words_and_loses_nothing_stored() {
    let directory = tempfile::tempdir().unwrap();
    // A limit on file size fails writes as a full disk does, and needs no root.
    for blocks in [200, 600, 1400] {
        let path = directory.path().join(format!("{blocks}.db"));
        let mut shell = Command::new("sh");
        shell
            .arg("-c")
            .arg(format!("ulimit -f {blocks}; exec \"$0\" \"$@\""))
            .arg(std::env::current_exe().unwrap());
        as_child(&mut shell, "submit", &path, 1, 100_000);
        let output = shell.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}\n{output:?}");
        assert!(text.contains("disk is full"), "{blocks}: {text}");
        let acked = last_number(&text, "acked ").unwrap_or(0);
        assert!(
            text.contains(&format!("The {acked} results stored")),
            "{text}"
        );
        assert!(acked == 0 || rows(&path).await.unwrap() as u64 >= acked);
    }
}

#[tokio::test]
async fn processes_that_start_at_once_on_no_database_all_store_everything() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tuner.db");
    let children: Vec<_> = (1..=4)
        .map(|seed| command("submit", &path, seed, 200).spawn().unwrap())
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text} {output:?}");
        assert_eq!(last_number(&text, "acked "), Some(200), "{text}");
    }
    let store = Store::open(&path).await.unwrap();
    // The four runs judged the same candidates, each for itself.
    assert_eq!(rows(&path).await.unwrap(), 200);
    for seed in 1..=4 {
        let mut start = start(DeviceKind::Cuda);
        start.seed = tuner_core::units::Seed(seed);
        assert_eq!(store.unfinished_run(&start).await.unwrap(), None);
    }
}

#[tokio::test]
async fn what_was_acknowledged_survives_being_killed_at_any_moment() {
    use std::io::{BufRead as _, BufReader};
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tuner.db");
    for seed in 1..=12_u64 {
        let mut child = command("submit", &path, seed, 1_000_000).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut acked = 0;
        // Kill after a varying number of acknowledgements, at whatever the writer does then.
        for line in lines.by_ref().map(Result::unwrap) {
            acked = last_number(&line, "acked ").unwrap_or(acked);
            if acked >= seed * seed * 3 {
                break;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        for line in lines.map_while(Result::ok) {
            acked = last_number(&line, "acked ").unwrap_or(acked);
        }
        let mut start = start(DeviceKind::Cuda);
        start.seed = tuner_core::units::Seed(seed);
        let store = Store::open(&path).await.unwrap();
        let run = store.unfinished_run(&start).await.unwrap().unwrap();
        let stored = &run.tasks[0].trials;
        assert!(stored.len() as u64 >= acked, "{} < {acked}", stored.len());
        assert!(
            (0..)
                .zip(stored)
                .all(|(index, trial)| trial.sequence == index)
        );
        store.close().await.unwrap();
    }
}

/// A store that has a run open, whose database another connection spoils and mends again.
async fn with_a_failing_run(
    name: &str,
    spoil: impl AsyncFn(&Path),
    mend: impl AsyncFn(&Path),
) -> (StoreError, usize) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    let store = Store::open(&path).await.unwrap();
    let start = start(DeviceKind::Cuda);
    let run = store.begin_run(start.clone()).await.unwrap();
    let submit = async |sequence: u64| {
        let config = config(i64::try_from(sequence).unwrap(), 0);
        let trial = timed(&start, sequence, config, 1.0 + sequence as f64);
        store
            .submit(&run, &key(&start), proven(trial))
            .await
            .unwrap()
            .await
    };
    submit(0).await.unwrap();
    spoil(&path).await;
    let error = submit(1).await.unwrap_err();
    mend(&path).await;
    // A later run of the same process finds the store in order.
    let next = store.begin_run(start.clone()).await.unwrap();
    let trial = timed(&start, 0, config(7, 0), 1.0);
    let stored = store
        .submit(&next, &key(&start), proven(trial))
        .await
        .unwrap();
    stored.await.unwrap();
    store.finish_run(&next, RunEnd::Finished).await.unwrap();
    store.close().await.unwrap();
    (error, rows(&path).await.unwrap())
}

#[tokio::test]
async fn a_write_that_fails_inside_its_transaction_does_not_spoil_later_runs() {
    // SQLite ends the transaction by itself, as it does when a disk is full.
    let spoil = async |path: &Path| {
        sql(
            path,
            "CREATE TRIGGER spoilt BEFORE INSERT ON verdicts BEGIN \
             SELECT RAISE(ROLLBACK, 'spoilt by the test'); END",
        )
        .await;
    };
    let mend = async |path: &Path| sql(path, "DROP TRIGGER spoilt").await;
    let (error, rows) = with_a_failing_run("a.db", spoil, mend).await;
    assert!(error.to_string().contains("spoilt by the test"), "{error}");
    assert_eq!(rows, 2, "what was stored before and after");
}

#[tokio::test]
async fn a_database_that_is_moved_away_under_a_run_is_noticed() {
    let aside = |path: &Path| path.with_extension("aside");
    let spoil = async |path: &Path| std::fs::rename(path, aside(path)).unwrap();
    let mend = async |path: &Path| std::fs::rename(aside(path), path).unwrap();
    let (error, rows) = with_a_failing_run("a.db", spoil, mend).await;
    assert!(
        matches!(error.failure, Failure::Replaced) && !error.is_bad_input(),
        "{error}"
    );
    assert_eq!(rows, 2);
}

#[tokio::test]
async fn a_log_that_is_deleted_or_cut_under_a_run_is_noticed() {
    let log = |path: &Path| path.with_extension("db-wal");
    let aside = |path: &Path| path.with_extension("aside");
    let deleted = async |path: &Path| std::fs::rename(log(path), aside(path)).unwrap();
    let back = async |path: &Path| std::fs::rename(aside(path), log(path)).unwrap();
    let (error, rows) = with_a_failing_run("a.db", deleted, back).await;
    assert!(matches!(error.failure, Failure::LogLost(_)), "{error}");
    assert!(!error.is_bad_input() && error.to_string().contains("integrity_check"));
    assert_eq!(rows, 2);

    for bytes in [0, 5000] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("b.db");
        let store = open_and_filled(&path, 3).await;
        let file = std::fs::File::options()
            .write(true)
            .open(log(&path))
            .unwrap();
        file.set_len(bytes).unwrap();
        let start = start(DeviceKind::Cuda);
        let error = store.begin_run(start.clone()).await;
        let error = match error {
            Err(error) => error,
            Ok(run) => {
                let trial = timed(&start, 0, config(7, 0), 1.0);
                let submitted = store
                    .submit(&run, &key(&start), proven(trial))
                    .await
                    .unwrap();
                submitted.await.unwrap_err()
            }
        };
        assert!(
            matches!(error.failure, Failure::LogLost(_)),
            "{bytes}: {error}"
        );
    }
}
