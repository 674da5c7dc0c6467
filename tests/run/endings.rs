//! How a run can end: killed, interrupted, resumed, out of time.

use super::{Announcing, assert_stored, finish, stored, tuner_run};
use rand::{RngExt as _, SeedableRng as _};
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;

#[test]
fn whatever_was_announced_survives_sigkill() {
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(20);
    let mut cut_short = 0;
    for round in 0..52 {
        let dir = TempDir::new().unwrap();
        let db = dir.path().join("t.db");
        let seed = round.to_string();
        let mut run = Announcing::start(
            &db,
            &["--evals", "2500", "--seed", &seed, "--strategy", "random"],
        );
        let mut announced = run.take(rng.random_range(1..300));
        std::thread::sleep(Duration::from_micros(rng.random_range(0..3000)));
        run.child.kill().unwrap();
        announced.extend(run.rest());
        run.child.wait().unwrap();
        assert!(!announced.is_empty());
        cut_short += u32::from(announced.len() < 2500);
        assert_stored(&db, &announced);
    }
    assert!(
        cut_short >= 50,
        "only {cut_short} runs were killed before their end"
    );
}

#[test]
fn a_run_whose_only_result_is_a_failure_has_stored_it() {
    let dir = TempDir::new().unwrap();
    let db = dir.path().join("t.db");
    // The first draw of this seed is recorded as one that did not compile.
    let limits = ["--evals", "1", "--seed", "20", "--strategy", "random"];
    let announced = Announcing::start(&db, &limits).rest();
    assert_eq!(announced.len(), 1);
    assert_eq!(announced[0].1, "compile_failed");
    assert_stored(&db, &announced);
}

#[test]
fn a_killed_run_goes_on_where_it_was_and_judges_nothing_twice() {
    let dir = TempDir::new().unwrap();
    let (db, whole) = (dir.path().join("t.db"), dir.path().join("whole.db"));
    let limits = ["--evals", "2500", "--seed", "4"];
    let mut run = Announcing::start(&db, &limits);
    let first = run.take(300);
    run.child.kill().unwrap();
    run.child.wait().unwrap();
    let before = stored(&db);
    assert!(before.len() >= first.len() && before.len() < 2500);
    let events = dir.path().join("events");
    finish(
        tuner_run(&db, &limits)
            .arg("--resume")
            .arg("--events")
            .arg(&events),
    );
    let events = std::fs::read_to_string(&events).unwrap();
    let again = events.matches("\"resumed\":true").count();
    let fresh = events.matches("\"resumed\":false").count();
    assert_eq!((again, again + fresh), (before.len(), 2500));
    finish(&mut tuner_run(&whole, &limits));
    assert_eq!(
        stored(&db),
        stored(&whole),
        "as if it had never been killed"
    );
}

#[test]
fn a_run_ends_with_the_reader_of_its_events_and_stores_everything() {
    let dir = TempDir::new().unwrap();
    let db = dir.path().join("t.db");
    let mut child = tuner_run(&db, &["--strategy", "exhaustive"])
        .args(["--events", "-"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("\"trial\"") {
        line.clear();
        assert!(reader.read_line(&mut line).unwrap() > 0);
    }
    // As a program that was killed leaves it.
    drop(reader);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let stored = stored(&db).len();
    assert!((1..6768).contains(&stored), "{stored}");
}

#[test]
fn the_first_ctrl_c_stores_everything_and_exits_with_130() {
    for signal in ["INT", "TERM"] {
        let dir = TempDir::new().unwrap();
        let db = dir.path().join("t.db");
        let mut run = Announcing::start(&db, &["--strategy", "exhaustive"]);
        let mut announced = run.take(20);
        run.signal(signal);
        announced.extend(run.rest());
        let status = run.child.wait().unwrap();
        assert_eq!(status.code(), Some(130), "SIG{signal}");
        let stored = stored(&db);
        assert_eq!(
            stored.len(),
            announced.len(),
            "all told results are announced in the end"
        );
        assert!(stored.len() < 6768);
        // The same command goes on, with the strategy of the interrupted run.
        finish(tuner_run(&db, &["--resume"]).args(["--strategy", "exhaustive"]));
        assert_eq!(super::stored(&db).len(), 6768);
    }
}

#[test]
fn resuming_without_an_unfinished_run_starts_one_and_says_so() {
    let dir = TempDir::new().unwrap();
    let db = dir.path().join("t.db");
    let output = finish(&mut tuner_run(&db, &["--evals", "20", "--resume"]));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no unfinished run"));
    let again = finish(&mut tuner_run(&db, &["--evals", "20", "--resume"]));
    assert!(String::from_utf8_lossy(&again.stderr).contains("no unfinished run"));
}

#[test]
fn a_budget_on_replay_is_recorded_time() {
    let dir = TempDir::new().unwrap();
    let db = dir.path().join("t.db");
    let events = dir.path().join("events");
    finish(
        tuner_run(&db, &["--budget", "10m"])
            .arg("--events")
            .arg(&events),
    );
    let events = std::fs::read_to_string(&events).unwrap();
    let clock: f64 = events
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter_map(|event| event["clock_s"].as_f64())
        .fold(0.0, f64::max);
    // The mean evaluation of this file costs two seconds, the dearest less than a minute.
    assert!((540.0..=600.0).contains(&clock), "{clock}");
    assert!(events.contains("\"reason\":\"budget\""));
}

#[test]
fn a_disk_that_fills_up_ends_the_run_with_1_and_keeps_what_was_announced() {
    for blocks in [700, 1500, 2200] {
        let dir = TempDir::new().unwrap();
        let db = dir.path().join("t.db");
        let arguments = ["--evals", "6000", "--strategy", "random", "--seed", "3"];
        let run = tuner_run(&db, &arguments);
        // A limit on file size fails writes as a full disk does, and needs no root.
        let mut shell = std::process::Command::new("sh");
        shell
            .args(["-c", &format!("ulimit -f {blocks}; exec \"$0\" \"$@\"")])
            .arg(run.get_program())
            .args(run.get_args());
        for (name, value) in run.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        let output = shell.output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{blocks}: {text}");
        assert!(text.contains("disk is full"), "{blocks}: {text}");
        assert!(!text.contains("panicked"), "{blocks}: {text}");
    }
}
