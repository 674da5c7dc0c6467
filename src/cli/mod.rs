//! The command line: a file for each command, with an `Args` struct and a `run` function.

pub(crate) mod ablate;
pub(crate) mod adopt;
mod any;
pub(crate) mod check;
pub(crate) mod compile_worker;
pub(crate) mod completions;
mod daemon;
pub(crate) mod device_test;
pub(crate) mod device_worker;
pub(crate) mod doctor;
mod error;
mod events;
pub(crate) mod evolve;
pub(crate) mod exec;
mod failures;
mod fit;
pub(crate) mod export;
mod fleet;
pub(crate) mod gate;
mod history;
pub(crate) mod import;
pub(crate) mod leaderboard;
mod lineage;
pub(crate) mod man;
pub(crate) mod new;
pub(crate) mod outcome;
mod output;
mod plan;
pub(crate) mod portfolio;
pub(crate) mod predict;
pub(crate) mod profile;
mod progress;
mod proof;
pub(crate) mod space;
pub mod readers;
pub(crate) mod record;
pub(crate) mod replay;
pub(crate) mod report;
mod results;
pub(crate) mod run;
mod search_path;
pub(crate) mod serve;
pub(crate) mod status;
pub(crate) mod stop;
pub(crate) mod submit;
mod summary;
mod wanted;
mod stale;
pub(crate) mod sync;
pub(crate) mod terminal;
pub(crate) mod verify;
pub(crate) mod worker;

use crate::exit;
use clap::{Parser, Subcommand};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

pub(crate) use error::CliError;
use error::{complete, usage};

/// Auto-tuner for CUDA C++ kernel templates.
#[derive(Debug, Parser)]
#[command(
    name = "tuner",
    version,
    about,
    propagate_version = true,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,

    /// Show all columns of a table, however narrow the terminal is
    #[arg(long, global = true, help_heading = "Display")]
    wide: bool,
}

/// Defines the commands and their dispatch.
macro_rules! commands {
    ($($(#[$about:meta])* $name:ident($args:ty) => $run:path,)+) => {
        /// Commands, in the order in which a new user needs them.
        #[derive(Debug, Subcommand)]
        enum Command {
            $($(#[$about])* $name($args),)+
        }

        fn run(command: &Command) -> CommandResult {
            match command {
                $(Command::$name(args) => $run(args),)+
            }
        }
    };
}

commands! {
    Run(Box<run::Args>) => run::run,
    Leaderboard(leaderboard::Args) => leaderboard::run,
    Export(export::Args) => export::run,
    Import(import::Args) => import::run,
    Record(record::Args) => record::run,
    Sync(sync::Args) => sync::run,
    Report(report::Args) => report::run,
    Portfolio(Box<portfolio::Args>) => portfolio::run,
    Gate(gate::Args) => gate::run,
    Verify(verify::Args) => verify::run,
    Evolve(Box<evolve::Args>) => evolve::run,
    Profile(profile::Args) => profile::run,
    Replay(replay::Args) => replay::run,
    Space(space::Args) => space::run,
    Adopt(adopt::Args) => adopt::run,
    Check(check::Args) => check::run,
    Predict(predict::Args) => predict::run,
    Exec(exec::Args) => exec::run,
    Ablate(ablate::Args) => ablate::run,
    Serve(serve::Args) => serve::run,
    Submit(submit::Args) => submit::run,
    Status(status::Args) => status::run,
    Stop(stop::Args) => stop::run,
    Worker(worker::Args) => worker::run,
    New(new::Args) => new::run,
    Doctor(doctor::Args) => doctor::run,
    Completions(completions::Args) => completions::run,
    Man(man::Args) => man::run,
    #[command(hide = true, name = tuner_kernel::compile::WORKER_COMMAND)]
    CompileWorker(compile_worker::Args) => compile_worker::run,
    #[command(hide = true)]
    DeviceTest(device_test::Args) => device_test::run,
    #[command(hide = true)]
    ProfileTarget(profile::TargetArgs) => profile::run_target,
    #[command(hide = true)]
    DeviceWorker(device_worker::Args) => device_worker::run,
}

/// Exit code of a completed command.
pub(crate) type CommandResult = Result<u8, CliError>;

/// Parses the arguments, runs the command, and returns its exit code.
#[must_use]
pub fn main() -> ExitCode {
    // Before the arguments are parsed: they may name GPUs of the tables.
    if let Some(folder) = std::env::var_os("TUNER_ARCH_DIR")
        && let Err(error) = vgpu::arch::use_folder(std::path::Path::new(&folder))
    {
        say!("error: TUNER_ARCH_DIR: {error}");
        return ExitCode::from(exit::USAGE);
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            // clap also reports `--help` and `--version` as errors; they print to standard output.
            return ExitCode::from(if error.use_stderr() {
                exit::USAGE
            } else {
                exit::DONE
            });
        }
    };
    if cli.wide {
        output::show_all_columns();
    }
    init_tracing(&cli.command);
    let report = std::env::temp_dir().join(format!("tuner-panic-{}.txt", std::process::id()));
    tuner_core::panics::report_to(report.clone());
    let ended = catch_unwind(AssertUnwindSafe(|| run(&cli.command))).unwrap_or_else(|_| {
        Err(anyhow::anyhow!(
            "the tuner panicked, which is a bug; please report it with {} (what was \
             announced is stored)",
            report.display()
        ))?
    });
    match ended {
        Ok(code) => ExitCode::from(code),
        Err(CliError::Usage(text)) => {
            say_part!("{}\n", text.trim_end());
            ExitCode::from(exit::USAGE)
        }
        Err(CliError::Failed(error)) => {
            say!("error: {error:#}");
            ExitCode::from(exit::FAILED)
        }
    }
}

/// Sends logs to standard error; `TUNER_LOG=debug` (or a `tracing` filter) shows more. The daemon
/// also logs its normal operation.
fn init_tracing(command: &Command) {
    let (level, json) = match command {
        Command::Serve(args) => ("info", args.log == serve::LogStyle::Json),
        Command::Worker(_) => ("info", false),
        _ => ("warn", false),
    };
    // Users cannot act on a slow query, and its text is long.
    let usual = format!("{level},sqlx::query=error");
    let filter = tracing_subscriber::EnvFilter::try_from_env("TUNER_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(usual));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // It would panic if a log line cannot be written.
        .log_internal_errors(false)
        .with_ansi(terminal::colours())
        .with_target(false);
    let _ = if json {
        log.json().flatten_event(true).try_init()
    } else {
        log.try_init()
    };
}
