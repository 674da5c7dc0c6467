//! `tuner run`: tunes kernels.

use super::daemon::TokenFile;
use super::events::{EventLog, stopping};
use super::failures::Failures;
use super::fleet::HubOptions;
use super::progress::Progress;
use super::results::{block_on, db_parser, default_database};
use super::summary::Summary;
use super::terminal::{self, ProgressMode, Ticker};
use super::wanted::RunArgs;
use super::{CliError, CommandResult, any, daemon, output, plan, submit};
use crate::exit;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tuner_core::escape::shell as quoted;
use tuner_core::record::{Compared, DeviceKind, TimingKind};
use tuner_engine::job;
use tuner_engine::job::{Prepared, Request};
use tuner_engine::threads::start_runtime;
use tuner_engine::{Event, Report, StopReason};
use tuner_serve::view::RunList;
use tuner_store as store;
use tuner_store::{DaemonRow, Store};

/// Tune kernels until the budget is used up or Ctrl-C
///
/// Proposes, compiles, checks, times and stores configurations. Results are stored immediately; Ctrl-C
/// ends the run, and `--resume` continues it later. On a recorded file (`replay:FILE`) the budget is
/// recorded time: ten minutes of it take a second. If a daemon (`tuner serve`) owns the database, it
/// executes the run. With --fleet, `auto` and `cuda` select the workers' devices, and `--device any`
/// starts a run on each kind of device.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tuner run --device replay:conv2d_A100.json.gz --evals 200 --seed 1
  tuner run gemm_f32 --budget 30m
  tuner run --budget 8h                 every kernel in search_spaces/, budget shared
  tuner run gemm_f32 --budget 2h --resume
  tuner run gemm_f32 --budget 8h --fleet nats://hub:4222     judged by `tuner worker`s

Exit codes: 0 done, 2 bad usage or input, 3 no candidate passed, 130 interrupted (all finished work
is stored).")]
pub(crate) struct Args {
    #[command(flatten)]
    wanted: RunArgs,

    /// Database of results
    #[arg(long, value_name = "FILE", default_value = store::DEFAULT_PATH, value_parser = db_parser())]
    db: PathBuf,

    /// Continue the last unfinished run of the same kernels, device and seed
    #[arg(long)]
    resume: bool,

    /// Write events as JSON lines to FILE (`-` is standard output); a result is written after it is
    /// stored
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,

    /// Print the tasks in the order of their first trials, with estimated times, and exit
    #[arg(long, conflicts_with_all = ["resume", "events"])]
    plan: bool,

    /// Form of the progress on standard error [default: a display on a terminal, else plain]
    #[arg(long, value_name = "FORM")]
    progress: Option<ProgressMode>,

    #[command(flatten)]
    token: TokenFile,

    #[command(flatten)]
    fleet: HubOptions,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> CommandResult {
    let began = Instant::now();
    terminal::choose_progress(args.progress);
    let ticker = Ticker::start();
    let mut request = args.wanted.request()?;
    let folder = std::env::current_dir()?;
    if args.plan {
        // Before a connection: without a server it would be awaited.
        if args.fleet.fleet.fleet.is_some() {
            refuse!("--plan is for this machine's devices; leave --fleet out");
        }
        let text = plan::describe(&request, &folder, &args.db)?;
        drop(ticker);
        return output::result(&text);
    }
    if request.device == any::ANY {
        any::check_options(args.events.as_deref(), args.progress)?;
    }
    // A database that cannot be read fails with its reason when the run opens it.
    if let Some(row) = block_on(daemon::owner(&args.db)).ok().flatten() {
        if args.fleet.fleet.fleet.is_some() {
            refuse!(
                "the daemon at http://{} owns this database; start that one with --fleet, or name \
                 another file with --db",
                row.address
            );
        }
        return by_daemon(args, &request, &folder, &row);
    }
    let mut prepared = match args.fleet.connect()? {
        None => {
            if !args.resume {
                request.limit_spaces(began);
            }
            Prepared::new(&request, &folder)?
        }
        Some(fleet) if request.device == any::ANY => {
            return any::run(&request, &folder, &args.db, args.resume, &fleet);
        }
        Some(fleet) => Prepared::on_fleet(&request, &folder, fleet)?,
    };
    let kind = prepared.facts().kind;
    let mut events = EventLog::open(args.events.as_deref())?;
    let runtime = start_runtime("tuner", 2)?;
    let (report, failures) = runtime.block_on(async {
        let shutdown = events.watch_signals(stopping)?;
        let store = Store::open(&args.db).await?;
        if args.resume {
            prepared.resume_latest(&store).await?;
        }
        prepared.ready(&store, &shutdown).await?;
        once(&prepared.notes);
        // Reading many search spaces takes seconds of the user's budget; most of it must remain for trials.
        let budget = prepared.plan().limits.budget.unwrap_or_default();
        prepared.spend(began.elapsed().min(budget / 2));
        let mut progress = Progress::new(prepared.charged());
        let mut sink = |event: &Event| {
            progress.show(event);
            events.write(event);
        };
        let report = prepared.execute(&store, shutdown, &mut sink).await;
        // Closed after an error as well; the run's own error is the one to report.
        let closed = store.close().await;
        let report = report?;
        closed?;
        Ok::<_, CliError>((report, progress.failures))
    })?;
    // Threads that still compile a dropped candidate are not joined.
    runtime.shutdown_background();
    conclude(&report, &failures, args, Some(kind), &events)
}

/// Submits the run to the daemon that owns the database, and shows the same progress.
fn by_daemon(args: &Args, request: &Request, folder: &Path, row: &DaemonRow) -> CommandResult {
    let request = job::absolute(request, folder)?;
    let mut events = EventLog::open(args.events.as_deref())?;
    let began = Instant::now();
    let (view, failures) = block_on(async {
        let client = daemon::reach(row, &args.db, daemon::read_token(&args.token)?).await?;
        // A missing token is detected before anything is queued.
        let known: Result<RunList, _> = client.get("/api/v1/runs?limit=1").await;
        known?;
        say!("running on the daemon at http://{}", client.address());
        let taken_up = match args.resume {
            true => submit::take_up(&args.db, &request).await?,
            false => None,
        };
        let id = match taken_up {
            Some(id) => id,
            None => submit::enqueue(&args.db, &request, folder).await?,
        };
        daemon::follow(&client, &id, &mut events).await
    })?;
    if let Some(failure) = daemon::failure(&view) {
        return Err(failure);
    }
    once(&view.notes);
    let report = daemon::report(&view, began.elapsed());
    conclude(&report, &failures, args, view.device_kind, &events)
}

/// Prints each distinct note once.
fn once(notes: &[String]) {
    let mut told: Vec<&String> = Vec::new();
    for note in notes {
        if !told.contains(&note) {
            say!("{note}");
            told.push(note);
        }
    }
}

/// Prints the run's summary and returns the exit code.
fn conclude(
    report: &Report,
    failures: &Failures,
    args: &Args,
    kind: Option<DeviceKind>,
    events: &EventLog,
) -> CommandResult {
    let summary = Summary {
        report,
        failures,
        kind,
    };
    let mut text = summary.text();
    next_commands(&mut text, report, failures, args, kind);
    // Events are written to standard output, whose readers expect one JSON object per line.
    if events.stdout {
        say_part!("{text}");
    } else {
        output::print(&text)?;
    }
    Ok(exit_code(
        report.reason == StopReason::Interrupted,
        report.passed(),
    ))
}

fn next_commands(
    text: &mut String,
    report: &Report,
    failures: &Failures,
    args: &Args,
    kind: Option<DeviceKind>,
) {
    let db = if args.db == default_database() {
        String::new()
    } else {
        format!(" --db {}", quoted(&args.db.to_string_lossy()))
    };
    let best = report.tasks.iter().find(|task| task.best.is_some());
    if let Some(task) = best {
        let kernel = quoted(&task.key.kernel);
        let timing = task.best.as_ref().and_then(|best| best.timing);
        let mut allow = String::new();
        if timing == Some(TimingKind::Predicted) {
            allow.push_str(" --allow-predicted");
        }
        let compared = task.best.as_ref().and_then(|best| best.compared);
        if compared == Some(Compared::SmallerProblems) {
            allow.push_str(" --allow-uncompared");
        }
        let pareto = args.wanted.objective.as_ref();
        let pareto = pareto.map_or_else(String::new, |both| {
            format!(" --pareto={}", both.replace(' ', ""))
        });
        let _ = writeln!(text, "next: tuner leaderboard {kernel}{pareto}{db}");
        let _ = writeln!(text, "      tuner export {kernel}{allow}{db} -o tuned.h");
    } else if kind != Some(DeviceKind::Replay)
        && let Some((task, config)) = report.tasks.iter().find_map(|task| {
            let config = failures.config(&task.key.kernel, &task.key.problem)?;
            Some((task, config))
        })
    {
        let device = match kind {
            Some(DeviceKind::Vgpu) => format!(" --device {}", quoted(&task.key.device)),
            _ if args.wanted.device.starts_with("cuda") => {
                format!(" --device {}", quoted(&args.wanted.device))
            }
            _ => String::new(),
        };
        let kernel = quoted(args.wanted.name_of(&task.key.kernel));
        let problem = quoted(&task.key.problem);
        let _ = writeln!(
            text,
            "next: tuner check {kernel} --problem {problem}{device}{config}"
        );
    }
    if report.reason == StopReason::Interrupted {
        let _ = writeln!(text, "go on: the same command with --resume");
    }
}

pub(super) fn exit_code(interrupted: bool, passed: bool) -> u8 {
    match (interrupted, passed) {
        (true, _) => exit::INTERRUPTED,
        (false, true) => exit::DONE,
        (false, false) => exit::NOTHING_PASSED,
    }
}
