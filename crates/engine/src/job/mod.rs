//! A run as it is asked for, set up and carried out: what `tuner run` and the daemon share.
//!
//! A [`Request`] is plain data with the words of the command line. [`Prepared::new`] turns it into
//! a device and the engine's plan, and refuses what is wrong with it; [`Prepared::execute`] runs it
//! on an open store.
#![expect(
    clippy::indexing_slicing,
    reason = "tasks, kernels and GPUs are numbered by the run that was prepared with at least one; indexing JSON gives null where a key is missing"
)]

mod final_stage;
mod cuda;
mod jobs;
mod prove_budget;
mod knowing;
mod lend;
mod on_fleet;
mod request;
mod setup;
mod tasks;

pub(crate) use cuda::closed;
pub use cuda::{absent, automatic, facts as facts_of, helpers};
pub(crate) use setup::compiler_with;
pub use setup::{absolute, virtual_facts};
pub use tasks::reference_hash;

use crate as engine;
use crate::baseline::Baseline;
use crate::cuda::CudaEvaluator;
use crate::fleet::{Fleet, FleetEvaluator, PackedFiles};
use crate::knowledge::{KnowledgeError, Noted};
use crate::virtual_gpu::VirtualEvaluator;
use crate::{
    BoxError, Clock, EngineError, Evaluator, Event, Judged, Limits, Plan, Preparation, Proof,
    ReplayEvaluator, Report, format_duration,
};
use final_stage::FinalStage;
pub use jobs::Jobs;
pub use lend::{Bench, LaidOut, LendError, Lent};
pub use prove_budget::{ProveBudget, ProveBudgetError};
pub use request::Request;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tuner_core::baseline_record::Moment;
use tuner_core::objective::Objectives;
use tuner_core::record::DeviceKind;
use tuner_device::worker::host::WorkerError;
use tuner_device::{DeviceFacts, DeviceSelector};
use tuner_judge::timing::paired::DuelResult;
use tuner_kernel::catalog::CatalogError;
use tuner_kernel::declarations::DeclarationError;
use tuner_search as evolve;
use tuner_space::{Config, Diagnostics};
use tuner_store::{RunId, Store, StoreError, StoredRun};

/// Without a budget and a number of evaluations.
const DEFAULT_BUDGET: Duration = Duration::from_secs(600);

/// Why a run cannot be set up or carried out.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The asker's mistake; complete, with place and fix.
    #[error("{0}")]
    Usage(String),
    /// A file that the request names is not what it should be.
    #[error("{text}")]
    Input {
        /// The file.
        file: String,
        /// The reason, complete. It may quote the file, and is for users of this machine alone.
        text: String,
    },
    /// The GPU is not there, is held by others, or does not work; complete, with the fix.
    #[error("{0}")]
    Device(String),
    /// The results could not be stored; everything announced is.
    #[error(transparent)]
    Store(StoreError),
    /// The tuner itself failed.
    #[error(transparent)]
    Failed(#[from] anyhow::Error),
}

impl JobError {
    /// The reason for clients over a network: quotes nothing of a file that is not what it should be.
    #[must_use]
    pub fn without_excerpts(&self) -> String {
        match self {
            Self::Input { file, .. } => format!(
                "error: {file} cannot be read as what the request takes it for; the daemon's log has the \
                 reason"
            ),
            Self::Usage(text) | Self::Device(text) => text.trim_end().to_owned(),
            Self::Store(error) => error.to_string(),
            Self::Failed(error) => format!("{error:#}"),
        }
    }
}

impl From<Diagnostics> for JobError {
    fn from(diagnostics: Diagnostics) -> Self {
        Self::Input {
            file: diagnostics.file().to_owned(),
            text: diagnostics.to_string(),
        }
    }
}

impl From<CatalogError> for JobError {
    fn from(error: CatalogError) -> Self {
        match error {
            CatalogError::Invalid(diagnostics) => (*diagnostics).into(),
            other => Self::Usage(other.to_string()),
        }
    }
}

impl From<KnowledgeError> for JobError {
    fn from(error: KnowledgeError) -> Self {
        Self::Input {
            file: error.path.clone(),
            text: format!("error: {error}"),
        }
    }
}

impl From<DeclarationError> for JobError {
    fn from(error: DeclarationError) -> Self {
        match error {
            DeclarationError::Compile(error) => Self::Failed(error.into()),
            wrong => Self::Usage(wrong.to_string()),
        }
    }
}

pub(crate) fn usage(error: impl std::fmt::Display) -> JobError {
    JobError::Usage(format!("error: {error}"))
}

/// A failure of the store, as what it means for the asker.
fn store_error(error: StoreError) -> JobError {
    if error.is_bad_input() {
        usage(error)
    } else {
        JobError::Store(error)
    }
}

/// The failure of a device or of the compiler before it, as one of the job that it works for.
pub(crate) fn device_error(error: BoxError) -> JobError {
    engine_error(EngineError::Device(error))
}

/// The failure of an engine as one of the job that it ran for.
pub(crate) fn engine_error(error: EngineError) -> JobError {
    match error {
        EngineError::Store(error) => store_error(error),
        EngineError::Fleet(error) => usage(error),
        EngineError::Device(error) => match error.downcast::<WorkerError>() {
            Ok(unusable) if matches!(*unusable, WorkerError::Unusable(_)) => {
                usage(format!("{unusable}; mend the space's `reference`"))
            }
            Ok(other) => JobError::Failed((*other).into()),
            Err(other) => JobError::Failed(EngineError::Device(other).into()),
        },
        other => JobError::Failed(other.into()),
    }
}

/// What a run waits for: of all runs with the same key, one is at work at a time.
///
/// # Errors
/// A device that is none.
pub fn device_key(request: &Request) -> Result<String, JobError> {
    Ok(match request.selector()? {
        DeviceSelector::Replay(file) => DeviceSelector::Replay(setup::real(&file)).to_string(),
        selector => setup::resolved(selector).to_string(),
    })
}

/// A device of any kind, ready for the engine.
enum Device {
    Replay(Arc<ReplayEvaluator>),
    Virtual(Arc<VirtualEvaluator>),
    Cuda(Arc<CudaEvaluator>),
    Fleet(Arc<FleetEvaluator>, PackedFiles),
}

/// A run that is set up, and not begun.
pub struct Prepared {
    device: Device,
    plan: Plan,
    /// The limits are the asker's own, not the default.
    limited: bool,
    strategy_given: bool,
    prove_budget_given: bool,
    jobs: Option<Jobs>,
    /// Peers to compare with, by task.
    baselines: Vec<Option<Baseline>>,
    /// Files of knowledge; `None`: the search starts from nothing.
    knowledge: Option<Vec<PathBuf>>,
    /// Predictions of the prior, by task.
    foreseen: Vec<Option<evolve::Experience>>,
    /// What the search knows, for the store.
    noted: Option<Noted>,
    /// What the asker should know; each a line.
    pub notes: Vec<String>,
}

impl Prepared {
    /// Sets a run up; names of kernels are looked for from `folder` upwards.
    ///
    /// # Errors
    /// Everything that is wrong with the request, and a compiler that cannot be had.
    pub fn new(request: &Request, folder: &Path) -> Result<Self, JobError> {
        setup::prepare(request, folder)
    }

    /// Sets a run up whose candidates are judged by a fleet. `auto` and `cuda` mean what its workers
    /// lend, as does the name of one of their devices.
    ///
    /// # Errors
    /// As for [`Prepared::new`], and a device that nobody lends.
    pub fn on_fleet(
        request: &Request,
        folder: &Path,
        fleet: Arc<dyn Fleet>,
    ) -> Result<Self, JobError> {
        on_fleet::prepare(request, folder, fleet)
    }

    /// The device.
    #[must_use]
    pub fn facts(&self) -> &DeviceFacts {
        match &self.device {
            Device::Replay(evaluator) => evaluator.facts(),
            Device::Virtual(evaluator) => evaluator.facts(),
            Device::Cuda(evaluator) => evaluator.facts(),
            Device::Fleet(evaluator, _) => evaluator.facts(),
        }
    }

    /// The engine's plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Whether the device's own clock counts, and not the wall's.
    #[must_use]
    pub fn charged(&self) -> bool {
        Clock::of(self.facts().kind) == Clock::Charged
    }

    /// The name that the run is stored under.
    pub fn name(&mut self, id: RunId) {
        self.plan.id = Some(id);
    }

    /// Goes on with an interrupted run of the same kernels, device and seed, if the store has one;
    /// with its strategy and limits where the request gives none.
    ///
    /// # Errors
    /// The run used another strategy, or the store cannot be read.
    pub async fn resume_latest(&mut self, store: &Store) -> Result<(), JobError> {
        let found = store.unfinished_run(&self.plan.start).await;
        match found.map_err(store_error)? {
            Some(stored) => self.resume(stored),
            None => {
                self.notes.push(
                    "note: no unfinished run of the same kernels, device and seed: a new one begins"
                        .to_owned(),
                );
                Ok(())
            }
        }
    }

    /// Goes on with this run.
    ///
    /// # Errors
    /// It used another strategy than the request asks for.
    pub fn resume(&mut self, stored: StoredRun) -> Result<(), JobError> {
        if self.strategy_given && self.plan.start.strategy != stored.strategy {
            return Err(usage(format!(
                "run {} used --strategy {}; resume with that, or start a new run without --resume",
                stored.id, stored.strategy
            )));
        }
        self.plan.start.strategy.clone_from(&stored.strategy);
        if !self.limited {
            self.plan.limits.evals = stored.settings["evals"].as_u64();
            self.plan.limits.budget = stored.settings["budget_s"]
                .as_f64()
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            self.plan.limits.converged = stored.settings["until_converged"].as_f64();
            self.limited = self.plan.limits != Limits::default();
        }
        let stored_objective = stored.settings["objective"].as_str();
        let objectives = stored_objective.and_then(|text| text.parse().ok());
        if self.plan.objectives.is_some() && self.plan.objectives != objectives {
            return Err(usage(format!(
                "run {} had {}; resume with that, or start a new run without --resume",
                stored.id,
                stored_objective.map_or("no --objective".to_owned(), |text| format!(
                    "--objective {text}"
                ))
            )));
        }
        self.plan.objectives = objectives;
        match &self.device {
            Device::Cuda(evaluator) => {
                evaluator.measure_energy(objectives.is_some_and(Objectives::measures_energy));
            }
            Device::Virtual(evaluator) if !self.prove_budget_given => {
                if let Some(limit) = stored.settings["prove_budget"].as_u64() {
                    evaluator.set_proof_limit(limit);
                }
            }
            Device::Virtual(_) | Device::Replay(_) | Device::Fleet(..) => {}
        }
        self.plan.resume = Some(stored);
        Ok(())
    }

    /// Gives a run without limits one, and notes the settings for the store.
    pub fn settle(&mut self) {
        if !self.limited && self.plan.start.strategy != "exhaustive" {
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
        self.plan.start.settings = serde_json::json!({
            "evals": self.plan.limits.evals,
            "budget_s": self.plan.limits.budget.map(|budget| budget.as_secs_f64()),
            "jobs": self.jobs,
            "window": engine::WINDOW,
        });
        if let Device::Virtual(evaluator) = &self.device {
            let limit = evaluator.proof_limit().unwrap_or(0);
            self.plan.start.settings["prove_budget"] = serde_json::json!(limit);
        }
        if let Some(objectives) = self.plan.objectives {
            self.plan.start.settings["objective"] = serde_json::json!(objectives.to_string());
        }
        if let Some(share) = self.plan.limits.converged {
            self.plan.start.settings["until_converged"] = serde_json::json!(share);
        }
        if let Some(noted) = &self.noted {
            self.plan.start.settings["knowledge"] = serde_json::json!(noted);
        }
    }

    /// Finds out before the run begins whether its results can be compared with the references, and
    /// notes what is done where they cannot. Ends early when `shutdown` turns true.
    ///
    /// # Errors
    /// A space's reference is wrong, or the tuner itself failed.
    pub async fn look_ahead(
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
        let looking = crate::threads::run_blocking("ahead", move || evaluator.look_ahead(&starts));
        let found = tokio::select! {
            found = looking => found,
            _ = shutdown.wait_for(|stop| *stop) => return Ok(()),
        };
        let found = found.map_err(|error| JobError::Failed(error.into()))?;
        self.notes.extend(found.map_err(device_error)?);
        Ok(())
    }

    /// Prepares and judges one configuration of a task outside of a run; nothing is stored.
    ///
    /// # Errors
    /// The tuner itself failed; a candidate that fails is a judgement.
    pub fn judge(&self, task: usize, config: &Config) -> Result<Judged, JobError> {
        match &self.device {
            Device::Replay(evaluator) => judge(&**evaluator, task, config),
            Device::Virtual(evaluator) => judge(&**evaluator, task, config),
            Device::Cuda(evaluator) => judge(&**evaluator, task, config),
            Device::Fleet(evaluator, _) => judge(&**evaluator, task, config),
        }
    }

    /// Runs the timed problem of a configuration whole, outside of a run; nothing is stored.
    ///
    /// # Errors
    /// The tuner itself failed, or the device is not a virtual one, which this process proves on.
    pub fn prove(&self, task: usize, config: &Config) -> Result<Proof, JobError> {
        match &self.device {
            Device::Virtual(evaluator) => evaluator.make_proof(task, config).map_err(device_error),
            Device::Replay(_) | Device::Cuda(_) | Device::Fleet(..) => {
                Err(usage("only results of a virtual GPU are proven"))
            }
        }
    }

    /// Compares two configurations of a task that are known to be right, interleaved on a real GPU:
    /// the first over the second. `None` on other devices, whose times do not vary.
    ///
    /// # Errors
    /// The device failed.
    pub fn duel(&self, task: usize, configs: [&Config; 2]) -> Result<Option<DuelResult>, JobError> {
        match &self.device {
            Device::Cuda(evaluator) => evaluator
                .duel(task, configs, self.plan.start.seed.0)
                .map_err(device_error),
            Device::Replay(_) | Device::Virtual(_) | Device::Fleet(..) => Ok(None),
        }
    }

    /// Counts time that the run used before it was interrupted against its budget of wall time.
    pub fn spend(&mut self, spent: Duration) {
        if !self.charged() {
            let budget = self.plan.limits.budget;
            self.plan.limits.budget = budget.map(|budget| budget.saturating_sub(spent));
        }
    }

    /// Carries the run out, until a limit is reached or `shutdown` turns true.
    ///
    /// # Errors
    /// The tuner itself failed; everything finished before is stored.
    pub async fn execute(
        self,
        store: &Store,
        shutdown: watch::Receiver<bool>,
        sink: &mut (dyn FnMut(&Event) + Send),
    ) -> Result<Report, JobError> {
        let report = match &self.device {
            Device::Replay(evaluator) => {
                engine::run(evaluator, self.plan, store, shutdown, sink).await
            }
            Device::Virtual(evaluator) => {
                engine::run(evaluator, self.plan, store, shutdown, sink).await
            }
            Device::Cuda(evaluator) => {
                if tuner_device::gpu::stand_in::refuses(store.path()) {
                    return Err(cuda::stand_in());
                }
                let seed = self.plan.start.seed.0;
                let mut around = FinalStage::new(&self.plan.tasks, self.baselines);
                let stop = shutdown.clone();
                for text in around.visit(Moment::Before, evaluator, &stop).await {
                    sink(&Event::Note { text });
                }
                let report = {
                    let mut both = |event: &Event| {
                        around.take(event);
                        sink(event);
                    };
                    engine::run(evaluator, self.plan, store, shutdown, &mut both).await
                };
                if let Ok(report) = &report {
                    let closing = (seed, &stop);
                    around.end(report, evaluator, store, closing, sink).await;
                }
                report
            }
            Device::Fleet(evaluator, files) => {
                let opened = (Arc::clone(evaluator), files.clone());
                on_fleet::execute(opened, self.plan, store, shutdown, sink).await
            }
        };
        report.map_err(engine_error)
    }
}

fn judge<E: Evaluator>(evaluator: &E, task: usize, config: &Config) -> Result<Judged, JobError> {
    let judge = || match evaluator.prepare(task, config)? {
        Preparation::Judged(judged) => Ok(*judged),
        Preparation::Ready { work, .. } => {
            let mut judged = evaluator.evaluate(task, config, work)?;
            if judged.put_off {
                judged = evaluator.prove(task, config, judged)?;
            }
            if evaluator.proof_limit().is_some() && judged.lacks_proof() {
                judged = evaluator.prove_whole(task, config, judged)?;
            }
            Ok(judged)
        }
    };
    judge().map_err(device_error)
}
