//! What a run leaves behind: reproducible, whole, and shared.

use super::{finish, recorded, stored, tuner_run};
use crate::program::{ended, root, tuner, words};
use std::path::Path;
use tempfile::TempDir;
use tuner_core::record::LeaderboardRow;
use tuner_store::{LeaderboardQuery, Store};

/// The leaderboard without run ids and times of day.
fn leaderboard(db: &Path) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let rows: Vec<LeaderboardRow> = runtime.block_on(async {
        let store = Store::open_read(db).await.unwrap();
        let rows = store
            .leaderboard(&LeaderboardQuery::default())
            .await
            .unwrap();
        rows.into_iter()
            .map(|row| LeaderboardRow {
                run_id: String::new(),
                measured_at: String::new(),
                ..row
            })
            .collect()
    });
    serde_json::to_string_pretty(&rows).unwrap()
}

#[test]
fn the_same_seed_gives_the_same_leaderboard_whatever_the_number_of_jobs() {
    let dir = TempDir::new().unwrap();
    let board = |name: &str, arguments: &[&str]| {
        let db = dir.path().join(name);
        finish(tuner_run(&db, &["--evals", "200"]).args(arguments));
        leaderboard(&db)
    };
    let first = board("a.db", &["--seed", "1", "--jobs", "1"]);
    assert!(first.matches("\"rank\"").count() > 100);
    assert_eq!(first, board("b.db", &["--seed", "1", "--jobs", "16"]));
    assert_ne!(first, board("c.db", &["--seed", "2"]));
}

#[test]
fn a_run_prints_what_it_found_and_what_to_do_next() {
    let dir = TempDir::new().unwrap();
    let db = dir.path().join("t.db");
    let output = finish(&mut tuner_run(&db, &["--evals", "60"]));
    let text = String::from_utf8(output.stdout).unwrap();
    for part in [
        "best ",
        "block_size_x=",
        "verdicts ok ",
        "60 configurations",
        "tuner leaderboard",
        "tuner export",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(stored(&db).len(), 60);
}

#[test]
fn two_runs_share_one_database() {
    let dir = TempDir::new().unwrap();
    let db = dir.path().join("t.db");
    let children: Vec<_> = ["1", "2"]
        .map(|seed| {
            tuner_run(
                &db,
                &["--evals", "400", "--seed", seed, "--strategy", "random"],
            )
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap()
        })
        .into_iter()
        .map(|child| child.wait_with_output().unwrap())
        .collect();
    for output in &children {
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let alone = dir.path().join("alone.db");
    for seed in ["1", "2"] {
        finish(&mut tuner_run(
            &alone,
            &["--evals", "400", "--seed", seed, "--strategy", "random"],
        ));
    }
    assert_eq!(stored(&db), stored(&alone));
}

#[test]
fn search_quality_is_reported_with_the_contracts_keys() {
    let line = "--strategy evolve,random --evals 25,200 --seeds 6 --format json";
    let mut replay = tuner(root());
    let ran = ended(replay.arg("replay").arg(recorded()).args(line.split(' ')));
    ran.says(0, &[]);
    let rows: Vec<serde_json::Map<String, serde_json::Value>> =
        serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(rows.len(), 4);
    for row in &rows {
        let keys: Vec<&str> = row.keys().map(String::as_str).collect();
        assert_eq!(
            keys,
            words("file strategy evals seeds mean median min hit95 overhead_us_per_eval")
        );
        assert!((0.0..=1.0).contains(&row["mean"].as_f64().unwrap()));
    }
    let mean = |strategy: &str, evals: u64| {
        let row = rows
            .iter()
            .find(|row| row["strategy"] == strategy && row["evals"] == evals);
        row.and_then(|row| row["mean"].as_f64()).unwrap()
    };
    assert!(mean("evolve", 200) > mean("random", 200));
}
