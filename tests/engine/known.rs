//! Trials of earlier runs answer the proposals of a new one.

use super::toy::{Outcomes, Toy, drive, evals, plan};
use std::path::Path;
use tempfile::TempDir;
use tuner_core::units::ContentHash;
use tuner_engine::Order;
use tuner_engine::Plan;

fn toy(order: Order, puts_off: bool) -> Toy {
    Toy {
        remembers: true,
        puts_off,
        ..Toy::new(order, false)
    }
}

fn run(db: &Path, toy: Toy, plan: Plan) -> Outcomes {
    drive(db, toy, plan, false, None)
}

/// Trials that an earlier run answered, and all.
fn counts(outcomes: &Outcomes) -> (usize, usize) {
    let known = outcomes.trials.iter().filter(|trial| trial.known).count();
    (known, outcomes.trials.len())
}

#[test]
fn a_repeated_run_knows_every_trial_and_finds_the_same() {
    for puts_off in [false, true] {
        let dir = TempDir::new().unwrap();
        let db = dir.path().join("t.db");
        let first = run(
            &db,
            toy(Order::Fixed, puts_off),
            plan(&["a", "b"], evals(40), 2),
        );
        assert_eq!(counts(&first), (0, 40));
        let second = run(
            &db,
            toy(Order::Fixed, puts_off),
            plan(&["a", "b"], evals(40), 2),
        );
        assert_eq!(counts(&second), (40, 40));
        assert_eq!(second.story(), first.story());
        let report = second.result.unwrap();
        assert_eq!(report.tasks.iter().map(|task| task.known).sum::<u64>(), 40);
        // Another seed takes another path.
        let mut other = plan(&["a", "b"], evals(40), 2);
        other.start.seed = tuner_core::units::Seed(8);
        let third = run(&db, toy(Order::Fixed, puts_off), other.clone());
        let alone = TempDir::new().unwrap();
        let alone = run(
            &alone.path().join("t.db"),
            toy(Order::Fixed, puts_off),
            other,
        );
        assert!(counts(&third).0 > 0);
        // Without deferred checks nothing can be known better than it would be judged.
        if !puts_off {
            assert_eq!(third.story(), alone.story());
        }
    }
}

#[test]
fn on_a_real_device_times_near_the_best_are_taken_again() {
    let dir = TempDir::new().unwrap();
    let db = dir.path().join("t.db");
    run(&db, toy(Order::Arrival, false), plan(&["a"], evals(60), 1));
    let second = run(&db, toy(Order::Arrival, false), plan(&["a"], evals(60), 1));
    let (known, all) = counts(&second);
    assert_eq!(all, 60);
    assert!((20..60).contains(&known), "{known}");
    let best = second.result.unwrap().tasks[0].best.clone().unwrap();
    let fastest = second
        .trials
        .iter()
        .find(|trial| trial.time_us == Some(best.time_us))
        .unwrap();
    assert!(!fastest.known, "the best is measured in this run");
}

#[test]
fn another_template_reference_or_device_knows_nothing() {
    let dir = TempDir::new().unwrap();
    let db = dir.path().join("t.db");
    run(&db, toy(Order::Fixed, false), plan(&["a"], evals(20), 1));
    let other = Some(ContentHash::from_parts([b"other".as_slice()]));
    let changes: [fn(&mut Plan, Option<ContentHash>); 3] = [
        |plan, other| plan.start.tasks[0].template_hash = other,
        |plan, other| plan.start.tasks[0].reference_hash = other,
        |plan, _| plan.start.device.name = "toy2".to_owned(),
    ];
    for change in changes {
        let mut changed = plan(&["a"], evals(20), 1);
        change(&mut changed, other.clone());
        let key = tuner_core::record::TaskKey {
            device: changed.start.device.name.clone(),
            ..changed.tasks[0].key.clone()
        };
        changed.tasks[0].key = key;
        let outcomes = run(&db, toy(Order::Fixed, false), changed);
        assert_eq!(counts(&outcomes), (0, 20));
    }
}
