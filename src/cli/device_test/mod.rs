//! `tuner device-test` (hidden): the tests of `scripts/gpu-check` on a real GPU. Prints JSON.
#![expect(
    clippy::indexing_slicing,
    reason = "the plans of this examination are its own, with the launches and arguments that it names"
)]

pub(super) mod bench;
mod once;
mod paths;
mod recovery;
mod timing;

use super::{CommandResult, output};
use crate::exit;
use anyhow::Context as _;
use std::path::PathBuf;
use tuner_device::DeviceSelector;

/// Test a real GPU and the tuner's use of it. Every test prints one JSON document.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tuner device-test facts
  tuner device-test paths --device cuda:1
  tuner device-test duel tests/planted/planted.yaml --challenger SLOW=3 --trials 20")]
pub(crate) struct Args {
    /// The GPU, cuda:N
    #[arg(long, global = true, value_name = "DEVICE", default_value = "cuda:0")]
    device: DeviceSelector,

    #[command(subcommand)]
    test: Test,
}

/// Test to run.
#[derive(Debug, clap::Subcommand)]
enum Test {
    /// Driver and NVML properties, and the device's peak rates
    Facts,
    /// Every use of a GPU by the tuner, one result each
    Paths,
    /// Repeated comparison of two configurations
    Duel(timing::DuelArgs),
    /// Several configurations together, as at the end of a run
    Finale(timing::FinaleArgs),
    /// Each configuration launched once in this process, for a profiler
    Once(once::OnceArgs),
    /// Recovery times after hangs, illegal accesses and failed assertions
    Recovery(recovery::RecoveryArgs),
}

/// A kernel and problem.
#[derive(Debug, Clone, clap::Args)]
struct Subject {
    /// A kernel by name, or its space file
    #[arg(value_name = "KERNEL|FILE.yaml")]
    kernel: String,

    /// Problem [default: the first]
    #[arg(long, value_name = "NAME")]
    problem: Option<String>,

    /// Folder in which the search for kernels begins
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,
}

/// Runs the test and prints its result.
///
/// # Errors
/// No such GPU or kernel, or a worker that does not work.
pub(crate) fn run(args: &Args) -> CommandResult {
    let DeviceSelector::Cuda(ordinal) = args.device else {
        refuse!(
            "a real GPU is tested, not {}; type --device cuda:N",
            args.device
        );
    };
    let (report, passed) = match &args.test {
        Test::Facts => paths::facts(ordinal)?,
        Test::Paths => paths::run_all(ordinal)?,
        Test::Duel(duel) => timing::duel(ordinal, duel)?,
        Test::Finale(finale) => timing::finale(ordinal, finale)?,
        Test::Once(once) => once::run(ordinal, once)?,
        Test::Recovery(recovery) => recovery::run(ordinal, recovery)?,
    };
    let text = serde_json::to_string_pretty(&report).context("cannot make JSON")?;
    output::print(&text).context("cannot write to standard output")?;
    Ok(if passed { exit::DONE } else { exit::NOT_OK })
}
