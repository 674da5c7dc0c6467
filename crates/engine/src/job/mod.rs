//! Request, setup and execution of a run, shared by `tuner run` and the daemon.
//!
//! A [`Request`] is plain data in the terms of the command line. [`Prepared::new`] validates it and
//! turns it into a device and the engine's plan; [`Prepared::execute`] runs it on an open store.
#![expect(
    clippy::indexing_slicing,
    reason = "tasks, kernels and GPUs are numbered by the run that was prepared with at least one; indexing JSON gives null where a key is missing"
)]

pub(crate) mod error;
mod final_stage;
mod cuda;
mod forecast;
mod identity;
mod jobs;
mod plausible;
mod prove_budget;
mod ready;
mod lend;
mod on_fleet;
mod request;
mod setup;
mod tasks;

pub(crate) use cuda::closed;
pub use cuda::{absent, automatic, facts as facts_of, helpers};
pub use error::JobError;
pub(crate) use error::{device_error, engine_error, usage};
pub use identity::reference_hash;
pub use setup::{absolute, virtual_facts};
pub(crate) use setup::{compiler_with, requested_target};
pub use tasks::definition;

use crate as engine;
use crate::baseline::Baseline;
use crate::cuda::CudaEvaluator;
use crate::fleet::{Fleet, FleetEvaluator, PackedFiles};
use crate::knowledge::KnowledgeRecord;
use crate::virtual_gpu::VirtualEvaluator;
use crate::{
    Clock, Evaluator, Event, Judged, Limits, Plan, Preparation, Proof, ReplayEvaluator, Report,
};
use final_stage::FinalStage;
pub use forecast::PlannedRow;
pub use jobs::Jobs;
pub use lend::{Bench, LendError, LocalPaths, WorkerResource};
pub use prove_budget::{ProveBudget, ProveBudgetError};
pub use ready::DEFAULT_BUDGET;
pub use request::{ChangedCode, FreshChecks, KnownKernel, Request, SourceText};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tuner_core::activity::Owner;
use tuner_core::baseline_record::Moment;
use tuner_core::objective::Objectives;
use tuner_core::settings::RunSettings;
use tuner_device::{DeviceFacts, DeviceSelector};
use tuner_judge::timing::paired::PairedResult;
use tuner_search as evolve;
use tuner_space::Config;
use tuner_store::{RunId, Store, StoredRun};

/// Returns the key that serializes runs: of all runs with the same key, one executes at a time.
///
/// # Errors
/// An invalid device.
pub fn device_key(request: &Request) -> Result<String, JobError> {
    Ok(match request.selector()? {
        // Two paths to one recording must give the same key.
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

/// A run that is set up but not started.
pub struct Prepared {
    device: Device,
    plan: Plan,
    /// The limits come from the request, not from the default.
    limited: bool,
    strategy_given: bool,
    prove_budget_given: bool,
    jobs: Option<Jobs>,
    /// The requested compile target.
    arch: Option<String>,
    /// Judges every candidate again instead of reusing results.
    fresh: bool,
    /// Baselines to compare with, by task.
    baselines: Vec<Option<Baseline>>,
    /// Owner of the activities on its candidates; a recording has none.
    pub owner: Option<Owner>,
    /// Files of knowledge; `None`: the search starts without knowledge.
    knowledge: Option<Vec<PathBuf>>,
    /// Predictions of the prior, by task.
    prior_experiences: Vec<Option<evolve::Experience>>,
    /// Knowledge of the search, for the store.
    knowledge_record: Option<KnowledgeRecord>,
    /// Notes for the user, one line each.
    pub notes: Vec<String>,
}

impl Prepared {
    /// Sets up a run; kernel names are searched for from `folder` upwards.
    ///
    /// # Errors
    /// An invalid request, and a missing compiler.
    pub fn new(request: &Request, folder: &Path) -> Result<Self, JobError> {
        setup::prepare(request, folder)
    }

    /// Sets up a run whose candidates are judged by a fleet. `auto`, `cuda` and device names refer
    /// to the devices of its workers.
    ///
    /// # Errors
    /// As for [`Prepared::new`], and a device that no worker lends.
    pub fn on_fleet(
        request: &Request,
        folder: &Path,
        fleet: Arc<dyn Fleet>,
    ) -> Result<Self, JobError> {
        on_fleet::prepare(request, folder, fleet)
    }

    /// Returns the device.
    #[must_use]
    pub fn facts(&self) -> &DeviceFacts {
        match &self.device {
            Device::Replay(evaluator) => evaluator.facts(),
            Device::Virtual(evaluator) => evaluator.facts(),
            Device::Cuda(evaluator) => evaluator.facts(),
            Device::Fleet(evaluator, _) => evaluator.facts(),
        }
    }

    /// Returns the engine's plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Reports whether the device's clock counts instead of the wall clock.
    #[must_use]
    pub fn charged(&self) -> bool {
        Clock::for_device(self.facts().kind) == Clock::Charged
    }

    /// Sets the name that the run is stored under.
    pub fn name(&mut self, id: RunId) {
        self.plan.id = Some(id);
    }

    /// Resumes an interrupted run of the same kernels, device and seed, if the store has one, with
    /// its strategy and limits unless the request sets them.
    ///
    /// # Errors
    /// The run used another strategy, or the store cannot be read.
    pub async fn resume_latest(&mut self, store: &Store) -> Result<(), JobError> {
        let found = store.unfinished_run(&self.plan.start).await;
        match found? {
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

    /// Resumes this run.
    ///
    /// # Errors
    /// It used another strategy than the request.
    pub fn resume(&mut self, stored: StoredRun) -> Result<(), JobError> {
        if self.strategy_given && self.plan.start.strategy != stored.strategy {
            return Err(usage(format!(
                "run {} used --strategy {}; resume with that, or start a new run without --resume",
                stored.id, stored.strategy
            )));
        }
        let settings = RunSettings::from_stored(&stored.settings);
        // The stored times are of code for that target, and the search would mix both.
        if self.arch != settings.arch {
            return Err(usage(format!(
                "run {} had {}; resume with that, or start a new run without --resume",
                stored.id,
                settings
                    .arch
                    .map_or("no --arch".to_owned(), |arch| format!("--arch {arch}"))
            )));
        }
        self.plan.start.strategy.clone_from(&stored.strategy);
        if !self.limited {
            self.plan.limits = Limits {
                evals: settings.evals,
                budget: settings
                    .budget_s
                    .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
                converged: settings.until_converged,
            };
            self.limited = self.plan.limits != Limits::default();
        }
        let stored_objective = settings.objective;
        let objectives = stored_objective
            .as_deref()
            .and_then(|text| text.parse().ok());
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
                if let Some(limit) = settings.prove_budget {
                    evaluator.set_proof_limit(limit);
                }
            }
            Device::Virtual(_) | Device::Replay(_) | Device::Fleet(..) => {}
        }
        self.plan.resume = Some(stored);
        Ok(())
    }

    /// Prepares and judges one configuration of a task outside of a run; stores nothing.
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

    /// Runs the timed problem of a configuration whole, outside of a run; stores nothing.
    ///
    /// # Errors
    /// The tuner itself failed, or the device is not virtual: only virtual GPUs run proofs.
    pub fn prove(&self, task: usize, config: &Config) -> Result<Proof, JobError> {
        match &self.device {
            Device::Virtual(evaluator) => evaluator.make_proof(task, config).map_err(device_error),
            Device::Replay(_) | Device::Cuda(_) | Device::Fleet(..) => {
                Err(usage("only results of a virtual GPU are proven"))
            }
        }
    }

    /// Compares two correct configurations of a task, interleaved on a real GPU: the first over the
    /// second. `None` on other devices, whose times do not vary.
    ///
    /// # Errors
    /// The device failed.
    pub fn duel(
        &self,
        task: usize,
        configs: [&Config; 2],
    ) -> Result<Option<PairedResult>, JobError> {
        match &self.device {
            Device::Cuda(evaluator) => evaluator
                .duel(task, configs, self.plan.start.seed.0)
                .map_err(device_error),
            Device::Replay(_) | Device::Virtual(_) | Device::Fleet(..) => Ok(None),
        }
    }

    /// Subtracts time used before an interruption from the budget of wall time.
    pub fn spend(&mut self, spent: Duration) {
        if !self.charged() {
            let budget = self.plan.limits.budget;
            self.plan.limits.budget = budget.map(|budget| budget.saturating_sub(spent));
        }
    }

    /// Executes the run until a limit is reached or `shutdown` turns true.
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
                let report = engine::run(evaluator, self.plan, store, shutdown, sink).await;
                // On a real GPU the gate finds such times implausible.
                if let Ok(report) = &report {
                    for text in plausible::explain(evaluator.tasks(), report) {
                        sink(&Event::Note { text });
                    }
                }
                report
            }
            Device::Cuda(evaluator) => {
                if tuner_device::gpu::stand_in::refuses(store.path()) {
                    return Err(cuda::stand_in());
                }
                let seed = self.plan.start.seed.0;
                let mut final_stage = FinalStage::new(&self.plan.tasks, self.baselines);
                let stop = shutdown.clone();
                for text in final_stage.visit(Moment::Before, evaluator, &stop).await {
                    sink(&Event::Note { text });
                }
                let mut report = {
                    let mut both = |event: &Event| {
                        final_stage.take(event);
                        sink(event);
                    };
                    engine::run(evaluator, self.plan, store, shutdown, &mut both).await
                };
                if let Ok(report) = &mut report {
                    final_stage
                        .end(report, evaluator, store, seed, &stop, sink)
                        .await;
                }
                report
            }
            Device::Fleet(evaluator, files) => {
                let (evaluator, files) = (Arc::clone(evaluator), files.clone());
                on_fleet::execute(evaluator, files, self.plan, store, shutdown, sink).await
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
            // No run follows in which the deferred checks could be made.
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
