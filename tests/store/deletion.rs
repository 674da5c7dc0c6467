//! A run that is deleted is gone with its results, and nothing else is.

use crate::rig::database::connected;
use crate::store::support::{config, failed, fresh, start, submitted, timed};
use tuner_core::record::{DeviceKind, TrialRecord, Verdict};
use tuner_store::{Deletion, LeaderboardQuery, RunEnd, RunFilter, RunId, RunStart, Store};

/// Tables in which nothing of a deleted run may be left.
const TABLES: [&str; 8] = [
    "runs",
    "tasks",
    "verdicts",
    "hazards",
    "measurements",
    "final_times",
    "notes",
    "best_times",
];

async fn ended(store: &Store, start: &RunStart, trials: &[TrialRecord]) -> RunId {
    let run = submitted(store, start, trials).await;
    store.finish_run(&run, RunEnd::Finished).await.unwrap();
    run
}

async fn times(store: &Store) -> Vec<f64> {
    let rows = store.leaderboard(&LeaderboardQuery::default()).await;
    rows.unwrap().iter().map(|row| row.time_us_p50).collect()
}

async fn counts(path: &std::path::Path) -> Vec<i64> {
    let mut connection = connected(path).await;
    let mut counts = Vec::new();
    for table in TABLES {
        let sql = format!("SELECT count(*) FROM {table}");
        let count = sqlx::query_scalar(sqlx::AssertSqlSafe(sql));
        counts.push(count.fetch_one(&mut connection).await.unwrap());
    }
    counts
}

#[tokio::test]
async fn a_deleted_run_leaves_the_times_of_the_others() {
    let (directory, store) = fresh().await;
    let start = start(DeviceKind::Cuda);
    let other = [timed(&start, 0, config(32, 0), 12.0)];
    ended(&store, &start, &other).await;
    let before = counts(&directory.path().join("tuner.db")).await;
    let faster = [
        timed(&start, 0, config(32, 0), 10.0),
        timed(&start, 1, config(64, 0), 9.0),
        failed(&start, 2, config(128, 0), Verdict::Race),
    ];
    let run = ended(&store, &start, &faster).await;
    store.write_note(&run, "a note").await.unwrap();
    assert_eq!(times(&store).await, [9.0, 10.0]);
    assert_eq!(store.delete_run(&run).await.unwrap(), Deletion::Deleted);
    assert_eq!(times(&store).await, [12.0]);
    let filter = RunFilter {
        limit: 10,
        ..RunFilter::default()
    };
    assert_eq!(store.runs(&filter).await.unwrap().len(), 1);
    assert_eq!(counts(&directory.path().join("tuner.db")).await, before);
    assert_eq!(store.delete_run(&run).await.unwrap(), Deletion::Missing);
}

#[tokio::test]
async fn a_run_that_withdrew_a_time_or_is_not_over_stays() {
    let (_directory, store) = fresh().await;
    let start = start(DeviceKind::Cuda);
    ended(&store, &start, &[timed(&start, 0, config(32, 0), 12.0)]).await;
    let wrong = [failed(&start, 0, config(32, 0), Verdict::Incorrect)];
    let run = ended(&store, &start, &wrong).await;
    assert_eq!(times(&store).await, [] as [f64; 0]);
    let refused = store.delete_run(&run).await.unwrap();
    assert!(matches!(refused, Deletion::Refused(why) if why.contains("found candidates wrong")));
    assert_eq!(times(&store).await, [] as [f64; 0]);

    let open = submitted(&store, &start, &[timed(&start, 0, config(64, 0), 8.0)]).await;
    let refused = store.delete_run(&open).await.unwrap();
    assert!(matches!(refused, Deletion::Refused(why) if why.contains("stop it first")));
    assert_eq!(times(&store).await, [8.0]);
}

#[tokio::test]
async fn a_run_whose_time_was_reused_stays_until_the_other_is_gone() {
    let (_directory, store) = fresh().await;
    let start = start(DeviceKind::Cuda);
    let first = ended(&store, &start, &[timed(&start, 0, config(32, 0), 12.0)]).await;
    let mut again = timed(&start, 0, config(32, 0), 12.0);
    again.measurement.as_mut().unwrap().reused = true;
    let second = ended(&store, &start, &[again]).await;
    let refused = store.delete_run(&first).await.unwrap();
    assert!(matches!(refused, Deletion::Refused(why) if why.contains("reused")));
    assert_eq!(store.delete_run(&second).await.unwrap(), Deletion::Deleted);
    assert_eq!(store.delete_run(&first).await.unwrap(), Deletion::Deleted);
    assert_eq!(times(&store).await, [] as [f64; 0]);
}
