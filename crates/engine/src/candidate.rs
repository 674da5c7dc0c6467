//! Preparing a candidate for a GPU, real or virtual: bind, render and compile it for the timed
//! problem and all check problems.

use super::evaluator::{BoxError, Judged, Preparation};
use super::prior::Prior;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tuner_core::plan::Plan;
use tuner_core::record::Compilation;
use tuner_core::units::ContentHash;
use tuner_device::worker::host::WorkerError;
use tuner_device::worker::protocol::Job;
use tuner_judge::gate;
use tuner_judge::gate::level::Level;
use tuner_judge::judgement::Judgement;
use tuner_judge::timing::Measured;
use tuner_kernel::build::{Built, PlanBuilder, Unbuilt};
use tuner_kernel::catalog;
use tuner_kernel::catalog::Kernel;
use tuner_kernel::compile::Compiler;
use tuner_search::CompileStats;
use tuner_space::{BindError, Config, DeviceLimits};

/// Seeds of the inputs that every candidate meets.
pub(super) const SEEDS: [u64; 1] = [0x5eed];

/// One kernel and problem to tune, with the problems that must be right besides.
pub struct KernelTask {
    /// The problem that is timed.
    pub timed: PlanBuilder,
    /// The kernel's check problems.
    pub checks: Vec<PlanBuilder>,
    /// Predicts the timed problem's time before the candidate is evaluated, where asked for.
    pub prior: Option<Arc<dyn Prior>>,
}

impl KernelTask {
    /// The task of one problem; all check problems of the kernel come along.
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
        })
    }

    /// Names the space's file where its reference is what is wrong.
    pub(super) fn blame(&self, error: BoxError) -> BoxError {
        match error.downcast::<WorkerError>() {
            Ok(error) => match *error {
                WorkerError::Unusable(why) => {
                    let file = catalog::shown(self.timed.space_file());
                    WorkerError::Unusable(format!("{file}: {why}")).into()
                }
                other => other.into(),
            },
            Err(other) => other,
        }
    }

    /// Identity of the candidate that [`KernelTask::prepare`] makes of a configuration, compiled or
    /// refused.
    pub(super) fn identity(&self, config: &Config, nvrtc_version: &str) -> ContentHash {
        self.timed
            .identity(config, nvrtc_version)
            .unwrap_or_else(|| nameless(self.timed.problem(), config))
    }

    /// Makes a candidate of the task ready for the device.
    pub(super) fn prepare(
        &self,
        compiler: &Compiler,
        config: &Config,
    ) -> Result<Preparation<Work>, BoxError> {
        let problem = self.timed.problem();
        let timed = match self.timed.build(compiler, config)? {
            Ok(built) => built,
            Err(unbuilt) => {
                return Ok(Preparation::Judged(Box::new(refused(
                    unbuilt, problem, config,
                ))));
            }
        };
        let mut checks = Vec::with_capacity(self.checks.len());
        // A check problem on which the configuration is not valid would condemn what is right here.
        for builder in self.checks.iter().filter(|check| check.admits(config)) {
            match builder.build(compiler, config)? {
                Ok(built) => checks.push(built),
                Err(unbuilt) => {
                    let detail = format!("problem {}: {}", builder.problem(), unbuilt.detail);
                    let named = Unbuilt {
                        candidate: Some(timed.candidate.clone()),
                        detail,
                        ..unbuilt
                    };
                    return Ok(Preparation::Judged(Box::new(refused(
                        named, problem, config,
                    ))));
                }
            }
        }
        let all: Vec<&Built> = checks.iter().chain([&timed]).collect();
        let same = sameness(&all);
        let prior = self.prior.as_ref();
        let predicted = prior.and_then(|prior| prior.predicted(&timed.plan));
        let work = Work {
            candidate: timed.candidate.clone(),
            compilation: timed.image.facts.clone(),
            same,
            job: Job {
                checks: checks.into_iter().map(|built| built.plan).collect(),
                timed: Some(timed.plan),
                seeds: SEEDS.to_vec(),
                schedules: 0,
                level: Level::Screening,
            },
        };
        Ok(Preparation::Ready {
            candidate: work.candidate.clone(),
            facts: Some(CompileStats {
                predicted,
                ..super::schedule::compiled(&work.compilation)
            }),
            work,
        })
    }
}

/// A compiled candidate. It can cross to another machine, as its job crosses to another process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Work {
    pub(super) candidate: ContentHash,
    pub(super) compilation: Compilation,
    pub(super) job: Job,
    pub(super) same: ContentHash,
}

impl Work {
    /// Identity of the candidate.
    #[must_use]
    pub fn candidate(&self) -> &ContentHash {
        &self.candidate
    }

    /// What the compiler said of it.
    #[must_use]
    pub fn compilation(&self) -> &Compilation {
        &self.compilation
    }

    /// What decides its judgement and its time: machine code, launches and shapes.
    #[must_use]
    pub fn same(&self) -> &ContentHash {
        &self.same
    }

    /// What is timed.
    #[must_use]
    pub fn timed(&self) -> Option<&Plan> {
        self.job.timed.as_ref()
    }
}

/// Without a source there is no content to name a candidate by: the configuration stands in.
fn nameless(problem: &str, config: &Config) -> ContentHash {
    let choices: Vec<u8> = config
        .choices()
        .iter()
        .flat_map(|c| c.to_le_bytes())
        .collect();
    ContentHash::of([b"unbound".as_slice(), problem.as_bytes(), &choices])
}

/// A candidate judged before it reached the device.
fn refused(unbuilt: Unbuilt, problem: &str, config: &Config) -> Judged {
    Judged {
        candidate: unbuilt
            .candidate
            .unwrap_or_else(|| nameless(problem, config)),
        verdict: unbuilt.verdict,
        detail: unbuilt.detail,
        hazards: Vec::new(),
        compilation: None,
        max_error: None,
        measured: None,
        charged_us: 0,
        counters: None,
    }
}

/// What decides a judgement: equal machine code with equal launches on equal data, compared with
/// the same reference, is one candidate, whatever its parameters are called.
fn sameness(parts: &[&Built]) -> ContentHash {
    let both = |built: &&Built| {
        let code = built.image.facts.cubin_hash.as_str().as_bytes();
        [built.plan.work(code), gate::expectation(&built.plan)]
    };
    let hashes: Vec<ContentHash> = parts.iter().flat_map(both).collect();
    ContentHash::of(hashes.iter().map(|hash| hash.as_str().as_bytes()))
}

/// A judged candidate, as its judgement and its time say.
pub(super) fn plain(
    candidate: ContentHash,
    compilation: Compilation,
    judgement: Judgement,
    measured: Option<Measured>,
) -> Judged {
    Judged {
        candidate,
        verdict: judgement.verdict,
        detail: judgement.detail,
        hazards: judgement.hazards,
        charged_us: measured.as_ref().map_or(0, |m| m.p50().get().ceil() as u64),
        compilation: Some(compilation),
        max_error: judgement.max_error,
        measured,
        counters: None,
    }
}
