//! Launches each configuration once in this process, for an attached profiler.

use super::Subject;
use super::bench::{Bench, gpu};
use crate::cli::{CliError, usage};
use serde_json::{Value, json};
use tuner_core::cache_mode::CacheMode;
use tuner_device::gpu::context::Gpu;
use tuner_device::gpu::helpers::Helpers;
use tuner_device::gpu::nvml::Monitor;
use tuner_device::gpu::open_driver;
use tuner_device::gpu::session::GpuSession;
use tuner_judge::stopwatch::Stopwatch as _;

/// Arguments of `once`.
#[derive(Debug, clap::Args)]
pub(super) struct OnceArgs {
    #[command(flatten)]
    subject: Subject,

    /// A configuration, K=V,…; may be given several times
    #[arg(long, value_name = "K=V,…")]
    config: Vec<String>,
}

/// Launches each configuration once, in the order given.
pub(super) fn run(ordinal: u32, args: &OnceArgs) -> Result<(Value, bool), CliError> {
    let bench = Bench::open(ordinal, &args.subject)?;
    let (facts, compiler) = gpu(ordinal)?;
    let helpers = tuner_engine::job::helpers(&compiler, &facts.arch())?;
    let carry = bench.carry;
    let driver = open_driver().map_err(usage)?;
    let gpu = Gpu::open(driver, ordinal)?;
    let helpers = Helpers::new(helpers.packed(carry));
    let mut session = GpuSession::new(gpu, helpers, Monitor::default());
    let mut rows = Vec::new();
    for config in &args.config {
        let plan = bench.plan(config)?.packed(carry);
        let entries: Vec<&str> = plan.launches.iter().map(|one| one.entry.as_str()).collect();
        let launched = session.load_subject(&plan, 1).and_then(|subject| {
            let sample = session.sample(subject, CacheMode::Warm, 1);
            session.drop_subject(subject);
            sample
        });
        rows.push(match &launched {
            Ok(_) => json!({ "config": config, "entries": entries }),
            Err(fault) => json!({ "config": config, "error": fault.detail }),
        });
    }
    let passed = rows.iter().all(|row| row.get("error").is_none());
    Ok((json!({ "rows": rows }), passed))
}
