//! The pipeline with a toy device: order, limits, faults, resuming.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tuner_core::record::Verdict;
use tuner_core::value::Value;
use tuner_engine::{EngineError, Limits, Order, StopReason, TrialEvent};

use super::toy::*;

#[test]
fn with_a_fixed_order_threads_and_timing_change_nothing() {
    let reference = run(Toy::new(Order::Fixed, true), plan(&["k"], evals(60), 1));
    assert_eq!(reference.trials.len(), 60);
    for (jobs, early) in [(1, false), (3, true), (16, false), (16, true)] {
        let toy = Toy {
            early,
            ..Toy::new(Order::Fixed, false)
        };
        let threaded = run(toy, plan(&["k"], evals(60), jobs));
        assert_eq!(threaded.story(), reference.story(), "{jobs} jobs");
    }
}

/// Told as right although it is wrong where nobody has looked yet, or as wrong for that reason.
fn outcomes_of_what_was_put_off(outcomes: &Outcomes) -> (usize, usize) {
    let (mut best, mut unproven, mut refuted) = (f64::INFINITY, 0, 0);
    for trial in &outcomes.trials {
        let wrong = trial.config.contains(&("p2".to_owned(), Value::Int(2)));
        match trial.time_us {
            Some(time) if wrong => {
                assert!(
                    time > 1.15 * best,
                    "{time} us beside {best}: {:?}",
                    trial.config
                );
                unproven += 1;
            }
            Some(time) => best = best.min(time),
            None => refuted += usize::from(wrong),
        }
    }
    (unproven, refuted)
}

#[test]
fn what_may_win_is_judged_on_what_was_put_off_before_it_is_told() {
    let toy = |order, jitter| Toy {
        puts_off: true,
        jitter,
        ..Toy::new(order, false)
    };
    let reference = run(toy(Order::Fixed, false), plan(&["k"], evals(60), 1));
    assert_eq!(reference.trials.len(), 60);
    let (unproven, refuted) = outcomes_of_what_was_put_off(&reference);
    assert!(unproven > 0 && refuted > 0, "{unproven} {refuted}");
    // What is compared with is the best that was told, so threads and timing change nothing.
    for (jobs, early) in [(1, false), (3, true), (16, false), (16, true)] {
        let toy = Toy {
            early,
            ..toy(Order::Fixed, true)
        };
        let threaded = run(toy, plan(&["k"], evals(60), jobs));
        assert_eq!(threaded.story(), reference.story(), "{jobs} jobs");
    }
    let arrived = run(toy(Order::Arrival, true), plan(&["a", "b"], evals(60), 3));
    assert_eq!(arrived.trials.len(), 60);
    let of = |kernel: &str| {
        let trials = arrived.trials.iter().filter(|trial| trial.kernel == kernel);
        let trials = trials.cloned().collect();
        outcomes_of_what_was_put_off(&Outcomes {
            result: Err(EngineError::Panicked(String::new())),
            trials,
            notes: Vec::new(),
        })
    };
    assert!(of("a").1 + of("b").1 > 0);
}

#[test]
fn checks_that_were_put_off_do_not_wait_for_each_other() {
    let meeting = Arc::new(Meeting::default());
    let toy = Toy {
        puts_off: true,
        meeting: Some(Arc::clone(&meeting)),
        ..Toy::new(Order::Arrival, false)
    };
    let arrived = run(toy, plan(&["k"], evals(40), 4));
    assert_eq!(arrived.trials.len(), 40);
    assert!(meeting.took_place(), "each check waited for the one before");
}

#[test]
fn the_default_comes_first_and_measures_the_speed_up() {
    let outcomes = run(Toy::new(Order::Fixed, true), plan(&["k"], evals(40), 1));
    assert_eq!(outcomes.trials[0].origin, "default");
    let task = &outcomes.result.unwrap().tasks[0];
    assert_eq!(
        task.default_us,
        Some(10.0),
        "the default is index 0 everywhere"
    );
    assert!(task.best.is_some());
}

#[test]
fn evaluations_count_every_verdict_and_are_shared_by_all_tasks() {
    let outcomes = run(
        Toy::new(Order::Fixed, false),
        plan(&["a", "b", "c"], evals(31), 2),
    );
    let report = outcomes.result.unwrap();
    assert_eq!((report.evals(), report.reason), (31, StopReason::Evals));
    let each: Vec<u64> = report.tasks.iter().map(|task| task.evals()).collect();
    assert!(each.iter().all(|evals| *evals >= 3), "{each:?}");
    assert!(report.verdicts().len() >= 2, "{:?}", report.verdicts());
}

/// Kernel of every trial, in order.
fn kernels(outcomes: &Outcomes) -> Vec<&str> {
    outcomes.trials.iter().map(|trial| &*trial.kernel).collect()
}

#[test]
fn every_task_gets_its_first_trials_before_gains_are_compared_and_the_cheap_ones_come_first() {
    let mut plan = plan(&["dear", "cheap", "middle"], evals(30), 1);
    for (task, work) in plan.tasks.iter_mut().zip([9.0, 1.0, 4.0]) {
        task.work = work;
    }
    let outcomes = run(Toy::new(Order::Fixed, true), plan);
    let order = kernels(&outcomes);
    assert_eq!(order[..3], ["cheap", "middle", "dear"]);
    for name in ["cheap", "middle", "dear"] {
        let first = order[..9].iter().filter(|kernel| **kernel == name);
        assert_eq!(first.count(), 3, "{order:?}");
    }
}

#[test]
fn a_heavier_task_gets_more_trials_and_the_same_run_is_repeated_exactly() {
    let weighted = |weights: [f64; 2]| {
        let mut plan = plan(&["a", "b"], evals(60), 2);
        for (task, weight) in plan.tasks.iter_mut().zip(weights) {
            task.weight = weight;
        }
        run(Toy::new(Order::Fixed, false), plan)
    };
    let count = |outcomes: &Outcomes, name: &str| {
        let order = kernels(outcomes);
        order.iter().filter(|kernel| **kernel == name).count()
    };
    let heavy = weighted([1.0, 50.0]);
    assert!(count(&heavy, "b") > 2 * count(&heavy, "a"));
    assert_eq!(heavy.story(), weighted([1.0, 50.0]).story());
    let without = weighted([0.0, 1.0]);
    assert_eq!(
        count(&without, "a"),
        3,
        "a weight of 0: the first trials only"
    );
}

#[test]
fn a_task_whose_trial_exceeds_its_share_is_postponed_and_reported() {
    let mut toy = Toy::new(Order::Arrival, false);
    toy.slow = Some((0, Duration::from_millis(400)));
    let limits = Limits {
        budget: Some(Duration::from_millis(700)),
        ..Limits::default()
    };
    let outcomes = run(toy, plan(&["slow", "quick"], limits, 1));
    let order = kernels(&outcomes);
    let slow = order.iter().filter(|kernel| **kernel == "slow").count();
    assert!(slow < order.len() - slow, "{order:?}");
    let text = outcomes.notes.join("\n");
    assert!(text.contains("slow p: a trial takes"), "{text}");
    assert!(!text.contains("quick p"), "{text}");
}

#[test]
fn a_small_space_is_judged_completely_once_in_any_order() {
    for (order, strategy) in [
        (Order::Arrival, "evolve"),
        (Order::Fixed, "exhaustive"),
        (Order::Arrival, "random"),
    ] {
        let mut plan = plan(&["k"], Limits::default(), 4);
        plan.start.strategy = strategy.to_owned();
        let outcomes = run(Toy::new(order, false), plan);
        let unique: BTreeSet<String> = outcomes
            .trials
            .iter()
            .map(|trial| format!("{:?}", trial.config))
            .collect();
        assert_eq!(unique.len(), outcomes.trials.len());
        assert_eq!(unique.len() as u128, toy_space().count());
        assert_eq!(outcomes.result.unwrap().reason, StopReason::Exhausted);
    }
}

#[test]
fn a_wall_clock_budget_ends_the_run() {
    let mut toy = Toy::new(Order::Fixed, false);
    toy.may_hang = true;
    let limits = Limits {
        evals: None,
        budget: Some(Duration::from_millis(30)),
        converged: None,
    };
    let report = run(toy, plan(&["k"], limits, 2)).result.unwrap();
    assert_eq!(report.reason, StopReason::Budget);
    assert!(u128::from(report.evals()) < toy_space().count());
}

#[test]
fn a_lost_device_ends_the_run_with_an_error_and_keeps_what_was_finished() {
    for fault in [Fault::LostAt(9), Fault::PanicAt(9)] {
        let dir = TempDir::new().unwrap();
        let db = dir.path().join("t.db");
        let mut toy = Toy::new(Order::Fixed, false);
        toy.fault = fault;
        let failed = drive(&db, toy, plan(&["k"], evals(40), 2), false, None);
        let error = failed.result.unwrap_err().to_string();
        assert!(
            error.contains("fell off the bus") || error.contains("planted"),
            "{error}"
        );
        assert!(failed.trials.len() >= 9);
        let healthy = Toy::new(Order::Fixed, false);
        let resumed = drive(&db, healthy, plan(&["k"], evals(40), 2), true, None);
        assert_eq!(resumed.result.unwrap().evals(), 40);
    }
}

#[test]
fn a_log_that_is_lost_ends_a_run_whose_candidates_take_long() {
    let dir = TempDir::new().unwrap();
    let db = dir.path().join("t.db");
    let log = dir.path().join("t.db-wal");
    let toy = Toy {
        delay: Duration::from_secs(60),
        ..Toy::new(Order::Fixed, false)
    };
    let lost = std::thread::spawn(move || {
        while !log.exists() {
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(Duration::from_secs(1));
        std::fs::remove_file(log).unwrap();
        Instant::now()
    });
    let failed = drive(&db, toy, plan(&["k"], evals(40), 2), false, None);
    let took = lost.join().unwrap().elapsed();
    let error = failed.result.unwrap_err().to_string();
    assert!(error.contains("was deleted or replaced"), "{error}");
    assert!(error.contains("integrity_check"), "{error}");
    assert!(took < Duration::from_secs(20), "{took:?}");
}

#[test]
fn a_resumed_run_ends_as_the_uninterrupted_one_and_judges_nothing_twice() {
    let whole = run(
        Toy::new(Order::Fixed, true),
        plan(&["a", "b"], evals(50), 1),
    );
    for instant in [true, false] {
        let dir = TempDir::new().unwrap();
        let db = dir.path().join("t.db");
        // A result is announced once it is on the disk: where that takes long, all would be over by the 7th.
        let mut slow = Toy::new(Order::Fixed, false);
        slow.delay = Duration::from_millis(20);
        let first = drive(&db, slow, plan(&["a", "b"], evals(50), 2), false, Some(7));
        assert_eq!(
            first.result.as_ref().unwrap().reason,
            StopReason::Interrupted
        );
        let done = first.trials.len() as u64;
        assert!((7..50).contains(&done), "{done}");
        let toy = Toy::new(Order::Fixed, instant);
        let second = drive(&db, toy, plan(&["a", "b"], evals(50), 2), true, None);
        assert_eq!(
            second.trials.iter().filter(|trial| trial.resumed).count() as u64,
            done
        );
        let configs = |outcomes: &Outcomes| -> Vec<String> {
            let key = |trial: &TrialEvent| {
                format!("{} {:?} {}", trial.kernel, trial.config, trial.verdict)
            };
            outcomes.trials.iter().map(key).collect()
        };
        assert_eq!(configs(&second), configs(&whole));
    }
}

#[test]
fn on_a_real_device_a_resumed_run_learns_from_what_was_stored() {
    let dir = TempDir::new().unwrap();
    let db = dir.path().join("t.db");
    // A result is announced once it is on the disk: where that takes long, all would be over by the 20th.
    let mut slow = Toy::new(Order::Arrival, false);
    slow.delay = Duration::from_millis(20);
    let first = drive(&db, slow, plan(&["k"], evals(60), 3), false, Some(20));
    let second = drive(
        &db,
        Toy::new(Order::Arrival, false),
        plan(&["k"], evals(60), 3),
        true,
        None,
    );
    let report = second.result.as_ref().unwrap();
    assert_eq!(report.evals(), 60);
    let unique: BTreeSet<String> = second
        .trials
        .iter()
        .map(|trial| format!("{:?}", trial.config))
        .collect();
    assert_eq!(unique.len(), 60, "nothing is judged twice");
    let before: BTreeSet<String> = first
        .trials
        .iter()
        .map(|trial| format!("{:?}", trial.config))
        .collect();
    assert!(before.is_subset(&unique));
}

#[test]
fn a_launch_that_never_came_back_is_a_timeout_and_is_not_launched_again() {
    let dir = TempDir::new().unwrap();
    let db = dir.path().join("t.db");
    let mut toy = Toy::new(Order::Fixed, false);
    toy.may_hang = true;
    // The error stands for the process's end during the launch: the announcement stays.
    toy.fault = Fault::LostAt(5);
    let failed = drive(&db, toy, plan(&["k"], evals(30), 2), false, None);
    assert!(failed.result.is_err());
    let mut healthy = Toy::new(Order::Fixed, false);
    healthy.may_hang = true;
    let resumed = drive(&db, healthy, plan(&["k"], evals(30), 2), true, None);
    let timeouts: Vec<&TrialEvent> = resumed
        .trials
        .iter()
        .filter(|trial| trial.verdict == Verdict::Timeout)
        .collect();
    assert_eq!(timeouts.len(), 1, "{:?}", resumed.story());
    assert_eq!(resumed.result.as_ref().unwrap().evals(), 30);
}

/// A run of a task that takes this long a trial, and of two others, within the budget.
fn with_a_slow_task(takes: Duration, budget: Duration) -> Outcomes {
    let mut plan = plan(&["slow", "a", "b"], Limits::default(), 2);
    plan.limits.budget = Some(budget);
    for task in &mut plan.tasks {
        task.space = super::space(&[2, 2, 2], &[]);
        task.start[0].config = task.space.default_config();
    }
    let toy = Toy {
        slow: Some((0, takes)),
        ..Toy::new(Order::Fixed, false)
    };
    run(toy, plan)
}

#[test]
fn where_no_trial_fits_its_share_of_the_budget_some_are_made_all_the_same() {
    let kernels = ["a", "b", "c", "d", "e", "f"];
    let mut plan = plan(&kernels, Limits::default(), 2);
    plan.limits.budget = Some(Duration::from_secs(6));
    let toy = Toy {
        slow: Some((kernels.len() - 1, Duration::from_millis(1200))),
        ..Toy::new(Order::Fixed, false)
    };
    let outcomes = run(toy, plan);
    assert!(!outcomes.trials.is_empty(), "{:?}", outcomes.notes);
}

fn trials_of(outcomes: &Outcomes, kernel: &str) -> usize {
    let own = outcomes.trials.iter();
    own.filter(|trial| trial.kernel == kernel).count()
}

#[test]
fn a_trial_beyond_its_share_of_the_budget_is_stopped_and_the_others_go_on() {
    let outcomes = with_a_slow_task(Duration::from_secs(60), Duration::from_secs(3));
    let counts = ["slow", "a", "b"].map(|kernel| trials_of(&outcomes, kernel));
    assert_eq!(counts, [0, 8, 8], "{:?}", outcomes.story());
    let said = "note: slow p: a trial was stopped: it takes more than this task's share of the budget (1s)";
    let notes = &outcomes.notes;
    assert!(notes.iter().any(|note| note.contains(said)), "{notes:?}");
}

#[test]
fn a_stopped_trial_is_made_after_all_others_if_there_is_time() {
    let outcomes = with_a_slow_task(Duration::from_millis(2100), Duration::from_secs(6));
    let story = outcomes.story();
    assert!(trials_of(&outcomes, "slow") >= 1, "{story:?}");
    let others = story.iter().take(16);
    let slow = others.filter(|trial| trial.starts_with("slow")).count();
    assert_eq!(slow, 0, "{story:?}");
    // Its default is the first one all the same.
    assert!(story[16].ends_with("default"), "{story:?}");
}
