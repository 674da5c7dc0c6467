//! `tuner sync`: two databases that know the same afterwards, however often.

use sqlx::Row as _;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

fn tuner(arguments: &[&str], folder: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_tuner"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

fn run(folder: &Path, db: &str, seed: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = root.join("tests/data/recorded/convbat_RTX3090.json.gz");
    let device = format!("replay:{}", file.display());
    let wanted = [
        "run", "--device", &device, "--evals", "120", "--db", db, "--seed", seed,
    ];
    tuner(&wanted, folder);
}

/// Everything that is known of results, whatever their numbers in the file.
fn all(db: &Path) -> Vec<String> {
    let question =
        "SELECT r.name, r.state, k.name, k.version, p.name, d.name, v.sequence, hex(c.hash),
               c.config, v.verdict, v.detail, v.origin, v.judged_at, v.charged_us, o.host,
               o.git_commit, o.tuner_version, m.p50_us, m.samples_us, b.p50_us
        FROM verdicts v JOIN tasks t ON t.id = v.task JOIN runs r ON r.id = t.run
        JOIN devices d ON d.id = r.device JOIN candidates c ON c.id = v.candidate
        JOIN problems p ON p.id = c.problem JOIN kernels k ON k.id = p.kernel
        JOIN provenance o ON o.id = v.provenance
        LEFT JOIN measurements m ON m.verdict = v.id
        LEFT JOIN best_times b ON b.candidate = c.id AND b.device = d.id
        ORDER BY r.name, v.sequence";
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut connection = crate::rig::database::connected(db).await;
        let rows = sqlx::query(question)
            .fetch_all(&mut connection)
            .await
            .unwrap();
        let line = |row: &sqlx::sqlite::SqliteRow| {
            let cells = (0..row.len()).map(|place| {
                row.try_get::<Option<String>, _>(place)
                    .map(|text| format!("{text:?}"))
                    .or_else(|_| {
                        row.try_get::<Option<f64>, _>(place)
                            .map(|n| format!("{n:?}"))
                    })
                    .or_else(|_| {
                        row.try_get::<Option<i64>, _>(place)
                            .map(|n| format!("{n:?}"))
                    })
                    .unwrap()
            });
            cells.collect::<Vec<_>>().join("|")
        };
        rows.iter().map(line).collect()
    })
}

#[test]
fn two_databases_know_the_same_afterwards_and_a_second_time_changes_nothing() {
    let dir = TempDir::new().unwrap();
    let folder = dir.path();
    run(folder, "hub.db", "1");
    run(folder, "laptop.db", "2");
    let (hub, laptop) = (folder.join("hub.db"), folder.join("laptop.db"));
    let before = all(&hub);
    let said = tuner(&["sync", "hub.db", "--db", "laptop.db"], folder);
    assert!(
        said.contains("1 run and 120 results taken over, 0 known"),
        "{said}"
    );
    let together = all(&hub);
    assert_eq!(together.len(), 240);
    assert_eq!(together, all(&laptop));
    assert!(before.iter().all(|row| together.iter().any(|other| {
        // The best time of a candidate may be another run's now.
        row.rsplit_once('|').map(|(a, _)| a) == other.rsplit_once('|').map(|(a, _)| a)
    })));
    let again = tuner(&["sync", "hub.db", "--db", "laptop.db"], folder);
    assert!(
        again.contains("0 runs and 0 results taken over, 240 known"),
        "{again}"
    );
    assert_eq!(together, all(&laptop));
    // What comes later follows, and only there where it is wanted.
    run(folder, "hub.db", "3");
    tuner(&["sync", "hub.db", "--db", "laptop.db", "--push"], folder);
    assert_eq!(all(&laptop).len(), 240);
    tuner(&["sync", "hub.db", "--db", "laptop.db", "--pull"], folder);
    assert_eq!(all(&laptop), all(&hub));
    // Of equal times of one candidate, either run's may stand in the leaderboard.
    let best = |db: &str| {
        let text = tuner(&["leaderboard", "--db", db, "--format", "json"], folder);
        let of_a_run = ["\"run_id\"", "\"measured_at\"", "\"seed\""];
        let lines = text
            .lines()
            .filter(|line| !of_a_run.iter().any(|key| line.contains(key)));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(best("hub.db"), best("laptop.db"));
}

#[test]
fn what_is_no_database_is_refused_and_nothing_is_changed() {
    let dir = TempDir::new().unwrap();
    run(dir.path(), "t.db", "1");
    let before = all(&dir.path().join("t.db"));
    std::fs::write(dir.path().join("text.db"), "no database").unwrap();
    for other in ["text.db", "absent.db"] {
        let output = Command::new(env!("CARGO_BIN_EXE_tuner"))
            .args(["sync", other, "--pull", "--db", "t.db"])
            .current_dir(dir.path())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{other}");
    }
    assert_eq!(all(&dir.path().join("t.db")), before);
}

#[test]
fn an_older_database_that_cannot_be_written_is_taken_over_from_a_copy() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    use std::os::unix::process::CommandExt as _;
    let dir = TempDir::new().unwrap();
    let mode = |path: &Path, bits| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(bits)).unwrap();
    };
    let inside = dir.path().join("archive");
    std::fs::create_dir(&inside).unwrap();
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/old.db");
    let path = inside.join("old.db");
    std::fs::copy(&old, &path).unwrap();
    let before = std::fs::read(&path).unwrap();
    mode(dir.path(), 0o777);
    mode(&path, 0o444);
    mode(&inside, 0o555);
    let program = dir.path().join("tuner");
    crate::rig::executable::copied(Path::new(env!("CARGO_BIN_EXE_tuner")), &program);
    let mut command = Command::new(&program);
    command
        .args(["sync", "archive/old.db", "--pull", "--db", "own.db"])
        .current_dir(dir.path());
    // The super-user may write anywhere.
    if std::fs::metadata("/proc/self").unwrap().uid() == 0 {
        command.uid(65534).gid(65534);
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(!all(&dir.path().join("own.db")).is_empty(), "{said}");
    mode(&inside, 0o755);
    assert_eq!(std::fs::read(&path).unwrap(), before);
}
