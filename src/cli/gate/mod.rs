//! `tuner gate`: checks that the shipped configuration is correct and as fast as the best known.

mod compare;
mod junit;
pub(super) mod promotion;
mod show;
mod sources;

use super::outcome::{Outcome, percent};
use super::output::{self, Format};
use super::results::{block_on, db_parser, write_file};
use super::terminal::Ticker;
use super::{CliError, CommandResult, verify};
use crate::exit;
use serde::Serialize;
use std::path::PathBuf;
use tuner_core::record::{Compared, ConfigValues, TimingKind, Verdict, config_as_object};
use tuner_device::DeviceSelector;
use tuner_engine::job::{Prepared, ProveBudget, Request};
use tuner_report::accept::Finding;
use tuner_report::export::{CodeChange, Shipped};
use tuner_store as store;

/// Check in CI that the shipped configuration is correct and as fast as the best known
///
/// Per problem: the shipped configuration is judged with all checks and timed against the best one
/// of the leaderboard, both with the current template, interleaved; if the template was edited
/// since the best was measured, also against its stored time. A regression: the median ratio is over
/// the limit and its 95 % interval lies above 1. On a virtual GPU times are predicted and the
/// verdict is the same every time.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tuner gate gemm_f32 --device cuda --junit gate.xml
  tuner gate gemm_f32 --device vgpu:h100 --shipped include/gemm_f32_tuned.h --max-regression 1%
  tuner gate attention_f16 --config BM=128,BN=64 --problem mission
  tuner gate gemm_f32 --min-gain 10%:2 --min-gain 5%:3 --p90-no-worse --no-spills

The shipped configuration is the first found of: --config; --shipped; leaderboard/<device>/<kernel>.json; the
best result at or before HEAD in the database; the default configuration.
The options from --min-gain to --max-registers are rules for promoting the leaderboard's best: all of
those given must hold. The answer changes no exit code.

Exit codes: 0 passed; 2 bad usage or input, or nothing to compare with; 4 a regression or a wrong
result.")]
pub(crate) struct Args {
    /// Kernel, by name or search space file
    #[arg(value_name = "KERNEL|FILE.yaml")]
    kernel: String,

    /// Device: auto, cuda, cuda:N, vgpu:NAME or replay:FILE
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    device: String,

    /// Use only this problem; may be repeated
    #[arg(long, value_name = "NAME")]
    problem: Vec<String>,

    /// Allowed slowdown of the shipped configuration
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = percent)]
    max_regression: f64,

    /// Use this as the shipped configuration; parameters not named take their defaults
    #[arg(long, value_name = "K=V,…", conflicts_with = "shipped")]
    config: Option<String>,

    /// Read the shipped configuration from a header, launcher or package of `tuner export` or a file of
    /// `tuner record`; a source that the file holds is judged, too
    #[arg(long, value_name = "FILE|FOLDER")]
    shipped: Option<PathBuf>,

    #[command(flatten)]
    promotion: promotion::PromotionArgs,

    /// Database of results
    #[arg(long, value_name = "FILE", default_value = store::DEFAULT_PATH, value_parser = db_parser())]
    db: PathBuf,

    /// Run the configurations whole on the timed problem, on a virtual GPU, if each takes at most this
    /// number of lane instructions; 0: never [default: 3e10]
    #[arg(long, value_name = "N")]
    prove_budget: Option<ProveBudget>,

    /// Write the outcome as JUnit XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,

    /// Number of rounds of interleaved timing, on real GPUs
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// Comparison of the shipped configuration with a time.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Comparison {
    /// The other side.
    against: &'static str,
    /// Its median, µs.
    us: f64,
    /// Ratio of the shipped time to this one: above 1 is slower.
    ratio: f64,
    /// 95 % interval of the ratio; its ends are equal without variation.
    ci95: [f64; 2],
}

/// Result of a problem.
#[derive(Debug, Clone, Default, Serialize)]
struct Line {
    kernel: String,
    problem: String,
    device: String,
    timing: Option<TimingKind>,
    outcome: Outcome,
    detail: String,
    #[serde(serialize_with = "optional_config")]
    shipped: Option<ConfigValues>,
    shipped_from: String,
    verdict: Option<Verdict>,
    max_error: Option<f64>,
    /// Kind of comparison of the shipped configuration's results at the timed size.
    compared: Option<Compared>,
    /// Reason why the timed problem was not run whole and compared.
    #[serde(skip)]
    unproven: Option<String>,
    shipped_us_p50: Option<f64>,
    shipped_us_p90: Option<f64>,
    #[serde(serialize_with = "optional_config")]
    best: Option<ConfigValues>,
    best_us_p50: Option<f64>,
    best_run_id: Option<String>,
    best_commit: Option<String>,
    ratio: Option<f64>,
    ci95: Option<[f64; 2]>,
    comparisons: Vec<Comparison>,
    /// Differences of the code from a shipped file's record; null without a record.
    changes: Option<Vec<CodeChange>>,
}

impl Line {
    /// Returns the comparison with the largest slowdown.
    fn worst(&self) -> Option<&Comparison> {
        let all = self.comparisons.iter();
        all.max_by(|a, b| a.ratio.total_cmp(&b.ratio))
    }
}

fn optional_config<S: serde::Serializer>(
    config: &Option<ConfigValues>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match config {
        Some(config) => config_as_object::serialize(config, serializer),
        None => serializer.serialize_none(),
    }
}

/// Decision on promoting the leaderboard's best.
#[derive(Debug, Clone, Serialize)]
struct Promotion {
    rules: String,
    accepted: bool,
    findings: Vec<Finding>,
}

/// The complete result.
#[derive(Debug, Serialize)]
struct Answer {
    kernel: String,
    device: String,
    max_regression_percent: f64,
    passed: bool,
    problems: Vec<Line>,
    promotion: Option<Promotion>,
}

/// Fails the problems for which the source in the shipped file is wrong or slower than recorded: the
/// comparison above builds the project's template.
fn fail_on_shipped_source(
    args: &Args,
    device: &str,
    problems: &mut [Line],
) -> Result<(), CliError> {
    let (Some(path), Ok(selector)) = (&args.shipped, args.device.parse::<DeviceSelector>()) else {
        return Ok(());
    };
    if matches!(selector, DeviceSelector::Replay(_)) {
        return Ok(());
    }
    let check = verify::Args {
        path: path.clone(),
        device: selector,
        kernel: Some(args.kernel.clone()),
        max_regression: args.max_regression,
        prove_budget: args.prove_budget,
        format: args.format,
    };
    // A problem that has already failed keeps its reason.
    let passed = |problem: &str| {
        let own = |line: &&Line| line.problem == problem && line.outcome == Outcome::Passed;
        problems.iter().find(own)
    };
    let wanted = |entry: &Shipped| {
        passed(&entry.problem)
            .is_some_and(|line| sources::is_shipped_for(entry, path, device, &line.kernel))
    };
    for fault in verify::source_faults(&check, wanted)? {
        for line in problems
            .iter_mut()
            .filter(|line| line.problem == fault.problem)
        {
            line.outcome = fault.outcome;
            line.detail.clone_from(&fault.detail);
        }
    }
    Ok(())
}

/// Runs the command.
///
/// # Errors
/// Bad arguments or files, nothing to compare with, or a device that does not work.
pub(crate) fn run(args: &Args) -> CommandResult {
    let rules = args.promotion.rules();
    let request = Request {
        kernels: vec![args.kernel.clone()],
        device: args.device.clone(),
        problems: args.problem.clone(),
        evals: Some(1),
        prove_budget: args.prove_budget,
        ..Request::default()
    };
    let folder = std::env::current_dir()?;
    let ticker = Ticker::start();
    let prepared = Prepared::new(&request, &folder)?;
    let known = block_on(sources::known(args, &prepared))?;
    let (mut problems, figures) = compare::compare_problems(args, &prepared, &known)?;
    fail_on_shipped_source(args, &prepared.facts().name, &mut problems)?;
    drop(ticker);
    // Otherwise a gate that compares nothing would pass in CI forever.
    if problems.iter().all(|line| line.outcome == Outcome::Skipped) {
        refuse!(
            "nothing to compare `{}` with on {}: {}",
            args.kernel,
            prepared.facts().name,
            problems
                .first()
                .map_or("it has no problem", |line| line.detail.as_str())
        );
    }
    let promotion = rules.map(|rules| {
        let findings = rules.judge(&figures);
        Promotion {
            rules: rules.to_string(),
            accepted: findings.iter().all(|finding| finding.holds),
            findings,
        }
    });
    let answer = Answer {
        kernel: problems
            .first()
            .map(|line| line.kernel.clone())
            .unwrap_or_default(),
        device: prepared.facts().name.clone(),
        max_regression_percent: args.max_regression,
        passed: !problems.iter().any(|line| line.outcome.is_fault()),
        problems,
        promotion,
    };
    if let Some(path) = &args.junit {
        write_file(path, junit::text(&answer).map_err(anyhow::Error::from)?)?;
    }
    let text = show::text(args.format, &answer)?;
    output::print(&text)?;
    show::tell(&answer);
    Ok(if answer.passed {
        exit::DONE
    } else {
        exit::NOT_OK
    })
}
