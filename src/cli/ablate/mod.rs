//! `tuner ablate`: which choice of a configuration buys what.

mod inversion;

use super::check::select::parse_config;
use super::output::{self, Format};
use super::predictor::{Predictor, Row};
use super::results::{block_on, store_error};
use super::{CliError, CommandResult};
use crate::device::DeviceSelector;
use crate::exit;
use crate::record::{ConfigValues, Verdict, config_as_object};
use crate::space::{Config, Neighbourhood, Space};
use crate::store::{self, DeviceFilter, LeaderboardQuery, Store};
use anyhow::Context as _;
use serde::Serialize;
use std::path::PathBuf;

/// Compares a configuration with each change of one parameter: which choice bought what
///
/// The configuration is the best in the database for this kernel, problem and device, or else the
/// default. Times are predicted by the virtual GPU: they order choices, and are no measurement.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tuner ablate gemm_f32 --device vgpu:l4
  tuner ablate attention_f16 --problem mission --parameter BN --parameter STAGES_K
  tuner ablate attention_f16 --config BM=128,BN=128,STAGES_K=1 --inversion
  tuner ablate softmax --format json | jq 'max_by(.cost) | .parameter'

`cost` is a change's time over that of the configuration itself: 1.25 means that the choice made
saves a quarter. Only valid neighbours are tried; a parameter without one is named on stderr.
--inversion applies known pathologies instead (no padding, unvectorised loads, one stage, tiny and
huge blocks, more resident blocks than registers allow), where the space has such parameters; what
the constraints then forbid is repaired.

Exit codes: 0 done, whatever the verdicts; 2 bad usage, or a configuration outside the space.")]
pub struct Args {
    /// The kernel, or its search space file
    #[arg(value_name = "KERNEL|FILE.yaml")]
    kernel: String,

    /// The virtual GPU, vgpu:NAME
    #[arg(long, value_name = "DEVICE", default_value = "vgpu:h100")]
    device: DeviceSelector,

    /// The problem; the first when left out
    #[arg(long, value_name = "NAME")]
    problem: Option<String>,

    /// The configuration to take apart, instead of the best in the database; parameters not named
    /// take their defaults
    #[arg(long, value_name = "K=V,…")]
    config: Option<String>,

    /// Database of results
    #[arg(long, value_name = "FILE", default_value = store::DEFAULT_PATH)]
    db: PathBuf,

    /// Change only this parameter. May be given several times [default: all]
    #[arg(long, value_name = "NAME", conflicts_with = "inversion")]
    parameter: Vec<String>,

    /// Apply known pathologies instead of changing one parameter at a time
    #[arg(long)]
    inversion: bool,

    /// Configurations at a time [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,

    /// How to print the result
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// A change of the base configuration.
#[derive(Debug, Clone)]
pub(in crate::cli) struct Change {
    /// The parameter, or the pathology's name; empty for the base itself.
    pub(in crate::cli) what: String,
    pub(in crate::cli) from: String,
    pub(in crate::cli) to: String,
    pub(in crate::cli) config: Config,
}

/// Every valid change of one parameter, in the order of the space.
pub(in crate::cli) fn single_changes(space: &Space, base: &Config) -> Vec<Change> {
    let parameters = space.parameters();
    space
        .neighbours(base, Neighbourhood::Hamming)
        .into_iter()
        .filter_map(|config| {
            let differs = |at: &usize| config.choices()[*at] != base.choices()[*at];
            let at = (0..parameters.len()).find(differs)?;
            let value = |config: &Config| space.values(config)[at].1.to_string();
            Some(Change {
                what: parameters[at].name.clone(),
                from: value(base),
                to: value(&config),
                config,
            })
        })
        .collect()
}

/// One line of the answer.
#[derive(Debug, Serialize)]
struct Answer {
    kernel: String,
    problem: String,
    device: String,
    /// Always `predicted`.
    timing: &'static str,
    /// `base`, `parameter` or `inversion`.
    change: &'static str,
    /// The parameter changed, or the pathology; empty for the base.
    parameter: String,
    /// The base's values of what is changed.
    from: String,
    /// The values it is changed to.
    to: String,
    #[serde(with = "config_as_object")]
    config: ConfigValues,
    verdict: Verdict,
    detail: String,
    time_us: Option<f64>,
    /// Time over that of the base; null where one of them has none.
    cost: Option<f64>,
    bound: Option<String>,
    occupancy: Option<f64>,
    registers: Option<u32>,
    spill_bytes: Option<u64>,
    bank_conflicts: Option<f64>,
}

/// Runs the command.
///
/// # Errors
/// Bad arguments or files, no NVRTC, or tools that do not work.
pub fn run(args: &Args) -> CommandResult {
    let problem = args.problem.as_deref();
    let predictor = Predictor::open(&args.kernel, problem, &args.device, args.jobs)?;
    let space = &predictor.space;
    let base = base(args, &predictor)?;
    if let Some(why) = space.reject_reason(&base) {
        return Err(CliError::Usage(format!(
            "error: the configuration is not in the space of problem {}: {why}",
            predictor.problem
        )));
    }
    let mut changes = vec![Change {
        what: String::new(),
        from: String::new(),
        to: String::new(),
        config: base.clone(),
    }];
    changes.extend(if args.inversion {
        pathologies(space, &base)
    } else {
        neighbours(space, &base, &args.parameter)?
    });
    let configs: Vec<Config> = changes.iter().map(|change| change.config.clone()).collect();
    let rows = predictor.predict(&configs)?;
    let answers = answers(&changes, rows, args.inversion);
    let text = format_answers(args.format, &answers).context("cannot make JSON")?;
    output::print(&text).context("cannot write to standard output")?;
    Ok(exit::DONE)
}

/// The configuration to take apart: given, or the best stored, or the default.
fn base(args: &Args, predictor: &Predictor) -> Result<Config, CliError> {
    let space = &predictor.space;
    if let Some(text) = &args.config {
        return parse_config(space, text);
    }
    let Predictor {
        kernel,
        problem,
        selector,
        ..
    } = predictor;
    let name = &kernel.spec.kernel;
    if !args.db.exists() {
        eprintln!(
            "no database {}: the default configuration",
            args.db.display()
        );
        return Ok(space.default_config());
    }
    let query = LeaderboardQuery {
        kernel: Some(name.clone()),
        device: Some(DeviceFilter::Name(selector.clone())),
        problem: Some(problem.clone()),
        top: Some(1),
        timings: Vec::new(),
        commits: None,
    };
    let best = block_on(async {
        let store = Store::open_read(&args.db).await.map_err(store_error)?;
        let boards = store.boards(&query).await.map_err(store_error)?;
        store.close().await.map_err(store_error)?;
        let rows = boards.into_iter().flat_map(|board| board.rows);
        Ok(rows.min_by(|a, b| a.time_us_p50.total_cmp(&b.time_us_p50)))
    })?;
    let Some(best) = best else {
        eprintln!(
            "{} has no result of {name} on problem {problem} and {selector}: the default \
             configuration",
            args.db.display()
        );
        return Ok(space.default_config());
    };
    eprintln!(
        "the best in {}: {:.3} us, predicted, run {}",
        args.db.display(),
        best.time_us_p50,
        best.run_id
    );
    space.config_from_values(&best.config).map_err(|error| {
        CliError::Usage(format!(
            "error: the best stored configuration is of another version of {name}: {error}; name \
             one by --config, or tune again"
        ))
    })
}

/// Every valid change of one parameter, in the order of the space.
fn neighbours(space: &Space, base: &Config, only: &[String]) -> Result<Vec<Change>, CliError> {
    let parameters = space.parameters();
    if let Some(stranger) = only
        .iter()
        .find(|name| parameters.iter().all(|known| known.name != **name))
    {
        let known: Vec<&str> = parameters.iter().map(|each| each.name.as_str()).collect();
        return Err(CliError::Usage(format!(
            "error: --parameter: `{}` has no parameter `{stranger}`; it has {}",
            space.name(),
            known.join(", ")
        )));
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
        eprintln!("no other value is valid by itself: {}", fixed.join(", "));
    }
    Ok(changes)
}

/// The known pathologies of this space.
fn pathologies(space: &Space, base: &Config) -> Vec<Change> {
    let inverted = inversion::inversions(space, base);
    if inverted.is_empty() {
        eprintln!("no known pathology can be told from the names of this space's parameters");
    }
    inverted
        .into_iter()
        .map(|inverted| {
            let (old, new) = (space.values(base), space.values(&inverted.config));
            let assignments = |values: &ConfigValues, others: &ConfigValues| {
                let changed = values.iter().zip(others).filter(|(a, b)| a != b);
                let texts: Vec<String> = changed
                    .map(|((name, value), _)| format!("{name}={value}"))
                    .collect();
                texts.join(",")
            };
            Change {
                what: inverted.name.to_owned(),
                from: assignments(&old, &new),
                to: assignments(&new, &old),
                config: inverted.config,
            }
        })
        .collect()
}

fn answers(changes: &[Change], rows: Vec<Row>, inversion: bool) -> Vec<Answer> {
    let base = rows.first().and_then(|row| row.time_us);
    changes
        .iter()
        .zip(rows)
        .map(|(change, row)| Answer {
            change: match (change.what.as_str(), inversion) {
                ("", _) => "base",
                (_, true) => "inversion",
                (_, false) => "parameter",
            },
            parameter: change.what.clone(),
            from: change.from.clone(),
            to: change.to.clone(),
            cost: row.time_us.zip(base).map(|(time, base)| time / base),
            kernel: row.kernel,
            problem: row.problem,
            device: row.device,
            timing: row.timing,
            config: row.config,
            verdict: row.verdict,
            detail: row.detail,
            time_us: row.time_us,
            registers: row.registers,
            spill_bytes: row.spill_bytes,
            bound: row.explanation.as_ref().map(|e| e.bound.clone()),
            occupancy: row.explanation.as_ref().map(|e| e.occupancy),
            bank_conflicts: row.explanation.as_ref().map(|e| e.bank_conflicts),
        })
        .collect()
}

const HEADINGS: [&str; 13] = [
    "change",
    "from",
    "to",
    "verdict",
    "time_us",
    "cost",
    "bound",
    "occupancy",
    "registers",
    "spill_bytes",
    "bank_conflicts",
    "timing",
    "detail",
];

fn format_answers(format: Format, answers: &[Answer]) -> Result<String, serde_json::Error> {
    if format == Format::Json {
        return serde_json::to_string_pretty(answers);
    }
    let cells: Vec<Vec<String>> = answers.iter().map(|each| cells(format, each)).collect();
    Ok(output::rows(format, &HEADINGS, &cells))
}

fn cells(format: Format, answer: &Answer) -> Vec<String> {
    let number = |value: Option<f64>, digits: usize| {
        value.map_or_else(String::new, |value| format!("{value:.digits$}"))
    };
    let detail = match format {
        Format::Csv | Format::Json => answer.detail.clone(),
        Format::Table | Format::Md => answer.detail.lines().next().unwrap_or_default().to_owned(),
    };
    let change = match answer.change {
        "base" => "(none)".to_owned(),
        _ => answer.parameter.clone(),
    };
    vec![
        change,
        answer.from.clone(),
        answer.to.clone(),
        answer.verdict.to_string(),
        number(answer.time_us, 3),
        number(answer.cost, 3),
        answer.bound.clone().unwrap_or_default(),
        number(answer.occupancy, 3),
        answer.registers.map(|n| n.to_string()).unwrap_or_default(),
        answer
            .spill_bytes
            .map(|n| n.to_string())
            .unwrap_or_default(),
        number(answer.bank_conflicts, 0),
        answer.timing.to_owned(),
        detail,
    ]
}
