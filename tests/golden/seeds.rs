//! The same seed gives the same results.

use crate::golden::{
    folder, json, lines, masked, nvrtc_is_the_snapshots, pretty, recorded, root, stdout,
};
use serde_json::Value;
use std::path::Path;
use tuner_search::StrategyName;

/// What differs from run to run and from tree to tree.
const VOLATILE: [&str; 6] = [
    "run_id",
    "measured_at",
    "commit",
    "dirty",
    "diff_hash",
    "stale",
];

/// What follows from the compiler's version.
const COMPILED: [&str; 11] = [
    "cubin_hash",
    "max_error",
    "registers",
    "spill_bytes",
    "shared_bytes",
    "time_us_p50",
    "time_us_p90",
    "ci95_us",
    "rank",
    "tied_with_best",
    "speedup_vs_default",
];

/// The leaderboard of a database, without what differs from run to run.
fn board(folder: &Path, database: &str) -> Value {
    let rows = json(folder, &["leaderboard", "--db", database], 0);
    masked(rows, &VOLATILE)
}

#[test]
fn a_seeded_run_on_recorded_times_finds_the_same() {
    let folder = folder();
    let device = format!("replay:{}", recorded().display());
    let arguments = [
        "run", "--device", &device, "--evals", "300", "--seed", "1", "--db", "new.db",
    ];
    stdout(folder.path(), &arguments, 0);
    let rows = board(folder.path(), "new.db");
    let brief: Vec<Value> = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| serde_json::json!([row["rank"], row["time_us_p50"], row["config"]]))
        .collect();
    insta::assert_snapshot!(
        "the_best_of_a_seeded_run_on_recorded_times",
        pretty(&rows[0])
    );
    insta::assert_snapshot!(lines(&Value::from(brief)));
}

#[test]
fn a_seeded_run_on_the_virtual_gpu_finds_the_same() {
    let folder = folder();
    let space = root().join("search_spaces/softmax.quick.yaml");
    let arguments = [
        "run",
        space.to_str().unwrap(),
        "--device",
        "vgpu:a100",
        "--problem",
        "small",
        "--evals",
        "12",
        "--seed",
        "1",
        "--db",
        "new.db",
    ];
    stdout(folder.path(), &arguments, 0);
    let rows = board(folder.path(), "new.db");
    if nvrtc_is_the_snapshots(folder.path()) {
        insta::assert_snapshot!(lines(&rows));
    }
    let any_compiler = masked(rows, &[&COMPILED[..], &["config"]].concat());
    insta::assert_snapshot!(
        "a_row_of_a_seeded_run_with_any_compiler",
        pretty(&any_compiler[0])
    );
}

#[test]
fn a_seeded_replay_of_every_strategy_scores_the_same() {
    let folder = folder();
    let file = recorded();
    let names: Vec<&str> = StrategyName::ALL.iter().map(|it| it.name()).collect();
    let names = names.join(",");
    let arguments = [
        "replay",
        file.to_str().unwrap(),
        "--seeds",
        "2",
        "--evals",
        "15,40",
        "--strategy",
        &names,
    ];
    let rows = json(folder.path(), &arguments, 0);
    insta::assert_snapshot!(lines(&masked(rows, &["overhead_us_per_eval", "file"])));
}

#[test]
fn seeded_draws_of_a_space_are_the_same() {
    let folder = folder();
    let space = root().join("search_spaces/gemm_f16.yaml");
    let arguments = [
        "space",
        space.to_str().unwrap(),
        "--sample",
        "5",
        "--seed",
        "7",
    ];
    let answer = json(folder.path(), &arguments, 0);
    insta::assert_snapshot!(pretty(&masked(answer, &["build_ms", "bytes"])));
}
