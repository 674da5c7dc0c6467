//! Proofs of a run with a budget wait until every problem had its first trials.

use super::proof::{KERNEL, REFERENCE, SPACE, ranked_with, state};
use crate::program::{Ended, folder, run};
use crate::rig::database::connected;
use std::path::Path;
use tempfile::TempDir;

/// Two problems, and four configurations that differ in their time only, except one that is wrong.
fn project(ways: &str) -> TempDir {
    let space = SPACE
        .replace(
            "{ large: { N: 1048576 } }",
            "{ large: { N: 1048576 }, more: { N: 1049600 } }",
        )
        .replace("[0, 1]", ways);
    let kernel = KERNEL
        .replace("WAY ? 300 : 400", "WAY == 1 ? 300 : 400 - 10 * WAY")
        .replace("WAY &&", "WAY == 1 &&");
    folder(&[
        ("space.yaml", &space),
        ("kernel.cu", &kernel),
        ("ref.cu", REFERENCE),
    ])
}

fn tuned(folder: &Path, options: &str) -> Ended {
    let line = format!(
        "run space.yaml --device vgpu:l4 --strategy exhaustive --db t.db --events events.jsonl {options}"
    );
    let ended = run(folder, &line);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    ended
}

/// `WAY` and the state of the best of each problem.
fn best(folder: &Path) -> Vec<(i64, String)> {
    ranked_with(folder, " --top 1")
}

/// Problem and state of each announced trial, in order.
fn announced(folder: &Path) -> Vec<(String, String)> {
    let events = std::fs::read_to_string(folder.join("events.jsonl")).unwrap();
    let events = events
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let text = |value: &serde_json::Value| value.as_str().unwrap_or("null").to_owned();
    events
        .filter(|event| event["event"] == "trial")
        .map(|event| (text(&event["problem"]), text(&event["compared"])))
        .collect()
}

#[test]
fn every_problem_has_its_first_trials_before_any_proof() {
    let folder = project("[0, 1, 2, 3, 4, 5]");
    let folder = folder.path();
    let ended = tuned(folder, "--budget 1h");
    let announced = announced(folder);
    let before = announced.iter().take(6);
    let large = before.clone().filter(|(problem, _)| problem == "large");
    assert_eq!(large.count(), 3, "{announced:?}");
    for (_, compared) in before {
        assert_eq!(compared, "sampled", "{announced:?}");
    }
    // The wrong one of each problem is found all the same, and the right ones are proven.
    assert!(ended.stdout.contains("incorrect 2"), "{}", ended.stdout);
    ended.says(0, &["its time is withdrawn"]);
    assert_eq!(best(folder), [state(5, "whole"), state(5, "whole")]);
}

#[test]
fn a_run_that_ends_before_its_budget_makes_every_proof() {
    let folder = project("[0, 1]");
    let folder = folder.path();
    let ended = tuned(folder, "--budget 1h");
    assert!(ended.stdout.contains("incorrect 2"), "{}", ended.stdout);
    ended.says(0, &["its time is withdrawn"]);
    assert_eq!(best(folder), [state(0, "whole"), state(0, "whole")]);
    let folder = project("[0, 1, 2]");
    let folder = folder.path();
    tuned(folder, "--budget 1h --evals 4");
    for (_, compared) in best(folder) {
        assert_eq!(compared, "whole");
    }
}

#[test]
fn a_resumed_run_makes_the_proofs_that_it_did_not_reach() {
    let folder = project("[0, 1]");
    let folder = folder.path();
    tuned(folder, "--budget 1h --prove-budget 0");
    for (_, compared) in best(folder) {
        assert_eq!(compared, "sampled");
    }
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let mut database = connected(&folder.join("t.db")).await;
        sqlx::query("UPDATE runs SET ended_at = NULL, state = 'interrupted'")
            .execute(&mut database)
            .await
            .unwrap();
    });
    let ended = tuned(folder, "--budget 1h --resume --prove-budget 3e10");
    ended.says(0, &["its time is withdrawn"]);
    assert_eq!(best(folder), [state(0, "whole"), state(0, "whole")]);
}
