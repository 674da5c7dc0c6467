//! The virtual GPU as an evaluator: compile in this process, judge in a worker process.
#![expect(
    clippy::indexing_slicing,
    reason = "tasks are numbered by the run that made them"
)]

use super::evaluator::{BoxError, Evaluator, Judged, Preparation, Proof, ProofOutcome};
use super::foresight::ForecastRequest;
use super::judging::{DeferredChecks, JudgementCache, KernelTask, Work};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tuner_core::judgement::Judgement;
use tuner_core::panics::lock;
use tuner_core::record::Verdict;
use tuner_core::units::ContentHash;
use tuner_device::DeviceFacts;
use tuner_device::worker::host::{Settings, Worker, WorkerError};
use tuner_device::worker::protocol::Job;
use tuner_judge::gate::level::Level;
use tuner_kernel::compile::Compiler;
use tuner_search::Experience;
use tuner_space::Config;

/// Runs candidates on the virtual GPU.
pub(crate) struct VirtualEvaluator {
    facts: DeviceFacts,
    compiler: Arc<Compiler>,
    tasks: Vec<KernelTask>,
    /// Runs every check on candidates that may win.
    worker: Mutex<Worker>,
    /// Runs the first level of all candidates concurrently.
    scout: Mutex<Worker>,
    known: JudgementCache,
    /// Results of the first level.
    seen: JudgementCache,
    /// Everything that decides the judgement of candidates, by candidate.
    same: Mutex<HashMap<ContentHash, ContentHash>>,
    /// The values of `same` whose results were reported.
    told: Mutex<HashSet<ContentHash>>,
    /// Results of proofs.
    proofs: JudgementCache,
    /// Lane instructions that a proof may take; 0: no proofs.
    proof_limit: AtomicU64,
}

impl VirtualEvaluator {
    /// Creates an evaluator for these tasks, in the order of the engine's plan.
    #[must_use]
    pub(crate) fn new(
        facts: DeviceFacts,
        compiler: Arc<Compiler>,
        mut tasks: Vec<KernelTask>,
        worker: &Settings,
    ) -> Self {
        for task in &mut tasks {
            task.executes_ptx = true;
        }
        let worker = || Mutex::new(Worker::new(worker.clone()));
        Self {
            facts,
            compiler,
            tasks,
            worker: worker(),
            scout: worker(),
            known: JudgementCache::default(),
            seen: JudgementCache::default(),
            same: Mutex::default(),
            told: Mutex::default(),
            proofs: JudgementCache::default(),
            proof_limit: AtomicU64::new(0),
        }
    }

    /// Returns the tasks.
    pub(crate) fn tasks(&self) -> &[KernelTask] {
        &self.tasks
    }

    /// Enables proofs of at most this number of lane instructions; 0: none.
    pub(crate) fn set_proof_limit(&self, limit: u64) {
        self.proof_limit.store(limit, Ordering::Relaxed);
    }

    /// Proves a configuration outside of a run.
    ///
    /// # Errors
    /// The compiler or the worker does not work.
    pub(crate) fn make_proof(&self, task: usize, config: &Config) -> Result<Proof, BoxError> {
        // Check problems are irrelevant here: all may be deferred.
        let checks = DeferredChecks::AllButOneRun;
        let (candidate, judgement) =
            match self.tasks[task].prepare_but(checks, &self.compiler, config)? {
                Preparation::Judged(judged) => (judged.candidate, judged.found.judgement),
                Preparation::Ready {
                    candidate, work, ..
                } => (candidate, self.proof(task, config, work)?),
            };
        Ok(Proof {
            candidate,
            outcome: ProofOutcome::from_judgement(&judgement),
            judgement,
        })
    }

    /// Proves a prepared candidate.
    ///
    /// # Errors
    /// The worker does not work.
    pub(crate) fn proof(
        &self,
        task: usize,
        config: &Config,
        work: Work,
    ) -> Result<Judgement, BoxError> {
        let limit = self.proof_limit.load(Ordering::Relaxed);
        let _doing = self.tasks[task].begin("proving", config);
        let key = work.same.clone();
        let (found, _) = self.proofs.or_judge(&key, || {
            let job = work.into_proof(limit);
            Ok(match lock(&self.worker).judge(job) {
                Ok(found) => found,
                // Candidates passed with this reference on the parts that ran; only a whole run
                // shows the fault.
                Err(WorkerError::Unusable(why)) => {
                    let why = format!("the reference fails on the whole timed problem: {why}");
                    Judgement::new(Verdict::Unchecked, why).into()
                }
                Err(error) => return Err(error.into()),
            })
        })?;
        Ok(found.judgement)
    }
}

impl VirtualEvaluator {
    /// Predicts with the priors of the tasks before the run begins.
    ///
    /// # Errors
    /// The compiler does not work.
    pub(crate) fn predict_prior(
        &self,
        request: &ForecastRequest,
    ) -> Result<Vec<Option<Experience>>, BoxError> {
        request.predict(self.tasks.iter(), &self.compiler)
    }

    /// Checks before a run begins whether the results of each task can be compared, using the first
    /// of its starting points; builds a smaller check problem if they cannot. Returns a line for
    /// the user for each such task. At the deadline the rest is left to the first trials.
    ///
    /// # Errors
    /// The compiler or the worker does not work, or the space's reference is wrong.
    pub(crate) fn check_references(
        &self,
        starts: &[Option<Config>],
        deadline: Option<Instant>,
    ) -> Result<Vec<String>, BoxError> {
        let mut notes = Vec::new();
        let is_over = || deadline.is_some_and(|end| Instant::now() >= end);
        for (task, start) in self.tasks.iter().zip(starts) {
            let Some(config) = start.as_ref().filter(|_| task.checks.is_empty()) else {
                continue;
            };
            if is_over() {
                break;
            }
            let whole = task.prepare_but(DeferredChecks::Nothing, &self.compiler, config)?;
            if let Preparation::Ready { work, .. } = whole {
                let mut worker = lock(&self.worker);
                worker.set_deadline(deadline);
                let judged = task.on_virtual(&self.compiler, &mut worker, config, work.job);
                worker.set_deadline(None);
                if in_time(judged)?.is_none() {
                    break;
                }
            }
            let (kernel, problem) = (task.timed.kernel(), task.timed.problem());
            notes.extend(task.timed.scaled_check().note(kernel, problem));
        }
        Ok(notes)
    }

    /// Judges a prepared candidate. A worker that takes longer than `limit` is stopped, which is an error.
    fn judged(
        &self,
        task: usize,
        config: &Config,
        work: Work,
        limit: Option<Duration>,
    ) -> Result<Judged, BoxError> {
        let (known, level, worker) = if work.put_off {
            (&self.seen, Level::First, &self.scout)
        } else {
            (&self.known, Level::Check, &self.worker)
        };
        lock(&self.same).insert(work.candidate.clone(), work.same.clone());
        // Threads decide which of two equal candidates comes first here, so `told` marks the reused
        // one.
        let (found, _) = known.or_judge(&work.same, || {
            let job = Job {
                level,
                ..work.job.clone()
            };
            let mut worker = lock(worker);
            // Another candidate may have had the worker until now.
            worker.set_deadline(limit.and_then(|limit| Instant::now().checked_add(limit)));
            let found = self.tasks[task].on_virtual(&self.compiler, &mut worker, config, job);
            worker.set_deadline(None);
            found
        })?;
        Ok(work.judged(found))
    }

    /// Judges a candidate with its deferred checks, within the same limit.
    fn checked(
        &self,
        task: usize,
        config: &Config,
        limit: Option<Duration>,
    ) -> Result<Judged, BoxError> {
        let whole =
            self.tasks[task].prepare_but(DeferredChecks::Nothing, &self.compiler, config)?;
        match whole {
            Preparation::Judged(judged) => Ok(*judged),
            Preparation::Ready { work, .. } => self.judged(task, config, work, limit),
        }
    }
}

/// Returns `None` for a judgement that ended at the deadline of its worker.
fn in_time<T>(judged: Result<T, BoxError>) -> Result<Option<T>, BoxError> {
    match judged {
        Err(error) if matches!(error.downcast_ref(), Some(WorkerError::OutOfTime)) => Ok(None),
        judged => judged.map(Some),
    }
}

impl Evaluator for VirtualEvaluator {
    type Work = Work;

    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn judges_early(&self) -> bool {
        true
    }

    /// Marks a result that equal executed code had before.
    fn told(&self, judged: &mut Judged) {
        let same = lock(&self.same).get(&judged.candidate).cloned();
        if judged.found.is_lasting() && same.is_some_and(|same| !lock(&self.told).insert(same)) {
            judged.found = judged.found.clone().reused();
        }
    }

    fn identity(&self, task: usize, config: &Config) -> Option<ContentHash> {
        Some(self.tasks[task].identity(config, &self.compiler.nvrtc().version()))
    }

    fn prepare(&self, task: usize, config: &Config) -> Result<Preparation<Work>, BoxError> {
        self.tasks[task].prepare(&self.compiler, config)
    }

    fn evaluate(&self, task: usize, config: &Config, work: Work) -> Result<Judged, BoxError> {
        self.judged(task, config, work, None)
    }

    fn evaluate_within(
        &self,
        task: usize,
        config: &Config,
        work: Work,
        limit: Option<Duration>,
    ) -> Result<Option<Judged>, BoxError> {
        in_time(self.judged(task, config, work, limit))
    }

    fn prove(&self, task: usize, config: &Config, _: Judged) -> Result<Judged, BoxError> {
        self.checked(task, config, None)
    }

    fn prove_within(
        &self,
        task: usize,
        config: &Config,
        _: Judged,
        limit: Option<Duration>,
    ) -> Result<Option<Judged>, BoxError> {
        in_time(self.checked(task, config, limit))
    }

    fn proof_limit(&self) -> Option<u64> {
        Some(self.proof_limit.load(Ordering::Relaxed)).filter(|limit| *limit > 0)
    }

    fn prove_whole(
        &self,
        task: usize,
        config: &Config,
        judged: Judged,
    ) -> Result<Judged, BoxError> {
        // Check problems are irrelevant here: all may be deferred.
        let prepared =
            self.tasks[task].prepare_but(DeferredChecks::AllButOneRun, &self.compiler, config)?;
        match prepared {
            Preparation::Judged(unbuilt) => Ok(*unbuilt),
            Preparation::Ready { work, .. } => {
                let proof = self.proof(task, config, work)?;
                Ok(judged.proven_whole(proof))
            }
        }
    }
}
