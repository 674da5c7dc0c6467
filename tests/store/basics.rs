//! The store keeps what it said it keeps, and ranks it.

use crate::store::support::{config, failed, finished, fresh, hash, key, proven, start, timed};
use tuner_core::record::{DeviceKind, TimingKind, Verdict};
use tuner_store::{DeviceFilter, LeaderboardQuery, RecordingSource, RunEnd};

#[tokio::test]
async fn a_killed_run_gives_back_its_trials_in_told_order_as_they_were() {
    let (_directory, store) = fresh().await;
    let start = start(DeviceKind::Cuda);
    let run = store.begin_run(start.clone()).await.unwrap();
    let trials = [
        timed(&start, 0, config(32, 0), 10.0 / 3.0),
        failed(&start, 1, config(64, 0), Verdict::OutOfBounds),
        timed(&start, 2, config(16, 8), 0.1 + 0.2),
    ];
    // Submitted out of order, as results come.
    for index in [2, 0, 1] {
        let ack = store
            .submit(&run, &key(&start), proven(trials[index].clone()))
            .await
            .unwrap();
        ack.await.unwrap();
    }
    // This process lives, so its run is not up for grabs.
    assert_eq!(store.unfinished_run(&start).await.unwrap(), None);
    store.finish_run(&run, RunEnd::Interrupted).await.unwrap();

    let found = store.unfinished_run(&start).await.unwrap().unwrap();
    assert_eq!(found.id, run);
    assert_eq!(found.settings, start.settings);
    assert_eq!(found.tasks[0].trials, trials);
    assert!(found.tasks[0].never_came_back.is_empty());

    let mut other = start.clone();
    other.seed = tuner_core::units::Seed(2);
    assert_eq!(store.unfinished_run(&other).await.unwrap(), None);
    let mut edited = start.clone();
    edited.tasks[0].template_hash = Some(hash("edited"));
    assert_eq!(store.unfinished_run(&edited).await.unwrap(), None);

    store.reopen_run(&run, start.clone()).await.unwrap();
    let more = timed(&start, 3, config(128, 0), 2.0);
    store
        .submit(&run, &key(&start), proven(more))
        .await
        .unwrap()
        .await
        .unwrap();
    store.finish_run(&run, RunEnd::Finished).await.unwrap();
    assert_eq!(store.unfinished_run(&start).await.unwrap(), None);
    let rows = store
        .leaderboard(&LeaderboardQuery::default())
        .await
        .unwrap();
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().all(|row| row.run_id == run.as_str()));
    store.close().await.unwrap();
}

#[tokio::test]
async fn an_announced_launch_is_a_timeout_until_its_result_comes() {
    let (_directory, store) = fresh().await;
    let start = start(DeviceKind::Cuda);
    let run = store.begin_run(start.clone()).await.unwrap();
    let task = key(&start);
    let hangs = timed(&start, 0, config(16, 0), 1.0);
    let returns = timed(&start, 0, config(32, 0), 5.0);
    for trial in [&hangs, &returns] {
        let ack = store
            .announce(&run, &task, proven(trial.clone()))
            .await
            .unwrap();
        ack.await.unwrap();
    }
    let ack = store
        .submit(&run, &task, proven(returns.clone()))
        .await
        .unwrap();
    ack.await.unwrap();
    store.finish_run(&run, RunEnd::Failed).await.unwrap();

    let found = store.unfinished_run(&start).await.unwrap().unwrap();
    assert_eq!(found.tasks[0].trials, [returns]);
    let stuck = &found.tasks[0].never_came_back;
    assert_eq!(stuck.len(), 1);
    assert_eq!(stuck[0].judgement.verdict, Verdict::Timeout);
    assert_eq!(stuck[0].config, hangs.config);
    assert_eq!(stuck[0].measurement, None);

    // A resumed run tells it to the search, and stores it in its place.
    store.reopen_run(&run, start.clone()).await.unwrap();
    let mut told = stuck[0].clone();
    told.sequence = 1;
    let ack = store
        .submit(&run, &task, proven(told.clone()))
        .await
        .unwrap();
    ack.await.unwrap();
    store.finish_run(&run, RunEnd::Interrupted).await.unwrap();
    let found = store.unfinished_run(&start).await.unwrap().unwrap();
    assert_eq!(found.tasks[0].trials[1], told);
    assert!(found.tasks[0].never_came_back.is_empty());
    let counts = store
        .verdict_counts(&LeaderboardQuery::default())
        .await
        .unwrap();
    let counts: Vec<_> = counts.iter().map(|c| (c.verdict, c.count)).collect();
    assert_eq!(counts, [(Verdict::Ok, 1), (Verdict::Timeout, 1)]);
}

#[tokio::test]
async fn the_leaderboard_ranks_the_best_time_of_each_candidate_against_the_default() {
    let (_directory, store) = fresh().await;
    let start = start(DeviceKind::Cuda);
    for (seed, slower) in [(1, 1.0), (2, 2.0)] {
        let mut start = start.clone();
        start.seed = tuner_core::units::Seed(seed);
        let run = store.begin_run(start.clone()).await.unwrap();
        let task = key(&start);
        for (sequence, (tile, us)) in [(32, 8.0), (64, 4.0), (16, 4.0), (128, 16.0)]
            .into_iter()
            .enumerate()
        {
            let trial = timed(&start, sequence as u64, config(tile, 0), us * slower);
            drop(store.submit(&run, &task, proven(trial)).await.unwrap());
        }
        store.finish_run(&run, RunEnd::Finished).await.unwrap();
    }
    let rows = store
        .leaderboard(&LeaderboardQuery {
            top: Some(3),
            ..LeaderboardQuery::default()
        })
        .await
        .unwrap();
    let seen: Vec<_> = rows
        .iter()
        .map(|row| {
            (
                row.rank,
                row.config[0].1.as_i64().unwrap(),
                row.time_us_p50,
                row.tied_with_best,
                row.speedup_vs_default,
                row.seed.0,
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            (1, 16, 4.0, true, Some(2.0), 1),
            (1, 64, 4.0, true, Some(2.0), 1),
            (3, 32, 8.0, false, Some(1.0), 1),
        ]
    );
    assert_eq!(rows[0].commit.as_deref(), Some("c0ffee"));
    assert_eq!(rows[0].dirty, Some(true));
    assert_eq!(rows[0].timing, TimingKind::Measured);
}

#[tokio::test]
async fn an_edited_template_inherits_no_time() {
    let (_directory, store) = fresh().await;
    let old = start(DeviceKind::Cuda);
    let mut new = old.clone();
    new.tasks[0].template_hash = Some(hash("edited"));
    for (start, us) in [(&old, 1.0), (&new, 2.0)] {
        finished(&store, start, &[timed(start, 0, config(64, 0), us)]).await;
    }
    let rows = store
        .leaderboard(&LeaderboardQuery::default())
        .await
        .unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].time_us_p50, 2.0);
    assert_eq!(
        rows[0].template_hash.as_deref(),
        Some(hash("edited").as_str())
    );
}

#[tokio::test]
async fn kinds_of_time_never_rank_beside_each_other_and_recorded_rows_name_no_commit() {
    let (_directory, store) = fresh().await;
    for kind in [DeviceKind::Cuda, DeviceKind::Vgpu, DeviceKind::Replay] {
        let mut start = start(kind);
        // Even on devices of the same name.
        start.device.name = "A100".to_owned();
        finished(&store, &start, &[timed(&start, 0, config(64, 0), 3.0)]).await;
    }
    let query = LeaderboardQuery::default();
    let rows = store.leaderboard(&query).await.unwrap();
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().all(|row| row.rank == 1));
    let recorded = rows
        .iter()
        .find(|row| row.timing == TimingKind::Recorded)
        .unwrap();
    assert_eq!(
        (
            &recorded.commit,
            &recorded.dirty,
            &recorded.template_hash,
            &recorded.cubin_hash
        ),
        (&None, &None, &None, &None)
    );
    for (source, expected) in [
        (
            RecordingSource {
                path: "/elsewhere".into(),
                hash: hash("recording"),
            },
            1,
        ),
        (
            RecordingSource {
                path: "/data/file.json".into(),
                hash: hash("changed"),
            },
            1,
        ),
        (
            RecordingSource {
                path: "/elsewhere".into(),
                hash: hash("changed"),
            },
            0,
        ),
    ] {
        let query = LeaderboardQuery {
            device: Some(DeviceFilter::Recording(source)),
            ..LeaderboardQuery::default()
        };
        assert_eq!(store.leaderboard(&query).await.unwrap().len(), expected);
    }
    let query = LeaderboardQuery {
        device: Some(DeviceFilter::Name("a100".to_owned())),
        timings: vec![TimingKind::Measured],
        ..LeaderboardQuery::default()
    };
    assert_eq!(store.leaderboard(&query).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_long_detail_is_kept_whole_in_little_room() {
    let (directory, store) = fresh().await;
    let start = start(DeviceKind::Cuda);
    let run = store.begin_run(start.clone()).await.unwrap();
    let log = "kernel.cu(7): error: identifier \"undefined_name\" is undefined\n".repeat(250);
    for (sequence, tile) in [16, 32, 64, 128].into_iter().enumerate() {
        let mut trial = failed(
            &start,
            sequence as u64,
            config(tile, 0),
            Verdict::CompileFailed,
        );
        trial.judgement.detail = format!("{tile}: {log}");
        let ack = store.submit(&run, &key(&start), proven(trial)).await;
        ack.unwrap().await.unwrap();
    }
    store.finish_run(&run, RunEnd::Interrupted).await.unwrap();
    let found = store.unfinished_run(&start).await.unwrap().unwrap();
    for (trial, tile) in found.tasks[0].trials.iter().zip([16, 32, 64, 128]) {
        assert_eq!(trial.judgement.detail, format!("{tile}: {log}"));
    }
    store.close().await.unwrap();
    // As another program reads it: the beginning stands in the table of verdicts.
    let path = directory.path().join("tuner.db");
    let mut connection = crate::rig::database::connected(&path).await;
    let sizes = "SELECT max(length(v.detail)), max(length(l.body)) FROM verdicts v
                 JOIN long_details l ON l.verdict = v.id";
    let (plain, packed): (i64, i64) = sqlx::query_as(sizes)
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(plain, 1024);
    assert!(packed < 1024, "{packed} bytes for {}", log.len());
}
