//! `tuner run`, `submit`, `status` and `stop` beside a daemon.

use super::{Daemon, RECORDED, recorded_folder, wait_for};
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

fn tuner(db: &Path, command: &str, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tuner"))
        .arg(command)
        .args(arguments)
        .arg("--db")
        .arg(db)
        .env_remove("TUNER_TOKEN")
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn device() -> String {
    format!("replay:{}", recorded_folder().join(RECORDED).display())
}

#[test]
fn a_run_beside_a_daemon_is_the_daemons_and_looks_and_ends_the_same() {
    let dir = TempDir::new().unwrap();
    let (db, alone) = (dir.path().join("t.db"), dir.path().join("alone.db"));
    let daemon = Daemon::start(&db);
    let events = dir.path().join("events");
    let device = device();
    let limits = ["--device", &device, "--evals", "120", "--seed", "3"];
    let with_events = [&limits[..], &["--events", events.to_str().unwrap()]].concat();
    let by_daemon = tuner(&db, "run", &with_events);
    let by_itself = tuner(&alone, "run", &limits);
    let (story, result) = (text(&by_daemon.stderr), text(&by_daemon.stdout));
    assert_eq!(by_daemon.status.code(), Some(0), "{story}");
    assert!(story.contains("running on the daemon"), "{story}");
    assert!(story.contains("6768 valid configurations"), "{story}");
    assert!(story.contains("all evaluations done"), "{story}");
    let findings = |text: &str| {
        let known = ["  best", "  config", "  verdicts"];
        let found = |line: &&str| known.iter().any(|start| line.starts_with(start));
        let lines = text.lines().filter(found);
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(findings(&result), findings(&text(&by_itself.stdout)));
    let told = std::fs::read_to_string(&events).unwrap();
    assert!(told.contains("\"event\":\"run_finished\"") || told.contains("\"event\":\"trial\""));
    let (_, runs) = daemon.get("/api/v1/runs");
    assert_eq!(runs["runs"][0]["evals"], 120);
}

#[test]
fn submit_returns_at_once_status_shows_and_stop_ends() {
    let dir = TempDir::new().unwrap();
    let db = dir.path().join("t.db");
    let device = device();
    let daemon = Daemon::start(&db);
    let forever = ["--device", &device, "--strategy", "exhaustive"];
    let submitted = tuner(&db, "submit", &forever);
    let id = text(&submitted.stdout).trim().to_owned();
    let waiting = text(&tuner(&db, "submit", &forever).stdout)
        .trim()
        .to_owned();
    wait_for("results", || {
        let (_, run) = daemon.get(&format!("/api/v1/runs/{id}"));
        (run["evals"].as_u64().unwrap_or(0) > 10 || run["state"] == "finished").then_some(())
    });
    let shown = text(&tuner(&db, "status", &[]).stdout);
    assert!(shown.contains(&id) && shown.contains(&waiting), "{shown}");
    let stopped = text(&tuner(&db, "stop", &["--all"]).stdout);
    // On a busy machine the first run is over by now, and the other one at work.
    let words = ["stopped", "ends after"].map(|word| format!("{waiting}: {word}"));
    assert!(words.iter().any(|word| stopped.contains(word)), "{stopped}");
    daemon.wait(&waiting, "stopped");
    let run = wait_for("the end", || {
        let (_, run) = daemon.get(&format!("/api/v1/runs/{id}"));
        ["stopped", "finished"]
            .iter()
            .any(|state| run["state"] == *state)
            .then_some(run)
    });
    let one = tuner(&db, "status", &[&id, "--format", "json"]);
    let one: serde_json::Value = serde_json::from_slice(&one.stdout).unwrap();
    assert_eq!(
        (&one["state"], &one["evals"]),
        (&run["state"], &run["evals"])
    );
    let again = tuner(&db, "stop", &[&id]);
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("it is over"));
}

#[test]
fn without_a_daemon_runs_wait_in_the_database_until_one_starts() {
    let dir = TempDir::new().unwrap();
    let db = dir.path().join("t.db");
    let device = device();
    let limits = ["--device", device.as_str(), "--evals", "20"];
    let submitted = tuner(&db, "submit", &limits);
    assert!(text(&submitted.stderr).contains("no daemon is running"));
    let id = text(&submitted.stdout).trim().to_owned();
    let dropped = text(&tuner(&db, "submit", &limits).stdout)
        .trim()
        .to_owned();
    assert_eq!(tuner(&db, "stop", &[&dropped]).status.code(), Some(0));
    let listed = text(&tuner(&db, "status", &[]).stdout);
    assert!(
        listed.contains("queued") && listed.contains("stopped"),
        "{listed}"
    );
    let daemon = Daemon::start(&db);
    assert_eq!(daemon.wait(&id, "finished")["evals"], 20);
    assert_eq!(daemon.wait(&dropped, "stopped")["evals"], 0);
}

#[test]
fn a_stopped_run_is_taken_up_again_by_resume() {
    let dir = TempDir::new().unwrap();
    let db = dir.path().join("t.db");
    let device = device();
    let daemon = Daemon::start(&db);
    let limits = ["--device", device.as_str(), "--evals", "40", "--seed", "9"];
    // Behind another run of the same device it is stopped before it begins.
    let before = daemon.submit(4000, 1, "exhaustive");
    let id = text(&tuner(&db, "submit", &limits).stdout)
        .trim()
        .to_owned();
    tuner(&db, "stop", &[&id, &before]);
    daemon.wait(&id, "stopped");
    let resumed = tuner(&db, "run", &[&limits[..], &["--resume"]].concat());
    assert_eq!(resumed.status.code(), Some(0), "{}", text(&resumed.stderr));
    assert!(text(&resumed.stdout).contains(&id));
    assert_eq!(daemon.wait(&id, "finished")["evals"], 40);
}

#[test]
fn a_wrong_file_is_refused_before_anything_is_queued() {
    let dir = TempDir::new().unwrap();
    let db = dir.path().join("t.db");
    let daemon = Daemon::start(&db);
    for (arguments, hint) in [
        (vec!["--device", "replay:/nowhere.json"], "/nowhere.json"),
        (vec!["nothing", "--device", "vgpu:a100"], "nothing"),
        (vec!["--device", "vgpu:z80"], "z80"),
    ] {
        for command in ["run", "submit"] {
            let refused = tuner(&db, command, &arguments);
            assert_eq!(refused.status.code(), Some(2), "{command} {arguments:?}");
            assert!(
                text(&refused.stderr).contains(hint),
                "{}",
                text(&refused.stderr)
            );
        }
    }
    let (_, runs) = daemon.get("/api/v1/runs");
    assert_eq!(runs["runs"], serde_json::json!([]));
}
