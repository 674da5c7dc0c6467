//! Configurations that were ranked, and that the constraints of a later run forbid.

use crate::store::support::{config, failed, finished, fresh, start, timed};
use tuner_core::record::{ConstraintDefinition, DeviceKind, Verdict};
use tuner_core::value::Value;
use tuner_store::{LeaderboardQuery, RunStart, Store};

/// A run whose constraints are these.
fn with_rules(rules: &[&str]) -> RunStart {
    let mut start = start(DeviceKind::Cuda);
    let definition = &mut start.tasks[0].definition;
    definition.constraints = rules
        .iter()
        .map(|rule| ConstraintDefinition {
            rule: (*rule).to_owned(),
            why: String::new(),
        })
        .collect();
    start
}

fn admitted(top: Option<usize>) -> LeaderboardQuery {
    LeaderboardQuery {
        top,
        admitted: Some(tuner_report::admitted),
        ..LeaderboardQuery::default()
    }
}

/// Tiles in the order of their ranks.
async fn ranked(store: &Store, top: Option<usize>) -> Vec<Value> {
    let query = admitted(top);
    let rows = store.leaderboard(&query).await.unwrap();
    let tiles: Vec<Value> = rows.iter().map(|row| row.config[0].1.clone()).collect();
    if let Some(first) = rows.first() {
        assert_eq!((first.rank, first.tied_with_best), (1, true));
    }
    tiles
}

fn tiles(tiles: &[i64]) -> Vec<Value> {
    tiles.iter().map(|tile| Value::Int(*tile)).collect()
}

#[tokio::test]
async fn what_the_constraints_of_the_latest_run_forbid_does_not_rank() {
    let (_directory, store) = fresh().await;
    let before = with_rules(&[]);
    let trials: Vec<_> = [(16, 10.0), (32, 20.0), (64, 30.0), (128, 40.0)]
        .into_iter()
        .zip(0..)
        .map(|((tile, us), at)| timed(&before, at, config(tile, 0), us))
        .collect();
    finished(&store, &before, &trials).await;
    assert_eq!(ranked(&store, None).await, tiles(&[16, 32, 64, 128]));

    // By a size, a derived value and a value of the device.
    for (rule, left) in [
        ("TILE > 16 and N == 1024", &[32, 64, 128][..]),
        ("BYTES != 512", &[32, 64, 128]),
        ("TILE * 4096 < DEVICE_SHARED_BYTES", &[16, 32]),
        ("1 / (TILE - 16) > 0", &[32, 64, 128]),
        // A name that the stored results do not have forbids nothing.
        ("OTHER > 1", &[16, 32, 64, 128]),
    ] {
        let after = with_rules(&[rule]);
        let again = timed(&after, 0, config(64, 0), 31.0);
        finished(&store, &after, &[again]).await;
        assert_eq!(ranked(&store, None).await, tiles(left), "{rule}");
        assert_eq!(ranked(&store, Some(1)).await, tiles(&left[..1]), "{rule}");
        let effects = store.effects(&admitted(None)).await.unwrap().unwrap();
        let compared = effects.rows.iter().map(|(config, _)| &config[0].1);
        let mut compared: Vec<&Value> = compared.collect();
        compared.sort_by_key(|tile| tile.to_string().len());
        assert_eq!(compared, tiles(left).iter().collect::<Vec<_>>(), "{rule}");
    }

    // Also where nothing passed in the run with the new constraint.
    let after = with_rules(&["TILE >= 64"]);
    let wrong = failed(&after, 0, config(128, 8), Verdict::Race);
    finished(&store, &after, &[wrong]).await;
    assert_eq!(ranked(&store, None).await, tiles(&[64, 128]));

    finished(&store, &before, &[timed(&before, 0, config(64, 0), 31.0)]).await;
    assert_eq!(ranked(&store, None).await, tiles(&[16, 32, 64, 128]));
}
