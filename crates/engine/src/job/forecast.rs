//! Forecast of a run: its tasks in order, with estimated times.

use super::{JobError, Prepared};
use crate::schedule::FIRST_TRIALS;
use std::collections::HashMap;
use std::time::Duration;
use tuner_core::record::DeviceKind;
use tuner_store::Store;

/// A task of a planned run.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedRow {
    /// Kernel name.
    pub kernel: String,
    /// Problem name.
    pub problem: String,
    /// Number of valid configurations, decimal.
    pub valid: String,
    /// Weight of its gain.
    pub weight: f64,
    /// Trials of earlier runs that may answer proposals.
    pub known: usize,
    /// Mean time of a trial in earlier runs; `None` without a record of it.
    pub trial: Option<Duration>,
    /// Estimated time of its default and first further trials.
    pub first_trials: Option<Duration>,
}

impl Prepared {
    /// Orders tasks by the recorded cost of their trials in earlier runs.
    pub(super) async fn load_costs(&mut self, store: &Store) -> Result<(), JobError> {
        if !self.ignores_costs() {
            let costs = self.costs(store).await?;
            self.apply_costs(&costs);
        }
        Ok(())
    }

    /// Returns the unit in which the run counts the cost of a trial.
    #[must_use]
    pub fn cost_unit(&self) -> &'static str {
        match self.facts().kind {
            DeviceKind::Vgpu if self.plan.limits.evals.is_some() => "trial",
            DeviceKind::Vgpu | DeviceKind::Cuda | DeviceKind::Replay => "second",
        }
    }

    /// Reports whether the order does not depend on times: a number of trials limits the run.
    fn ignores_costs(&self) -> bool {
        self.charged() || self.plan.limits.evals.is_some()
    }

    fn apply_costs(&mut self, costs: &HashMap<(String, String), f64>) {
        let tasks = &mut self.plan.tasks;
        let known = |task: &crate::Task| {
            let key = (task.key.kernel.clone(), task.key.problem.clone());
            costs.get(&key).copied()
        };
        let (mut seconds, mut work) = (0.0, 0.0);
        for task in tasks.iter() {
            if let Some(cost) = known(task) {
                seconds += cost;
                work += task.work;
            }
        }
        if seconds == 0.0 || work == 0.0 {
            return;
        }
        // Others are assumed to take the same time per work.
        for task in tasks {
            task.work = known(task).unwrap_or(task.work * seconds / work);
        }
    }

    async fn costs(&self, store: &Store) -> Result<HashMap<(String, String), f64>, JobError> {
        let costs = store.trial_costs(&self.plan.start).await;
        let costs = costs?.into_iter();
        Ok(costs
            .map(|cost| ((cost.kernel, cost.problem), cost.seconds))
            .collect())
    }

    /// Returns the tasks in the order of their first trials. `store`: the database, if it exists.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn planned(&mut self, store: Option<&Store>) -> Result<Vec<PlannedRow>, JobError> {
        let mut costs = HashMap::new();
        if let Some(store) = store {
            costs = self.costs(store).await?;
            if !self.ignores_costs() {
                self.apply_costs(&costs);
            }
            self.load_known(store).await?;
        }
        let mut tasks: Vec<_> = self.plan.tasks.iter().enumerate().collect();
        // The order in which `TaskState::turn_rank` gives tasks their first trials.
        tasks.sort_by(|(_, a), (_, b)| a.work.total_cmp(&b.work));
        let rows = tasks.into_iter().map(|(at, task)| {
            let key = (task.key.kernel.clone(), task.key.problem.clone());
            let trial = costs.get(&key).copied();
            let trial = trial.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            PlannedRow {
                valid: task.space.count().to_string(),
                weight: task.weight,
                known: self.plan.known.get(at).map_or(0, HashMap::len),
                trial,
                first_trials: trial.map(|trial| trial * FIRST_TRIALS as u32),
                kernel: key.0,
                problem: key.1,
            }
        });
        Ok(rows.collect())
    }
}
