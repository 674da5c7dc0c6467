//! How results were compared decides their rank before their time does, and a proof that comes later
//! changes it.

use crate::rig::database::connected;
use crate::store::support::{config, finished, first_rows, fresh, key, start, submitted, timed};
use tuner_core::judgement::Judgement;
use tuner_core::record::{Compared, DeviceKind, LeaderboardRow, TrialRecord, Verdict};
use tuner_store::{LeaderboardQuery, RunStart, Store, pull};

/// A trial of that tile and time, compared in that way.
fn compared(start: &RunStart, tile: i64, us: f64, compared: Compared) -> TrialRecord {
    let mut trial = timed(start, u64::try_from(tile).unwrap(), config(tile, 0), us);
    trial.judgement.compared = Some(compared);
    trial
}

/// Rank, tie, time and state of what ranks, by every way to ask.
async fn ranked(store: &Store) -> Vec<(u32, bool, f64, Option<Compared>)> {
    let rows = |rows: Vec<LeaderboardRow>| -> Vec<_> {
        rows.into_iter()
            .map(|row| (row.rank, row.tied_with_best, row.time_us_p50, row.compared))
            .collect()
    };
    let all = rows(
        store
            .leaderboard(&LeaderboardQuery::default())
            .await
            .unwrap(),
    );
    assert_eq!(rows(first_rows(store).await), all);
    let commits = LeaderboardQuery {
        commits: Some(vec!["c0ffee".to_owned()]),
        ..LeaderboardQuery::default()
    };
    assert_eq!(rows(store.leaderboard(&commits).await.unwrap()), all);
    all
}

#[tokio::test]
async fn what_was_compared_on_smaller_problems_ranks_after_all_others() {
    let (_folder, store) = fresh().await;
    let start = start(DeviceKind::Vgpu);
    let trials = [
        compared(&start, 16, 5.0, Compared::SmallerProblems),
        compared(&start, 32, 10.0, Compared::Sampled),
        compared(&start, 64, 10.0, Compared::Whole),
        compared(&start, 128, 5.0, Compared::Unknown),
    ];
    finished(&store, &start, &trials).await;
    let expected = [
        (1, true, 10.0, Some(Compared::Whole)),
        // Its equal only once it was compared whole as well.
        (2, false, 10.0, Some(Compared::Sampled)),
        (3, false, 5.0, Some(Compared::Unknown)),
        (3, false, 5.0, Some(Compared::SmallerProblems)),
    ];
    assert_eq!(ranked(&store).await, expected);
}

#[tokio::test]
async fn a_candidate_counts_as_it_was_compared_best() {
    let (_folder, store) = fresh().await;
    let start = start(DeviceKind::Vgpu);
    finished(
        &store,
        &start,
        &[compared(&start, 32, 5.0, Compared::SmallerProblems)],
    )
    .await;
    finished(
        &store,
        &start,
        &[compared(&start, 32, 6.0, Compared::Whole)],
    )
    .await;
    finished(
        &store,
        &start,
        &[compared(&start, 32, 4.0, Compared::SmallerProblems)],
    )
    .await;
    let expected = [(1, true, 6.0, Some(Compared::Whole))];
    assert_eq!(ranked(&store).await, expected);
}

#[tokio::test]
async fn recorded_rows_have_no_state_and_ours_always_have_one() {
    for (kind, expected) in [
        (DeviceKind::Replay, None),
        (DeviceKind::Vgpu, Some(Compared::Unknown)),
    ] {
        let (_folder, store) = fresh().await;
        let start = start(kind);
        let mut silent = timed(&start, 0, config(32, 0), 5.0);
        silent.judgement.compared = None;
        finished(&store, &start, &[silent]).await;
        assert_eq!(ranked(&store).await, [(1, true, 5.0, expected)]);
    }
}

#[tokio::test]
async fn a_proof_changes_the_state_or_withdraws_the_time() {
    let (_folder, store) = fresh().await;
    let start = start(DeviceKind::Vgpu);
    let trials = [
        compared(&start, 16, 5.0, Compared::SmallerProblems),
        compared(&start, 32, 10.0, Compared::Sampled),
    ];
    let run = submitted(&store, &start, &trials).await;
    let task = key(&start);
    let whole = Judgement {
        compared: Some(Compared::Whole),
        ..Judgement::ok(Some(0.5))
    };
    store
        .store_proof(&run, &task, &config(16, 0), whole)
        .await
        .unwrap();
    let sampled = (2, false, 10.0, Some(Compared::Sampled));
    let expected = [(1, true, 5.0, Some(Compared::Whole)), sampled];
    assert_eq!(ranked(&store).await, expected);
    let wrong = Judgement::new(Verdict::Incorrect, "element 7");
    store
        .store_proof(&run, &task, &config(16, 0), wrong.clone())
        .await
        .unwrap();
    let expected = [(1, true, 10.0, Some(Compared::Sampled))];
    assert_eq!(ranked(&store).await, expected);
    let counts = store.verdict_counts(&LeaderboardQuery::default()).await;
    let counts = counts.unwrap();
    let verdicts: Vec<_> = counts.iter().map(|count| count.verdict).collect();
    assert!(verdicts.contains(&Verdict::Incorrect), "{verdicts:?}");
    // What has no time any more cannot be proven again.
    let again = store.store_proof(&run, &task, &config(16, 0), wrong).await;
    again.unwrap_err();
}

#[tokio::test]
async fn a_proof_travels_with_a_merge() {
    let (folder, store) = fresh().await;
    let start = start(DeviceKind::Vgpu);
    let trials = [
        compared(&start, 16, 5.0, Compared::Sampled),
        compared(&start, 32, 10.0, Compared::Sampled),
    ];
    let run = submitted(&store, &start, &trials).await;
    store.close().await.unwrap();
    let (proven, copy) = (
        folder.path().join("tuner.db"),
        folder.path().join("copy.db"),
    );
    std::fs::copy(&proven, &copy).unwrap();
    let store = Store::open(&proven).await.unwrap();
    let task = key(&start);
    let wrong = Judgement::new(Verdict::Incorrect, "element 7");
    let whole = Judgement {
        compared: Some(Compared::Whole),
        ..Judgement::ok(None)
    };
    for (tile, proof) in [(16, wrong), (32, whole)] {
        let config = config(tile, 0);
        let stored = store.store_proof(&run, &task, &config, proof);
        stored.await.unwrap();
    }
    store.close().await.unwrap();
    pull(&copy, &proven).await.unwrap();
    let store = Store::open(&copy).await.unwrap();
    let expected = [(1, true, 10.0, Some(Compared::Whole))];
    assert_eq!(ranked(&store).await, expected);
    // The older state does not come back.
    store.close().await.unwrap();
    let old = folder.path().join("old.db");
    let fresh_store = Store::open(&old).await.unwrap();
    finished(&fresh_store, &start, &trials[1..]).await;
    fresh_store.close().await.unwrap();
    pull(&copy, &old).await.unwrap();
    let store = Store::open(&copy).await.unwrap();
    assert_eq!(ranked(&store).await[0].3, Some(Compared::Whole));
}

/// The classes stand in the migration's SQL as well.
#[tokio::test]
async fn classes_agree_with_sql() {
    let (folder, store) = fresh().await;
    let start = start(DeviceKind::Vgpu);
    let tiles = [16, 32, 64, 128];
    let trials: Vec<TrialRecord> = tiles
        .into_iter()
        .zip(Compared::ALL)
        .map(|(tile, state)| compared(&start, tile, 1.0, *state))
        .collect();
    finished(&store, &start, &trials).await;
    let mut connection = connected(&folder.path().join("tuner.db")).await;
    let classes: Vec<(String, u8)> = sqlx::query_as(
        "SELECT v.compared, b.class FROM best_times b JOIN verdicts v ON v.id = b.verdict",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    assert_eq!(classes.len(), Compared::ALL.len());
    for (name, class) in classes {
        let state: Compared = name.parse().unwrap();
        assert_eq!(class, state.rank_class(), "{name}");
    }
}
