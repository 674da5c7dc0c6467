//! Predicted times of configurations on a virtual GPU, for `predict` and `ablate`.

use super::evaluator::{BoxError, Judged, Preparation};
use super::grid::Grid;
use super::job::{JobError, compiler_with, device_error, requested_target, usage};
use super::judging::{Demand, JudgePool, KernelTask};
use super::other_problems::SEEDS;
use super::parallel::in_order_each;
use anyhow::Context as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tuner_core::judgement::Judgement;
use tuner_device::vgpu::Limits;
use tuner_device::{DeviceSelector, limits};
use tuner_judge::gate::level::Level;
use tuner_judge::judgement::TimedJudgement;
use tuner_kernel::build::PlanBuilder;
use tuner_kernel::catalog;
use tuner_kernel::catalog::Kernel;
use tuner_kernel::compile::{Compiler, DiskCache};
use tuner_kernel::declarations;
use tuner_predict::Forecaster;
use tuner_space::{BindError, Config, DeviceLimits, Space};
use vgpu::Arch;

/// One kernel and problem on one virtual GPU, ready to predict.
pub struct Predictor {
    /// The kernel.
    pub kernel: Arc<Kernel>,
    /// The problem's name.
    pub problem: String,
    /// The device, `vgpu:NAME`.
    pub selector: DeviceSelector,
    /// The valid configurations.
    pub space: Space,
    arch: &'static Arch,
    task: KernelTask,
    compiler: Arc<Compiler>,
    threads: usize,
    costs: Costs,
}

/// Cost of predictions so far, summed over threads.
#[derive(Debug, Default)]
struct Costs {
    /// NVRTC compiles.
    compiles: CallCost,
    /// Reading PTX and SASS, sampled blocks, replay.
    forecasts: CallCost,
}

/// Number of executions, and their total microseconds.
#[derive(Debug, Default)]
struct CallCost {
    count: AtomicU64,
    us: AtomicU64,
}

impl CallCost {
    fn add(&self, us: u64) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.us.fetch_add(us, Ordering::Relaxed);
    }

    fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Returns the mean seconds; `None` before the first execution.
    fn mean_s(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| self.us.load(Ordering::Relaxed) as f64 / 1e6 / count as f64)
    }
}

/// Virtual GPU of predictions, with the compiler for it.
struct VirtualGpu {
    name: String,
    limits: DeviceLimits,
    arch: &'static Arch,
    compiler: Arc<Compiler>,
    /// Compile target.
    target: String,
    threads: usize,
}

impl VirtualGpu {
    /// Finds the device and the compiler.
    fn new(
        device: &DeviceSelector,
        requested: Option<&str>,
        jobs: Option<u16>,
    ) -> Result<Self, JobError> {
        let name = match device {
            DeviceSelector::Auto => limits::DEFAULT,
            DeviceSelector::Vgpu(name) => name,
            other => {
                return Err(usage(format!(
                    "times are predicted for a virtual GPU, not for {other}; type --device \
                     vgpu:NAME (one of: {})",
                    limits::names()
                )));
            }
        };
        let limits = limits::by_name(name).context("the selector knows its devices")?;
        // Nothing is timed here, so all cores may compile.
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = jobs.map_or(cores, usize::from);
        let compiler = Arc::new(compiler_with(threads)?);
        Ok(Self {
            name: name.to_owned(),
            arch: Arch::by_name(name).context("the selector knows its devices")?,
            target: requested_target(requested, &limits, &compiler)?,
            limits,
            compiler,
            threads,
        })
    }

    /// Opens a problem of a kernel.
    fn predictor(&self, kernel: Arc<Kernel>, problem: String) -> Result<Predictor, JobError> {
        let arch = &*self.target;
        let wrong = |error: BindError| usage(format!("{}: {error}", catalog::shown(&kernel.path)));
        let space = kernel.spec.space(&problem, &self.limits).map_err(wrong)?;
        let builder = PlanBuilder::new(Arc::clone(&kernel), &problem, &self.limits, arch);
        let task = KernelTask::alone(builder.map_err(wrong)?);
        let problems = [(&*problem, &space)];
        declarations::check(&kernel, &problems, &self.limits, arch, &self.compiler)?;
        Ok(Predictor {
            arch: self.arch,
            selector: DeviceSelector::Vgpu(self.name.clone()),
            kernel,
            problem,
            space,
            task,
            compiler: Arc::clone(&self.compiler),
            threads: self.threads,
            costs: Costs::default(),
        })
    }
}

impl Predictor {
    /// Opens a kernel by name or file, searched for from `folder`; the first problem by default, and
    /// the device's compile target.
    ///
    /// # Errors
    /// An unknown kernel, problem, device or target, and a missing compiler.
    pub fn open(
        kernel: &str,
        folder: &Path,
        asked: Option<&str>,
        device: &DeviceSelector,
        requested: Option<&str>,
        jobs: Option<u16>,
    ) -> Result<Self, JobError> {
        let (kernel, problem) = named(kernel, folder, asked)?;
        VirtualGpu::new(device, requested, jobs)?.predictor(kernel, problem)
    }

    /// Opens each shape of a grid, in its order.
    ///
    /// # Errors
    /// As for [`Predictor::open`], and a grid with sizes that the kernel does not have.
    pub fn open_grid(
        kernel: &str,
        folder: &Path,
        grid: &Grid,
        device: &DeviceSelector,
        jobs: Option<u16>,
    ) -> Result<Vec<Self>, JobError> {
        let kernels = catalog::resolve(&[kernel.to_owned()], folder)?;
        let mut kernel = kernels
            .into_iter()
            .next()
            .context("one name is one kernel")?;
        let shapes = grid.problems(&kernel.spec).map_err(usage)?.into_iter();
        kernel.spec.problems = shapes.map(|shape| shape.problem).collect();
        let kernel = Arc::new(kernel);
        let virtual_gpu = VirtualGpu::new(device, None, jobs)?;
        let names = kernel.spec.problems.iter();
        let names = names.map(|problem| problem.name.clone());
        let open = |problem| virtual_gpu.predictor(Arc::clone(&kernel), problem);
        names.map(open).collect()
    }

    /// Predicts all configurations without running them whole, and reports each with its index in
    /// order. Neither results nor hazards are checked, so each time is `unproven`.
    ///
    /// # Errors
    /// The compiler does not work.
    pub fn forecast_each(
        &self,
        configs: &[Config],
        tell: impl FnMut(usize, Judged),
    ) -> Result<(), JobError> {
        let limit = Limits::default().memory_bytes.min(self.arch.memory_bytes);
        let start = || Forecaster::new(self.arch, limit).keeping(DiskCache::default_folder());
        let one =
            |config: &Config, forecaster: &mut Forecaster| self.forecast_one(config, forecaster);
        in_order_each(configs, self.threads, start, one, tell).map_err(device_error)
    }

    fn forecast_one(
        &self,
        config: &Config,
        forecaster: &mut Forecaster,
    ) -> Result<Judged, BoxError> {
        let work = match self.task.prepare(&self.compiler, config)? {
            Preparation::Judged(judged) => return Ok(*judged),
            Preparation::Ready { work, .. } => work,
        };
        // Zero means a cache hit, which is not the cost of a compile.
        if work.compilation.compile_us > 0 {
            self.costs.compiles.add(work.compilation.compile_us);
        }
        let plan = work.timed().context("a problem by itself is timed")?;
        let start = Instant::now();
        let forecast = forecaster.forecast(plan);
        self.costs.forecasts.add(start.elapsed().as_micros() as u64);
        let found = match forecast {
            Ok(forecast) => TimedJudgement {
                unproven: Some(forecast.time),
                explanation: Some(forecast.explanation),
                ..Judgement::ok(None).into()
            },
            Err(why) => why.into(),
        };
        Ok(work.judged(found))
    }

    /// Describes the cost of the forecasts so far in one line; `None` before the first.
    #[must_use]
    pub fn cost(&self) -> Option<String> {
        let forecast = self.costs.forecasts.mean_s()?;
        let (count, threads) = (self.costs.forecasts.count(), self.threads);
        let Some(compile) = self.costs.compiles.mean_s() else {
            return Some(format!(
                "{count} predicted on {threads} threads: {forecast:.3} s each; all compiled before"
            ));
        };
        let compiled = self.costs.compiles.count();
        Some(format!(
            "{count} predicted on {threads} threads: {compile:.3} s a compile ({compiled} compiled, \
             the others before), {forecast:.3} s a prediction, {:.2} compiles in all",
            (compile + forecast) / compile
        ))
    }

    /// Checks and predicts all configurations, in order.
    ///
    /// # Errors
    /// The tools do not work, or the space's reference is wrong.
    pub fn predict(&self, configs: &[Config]) -> Result<Vec<Judged>, JobError> {
        let mut all = Vec::with_capacity(configs.len());
        self.predict_each(configs, |_, judged| all.push(judged))?;
        Ok(all)
    }

    /// Checks and predicts all, and reports each with its index as soon as it and all before it are
    /// done.
    ///
    /// # Errors
    /// As for [`Predictor::predict`].
    pub fn predict_each(
        &self,
        configs: &[Config],
        mut tell: impl FnMut(usize, Judged),
    ) -> Result<(), JobError> {
        let pool = JudgePool {
            compiler: &self.compiler,
            device: Some((self.selector.clone(), "")),
            threads: self.threads,
            demand: Demand {
                seeds: SEEDS.to_vec(),
                schedules: 0,
                level: Level::Screening,
                timed: true,
                outputs: None,
            },
        };
        let items: Vec<_> = configs.iter().map(|config| (&self.task, config)).collect();
        pool.judge_each(&items, |_| (), |index, (judged, _)| tell(index, judged))
    }

    /// Returns the spilled bytes of a configuration's code; `None` if it does not compile.
    ///
    /// # Errors
    /// The compiler does not work.
    pub fn spill_bytes(&self, config: &Config) -> Result<Option<u64>, JobError> {
        let built = self.task.timed.build(&self.compiler, config);
        let built = built.context("cannot compile")?;
        Ok(built.ok().map(|built| built.image.facts.spill_bytes))
    }
}

/// Finds a kernel by name or file, searched for from `folder`, and its problem; the first by
/// default.
///
/// # Errors
/// An unknown name.
pub fn named(
    kernel: &str,
    folder: &Path,
    asked: Option<&str>,
) -> Result<(Arc<Kernel>, String), JobError> {
    let kernels = catalog::resolve(&[kernel.to_owned()], folder)?;
    let first = kernels.into_iter().next();
    let kernel = Arc::new(first.context("one name is one kernel")?);
    let spec = &kernel.spec;
    let name = asked.or_else(|| spec.problems.first().map(|problem| problem.name.as_str()));
    if let Some(name) = name
        && spec.problem(name).is_some()
    {
        return Ok((Arc::clone(&kernel), name.to_owned()));
    }
    let known = spec.problems.iter().map(|problem| problem.name.as_str());
    Err(usage(format!(
        "{} has no problem `{}`; it has {}",
        catalog::shown(&kernel.path),
        name.unwrap_or_default(),
        known.collect::<Vec<_>>().join(", ")
    )))
}
