//! `tuner verify`: checks that shipped configurations still build, are correct, and are as fast as
//! recorded.

mod artefacts;
mod check;
mod show;

use super::outcome::{Outcome, percent};
use super::output::{self, Format};
use super::terminal::Ticker;
use super::{CliError, CommandResult, usage};
use crate::exit;
use artefacts::Artefact;
use serde::Serialize;
use std::path::{Path, PathBuf};
use tuner_core::record::{Compared, ConfigValues, TimingKind, Verdict, config_as_object};
use tuner_device::DeviceSelector;
use tuner_engine::job::ProveBudget;
use tuner_report::export::{CodeChange, Shipped};

/// Check that shipped headers, launchers and packages still build, are correct and as fast as recorded
///
/// Every entry is rebuilt with the local NVRTC: from the source that a launcher holds, else from the
/// project's template. The gate judges it on its own sizes and on all check problems, on the local device
/// or a virtual one. Template, machine code, registers and spills are compared with the record if both are
/// for the same compute capability, and times if they are of the same device and kind. A change is reported
/// and is not a failure by itself.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tuner verify include/gemm_f32_tuned.h
  tuner verify include --device vgpu:a100
  tuner verify gemm_f16_launch.h --kernel search_spaces/gemm_f16.yaml --max-regression 5%

A folder is searched for headers, launchers and JSON files of `tuner export` and `tuner record`.
Without --device: the first GPU, else the virtual GPU of each entry, else vgpu:h100. Entries whose
configuration is not valid on this device are skipped, unless they were tuned for it.

Exit codes: 0 passed; 2 bad usage or input, or nothing that can be checked here; 4 a regression, or a
result that is wrong or can no longer be built.")]
pub(crate) struct Args {
    /// Shipped file, or a folder with such files
    #[arg(value_name = "HEADER|FOLDER")]
    pub(super) path: PathBuf,

    /// Device: auto, cuda, cuda:N or vgpu:NAME
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub(super) device: DeviceSelector,

    /// Search space of the kernel, for files that do not name it or outside its project
    #[arg(long, value_name = "KERNEL|FILE.yaml")]
    pub(super) kernel: Option<String>,

    /// Allowed slowdown against the recorded time
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = percent)]
    pub(super) max_regression: f64,

    /// Run the configurations whole on their sizes, on a virtual GPU, if each takes at most this number of
    /// lane instructions; 0: never [default: 3e10]
    #[arg(long, value_name = "N")]
    pub(super) prove_budget: Option<ProveBudget>,

    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(super) format: Format,
}

/// Result of an entry.
#[derive(Debug, Clone, Serialize)]
struct Line {
    file: String,
    kernel: String,
    problem: String,
    /// Device at shipping.
    shipped_device: String,
    /// Device of the check.
    device: String,
    #[serde(with = "config_as_object")]
    config: ConfigValues,
    outcome: Outcome,
    detail: String,
    verdict: Option<Verdict>,
    /// Kind of comparison of the results at the entry's sizes.
    compared: Option<Compared>,
    /// `shipped`: built from the source in the file; `project`: from the project's template.
    source: &'static str,
    /// Differences of the code; null if the record is for another compute capability or lacks the code.
    changes: Option<Vec<CodeChange>>,
    timing: Option<TimingKind>,
    shipped_us_p50: f64,
    now_us_p50: Option<f64>,
    /// Ratio of the current time to the recorded one; null for another device or kind of time.
    ratio: Option<f64>,
}

/// Reads the entries of a shipped file, or of every shipped file of a folder.
///
/// # Errors
/// A file that cannot be read, or none.
pub(super) fn shipped_entries(path: &Path) -> Result<Vec<Shipped>, CliError> {
    let artefacts = artefacts::find(path)?;
    Ok(artefacts
        .into_iter()
        .flat_map(|artefact| artefact.entries)
        .collect())
}

/// Entry whose shipped source is at fault.
pub(super) struct SourceFault {
    /// Problem of the entry.
    pub(super) problem: String,
    /// Outcome of its check.
    pub(super) outcome: Outcome,
    /// Reason.
    pub(super) detail: String,
}

/// Rebuilds the `wanted` entries from the source in shipped files, and returns those at fault. Files
/// without source have none.
///
/// # Errors
/// Files that cannot be read or built, or a device that does not work.
pub(super) fn source_faults(
    args: &Args,
    wanted: impl Fn(&Shipped) -> bool,
) -> Result<Vec<SourceFault>, CliError> {
    let mut faults = Vec::new();
    for mut artefact in artefacts::find(&args.path)? {
        artefact.entries.retain(&wanted);
        if artefact.source.is_none() || artefact.entries.is_empty() {
            continue;
        }
        let lines = check::check_artefact(args, &artefact)?.into_iter();
        faults.extend(
            lines
                .filter(|line| line.outcome.is_fault())
                .map(|line| SourceFault {
                    problem: line.problem,
                    outcome: line.outcome,
                    detail: format!("built from the source in {}: {}", line.file, line.detail),
                }),
        );
    }
    Ok(faults)
}

/// Runs the command.
///
/// # Errors
/// Bad arguments or files, nothing that can be checked, or a device that does not work.
pub(crate) fn run(args: &Args) -> CommandResult {
    if matches!(
        args.device,
        DeviceSelector::Replay(_) | DeviceSelector::CudaSeveral(_)
    ) {
        return Err(usage(format!(
            "code is checked on one GPU, not on {}; type --device cuda:N or vgpu:NAME",
            args.device
        )));
    }
    let artefacts = artefacts::find(&args.path)?;
    let ticker = Ticker::start();
    let mut lines = Vec::new();
    for artefact in &artefacts {
        lines.extend(check::check_artefact(args, artefact)?);
    }
    drop(ticker);
    if lines.iter().all(|line| line.outcome == Outcome::Skipped) {
        let why = lines.first().map_or("", |line| &line.detail);
        return Err(usage(format!("nothing could be checked here: {why}")));
    }
    output::print(&show::text(args.format, &lines)?)?;
    show::tell(&lines);
    Ok(match lines.iter().any(|line| line.outcome.is_fault()) {
        true => exit::NOT_OK,
        false => exit::DONE,
    })
}
