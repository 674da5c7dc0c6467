//! The pipeline with a toy device: order, limits, faults, resuming.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::watch;
use tuner_core::evidence::{Measured, Proof};
use tuner_core::judgement::Judgement;
use tuner_core::record::{Definition, DeviceKind, TaskKey, Verdict};
use tuner_core::units::{ContentHash, Micros, Seed};
use tuner_core::value::Value;
use tuner_device::DeviceFacts;
use tuner_engine as engine;
use tuner_engine::{
    BoxError, Clock, EngineError, Evaluator, Event, Judged, Limits, Order, Plan, Preparation,
    Report, StartPoint, StopReason, Task, TrialEvent,
};
use tuner_space::{Config, Space};
use tuner_store::{DeviceStart, RunStart, Store, StoredRun, TaskStart};

/// A device whose results depend on the configuration only, and whose speed depends on nothing
/// one could rely on.
struct Toy {
    facts: DeviceFacts,
    order: Order,
    instant: bool,
    may_hang: bool,
    /// Candidates may be judged before their turn.
    early: bool,
    jitter: bool,
    fault: Fault,
    /// Every look at other problems is put off; those with the second value of `p2` are wrong there.
    puts_off: bool,
    evaluated: AtomicU64,
    proven: AtomicU64,
}

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// The device is lost at the n-th evaluation.
    LostAt(u64),
    PanicAt(u64),
}

impl Toy {
    fn new(order: Order, instant: bool) -> Self {
        Self {
            facts: DeviceFacts {
                name: "toy".to_owned(),
                kind: DeviceKind::Vgpu,
                limits: None,
                arch: String::new(),
                driver: None,
            },
            order,
            instant,
            may_hang: false,
            early: false,
            jitter: true,
            fault: Fault::None,
            puts_off: false,
            evaluated: AtomicU64::new(0),
            proven: AtomicU64::new(0),
        }
    }

    fn pause(&self, config: &Config, salt: u32) {
        if self.jitter && !self.instant {
            let sum: u32 = config.choices().iter().sum::<u32>() * 31 + salt;
            std::thread::sleep(Duration::from_micros(u64::from(sum * 97 % 1500)));
        }
    }
}

fn hash(config: &Config) -> ContentHash {
    ContentHash::of([format!("{config:?}").as_bytes()])
}

/// The gate's proof, as far as the engine can tell.
struct Given;

impl Proof for Given {}

fn judged(config: &Config, verdict: Verdict) -> Judged {
    let sum: u32 = config.choices().iter().map(|choice| choice * choice).sum();
    let time = Micros::new(f64::from(sum) + 10.0).unwrap();
    let measured = (verdict == Verdict::Ok).then(|| Measured::predicted(&Given, time, "toy"));
    let mut judged = Judged::without_device(hash(config), Judgement::new(verdict, ""));
    judged.found.measured = measured;
    judged.charged_us = u64::from(sum);
    judged
}

impl Evaluator for Toy {
    type Work = ();

    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn order(&self) -> Order {
        self.order
    }

    fn clock(&self) -> Clock {
        Clock::Wall
    }

    fn instant(&self) -> bool {
        self.instant
    }

    fn may_hang(&self) -> bool {
        self.may_hang
    }

    fn judges_early(&self) -> bool {
        self.early
    }

    fn prepare(&self, _task: usize, config: &Config) -> Result<Preparation<()>, BoxError> {
        self.pause(config, 3);
        Ok(if config.choices()[0] == 2 {
            Preparation::Judged(Box::new(judged(config, Verdict::CompileFailed)))
        } else {
            Preparation::Ready {
                facts: None,
                candidate: hash(config),
                work: (),
            }
        })
    }

    fn evaluate(&self, _task: usize, config: &Config, (): ()) -> Result<Judged, BoxError> {
        self.pause(config, 7);
        let count = self.evaluated.fetch_add(1, Ordering::SeqCst);
        match self.fault {
            Fault::LostAt(at) if at == count => return Err("the device fell off the bus".into()),
            Fault::PanicAt(at) if at == count => panic!("planted"),
            _ => {}
        }
        let verdict = if config.choices()[1] == 3 {
            Verdict::Incorrect
        } else {
            Verdict::Ok
        };
        let judged = judged(config, verdict);
        Ok(Judged {
            put_off: self.puts_off && verdict == Verdict::Ok,
            ..judged
        })
    }

    fn prove(&self, _task: usize, config: &Config, judged: Judged) -> Result<Judged, BoxError> {
        self.pause(config, 11);
        self.proven.fetch_add(1, Ordering::SeqCst);
        let verdict = if config.choices()[2] == 1 {
            Verdict::Incorrect
        } else {
            Verdict::Ok
        };
        Ok(judged.proven(Judgement::new(verdict, "")))
    }
}

fn toy_space() -> Space {
    super::space(&[6, 6, 6], &["p0 * p1 <= 20"])
}

fn plan(names: &[&str], limits: Limits, jobs: usize) -> Plan {
    let space = toy_space();
    let tasks: Vec<Task> = names
        .iter()
        .map(|name| Task {
            knowledge: tuner_search::Knowledge::default(),
            key: TaskKey {
                kernel: (*name).to_owned(),
                problem: "p".to_owned(),
                device: "toy".to_owned(),
            },
            space: space.clone(),
            start: vec![StartPoint {
                config: space.default_config(),
                origin: "default",
            }],
        })
        .collect();
    let stored = names
        .iter()
        .map(|name| TaskStart {
            kernel: (*name).to_owned(),
            problem: "p".to_owned(),
            sizes: Vec::new(),
            template_hash: Some(ContentHash::of([b"template".as_slice()])),
            reference_hash: None,
            definition: Definition::default(),
            default_config: Some(space.values(&space.default_config())),
            space_path: None,
            provenance: tuner_core::provenance::of_recording(),
        })
        .collect();
    Plan {
        id: None,
        tasks,
        start: RunStart {
            device: DeviceStart {
                name: "toy".to_owned(),
                kind: DeviceKind::Vgpu,
                arch: String::new(),
                selector: "vgpu:toy".to_owned(),
                recording: None,
                environment: Vec::new(),
            },
            seed: Seed(7),
            strategy: "evolve".to_owned(),
            settings: serde_json::Value::Null,
            tasks: stored,
        },
        resume: None,
        limits,
        jobs,
        live: None,
        objectives: None,
    }
}

fn evals(count: u64) -> Limits {
    Limits {
        evals: Some(count),
        budget: None,
        converged: None,
    }
}

struct Outcomes {
    result: Result<Report, EngineError>,
    trials: Vec<TrialEvent>,
}

impl Outcomes {
    /// Kernel, configuration, verdict and origin in the order announced.
    fn story(&self) -> Vec<String> {
        self.trials
            .iter()
            .map(|trial| {
                let TrialEvent {
                    kernel,
                    sequence,
                    config,
                    verdict,
                    time_us,
                    origin,
                    ..
                } = trial;
                format!("{kernel} {sequence} {config:?} {verdict} {time_us:?} {origin}")
            })
            .collect()
    }
}

/// Runs a plan; `stop_after` asks for the end once that many results are announced.
fn drive(db: &Path, toy: Toy, mut plan: Plan, resume: bool, stop_after: Option<usize>) -> Outcomes {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let outcomes = runtime.block_on(async {
        let store = Store::open(db).await.unwrap();
        if resume {
            plan.resume = Some(unfinished(&store, &plan).await);
        }
        let (sender, receiver) = watch::channel(false);
        let mut trials = Vec::new();
        let mut sink = |event: &Event| {
            if let Event::Trial(trial) = event {
                trials.push(trial.clone());
                if stop_after == Some(trials.len()) {
                    let _ = sender.send(true);
                }
            }
        };
        let result = engine::run(&Arc::new(toy), plan, &store, receiver, &mut sink).await;
        store.close().await.unwrap();
        Outcomes { result, trials }
    });
    runtime.shutdown_background();
    outcomes
}

async fn unfinished(store: &Store, plan: &Plan) -> StoredRun {
    store.unfinished_run(&plan.start).await.unwrap().unwrap()
}

fn run(toy: Toy, plan: Plan) -> Outcomes {
    let dir = TempDir::new().unwrap();
    drive(&dir.path().join("t.db"), toy, plan, false, None)
}

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
        })
    };
    assert!(of("a").1 + of("b").1 > 0);
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
    assert_eq!(each, [11, 10, 10]);
    assert!(report.verdicts().len() >= 2, "{:?}", report.verdicts());
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
fn a_resumed_run_ends_as_the_uninterrupted_one_and_judges_nothing_twice() {
    let whole = run(
        Toy::new(Order::Fixed, true),
        plan(&["a", "b"], evals(50), 1),
    );
    for instant in [true, false] {
        let dir = TempDir::new().unwrap();
        let db = dir.path().join("t.db");
        let first = drive(
            &db,
            Toy::new(Order::Fixed, false),
            plan(&["a", "b"], evals(50), 2),
            false,
            Some(7),
        );
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
    let first = drive(
        &db,
        Toy::new(Order::Arrival, false),
        plan(&["k"], evals(60), 3),
        false,
        Some(20),
    );
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
