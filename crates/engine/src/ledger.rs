//! Totals of a run, counted from stored results only.

use super::event::{StopReason, TrialEvent};
use super::schedule::Task;
use std::collections::BTreeMap;
use std::time::Duration;
use tuner_core::judgement::Judgement;
use tuner_core::record::{Compared, ConfigValues, TaskKey, TimingKind, Verdict, rank_class};

/// The fastest verified configuration of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Best {
    /// The configuration.
    pub config: ConfigValues,
    /// Its median time, microseconds.
    pub time_us: f64,
    /// Source of the time.
    pub timing: Option<TimingKind>,
    /// Comparison of its results at the timed size; `None` for recorded times.
    pub compared: Option<Compared>,
    /// 95 % interval of the time, if it was measured.
    pub ci95_us: Option<[f64; 2]>,
    /// Its time in the search, microseconds, if `time_us` is of the run's final comparison.
    pub search_us: Option<f64>,
}

/// One task's share of a [`Report`].
#[derive(Debug, Clone, PartialEq)]
pub struct TaskReport {
    /// Kernel, problem and device.
    pub key: TaskKey,
    /// The fastest of the final comparison, or of the search without one; `None` if none passed.
    pub best: Option<Best>,
    /// The default configuration's time in the search, microseconds, if it has one.
    pub default_us: Option<f64>,
    /// 95 % interval of that time, if it was measured.
    pub default_ci95_us: Option<[f64; 2]>,
    /// Trials answered by earlier runs.
    pub known: u64,
    /// Trials whose launch was refused before a compile; they are not counted as judged.
    pub free: u64,
    /// Every configuration of the space is judged.
    pub exhausted: bool,
    /// Number of candidates by verdict.
    pub verdicts: BTreeMap<Verdict, u64>,
    /// Upper bound of the expected gain of further trials, as a share of the best time, with 90 %
    /// confidence; `None` without an estimate.
    pub left: Option<f64>,
}

impl TaskReport {
    /// Returns the number of judged configurations.
    #[must_use]
    pub fn evals(&self) -> u64 {
        self.trials().saturating_sub(self.free)
    }

    /// Returns the number of trials.
    #[must_use]
    pub fn trials(&self) -> u64 {
        self.verdicts.values().sum()
    }

    /// Returns the speed-up of the best over the default, both in the search: the times of a final
    /// comparison come from another protocol.
    #[must_use]
    pub fn speedup(&self) -> Option<f64> {
        let best = self.best.as_ref()?;
        Some(self.default_us? / best.search_us.unwrap_or(best.time_us))
    }

    /// Returns the state of its tuning.
    #[must_use]
    pub fn state(&self) -> TaskState {
        let evals = self.evals();
        let settled = self.left.is_some_and(|left| left <= CONVERGED_SHARE);
        if self.trials() == 0 {
            TaskState::NotReached
        } else if self.exhausted || settled {
            TaskState::Converged
        } else if evals < FEW_TRIALS {
            TaskState::FewTrials
        } else {
            TaskState::Tuned
        }
    }
}

/// Trials below which a task is not called tuned: the model of the search has hardly begun.
const FEW_TRIALS: u64 = 25;
/// Remaining gain at which a task is called converged.
const CONVERGED_SHARE: f64 = 0.02;

/// State of a task at the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TaskState {
    /// Further trials are expected to gain little, or none is left.
    Converged,
    /// It had enough trials for its search.
    Tuned,
    /// It had too few trials for its search.
    FewTrials,
    /// It had no trial.
    NotReached,
}

impl std::fmt::Display for TaskState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Converged => "converged",
            Self::Tuned => "tuned",
            Self::FewTrials => "few trials",
            Self::NotReached => "not reached",
        })
    }
}

/// End and result of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The run.
    pub run_id: String,
    /// Reason of its end.
    pub reason: StopReason,
    /// Wall time.
    pub elapsed: Duration,
    /// The device's virtual clock, if it has one.
    pub clock: Duration,
    /// The tasks, in the order given.
    pub tasks: Vec<TaskReport>,
}

impl Report {
    /// Returns the number of judged configurations.
    #[must_use]
    pub fn evals(&self) -> u64 {
        self.tasks.iter().map(TaskReport::evals).sum()
    }

    /// Reports whether any candidate passed.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.tasks.iter().any(|task| task.best.is_some())
    }

    /// Returns the number of candidates by verdict, over all tasks.
    #[must_use]
    pub fn verdicts(&self) -> BTreeMap<Verdict, u64> {
        let mut sums = BTreeMap::new();
        for (verdict, count) in self.tasks.iter().flat_map(|task| &task.verdicts) {
            *sums.entry(*verdict).or_insert(0) += count;
        }
        sums
    }
}

/// Updates the tasks' figures as results are committed.
#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) tasks: Vec<TaskReport>,
    /// Number of valid configurations, by task.
    valid: Vec<u128>,
    /// The fastest of each task, in rank order: a proof may withdraw the first.
    fastest: Vec<Vec<Best>>,
    /// The default configuration of each task, once it has passed.
    defaults: Vec<Option<ConfigValues>>,
}

/// Length of a task's list of the fastest. Proofs are postponed for few trials of a task.
const MAX_FASTEST: usize = 16;

impl Best {
    fn rank(&self) -> (u8, f64) {
        (rank_class(self.compared), self.time_us)
    }
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
                    default_ci95_us: None,
                    known: 0,
                    free: 0,
                    exhausted: false,
                    verdicts: BTreeMap::new(),
                    left: None,
                })
                .collect(),
            valid: tasks.iter().map(|task| task.space.count()).collect(),
            fastest: vec![Vec::new(); tasks.len()],
            defaults: vec![None; tasks.len()],
        }
    }

    /// Counts a stored result, and completes the event with the run's totals so far.
    #[expect(
        clippy::indexing_slicing,
        reason = "tasks are numbered by the run that made them"
    )]
    pub(super) fn enter(&mut self, trial: &mut TrialEvent) {
        let task = &mut self.tasks[trial.task];
        *task.verdicts.entry(trial.verdict).or_insert(0) += 1;
        task.known += u64::from(trial.known && !trial.free);
        task.free += u64::from(trial.free);
        task.exhausted = u128::from(task.trials()) >= self.valid[trial.task];
        if let Some(time_us) = trial.time_us {
            if trial.origin == "default" {
                task.default_us = Some(time_us);
                task.default_ci95_us = trial.ci95_us;
                self.defaults[trial.task] = Some(trial.config.clone());
            }
            let found = Best {
                config: trial.config.clone(),
                time_us,
                timing: trial.timing,
                compared: trial.compared,
                ci95_us: trial.ci95_us,
                search_us: None,
            };
            let fastest = &mut self.fastest[trial.task];
            trial.new_best = insert_ranked(fastest, found) == 0;
            task.best = fastest.first().cloned();
        }
        task.left = trial.left;
        trial.best_us = task.best.as_ref().map(|best| best.time_us);
        trial.evals = self.tasks.iter().map(TaskReport::evals).sum();
    }

    /// Takes the result of a proof of a trial that had passed.
    #[expect(
        clippy::indexing_slicing,
        reason = "tasks are numbered by the run that made them"
    )]
    pub(super) fn take_proof(&mut self, task: usize, config: &ConfigValues, proof: &Judgement) {
        let (report, fastest) = (&mut self.tasks[task], &mut self.fastest[task]);
        if !proof.is_ok() {
            // The trial was counted as passed when it was announced.
            let passed = report.verdicts.get_mut(&Verdict::Ok);
            passed.into_iter().for_each(|count| *count -= 1);
            report.verdicts.retain(|_, count| *count > 0);
            *report.verdicts.entry(proof.verdict).or_insert(0) += 1;
            // Not by its time: others may have the same predicted one.
            if self.defaults[task].as_ref() == Some(config) {
                (report.default_us, report.default_ci95_us) = (None, None);
            }
        }
        if let Some(at) = fastest.iter().position(|best| best.config == *config) {
            let found = fastest.remove(at);
            if proof.is_ok() {
                let compared = proof.compared;
                insert_ranked(fastest, Best { compared, ..found });
            }
        }
        report.best = fastest.first().cloned();
    }
}

/// Inserts a time into the list of the fastest, and returns its place.
fn insert_ranked(fastest: &mut Vec<Best>, found: Best) -> usize {
    let at = fastest.partition_point(|other| other.rank() <= found.rank());
    fastest.insert(at, found);
    fastest.truncate(MAX_FASTEST);
    at
}

#[cfg(test)]
mod tests;
