//! Predicted times of configurations: what `predict` and `ablate` share.

use super::CliError;
use super::parallel::in_order;
use anyhow::Context as _;
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tuner_core::record::{Compilation, ConfigValues, Verdict, config_as_object};
use tuner_core::units::Micros;
use tuner_device::vgpu::Limits;
use tuner_device::worker::host::{Settings, Worker, WorkerError};
use tuner_device::worker::protocol::Job;
use tuner_device::{DeviceSelector, limits};
use tuner_engine::vouch;
use tuner_judge::gate::level::Level;
use tuner_judge::judgement::Judgement;
use tuner_judge::timing::predict::{Explanation, Forecaster};
use tuner_kernel::build::PlanBuilder;
use tuner_kernel::catalog;
use tuner_kernel::catalog::Kernel;
use tuner_kernel::compile::{CompileError, Compiler, CompilerSettings};
use tuner_kernel::declarations;
use tuner_space::{Config, Space};
use vgpu::Arch;

/// Seed of the input data.
const SEED: u64 = 0x5eed;

/// One configuration's answer.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Row {
    pub(super) kernel: String,
    pub(super) problem: String,
    pub(super) device: String,
    #[serde(with = "config_as_object")]
    pub(super) config: ConfigValues,
    pub(super) verdict: Verdict,
    pub(super) detail: String,
    /// Always `predicted`.
    pub(super) timing: &'static str,
    pub(super) time_us: Option<f64>,
    pub(super) registers: Option<u32>,
    pub(super) spill_bytes: Option<u64>,
    pub(super) shared_bytes: Option<u64>,
    /// `ok`, or that the time is not reliable and why.
    pub(super) reliability: String,
    #[serde(flatten)]
    pub(super) explanation: Option<Explanation>,
}

impl Row {
    fn compiled(&mut self, facts: &Compilation) {
        self.registers = Some(facts.registers);
        self.spill_bytes = Some(facts.spill_bytes);
        self.shared_bytes = Some(facts.shared_bytes);
    }
}

/// What keeps configurations from being predicted: no fault of theirs.
#[derive(Debug, thiserror::Error)]
enum PredictError {
    #[error(transparent)]
    Compile(#[from] CompileError),
    #[error(transparent)]
    Worker(#[from] WorkerError),
}

/// One kernel and problem on one virtual GPU, ready to predict.
pub(super) struct Predictor {
    /// The kernel.
    pub(super) kernel: Arc<Kernel>,
    /// The problem's name.
    pub(super) problem: String,
    /// The device, as `vgpu:NAME`.
    pub(super) selector: String,
    /// The valid configurations.
    pub(super) space: Space,
    arch: &'static Arch,
    builder: PlanBuilder,
    compiler: Compiler,
    threads: usize,
    costs: Costs,
}

/// What predicting cost so far, summed over threads.
#[derive(Debug, Default)]
struct Costs {
    /// Compiles that NVRTC did, and their microseconds.
    compiled: AtomicU64,
    compile_us: AtomicU64,
    /// Forecasts, and their microseconds: reading PTX and machine code, sampled blocks, replay.
    forecast: AtomicU64,
    forecast_us: AtomicU64,
}

impl Predictor {
    /// Opens a kernel by name or file; the first problem where none is asked for.
    pub(super) fn open(
        kernel: &str,
        asked: Option<&str>,
        device: &DeviceSelector,
        jobs: Option<u16>,
    ) -> Result<Self, CliError> {
        let name = match device {
            DeviceSelector::Auto => limits::DEFAULT,
            DeviceSelector::Vgpu(name) => name,
            other => {
                return Err(CliError::Usage(format!(
                    "error: times are predicted for a virtual GPU, not for {other}; type --device \
                     vgpu:NAME (one of: {})",
                    limits::names()
                )));
            }
        };
        let device = limits::by_name(name).context("the selector knows its devices")?;
        let imitated = Arch::by_name(name).context("the selector knows its devices")?;
        let (kernel, problem) = named(kernel, asked)?;
        let usage = |error: &dyn std::fmt::Display| {
            CliError::Usage(format!("error: {}: {error}", catalog::shown(&kernel.path)))
        };
        let space = kernel
            .spec
            .space(&problem, &device)
            .map_err(|error| usage(&error))?;
        let arch = format!("sm_{}", device.cc);
        let builder = PlanBuilder::new(Arc::clone(&kernel), &problem, &device, &arch)
            .map_err(|error| usage(&error))?;
        // Nothing is timed here: every core may work.
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = jobs.map_or(cores, usize::from);
        let settings = CompilerSettings::with_jobs(threads);
        let compiler = Compiler::new(settings).map_err(|error| anyhow::anyhow!("{error}"))?;
        declarations::check(
            kernel.declared(),
            &[(&problem, &space)],
            &device,
            &arch,
            &compiler,
        )?;
        Ok(Self {
            arch: imitated,
            selector: format!("vgpu:{name}"),
            kernel,
            problem,
            space,
            builder,
            compiler,
            threads,
            costs: Costs::default(),
        })
    }

    /// Predicts all configurations without running them whole: neither results nor hazards are
    /// checked. Rows are in their order.
    pub(super) fn forecast(&self, configs: &[Config]) -> Result<Vec<Row>, CliError> {
        let limit = Limits::default().memory_bytes.min(self.arch.memory_bytes);
        let start = || Forecaster::new(self.arch, limit);
        let rows = in_order(configs, self.threads, start, |config, forecaster| {
            self.quick(config, forecaster)
        });
        rows.map_err(|error| CliError::Failed(anyhow::Error::from(error).context("cannot predict")))
    }

    fn quick(&self, config: &Config, forecaster: &mut Forecaster) -> Result<Row, CompileError> {
        let mut row = self.row(config);
        let built = match self.builder.build(&self.compiler, config)? {
            Ok(built) => built,
            Err(unbuilt) => {
                (row.verdict, row.detail) = (unbuilt.verdict, unbuilt.detail);
                return Ok(row);
            }
        };
        row.compiled(&built.image.facts);
        let compile_us = built.image.facts.compile_us;
        if compile_us > 0 {
            self.costs.compiled.fetch_add(1, Ordering::Relaxed);
            self.costs
                .compile_us
                .fetch_add(compile_us, Ordering::Relaxed);
        }
        let start = Instant::now();
        let forecast = forecaster.forecast(&built.plan);
        let forecast_us = start.elapsed().as_micros() as u64;
        self.costs.forecast.fetch_add(1, Ordering::Relaxed);
        self.costs
            .forecast_us
            .fetch_add(forecast_us, Ordering::Relaxed);
        match forecast {
            Ok(forecast) => {
                row.time_us = Some(forecast.time.get());
                row.reliability = forecast.explanation.reliability();
                row.explanation = Some(forecast.explanation);
            }
            Err(fault) => (row.verdict, row.detail) = (fault.verdict, fault.detail),
        }
        Ok(row)
    }

    /// One line on what the forecasts so far cost; `None` before the first.
    pub(super) fn cost(&self) -> Option<String> {
        let mean = |us: &AtomicU64, count: &AtomicU64| {
            let count = count.load(Ordering::Relaxed);
            (count > 0).then(|| us.load(Ordering::Relaxed) as f64 / 1e6 / count as f64)
        };
        let forecast = mean(&self.costs.forecast_us, &self.costs.forecast)?;
        let count = self.costs.forecast.load(Ordering::Relaxed);
        let threads = self.threads;
        let Some(compile) = mean(&self.costs.compile_us, &self.costs.compiled) else {
            return Some(format!(
                "{count} predicted on {threads} threads: {forecast:.3} s each; all compiled before"
            ));
        };
        let compiled = self.costs.compiled.load(Ordering::Relaxed);
        Some(format!(
            "{count} predicted on {threads} threads: {compile:.3} s a compile ({compiled} compiled, \
             the others before), {forecast:.3} s a prediction, {:.2} compiles in all",
            (compile + forecast) / compile
        ))
    }

    /// Checks and predicts all configurations; rows are in their order.
    pub(super) fn predict(&self, configs: &[Config]) -> Result<Vec<Row>, CliError> {
        let worker = Settings::for_device(&self.selector).context("cannot find this program")?;
        let start = || Worker::new(worker.clone());
        let rows = in_order(configs, self.threads, start, |config, worker| {
            self.one(config, worker)
        });
        rows.map_err(|error| match error {
            PredictError::Worker(WorkerError::Unusable(why)) => {
                let yaml = catalog::shown(&self.kernel.path);
                CliError::Usage(format!("error: {yaml}: {why}"))
            }
            other => CliError::Failed(anyhow::Error::from(other).context("cannot predict")),
        })
    }

    fn row(&self, config: &Config) -> Row {
        Row {
            kernel: self.kernel.spec.kernel.clone(),
            problem: self.problem.clone(),
            device: self.selector.clone(),
            config: self.space.values(config),
            verdict: Verdict::Ok,
            detail: String::new(),
            timing: "predicted",
            time_us: None,
            registers: None,
            spill_bytes: None,
            shared_bytes: None,
            reliability: String::new(),
            explanation: None,
        }
    }

    fn one(&self, config: &Config, worker: &mut Worker) -> Result<Row, PredictError> {
        let mut row = self.row(config);
        let built = match self.builder.build(&self.compiler, config)? {
            Ok(built) => built,
            Err(unbuilt) => {
                (row.verdict, row.detail) = (unbuilt.verdict, unbuilt.detail);
                return Ok(row);
            }
        };
        row.compiled(&built.image.facts);
        let job = Job {
            checks: Vec::new(),
            timed: Some(built.plan),
            level: Level::Screening,
            seeds: vec![SEED],
            schedules: 0,
        };
        let judgement: Judgement =
            vouch::judge::<PredictError>(worker, job, &self.builder, &self.compiler, config)?;
        row.verdict = judgement.verdict;
        row.detail = judgement.detail;
        let measured = judgement.measurement.map(|measured| measured.p50);
        row.time_us = measured.or(judgement.unproven).map(Micros::get);
        row.explanation = judgement.explanation;
        row.reliability = row
            .explanation
            .as_ref()
            .map_or_else(String::new, Explanation::reliability);
        Ok(row)
    }
}

/// A kernel by name or file, and its problem; the first where none is asked for.
pub(super) fn named(kernel: &str, asked: Option<&str>) -> Result<(Arc<Kernel>, String), CliError> {
    let folder = std::env::current_dir().context("no working directory")?;
    let kernels = catalog::resolve(&[kernel.to_owned()], &folder)
        .map_err(|error| CliError::Usage(error.to_string()))?;
    let first = kernels.into_iter().next();
    let kernel = Arc::new(first.context("one name is one kernel")?);
    let problem = problem(&kernel, asked)?;
    Ok((kernel, problem))
}

fn problem(kernel: &Kernel, asked: Option<&str>) -> Result<String, CliError> {
    let spec = &kernel.spec;
    let name = asked.or_else(|| spec.problems.first().map(|problem| problem.name.as_str()));
    if let Some(name) = name
        && spec.problem(name).is_some()
    {
        return Ok(name.to_owned());
    }
    let known: Vec<&str> = spec
        .problems
        .iter()
        .map(|problem| problem.name.as_str())
        .collect();
    Err(CliError::Usage(format!(
        "error: {} has no problem `{}`; it has {}",
        catalog::shown(&kernel.path),
        name.unwrap_or_default(),
        known.join(", ")
    )))
}
