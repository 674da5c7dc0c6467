//! `tuner predict`: what the virtual GPU says that configurations take.

use super::check::select::parse_config;
use super::output::{self, Format};
use super::terminal::Ticker;
use super::{CliError, CommandResult};
use crate::exit;
use anyhow::Context as _;
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::PathBuf;
use tuner_core::record::{ConfigValues, Verdict, config_as_object};
use tuner_core::units::Micros;
use tuner_device::DeviceSelector;
use tuner_engine::{Judged, Predictor};
use tuner_judge::timing::predict::Explanation;
use tuner_kernel::catalog::{Kernel, near_text};
use tuner_space::{Config, Space, suggest};

/// Predict the time of configurations on a GPU that need not be present
///
/// Each configuration is compiled; some of its blocks run on the virtual GPU, and their machine
/// code is replayed on a model of one multiprocessor. Results are not checked (`--check` does).
/// Rows come in the order of the input. A predicted time is a model's: it orders candidates, and is
/// no measurement; where the model is known to be weak, that stands beside the time.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tuner predict gemm_f32 --device vgpu:a100
  tuner predict gemm_f32 --device vgpu:l4 --problem square2048 --configs configs.csv --format csv
  tuner space gemm_f32 --sample 20 --format csv | tuner predict gemm_f32 --configs -

The file has a line of parameter names, and one of values for each configuration; parameters
without a column take their defaults. Without --configs: the default configuration and the seeds.

Exit codes: 0 done, whatever the verdicts; 2 bad usage, or a configuration outside the space.")]
pub(crate) struct Args {
    /// Kernel, by name or search space file
    #[arg(value_name = "KERNEL|FILE.yaml")]
    kernel: String,

    /// Virtual GPU, vgpu:NAME
    #[arg(long, value_name = "DEVICE", default_value = "vgpu:h100")]
    device: DeviceSelector,

    /// Also run and check every configuration, as `tuner run` does
    #[arg(long)]
    check: bool,

    /// Problem [default: the first]
    #[arg(long, value_name = "NAME")]
    problem: Option<String>,

    /// Configurations to predict (`-`: standard input)
    #[arg(long, value_name = "FILE.csv")]
    configs: Option<PathBuf>,

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
pub(crate) fn run(args: &Args) -> CommandResult {
    let problem = args.problem.as_deref();
    let folder = std::env::current_dir().context("no working directory")?;
    let kernel = (args.kernel.as_str(), folder.as_path());
    let ticker = Ticker::start();
    let predictor = Predictor::open(kernel, problem, &args.device, args.jobs)?;
    let spec = &predictor.kernel.spec;
    if problem.is_none() && spec.problems.len() > 1 {
        let others = spec.problems.iter().map(|problem| problem.name.as_str());
        let others: Vec<&str> = others.filter(|name| *name != predictor.problem).collect();
        say!(
            "note: problem {}; --problem chooses another: {}",
            predictor.problem,
            others.join(", ")
        );
    }
    let configs = configs(args, &predictor.kernel, &predictor.space)?;
    let judged = if args.check {
        predictor.predict(&configs)?
    } else {
        predictor.forecast(&configs)?
    };
    drop(ticker);
    let rows: Vec<Row> = configs
        .iter()
        .zip(judged)
        .map(|(config, judged)| Row::of(&predictor, config, judged))
        .collect();
    let text = format_rows(args.format, &predictor.space, &rows).context("cannot make JSON")?;
    output::print(&text).context("cannot write to standard output")?;
    if let Some(cost) = predictor.cost() {
        say!("{cost}");
    }
    Ok(exit::DONE)
}

/// One configuration's answer.
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
    /// `ok`, or that the time is not reliable and why.
    reliability: String,
    #[serde(flatten)]
    explanation: Option<Explanation>,
}

impl Row {
    fn of(predictor: &Predictor, config: &Config, judged: Judged) -> Self {
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

/// The configurations to predict: all must be valid.
fn configs(args: &Args, kernel: &Kernel, space: &Space) -> Result<Vec<Config>, CliError> {
    let Some(path) = &args.configs else {
        let mut configs = vec![space.default_config()];
        for seed in &kernel.spec.seeds {
            let config = space
                .config_from_values(seed)
                .map_err(|error| CliError::Usage(format!("error: seeds: {error}")))?;
            if !configs.contains(&config) {
                configs.push(config);
            }
        }
        configs.retain(|config| space.contains(config));
        return Ok(configs);
    };
    let shown = if path.as_os_str() == "-" {
        "standard input".to_owned()
    } else {
        path.display().to_string()
    };
    let bad = |why: &dyn std::fmt::Display| CliError::Usage(format!("error: {shown}: {why}"));
    let mut text = String::new();
    if path.as_os_str() == "-" {
        std::io::stdin()
            .read_to_string(&mut text)
            .map_err(|error| bad(&error))?;
    } else {
        text = std::fs::read_to_string(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::InvalidData => bad(&"this is no text (UTF-8) but something else"),
            _ => bad(&format!(
                "{error}; name a CSV file whose first line names parameters"
            )),
        })?;
    }
    read_csv(&text, space).map_err(|wrong| {
        let Wrong { line, column, why } = wrong;
        CliError::Usage(format!("error: {shown}:{line}:{column}: {why}"))
    })
}

/// A mistake in the file of configurations, and where; both from 1.
#[derive(Debug, PartialEq, Eq)]
struct Wrong {
    line: u64,
    column: usize,
    why: String,
}

/// Column at which a field begins: fields without quotes, which values of parameters never need.
fn column(line: &str, field: usize) -> usize {
    let before: usize = line.split(',').take(field).map(|f| f.len() + 1).sum();
    let blank =
        line[before.min(line.len())..].len() - line[before.min(line.len())..].trim_start().len();
    before.min(line.len()) + blank + 1
}

/// Configurations from comma-separated values under parameter names.
fn read_csv(text: &str, space: &Space) -> Result<Vec<Config>, Wrong> {
    let lines: Vec<&str> = text.lines().collect();
    let line_text = |line: u64| {
        lines
            .get(line.max(1) as usize - 1)
            .copied()
            .unwrap_or_default()
    };
    let malformed = |error: csv::Error| match error.kind() {
        csv::ErrorKind::UnequalLengths {
            pos,
            expected_len,
            len,
        } => {
            let line = pos.as_ref().map_or(1, csv::Position::line);
            let text = line_text(line);
            let (column, what) = if len > expected_len {
                let first = column(text, usize::try_from(*expected_len).unwrap_or(0));
                (first, "leave out what has no name")
            } else {
                (text.len() + 1, "give each name a value")
            };
            let why = format!("{len} values under {expected_len} names; {what}");
            Wrong { line, column, why }
        }
        _ => Wrong {
            line: error.position().map_or(1, csv::Position::line),
            column: 1,
            why: "not text of comma-separated values; save the file as UTF-8 CSV".to_owned(),
        },
    };
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let names: Vec<String> = reader
        .headers()
        .map_err(malformed)?
        .iter()
        .map(str::to_owned)
        .collect();
    let known: Vec<&str> = space.parameters().iter().map(|p| p.name.as_str()).collect();
    if names.iter().all(String::is_empty) {
        return Err(Wrong {
            line: 1,
            column: 1,
            why: format!(
                "the file is empty; its first line names parameters, each other line gives their \
                 values: {}",
                known.join(",")
            ),
        });
    }
    if let Some(index) = names
        .iter()
        .position(|name| !known.contains(&name.as_str()))
    {
        let near = near_text(&suggest(&names[index], known.iter().copied()));
        return Err(Wrong {
            line: 1,
            column: column(line_text(1), index),
            why: format!(
                "`{}` is no parameter of `{}`{near}; the first line names parameters: {}",
                names[index],
                space.name(),
                known.join(",")
            ),
        });
    }
    let mut configs = Vec::new();
    for record in reader.records() {
        let record = record.map_err(malformed)?;
        let line = record.position().map_or(0, csv::Position::line);
        let wrong = |field: usize, why: String| Wrong {
            line,
            column: column(line_text(line), field),
            why,
        };
        for (index, (name, value)) in names.iter().zip(&record).enumerate() {
            check_value(space, name, value).map_err(|why| wrong(index, why))?;
        }
        let pairs: Vec<String> = names
            .iter()
            .zip(&record)
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let config = parse_config(space, &pairs.join(",")).map_err(|error| {
            let text = error.to_string();
            wrong(0, text.trim_start_matches("error: --config: ").to_owned())
        })?;
        if let Some(why) = space.reject_reason(&config) {
            return Err(wrong(0, format!("not in the space: {why}")));
        }
        configs.push(config);
    }
    Ok(configs)
}

/// Whether a parameter has a value that prints like the text.
fn check_value(space: &Space, name: &str, text: &str) -> Result<(), String> {
    let parameter = space.parameters().iter().find(|p| p.name == name);
    let values: Vec<String> = parameter
        .map(|p| p.values.iter().map(ToString::to_string).collect())
        .unwrap_or_default();
    if values.iter().any(|value| value == text) {
        return Ok(());
    }
    Err(format!(
        "`{name}` cannot be `{text}`; it is one of {}",
        values.join(", ")
    ))
}

/// Columns after the parameters.
const HEADINGS: [&str; 22] = [
    "verdict",
    "time_us",
    "low_us",
    "high_us",
    "reliability",
    "bound",
    "occupancy",
    "waves",
    "registers",
    "spill_bytes",
    "shared_bytes",
    "warp_instructions",
    "global_load_bytes",
    "global_store_bytes",
    "global_load_sectors",
    "global_store_sectors",
    "shared_wavefronts",
    "bank_conflicts",
    "local_bytes",
    "fp32_flops",
    "tensor_flops",
    "detail",
];

fn format_rows(format: Format, space: &Space, rows: &[Row]) -> Result<String, serde_json::Error> {
    if format == Format::Json {
        return serde_json::to_string_pretty(rows);
    }
    let mut headings: Vec<&str> = space.parameters().iter().map(|p| p.name.as_str()).collect();
    headings.extend(HEADINGS);
    let mut cells: Vec<Vec<String>> = rows.iter().map(|row| cells(format, row)).collect();
    // The model's counters are for machines to read: too many for a table.
    let metrics = metric_names(rows);
    if format == Format::Csv {
        headings.extend(metrics.iter().map(String::as_str));
        for (cells, row) in cells.iter_mut().zip(rows) {
            let value = |name| row.explanation.as_ref()?.metrics.get(name);
            cells.extend(
                metrics.iter().map(|name| {
                    value(name).map_or_else(String::new, |value| format!("{value:.6}"))
                }),
            );
        }
    }
    Ok(output::rows(format, &headings, &cells))
}

/// Counters of the model that any row has, in order.
fn metric_names(rows: &[Row]) -> Vec<String> {
    let all = rows.iter().filter_map(|row| row.explanation.as_ref());
    let names: BTreeSet<&String> = all.flat_map(|e| e.metrics.keys()).collect();
    names.into_iter().cloned().collect()
}

fn cells(format: Format, row: &Row) -> Vec<String> {
    let optional = |value: Option<String>| value.unwrap_or_default();
    let count = |pick: fn(&Explanation) -> f64| {
        optional(row.explanation.as_ref().map(|e| format!("{:.0}", pick(e))))
    };
    let ratio = |pick: fn(&Explanation) -> f64| {
        optional(row.explanation.as_ref().map(|e| format!("{:.3}", pick(e))))
    };
    let detail = match format {
        Format::Csv | Format::Json => row.detail.clone(),
        Format::Table | Format::Md => row.detail.lines().next().unwrap_or_default().to_owned(),
    };
    let mut cells: Vec<String> = row
        .config
        .iter()
        .map(|(_, value)| value.to_string())
        .collect();
    cells.extend([
        row.verdict.to_string(),
        optional(row.time_us.map(|time| format!("{time:.3}"))),
        optional(
            row.explanation
                .as_ref()
                .map(|e| format!("{:.3}", e.interval_us[0])),
        ),
        optional(
            row.explanation
                .as_ref()
                .map(|e| format!("{:.3}", e.interval_us[1])),
        ),
        row.reliability.clone(),
        optional(row.explanation.as_ref().map(|e| e.bound.clone())),
        ratio(|e| e.occupancy),
        ratio(|e| e.waves),
        optional(row.registers.map(|value| value.to_string())),
        optional(row.spill_bytes.map(|value| value.to_string())),
        optional(row.shared_bytes.map(|value| value.to_string())),
        count(|e| e.warp_instructions),
        count(|e| e.global_load_bytes),
        count(|e| e.global_store_bytes),
        count(|e| e.global_load_sectors),
        count(|e| e.global_store_sectors),
        count(|e| e.shared_wavefronts),
        count(|e| e.bank_conflicts),
        count(|e| e.local_bytes),
        count(|e| e.fp32_flops),
        count(|e| e.tensor_flops),
        detail,
    ]);
    cells
}
