//! `tuner exec`: runs a CUDA program on the virtual GPU, or captures one on a GPU.

pub(super) mod capture;
mod libraries;
mod program;
mod sanitizer;
mod show;
mod target;

use self::target::Target;
use super::CommandResult;
use crate::{atomic, exit};
use anyhow::Context as _;
use clap::ValueEnum;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;
use tuner_device::DeviceSelector;
use virtual_driver::{Options, Prediction, Server, Summary};

/// Minimum host time of a launch that is reported on standard error.
const MIN_REPORTED_TIME: Duration = Duration::from_secs(10);

/// Run a CUDA program on the virtual GPU and report hazards
///
/// The program is an ordinary executable; compile it with -lineinfo for source lines. Its kernels run on the
/// virtual GPU, its output and exit code are its own, and a summary of kernels and hazards follows on standard
/// error.
/// No GPU, driver or CUDA installation is needed to run it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tuner exec -- ./app --size 1024
  tuner exec --device vgpu:h100 --json hazards.json -- ./app
  tuner exec --build vector_add.cu -- 1024
  tuner exec --capture captured -- ./app 1024 && tuner adopt app.cu --captured captured
  tuner exec --device cuda:0 --capture captured -- ./app 1048576
  tuner exec --format sanitizer --error-exitcode 1 -- ./app

With --build, the arguments after -- are those of the program that was built.

Exit codes: the program's own; 4 where a hazard was found or the virtual GPU could not run a launch
(--error-exitcode); 128+N where the program died of signal N; 2 bad usage, or a program that cannot use the virtual GPU.")]
pub(crate) struct Args {
    /// Virtual GPU, vgpu:NAME; or with --capture a GPU, cuda:N: the program runs there, and the captured
    /// launches are repeated on the virtual GPU to find their reads and writes
    #[arg(long, value_name = "DEVICE", default_value = "vgpu:a100")]
    device: DeviceSelector,

    /// Check only kernels whose name contains this; repeat for several [default: all]
    #[arg(long, value_name = "NAME")]
    kernel: Vec<String>,

    /// Do not check for races and reads of unwritten memory: faster
    #[arg(long)]
    no_hazards: bool,

    /// Exit code if a hazard was found or a launch could not run; 0 keeps the program's
    #[arg(long, value_name = "N", default_value_t = exit::NOT_OK)]
    error_exitcode: u8,

    /// Format of the summary
    #[arg(long, value_enum, default_value = "text")]
    format: SummaryFormat,

    /// Also write the summary as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Compile this CUDA file with the installed nvcc (see scripts/get-nvcc) and run the result;
    /// repeat for several files
    #[arg(long, value_name = "FILE.cu")]
    build: Vec<PathBuf>,

    /// Option for nvcc, with --build; repeat for several
    #[arg(
        long,
        value_name = "OPTION",
        allow_hyphen_values = true,
        requires = "build"
    )]
    nvcc_option: Vec<String>,

    /// Predict the time of each launch by the timing model, from its machine code; otherwise times are
    /// lower bounds
    #[arg(long)]
    predict: bool,

    /// Predict each launch and do not run it: for sizes that take too long; the program's results are then
    /// invalid
    #[arg(long, conflicts_with_all = ["predict", "folder"])]
    predict_only: bool,

    /// Stop a launch after this many lane instructions [default: none; 20000000000 for the repetitions of a GPU's
    /// launches]
    #[arg(long, value_name = "N")]
    max_work: Option<u64>,

    /// Host threads [default: number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,

    /// Program and its arguments, after --
    #[arg(last = true, value_name = "PROGRAM ARGS")]
    command: Vec<std::ffi::OsString>,

    #[command(flatten)]
    capture: capture::CaptureArgs,
}

impl Args {
    fn prediction(&self) -> Prediction {
        match (self.predict_only, self.predict) {
            (true, _) => Prediction::ModelOnly,
            (false, true) => Prediction::Model,
            (false, false) => Prediction::Bound,
        }
    }
}

/// Format of the summary on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SummaryFormat {
    /// Human-readable tables.
    Text,
    /// The format of compute-sanitizer, for scripts that parse it.
    Sanitizer,
}

/// The summary as `--json` writes it.
#[derive(Debug, Serialize)]
struct Document<'a> {
    /// Version of this document.
    format: u32,
    program: Vec<String>,
    device: &'a str,
    /// The program's own exit code; null if a signal ended it.
    exit_code: Option<i32>,
    /// The signal that ended the program.
    signal: Option<i32>,
    #[serde(flatten)]
    summary: &'a Summary,
}

/// Runs the command.
///
/// # Errors
/// A program that does not exist or cannot use the virtual GPU; a device that cannot run programs.
pub(crate) fn run(args: &Args) -> CommandResult {
    let target = Target::find(&args.device, args.capture.folder.is_some())?;
    let arch = target.arch;
    let folder = tempfile::Builder::new().prefix("tuner-exec-").tempdir()?;
    let command = program::prepare(args, folder.path(), &target)?;
    if let Some(path) = &args.json {
        // A long program must not end with a summary that cannot be written.
        program::check_output(path)?;
    }
    let device = target.name(&args.device);
    let writer = capture::begin(&args.capture, command.words(), device)?;
    let server = Server::start(Options {
        arch,
        hazards: !args.no_hazards,
        kernels: args.kernel.clone(),
        lane_budget: target.lane_budget(args.max_work),
        threads: args.threads.map_or(0, usize::from),
        folder: folder.path().to_owned(),
        progress: Some(MIN_REPORTED_TIME),
        prediction: args.prediction(),
        capture: writer.clone(),
    })?;
    let status = program::spawn(&command, folder.path(), server.path(), &target)?;
    let summary = server.finish();
    if !target.is_virtual() {
        say!("captured launches, repeated on the virtual GPU:");
    }
    match args.format {
        SummaryFormat::Text => show::print(&summary, arch.full_name, !args.no_hazards),
        SummaryFormat::Sanitizer => sanitizer::print(&summary),
    }
    if let Some((writer, folder)) = writer.as_deref().zip(args.capture.folder.as_deref()) {
        capture::finish(writer, folder, status);
    }
    if let Some(path) = &args.json {
        write_json(path, args, &command, status, &summary)?;
    }
    Ok(exit_code(status, &summary, args.error_exitcode))
}

/// Folder in which a command runs, and its GPU.
#[derive(Debug, Clone, Copy)]
pub(super) struct CommandPlace<'a> {
    /// The working directory: a copy.
    pub(super) copy: &'a Path,
    /// The folder that was copied.
    pub(super) original: &'a Path,
    /// The GPU on which it runs.
    pub(super) device: &'a DeviceSelector,
}

/// Runs a command of `sh` in a copy of a folder on a virtual GPU, or on a GPU, and captures its launches.
///
/// # Errors
/// A command that cannot be run or has a non-zero exit code.
pub(super) fn capture_command(
    command: &str,
    place: CommandPlace<'_>,
    folder: &Path,
    values: &[(String, i64)],
) -> Result<(), super::CliError> {
    let target = Target::find(place.device, true)?;
    let args = capture::CaptureArgs::with_defaults(folder, values);
    let temporary = tempfile::Builder::new().prefix("tuner-exec-").tempdir()?;
    let program = program::shell(command, place.copy, place.original);
    let device = target.name(place.device);
    let writer = capture::begin(&args, vec![command.to_owned()], device)?;
    let server = Server::start(Options {
        arch: target.arch,
        hazards: true,
        kernels: Vec::new(),
        lane_budget: target.lane_budget(None),
        threads: 0,
        folder: temporary.path().to_owned(),
        progress: Some(MIN_REPORTED_TIME),
        prediction: Prediction::Bound,
        capture: writer.clone(),
    })?;
    let status = program::spawn(&program, temporary.path(), server.path(), &target)?;
    let summary = server.finish();
    for note in &summary.notes {
        say!("note: {note}");
    }
    if let Some(writer) = writer.as_deref() {
        capture::end(writer, folder, status);
    }
    if !status.success() {
        refuse!(
            "`{command}` ended with {status}; where its build fails, correct the command, and where the \
             program itself does not end with 0 its results are not taken as right"
        );
    }
    Ok(())
}

fn write_json(
    path: &Path,
    args: &Args,
    command: &program::Program,
    status: ExitStatus,
    summary: &Summary,
) -> Result<(), super::CliError> {
    let document = Document {
        format: 1,
        program: command.words(),
        device: &args.device.to_string(),
        exit_code: status.code(),
        signal: program::signal(status),
        summary,
    };
    let text = serde_json::to_string_pretty(&document)?;
    atomic::write(path, format!("{text}\n").as_bytes())
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(())
}

/// Returns the exit code of the command.
fn exit_code(status: ExitStatus, summary: &Summary, for_hazards: u8) -> u8 {
    let damaged = !summary.hazards.is_empty() || !summary.unsupported_launches.is_empty();
    if for_hazards != 0 && damaged {
        return for_hazards;
    }
    if let Some(signal) = program::signal(status) {
        // As shells report it.
        return u8::try_from(128 + signal).unwrap_or(exit::FAILED);
    }
    status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(exit::FAILED)
}
