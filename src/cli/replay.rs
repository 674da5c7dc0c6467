//! `tuner replay`: search quality on recorded spaces.

use super::output::{self, Format};
use super::{CliError, CommandResult};
use crate::device::replay::Recording;
use crate::engine::quality::{Quality, Study, measure};
use crate::exit;
use serde::Serialize;
use std::path::PathBuf;

/// Measure search strategies on recorded spaces
///
/// A run's score is the recorded optimum's time divided by the best found time after N unique
/// evaluations: 1 is perfect, 0 means that nothing was found. Proposals that violate a constraint
/// are free, recorded failures count.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  tuner replay recorded/*.json.gz --strategy evolve,random --evals 25,50,100 --seeds 30")]
pub struct Args {
    /// Kernel Tuner cache files or T4 results
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Strategies, separated by commas
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "evolve,random"
    )]
    strategy: Vec<String>,

    /// Numbers of unique evaluations to score at, separated by commas
    #[arg(
        long,
        value_name = "NUMBERS",
        value_delimiter = ',',
        default_value = "25,50,100,200,400",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    evals: Vec<u32>,

    /// Runs of each: seeds 1 to N
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seeds: u64,

    /// Candidates in flight: a result is told after this many more were asked for
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    in_flight: u16,

    /// How to print [default: table]
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// One row of the JSON, as the contract has it.
#[derive(Serialize)]
struct Row<'a> {
    file: &'a str,
    strategy: &'a str,
    evals: usize,
    seeds: u64,
    mean: f64,
    median: f64,
    min: f64,
    hit95: f64,
    overhead_us_per_eval: f64,
}

/// Runs the command.
pub fn run(args: &Args) -> CommandResult {
    let recordings = args
        .files
        .iter()
        .map(|path| Recording::load(path).map_err(|error| CliError::Usage(error.to_string())))
        .collect::<Result<Vec<_>, _>>()?;
    let study = Study {
        strategies: args.strategy.clone(),
        evals: args.evals.iter().map(|&evals| evals as usize).collect(),
        seeds: args.seeds,
        in_flight: usize::from(args.in_flight),
    };
    let measured =
        measure(&recordings, &study).map_err(|error| CliError::Usage(format!("error: {error}")))?;
    let names: Vec<String> = args
        .files
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let rows: Vec<Row<'_>> = measured
        .iter()
        .map(|row| Row {
            file: &names[row.file],
            strategy: &row.strategy,
            evals: row.evals,
            seeds: args.seeds,
            mean: row.mean(),
            median: row.median(),
            min: row.min(),
            hit95: row.hit95(),
            overhead_us_per_eval: row.overhead_us_per_eval,
        })
        .collect();
    let text = match args.format {
        Format::Json => serde_json::to_string_pretty(&rows).map_err(anyhow::Error::from)?,
        format => {
            let mut cells: Vec<Vec<String>> = rows.iter().map(cells).collect();
            if format != Format::Csv && names.len() > 1 {
                cells.extend(together(&measured, &study));
            }
            let headings = [
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
            output::rows(format, &headings, &cells)
        }
    };
    output::print(&text).map_err(anyhow::Error::from)?;
    Ok(exit::DONE)
}

fn cells(row: &Row<'_>) -> Vec<String> {
    vec![
        row.file.to_owned(),
        row.strategy.to_owned(),
        row.evals.to_string(),
        row.seeds.to_string(),
        format!("{:.3}", row.mean),
        format!("{:.3}", row.median),
        format!("{:.3}", row.min),
        format!("{:.2}", row.hit95),
        format!("{:.1}", row.overhead_us_per_eval),
    ]
}

/// The mean over all files, by strategy and number of evaluations: for people, not in the JSON.
fn together(measured: &[Quality], study: &Study) -> Vec<Vec<String>> {
    let mut lines = Vec::new();
    for strategy in &study.strategies {
        for &evals in &study.evals {
            let scores: Vec<f64> = measured
                .iter()
                .filter(|row| row.strategy == *strategy && row.evals == evals)
                .map(Quality::mean)
                .collect();
            let mean = scores.iter().sum::<f64>() / scores.len().max(1) as f64;
            let mut line = vec![String::new(); 9];
            line[0] = "all files".to_owned();
            line[1].clone_from(strategy);
            line[2] = evals.to_string();
            line[3] = study.seeds.to_string();
            line[4] = format!("{mean:.3}");
            lines.push(line);
        }
    }
    lines
}
