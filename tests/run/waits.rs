//! Runs beside another process: a lock of the database, and a daemon.

use super::proof::{KERNEL, REFERENCE, SPACE};
use super::tuner_run;
use crate::program::{folder, run};
use crate::serve::Daemon;
use sqlx::Connection as _;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;
use tempfile::TempDir;

#[test]
fn a_wait_for_the_database_is_told() {
    let dir = TempDir::new().unwrap();
    let db = dir.path().join("t.db");
    let few = ["--evals", "3"];
    assert!(tuner_run(&db, &few).output().unwrap().status.success());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut lock = runtime.block_on(async {
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&db);
        let mut lock = sqlx::SqliteConnection::connect_with(&options)
            .await
            .unwrap();
        sqlx::query("BEGIN IMMEDIATE")
            .execute(&mut lock)
            .await
            .unwrap();
        lock
    });
    let mut waiting = tuner_run(&db, &few)
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(waiting.stderr.take().unwrap()).lines();
    let told = said.find(|line| {
        line.as_ref()
            .unwrap()
            .contains("another process may keep the database locked")
    });
    assert!(told.is_some(), "it ended without a word");
    runtime
        .block_on(sqlx::query("COMMIT").execute(&mut lock))
        .unwrap();
    let rest: Vec<String> = said.map(Result::unwrap).collect();
    assert!(waiting.wait().unwrap().success(), "{rest:#?}");
}

#[test]
fn a_run_by_the_daemon_says_what_is_known_and_keeps_its_notes() {
    let folder = folder(&[
        ("space.yaml", SPACE),
        ("kernel.cu", KERNEL),
        ("ref.cu", REFERENCE),
    ]);
    let db = folder.path().join("t.db");
    let daemon = Daemon::start(&db);
    let line = "run space.yaml --device vgpu:l4 --evals 2 --strategy exhaustive --db t.db";
    let first = run(folder.path(), line);
    assert_eq!(first.code, 0, "{}", first.stderr);
    assert!(!first.stdout.contains("known"), "{}", first.stdout);
    let second = run(folder.path(), line);
    assert!(second.stdout.contains("2 of 2 known"), "{}", second.stdout);
    let wrong = SPACE.to_owned() + "metric: { bytes: \"8e9 * N\" }\n";
    std::fs::write(folder.path().join("space.yaml"), wrong).unwrap();
    let third = run(folder.path(), line);
    let note = "faster than the device allows";
    assert_eq!(third.stderr.matches(note).count(), 1, "{}", third.stderr);
    let runs = daemon.get("/api/v1/runs?limit=1").1;
    let id = runs["runs"][0]["id"].as_str().unwrap();
    let (_, view) = daemon.get(&format!("/api/v1/runs/{id}"));
    assert!(view["notes"].to_string().contains(note), "{view:#}");
    assert_eq!(daemon.end().code(), Some(0));
}

#[test]
fn a_metric_that_no_device_can_reach_is_told_by_check_and_run() {
    let wrong = SPACE.to_owned() + "metric: { bytes: \"8e9 * N\" }\n";
    let folder = folder(&[
        ("space.yaml", &wrong),
        ("kernel.cu", KERNEL),
        ("ref.cu", REFERENCE),
    ]);
    let note = "`metric` of the search space counts more operations or bytes";
    for line in [
        "check space.yaml --device vgpu:l4 --config default",
        "run space.yaml --device vgpu:l4 --evals 1 --db t.db",
    ] {
        let told = run(folder.path(), line);
        assert_eq!(
            told.stderr.matches(note).count(),
            1,
            "{line}: {}",
            told.stderr
        );
    }
    let report = run(folder.path(), "report --db t.db -o report");
    assert_eq!(report.code, 0, "{}", report.stderr);
    let text = std::fs::read_to_string(folder.path().join("report/report.md")).unwrap();
    assert!(text.contains(note), "{text}");
    assert!(!text.contains("GB/s at least"), "{text}");
    // A true one is not doubted.
    std::fs::write(
        folder.path().join("space.yaml"),
        SPACE.to_owned() + "metric: { bytes: \"8 * N\" }\n",
    )
    .unwrap();
    let right = run(
        folder.path(),
        "run space.yaml --device vgpu:l4 --evals 1 --db t.db",
    );
    assert!(!right.stderr.contains(note), "{}", right.stderr);
    // Its 8 MB stay in the L2 cache from one launch to the next.
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/write-a-kernel.md");
    crate::readme::write_files(&std::fs::read_to_string(guide).unwrap(), folder.path());
    let cached = run(
        folder.path(),
        "run scale.yaml --device vgpu:l4 --evals 1 --db t.db",
    );
    cached.says(0, &["scale large"]);
    assert!(!cached.stderr.contains(note), "{}", cached.stderr);
}

#[test]
fn a_task_without_a_trial_is_not_reached() {
    let dir = TempDir::new().unwrap();
    let never = tuner_run(&dir.path().join("t.db"), &["--budget", "10ms"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&never.stdout);
    assert_eq!(never.status.code(), Some(3), "{text}");
    assert!(text.contains("best     none: not reached"), "{text}");
    assert!(!text.contains("verdicts"), "{text}");
}
