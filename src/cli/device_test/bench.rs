//! A kernel and problem on a worker's GPU.

use super::Subject;
use crate::cli::check::select::parse_config;
use crate::cli::{CliError, usage};
use anyhow::Context as _;
use std::sync::Arc;
use tuner_core::plan::{CodeFormat, Plan};
use tuner_device::DeviceSelector;
use tuner_device::gpu;
use tuner_device::gpu::GpuFacts;
use tuner_device::worker::host::{Settings, Worker};
use tuner_engine::job;
use tuner_kernel::build::PlanBuilder;
use tuner_kernel::catalog;
use tuner_kernel::compile::{Compiler, CompilerSettings};
use tuner_space::{BindError, Space};

/// A kernel and problem with a worker.
pub(super) struct Bench {
    space: Space,
    builder: PlanBuilder,
    compiler: Compiler,
    pub(super) worker: Worker,
    /// Code format of the GPU.
    pub(super) carry: CodeFormat,
}

/// Returns the GPU and a compiler for it.
pub(super) fn gpu(ordinal: u32) -> Result<(GpuFacts, Compiler), CliError> {
    let facts =
        gpu::find(ordinal).map_err(|error| job::absent(&DeviceSelector::Cuda(ordinal), &error))?;
    Ok((facts, Compiler::new(CompilerSettings::default())?))
}

fn settings(facts: &GpuFacts, compiler: &Compiler) -> Result<Settings, CliError> {
    let helpers = job::helpers(compiler, &facts.arch())?;
    Ok(Settings::for_gpu(facts.ordinal, helpers).context("cannot find this program")?)
}

/// Starts a worker for the GPU.
pub(in crate::cli) fn worker(facts: &GpuFacts, compiler: &Compiler) -> Result<Worker, CliError> {
    Ok(Worker::new(settings(facts, compiler)?))
}

impl Bench {
    pub(super) fn open(ordinal: u32, subject: &Subject) -> Result<Self, CliError> {
        let (facts, compiler) = gpu(ordinal)?;
        let names = [subject.kernel.clone()];
        let mut kernels = catalog::resolve(&names, &subject.folder)?.into_iter();
        let kernel = Arc::new(kernels.next().context("one name is one kernel")?);
        let wrong = |error: BindError| usage(format!("{}: {error}", catalog::shown(&kernel.path)));
        let first = kernel.spec.problems.first().map(|one| one.name.clone());
        let problem = subject.problem.clone().or(first).unwrap_or_default();
        let limits = facts.limits();
        let space = kernel.spec.space(&problem, &limits).map_err(wrong)?;
        let builder = PlanBuilder::new(Arc::clone(&kernel), &problem, &limits, &facts.arch())
            .map_err(wrong)?;
        let settings = settings(&facts, &compiler)?;
        Ok(Self {
            space,
            builder,
            carry: settings.carry,
            worker: Worker::new(settings),
            compiler,
        })
    }

    /// Builds the plan of a configuration, `K=V,…`; other parameters take their defaults.
    pub(super) fn plan(&self, config: &str) -> Result<Plan, CliError> {
        let config = match config {
            "" => self.space.default_config(),
            text => parse_config(&self.space, text)?,
        };
        let built = self.builder.build(&self.compiler, &config)?;
        let built = built.map_err(|unbuilt| anyhow::anyhow!("{}", unbuilt.judgement))?;
        Ok(built.plan)
    }
}
