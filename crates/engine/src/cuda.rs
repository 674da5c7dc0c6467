//! Real GPUs as evaluators: compile in this process, judge and time in a worker process for each
//! GPU.
#![expect(
    clippy::indexing_slicing,
    reason = "tasks are numbered by the run that made them"
)]

mod comparison;
mod usage;

use super::evaluator::{BoxError, Evaluator, Judged, Preparation};
use super::foresight::ForecastRequest;
use super::judging::{JudgementCache, KernelTask, Work};
use super::other_problems::SEEDS;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;
use tuner_core::panics::lock;
use tuner_core::plan::Plan;
use tuner_core::record::Verdict;
use tuner_core::units::ContentHash;
use tuner_device::DeviceFacts;
use tuner_device::worker::host::{Worker, WorkerError};
use tuner_device::worker::protocol::{IncumbentPlan, Job, MeasureRequest, RelativeTime};
use tuner_judge::gate::level::Level;
use tuner_judge::judgement::TimedJudgement;
use tuner_kernel::compile::Compiler;
use tuner_search::Experience;
use tuner_space::Config;
use usage::Usage;

/// One kernel and problem to tune on a real GPU.
pub(crate) struct CudaTask {
    /// Plans of the timed and the check problems.
    pub task: KernelTask,
    /// The configuration that serves as the fixed reference, if valid: the default one.
    pub default: Option<Config>,
}

/// Runs and times candidates on real GPUs of one model.
pub(crate) struct CudaEvaluator {
    facts: DeviceFacts,
    compiler: Arc<Compiler>,
    tasks: Vec<CudaTask>,
    /// The fixed reference of each task.
    references: Vec<Mutex<ReferenceState>>,
    /// Workers without a candidate.
    idle: Mutex<Vec<GpuSlot>>,
    freed: Condvar,
    devices: usize,
    known: JudgementCache,
    usage: Mutex<Usage>,
    /// Candidates whose deferred checks have run, by task, and whether they are correct.
    proven: Mutex<HashMap<(usize, ContentHash), bool>>,
    /// Measure the energy of candidates.
    energy: AtomicBool,
}

/// A task's reference.
enum ReferenceState {
    /// Not determined yet.
    Unknown,
    /// The default configuration is invalid or wrong: use the first candidate that passes.
    Awaited,
    /// A known reference.
    Known(Box<Plan>),
}

/// A worker with the best candidate of each task on its GPU.
struct GpuSlot {
    worker: Worker,
    rivals: HashMap<usize, (ContentHash, IncumbentPlan)>,
}

impl CudaEvaluator {
    /// Predicts with the priors of the tasks before the run begins.
    ///
    /// # Errors
    /// The compiler does not work.
    pub(crate) fn predict_prior(
        &self,
        request: &ForecastRequest,
    ) -> Result<Vec<Option<Experience>>, BoxError> {
        request.predict(self.tasks.iter().map(|task| &task.task), &self.compiler)
    }

    /// Creates an evaluator for these tasks, in the order of the engine's plan, with one worker for
    /// each GPU.
    #[must_use]
    pub(crate) fn new(
        facts: DeviceFacts,
        compiler: Arc<Compiler>,
        tasks: Vec<CudaTask>,
        workers: Vec<Worker>,
    ) -> Self {
        let bench = |worker| GpuSlot {
            worker,
            rivals: HashMap::new(),
        };
        Self {
            facts,
            compiler,
            references: tasks
                .iter()
                .map(|_| Mutex::new(ReferenceState::Unknown))
                .collect(),
            tasks,
            devices: workers.len().max(1),
            idle: Mutex::new(workers.into_iter().map(bench).collect()),
            freed: Condvar::new(),
            known: JudgementCache::default(),
            usage: Mutex::default(),
            proven: Mutex::default(),
            energy: AtomicBool::new(false),
        }
    }

    /// Enables or disables energy measurement from now on.
    pub(crate) fn measure_energy(&self, energy: bool) {
        self.energy.store(energy, Ordering::Relaxed);
    }

    /// Returns the first open GPU that does not count its energy.
    pub(crate) fn uncounted(&self) -> Option<String> {
        let idle = lock(&self.idle);
        let mut opened = idle.iter().filter_map(|bench| bench.worker.opened());
        let without = opened.find(|opened| !opened.counts_energy)?;
        let facts = &without.facts;
        Some(format!("cuda:{} {}", facts.ordinal, facts.name))
    }

    /// Describes GPU utilisation from the first candidate to the last, and the remaining time;
    /// `None` before the first candidate.
    pub(crate) fn usage(&self) -> Option<String> {
        let usage = lock(&self.usage).clone();
        let all = usage.ended?.duration_since(usage.began?) * u32::try_from(self.devices).ok()?;
        Some(usage.line(all))
    }

    /// Calls `work` with an exclusive worker.
    fn with_bench<T>(&self, work: impl FnOnce(&mut GpuSlot) -> T) -> T {
        let mut idle = lock(&self.idle);
        let mut bench = loop {
            match idle.pop() {
                Some(bench) => break bench,
                None => {
                    idle = self
                        .freed
                        .wait(idle)
                        .unwrap_or_else(PoisonError::into_inner)
                }
            }
        };
        // A lock held during the work would serialize the GPUs.
        drop(idle);
        let result = work(&mut bench);
        lock(&self.idle).push(bench);
        self.freed.notify_one();
        result
    }

    /// Returns the task's fixed reference: the default configuration if it passes the gate, so that
    /// the ratios of different runs are to the same kernel.
    fn reference(&self, task: usize, bench: &mut GpuSlot) -> Result<Option<Plan>, BoxError> {
        // Held while the default is judged: another GPU must not time anything against a different
        // reference meanwhile.
        let mut fixed = lock(&self.references[task]);
        if matches!(*fixed, ReferenceState::Unknown) {
            *fixed = match self.default_plan(task, &mut bench.worker)? {
                Some(plan) => ReferenceState::Known(Box::new(plan)),
                None => ReferenceState::Awaited,
            };
        }
        Ok(match &*fixed {
            ReferenceState::Known(plan) => Some((**plan).clone()),
            ReferenceState::Unknown | ReferenceState::Awaited => None,
        })
    }

    fn default_plan(&self, task: usize, worker: &mut Worker) -> Result<Option<Plan>, BoxError> {
        let Some(default) = &self.tasks[task].default else {
            return Ok(None);
        };
        let timed = &self.tasks[task].task.timed;
        let Ok(built) = timed.build(&self.compiler, default)? else {
            return Ok(None);
        };
        let job = Job {
            timed: Some(built.plan.clone()),
            seeds: SEEDS.to_vec(),
            ..Job::default()
        };
        let judgement = worker.judge(job);
        let judgement = judgement.map_err(|error| self.tasks[task].task.blame(error.into()))?;
        Ok(judgement.judgement.is_ok().then_some(built.plan))
    }

    /// Returns the timed problem's plans of configurations that are known to be correct.
    fn plans<'c>(
        &self,
        task: usize,
        configs: impl IntoIterator<Item = &'c Config>,
    ) -> Result<Vec<Plan>, BoxError> {
        let timed = &self.tasks[task].task.timed;
        let mut plans = Vec::new();
        for config in configs {
            match timed.build(&self.compiler, config)? {
                Ok(built) => plans.push(built.plan),
                Err(unbuilt) => return Err(unbuilt.judgement.detail.into()),
            }
        }
        Ok(plans)
    }

    /// Returns the best candidate of a task on a GPU, unless it turned out to be wrong since.
    fn rival(&self, task: usize, bench: &GpuSlot) -> Option<IncumbentPlan> {
        let (candidate, rival) = bench.rivals.get(&task)?;
        let right = lock(&self.proven).get(&(task, candidate.clone())).copied();
        (right != Some(false)).then(|| rival.clone())
    }

    fn measure(
        &self,
        task: usize,
        candidate: &ContentHash,
        job: Job,
        bench: &mut GpuSlot,
    ) -> Result<(TimedJudgement, Option<RelativeTime>), BoxError> {
        let plan = job.timed.clone();
        let reference = self.reference(task, bench)?;
        let own = reference.is_none();
        let measuring = MeasureRequest {
            job,
            reference,
            incumbent: self.rival(task, bench),
            energy: self.energy.load(Ordering::Relaxed),
        };
        lock(&self.usage).began.get_or_insert_with(Instant::now);
        let measured = bench.worker.measure(measuring);
        let (judgement, standing, spent) =
            measured.map_err(|error| self.tasks[task].task.blame(error.into()))?;
        {
            let mut usage = lock(&self.usage);
            usage.spent.add(&spent);
            usage.candidates += 1;
            usage.ended = Some(Instant::now());
        }
        if let (Some(plan), Some(standing)) = (plan, standing) {
            if own {
                let mut fixed = lock(&self.references[task]);
                // Another GPU may have set it during the measurement. The first one stays, so that
                // all ratios compare.
                if !matches!(*fixed, ReferenceState::Known(_)) {
                    *fixed = ReferenceState::Known(Box::new(plan.clone()));
                }
            }
            if standing.replaces_incumbent {
                let ratio = standing.ratio;
                let rival = IncumbentPlan { plan, ratio };
                bench.rivals.insert(task, (candidate.clone(), rival));
            }
        }
        Ok((judgement, standing))
    }
}

impl Evaluator for CudaEvaluator {
    type Work = Work;

    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn may_hang(&self) -> bool {
        true
    }

    fn devices(&self) -> usize {
        self.devices
    }

    fn identity(&self, task: usize, config: &Config) -> Option<ContentHash> {
        let nvrtc = self.compiler.nvrtc().version();
        Some(self.tasks[task].task.identity(config, &nvrtc))
    }

    fn prepare(&self, task: usize, config: &Config) -> Result<Preparation<Work>, BoxError> {
        self.tasks[task].task.prepare(&self.compiler, config)
    }

    fn evaluate(&self, task: usize, config: &Config, work: Work) -> Result<Judged, BoxError> {
        let _doing = self.tasks[task].task.begin("judging", config);
        let (found, again) = self.known.or_judge(&work.same, || {
            let job = Job {
                level: Level::Timing,
                ..work.job.clone()
            };
            let (found, _) =
                self.with_bench(|bench| self.measure(task, &work.candidate, job, bench))?;
            Ok(found)
        })?;
        Ok(work.judged(if again { found.reused() } else { found }))
    }

    fn prove(&self, task: usize, config: &Config, judged: Judged) -> Result<Judged, BoxError> {
        let key = (task, judged.candidate.clone());
        let kernel = &self.tasks[task].task;
        let judged = kernel.prove(&self.compiler, config, judged, |job| {
            let job = Job {
                level: Level::Timing,
                ..job
            };
            let (judged, spent) = self.with_bench(|bench| {
                let began = Instant::now();
                (bench.worker.judge(job), began.elapsed())
            });
            let mut usage = lock(&self.usage);
            usage.deferred += spent;
            usage.ended = Some(Instant::now());
            judged.map_err(|error| kernel.blame(error.into()))
        })?;
        // A lost worker is not a verdict: a later attempt may succeed.
        if judged.verdict() != Verdict::NotJudged {
            lock(&self.proven).insert(key, judged.found.judgement.is_ok());
        }
        Ok(judged)
    }
}

impl CudaEvaluator {
    /// Opens every GPU and returns notes for the user.
    ///
    /// # Errors
    /// One cannot be opened.
    pub(crate) fn open(&self) -> Result<Vec<String>, WorkerError> {
        let mut notes = Vec::new();
        for bench in &mut *lock(&self.idle) {
            let opened = bench.worker.open()?;
            let place = format!("cuda:{} {}", opened.facts.ordinal, opened.facts.name);
            let Some(health) = &opened.health else {
                continue;
            };
            let others: Vec<String> = health.processes.iter().map(|p| p.describe()).collect();
            if !others.is_empty() {
                notes.push(format!(
                    "note: {place} is used by others too: {}; times will be unsteady until they end",
                    others.join(", ")
                ));
            }
            if !health.slowed.is_empty() {
                notes.push(format!(
                    "note: the clocks of {place} are held down by: {}; samples far below its usual clock are discarded",
                    health.slowed.join(", ")
                ));
            }
        }
        Ok(notes)
    }
}
