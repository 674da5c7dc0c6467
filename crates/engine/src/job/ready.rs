//! Last stage of the setup: prior knowledge, references, limits.

use super::{Device, JobError, Prepared, device_error, usage};
use crate::foresight::ForecastRequest;
use crate::knowledge::{self, KnowledgeRecord};
use crate::threads::run_blocking;
use crate::{Evaluator as _, format_duration};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tuner_core::objective::Objectives;
use tuner_core::record::DeviceKind;
use tuner_core::settings::RunSettings;
use tuner_search::{Knowledge, StrategyName};
use tuner_store::Store;

/// Budget without a given budget and number of evaluations.
pub const DEFAULT_BUDGET: Duration = Duration::from_secs(600);

/// Share of a budget that each step before the run may take, as a divisor: the predictions of the
/// prior, and the check of the references.
const STEP_BUDGET_DIVISOR: u32 = 10;

impl Prepared {
    /// Completes the setup before [`Prepared::execute`]: predictions of the prior, prior knowledge, a
    /// check of the references, and the limits. Call it after [`Prepared::resume`]. Ends early when
    /// `shutdown` turns true.
    ///
    /// # Errors
    /// An invalid file of knowledge, a wrong reference, a store that cannot be read, or a failure of
    /// the tuner itself.
    pub async fn ready(
        &mut self,
        store: &Store,
        shutdown: &watch::Receiver<bool>,
    ) -> Result<(), JobError> {
        // First, because `load_knowledge` takes the predictions as a source.
        self.predict_prior(shutdown.clone()).await?;
        self.load_knowledge(store).await?;
        self.load_known(store).await?;
        self.load_costs(store).await?;
        self.check_references(shutdown.clone()).await?;
        // Last, because the stored settings include the knowledge.
        self.finalize_limits();
        Ok(())
    }

    /// Predicts configurations across each space with the prior, if there is one, in addition to
    /// the knowledge of [`Prepared::load_knowledge`]. Takes at most a tenth of the budget, and ends early
    /// when `shutdown` turns true.
    ///
    /// # Errors
    /// The compiler does not work.
    async fn predict_prior(&mut self, shutdown: watch::Receiver<bool>) -> Result<(), JobError> {
        if self.knowledge.is_none() || !self.uses_knowledge() {
            return Ok(());
        }
        let deadline = self.step_deadline();
        let spaces = self.plan.tasks.iter().map(|task| {
            let start = task.start.iter().map(|point| point.config.clone());
            (task.space.clone(), start.collect())
        });
        let request = ForecastRequest {
            spaces: spaces.collect(),
            seed: self.plan.start.seed.0,
            threads: self.plan.jobs,
            stopped: Box::new(move || {
                *shutdown.borrow() || deadline.is_some_and(|end| Instant::now() >= end)
            }),
        };
        let found = match &self.device {
            Device::Virtual(evaluator) => {
                let evaluator = Arc::clone(evaluator);
                run_blocking("prior", move || evaluator.predict_prior(&request)).await
            }
            Device::Cuda(evaluator) => {
                let evaluator = Arc::clone(evaluator);
                run_blocking("prior", move || evaluator.predict_prior(&request)).await
            }
            // The workers of a fleet that compile a candidate also run the model.
            Device::Replay(_) | Device::Fleet(..) => return Ok(()),
        };
        let found = found.map_err(|error| JobError::Failed(error.into()))?;
        self.prior_experiences = found.map_err(device_error)?;
        Ok(())
    }

    /// Returns the moment at which a step of the setup that begins now has had its share of the budget;
    /// `None` if time does not limit the run.
    fn step_deadline(&self) -> Option<Instant> {
        let budget = self.plan.limits.budget;
        let budget = budget.or(self.lacks_limits().then_some(DEFAULT_BUDGET))?;
        Instant::now().checked_add(budget / STEP_BUDGET_DIVISOR)
    }

    /// Reports whether the run needs a default limit; an exhaustive one ends by itself.
    fn lacks_limits(&self) -> bool {
        !self.limited && self.plan.start.strategy != "exhaustive"
    }

    /// Reports whether the strategy uses prior knowledge.
    fn uses_knowledge(&self) -> bool {
        StrategyName::parse(&self.plan.start.strategy).is_ok_and(StrategyName::has_model)
    }

    /// Makes the search learn from concurrent runs in the same store.
    pub fn learn_from_others(&mut self) {
        if self.uses_knowledge() {
            self.plan.live.clone_from(&self.knowledge);
        }
    }

    /// Loads prior knowledge of the search: results of other devices, problems and versions of the
    /// kernels in the store, and the files of the request. A resumed run gets the same knowledge as
    /// before.
    ///
    /// # Errors
    /// An invalid file of knowledge, one that changed since the interrupted run began, and a store
    /// that cannot be read.
    async fn load_knowledge(&mut self, store: &Store) -> Result<(), JobError> {
        let before = self.plan.resume.as_ref();
        let before = before.map(|stored| KnowledgeRecord::from_settings(&stored.settings));
        let Some(files) = &self.knowledge else {
            return match before {
                Some(Some(_)) => Err(usage(
                    "the interrupted run knew results from elsewhere; leave --no-knowledge out, or \
                     begin a new run without --resume",
                )),
                _ => Ok(()),
            };
        };
        // A resumed search with new knowledge would not repeat its steps.
        if matches!(before, Some(None)) || !self.uses_knowledge() {
            return Ok(());
        }
        let before = before.flatten();
        let start = &self.plan.start;
        // A repeated run would know of each task what the run before it measured of the others, and
        // take another path than that run.
        let without = store.runs_of_same_tasks(start).await?;
        let loaded = knowledge::load(start, store, files, before.as_ref(), &without).await?;
        let (gathered, mut noted) = loaded;
        let mut predictions = std::mem::take(&mut self.prior_experiences).into_iter();
        for (task, gathered) in self.plan.tasks.iter_mut().zip(gathered) {
            let predicted = predictions.next().flatten();
            let experiences: Vec<_> = predicted.into_iter().chain(gathered).collect();
            task.knowledge = Knowledge::new(&task.space, &experiences);
            let names: Vec<String> = task.knowledge.names().map(str::to_owned).collect();
            noted.sources.push(names);
        }
        self.notes
            .extend(knowledge::notes::describe_known(&self.plan.tasks));
        let knows = noted.sources.iter().any(|names| !names.is_empty());
        self.knowledge_record = knows.then_some(noted);
        Ok(())
    }

    /// Loads the trials of earlier runs that answer proposals.
    pub(super) async fn load_known(&mut self, store: &Store) -> Result<(), JobError> {
        let energy = self
            .plan
            .objectives
            .is_some_and(Objectives::measures_energy);
        // A fleet's workers name their candidates themselves, and stored times may lack an energy.
        if self.fresh || energy || matches!(self.device, Device::Fleet(..)) {
            return Ok(());
        }
        let start = &self.plan.start;
        let mut known = Vec::with_capacity(start.tasks.len());
        for task in &start.tasks {
            let trials = store.known_trials(start, task).await;
            known.push(trials?);
        }
        self.plan.known = known;
        Ok(())
    }

    /// Adds a default limit to a run without limits, and records the settings for the store.
    fn finalize_limits(&mut self) {
        if self.lacks_limits() {
            let clock = match self.plan.start.device.kind {
                DeviceKind::Replay => " of recorded time",
                _ => "",
            };
            self.notes.push(format!(
                "note: neither --budget nor --evals: stops after {}{clock}",
                format_duration(DEFAULT_BUDGET)
            ));
            self.plan.limits.budget = Some(DEFAULT_BUDGET);
        }
        let proof_limit = match &self.device {
            Device::Virtual(evaluator) => Some(evaluator.proof_limit().unwrap_or(0)),
            Device::Cuda(_) | Device::Replay(_) | Device::Fleet(..) => None,
        };
        let objectives = self.plan.objectives;
        let settings = RunSettings {
            evals: self.plan.limits.evals,
            budget_s: self.plan.limits.budget.map(|budget| budget.as_secs_f64()),
            jobs: self.jobs.map(|jobs| jobs.get().into()),
            window: Some(crate::WINDOW as u64),
            prove_budget: proof_limit,
            arch: self.arch.clone(),
            objective: objectives.map(|objectives| objectives.to_string()),
            until_converged: self.plan.limits.converged,
            knowledge: self
                .knowledge_record
                .as_ref()
                .map(|noted| serde_json::json!(noted)),
        };
        self.plan.start.settings = serde_json::json!(settings);
    }

    /// Checks before the run begins whether its results can be compared with the references, and
    /// adds notes on the replacement if they cannot. Takes at most a tenth of the budget, and ends
    /// early when `shutdown` turns true.
    ///
    /// # Errors
    /// A space's reference is wrong, or the tuner itself failed.
    async fn check_references(
        &mut self,
        mut shutdown: watch::Receiver<bool>,
    ) -> Result<(), JobError> {
        let Device::Virtual(evaluator) = &self.device else {
            return Ok(());
        };
        let evaluator = Arc::clone(evaluator);
        let tasks = self.plan.tasks.iter();
        let starts = tasks.map(|task| task.start.first().map(|point| point.config.clone()));
        let starts: Vec<_> = starts.collect();
        let deadline = self.step_deadline();
        let looking = move || evaluator.check_references(&starts, deadline);
        let looking = run_blocking("references", looking);
        let found = tokio::select! {
            found = looking => found,
            _ = shutdown.wait_for(|stop| *stop) => return Ok(()),
        };
        let found = found.map_err(|error| JobError::Failed(error.into()))?;
        self.notes.extend(found.map_err(device_error)?);
        Ok(())
    }
}
