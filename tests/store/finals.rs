//! Times of final comparisons against times of the search: two protocols that never outrank each other.

use crate::store::support::{
    config, failed, first_rows, fresh, key, proven_time, start, submitted, timed,
};
use tuner_core::record::{DeviceKind, LeaderboardRow, Verdict};
use tuner_store::{LeaderboardQuery, RunEnd, RunId, RunStart, Store};

/// Stores a run with these tiles and times of the search.
async fn searched(store: &Store, start: &RunStart, times: &[(i64, f64)]) -> RunId {
    let trials = (0..).zip(times);
    let trials = trials.map(|(sequence, (tile, us))| timed(start, sequence, config(*tile, 0), *us));
    submitted(store, start, &trials.collect::<Vec<_>>()).await
}

/// Publishes the times of the run's final comparison.
async fn compared(store: &Store, start: &RunStart, run: &RunId, times: &[(i64, f64)]) {
    for (tile, us) in times {
        let time = timed(start, 0, config(*tile, 0), *us).measurement.unwrap();
        let (key, config) = (key(start), config(*tile, 0));
        let published = store.publish(run, &key, &config, proven_time(time));
        published.await.unwrap();
    }
}

/// Tiles and times in the order of the leaderboard, which is the same for its first rows alone.
async fn ranked(store: &Store) -> Vec<(i64, f64)> {
    let all = store.leaderboard(&LeaderboardQuery::default()).await;
    let all = all.unwrap();
    assert_eq!(first_rows(store).await, all);
    for top in 1..=all.len() {
        let query = LeaderboardQuery {
            top: Some(top),
            ..LeaderboardQuery::default()
        };
        assert_eq!(
            store.leaderboard(&query).await.unwrap(),
            all[..top],
            "top {top}"
        );
    }
    let ranks: Vec<u32> = all.iter().map(|row| row.rank).collect();
    assert!(ranks.is_sorted(), "{ranks:?}");
    all.iter().map(place).collect()
}

fn place(row: &LeaderboardRow) -> (i64, f64) {
    (row.config[0].1.as_i64().unwrap(), row.time_us_p50)
}

/// Times of `gemm_f16` on an H100 under a power limit: the final comparison ran at a lower clock.
const SEARCH: [(i64, f64); 7] = [
    (1, 196.7),
    (2, 197.1),
    (3, 198.0),
    (4, 199.0),
    (5, 199.8),
    (6, 200.9),
    (7, 240.0),
];
const FINAL: [(i64, f64); 5] = [(1, 224.3), (2, 222.9), (3, 223.1), (4, 223.5), (5, 224.0)];
const RANKED: [(i64, f64); 7] = [
    (2, 222.9),
    (3, 223.1),
    (4, 223.5),
    (5, 224.0),
    (1, 224.3),
    (6, 200.9),
    (7, 240.0),
];

#[tokio::test]
async fn a_time_of_the_search_does_not_outrank_finalists_that_the_search_measured_as_faster() {
    let (_directory, store) = fresh().await;
    let start = start(DeviceKind::Cuda);
    let run = searched(&store, &start, &SEARCH).await;
    assert_eq!(ranked(&store).await, SEARCH);
    compared(&store, &start, &run, &FINAL).await;
    store.finish_run(&run, RunEnd::Finished).await.unwrap();
    assert_eq!(ranked(&store).await, RANKED);
    let board = &store.boards(&LeaderboardQuery::default()).await.unwrap()[0];
    let entry = store
        .entries(std::slice::from_ref(board))
        .await
        .unwrap()
        .remove(0);
    assert_eq!(place(&entry.best), (2, 222.9));
    // Candidates are compared with each other by the times of the search, which all have.
    let times: Vec<f64> = entry.times.iter().map(|(_, us)| *us).collect();
    assert_eq!(times, [197.1, 198.0, 199.0, 199.8, 196.7, 200.9, 240.0]);
    let candidates = store.candidates(board).await.unwrap();
    let measured = candidates
        .iter()
        .filter_map(|one| one.trial.measurement.as_ref());
    let measured: Vec<f64> = measured.map(|time| time.p50.get()).collect();
    assert_eq!(measured, SEARCH.map(|(_, us)| us));
    let task = store.run_tasks(&run).await.unwrap().remove(0);
    let stated = (
        task.best_config.unwrap()[0].1.as_i64(),
        task.best_us,
        task.search_us,
    );
    assert_eq!(stated, (Some(2), Some(222.9), Some(197.1)));
    let [low, high] = task.best_ci95_us.unwrap();
    assert!((low..=high).contains(&222.9), "{low} {high}");
    // The curve is of the search.
    assert_eq!(task.curve.last().unwrap().us, 196.7);
    let history = store.history(&LeaderboardQuery::default()).await.unwrap();
    assert_eq!(history.last().unwrap().time_us_p50, 222.9);
}

#[tokio::test]
async fn a_later_run_without_a_final_comparison_is_compared_by_the_times_of_the_search() {
    let (_directory, store) = fresh().await;
    let start = start(DeviceKind::Cuda);
    let run = searched(&store, &start, &SEARCH[..5]).await;
    compared(&store, &start, &run, &FINAL).await;
    // Killed: one candidate is twice as fast, one is between the finalists, one is slower.
    searched(&store, &start, &[(8, 100.0), (9, 197.5), (10, 201.0)]).await;
    let order: Vec<i64> = ranked(&store).await.iter().map(|row| row.0).collect();
    // 9 follows the finalists 1 and 2, which were faster in the search, wherever these come.
    assert_eq!(order, [8, 2, 3, 4, 5, 1, 9, 10]);
    // A later search finds a finalist as fast as the newcomer: it is no longer behind.
    searched(&store, &start, &[(3, 99.0)]).await;
    let order: Vec<i64> = ranked(&store).await.iter().map(|row| row.0).collect();
    assert_eq!(order, [2, 3, 8, 4, 5, 1, 9, 10]);
}

#[tokio::test]
async fn faster_final_times_and_withdrawn_finalists_keep_the_order() {
    let (_directory, store) = fresh().await;
    let start = start(DeviceKind::Cuda);
    let run = searched(&store, &start, &[(1, 10.0), (2, 11.0), (3, 12.0)]).await;
    compared(&store, &start, &run, &[(1, 9.0), (2, 13.0)]).await;
    assert_eq!(ranked(&store).await, [(1, 9.0), (2, 13.0), (3, 12.0)]);
    // Without the finalist nothing bounds the others' times of the search.
    let wrong = failed(&start, 0, config(2, 0), Verdict::Incorrect);
    submitted(&store, &start, &[wrong]).await;
    assert_eq!(ranked(&store).await, [(1, 9.0), (3, 12.0)]);
}

#[tokio::test]
async fn the_speed_up_over_the_default_is_of_one_protocol() {
    let (_directory, store) = fresh().await;
    let start = start(DeviceKind::Cuda);
    // The default has a tile of 32.
    let run = searched(&store, &start, &[(32, 40.0), (1, 10.0), (2, 20.0)]).await;
    compared(&store, &start, &run, &[(1, 16.0)]).await;
    let speedups = async || {
        let rows = first_rows(&store).await;
        let speedups = rows.iter().map(|row| row.speedup_vs_default.unwrap());
        speedups.collect::<Vec<f64>>()
    };
    assert_eq!(speedups().await, [4.0, 2.0, 1.0]);
    compared(&store, &start, &run, &[(32, 48.0)]).await;
    assert_eq!(speedups().await, [3.0, 2.0, 1.0]);
}
