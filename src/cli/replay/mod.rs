//! `tuner replay`: search quality on recorded spaces.
#![expect(
    clippy::indexing_slicing,
    reason = "files, series and points are numbered by the comparison itself"
)]

mod converged;
mod fleet;
mod known;
mod plot;

use super::output::{self, Format};
use super::terminal;
use super::wanted::strategy_names;
use super::{CliError, CommandResult, usage};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tuner_device::replay::Recording;
use tuner_engine::quality::{Scores, Series, Study, measure};
use tuner_engine::{format_duration, parse_budget, parse_share};
use tuner_search::{self as search, Knowledge};

/// Compare search strategies on recorded spaces
///
/// A run's score is the recorded optimum's time divided by the best found time after N unique
/// evaluations: 1 is perfect, 0 means that nothing was found. Proposals that violate a constraint
/// are free, recorded failures count.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tuner replay recorded/*.json.gz --strategy evolve,random --evals 25,50,100 --seeds 30
  tuner replay recorded/conv2d_*.json.gz --strategy evolve --leave-one-out --evals 10,25,50
  tuner replay recorded/*.json.gz --strategy evolve,genetic --time 10m,1h --plot curves.html")]
pub(crate) struct Args {
    /// Kernel Tuner cache files or T4 results
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Strategies, separated by commas
    #[arg(
        long,
        value_name = "NAMES",
        value_parser = strategy_names(),
        value_delimiter = ',',
        default_value = "evolve,random"
    )]
    strategy: Vec<String>,

    /// Score after these numbers of unique evaluations, separated by commas
    #[arg(
        long,
        value_name = "NUMBERS",
        value_delimiter = ',',
        default_value = "25,50,100,200,400",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    evals: Vec<u32>,

    /// Recorded times to score at too, such as 10m,1h: compiling and benchmarking as the file has
    /// them, one candidate after the other
    #[arg(long, value_name = "TIMES", value_delimiter = ',', value_parser = parse_budget)]
    time: Vec<Duration>,

    /// Number of runs of each strategy, with seeds 1 to N
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seeds: u64,

    /// Candidates in flight: a result is reported after this many further requests
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    in_flight: u16,

    /// Simulate fleets with these GPU counts instead, such as 1,4,16,64: recorded compile and run times on a
    /// virtual clock, and how long each takes to find 95 % of the optimum
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=1024))]
    gpus: Vec<u16>,

    /// Prior knowledge of the search: recorded files, databases of results, CSV of configurations
    /// and times; may be repeated. A file is never its own knowledge
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "gpus")]
    knowledge: Vec<PathBuf>,

    /// Use all other files of a file's kernel as its knowledge
    #[arg(long, conflicts_with_all = ["knowledge", "gpus"])]
    leave_one_out: bool,

    /// Noise on the recorded times (standard deviation), such as 2%; scores use the recorded time of
    /// the apparent best
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = parse_share)]
    noise: f64,

    /// Print when runs would stop with `tuner run --until-converged` instead, and how many of these
    /// are within this share of the optimum [default share: 1%]; the largest of --evals is the limit
    #[arg(long, value_name = "SHARE", num_args = 0..=1, require_equals = true, default_missing_value = "1%", value_parser = parse_share, conflicts_with_all = ["gpus", "plot", "time"])]
    until_converged: Option<f64>,

    /// Draw score against evaluations, and against recorded time, with bands
    #[arg(long, value_name = "FILE.svg|FILE.html")]
    plot: Option<PathBuf>,

    /// Output format [default: table]
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// A row of the JSON, in the documented form; rows scored by recorded time have one more key.
#[derive(Serialize)]
struct Row<'a> {
    file: &'a str,
    strategy: &'a str,
    evals: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recorded_s: Option<f64>,
    seeds: u64,
    mean: f64,
    median: f64,
    min: f64,
    hit95: f64,
    overhead_us_per_eval: f64,
}

const HEADINGS: [&str; 9] = [
    "file",
    "strategy",
    "evals",
    "seeds",
    "mean",
    "median",
    "min",
    "hit95",
    "overhead_us_per_eval",
];

/// Runs the command.
pub(crate) fn run(args: &Args) -> CommandResult {
    // A plot of an unknown kind is rejected before the runs, which may be long.
    let draw = args
        .plot
        .as_deref()
        .map(plot::Kind::from_path)
        .transpose()?;
    let recordings = args
        .files
        .iter()
        .map(|path| Recording::load(path))
        .collect::<Result<Vec<_>, _>>()?;
    if !args.time.is_empty()
        && let Some(bare) = recordings.iter().find(|file| !file.has_costs())
    {
        refuse!(
            "{} does not record what compiling and benchmarking cost: leave out --time",
            bare.path.display()
        );
    }
    if !args.gpus.is_empty() {
        let text = fleet::simulated(args, &recordings)?;
        return output::result(&text);
    }
    let known = known::by_file(&args.knowledge, args.leave_one_out, &recordings)?;
    let strategies = match args.until_converged {
        Some(_) => converged::strategies(&args.strategy)?,
        None => args.strategy.clone(),
    };
    let series = study(args, strategies, &recordings, &known)?;
    let names: Vec<String> = args
        .files
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    if let (Some(kind), Some(path)) = (draw, &args.plot) {
        draw_to(path, kind, args, &series, &recordings)?;
    }
    let text = match args.until_converged {
        Some(share) => converged::text(args, share, &series, &names)?,
        None => text(args, &series, &names)?,
    };
    output::result(&text)
}

fn study(
    args: &Args,
    strategies: Vec<String>,
    recordings: &[Recording],
    known: &[Knowledge],
) -> Result<Vec<Series>, CliError> {
    let study = Study {
        strategies,
        evals: args.evals.iter().copied().max().unwrap_or(0) as usize,
        recorded_us: args.time.iter().copied().map(micros).max().unwrap_or(0),
        seeds: args.seeds,
        in_flight: usize::from(args.in_flight),
        noise: args.noise,
        converged: args.until_converged,
    };
    let runs = recordings.len() * study.strategies.len() * study.seeds as usize;
    let bar = terminal::bar(runs, "runs");
    let make = |name: &str, file: usize, seed| {
        search::with_knowledge(name, &recordings[file].space, seed, &[], &known[file])
    };
    let series = measure(recordings, &study, make, |done| {
        bar.set_position(done as u64);
    });
    bar.finish_and_clear();
    series.map_err(usage)
}

fn draw_to(
    path: &Path,
    kind: plot::Kind,
    args: &Args,
    series: &[Series],
    recordings: &[Recording],
) -> Result<(), CliError> {
    let evals = args.evals.iter().copied().max().unwrap_or(1) as usize;
    let picture = plot::draw(kind, series, recordings, &args.strategy, evals);
    crate::atomic::write(path, picture.as_bytes()).map_err(|error| {
        usage(format!(
            "cannot write the plot to {}: {error}",
            path.display()
        ))
    })
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn text(args: &Args, series: &[Series], names: &[String]) -> Result<String, CliError> {
    let rows: Vec<Row<'_>> = series
        .iter()
        .flat_map(|series| rows_of(args, series, &names[series.file]))
        .collect();
    if args.format == Format::Json {
        let json = output::json(&rows)?;
        return Ok(json);
    }
    let mut cells: Vec<Vec<String>> = rows.iter().map(cells).collect();
    if args.format != Format::Csv && names.len() > 1 {
        cells.extend(together(args, series));
    }
    Ok(output::rows(args.format, &HEADINGS, &cells))
}

fn rows_of<'a>(args: &Args, series: &'a Series, file: &'a str) -> Vec<Row<'a>> {
    let row = |evals, recorded_s, scores: &Scores| Row {
        file,
        strategy: &series.strategy,
        evals,
        recorded_s,
        seeds: args.seeds,
        mean: scores.mean(),
        median: scores.median(),
        min: scores.min(),
        hit95: scores.hit95(),
        overhead_us_per_eval: series.overhead_us_per_eval(),
    };
    let counted = args.evals.iter().map(|&evals| evals as usize);
    let timed = args.time.iter().copied();
    counted
        .map(|evals| row(Some(evals), None, &series.after(evals)))
        .chain(timed.map(|time| {
            let scores = series.within(micros(time));
            row(None, Some(time.as_secs_f64()), &scores)
        }))
        .collect()
}

fn cells(row: &Row<'_>) -> Vec<String> {
    let recorded = row
        .recorded_s
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let budget = match (row.evals, recorded) {
        (Some(evals), _) => evals.to_string(),
        (None, recorded) => format_duration(recorded.unwrap_or_default()),
    };
    vec![
        row.file.to_owned(),
        row.strategy.to_owned(),
        budget,
        row.seeds.to_string(),
        format!("{:.3}", row.mean),
        format!("{:.3}", row.median),
        format!("{:.3}", row.min),
        format!("{:.2}", row.hit95),
        format!("{:.1}", row.overhead_us_per_eval),
    ]
}

/// Computes the mean over all files with its 95 % interval over the seeds, by strategy and budget: shown in
/// tables, not in the JSON.
fn together(args: &Args, series: &[Series]) -> Vec<Vec<String>> {
    let line = |strategy: &str, budget: String, scores: &dyn Fn(&Series) -> Scores| {
        let of: Vec<&Series> = series
            .iter()
            .filter(|series| series.strategy == strategy)
            .collect();
        let files = of.len().max(1) as f64;
        let all: Vec<Scores> = of.iter().map(|series| scores(series)).collect();
        let mean = all.iter().map(Scores::mean).sum::<f64>() / files;
        let errors = all.iter().map(|scores| scores.standard_error().powi(2));
        let half = 1.96 * errors.sum::<f64>().sqrt() / files;
        let hits = all.iter().map(Scores::hit95).sum::<f64>() / files;
        let costs = of.iter().map(|series| series.overhead_us_per_eval());
        vec![
            "all files".to_owned(),
            strategy.to_owned(),
            budget,
            args.seeds.to_string(),
            format!("{mean:.3} ± {half:.3}"),
            String::new(),
            String::new(),
            format!("{hits:.2}"),
            format!("{:.1}", costs.sum::<f64>() / files),
        ]
    };
    let mut lines = Vec::new();
    for strategy in &args.strategy {
        for &evals in &args.evals {
            let scores = |series: &Series| series.after(evals as usize);
            lines.push(line(strategy, evals.to_string(), &scores));
        }
        for &time in &args.time {
            let scores = |series: &Series| series.within(micros(time));
            lines.push(line(strategy, format_duration(time), &scores));
        }
    }
    lines
}
