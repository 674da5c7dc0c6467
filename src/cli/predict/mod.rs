//! `tuner predict`: predicted times on a virtual GPU.

pub(super) mod configs;
mod print;

use super::CommandResult;
use super::output::Format;
use crate::exit;
use anyhow::Context as _;
use indicatif::ProgressBar;
use print::Printer;
use serde::Serialize;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tuner_core::record::{ConfigValues, Verdict, config_as_object};
use tuner_core::units::Micros;
use tuner_device::DeviceSelector;
use tuner_engine::{Judged, Predictor};
use tuner_judge::explanation::Explanation;
use tuner_predict::{SERIALIZED, serialization};
use tuner_space::{Config, Reference};

/// Interval of plain progress lines.
const PLAIN_INTERVAL: Duration = Duration::from_secs(10);

/// Predict the time of configurations on a GPU that need not be present
///
/// Each configuration is compiled; some of its blocks run on the virtual GPU, and their machine
/// code is replayed on a model of one multiprocessor. Results are not checked (`--check` does).
/// Rows are printed as they are ready, in the order of the input; rows with an unreliable time come
/// last. A predicted time orders candidates and is not a measurement; the output marks times for
/// which the model is known to be weak.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tuner predict gemm_f32 --device vgpu:a100
  tuner predict gemm_f32 --device vgpu:l4 --problem square2048 --configs configs.csv --format csv
  tuner space gemm_f32 --sample 20 --format csv | tuner predict gemm_f32 --configs -

The file is CSV, with a line of names and one of values for each configuration, or a Kernel Tuner
cache (.json, .json.gz). Parameters without a column take their defaults, further columns are left
out, and so are rows outside the space: how many is said, and --strict refuses them. Without
--configs: the default configuration and the seeds.

Exit codes: 0 done, whatever the verdicts; 2 bad usage, or no configuration inside the space.")]
pub(crate) struct Args {
    /// Kernel, by name or search space file
    #[arg(value_name = "KERNEL|FILE.yaml")]
    kernel: String,

    /// Virtual GPU, vgpu:NAME or vgpu:NAME@CLOCK
    #[arg(long, value_name = "DEVICE", default_value = "vgpu:h100")]
    device: DeviceSelector,

    /// Compile for this target [default: the GPU's, with the features that the search space requires]
    #[arg(long, value_name = "sm_XX")]
    arch: Option<String>,

    /// Also run and check every configuration, as `tuner run` does
    #[arg(long)]
    check: bool,

    /// Problem [default: the first]
    #[arg(long, value_name = "NAME")]
    problem: Option<String>,

    /// Configurations to predict: CSV or a Kernel Tuner cache (`-`: CSV on standard input)
    #[arg(long, value_name = "FILE")]
    configs: Option<PathBuf>,

    /// Reject columns that are not parameters, and rows outside the space
    #[arg(long)]
    strict: bool,

    /// Number of parallel predictions [default: number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,

    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// Runs the command.
///
/// # Errors
/// Bad arguments or files, no NVRTC, or tools that do not work.
#[expect(
    clippy::indexing_slicing,
    reason = "configurations are numbered by their own list"
)]
pub(crate) fn run(args: &Args) -> CommandResult {
    let problem = args.problem.as_deref();
    let folder = std::env::current_dir().context("no working directory")?;
    let (device, arch) = (&args.device, args.arch.as_deref());
    let predictor = Predictor::open(&args.kernel, &folder, problem, device, arch, args.jobs)?;
    note_other_problems(args, &predictor);
    let configs = configs::read(args, &predictor.kernel, &predictor.space)?;
    if matches!(predictor.kernel.spec.reference, Reference::None) {
        let yaml = tuner_kernel::catalog::shown(&predictor.kernel.path);
        say!("note: {yaml}: `reference: none`: results are not compared");
    }
    let mut printer = Printer::new(args.format, &predictor.space);
    let mut progress = Progress::new(configs.len());
    let (mut failed, mut serialized) = (None, 0_usize);
    let tell = |index: usize, judged: Judged| {
        let row = Row::new(&predictor, &configs[index], judged);
        let warned = row.explanation.as_ref().and_then(serialization);
        progress.step(|| {
            serialized += usize::from(warned.is_some());
            let printed = printer.add(row);
            // This callback cannot fail, so that the first error is returned at the end.
            failed = failed.take().or_else(|| printed.err());
        });
    };
    if args.check {
        predictor.predict_each(&configs, tell)?;
    } else {
        predictor.forecast_each(&configs, tell)?;
    }
    progress.bar.finish_and_clear();
    let printed = failed.map_or_else(|| printer.end(), Err);
    printed.context("cannot write to standard output")?;
    if serialized > 0 {
        say!(
            "warning: the wgmma of {serialized} of {} configurations is serialized: most products wait for the \
             one before (messages C7510 and C7511 of ptxas); the metric {} has the share",
            configs.len(),
            SERIALIZED,
        );
    }
    if let Some(cost) = predictor.cost() {
        say!("{cost}");
    }
    Ok(exit::DONE)
}

/// Reports the chosen problem if none is named and there are several.
fn note_other_problems(args: &Args, predictor: &Predictor) {
    let problems = &predictor.kernel.spec.problems;
    if args.problem.is_some() || problems.len() < 2 {
        return;
    }
    let others = problems.iter().map(|problem| problem.name.as_str());
    let others: Vec<&str> = others.filter(|name| *name != predictor.problem).collect();
    say!(
        "note: problem {}; --problem chooses another: {}",
        predictor.problem,
        others.join(", ")
    );
}

/// Progress display: a bar on a terminal, occasional lines elsewhere.
struct Progress {
    bar: ProgressBar,
    done: usize,
    all: usize,
    said: Instant,
}

impl Progress {
    fn new(all: usize) -> Self {
        Self {
            bar: match all {
                0 | 1 => ProgressBar::hidden(),
                _ => super::terminal::bar(all, "predicted"),
            },
            done: 0,
            all,
            said: Instant::now(),
        }
    }

    /// Counts a finished prediction; `print` may write to the bar's terminal.
    fn step(&mut self, print: impl FnOnce()) {
        self.done += 1;
        self.bar.suspend(print);
        self.bar.inc(1);
        let due = self.said.elapsed() >= PLAIN_INTERVAL && self.done < self.all;
        if self.bar.is_hidden() && due {
            self.said = Instant::now();
            say!("{} of {} predicted", self.done, self.all);
        }
    }
}

/// Prediction of a configuration.
#[derive(Debug, Clone, Serialize)]
struct Row {
    kernel: String,
    problem: String,
    device: String,
    #[serde(with = "config_as_object")]
    config: ConfigValues,
    verdict: Verdict,
    detail: String,
    /// Always `predicted`.
    timing: &'static str,
    time_us: Option<f64>,
    registers: Option<u32>,
    spill_bytes: Option<u64>,
    shared_bytes: Option<u64>,
    /// `ok`, or the reason why the time is unreliable.
    reliability: String,
    #[serde(flatten)]
    explanation: Option<Explanation>,
}

impl Row {
    /// Reports whether the row has a time for which the model is known to be weak.
    fn is_doubtful(&self) -> bool {
        self.time_us.is_some() && !matches!(&*self.reliability, "ok" | "")
    }

    fn new(predictor: &Predictor, config: &Config, judged: Judged) -> Self {
        let time = judged.predicted();
        let (found, facts) = (judged.found, judged.compilation.as_ref());
        let reliability = found.explanation.as_ref().map(Explanation::reliability);
        Self {
            kernel: predictor.kernel.spec.kernel.clone(),
            problem: predictor.problem.clone(),
            device: predictor.selector.to_string(),
            config: predictor.space.values(config),
            verdict: found.judgement.verdict,
            detail: found.judgement.detail,
            timing: "predicted",
            time_us: time.map(Micros::get),
            registers: facts.map(|facts| facts.registers),
            spill_bytes: facts.map(|facts| facts.spill_bytes),
            shared_bytes: facts.map(|facts| facts.shared_bytes),
            reliability: reliability.unwrap_or_default(),
            explanation: found.explanation,
        }
    }
}
