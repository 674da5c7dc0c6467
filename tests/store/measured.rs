//! Measured times with their evidence: stored to the bit, published, compared across runs and with
//! peers.

use crate::store::support::{
    config, first_rows, fresh, hash, key, proven_time, start, submitted, timed,
};
use tuner_core::baseline_record::{BaselineRecord, Moment, Visit};
use tuner_core::cache_mode::CacheMode;
use tuner_core::record::{DeviceKind, OtherMode, TimingEvidence, TrialRecord};
use tuner_core::units::Micros;
use tuner_store::{LeaderboardQuery, RunEnd, RunStart};

fn time(us: f64) -> Micros {
    Micros::new(us).unwrap()
}

/// A trial of a session in which the reference took `unit` microseconds.
fn measured(start: &RunStart, sequence: u64, tile: i64, unit: f64, ratio: f64) -> TrialRecord {
    let mut trial = timed(start, sequence, config(tile, 0), unit * ratio);
    let measurement = trial.measurement.as_mut().unwrap();
    let ratios: Vec<f64> = (0..20)
        .map(|block| ratio * (1.0 + 1e-3 * f64::from(block % 5 - 2)))
        .collect();
    measurement.samples = ratios.iter().map(|ratio| ratio * unit / 3.0).collect();
    measurement.evidence = Some(Box::new(TimingEvidence {
        cache: CacheMode::Warm,
        launches: 150,
        cycles: vec![1.0 / 3.0, 17_915.589_551_197_58],
        clock_mhz: vec![1500.1],
        reference: Some(hash("reference")),
        reference_ratios: ratios,
        reference_us: Some(unit),
        flags: vec!["bimodal".into()],
        gate: Some("timing".into()),
        other: Some(OtherMode {
            cache: CacheMode::Cold,
            p50: time(0.1 + 0.2),
            p90: time(7.0 / 3.0),
            ci95: [time(0.2), time(0.4)],
            samples: vec![0.1 + 0.2, 1e-3 / 7.0],
        }),
        energy: Some(tuner_core::record::Energy {
            launch_mj: 2.5,
            ci95_mj: [2.25, 2.75],
            samples_mj: vec![2.5, 2.25, 2.75],
        }),
    }));
    trial
}

#[tokio::test]
async fn evidence_reads_back_to_the_same_bits() {
    let (_directory, store) = fresh().await;
    let start = start(DeviceKind::Cuda);
    let trials = [measured(&start, 0, 32, 100.0, 0.1)];
    let run = submitted(&store, &start, &trials).await;
    store.finish_run(&run, RunEnd::Interrupted).await.unwrap();
    let found = store.unfinished_run(&start).await.unwrap().unwrap();
    assert_eq!(found.tasks[0].trials, trials);
}

#[tokio::test]
async fn rows_of_different_runs_tie_by_their_ratio_to_the_reference() {
    let (_directory, store) = fresh().await;
    let start = start(DeviceKind::Cuda);
    submitted(&store, &start, &[measured(&start, 0, 32, 100.0, 0.1)]).await;
    // Another day: the clock is 4 % slower. One is as good as the best, one is not.
    let others = [
        measured(&start, 0, 64, 104.0, 0.1),
        measured(&start, 1, 16, 104.0, 0.105),
    ];
    submitted(&store, &start, &others).await;
    let rows = store
        .leaderboard(&LeaderboardQuery::default())
        .await
        .unwrap();
    let ties: Vec<(u32, bool)> = rows
        .iter()
        .map(|row| (row.rank, row.tied_with_best))
        .collect();
    assert_eq!(ties, [(1, true), (1, true), (3, false)]);
    let first = first_rows(&store).await;
    assert_eq!(first, rows);
}

#[tokio::test]
async fn what_was_timed_again_at_the_end_is_what_counts() {
    let (_directory, store) = fresh().await;
    let start = start(DeviceKind::Cuda);
    let lucky = measured(&start, 0, 32, 100.0, 0.09);
    let honest = measured(&start, 1, 64, 100.0, 0.095);
    let run = submitted(&store, &start, &[lucky.clone(), honest.clone()]).await;
    store.finish_run(&run, RunEnd::Finished).await.unwrap();
    let again = |trial: &TrialRecord, ratio| {
        let record = measured(&start, 0, 32, 100.0, ratio).measurement.unwrap();
        (trial.config.clone(), record)
    };
    for (winner, record) in [again(&lucky, 0.1), again(&honest, 0.0951)] {
        let stored = store
            .publish(&run, &key(&start), &winner, proven_time(record))
            .await;
        stored.unwrap();
    }
    let rows = store
        .leaderboard(&LeaderboardQuery::default())
        .await
        .unwrap();
    let times: Vec<f64> = rows.iter().map(|row| row.time_us_p50).collect();
    assert_eq!(times, [9.51, 10.0]);
    assert_eq!(rows[0].samples, 20);
    let first = first_rows(&store).await;
    assert_eq!(first, rows);
    // A later race of the same candidate is no better than its final time.
    submitted(&store, &start, &[measured(&start, 0, 32, 100.0, 0.08)]).await;
    let rows = store
        .leaderboard(&LeaderboardQuery::default())
        .await
        .unwrap();
    assert_eq!(rows[1].time_us_p50, 10.0);
    let first = first_rows(&store).await;
    assert_eq!(first, rows);
    let stranger = config(128, 8);
    let record = measured(&start, 0, 32, 100.0, 0.1).measurement.unwrap();
    assert!(
        store
            .publish(&run, &key(&start), &stranger, proven_time(record))
            .await
            .is_err()
    );
}

fn peer(p50_us: f64) -> BaselineRecord {
    BaselineRecord {
        command: vec!["python3".into(), "baseline.py".into()],
        name: Some("peer".into()),
        version: Some("2.9".into()),
        visits: vec![Visit {
            moment: Moment::Before,
            p50_us,
            p90_us: p50_us,
            reference_us: Some(100.0),
        }],
        reference: Some(hash("reference")),
        failure: None,
    }
}

#[tokio::test]
async fn the_leaderboard_compares_with_the_peer_and_leaves_drift_out() {
    let (_directory, store) = fresh().await;
    let start = start(DeviceKind::Cuda);
    let run = submitted(&store, &start, &[measured(&start, 0, 32, 104.0, 0.1)]).await;
    let query = LeaderboardQuery::default();
    let speedup = async || store.leaderboard(&query).await.unwrap()[0].speedup_vs_baseline;
    assert_eq!(speedup().await, None);
    store
        .store_baseline(&run, &key(&start), peer(20.0))
        .await
        .unwrap();
    // 20 µs when the reference took 100 are 20.8 when it takes 104.
    assert!((speedup().await.unwrap() - 2.0).abs() < 1e-9);
    let failed = BaselineRecord {
        failure: Some("`python3` is not here".into()),
        visits: Vec::new(),
        ..peer(1.0)
    };
    store
        .store_baseline(&run, &key(&start), failed.clone())
        .await
        .unwrap();
    assert!(
        speedup().await.is_some(),
        "a figure outlives a later failure"
    );
    let board = &store.boards(&query).await.unwrap()[0];
    assert_eq!(store.baseline(board).await.unwrap(), Some(peer(20.0)));
}

#[tokio::test]
async fn a_predicted_time_is_never_compared_with_a_peer() {
    let (_directory, store) = fresh().await;
    let start = start(DeviceKind::Vgpu);
    let run = submitted(&store, &start, &[timed(&start, 0, config(32, 0), 10.0)]).await;
    store
        .store_baseline(&run, &key(&start), peer(20.0))
        .await
        .unwrap();
    let rows = store
        .leaderboard(&LeaderboardQuery::default())
        .await
        .unwrap();
    assert_eq!(rows[0].speedup_vs_baseline, None);
}

#[tokio::test]
async fn a_row_is_compared_with_the_default_wherever_that_stands() {
    let (_directory, store) = fresh().await;
    let start = start(DeviceKind::Cuda);
    // The default, a tile of 32, comes last and is the slowest.
    let others = (0..40_u32).map(|at| (i64::from(at) + 100, 10.0 + f64::from(at)));
    let trials: Vec<TrialRecord> = (0..)
        .zip(others.chain([(32, 100.0)]))
        .map(|(sequence, (tile, us))| timed(&start, sequence, config(tile, 0), us))
        .collect();
    submitted(&store, &start, &trials).await;
    let rows = first_rows(&store).await;
    assert_eq!(rows.len(), 20);
    assert_eq!(rows[0].speedup_vs_default, Some(10.0));
}
