//! The stages that one pair goes through: constraints, compile, run.

use super::row::{CheckRow, Seen};
use super::select::{Pair, Task};
use super::target::{Runner, Target};
use crate::cli::parallel::in_order;
use std::sync::{Arc, Mutex, PoisonError};
use tuner_core::record::{ConfigValues, Verdict};
use tuner_device::worker::host::{Settings, Worker, WorkerError};
use tuner_device::worker::protocol::Job;
use tuner_engine::job;
use tuner_engine::vouch;
use tuner_judge::gate::level::Level;
use tuner_judge::gate::tolerance;
use tuner_kernel::catalog::Kernel;
use tuner_kernel::compile::{CompileError, Compiler};
use tuner_space::Space;

/// Seeds of the inputs that every pair meets.
const SEEDS: [u64; 2] = [0x5eed, 0xc0ffee];

/// What keeps pairs from being judged: no fault of theirs.
#[derive(Debug, thiserror::Error)]
pub(super) enum CheckError {
    /// The compiler does not work.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The device worker does not work, or the oracle does not fit the arguments.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    /// The path of the running program is unknown.
    #[error("cannot find this program: {0}")]
    Program(std::io::Error),
    /// The tuner's own kernels cannot be compiled for the GPU.
    #[error("{0}")]
    Helpers(String),
}

/// What all pairs of one kernel share.
pub(super) struct Judge<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) tasks: &'a [Task],
    pub(super) target: &'a Target,
    pub(super) compiler: &'a Compiler,
    /// Runs of each pair, all but the first in a random order of warps.
    pub(super) schedules: u32,
}

impl Judge<'_> {
    /// Compiles the reference kernel, where there is one, for each problem. The inner error is its
    /// author's to mend.
    pub(super) fn reference(&self) -> Result<Result<(), String>, CompileError> {
        let reference = self.kernel.reference.as_ref();
        if reference.is_none_or(|reference| reference.hash == self.kernel.template.hash) {
            // None, or in the kernel's own file: what is wrong there is the candidates' verdict.
            return Ok(Ok(()));
        }
        for task in self.tasks {
            if let Err(detail) = task.builder.compile_reference(self.compiler)? {
                return Ok(Err(format!("problem {}: {detail}", task.problem)));
            }
        }
        Ok(Ok(()))
    }

    /// Judges all pairs on several threads. The rows are in the order of the pairs.
    pub(super) fn all(&self, pairs: &[Pair], threads: usize) -> Result<Vec<CheckRow>, CheckError> {
        let settings = match &self.target.runner {
            None => None,
            Some(Runner::Vgpu(name)) => {
                Some(Settings::for_device(&format!("vgpu:{name}")).map_err(CheckError::Program)?)
            }
            Some(Runner::Cuda(ordinal)) => {
                let helpers = job::helpers(self.compiler, &self.target.arch)
                    .map_err(|error| CheckError::Helpers(error.to_string()))?;
                Some(Settings::for_gpu(*ordinal, helpers).map_err(CheckError::Program)?)
            }
        };
        // Each thread has a worker process of its own: one that dies takes one pair. A real GPU has
        // one worker, whatever the number of threads that compile for it.
        let shared = match &self.target.runner {
            Some(Runner::Cuda(_)) => settings
                .clone()
                .map(|one| Arc::new(Mutex::new(Worker::new(one)))),
            _ => None,
        };
        let start = || match &shared {
            Some(worker) => Some(Arc::clone(worker)),
            None => settings
                .clone()
                .map(|one| Arc::new(Mutex::new(Worker::new(one)))),
        };
        in_order(pairs, threads, start, |pair, worker| self.one(pair, worker))
    }

    fn one(
        &self,
        pair: &Pair,
        worker: &mut Option<Arc<Mutex<Worker>>>,
    ) -> Result<CheckRow, CheckError> {
        let task = &self.tasks[pair.task];
        let mut row = self.blank(task, pair);
        if let Some(why) = task.space.reject_reason(&pair.config) {
            return Ok(refused(row, Verdict::Rejected, why));
        }
        let built = match task.builder.build(self.compiler, &pair.config)? {
            Ok(built) => built,
            Err(unbuilt) => return Ok(refused(row, unbuilt.verdict, unbuilt.detail)),
        };
        let facts = &built.image.facts;
        row.registers = Some(facts.registers);
        row.spill_bytes = Some(facts.spill_bytes);
        row.shared_bytes = Some(facts.shared_bytes);
        row.cubin_hash = Some(facts.cubin_hash.to_string());
        let Some(worker) = worker else { return Ok(row) };
        let (flops, bytes) = (built.plan.flops, built.plan.bytes);
        let tolerance = tolerance::describe(&built.plan);
        let mut worker = worker.lock().unwrap_or_else(PoisonError::into_inner);
        let job = Job {
            checks: vec![built.plan],
            timed: None,
            seeds: SEEDS.to_vec(),
            schedules: self.schedules - 1,
            level: Level::Check,
        };
        let judgement = match self.target.runner {
            Some(Runner::Vgpu(_)) => {
                let (builder, compiler) = (&task.builder, self.compiler);
                vouch::judge::<CheckError>(&mut worker, job, builder, compiler, &pair.config)?
            }
            _ => worker.judge(job)?,
        };
        drop(worker);
        let time = judgement.measurement.map(|measured| measured.p50.get());
        let mut timed = self.kernel.spec.problems.iter();
        row.seen = judgement.explanation.map(|explanation| Seen {
            predicted_us: time.unwrap_or(0.0),
            blocks: explanation.blocks,
            bank_conflicts: explanation.bank_conflicts,
            shared_wavefronts: explanation.shared_wavefronts,
            tensor: explanation.tensor_flops > 0.0,
            flops,
            bytes,
            timed: timed.any(|problem| problem.name == task.problem),
        });
        Ok(CheckRow {
            verdict: judgement.verdict,
            hazards: judgement.hazards,
            detail: judgement.detail,
            max_error: judgement.max_error,
            tolerance: judgement.max_error.map(|_| tolerance),
            ..row
        })
    }

    fn blank(&self, task: &Task, pair: &Pair) -> CheckRow {
        CheckRow {
            kernel: self.kernel.spec.kernel.clone(),
            problem: task.problem.clone(),
            config: task.space.values(&pair.config),
            verdict: Verdict::Ok,
            hazards: Vec::new(),
            detail: String::new(),
            registers: None,
            spill_bytes: None,
            shared_bytes: None,
            max_error: None,
            tolerance: None,
            device: self.target.device.clone(),
            cubin_hash: None,
            seen: None,
            warnings: Vec::new(),
            changed: changed(&task.space, pair),
        }
    }
}

fn refused(row: CheckRow, verdict: Verdict, detail: String) -> CheckRow {
    CheckRow {
        verdict,
        detail,
        ..row
    }
}

/// The parameters that differ from their defaults.
fn changed(space: &Space, pair: &Pair) -> ConfigValues {
    let defaults = space.values(&space.default_config());
    let values = space.values(&pair.config).into_iter().zip(defaults);
    values
        .filter(|(value, default)| value != default)
        .map(|(value, _)| value)
        .collect()
}
