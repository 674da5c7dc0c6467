//! What is stored counts: a repeated command judges nothing twice.

use super::proof::{KERNEL, REFERENCE, SPACE};
use crate::program::{folder, replace, run};

#[test]
fn a_repeated_command_says_what_is_known_and_fresh_judges_anew() {
    let folder = folder(&[
        ("space.yaml", SPACE),
        ("kernel.cu", KERNEL),
        ("ref.cu", REFERENCE),
    ]);
    let line = "run space.yaml --device vgpu:l4 --evals 2 --db t.db";
    let first = run(folder.path(), line);
    assert_eq!(first.code, 0, "{}", first.stderr);
    assert!(!first.stdout.contains("known"), "{}", first.stdout);
    let board = "leaderboard --db t.db --format json";
    let before = run(folder.path(), board).rows();
    let again = run(folder.path(), line);
    assert!(
        again
            .stdout
            .contains("2 of 2 known: judged by earlier runs"),
        "{}",
        again.stdout
    );
    let after = run(folder.path(), board).rows();
    assert_eq!(before.len(), after.len());
    for (before, after) in before.iter().zip(&after) {
        for key in ["rank", "config", "time_us_p50", "compared", "max_error"] {
            assert_eq!(before[key], after[key], "{key}");
        }
    }
    let fresh = run(folder.path(), &format!("{line} --fresh"));
    assert!(!fresh.stdout.contains("known"), "{}", fresh.stdout);
    replace(&folder.path().join("kernel.cu"), "400", "401");
    let edited = run(folder.path(), line);
    assert!(!edited.stdout.contains("known"), "{}", edited.stdout);
}

#[test]
fn a_repeated_command_of_several_tasks_is_the_same_run() {
    let folder = folder(&[
        ("space.yaml", SPACE),
        ("kernel.cu", KERNEL),
        ("ref.cu", REFERENCE),
    ]);
    let file = folder.path().join("space.yaml");
    let problems = "{ small: { N: 2048 }, smaller: { N: 1024 } }";
    replace(&file, "{ large: { N: 1048576 } }", problems);
    let tiles =
        "parameters:\n  TILE: { range: { from: 1, to: 40, step: 1 }, default: 20, doc: tile }";
    replace(&file, "parameters:", tiles);
    let line = "run space.yaml --device vgpu:l4 --evals 24 --db t.db";
    let trials = |run: &str| {
        let rows = std::fs::read_to_string(folder.path().join(run)).unwrap();
        let rows = rows.lines().map(|line| serde_json::from_str(line).unwrap());
        let told = |row: &serde_json::Value| {
            let keys = ["problem", "config", "verdict", "time_us", "origin"];
            (row["event"] == "trial").then(|| keys.map(|key| row[key].clone()))
        };
        rows.filter_map(|row| told(&row)).collect::<Vec<_>>()
    };
    let first = run(folder.path(), &format!("{line} --events 1.jsonl"));
    assert_eq!(first.code, 0, "{}", first.stderr);
    let again = run(folder.path(), &format!("{line} --events 2.jsonl"));
    assert!(again.stdout.contains("24 of 24 known"), "{}", again.stdout);
    assert_eq!(trials("2.jsonl"), trials("1.jsonl"));
    assert_eq!(trials("1.jsonl").len(), 24);
    // Of one of the problems alone it is another run, which knows the results of the other one.
    let alone = run(folder.path(), &format!("{line} --problem small"));
    let known = "one_block small: the search knows smaller on vgpu:l4";
    assert!(alone.stderr.contains(known), "{}", alone.stderr);
}
