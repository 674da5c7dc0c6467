//! What a run came to, counted from stored results only.
#![expect(
    clippy::indexing_slicing,
    reason = "tasks are numbered by the run that made them"
)]

use super::event::{StopReason, TrialEvent};
use super::schedule::Task;
use std::collections::BTreeMap;
use std::time::Duration;
use tuner_core::record::{Compared, ConfigValues, TaskKey, TimingKind, Verdict, rank_class};

/// The fastest verified configuration of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Best {
    /// The configuration.
    pub config: ConfigValues,
    /// Its median time, microseconds.
    pub time_us: f64,
    /// How that came to be.
    pub timing: Option<TimingKind>,
    /// How its results were compared at the timed size; `None` for recorded times.
    pub compared: Option<Compared>,
}

/// One task's share of a [`Report`].
#[derive(Debug, Clone, PartialEq)]
pub struct TaskReport {
    /// Kernel, problem and device.
    pub key: TaskKey,
    /// The fastest; `None` when nothing passed.
    pub best: Option<Best>,
    /// The default configuration's time, microseconds, where it has one.
    pub default_us: Option<f64>,
    /// How many candidates got which verdict.
    pub verdicts: BTreeMap<Verdict, u64>,
    /// What further trials may still bring, as a share of the best time, with a chance of nine in
    /// ten at most; `None` where the search has no estimate.
    pub left: Option<f64>,
}

impl TaskReport {
    /// Configurations judged.
    #[must_use]
    pub fn evals(&self) -> u64 {
        self.verdicts.values().sum()
    }
}

/// How a run ended and what it found.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The run.
    pub run_id: String,
    /// Why it is over.
    pub reason: StopReason,
    /// Wall time.
    pub elapsed: Duration,
    /// The device's virtual clock, where it has one.
    pub clock: Duration,
    /// The tasks, in the order given.
    pub tasks: Vec<TaskReport>,
}

impl Report {
    /// Configurations judged.
    #[must_use]
    pub fn evals(&self) -> u64 {
        self.tasks.iter().map(TaskReport::evals).sum()
    }

    /// Whether any candidate passed.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.tasks.iter().any(|task| task.best.is_some())
    }

    /// How many got which verdict, over all tasks.
    #[must_use]
    pub fn verdicts(&self) -> BTreeMap<Verdict, u64> {
        let mut sums = BTreeMap::new();
        for (verdict, count) in self.tasks.iter().flat_map(|task| &task.verdicts) {
            *sums.entry(*verdict).or_insert(0) += count;
        }
        sums
    }
}

/// Keeps the tasks' figures up to date as results are committed.
#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) tasks: Vec<TaskReport>,
}

impl Ledger {
    pub(super) fn new(tasks: &[Task]) -> Self {
        Self {
            tasks: tasks
                .iter()
                .map(|task| TaskReport {
                    key: task.key.clone(),
                    best: None,
                    default_us: None,
                    verdicts: BTreeMap::new(),
                    left: None,
                })
                .collect(),
        }
    }

    /// Counts a stored result, and fills in what the event says of the run so far.
    pub(super) fn enter(&mut self, trial: &mut TrialEvent) {
        let task = &mut self.tasks[trial.task];
        *task.verdicts.entry(trial.verdict).or_insert(0) += 1;
        if let Some(time_us) = trial.time_us {
            if trial.origin == "default" {
                task.default_us = Some(time_us);
            }
            let rank = (rank_class(trial.compared), time_us);
            let best = task.best.as_ref();
            let best = best.map(|best| (rank_class(best.compared), best.time_us));
            trial.new_best = best.is_none_or(|best| rank < best);
            if trial.new_best {
                task.best = Some(Best {
                    config: trial.config.clone(),
                    time_us,
                    timing: trial.timing,
                    compared: trial.compared,
                });
            }
        }
        task.left = trial.left;
        trial.best_us = task.best.as_ref().map(|best| best.time_us);
        trial.evals = self.tasks.iter().map(TaskReport::evals).sum();
    }
}
