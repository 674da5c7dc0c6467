//! `tuner import`: import of other tools' files.

pub(super) mod cutlass;
mod recorded;
mod space;
mod t1;

use super::output;
use super::results::{block_on, db_parser, write_file};
use super::{CliError, CommandResult, usage};
use crate::exit;
use anyhow::Context as _;
use std::path::{Path, PathBuf};
use tuner_core::files;
use tuner_core::units::counted;
use tuner_device::limits;
use tuner_space::{BareSpace, KernelSpec};
use tuner_store as store;

/// Import search spaces, recorded results and baseline times of other tools
///
/// The format is detected by content: a T1 problem becomes a search space with its source, grid and
/// arguments, a published space one with parameters and constraints; a Kernel Tuner cache or T4
/// results become recorded rows of the database; a CUTLASS profiler table becomes the baseline of a
/// kernel that was measured on the same GPU.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tuner import stencil.t1.json -o search_spaces/stencil.yaml
  tuner import gemm_A100.json.gz && tuner leaderboard --device 'NVIDIA A100-PCIE-40GB'
  tuner import profile.gemm.csv --kernel gemm_f16 --device 'NVIDIA H100 80GB HBM3'

Exit codes: 0 done (also when the file was imported before), 2 bad usage or input, with file, line,
column and the fix; 3 the file has no result that passed.")]
pub(crate) struct Args {
    /// File to import; `.gz` is unpacked
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Write a search space to this file [default: standard output]
    #[arg(short, long, value_name = "FILE.yaml")]
    output: Option<PathBuf>,

    /// Database of results
    #[arg(long, value_name = "FILE", default_value = store::DEFAULT_PATH, value_parser = db_parser())]
    db: PathBuf,

    /// Kernel for which a profiler table is the baseline
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,

    /// Device of a profiler table, as the leaderboard names it
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// Files that cannot be read or have an unknown format, and a database that cannot be written.
pub(crate) fn run(args: &Args) -> CommandResult {
    let text = read(&args.file)?;
    if text.trim_start().starts_with('{') {
        if text.contains("\"ConfigurationSpace\"") || text.contains("\"params\"") {
            return space(args, &text);
        }
        return block_on(recorded::import(&args.file, &args.db));
    }
    let head = text
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default();
    if head.contains("OperationKind") && head.contains("Runtime") {
        return block_on(cutlass::import(args, &text));
    }
    Err(usage(format!(
        "{}:1:1: error: this is none of: a T1 problem (JSON with `ConfigurationSpace`), a Kernel \
         Tuner cache (JSON with `cache`), T4 results (JSON with `results`), a CUTLASS profiler table \
         (CSV that begins with `Problem,Provider,OperationKind`)",
        args.file.display()
    )))
}

/// Reads the text and unpacks gzip.
fn read(path: &Path) -> Result<String, CliError> {
    let cannot =
        |error: std::io::Error| usage(format!("{}: cannot be read: {error}", path.display()));
    let bytes = files::read(path, files::MAX_RECORDING_BYTES).map_err(cannot)?;
    let unpacked = files::unpack(bytes, files::MAX_RECORDING_BYTES).map_err(cannot)?;
    // The recording's reader reports a damaged end with its position.
    if unpacked.damage.is_some() && unpacked.bytes.is_empty() {
        refuse!("{}: the gzip data are damaged", path.display());
    }
    let bytes = unpacked.bytes;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Parses the written space and returns its number of configurations.
fn again(yaml: &str, name: &Path) -> anyhow::Result<String> {
    let space = if BareSpace::recognises(yaml) {
        BareSpace::parse(yaml, name)?.space()?
    } else {
        let spec = KernelSpec::parse(yaml, name)?;
        let limits = limits::by_name(limits::DEFAULT).context("no limits of a device are known")?;
        let problem = spec.problems.first();
        let problem = problem.map(|problem| &*problem.name).unwrap_or_default();
        spec.space(problem, &limits)?
    };
    Ok(space.count().to_string())
}

fn space(args: &Args, text: &str) -> CommandResult {
    let bare = BareSpace::parse(text, &args.file)?;
    let built = bare
        .space()
        .map_err(|error| usage(format!("{}: {error}", args.file.display())))?;
    let name = args.output.clone().unwrap_or_else(|| "space.yaml".into());
    let (yaml, not_whole) = space::yaml(&bare, &built, text, &args.file, &name);
    // The written file is parsed again: it must be the same space.
    let unread = |error| anyhow::anyhow!("the written space cannot be read: {error}");
    let count = again(&yaml, &name).map_err(unread)?;
    if count != built.count().to_string() {
        Err(anyhow::anyhow!(
            "the written space is not the same as that of {}",
            args.file.display()
        ))?;
    }
    match &args.output {
        None => output::print(&yaml)?,
        Some(path) => {
            write_file(path, &yaml)?;
            say!("wrote {}", path.display());
        }
    }
    if let Some(why) = not_whole {
        say!("note: parameters and constraints only, because {why}");
    }
    say!(
        "{}: {}, {}, {}",
        bare.name,
        counted(bare.parameters.len(), "parameter"),
        counted(bare.constraints.len(), "constraint"),
        counted(built.count(), "valid configuration")
    );
    Ok(exit::DONE)
}
