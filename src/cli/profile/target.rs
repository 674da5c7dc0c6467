//! The profiled process: one candidate on one GPU with its timed problem only.

use crate::cli::check::select::parse_config;
use crate::cli::device_test::bench::worker;
use crate::cli::{CommandResult, usage};
use crate::exit;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tuner_device::gpu;
use tuner_device::worker::protocol::Job;
use tuner_judge::gate::level::Level;
use tuner_kernel::build::PlanBuilder;
use tuner_kernel::catalog::Kernel;
use tuner_kernel::compile::{Compiler, CompilerSettings};

/// Most GPUs searched by name.
const MAX_SEARCHED_GPUS: u32 = 64;
/// Seed of the input data.
const SEED: u64 = 0x5eed;

/// Launch one candidate; for `tuner profile`
#[derive(Debug, clap::Args)]
pub(crate) struct TargetArgs {
    /// The search space's file
    file: PathBuf,

    /// The problem
    #[arg(long)]
    problem: String,

    /// Name of the GPU
    #[arg(long)]
    name: String,

    /// The configuration
    #[arg(long)]
    config: String,
}

/// Runs the command.
///
/// # Errors
/// No such GPU, or a kernel that cannot be built.
pub(crate) fn run_target(args: &TargetArgs) -> CommandResult {
    let found = (0..MAX_SEARCHED_GPUS)
        .map_while(|ordinal| gpu::find(ordinal).ok())
        .find(|facts| facts.name == args.name);
    let Some(facts) = found else {
        refuse!(
            "there is no GPU `{}` here; `tuner doctor` shows what is",
            args.name
        );
    };
    let kernel = Kernel::load_in(&args.file, Path::new("."))?;
    let limits = facts.limits();
    let space = kernel.spec.space(&args.problem, &limits).map_err(usage)?;
    let config = parse_config(&space, &args.config)?;
    let builder =
        PlanBuilder::new(Arc::new(kernel), &args.problem, &limits, &facts.arch()).map_err(usage)?;
    let compiler = Compiler::new(CompilerSettings::default())?;
    let built = builder.build(&compiler, &config)?;
    let built = built.map_err(|unbuilt| usage(unbuilt.judgement))?;
    let judgement = worker(&facts, &compiler)?.judge(Job {
        checks: Vec::new(),
        timed: Some(built.plan),
        seeds: vec![SEED],
        schedules: 0,
        level: Level::Screening,
        proof_limit: None,
        outputs: None,
    })?;
    say!("{}", judgement.judgement);
    Ok(exit::DONE)
}
