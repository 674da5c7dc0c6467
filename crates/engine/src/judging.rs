//! Judge: builds a candidate (bind, render, compile) and judges it on a device. Runs, checks,
//! predictions, ablations, the gate and the daemon all use it.

mod cache;
mod pool;
mod received;

use super::evaluator::{BoxError, Judged, Preparation};
use super::other_problems::{self, SEEDS};
use super::prior::Prior;
use super::record::stats;
pub(super) use cache::JudgementCache;
pub use pool::JudgePool;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use tuner_core::activity::{self, ActivityGuard, Owner};
use tuner_core::fill::Fill;
use tuner_core::judgement::Judgement;
use tuner_core::plan::Plan;
use tuner_core::record::{Compilation, Verdict};
use tuner_core::units::{ContentHash, Micros};
use tuner_device::worker::host::{Worker, WorkerError};
use tuner_device::worker::protocol::Job;
use tuner_judge::gate;
use tuner_judge::gate::level::Level;
use tuner_judge::judgement::TimedJudgement;
use tuner_kernel::build::{BuiltCandidate, FailedBuild, PlanBuilder};
use tuner_kernel::catalog;
use tuner_kernel::catalog::Kernel;
use tuner_kernel::compile::{CompileError, Compiler};
use tuner_space::{BindError, Config, DeviceLimits};

/// Verification demand of a candidate.
#[derive(Debug, Clone)]
pub struct Demand {
    /// Seeds of the input data.
    pub seeds: Vec<u64>,
    /// Runs with a randomised order of warps.
    pub schedules: u32,
    /// Verification level.
    pub level: Level,
    /// Measure a time.
    pub timed: bool,
    /// Run whole, and write the contents of the outputs to this folder.
    pub outputs: Option<PathBuf>,
}

/// One kernel and problem to tune, with further problems that must also be correct.
pub struct KernelTask {
    /// The problem that is timed.
    pub timed: PlanBuilder,
    /// The kernel's check problems.
    pub checks: Vec<PlanBuilder>,
    /// Predicts the timed problem's time before the candidate is evaluated, if requested.
    pub(crate) prior: Option<Arc<Prior>>,
    /// Checks that wait until a candidate may win.
    pub(crate) puts_off: DeferredChecks,
    /// Seeds of the inputs.
    pub(crate) seeds: Vec<u64>,
    /// The device executes PTX: the verdict depends on PTX as well as on the machine code.
    pub(crate) executes_ptx: bool,
    /// The run of this task.
    pub(crate) owner: Option<Owner>,
}

/// Checks that are deferred until a candidate may win: most never do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeferredChecks {
    /// No check is deferred.
    Nothing,
    /// Check problems for which the kernel is a separate program that needs another compile.
    OtherPrograms,
    /// All check problems but the smallest that needs no other compile, and everything but a single
    /// run of each problem.
    AllButSmallest,
    /// All check problems, and on the timed one everything but a single run.
    AllButOneRun,
}

impl DeferredChecks {
    /// Reports whether each problem is run only once.
    fn to_single_runs(self) -> bool {
        matches!(self, Self::AllButSmallest | Self::AllButOneRun)
    }
}

impl KernelTask {
    /// Creates the task of one problem with all check problems of the kernel.
    ///
    /// # Errors
    /// An unknown problem, or expressions that are wrong for one of them.
    pub fn new(
        kernel: &Arc<Kernel>,
        problem: &str,
        limits: &DeviceLimits,
        arch: &str,
    ) -> Result<Self, BindError> {
        let builder = |name: &str| PlanBuilder::new(Arc::clone(kernel), name, limits, arch);
        let checks = kernel
            .spec
            .check_problems
            .iter()
            .map(|check| builder(&check.name));
        Ok(Self {
            timed: builder(problem)?,
            checks: checks.collect::<Result<_, _>>()?,
            prior: None,
            puts_off: DeferredChecks::Nothing,
            seeds: SEEDS.to_vec(),
            executes_ptx: false,
            owner: None,
        })
    }

    /// Creates a task of one problem without check problems, unless it needs one.
    #[must_use]
    pub fn alone(problem: PlanBuilder) -> Self {
        Self {
            timed: problem,
            checks: Vec::new(),
            prior: None,
            puts_off: DeferredChecks::Nothing,
            seeds: SEEDS.to_vec(),
            executes_ptx: false,
            owner: None,
        }
    }

    /// Begins an activity on a configuration of the task.
    pub(crate) fn begin(&self, verb: &'static str, config: &Config) -> ActivityGuard {
        activity::begin_for(self.owner, verb, self.timed.describe(config))
    }

    /// Adds the space's file to an error of its reference.
    pub(super) fn blame(&self, error: BoxError) -> BoxError {
        match error.downcast::<WorkerError>() {
            Ok(error) => match *error {
                WorkerError::Unusable(why) => {
                    let file = catalog::shown(&self.timed.source().path);
                    WorkerError::Unusable(format!("{file}: {why}")).into()
                }
                other => other.into(),
            },
            Err(other) => other,
        }
    }

    /// Returns the identity of the candidate that [`KernelTask::prepare`] builds from a
    /// configuration, compiled or refused.
    pub(super) fn identity(&self, config: &Config, nvrtc_version: &str) -> ContentHash {
        self.timed.identity(config, nvrtc_version)
    }

    /// Prepares a candidate of the task for the device: binds, renders and compiles it.
    ///
    /// # Errors
    /// The compiler cannot work; a candidate that fails is judged.
    pub fn prepare(
        &self,
        compiler: &Compiler,
        config: &Config,
    ) -> Result<Preparation<Work>, BoxError> {
        self.prepare_but(self.puts_off, compiler, config)
    }

    /// Prepares a candidate with these deferred checks.
    pub(super) fn prepare_but(
        &self,
        puts_off: DeferredChecks,
        compiler: &Compiler,
        config: &Config,
    ) -> Result<Preparation<Work>, BoxError> {
        let _doing = self.begin("compiling", config);
        let timed = match self.timed.build(compiler, config)? {
            Ok(built) => built,
            Err(unbuilt) => {
                let judged = Judged::without_device(unbuilt.candidate, unbuilt.judgement);
                return Ok(Preparation::Judged(Box::new(judged)));
            }
        };
        let is_own = |check: &&PlanBuilder| is_program(check, config, &timed.candidate, compiler);
        let smallest = match puts_off {
            DeferredChecks::AllButSmallest => self.smallest_check(config, is_own),
            _ => None,
        };
        let waits = |check: &&PlanBuilder| match puts_off {
            DeferredChecks::Nothing => false,
            DeferredChecks::OtherPrograms => !is_own(check),
            DeferredChecks::AllButSmallest => smallest != Some(check.problem()),
            DeferredChecks::AllButOneRun => true,
        };
        let (later, now): (Vec<_>, Vec<_>) = self.admitting(config).partition(waits);
        let build = match self.puts_off {
            // On a virtual GPU deferred problems are executed as PTX, and not timed.
            DeferredChecks::AllButSmallest if timed.image.bounds_threads() => {
                PlanBuilder::build_ptx
            }
            _ => PlanBuilder::build,
        };
        let checks = match check_plans(&now, build, compiler, config)? {
            Ok(checks) => checks,
            Err(why) => {
                // Without its compilation it would count as refused before a compile.
                let compiled = why.verdict == Verdict::LaunchFailed;
                let judged = Judged {
                    compilation: compiled.then(|| timed.image.facts.clone()),
                    ..Judged::without_device(timed.candidate, why)
                };
                return Ok(Preparation::Judged(Box::new(judged)));
            }
        };
        let all: Vec<&BuiltCandidate> = checks.iter().chain([&timed]).collect();
        let same = same(&all, self.executes_ptx);
        let prior = self.prior.as_ref();
        let predicted = prior.and_then(|prior| prior.predicted(&timed.plan));
        let work = Work {
            candidate: timed.candidate.clone(),
            compilation: timed.image.facts.clone(),
            same,
            put_off: puts_off.to_single_runs() || !later.is_empty(),
            job: Job {
                checks: checks.into_iter().map(|built| built.plan).collect(),
                timed: Some(timed.plan),
                seeds: self.seeds.clone(),
                schedules: 0,
                level: Level::Screening,
                proof_limit: None,
                outputs: None,
            },
        };
        Ok(Preparation::Ready {
            candidate: work.candidate.clone(),
            facts: Some(stats(&work.compilation, predicted)),
            work,
        })
    }

    /// Returns the check problems on which the configuration is valid: an invalid one would fail a
    /// correct candidate.
    fn admitting(&self, config: &Config) -> impl Iterator<Item = &PlanBuilder> {
        self.checks.iter().filter(|check| check.admits(config))
    }

    /// Returns the name of the smallest check problem that `is_own` selects.
    fn smallest_check(
        &self,
        config: &Config,
        is_own: impl Fn(&&PlanBuilder) -> bool,
    ) -> Option<&str> {
        let mut checks: Vec<&PlanBuilder> = self.admitting(config).collect();
        checks.sort_by(|a, b| a.size_product().total_cmp(&b.size_product()));
        // The identity of a program costs a hash of its source; usually only the first is computed.
        let smallest = checks.into_iter().find(is_own);
        smallest.map(PlanBuilder::problem)
    }

    /// Judges a candidate on the deferred check problems with `judge`, on a device.
    ///
    /// # Errors
    /// The compiler or the device does not work.
    pub(super) fn prove(
        &self,
        compiler: &Compiler,
        config: &Config,
        judged: Judged,
        judge: impl FnOnce(Job) -> Result<TimedJudgement, BoxError>,
    ) -> Result<Judged, BoxError> {
        let _doing = self.begin("proving", config);
        let later = |check: &&PlanBuilder| !is_program(check, config, &judged.candidate, compiler);
        let later: Vec<_> = self.admitting(config).filter(later).collect();
        let found = match check_plans(&later, PlanBuilder::build, compiler, config)? {
            Err(why) => why,
            Ok(checks) => {
                let job = Job {
                    checks: checks.into_iter().map(|built| built.plan).collect(),
                    seeds: self.seeds.clone(),
                    ..Job::default()
                };
                judge(job)?.judgement
            }
        };
        Ok(judged.proven(found))
    }

    /// Judges a prepared candidate on a virtual GPU, with the help of other problems if its own
    /// cannot be run to their end or compared.
    ///
    /// # Errors
    /// The compiler or the worker does not work, or the space's reference is wrong.
    pub(super) fn on_virtual(
        &self,
        compiler: &Compiler,
        worker: &mut Worker,
        config: &Config,
        job: Job,
    ) -> Result<TimedJudgement, BoxError> {
        let _doing = self.begin("judging", config);
        other_problems::judge(worker, job, &self.timed, compiler, config)
            .map_err(|error| self.blame(error))
    }
}

/// Reports whether a candidate's program is also that of a check problem.
fn is_program(
    check: &PlanBuilder,
    config: &Config,
    candidate: &ContentHash,
    compiler: &Compiler,
) -> bool {
    check.identity(config, &compiler.nvrtc().version()) == *candidate
}

/// Builds a configuration for a check problem.
type Build = fn(
    &PlanBuilder,
    &Compiler,
    &Config,
) -> Result<Result<BuiltCandidate, FailedBuild>, CompileError>;

/// Builds a configuration for check problems. The inner error is the reason of a failed build.
fn check_plans(
    checks: &[&PlanBuilder],
    build: Build,
    compiler: &Compiler,
    config: &Config,
) -> Result<Result<Vec<BuiltCandidate>, Judgement>, BoxError> {
    compile_at_once(checks, build, compiler, config);
    let mut plans = Vec::with_capacity(checks.len());
    for builder in checks {
        match build(builder, compiler, config)? {
            Ok(built) => plans.push(built),
            Err(unbuilt) => {
                let why = unbuilt.judgement;
                let detail = format!("problem {}: {}", builder.problem(), why.detail);
                return Ok(Err(Judgement { detail, ..why }));
            }
        }
    }
    Ok(Ok(plans))
}

/// Compiles the programs of several problems in parallel. The results are in the compiler's cache,
/// and requested afterwards in order.
fn compile_at_once(checks: &[&PlanBuilder], build: Build, compiler: &Compiler, config: &Config) {
    // Without a cache the results would be lost, and every program compiled twice.
    if !compiler.remembers() {
        return;
    }
    let version = compiler.nvrtc().version();
    let mut programs: Vec<(ContentHash, &PlanBuilder)> = checks
        .iter()
        .map(|check| (check.identity(config, &version), *check))
        .collect();
    // Problems that share a program would compile it at the same time, before the cache has it.
    programs.sort_by(|(a, _), (b, _)| a.cmp(b));
    programs.dedup_by(|(a, _), (b, _)| a == b);
    if programs.len() > 1 {
        std::thread::scope(|scope| {
            for (_, builder) in &programs {
                // Without a thread from the system the caller compiles the program.
                let compile = move || drop(build(builder, compiler, config));
                let _ = std::thread::Builder::new().spawn_scoped(scope, compile);
            }
        });
    }
}

/// A compiled candidate. It can cross to another machine, as its job crosses to another process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Identity of the candidate.
    pub candidate: ContentHash,
    /// Result of the compiler.
    pub compilation: Compilation,
    /// Only the plans are taken from another machine.
    #[serde(deserialize_with = "received::plans_only")]
    pub(super) job: Job,
    /// Everything that decides its judgement and its time: machine code, launches and shapes.
    pub same: ContentHash,
    /// The job omits some checks.
    #[serde(default)]
    pub(super) put_off: bool,
}

impl Work {
    /// Returns the fills of the arguments of all its problems.
    pub(crate) fn fills_mut(&mut self) -> impl Iterator<Item = &mut Fill> {
        let plans = self.job.checks.iter_mut().chain(&mut self.job.timed);
        plans.flat_map(Plan::fills_mut)
    }

    /// Returns the timed plan.
    #[must_use]
    pub fn timed(&self) -> Option<&Plan> {
        self.job.timed.as_ref()
    }

    /// Converts to the candidate with its finding.
    pub(super) fn judged(self, found: TimedJudgement) -> Judged {
        let time = found.measured.as_ref().map(|measured| measured.p50());
        Judged {
            candidate: self.candidate,
            charged_us: time.map_or(0, |time: Micros| time.get().ceil() as u64),
            // A refuted candidate cannot win, so its deferred checks are never run.
            put_off: self.put_off && found.judgement.is_ok(),
            whole_tried: false,
            found,
            compilation: Some(self.compilation),
        }
    }

    /// Converts to a proof: the timed problem alone, run whole if that takes at most `limit` lane
    /// instructions.
    pub(super) fn into_proof(self, limit: u64) -> Job {
        Job {
            checks: Vec::new(),
            proof_limit: Some(limit),
            ..self.job
        }
    }

    /// Builds the device's job.
    fn job(&self, demand: &Demand) -> Job {
        let mut job = Job {
            seeds: demand.seeds.clone(),
            schedules: demand.schedules,
            level: demand.level,
            outputs: demand.outputs.clone(),
            ..self.job.clone()
        };
        if !demand.timed {
            // Without a time the problem must still be judged, so it becomes a check.
            job.checks.extend(job.timed.take());
        }
        job
    }
}

/// Returns the identity of everything that decides a judgement. Equal executed code with equal launches on
/// equal data, compared with the same reference, is one candidate, independent of its parameter names.
/// Executed code is the SASS. Where the device executes PTX, it includes the PTX without line information:
/// the assembler removes loops and accesses that the PTX still has.
fn same(parts: &[&BuiltCandidate], executes_ptx: bool) -> ContentHash {
    let mut hashes: Vec<ContentHash> = Vec::new();
    for built in parts {
        let code = built.image.facts.cubin_hash.as_str().as_bytes();
        hashes.extend([built.plan.work(code), gate::expectation(&built.plan)]);
        if executes_ptx {
            hashes.push(built.image.ptx_hash());
        }
    }
    ContentHash::from_parts(hashes.iter().map(|hash| hash.as_str().as_bytes()))
}
