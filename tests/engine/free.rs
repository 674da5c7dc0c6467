//! Launches over a limit of the device, which need no compile, are free in the limit of trials.

use super::toy::{Outcomes, Toy, drive, evals, plan, run};
use std::time::Duration;
use tempfile::TempDir;
use tuner_core::record::{DeviceKind, Verdict};
use tuner_engine::{Order, StopReason};

fn toy(order: Order, refused_from: u32) -> Toy {
    Toy {
        refused_from: Some(refused_from),
        remembers: true,
        ..Toy::new(order, false)
    }
}

/// Trials that count, and those that do not.
fn counts(outcomes: &Outcomes) -> (usize, usize) {
    let free = outcomes.trials.iter().filter(|trial| trial.free).count();
    (outcomes.trials.len() - free, free)
}

#[test]
fn the_limit_counts_only_trials_that_may_be_launched() {
    for order in [Order::Fixed, Order::Arrival] {
        let dir = TempDir::new().unwrap();
        let db = dir.path().join("t.db");
        let first = drive(
            &db,
            toy(order, 3),
            plan(&["a", "b"], evals(60), 2),
            false,
            None,
        );
        let (counted, free) = counts(&first);
        assert_eq!(counted, 60);
        assert!(free > 0);
        for trial in &first.trials {
            assert_eq!(trial.free, trial.verdict == Verdict::LaunchFailed);
        }
        assert_eq!(first.trials.last().unwrap().evals, 60);
        let report = first.result.as_ref().unwrap();
        assert_eq!((report.evals(), report.reason), (60, StopReason::Evals));
        assert_eq!(report.verdicts()[&Verdict::LaunchFailed], free as u64);
        if order == Order::Fixed {
            // What is known of them is as free.
            let second = drive(
                &db,
                toy(order, 3),
                plan(&["a", "b"], evals(60), 2),
                false,
                None,
            );
            assert_eq!(second.story(), first.story());
            assert_eq!(counts(&second), (60, free));
            let known: u64 = second
                .result
                .unwrap()
                .tasks
                .iter()
                .map(|task| task.known)
                .sum();
            assert_eq!(known, 60);
        }
    }
}

#[test]
fn an_interrupted_run_counts_them_as_before() {
    // Slow enough that it is under way when the stop is requested.
    let toy = || Toy {
        delay: Duration::from_millis(5),
        ..toy(Order::Fixed, 3)
    };
    let wanted = || plan(&["a"], evals(60), 2);
    let whole = run(toy(), wanted());
    let dir = TempDir::new().unwrap();
    let db = dir.path().join("t.db");
    drive(&db, toy(), wanted(), false, Some(15));
    let rest = drive(&db, toy(), wanted(), true, None);
    assert_eq!(rest.story(), whole.story());
    assert_eq!(counts(&rest), counts(&whole));
}

#[test]
fn a_space_whose_every_launch_is_refused_has_an_end() {
    let space = super::space(&[64, 64], &[]);
    let mut endless = plan(&["a"], evals(10), 2);
    endless.tasks[0].start.clear();
    endless.tasks[0].space = space;
    endless.start.strategy = "random".to_owned();
    let outcomes = run(toy(Order::Fixed, 0), endless);
    assert_eq!(counts(&outcomes), (0, 1010));
    assert_eq!(outcomes.result.unwrap().evals(), 0);
}

#[test]
fn a_recorded_failure_counts() {
    let mut recorded = toy(Order::Fixed, 3);
    recorded.facts.kind = DeviceKind::Replay;
    recorded.charges = true;
    let outcomes = run(recorded, plan(&["a"], evals(40), 2));
    assert_eq!(counts(&outcomes), (40, 0));
    assert!(
        outcomes
            .trials
            .iter()
            .any(|trial| trial.verdict == Verdict::LaunchFailed)
    );
}
