//! `tuner run`: the main job.

use super::events::{EventLog, watch_signals};
use super::progress::{self, Progress};
use super::tasks::{self, Target};
use super::{CliError, CommandResult, output};
use crate::catalog;
use crate::compile::{Compiler, CompilerSettings};
use crate::device::replay::Recording;
use crate::device::worker::host::WorkerError;
use crate::device::{DeviceFacts, DeviceSelector, SelectorError, limits, worker};
use crate::engine::{
    self, Evaluator, Event, Limits, Plan, ReplayEvaluator, Report, StopReason, Task, TaskReport,
    VirtualEvaluator, VirtualTask, format_duration, parse_budget,
};
use crate::evolve;
use crate::record::{DeviceKind, TaskKey};
use crate::store::{self, DeviceStart, RecordingSource, RunStart, Store, StoreError, TaskStart};
use crate::units::Seed;
use crate::{exit, provenance};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Without `--budget` and `--evals`.
const DEFAULT_BUDGET: Duration = Duration::from_secs(600);

/// Tune kernels: propose, compile, check, time, store, until the budget ends or Ctrl-C
///
/// Results are stored as they come; Ctrl-C ends the run, and `--resume` goes on with it later. On
/// a recorded file (`replay:FILE`) the budget is recorded time: ten minutes of it take a second.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tuner run --device replay:conv2d_A100.json.gz --evals 200 --seed 1
  tuner run gemm_f32 --budget 30m
  tuner run --budget 8h                 every kernel in search_spaces/, budget shared
  tuner run gemm_f32 --budget 2h --resume

Exit codes: 0 done, 2 bad usage or input, 3 no candidate passed, 130 interrupted (all finished work
is stored).")]
pub struct Args {
    /// Kernels by name, or search space files; none: all in search_spaces/
    #[arg(value_name = "KERNEL|FILE.yaml")]
    kernels: Vec<String>,

    /// Time to spend, such as 90s, 2h or 1h30m (recorded time on replay)
    #[arg(long, value_name = "TIME")]
    budget: Option<String>,

    /// Unique valid configurations to judge, over all kernels and problems
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    evals: Option<u64>,

    /// auto, cuda, cuda:N, vgpu:NAME or replay:FILE
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    device: String,

    /// Only this problem; may be repeated
    #[arg(long, value_name = "NAME")]
    problem: Vec<String>,

    /// How to search: evolve, random, local, annealing, differential, genetic or exhaustive
    /// [default: evolve]
    #[arg(long, value_name = "NAME")]
    strategy: Option<String>,

    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Database of results
    #[arg(long, value_name = "FILE", default_value = store::DEFAULT_PATH)]
    db: PathBuf,

    /// Candidates prepared (compiled) at once [default: number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,

    /// Go on with the last unfinished run of the same kernels, device and seed
    #[arg(long)]
    resume: bool,

    /// Write what happens as JSON lines to FILE (`-`: standard output); a result's line comes after
    /// it is stored
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &Args) -> CommandResult {
    let selector: DeviceSelector = args.device.parse().map_err(usage)?;
    let end = end(args)?;
    if let Some(name) = &args.strategy
        && !evolve::STRATEGIES.contains(&name.as_str())
    {
        return Err(usage(evolve::UnknownStrategy { name: name.clone() }));
    }
    match selector {
        DeviceSelector::Replay(ref path) => replay(args, path, end),
        DeviceSelector::Cuda(_) => Err(not_yet(&selector)),
        DeviceSelector::Auto => kernels(args, limits::DEFAULT, end),
        DeviceSelector::Vgpu(ref name) => kernels(args, name, end),
    }
}

/// Tunes kernels on a virtual GPU.
fn kernels(args: &Args, name: &str, end: Limits) -> CommandResult {
    let selector = DeviceSelector::Vgpu(name.to_owned());
    let Some(device_limits) = limits::by_name(name) else {
        return Err(usage(SelectorError::UnknownVgpu(name.to_owned())));
    };
    let folder = std::env::current_dir().map_err(anyhow::Error::from)?;
    let kernels = catalog::resolve(&args.kernels, &folder)
        .map_err(|error| CliError::Usage(error.to_string()))?;
    let compiler = compiler(args)?;
    let facts = DeviceFacts {
        name: selector.to_string(),
        kind: DeviceKind::Vgpu,
        limits: Some(device_limits),
        arch: format!("sm_{}", device_limits.cc),
        driver: None,
    };
    let target = Target {
        device: &facts.name,
        limits: device_limits,
        driver: None,
        nvrtc: Some(compiler.nvrtc().version()),
    };
    let (planned, notes) = tasks::plan(&kernels, &args.problem, &target)?;
    for note in notes {
        eprintln!("{note}");
    }
    let kernels: Vec<_> = kernels.into_iter().map(Arc::new).collect();
    let (mut tasks, mut stored, mut virtuals) = (Vec::new(), Vec::new(), Vec::new());
    for one in planned {
        let kernel = &kernels[one.kernel];
        virtuals.push(
            VirtualTask::new(kernel, &one.task.key.problem, &device_limits, &facts.arch)
                .map_err(usage)?,
        );
        tasks.push(one.task);
        stored.push(one.stored);
    }
    let worker = worker::host::Settings::for_device(&facts.name).map_err(anyhow::Error::from)?;
    let device = device_start(&facts, &selector);
    let evaluator = Arc::new(VirtualEvaluator::new(
        facts,
        Arc::new(compiler),
        virtuals,
        worker::host::Worker::new(worker),
    ));
    execute(args, &evaluator, tasks, device, stored, end)
}

/// The compiler with as many workers as candidates are prepared at once.
fn compiler(args: &Args) -> Result<Compiler, CliError> {
    let mut settings = CompilerSettings::default();
    settings.jobs = args.jobs.map_or(settings.jobs, usize::from);
    Compiler::new(settings).map_err(|error| CliError::Failed(anyhow::anyhow!("{error}")))
}

fn not_yet(selector: &DeviceSelector) -> CliError {
    CliError::Usage(format!(
        "error: `{selector}`: real GPUs come in a later version; use --device vgpu:h100 (or \
         another virtual GPU), or --device replay:FILE with a recorded tuning file"
    ))
}

/// What the arguments say of the run's end.
fn end(args: &Args) -> Result<Limits, CliError> {
    let budget = args.budget.as_deref().map(parse_budget).transpose();
    Ok(Limits {
        evals: args.evals,
        budget: budget.map_err(usage)?,
    })
}

fn replay(args: &Args, path: &Path, limits: Limits) -> CommandResult {
    let recording =
        Arc::new(Recording::load(path).map_err(|error| CliError::Usage(error.to_string()))?);
    named_as_recorded(args, &recording)?;
    let key = TaskKey {
        kernel: recording.kernel().to_owned(),
        problem: recording.problem().to_owned(),
        device: recording.device().to_owned(),
    };
    let evaluator = Arc::new(ReplayEvaluator::new(Arc::clone(&recording)));
    let device = DeviceStart {
        recording: Some(RecordingSource {
            path: path.canonicalize().unwrap_or_else(|_| path.to_owned()),
            hash: recording.content().clone(),
        }),
        ..device_start(evaluator.facts(), &DeviceSelector::Replay(path.to_owned()))
    };
    let task = TaskStart {
        kernel: key.kernel.clone(),
        problem: key.problem.clone(),
        sizes: recording.sizes().clone(),
        template_hash: None,
        definition: recording.definition(),
        default_config: None,
        provenance: provenance::of_recording(),
    };
    if recording.excluded_rows() > 0 {
        eprintln!(
            "note: {} recorded rows violate the file's own constraints and are left out",
            recording.excluded_rows()
        );
    }
    if limits.budget.is_some() && !recording.has_costs() {
        eprintln!(
            "note: the file records no compile or benchmark times, so --budget never runs out; \
             use --evals"
        );
    }
    let tasks = vec![Task {
        key,
        space: recording.space().clone(),
        start: Vec::new(),
    }];
    execute(args, &evaluator, tasks, device, vec![task], limits)
}

/// The file is the kernel; names beside it must agree with it.
fn named_as_recorded(args: &Args, recording: &Recording) -> Result<(), CliError> {
    let stranger = |what: &str, given: &str, known: &str| {
        CliError::Usage(format!(
            "error: {}: the recorded {what} is `{known}`, not `{given}`; leave the name out: with \
             replay:FILE the file is the kernel",
            recording.path().display()
        ))
    };
    if let Some(name) = args.kernels.iter().find(|name| *name != recording.kernel()) {
        return Err(stranger("kernel", name, recording.kernel()));
    }
    if let Some(name) = args
        .problem
        .iter()
        .find(|name| *name != recording.problem())
    {
        return Err(stranger("problem", name, recording.problem()));
    }
    Ok(())
}

fn device_start(facts: &DeviceFacts, selector: &DeviceSelector) -> DeviceStart {
    DeviceStart {
        name: facts.name.clone(),
        kind: facts.kind,
        arch: facts.arch.clone(),
        selector: selector.to_string(),
        recording: None,
        environment: Vec::new(),
    }
}

/// Tunes the tasks on any device: opens the database, follows the run, prints what it came to.
fn execute<E: Evaluator>(
    args: &Args,
    evaluator: &Arc<E>,
    tasks: Vec<Task>,
    device: DeviceStart,
    stored: Vec<TaskStart>,
    limits: Limits,
) -> CommandResult {
    let jobs = args.jobs.map_or_else(
        || std::thread::available_parallelism().map_or(1, usize::from),
        usize::from,
    );
    let start = RunStart {
        device,
        seed: Seed(args.seed),
        strategy: args
            .strategy
            .clone()
            .unwrap_or_else(|| evolve::STRATEGIES[0].to_owned()),
        settings: serde_json::Value::Null,
        tasks: stored,
    };
    let mut plan = Plan {
        tasks,
        start,
        resume: None,
        limits,
        jobs,
    };
    let mut events = EventLog::open(args.events.as_deref())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(anyhow::Error::from)?;
    let report = runtime.block_on(async {
        let shutdown = watch_signals().map_err(anyhow::Error::from)?;
        let store = Store::open(&args.db).await.map_err(store_error)?;
        if args.resume {
            take_up(&mut plan, args, &store).await?;
        }
        settle(&mut plan, args);
        let charged = evaluator.clock() == engine::Clock::Charged;
        let mut progress = Progress::new(charged);
        let mut sink = |event: &Event| {
            progress.show(event);
            events.write(event);
        };
        let report = engine::run(evaluator, plan, &store, shutdown, &mut sink).await;
        let closed = store.close().await;
        let report = report.map_err(engine_error)?;
        closed.map_err(store_error)?;
        Ok::<_, CliError>(report)
    })?;
    // Threads that still compile a dropped candidate are not waited for.
    runtime.shutdown_background();
    let summary = summary(&report, args, evaluator.facts());
    if events.is_stdout() {
        eprint!("{summary}");
    } else {
        output::print(&summary).map_err(anyhow::Error::from)?;
    }
    Ok(exit_code(&report))
}

/// Makes the plan go on with an interrupted run, with its strategy and limits where none are given.
async fn take_up(plan: &mut Plan, args: &Args, store: &Store) -> Result<(), CliError> {
    let Some(stored) = store
        .unfinished_run(&plan.start)
        .await
        .map_err(store_error)?
    else {
        eprintln!("note: no unfinished run of the same kernels, device and seed: a new one begins");
        return Ok(());
    };
    if let Some(asked) = &args.strategy
        && *asked != stored.strategy
    {
        return Err(CliError::Usage(format!(
            "error: run {} used --strategy {}; resume with that, or start a new run without \
             --resume",
            stored.id, stored.strategy
        )));
    }
    plan.start.strategy.clone_from(&stored.strategy);
    if plan.limits == Limits::default() {
        plan.limits.evals = stored.settings["evals"].as_u64();
        plan.limits.budget = stored.settings["budget_s"]
            .as_f64()
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    }
    plan.resume = Some(stored);
    Ok(())
}

/// Gives a run without limits one, and notes the settings for the store.
fn settle(plan: &mut Plan, args: &Args) {
    if plan.limits == Limits::default() && plan.start.strategy != "exhaustive" {
        let clock = match plan.start.device.kind {
            DeviceKind::Replay => " of recorded time",
            _ => "",
        };
        eprintln!(
            "note: neither --budget nor --evals: stops after {}{clock}",
            format_duration(DEFAULT_BUDGET)
        );
        plan.limits.budget = Some(DEFAULT_BUDGET);
    }
    plan.start.settings = serde_json::json!({
        "evals": plan.limits.evals,
        "budget_s": plan.limits.budget.map(|budget| budget.as_secs_f64()),
        "jobs": args.jobs,
        "window": engine::WINDOW,
    });
}

fn summary(report: &Report, args: &Args, facts: &DeviceFacts) -> String {
    let mut text = String::new();
    for task in &report.tasks {
        task_summary(&mut text, task);
    }
    let clock = if facts.kind == DeviceKind::Replay {
        format!(", {} of recorded time", format_duration(report.clock))
    } else {
        String::new()
    };
    let _ = writeln!(
        text,
        "run {}: {} configurations in {}{clock}",
        report.run_id,
        report.evals(),
        format_duration(report.elapsed),
    );
    next_commands(&mut text, report, args);
    text
}

fn task_summary(text: &mut String, task: &TaskReport) {
    let TaskKey {
        kernel,
        problem,
        device,
    } = &task.key;
    let _ = writeln!(text, "{kernel} | {problem} | {device}");
    match &task.best {
        Some(best) => {
            let config: Vec<String> = best
                .config
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            let _ = writeln!(text, "  best     {}", progress::time(best.time_us));
            if let Some(default) = task.default_us {
                let _ = writeln!(text, "  default  {}", progress::time(default));
                let _ = writeln!(text, "  speed-up {:.2}x", default / best.time_us);
            }
            let _ = writeln!(text, "  config   {}", config.join(" "));
        }
        None => {
            let _ = writeln!(text, "  best     none: no candidate passed");
        }
    }
    let _ = writeln!(text, "  verdicts {}", progress::counts(&task.verdicts));
}

fn next_commands(text: &mut String, report: &Report, args: &Args) {
    let db = if args.db == Path::new(store::DEFAULT_PATH) {
        String::new()
    } else {
        format!(" --db {}", quoted(&args.db.to_string_lossy()))
    };
    let Some(first) = report.tasks.first() else {
        return;
    };
    let kernel = quoted(&first.key.kernel);
    if report.passed() {
        let _ = writeln!(text, "next: tuner leaderboard {kernel}{db}");
        let _ = writeln!(text, "      tuner export {kernel}{db} -o tuned.h");
    }
    if report.reason == StopReason::Interrupted {
        let _ = writeln!(text, "go on: the same command with --resume");
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:+,=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

fn exit_code(report: &Report) -> u8 {
    if report.reason == StopReason::Interrupted {
        exit::INTERRUPTED
    } else if report.passed() {
        exit::DONE
    } else {
        exit::NOTHING_PASSED
    }
}

fn usage(error: impl std::fmt::Display) -> CliError {
    CliError::Usage(format!("error: {error}"))
}

fn store_error(error: StoreError) -> CliError {
    if error.is_bad_input() {
        usage(error)
    } else {
        CliError::Failed(error.into())
    }
}

fn engine_error(error: engine::EngineError) -> CliError {
    match error {
        engine::EngineError::Store(error) => store_error(error),
        engine::EngineError::Device(error) => match error.downcast::<WorkerError>() {
            Ok(unusable) if matches!(*unusable, WorkerError::Unusable(_)) => {
                CliError::Usage(format!("error: {unusable}; mend the space's `reference`"))
            }
            Ok(other) => CliError::Failed((*other).into()),
            Err(other) => CliError::Failed(engine::EngineError::Device(other).into()),
        },
        other => CliError::Failed(other.into()),
    }
}
