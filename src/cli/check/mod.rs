//! `tuner check`: validation of kernels without a GPU.

mod judge;
mod low_parallelism;
mod row;
pub(super) mod select;
mod target;

use super::output::{self, Format};
use super::terminal::Ticker;
use super::{CliError, CommandResult, complete, usage};
use crate::exit;
use anyhow::Context as _;
use judge::Judge;
use row::CheckRow;
use select::{Pair, SAMPLE_DEFAULT, Task};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use target::Target;
use tuner_core::judgement::Judgement;
use tuner_core::record::{Verdict, assignments};
use tuner_core::units::counted;
use tuner_device::DeviceSelector;
use tuner_engine::KernelTask;
use tuner_kernel::build::PlanBuilder;
use tuner_kernel::catalog;
use tuner_kernel::catalog::Kernel;
use tuner_kernel::compile::{Compiler, CompilerSettings};
use tuner_kernel::{declarations, defaults};
use tuner_space::{Config, Problem, Space, suggest};

/// Maximum number of floating-point operations of a timed problem that is run whole.
const FLOPS_WHOLE: f64 = 2e7;
/// Maximum number of elements of its buffers.
const ELEMENTS_WHOLE: u64 = 1 << 18;
/// Maximum number of failures with full details below a table.
const DETAILS_SHOWN: usize = 3;

/// Check kernels without a GPU
///
/// Checks the schema, expressions and defaults, compiles, and runs the kernels on a virtual GPU.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tuner check gemm_f32
  tuner check gemm_f32 --arch sm_89
  tuner check gemm_f32 --config BLOCK_M=128,THREAD_M=8 --problem ragged
  tuner check search_spaces/gemm_f32.quick.yaml --sample 50 --seed 7 --format json

Without --config and --sample: the default configuration and the seeds on every problem, and 32
random pairs. Exit code 4 when a verdict is not ok; with `reference: none` in the space, `unchecked`
(no hazard was found, results are not compared) is what was asked for.")]
pub(crate) struct Args {
    /// Kernels, by name or search space file [default: all in search_spaces/]
    #[arg(value_name = "KERNEL|FILE.yaml")]
    kernels: Vec<String>,
    /// Check this configuration; parameters not named take their defaults, and `default` names none;
    /// may be repeated
    #[arg(long, value_name = "K=V,…")]
    config: Vec<String>,
    /// Check this many random pairs of a valid configuration and a problem
    #[arg(long, value_name = "N")]
    sample: Option<usize>,
    /// Random seed
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Check only this problem; may be repeated [default: all check problems, and timed problems
    /// that are small enough]
    #[arg(long, value_name = "NAME")]
    problem: Vec<String>,
    /// GPU to check for: vgpu:NAME, vgpu:NAME@CLOCK or cuda:N [default: vgpu:h100]
    #[arg(long, value_name = "D")]
    device: Option<DeviceSelector>,
    /// Compile for this target; without --device, stop after the compilation
    #[arg(long, value_name = "sm_XX")]
    arch: Option<String>,
    /// Number of schedules of each kernel: warps in a random order; blocks first to last, last to
    /// first, the last one first, interleaved, then at random
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    schedules: u32,
    /// Number of parallel compilations [default: all cores but one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Run one configuration on one problem whole, and write the contents of its outputs to this
    /// folder: INDEX.bin for each, by its place in the list of arguments, from 0
    #[arg(long, value_name = "DIR")]
    outputs: Option<PathBuf>,
    /// List every configuration that passes; else a table has a row for all that pass on a problem
    #[arg(long)]
    verbose: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// Checks and prints; the exit code reports whether every verdict is ok.
///
/// # Errors
/// Bad arguments or files, no NVRTC, or tools that do not work.
pub(crate) fn run(args: &Args) -> CommandResult {
    let target = Target::choose(args.device.as_ref(), args.arch.as_deref())?;
    let ticker = Ticker::start();
    let folder = std::env::current_dir().context("no working directory")?;
    let kernels = catalog::resolve(&args.kernels, &folder)?;
    let mut settings = CompilerSettings::default();
    settings.jobs = args.jobs.map_or(settings.jobs, usize::from);
    let threads = settings.jobs;
    let compiler = Compiler::new(settings)?;
    // Otherwise every pair would get the verdict `compile_failed` for a target that NVRTC lacks.
    compiler.nvrtc().require(target.arch).map_err(usage)?;
    let mut rows = Vec::new();
    for kernel in kernels.into_iter().map(Arc::new) {
        let kernel = &kernel;
        report_template(kernel)?;
        let tasks = tasks(kernel, args, &target)?;
        report_declarations(kernel, &tasks, &target, &compiler)?;
        let pairs = pairs(kernel, &tasks, args)?;
        // Includes the pairs of earlier kernels: the names of the files do not identify the pair.
        let outputs = output_folder(args, rows.len() + pairs.len())?;
        if args.config.is_empty() && args.sample.is_none() {
            low_parallelism::defaults(kernel, &tasks, &target);
        }
        let judge = Judge {
            kernel,
            tasks: &tasks,
            target: &target,
            compiler: &compiler,
            schedules: args.schedules,
            outputs,
        };
        judge.reference()?;
        let mut judged = judge.judge_pairs(&pairs, threads)?;
        if let Some(guessed) = kernel.spec.launches.iter().find(|launch| launch.guessed) {
            judged
                .iter_mut()
                .for_each(|row| row.without_hazards(&guessed.entry));
        }
        judged
            .iter_mut()
            .for_each(|row| row.without_hazards_of_guesses(&kernel.spec.arguments));
        // After all pairs: a row is compared with the rows of the kernel's other problems.
        if let Some(arch) = target.vgpu().and_then(vgpu::Arch::by_name) {
            low_parallelism::warn(&mut judged, arch);
        }
        summarize(kernel, &judged, &target);
        rows.extend(judged);
    }
    drop(ticker);
    let text = row::format_rows(args.format, &rows, args.verbose).context("cannot make JSON")?;
    output::print(&text).context("cannot write to standard output")?;
    if args.format != Format::Json {
        show_details(&rows);
        show_tolerances(&rows);
    }
    low_parallelism::tell(&rows, args.verbose);
    let all_ok = rows.iter().all(CheckRow::passed);
    Ok(if all_ok { exit::DONE } else { exit::NOT_OK })
}

/// Judges a kernel's default configuration on its first check problem, on the virtual GPU and
/// without output.
///
/// # Errors
/// The file is not a search space, or the tools do not work.
pub(in crate::cli) fn glance(path: &Path, compiler: &Compiler) -> Result<Judgement, CliError> {
    let target = Target::choose(None, None)?;
    let folder = std::env::current_dir().context("no working directory")?;
    let mut kernels = catalog::resolve(&[path.display().to_string()], &folder)?;
    let kernel = Arc::new(kernels.pop().context("no search space")?);
    let spec = &kernel.spec;
    let mut problems = spec.check_problems.iter().chain(&spec.problems);
    let problem = &problems.next().context("no problem")?.name;
    let limits = &target.limits;
    let space = spec.space(problem, limits).map_err(complete)?;
    let arch = target.arch.to_string();
    let builder = PlanBuilder::new(Arc::clone(&kernel), problem, limits, &arch);
    let pair = Pair {
        task: 0,
        config: space.default_config(),
    };
    let tasks = [Task {
        problem: problem.clone(),
        space,
        judged: KernelTask::alone(builder.map_err(complete)?),
    }];
    let judge = Judge {
        kernel: &kernel,
        tasks: &tasks,
        target: &target,
        compiler,
        schedules: 1,
        outputs: None,
    };
    let row = judge.judge_pairs(&[pair], 1)?.pop();
    Ok(row.context("no verdict")?.judgement)
}

/// Creates the folder of `--outputs`, which is valid for a single pair of a configuration and a problem.
fn output_folder(args: &Args, pairs: usize) -> Result<Option<PathBuf>, CliError> {
    let Some(folder) = &args.outputs else {
        return Ok(None);
    };
    if pairs != 1 || args.device.is_none() && args.arch.is_some() {
        refuse!(
            "--outputs takes one configuration on one problem, and there are {pairs}; add \
             --config NAME=VALUE,… and --problem NAME"
        );
    }
    let cannot = || format!("{}: cannot make the folder of --outputs", folder.display());
    std::fs::create_dir_all(folder).with_context(cannot)?;
    // The worker process may have another working folder.
    let absolute = std::path::absolute(folder).with_context(cannot)?;
    Ok(Some(absolute))
}

/// Compares the template with the space; differing defaults are an error.
fn report_template(kernel: &Kernel) -> Result<(), CliError> {
    let spec = &kernel.spec;
    let (name, yaml) = (&kernel.template.name, catalog::shown(&kernel.path));
    let mut errors = Vec::new();
    let (template, parameters) = (&kernel.template, &spec.parameters);
    for told in defaults::words_in_conditions(template, parameters) {
        say!("warning: {told}");
    }
    for finding in defaults::examine(template, parameters, &spec.options, &spec.launches) {
        match finding {
            defaults::Finding::DefaultsDiffer {
                name: parameter,
                space,
                template,
                line,
            } => {
                errors.push(format!(
                    "error: {name}:{line}: the template's default of {parameter} is {template}, \
                     but {yaml} says {space}\n\
                     help: write `#define {parameter} {space}` here, or `default: {template}` there"
                ));
            }
            defaults::Finding::NotComparable {
                name: parameter,
                template,
                line,
            } => {
                tracing::warn!(
                    "{name}:{line}: the default of {parameter}, `{template}`, is not a plain value \
                     and is not compared with the one in {yaml}"
                );
            }
            defaults::Finding::NeverMentioned { name: parameter } => {
                say!(
                    "warning: {yaml}: the template {name} never mentions the parameter \
                     {parameter}: its values make no difference to the code"
                );
            }
        }
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(complete(errors.join("\n")))
    }
}

/// Compares the declared arguments with the kernels' parameters; undecidable cases are warnings.
fn report_declarations(
    kernel: &Kernel,
    tasks: &[Task],
    target: &Target,
    compiler: &Compiler,
) -> Result<(), CliError> {
    let each = tasks.iter().map(|task| (&*task.problem, &task.space));
    let problems: Vec<_> = each.collect();
    let (limits, arch) = (&target.limits, &target.arch.to_string());
    for warning in declarations::check(kernel, &problems, limits, arch, compiler)? {
        say!("{warning}");
    }
    Ok(())
}

/// Returns the problems to check, each with its nonempty space.
fn tasks(kernel: &Arc<Kernel>, args: &Args, target: &Target) -> Result<Vec<Task>, CliError> {
    let spec = &kernel.spec;
    let yaml = catalog::shown(&kernel.path);
    let mut names: Vec<&str> = args.problem.iter().map(String::as_str).collect();
    if let Some(unknown) = names.iter().find(|name| spec.problem(name).is_none()) {
        let all = spec.problems.iter().chain(&spec.check_problems);
        let known: Vec<&str> = all.map(|problem| &*problem.name).collect();
        refuse!(
            "{yaml} has no problem `{unknown}`{}; it has {}",
            catalog::near_text(&suggest(unknown, known.iter().copied())),
            known.join(", ")
        );
    }
    if names.is_empty() {
        let small = |problem: &&Problem| small_enough(kernel, &problem.name, target);
        let timed = spec.problems.iter().filter(small);
        let all = spec.check_problems.iter().chain(timed);
        names.extend(all.map(|problem| &*problem.name));
    }
    if names.is_empty() {
        // There is no small problem: the first one still shows whether the kernel compiles.
        names.extend(spec.problems.first().map(|problem| problem.name.as_str()));
    }
    let mut tasks = Vec::with_capacity(names.len());
    for problem in names {
        let bad = |error: tuner_space::BindError| spec.explain_unbound(&error, problem);
        let space = spec.space(problem, &target.limits).map_err(bad)?;
        say!(
            "{yaml}: problem {problem}: {} of {} combinations are valid ({:.3} %)",
            space.count(),
            space.cartesian(),
            100.0 * space.count() as f64 / space.cartesian().max(1) as f64
        );
        if let Some(empty) = spec.explain_empty(&space, problem, &target.device) {
            return Err(empty.into());
        }
        let arch = target.arch.to_string();
        let builder = PlanBuilder::new(Arc::clone(kernel), problem, &target.limits, &arch);
        let builder = builder.map_err(bad)?;
        tasks.push(Task {
            problem: problem.to_owned(),
            space,
            judged: KernelTask::alone(builder),
        });
    }
    Ok(tasks)
}

/// Reports whether the default configuration's work on a timed problem is small enough for a run of the
/// whole problem.
fn small_enough(kernel: &Kernel, problem: &str, target: &Target) -> bool {
    let spec = &kernel.spec;
    let Ok(bound) = spec.bind(problem, &target.limits, &spec.default_config()) else {
        return false;
    };
    let elements = bound
        .arguments
        .iter()
        .map(tuner_core::plan::PlanArgument::count);
    // Both limits apply: memory-bound kernels do little arithmetic on a large amount of data.
    bound.flops.is_none_or(|flops| flops <= FLOPS_WHOLE) && elements.sum::<u64>() <= ELEMENTS_WHOLE
}

/// Returns the requested pairs.
fn pairs(kernel: &Kernel, tasks: &[Task], args: &Args) -> Result<Vec<Pair>, CliError> {
    let mut pairs: Vec<Pair> = Vec::new();
    let mut add = |pair: Pair| {
        // A seed may equal the default configuration, and a random sample may contain either.
        if !pairs.contains(&pair) {
            pairs.push(pair);
        }
    };
    for text in &args.config {
        for (task, Task { space, .. }) in tasks.iter().enumerate() {
            add(Pair {
                task,
                config: select::parse_config(space, text)?,
            });
        }
    }
    if args.config.is_empty() && args.sample.is_none() {
        let mut notes = BTreeSet::new();
        for (task, Task { space, .. }) in tasks.iter().enumerate() {
            add(Pair {
                task,
                config: space.default_config(),
            });
            for config in valid_seeds(kernel, space, &mut notes)? {
                add(Pair { task, config });
            }
        }
        for note in notes {
            say!("{note}");
        }
    }
    let default = if args.config.is_empty() {
        SAMPLE_DEFAULT
    } else {
        0
    };
    let count = args.sample.unwrap_or(default);
    select::sample(tasks, count, args.seed)
        .into_iter()
        .for_each(add);
    Ok(pairs)
}

/// Returns the seeds that are valid on the device, as `run` tries them; others become notes.
fn valid_seeds(
    kernel: &Kernel,
    space: &Space,
    notes: &mut BTreeSet<String>,
) -> Result<Vec<Config>, CliError> {
    let mut configs = Vec::new();
    for (number, seed) in kernel.spec.seeds.iter().enumerate() {
        let yaml = catalog::shown(&kernel.path);
        let config = space
            .config_from_values(seed)
            .map_err(|error| usage(format!("{yaml}: seeds: {error}")))?;
        match space.reject_reason(&config) {
            None => configs.push(config),
            Some(reason) => {
                let seed = number + 1;
                notes.insert(format!("note: {yaml}: seed {seed} is left out: {reason}"));
            }
        }
    }
    Ok(configs)
}

/// Prints a one-line summary of a kernel's rows.
fn summarize(kernel: &Kernel, rows: &[CheckRow], target: &Target) {
    let counts = Verdict::ALL.iter().filter_map(|verdict| {
        let same = rows.iter().filter(|row| row.judgement.verdict == *verdict);
        let count = same.count();
        (count > 0).then(|| format!("{count} {verdict}"))
    });
    let counts: Vec<String> = counts.collect();
    let registers = rows.iter().filter_map(|row| row.registers);
    let range = match (registers.clone().min(), registers.max()) {
        (Some(least), Some(most)) => format!("; {least} to {most} registers"),
        _ => String::new(),
    };
    let spilling = rows
        .iter()
        .filter(|row| row.spill_bytes.is_some_and(|bytes| bytes > 0))
        .count();
    say!(
        "{} for {}: {}: {}{range}; {spilling} spill",
        kernel.spec.kernel,
        compiled_targets(kernel, rows, target),
        counted(rows.len(), "pair"),
        counts.join(", "),
    );
}

/// Returns the targets of the compiled code; without any, the requested one.
fn compiled_targets(kernel: &Kernel, rows: &[CheckRow], target: &Target) -> String {
    let compiled = rows.iter().filter_map(|row| row.arch.as_deref());
    let compiled: BTreeSet<&str> = compiled.collect();
    if compiled.is_empty() {
        return kernel.spec.target(&target.arch.to_string());
    }
    compiled.into_iter().collect::<Vec<_>>().join(" and ")
}

/// Prints the tolerances, once for all rows that share one.
fn show_tolerances(rows: &[CheckRow]) {
    let mut shown: Vec<(&str, &str, Vec<&str>)> = Vec::new();
    for row in rows {
        let Some(text) = row.tolerance.as_deref() else {
            continue;
        };
        let problem = row.problem.as_str();
        let same =
            |(kernel, other, _): &&mut (&str, &str, _)| *kernel == row.kernel && *other == text;
        match shown.iter_mut().find(same) {
            Some((_, _, problems)) if problems.contains(&problem) => {}
            Some((_, _, problems)) => problems.push(problem),
            None => shown.push((&row.kernel, text, vec![problem])),
        }
    }
    for (kernel, text, problems) in shown {
        say!("tolerance of {kernel} ({}): {text}", problems.join(", "));
    }
}

/// Prints the full details of the first failures.
fn show_details(rows: &[CheckRow]) {
    let mut told: Vec<&str> = Vec::new();
    let failed = rows.iter().filter(|row| {
        let detail = row.judgement.detail.as_str();
        let first = detail.lines().next().unwrap_or_default();
        let news = detail.lines().nth(1).is_some() && !told.contains(&first);
        told.push(first);
        news
    });
    for row in failed.take(DETAILS_SHOWN) {
        say_part!(
            "\n{} {} {}: --config {}\n{}\n",
            row.kernel,
            row.problem,
            row.judgement.verdict,
            assignments(&row.config, ","),
            row.judgement.detail.trim_end()
        );
    }
}
