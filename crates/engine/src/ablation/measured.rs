//! Costs on a real GPU: every change passes the gate and, if correct, is timed together with the
//! base.
//!
//! The base is the fixed reference of the task, so each round of samples begins and ends with it
//! and the cost is a ratio within rounds. Rounds are kept short: few changes at a time.

use super::cost::{Cost, Timed, of_the_clock, summary, together, untimed};
use super::{Change, bad_base};
use crate::cuda::{CudaEvaluator, CudaTask};
use crate::evaluator::{Evaluator as _, Judged, Preparation};
use crate::job::{self, JobError, device_error};
use crate::judging::{KernelTask, Work};
use crate::parallel::in_order;
use crate::prior::like;
use anyhow::Context as _;
use gpu_model::resident_blocks;
use std::collections::HashMap;
use std::sync::Arc;
use tuner_core::judgement::Judgement;
use tuner_core::plan::Plan;
use tuner_core::record::Verdict;
use tuner_core::statistics::median;
use tuner_core::units::ContentHash;
use tuner_device::gpu::GpuFacts;
use tuner_device::worker::host::{Settings, Worker, WorkerError};
use tuner_judge::judgement::TimedJudgement;
use tuner_space::Config;
use vgpu::Arch;

/// Seed of the data and the order of the final rounds: data that the gate has not used.
const SEED: u64 = 0xab_1a7e;

/// Result of one change.
#[derive(Debug)]
pub struct Outcome {
    /// Result of the gate.
    pub judged: Judged,
    /// Share of a multiprocessor's threads in use, if known.
    pub occupancy: Option<f64>,
    /// Time over that of the base.
    pub cost: Option<Cost>,
    /// Median, microseconds.
    pub time_us: Option<f64>,
    /// No difference from the base was shown; `None` for the base and without a cost.
    pub same: Option<bool>,
}

/// A GPU with the base as its task's fixed reference.
pub struct Ablation {
    evaluator: CudaEvaluator,
    /// Concurrent compiles.
    threads: usize,
    device: String,
    /// The GPU table of its generation.
    arch: Option<&'static Arch>,
}

impl Ablation {
    /// Opens the GPU for a task whose base is `base`, with `jobs` concurrent compiles. Returns
    /// notes on the GPU for the user.
    ///
    /// # Errors
    /// No compiler, or a GPU that cannot be opened.
    pub fn open(
        gpu: &GpuFacts,
        task: KernelTask,
        base: &Config,
        jobs: Option<u16>,
    ) -> Result<(Self, Vec<String>), JobError> {
        // Nothing is timed during compilation, so all cores may compile.
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = jobs.map_or(cores, usize::from);
        let compiler = job::compiler_with(threads)?;
        let facts = job::facts_of(gpu);
        let helpers = job::helpers(&compiler, &facts.arch)?;
        let settings =
            Settings::for_gpu(gpu.ordinal, helpers).context("cannot find this program")?;
        let task = CudaTask {
            task,
            default: Some(base.clone()),
        };
        let workers = vec![Worker::new(settings)];
        let evaluator = CudaEvaluator::new(facts, Arc::new(compiler), vec![task], workers);
        let notes = evaluator.open().map_err(job::closed)?;
        let ablation = Self {
            evaluator,
            threads,
            device: gpu.name.clone(),
            arch: like(&gpu.name, &gpu.limits()),
        };
        Ok((ablation, notes))
    }

    /// Returns the result of every change in order; the first is the base. Reports progress.
    ///
    /// # Errors
    /// A wrong base, or tools that do not work.
    pub fn measure_all(
        &self,
        changes: &[Change],
        tell: &mut dyn FnMut(String),
    ) -> Result<Vec<Outcome>, JobError> {
        let mut gated = self.judge(changes, tell)?;
        // The base against itself: differences of that size are not claimed as costs.
        let control = self.contest(&[&changes[0].config])?.pop();
        let control = match control.unwrap_or_else(|| Err(untimed())) {
            Ok(control) => control,
            Err(why) => return Err(bad_base(&self.device, &why)),
        };
        of_the_clock(&control).into_iter().for_each(&mut *tell);
        let mut costs: Vec<Option<Cost>> = vec![None; changes.len()];
        let together = together(control.base_us);
        costs[0] = Some(control.clone());
        let timed: Vec<usize> = (1..changes.len())
            .filter(|at| gated[*at].judged.found.judgement.is_ok() && gated[*at].twin.is_none())
            .collect();
        let mut done = 0;
        for few in timed.chunks(together) {
            for (at, cost) in few.iter().zip(self.few(changes, few)?) {
                match cost {
                    Ok(cost) => costs[*at] = Some(cost),
                    Err(why) => gated[*at].judged.found.judgement = why,
                }
            }
            done += few.len();
            tell(format!("timed {done} of {}", timed.len()));
        }
        tell(summary(&control, &costs[1..]));
        share(changes, &mut gated, &mut costs);
        // One time of the base for all comparisons keeps the times in the order of the ratios.
        let bases = costs.iter().flatten().filter_map(|cost| cost.base_us);
        let unit = median(&bases.collect::<Vec<f64>>());
        // Compared with itself the base costs nothing; its interval shows the resolution of the
        // clock.
        let itself = Cost {
            ratio: 1.0,
            ..control.clone()
        };
        costs[0] = Some(itself);
        let outcome = |(at, (gated, cost)): (usize, (GateResult, Option<Cost>))| Outcome {
            judged: gated.judged,
            occupancy: gated.occupancy,
            time_us: cost
                .as_ref()
                .zip(unit)
                .map(|(cost, unit)| cost.ratio * unit),
            same: cost
                .as_ref()
                .filter(|_| at > 0)
                .map(|cost| cost.same(&control)),
            cost,
        };
        let all = gated.into_iter().zip(costs).enumerate();
        Ok(all.map(outcome).collect())
    }

    /// Compiles all, the base first, and passes each through the gate.
    fn judge(
        &self,
        changes: &[Change],
        tell: &mut dyn FnMut(String),
    ) -> Result<Vec<GateResult>, JobError> {
        let prepare = |config: &Config| self.evaluator.prepare(0, config);
        let mut known = HashMap::new();
        let mut gated = Vec::with_capacity(changes.len());
        let base = prepare(&changes[0].config).map_err(device_error)?;
        gated.push(self.evaluate(&changes[0].config, base, &gated, &mut known)?);
        let base = &gated[0].judged.found.judgement;
        // A wrong base makes every ratio meaningless, so nothing else is compiled.
        if !base.is_ok() {
            return Err(bad_base(&self.device, base));
        }
        let others = &changes[1..];
        tell(format!("compiling {} changes", others.len()));
        let state = || ();
        let prepared = in_order(others, self.threads, state, |change, ()| {
            prepare(&change.config)
        });
        for (change, prepared) in others.iter().zip(prepared.map_err(device_error)?) {
            gated.push(self.evaluate(&change.config, prepared, &gated, &mut known)?);
        }
        Ok(gated)
    }

    /// Passes a compiled change through the gate, unless an earlier one is the same code.
    fn evaluate(
        &self,
        config: &Config,
        prepared: Preparation<Work>,
        before: &[GateResult],
        known: &mut HashMap<ContentHash, usize>,
    ) -> Result<GateResult, JobError> {
        let work = match prepared {
            Preparation::Ready { work, .. } => work,
            Preparation::Judged(judged) => {
                return Ok(GateResult {
                    judged: *judged,
                    occupancy: None,
                    twin: None,
                });
            }
        };
        let occupancy = work.timed().and_then(|plan| self.occupancy(plan));
        let first = *known.entry(work.same.clone()).or_insert(before.len());
        let judged = match before.get(first) {
            Some(twin) => twin.judged.clone(),
            None => self
                .evaluator
                .evaluate(0, config, work)
                .map_err(device_error)?,
        };
        Ok(GateResult {
            judged,
            occupancy,
            twin: (first < before.len()).then_some(first),
        })
    }

    /// Times correct changes in one comparison, then those without a time one by one: a corrupted context
    /// also fails the neighbours.
    fn few(&self, changes: &[Change], few: &[usize]) -> Result<Vec<Timed>, JobError> {
        let configs: Vec<&Config> = few.iter().map(|at| &changes[*at].config).collect();
        let mut times = self.contest(&configs)?;
        // A change that was alone in its comparison would only fail again.
        if configs.len() > 1 {
            for (time, config) in times.iter_mut().zip(configs) {
                if time.is_err()
                    && let Some(again) = self.contest(&[config])?.pop()
                {
                    *time = again;
                }
            }
        }
        Ok(times)
    }

    /// Runs one comparison with the base, in a fresh process and on new data.
    fn contest(&self, configs: &[&Config]) -> Result<Vec<Timed>, JobError> {
        let owned: Vec<Config> = configs.iter().copied().cloned().collect();
        let times = match self.evaluator.finale(0, &owned, SEED) {
            Ok(times) => times,
            Err(error) => {
                let (verdict, why) = match error.downcast_ref::<WorkerError>() {
                    Some(WorkerError::Failed(why)) => (Verdict::Crashed, why),
                    Some(WorkerError::Hung(why)) => (Verdict::Timeout, why),
                    _ => return Err(device_error(error)),
                };
                // The end of the process names no culprit; `few` times each change again alone.
                let why = Judgement::new(verdict, format!("while it was timed: {why}"));
                return Ok(vec![Err(why); owned.len()]);
            }
        };
        let timed = |time: TimedJudgement| match time.measured {
            Some(measured) => Cost::from_measurement(measured.record()).ok_or_else(untimed),
            None => Err(time.judgement),
        };
        Ok(times.into_iter().map(timed).collect())
    }

    /// Returns the share of a multiprocessor's threads in use while the longest part of the launch
    /// runs, limited by registers, shared memory and the number of blocks. `None` for a generation
    /// without a table and for several kernels in sequence.
    fn occupancy(&self, plan: &Plan) -> Option<f64> {
        let arch = self.arch?;
        let [launch] = plan.launches.as_slice() else {
            return None;
        };
        let needs = plan.code.needs(&launch.entry);
        let threads = u32::try_from(launch.threads()).ok()?;
        let shared = u64::from(launch.shared_bytes) + needs.static_shared_bytes;
        let fit = resident_blocks(arch, threads, needs.registers, shared);
        // A small grid has fewer blocks per multiprocessor than one could hold.
        let mine = launch.blocks().div_ceil(u64::from(arch.sm_count));
        // Warps are allocated whole, so a partial one occupies 32 threads.
        let busy = u64::from(fit).min(mine) * u64::from(threads.div_ceil(32) * 32);
        Some(busy as f64 / f64::from(arch.max_threads_per_sm))
    }
}

/// A change that has passed through the gate.
struct GateResult {
    judged: Judged,
    occupancy: Option<f64>,
    /// An earlier change with the same code and launches.
    twin: Option<usize>,
}

/// Copies the figures of a change to those with the same code and launches.
fn share(changes: &[Change], gated: &mut [GateResult], costs: &mut [Option<Cost>]) {
    for at in 0..gated.len() {
        let Some(first) = gated[at].twin else {
            continue;
        };
        let shared = gated[first].judged.found.judgement.clone();
        costs[at] = costs[first].clone().map(|cost| match first {
            // By definition, not by a clock.
            0 => Cost {
                ratio: 1.0,
                interval: [1.0; 2],
                flags: Vec::new(),
                ..cost
            },
            _ => cost,
        });
        let change = &changes[first];
        let whom = match first {
            0 => "the base".to_owned(),
            // A pathology changes several parameters.
            _ if change.to.contains('=') => change.to.clone(),
            _ => format!("{}={}", change.what, change.to),
        };
        gated[at].judged.found.judgement = if shared.is_ok() {
            Judgement {
                detail: format!("the same machine code and launches as {whom}"),
                ..shared
            }
        } else {
            shared
        };
    }
}
