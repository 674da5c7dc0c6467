//! A candidate that a later judgement found to be wrong does not rank, in whatever order the rows
//! came into the database.

use crate::rig::database::connected;
use crate::store::support::{
    config, failed, finished, first_rows, fresh, key, proven_time, start, submitted, timed,
};
use std::path::{Path, PathBuf};
use tuner_core::record::{DeviceKind, LeaderboardRow, TrialRecord, Verdict};
use tuner_store::{LeaderboardQuery, RunStart, Store};

/// What ranks, by every way to ask: tiles with their times, best first.
async fn ranked(store: &Store) -> Vec<(String, f64)> {
    let text = |rows: Vec<LeaderboardRow>| -> Vec<(String, f64)> {
        rows.into_iter()
            .map(|row| (format!("{:?}", row.config[0].1), row.time_us_p50))
            .collect()
    };
    let all = store.leaderboard(&LeaderboardQuery::default()).await;
    let all = text(all.unwrap());
    assert_eq!(text(first_rows(store).await), all);
    let commits = LeaderboardQuery {
        commits: Some(vec!["c0ffee".to_owned()]),
        ..LeaderboardQuery::default()
    };
    assert_eq!(text(store.leaderboard(&commits).await.unwrap()), all);
    let board = store.boards(&LeaderboardQuery::default()).await.unwrap();
    let entries = store.entries(&board).await.unwrap();
    let exported = entries.iter().flat_map(|entry| &entry.times);
    let exported: Vec<f64> = exported.map(|(_, us)| *us).collect();
    let times: Vec<f64> = all.iter().map(|(_, us)| *us).collect();
    assert_eq!(exported, times);
    all
}

/// A database of one run with one result, judged in that year.
async fn judged(folder: &Path, start: &RunStart, trial: TrialRecord, year: u32) -> PathBuf {
    let path = folder.join(format!("{year}.db"));
    let store = Store::open(&path).await.unwrap();
    finished(&store, start, &[trial]).await;
    store.close().await.unwrap();
    let mut connection = connected(&path).await;
    sqlx::query("UPDATE verdicts SET judged_at = ?")
        .bind(format!("{year}-01-01T00:00:00.000Z"))
        .execute(&mut connection)
        .await
        .unwrap();
    path
}

#[tokio::test]
async fn a_wrong_candidate_does_not_rank_after_a_merge() {
    let (directory, store) = fresh().await;
    let start = start(DeviceKind::Cuda);
    let wrong = config(32, 0);
    let fast = timed(&start, 0, wrong.clone(), 10.0);
    let right = timed(&start, 1, config(64, 0), 12.0);
    finished(&store, &start, &[fast, right]).await;
    let found = failed(&start, 0, wrong.clone(), Verdict::Race);
    finished(&store, &start, &[found]).await;
    let alone = [("Int(64)".to_owned(), 12.0)];
    assert_eq!(ranked(&store).await, alone);
    store.close().await.unwrap();

    let merged = directory.path().join("merged.db");
    let from = directory.path().join("tuner.db");
    tuner_store::pull(&merged, &from).await.unwrap();
    let store = Store::open(&merged).await.unwrap();
    assert_eq!(ranked(&store).await, alone);
    let boards = store.boards(&LeaderboardQuery::default()).await.unwrap();
    let candidates = store.candidates(&boards[0]).await.unwrap();
    let counts = candidates.iter().find(|one| one.trial.config == wrong);
    assert_eq!(counts.unwrap().trial.judgement.verdict, Verdict::Race);
    let best = store.history(&LeaderboardQuery::default()).await.unwrap();
    assert!(best.iter().all(|period| period.config != wrong), "{best:?}");
}

#[tokio::test]
async fn the_order_of_merges_does_not_decide_what_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let start = start(DeviceKind::Cuda);
    let passed = |us| timed(&start, 0, config(32, 0), us);
    let wrong = failed(&start, 0, config(32, 0), Verdict::Incorrect);
    let parts = [
        judged(folder.path(), &start, passed(10.0), 2020).await,
        judged(folder.path(), &start, wrong, 2021).await,
        judged(folder.path(), &start, passed(11.0), 2022).await,
    ];
    for order in [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ] {
        let name = format!("merged{order:?}.db");
        let merged = folder.path().join(name);
        for part in order {
            tuner_store::pull(&merged, &parts[part]).await.unwrap();
        }
        let store = Store::open(&merged).await.unwrap();
        let expected = [("Int(32)".to_owned(), 11.0)];
        assert_eq!(ranked(&store).await, expected, "{order:?}");
    }
}

#[tokio::test]
async fn a_final_time_of_a_wrong_candidate_does_not_rank() {
    let (_directory, store) = fresh().await;
    let start = start(DeviceKind::Cuda);
    let passed = timed(&start, 0, config(32, 0), 10.0);
    let run = submitted(&store, &start, std::slice::from_ref(&passed)).await;
    let found = failed(&start, 0, config(32, 0), Verdict::Deadlock);
    submitted(&store, &start, &[found]).await;
    let time = proven_time(passed.measurement.unwrap());
    let stored = store
        .publish(&run, &key(&start), &passed.config, time)
        .await;
    stored.unwrap();
    assert_eq!(ranked(&store).await, []);
}

#[tokio::test]
async fn a_run_does_not_show_a_candidate_as_its_best_that_a_later_run_found_wrong() {
    let (_directory, store) = fresh().await;
    let start = start(DeviceKind::Cuda);
    let slow = timed(&start, 0, config(128, 0), 14.0);
    let fast = timed(&start, 1, config(32, 0), 10.0);
    let right = timed(&start, 2, config(64, 0), 12.0);
    let run = submitted(&store, &start, &[slow, fast, right]).await;
    let falls = async || {
        let tasks = store.run_tasks(&run).await.unwrap();
        let curve: Vec<f64> = tasks[0].curve.iter().map(|point| point.us).collect();
        let board = &store.boards(&LeaderboardQuery::default()).await.unwrap()[0];
        let lines = store.time_lines(board).await.unwrap();
        let times: Vec<Option<f64>> = lines[0].steps.iter().map(|step| step.p50_us).collect();
        (curve, tasks[0].best_config.clone(), times)
    };
    let (curve, best, times) = falls().await;
    assert_eq!((curve, best), (vec![14.0, 10.0], Some(config(32, 0))));
    assert_eq!(times, [Some(14.0), Some(10.0), Some(12.0)]);

    let found = failed(&start, 0, config(32, 0), Verdict::Race);
    finished(&store, &start, &[found]).await;
    let (curve, best, times) = falls().await;
    assert_eq!((curve, best), (vec![14.0, 12.0], Some(config(64, 0))));
    assert_eq!(times, [Some(14.0), None, Some(12.0)]);
}
