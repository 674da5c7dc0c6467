//! A prediction is called one wherever it goes, and a first look of the gate is no proof.

use crate::program::{ended, tuner};
use crate::report::support::{json, run};
use crate::store::support::{config, fresh, start, submitted, timed};
use std::path::Path;
use tuner_core::record::{DeviceKind, TrialRecord};
use tuner_store::{LeaderboardQuery, RunEnd, RunStart, Store};

fn with_gate(start: &RunStart, sequence: u64, tile: i64, us: f64, gate: &str) -> TrialRecord {
    let mut trial = timed(start, sequence, config(tile, 0), us);
    if let Some(time) = &mut trial.measurement {
        let evidence = tuner_core::record::TimingEvidence {
            gate: Some(gate.to_owned()),
            ..tuner_core::record::TimingEvidence::default()
        };
        time.evidence = Some(Box::new(evidence));
    }
    trial
}

async fn fill(path: &Path, start: &RunStart, trials: &[TrialRecord]) {
    let store = Store::open(path).await.unwrap();
    let run = submitted(&store, start, trials).await;
    store.finish_run(&run, RunEnd::Finished).await.unwrap();
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_prediction_that_is_exported_and_imported_stays_predicted() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path();
    let start = start(DeviceKind::Vgpu);
    let trials = [32, 64].map(|tile| timed(&start, tile as u64, config(tile, 0), tile as f64));
    fill(&folder.join("t.db"), &start, &trials).await;
    for (to, again) in [("kernel-tuner", "t4"), ("t4", "kernel-tuner")] {
        // Twice around, so that what was imported is exported under the same label.
        let (file, db) = (format!("{to}.json"), format!("{to}.db"));
        let export = [
            "export",
            "gemm",
            "--allow-predicted",
            "--to",
            to,
            "-o",
            &file,
        ];
        run(folder, &[&export[..], &["--db", "t.db"]].concat(), 0);
        let (_, told) = run(folder, &["import", &file, "--db", &db], 0);
        assert!(told.contains("2 predicted rows"), "{told}");
        let kernel = ["export", "gemm", "--db", &db, "--to", again];
        let (_, told) = run(folder, &kernel, 3);
        assert!(told.contains("only predicted times"), "{told}");
        let (text, _) = run(folder, &[&kernel[..], &["--allow-predicted"]].concat(), 0);
        assert!(
            text.contains("\"timing\": \"predicted\"") || text.contains("\"timing\":\"predicted\"")
        );
        let rows = json(folder, &["leaderboard", "--db", &db, "--format", "json"]);
        assert_eq!(rows.as_array().unwrap().len(), 2);
        for row in rows.as_array().unwrap() {
            assert_eq!(
                (&row["timing"], &row["device_kind"]),
                (&"predicted".into(), &"replay".into())
            );
            assert!(row["commit"].is_null() && row["ci95_us"].is_null(), "{row}");
        }
        // Played back by a run, it is no recorded time either.
        let device = format!("replay:{file}");
        let (told, _) = run(
            folder,
            &["run", "--device", &device, "--evals", "2", "--db", "r.db"],
            0,
        );
        assert!(
            told.contains(" predicted\n") && told.contains("--allow-predicted"),
            "{told}"
        );
    }
    let (header, _) = run(
        folder,
        &["export", "gemm", "--allow-predicted", "--db", "t.db"],
        0,
    );
    assert!(header.contains("\"timing\":\"predicted\""), "{header}");
}

#[tokio::test]
async fn predictions_that_the_model_cannot_tell_apart_are_ties() {
    let (_directory, store) = fresh().await;
    let start = start(DeviceKind::Vgpu);
    let mut trials: Vec<TrialRecord> = [(16, 10.0), (32, 11.3), (64, 11.5), (128, 20.0)]
        .iter()
        .enumerate()
        .map(|(at, (tile, us))| timed(&start, at as u64, config(*tile, 0), *us))
        .collect();
    trials[0].counters = Some(serde_json::json!({"interval_us": [5.9, 20.4]}));
    submitted(&store, &start, &trials).await;
    let rows = store
        .leaderboard(&LeaderboardQuery::default())
        .await
        .unwrap();
    let places: Vec<(u32, bool)> = rows
        .iter()
        .map(|row| (row.rank, row.tied_with_best))
        .collect();
    assert_eq!(places, [(1, true), (1, true), (3, false), (4, false)]);
    assert_eq!(rows[0].ci95_us, Some([5.9, 20.4]));
    assert_eq!(rows[1].ci95_us, None, "it states no interval");
}

#[tokio::test]
async fn what_passed_a_first_look_alone_is_neither_exported_nor_on_the_front() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path();
    let start = start(DeviceKind::Cuda);
    let mut small = with_gate(&start, 1, 64, 20.0, "first");
    small.compilation.as_mut().unwrap().registers = 8;
    let proven = with_gate(&start, 0, 32, 10.0, "timing");
    let faster = with_gate(&start, 2, 16, 5.0, "first");
    fill(&folder.join("t.db"), &start, &[proven, small, faster]).await;
    for to in ["t4", "kernel-tuner", "kernelbench", "triton"] {
        let (text, told) = run(folder, &["export", "gemm", "--db", "t.db", "--to", to], 0);
        assert!(
            text.contains("32") && !text.contains("\"TILE\":64") && !text.contains("\"TILE\": 64")
        );
        assert!(
            told.contains("left out: 2 candidates") || told.contains("first look"),
            "{told}"
        );
    }
    for to in ["header", "json", "wisdom"] {
        let (text, told) = run(folder, &["export", "gemm", "--db", "t.db", "--to", to], 0);
        assert!(
            text.contains("10.0") || text.contains("0.01"),
            "{to}: {text}"
        );
        assert!(told.contains("left out: 1 candidate"), "{told}");
    }
    let front = [
        "leaderboard",
        "--pareto",
        "--db",
        "t.db",
        "--format",
        "json",
    ];
    let rows = json(folder, &front);
    let times: Vec<f64> = rows
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|row| row["time_us_p50"].as_f64())
        .collect();
    assert_eq!(times, [10.0]);
    let told = ended(tuner(folder).args(front)).stderr;
    assert!(told.contains("left out: 2 candidates"), "{told}");
}
