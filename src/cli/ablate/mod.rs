//! `tuner ablate`: the contribution of each parameter of a configuration.

mod answer;

use super::check::select::parse_config;
use super::output::{self, Format};
use super::results::{block_on, db_parser};
use super::terminal::Ticker;
use super::{CliError, CommandResult, usage};
use crate::exit;
use answer::Answer;
use anyhow::Context as _;
use std::path::PathBuf;
use tuner_core::record::{ConfigValues, LeaderboardRow, TimingKind, assignments};
use tuner_device::gpu;
use tuner_device::{DeviceSelector, limits};
use tuner_engine::ablation::{self, Ablation, Change, Inversions, Outcome, Spills, single_changes};
use tuner_engine::{KernelTask, Predictor, job, named};
use tuner_kernel::compile::{Compiler, CompilerSettings};
use tuner_kernel::{catalog, declarations};
use tuner_space::{BindError, Config, Space};
use tuner_store as store;
use tuner_store::{DeviceFilter, LeaderboardQuery, Store};

/// Show what each parameter of a configuration contributes
///
/// The configuration is the best in the database for this kernel, problem and device, or else the
/// default. On a GPU every change is checked first and then timed against the configuration itself;
/// a virtual GPU predicts: its times order choices and are not measurements.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tuner ablate gemm_f32 --device vgpu:l4
  tuner ablate attention_f16 --problem mission --device cuda:0
  tuner ablate attention_f16 --problem mission --parameter BN --parameter STAGES_K
  tuner ablate attention_f16 --config BM=128,BN=128,STAGES_K=1 --inversion
  tuner ablate softmax --format json | jq 'max_by(.cost) | .parameter'

`cost` is a change's time over that of the configuration itself: 1.25 means that it takes a quarter
longer without the choice made. Only valid neighbours are tried; a parameter without one is named on stderr.
--inversion applies known pathologies instead (no padding, unvectorised loads, one stage, tiny and
huge blocks, more resident blocks than registers allow), where the space has such parameters; what
the constraints then forbid is repaired, tiles and threads last; one that no valid configuration
shows is left out and named on stderr.

On a GPU (--device cuda:N) the base is the best *measured* result. `cost` is the median of ratios
taken within rounds of interleaved samples, `cost_low` and `cost_high` its 95 % interval. The base's
own interval is the base timed against itself. `same` says that the interval contains 1, or reaches
what the base differs from itself by: nothing was shown. A change that is wrong, hangs or crashes has its verdict and no time. `bound` and
`bank_conflicts` are the model's, and empty.

Exit codes: 0 done, whatever the verdicts of the changes; 2 bad usage, no such GPU, a configuration
outside the space, or a base that is not right.")]
pub(crate) struct Args {
    /// Kernel, by name or search space file
    #[arg(value_name = "KERNEL|FILE.yaml")]
    kernel: String,

    /// Device: cuda:N measures, vgpu:NAME predicts; auto is the first GPU, else vgpu:h100
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    device: DeviceSelector,

    /// Problem [default: the first]
    #[arg(long, value_name = "NAME")]
    problem: Option<String>,

    /// Start from this configuration instead of the best in the database; parameters not named take
    /// their defaults
    #[arg(long, value_name = "K=V,…")]
    config: Option<String>,

    /// Database of results
    #[arg(long, value_name = "FILE", default_value = store::DEFAULT_PATH, value_parser = db_parser())]
    db: PathBuf,

    /// Change only this parameter; may be repeated [default: all]
    #[arg(long, value_name = "NAME", conflicts_with = "inversion")]
    parameter: Vec<String>,

    /// Apply known performance mistakes instead of changing one parameter at a time
    #[arg(long)]
    inversion: bool,

    /// Number of parallel compilations and predictions [default: number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,

    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// Runs the command.
///
/// # Errors
/// Bad arguments or files, no NVRTC, no such GPU, or tools that do not work.
pub(crate) fn run(args: &Args) -> CommandResult {
    let ticker = Ticker::start();
    let answers = match device(&args.device)? {
        DeviceSelector::Cuda(ordinal) => measured(args, ordinal)?,
        other => predicted(args, &other)?,
    };
    drop(ticker);
    let text = answer::format_answers(args.format, &answers).context("cannot make JSON")?;
    output::print(&text).context("cannot write to standard output")?;
    Ok(exit::DONE)
}

/// Resolves `auto`; rejects a device that does not support ablation.
fn device(asked: &DeviceSelector) -> Result<DeviceSelector, CliError> {
    match asked {
        DeviceSelector::Auto => {
            let (real, note) = job::automatic();
            if let Some(note) = note {
                say!("{note}");
            }
            Ok(if real {
                DeviceSelector::Cuda(0)
            } else {
                DeviceSelector::Vgpu(limits::DEFAULT.to_owned())
            })
        }
        DeviceSelector::Cuda(_) | DeviceSelector::Vgpu(_) => Ok(asked.clone()),
        DeviceSelector::CudaSeveral(_) | DeviceSelector::Replay(_) => Err(usage(format!(
            "choices are measured on one GPU or predicted for a virtual one, not on \
                 {asked}; type --device cuda:N or vgpu:NAME (one of: {})",
            limits::names()
        ))),
    }
}

fn predicted(args: &Args, device: &DeviceSelector) -> Result<Vec<Answer>, CliError> {
    let folder = std::env::current_dir().context("no working directory")?;
    let problem = args.problem.as_deref();
    let predictor = Predictor::open(&args.kernel, &folder, problem, device, None, args.jobs)?;
    let Predictor { kernel, space, .. } = &predictor;
    let selector = predictor.selector.to_string();
    let subject = Subject {
        kernel: &kernel.spec.kernel,
        problem: &predictor.problem,
        device: &selector,
        space,
        timing: TimingKind::Predicted,
    };
    let mut spills = |config: &Config| Ok(predictor.spill_bytes(config)?);
    let changes = subject.changes(args, &mut spills)?;
    let configs: Vec<Config> = changes.iter().map(|change| change.config.clone()).collect();
    let judged = predictor.predict(&configs)?;
    if let Some(base) = judged.first().filter(|base| base.predicted().is_none()) {
        return Err(ablation::bad_base(subject.device, &base.found.judgement).into());
    }
    let names = [subject.kernel, subject.problem, subject.device];
    let inversion = args.inversion;
    Ok(answer::predicted(names, space, &changes, judged, inversion))
}

/// Measures the ablation on the GPU of this number.
#[expect(
    clippy::indexing_slicing,
    reason = "the first change is the base itself, which is always there"
)]
fn measured(args: &Args, ordinal: u32) -> Result<Vec<Answer>, CliError> {
    let gpu =
        gpu::find(ordinal).map_err(|error| job::absent(&DeviceSelector::Cuda(ordinal), &error))?;
    let folder = std::env::current_dir().context("no working directory")?;
    let (kernel, problem) = named(&args.kernel, &folder, args.problem.as_deref())?;
    if let Some(why) = kernel.spec.unranked() {
        refuse!("{why}");
    }
    let yaml = catalog::shown(&kernel.path);
    let wrong = |error: BindError| usage(format!("{yaml}: {error}"));
    let limits = gpu.limits();
    let space = kernel.spec.space(&problem, &limits).map_err(wrong)?;
    let subject = Subject {
        kernel: &kernel.spec.kernel,
        problem: &problem,
        device: &gpu.name,
        space: &space,
        timing: TimingKind::Measured,
    };
    let arch = gpu.arch();
    // Configurations are compiled sequentially here.
    let compiler = Compiler::new(CompilerSettings::with_jobs(1))?;
    let problems = [(&*problem, &space)];
    declarations::check(&kernel, &problems, &limits, &arch, &compiler)?;
    let task = KernelTask::new(&kernel, &problem, &limits, &arch).map_err(wrong)?;
    let mut spills = |config: &Config| {
        let built = task.timed.build(&compiler, config);
        let built = built.context("cannot compile")?;
        Ok(built.ok().map(|built| built.image.facts.spill_bytes))
    };
    let changes = subject.changes(args, &mut spills)?;
    let (ablation, notes) = Ablation::open(&gpu, task, &changes[0].config, args.jobs)?;
    let mut tell = |line: String| say!("{line}");
    notes.into_iter().for_each(&mut tell);
    let outcomes = ablation.measure_all(&changes, &mut tell)?;
    let names = [subject.kernel, subject.problem, subject.device];
    let answer = |(change, outcome): (&Change, Outcome)| {
        let config = space.values(&change.config);
        let mut answer = Answer::new(names, "measured", change, config, args.inversion);
        answer.measured(outcome);
        answer
    };
    Ok(changes.iter().zip(outcomes).map(answer).collect())
}

/// Kernel, problem and device of an ablation.
struct Subject<'a> {
    kernel: &'a str,
    problem: &'a str,
    /// Device name in the database.
    device: &'a str,
    space: &'a Space,
    /// Kind of time on this device.
    timing: TimingKind,
}

impl Subject<'_> {
    /// Returns the base and every requested change, the base first.
    fn changes(
        &self,
        args: &Args,
        spills: &mut Spills<'_, CliError>,
    ) -> Result<Vec<Change>, CliError> {
        let base = self.base(args)?;
        if let Some(why) = self.space.reject_reason(&base) {
            refuse!(
                "the configuration is not in the space of problem {}: {why}",
                self.problem
            );
        }
        let mut changes = vec![Change {
            what: String::new(),
            from: String::new(),
            to: String::new(),
            config: base.clone(),
        }];
        changes.extend(if args.inversion {
            pathologies(self.space, &base, spills)?
        } else {
            neighbours(self.space, &base, &args.parameter)?
        });
        Ok(changes)
    }

    /// Returns the configuration to ablate: given, else the best stored, else the default.
    fn base(&self, args: &Args) -> Result<Config, CliError> {
        if let Some(text) = &args.config {
            return parse_config(self.space, text);
        }
        let (kernel, db) = (self.kernel, args.db.display());
        if !args.db.exists() {
            say!("no database {db}: the default configuration");
            return Ok(self.space.default_config());
        }
        // A predicted time must not replace a measured one.
        let timing = self.timing;
        let Some(best) = self.best(args)? else {
            say!(
                "{db} has no {timing} result of {kernel} on problem {} and {}: the default \
                 configuration",
                self.problem,
                self.device
            );
            return Ok(self.space.default_config());
        };
        say!(
            "the best in {db}: {:.3} us, {timing}, run {}",
            best.time_us_p50,
            best.run_id
        );
        self.space
            .config_from_values(&best.config)
            .map_err(|error| {
                usage(format!(
                    "the best stored configuration is of another version of {kernel}: \
                     {error}; name one by --config, or tune again"
                ))
            })
    }

    /// Returns the best stored result of this kind of time.
    fn best(&self, args: &Args) -> Result<Option<LeaderboardRow>, CliError> {
        let query = LeaderboardQuery {
            kernel: Some(self.kernel.to_owned()),
            device: Some(DeviceFilter::Name(self.device.to_owned())),
            problem: Some(self.problem.to_owned()),
            top: Some(1),
            timings: vec![self.timing],
            admitted: Some(tuner_report::admitted),
            ..LeaderboardQuery::default()
        };
        block_on(async {
            let store = Store::open_read(&args.db).await?;
            let boards = store.boards(&query).await?;
            store.close().await?;
            let rows = boards.into_iter().flat_map(|board| board.rows);
            Ok(rows.min_by(|a, b| a.time_us_p50.total_cmp(&b.time_us_p50)))
        })
    }
}

/// Lists every valid change of one parameter, in the order of the space.
fn neighbours(space: &Space, base: &Config, only: &[String]) -> Result<Vec<Change>, CliError> {
    let parameters = space.parameters();
    if let Some(unknown) = only
        .iter()
        .find(|name| parameters.iter().all(|known| known.name != **name))
    {
        let known: Vec<&str> = parameters.iter().map(|each| each.name.as_str()).collect();
        refuse!(
            "--parameter: `{}` has no parameter `{unknown}`; it has {}",
            space.name(),
            known.join(", ")
        );
    }
    let chosen = |name: &String| only.is_empty() || only.contains(name);
    let mut changes = single_changes(space, base);
    changes.retain(|change| chosen(&change.what));
    let fixed: Vec<&str> = parameters
        .iter()
        .map(|parameter| &parameter.name)
        .filter(|name| chosen(name) && changes.iter().all(|change| change.what != **name))
        .map(String::as_str)
        .collect();
    if !fixed.is_empty() {
        say!("no other value is valid by itself: {}", fixed.join(", "));
    }
    Ok(changes)
}

/// Lists the applicable performance mistakes of this space.
fn pathologies(
    space: &Space,
    base: &Config,
    spills: &mut Spills<'_, CliError>,
) -> Result<Vec<Change>, CliError> {
    let Inversions { found, left_out } = ablation::inversions(space, base, spills)?;
    if !left_out.is_empty() {
        say!(
            "left out, for no valid configuration shows it with the same tiles and threads: {}",
            left_out.join(", ")
        );
    }
    if found.is_empty() && left_out.is_empty() {
        say!("no known performance mistake matches this space's parameter names");
    }
    let changes = found.into_iter().map(|inverted| {
        let (old, new) = (space.values(base), space.values(&inverted.config));
        let changed = |values: &ConfigValues, others: &ConfigValues| {
            let changed = values.iter().zip(others).filter(|(a, b)| a != b);
            assignments(changed.map(|(value, _)| value), ",")
        };
        Change {
            what: inverted.name.to_owned(),
            from: changed(&old, &new),
            to: changed(&new, &old),
            config: inverted.config,
        }
    });
    Ok(changes.collect())
}
