//! A toy device, and what drives a run on it.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::watch;
use tuner_core::evidence::{Measured, Proof};
use tuner_core::judgement::Judgement;
use tuner_core::record::{Compared, Definition, DeviceKind, TaskKey, Verdict};
use tuner_core::units::{ContentHash, Micros, Seed};
use tuner_device::DeviceFacts;
use tuner_engine as engine;
use tuner_engine::{
    BoxError, Clock, EngineError, Evaluator, Event, Judged, Limits, Order, Plan, Preparation,
    Report, StartPoint, Task, TrialEvent,
};
use tuner_space::{Config, Space};
use tuner_store::{DeviceStart, RunStart, Store, StoredRun, TaskStart};

/// A device whose results depend on the configuration only, and whose speed depends on nothing
/// one could rely on.
pub(super) struct Toy {
    pub(super) facts: DeviceFacts,
    pub(super) order: Order,
    /// What each step takes at least.
    pub(super) delay: Duration,
    pub(super) instant: bool,
    pub(super) may_hang: bool,
    /// Candidates may be judged before their turn.
    pub(super) early: bool,
    pub(super) jitter: bool,
    pub(super) fault: Fault,
    /// Every look at other problems is put off; those with the second value of `p2` are wrong there.
    pub(super) puts_off: bool,
    /// Launches with at least this choice of `p0` are over a limit of the device.
    pub(super) refused_from: Option<u32>,
    /// The recorded time counts instead of the wall clock.
    pub(super) charges: bool,
    /// Results of earlier runs answer proposals.
    pub(super) remembers: bool,
    /// Evaluations of the tasks up to this one take longer.
    pub(super) slow: Option<(usize, Duration)>,
    pub(super) evaluated: AtomicU64,
    pub(super) proven: AtomicU64,
    /// Deferred checks wait for each other here.
    pub(super) meeting: Option<Arc<Meeting>>,
}

/// Meeting of two deferred checks, if there are ever two at once.
#[derive(Default)]
pub(super) struct Meeting {
    /// Checks inside, and the most at once.
    there: Mutex<(usize, usize)>,
    changed: Condvar,
}

impl Meeting {
    /// Waits until two are inside at once, or have been, but not for ever.
    fn attend(&self) {
        let mut there = self.there.lock().unwrap();
        there.0 += 1;
        there.1 = there.1.max(there.0);
        self.changed.notify_all();
        let limit = Duration::from_secs(10);
        let waited = self
            .changed
            .wait_timeout_while(there, limit, |there| there.1 < 2);
        waited.unwrap().0.0 -= 1;
    }

    /// Reports whether two were inside at once.
    pub(super) fn took_place(&self) -> bool {
        self.there.lock().unwrap().1 >= 2
    }
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Fault {
    None,
    /// The device is lost at the n-th evaluation.
    LostAt(u64),
    PanicAt(u64),
}

impl Toy {
    pub(super) fn new(order: Order, instant: bool) -> Self {
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
            delay: Duration::ZERO,
            fault: Fault::None,
            puts_off: false,
            refused_from: None,
            charges: false,
            remembers: false,
            slow: None,
            evaluated: AtomicU64::new(0),
            proven: AtomicU64::new(0),
            meeting: None,
        }
    }

    pub(super) fn pause(&self, config: &Config, salt: u32) {
        std::thread::sleep(self.delay);
        if self.jitter && !self.instant {
            let sum: u32 = config.choices().iter().sum::<u32>() * 31 + salt;
            std::thread::sleep(Duration::from_micros(u64::from(sum * 97 % 1500)));
        }
    }
}

pub(super) fn hash(config: &Config) -> ContentHash {
    ContentHash::from_parts([format!("{config:?}").as_bytes()])
}

/// The gate's proof, as far as the engine can tell.
pub(super) struct Given;

impl Proof for Given {}

pub(super) fn judged(config: &Config, verdict: Verdict) -> Judged {
    let sum: u32 = config.choices().iter().map(|choice| choice * choice).sum();
    let time = Micros::new(f64::from(sum) + 10.0).unwrap();
    let measured = (verdict == Verdict::Ok).then(|| Measured::predicted(&Given, time, "toy"));
    let mut judged = Judged::without_device(hash(config), Judgement::new(verdict, ""));
    judged.found.judgement.compared = measured.as_ref().map(|_| Compared::Whole);
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
        if self.charges {
            Clock::Charged
        } else {
            Clock::Wall
        }
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

    fn identity(&self, _task: usize, config: &Config) -> Option<ContentHash> {
        self.remembers.then(|| hash(config))
    }

    fn prepare(&self, _task: usize, config: &Config) -> Result<Preparation<()>, BoxError> {
        self.pause(config, 3);
        if self
            .refused_from
            .is_some_and(|from| config.choices()[0] >= from)
        {
            let refused = judged(config, Verdict::LaunchFailed);
            return Ok(Preparation::Judged(Box::new(refused)));
        }
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

    fn evaluate(&self, task: usize, config: &Config, (): ()) -> Result<Judged, BoxError> {
        self.pause(config, 7);
        if let Some((_, more)) = self.slow.filter(|(last, _)| task <= *last) {
            std::thread::sleep(more);
        }
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

    /// Stops at once what would take longer than the limit. A real device cannot be stopped.
    fn evaluate_within(
        &self,
        task: usize,
        config: &Config,
        (): (),
        limit: Option<Duration>,
    ) -> Result<Option<Judged>, BoxError> {
        let stops = self.order == Order::Fixed;
        let slow = self.slow.filter(|(last, _)| stops && task <= *last);
        if let Some((_, limit)) = slow.zip(limit).filter(|((_, takes), limit)| takes > limit) {
            std::thread::sleep(limit);
            return Ok(None);
        }
        self.evaluate(task, config, ()).map(Some)
    }

    fn prove(&self, _task: usize, config: &Config, judged: Judged) -> Result<Judged, BoxError> {
        self.pause(config, 11);
        self.proven.fetch_add(1, Ordering::SeqCst);
        if let Some(meeting) = &self.meeting {
            meeting.attend();
        }
        let verdict = if config.choices()[2] == 1 {
            Verdict::Incorrect
        } else {
            Verdict::Ok
        };
        Ok(judged.proven(Judgement::new(verdict, "")))
    }
}

pub(super) fn toy_space() -> Space {
    super::space(&[6, 6, 6], &["p0 * p1 <= 20"])
}

pub(super) fn plan(names: &[&str], limits: Limits, jobs: usize) -> Plan {
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
            weight: 1.0,
            work: 0.0,
        })
        .collect();
    let stored = names
        .iter()
        .map(|name| TaskStart {
            kernel: (*name).to_owned(),
            problem: "p".to_owned(),
            sizes: Vec::new(),
            template_hash: Some(ContentHash::from_parts([b"template".as_slice()])),
            reference_hash: Some(ContentHash::from_parts([b"reference".as_slice()])),
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
        known: Vec::new(),
    }
}

pub(super) fn evals(count: u64) -> Limits {
    Limits {
        evals: Some(count),
        budget: None,
        converged: None,
    }
}

pub(super) struct Outcomes {
    pub(super) result: Result<Report, EngineError>,
    pub(super) trials: Vec<TrialEvent>,
    pub(super) notes: Vec<String>,
}

impl Outcomes {
    /// Kernel, configuration, verdict and origin in the order announced.
    pub(super) fn story(&self) -> Vec<String> {
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
pub(super) fn drive(
    db: &Path,
    toy: Toy,
    mut plan: Plan,
    resume: bool,
    stop_after: Option<usize>,
) -> Outcomes {
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
        if toy.remembers {
            for task in &plan.start.tasks {
                let known = store.known_trials(&plan.start, task).await.unwrap();
                plan.known.push(known);
            }
        }
        let (sender, receiver) = watch::channel(false);
        let (mut trials, mut notes) = (Vec::new(), Vec::new());
        let mut sink = |event: &Event| {
            if let Event::Note { text } = event {
                notes.push(text.clone());
            }
            if let Event::Trial(trial) = event {
                trials.push(trial.clone());
                if stop_after == Some(trials.len()) {
                    let _ = sender.send(true);
                }
            }
        };
        let result = engine::run(&Arc::new(toy), plan, &store, receiver, &mut sink).await;
        store.close().await.unwrap();
        Outcomes {
            result,
            trials,
            notes,
        }
    });
    runtime.shutdown_background();
    outcomes
}

pub(super) async fn unfinished(store: &Store, plan: &Plan) -> StoredRun {
    store.unfinished_run(&plan.start).await.unwrap().unwrap()
}

pub(super) fn run(toy: Toy, plan: Plan) -> Outcomes {
    let dir = TempDir::new().unwrap();
    drive(&dir.path().join("t.db"), toy, plan, false, None)
}
