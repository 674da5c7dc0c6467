//! `tuner leaderboard`, `export` and `record` on made-up results.

use crate::program::words;
use crate::store::support::{config, failed, finished, hash, start, timed};
use assert_cmd::Command;
use predicates::prelude::*;
use serde_json::Value as Json;
use std::path::{Path, PathBuf};
use tuner_core::record::{DeviceKind, Verdict};
use tuner_store::{RecordingSource, Store};

/// A directory with results of all three kinds, and a recorded file.
async fn workspace() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("leaderboard/tuner.db"))
        .await
        .unwrap();
    let file = directory.path().join("file.json");
    std::fs::write(&file, "{}").unwrap();
    for kind in [DeviceKind::Cuda, DeviceKind::Vgpu, DeviceKind::Replay] {
        let mut start = start(kind);
        if kind == DeviceKind::Replay {
            let (path, hash) = tuner_core::provenance::recording(&file).unwrap();
            start.device.recording = Some(RecordingSource { path, hash });
        }
        let mut slow = timed(&start, 1, config(64, 8), 2.5);
        if let Some(time) = &mut slow.measurement {
            time.samples = vec![2.25, 2.5, 2.75];
        }
        let trials = [
            timed(&start, 0, config(32, 0), 2.0),
            slow,
            failed(&start, 2, config(128, 0), Verdict::CompileFailed),
            failed(&start, 3, config(128, 8), Verdict::Timeout),
        ];
        finished(&store, &start, &trials).await;
    }
    store.close().await.unwrap();
    directory
}

fn tuner(directory: &Path, arguments: &[&str]) -> assert_cmd::assert::Assert {
    let mut command = Command::cargo_bin("tuner").unwrap();
    command.current_dir(directory).args(arguments).assert()
}

fn stdout(assert: &assert_cmd::assert::Assert) -> String {
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

#[tokio::test]
async fn the_leaderboard_has_the_contracts_keys_and_filters() {
    let directory = workspace().await;
    let all = tuner(directory.path(), &["leaderboard", "--format", "json"]).success();
    let rows: Vec<Json> = serde_json::from_str(&stdout(&all)).unwrap();
    assert_eq!(rows.len(), 6);
    // More may stand beside the contract's, for which see the tests of those that bring them.
    let more = ["diff_hash", "stale"];
    let keys = rows[0].as_object().unwrap().keys();
    let keys: Vec<&String> = keys.filter(|key| !more.contains(&key.as_str())).collect();
    assert_eq!(
        keys,
        words(
            "rank kernel problem device device_kind timing config time_us_p50 time_us_p90 \
             ci95_us samples tied_with_best speedup_vs_default speedup_vs_baseline compared commit dirty \
             template_hash cubin_hash \
             registers spill_bytes shared_bytes max_error seed run_id measured_at"
        )
    );
    for (device, rows_expected) in [
        ("cuda", 2),
        ("cuda:0", 2),
        ("cuda:1", 0),
        ("vgpu:h100", 2),
        ("replay:file.json", 2),
        ("NVIDIA H200", 2),
        ("auto", 6),
    ] {
        let arguments = [
            "leaderboard",
            "gemm",
            "--device",
            device,
            "--format",
            "json",
        ];
        let assert = tuner(directory.path(), &arguments);
        if rows_expected == 0 {
            assert
                .code(2)
                .stderr(predicate::str::contains("`vgpu:h100`"));
        } else {
            let rows: Vec<Json> = serde_json::from_str(&stdout(&assert.success())).unwrap();
            assert_eq!(rows.len(), rows_expected, "{device}");
        }
    }
    let csv = tuner(
        directory.path(),
        &["leaderboard", "--format", "csv", "--top", "1"],
    )
    .success();
    assert_eq!(stdout(&csv).lines().count(), 4);
    tuner(directory.path(), &["leaderboard"])
        .success()
        .stdout(predicate::str::contains(
            "gemm  square  on vgpu:h100, predicted",
        ))
        .stderr(predicate::str::contains(
            "2 ok, 1 compile_failed, 1 timeout",
        ));
}

#[tokio::test]
async fn names_that_stand_for_nothing_are_answered_with_those_that_do() {
    let directory = workspace().await;
    for (arguments, words) in [
        (vec!["leaderboard", "gemn"], "it has `gemm`"),
        (
            vec!["leaderboard", "gemm", "--problem", "x"],
            "there are `square`",
        ),
        (vec!["export", "gemm", "--device", "A100"], "`NVIDIA H200`"),
        (vec!["record", "gemn"], "it has `gemm`"),
        (vec!["leaderboard", "--db", "none.db"], "no such database"),
        (
            vec!["leaderboard", "--db", "file.json"],
            "not a SQLite database",
        ),
        (vec!["export", "gemm", "--to", "t4"], "--problem"),
    ] {
        tuner(directory.path(), &arguments)
            .code(2)
            .stderr(predicate::str::contains(words));
    }
}

#[tokio::test]
async fn predicted_times_leave_only_when_asked_for() {
    let directory = workspace().await;
    let arguments = ["export", "gemm", "--device", "vgpu:h100"];
    tuner(directory.path(), &arguments)
        .code(3)
        .stderr(predicate::str::contains("--allow-predicted"));
    let allowed = [&arguments[..], &["--allow-predicted"]].concat();
    let header = stdout(&tuner(directory.path(), &allowed).success());
    assert!(header.lines().next().unwrap().contains("PREDICTED"));
    let header = stdout(&tuner(directory.path(), &["export", "gemm"]).success());
    assert!(
        !header.contains("PREDICTED") && !header.contains("vgpu:"),
        "{header}"
    );
    assert!(header.contains("recorded by others"), "{header}");
    tuner(directory.path(), &["record", "gemm", "--device", "replay"]).code(3);
}

#[tokio::test]
async fn an_exported_file_is_replaced_whole_or_not_at_all() {
    let directory = workspace().await;
    let target: PathBuf = directory.path().join("tuned.h");
    tuner(directory.path(), &["export", "gemm", "-o", "tuned.h"]).success();
    let first = std::fs::read(&target).unwrap();
    tuner(directory.path(), &["export", "gemm", "-o", "tuned.h"]).success();
    assert_eq!(first, std::fs::read(&target).unwrap());
    tuner(directory.path(), &["export", "gemm", "-o", "no/such/dir.h"])
        .code(2)
        .stderr(predicate::str::contains("no/such/dir.h"));
}

#[tokio::test]
async fn the_kernel_tuner_cache_obeys_its_textual_reader() {
    let directory = workspace().await;
    let arguments = ["export", "gemm", "--device", "cuda", "--to", "kernel-tuner"];
    let text = stdout(&tuner(directory.path(), &arguments).success());
    assert!(text.ends_with("}\n}"), "{text}");
    let cache: Json = serde_json::from_str(&text).unwrap();
    assert_eq!(
        cache.as_object().unwrap().keys().next_back().unwrap(),
        "cache"
    );
    assert_eq!(cache["problem_size"], 1024);
    assert_eq!(
        cache["tune_params_keys"],
        serde_json::json!(["TILE", "PAD"])
    );
    assert_eq!(cache["cache"]["32,0"]["time"], 0.002);
    assert_eq!(
        cache["cache"]["64,8"]["times"],
        serde_json::json!([0.00225, 0.0025, 0.00275])
    );
    assert_eq!(
        cache["cache"]["128,0"]["__error__"],
        "CompilationFailedConfig"
    );
    assert_eq!(cache["cache"]["128,8"]["__error__"], "RuntimeFailedConfig");
    // Each entry alone on its line, as a resume appends them.
    assert!(
        text.lines()
            .any(|line| line.starts_with("\"32,0\": {") && line.ends_with("},"))
    );
}

#[tokio::test]
async fn the_other_formats_hold_what_their_readers_ask_for() {
    let directory = workspace().await;
    let export = |to: &str| {
        let arguments = ["export", "gemm", "--device", "cuda", "--to", to];
        stdout(&tuner(directory.path(), &arguments).success())
    };
    let t4: Json = serde_json::from_str(&export("t4")).unwrap();
    let words: Vec<&str> = t4["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| result["invalidity"].as_str().unwrap())
        .collect();
    assert_eq!(words, ["correct", "correct", "compile", "timeout"]);
    assert_eq!(t4["results"][2]["correctness"], 0);
    let wisdom = export("wisdom");
    let lines: Vec<Json> = wisdom
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(
        lines[0]["tunable_parameters"],
        serde_json::json!(["TILE", "PAD"])
    );
    assert_eq!(lines[1]["config"], serde_json::json!([32, 0]));
    let triton: Json = serde_json::from_str(&export("triton")).unwrap();
    assert_eq!(triton["configs_timings"][0][0]["kwargs"]["TILE"], 32);
    let json: Json = serde_json::from_str(&export("json")).unwrap();
    assert_eq!(json["entries"][0]["config"]["TILE"], 32);
}

#[tokio::test]
async fn record_writes_what_was_measured_and_the_same_again() {
    let directory = workspace().await;
    tuner(directory.path(), &["record", "gemm"]).success();
    let file = directory.path().join("leaderboard/NVIDIA_H200/gemm.json");
    let first = std::fs::read_to_string(&file).unwrap();
    let json: Json = serde_json::from_str(&first).unwrap();
    assert_eq!(
        json["entries"][0]["template_hash"],
        hash("template").as_str()
    );
    tuner(directory.path(), &["record", "gemm"]).success();
    assert_eq!(first, std::fs::read_to_string(&file).unwrap());
    let devices = std::fs::read_dir(directory.path().join("leaderboard"))
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().path().is_dir())
        .count();
    assert_eq!(devices, 1);
}
