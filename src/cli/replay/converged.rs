//! `tuner replay --until-converged`: stopping times of runs, and their correctness.

use super::{Args, Format, output};
use crate::cli::output::{Column, number};
use crate::cli::{CliError, usage};
use serde::Serialize;
use tuner_engine::quality::Series;
use tuner_search::StrategyName;

const COLUMNS: [Column<Row>; 8] = [
    ("file", |row| row.file.clone()),
    ("strategy", |row| row.strategy.clone()),
    ("left", |row| format!("{:.3}", row.left)),
    ("seeds", |row| row.seeds.to_string()),
    ("ended", |row| format!("{:.2}", row.ended)),
    ("right", |row| number("-", row.right, 3)),
    ("mean_evals", |row| format!("{:.0}", row.mean_evals)),
    ("mean", |row| format!("{:.3}", row.mean)),
];

/// Returns the requested strategies with a convergence criterion.
pub(super) fn strategies(asked: &[String]) -> Result<Vec<String>, CliError> {
    let able = StrategyName::default().name();
    if asked.iter().any(|name| name == able) {
        Ok(vec![able.to_owned()])
    } else {
        Err(usage(format!(
            "--until-converged: only {able} has a model of what further trials may bring; add \
             it to --strategy"
        )))
    }
}

#[derive(Serialize)]
struct Row {
    file: String,
    strategy: String,
    /// Threshold: expected remaining gain as a share of the best time.
    left: f64,
    seeds: u64,
    /// Share of runs that ended within the evaluations.
    ended: f64,
    /// Share of the ended runs that were within the threshold of the optimum; null if none ended.
    right: Option<f64>,
    /// Mean number of evaluations; the limit counts for runs that did not end.
    mean_evals: f64,
    /// Mean score at the end.
    mean: f64,
}

/// Runs that ended, correct stops, and sums over all runs.
#[derive(Default)]
struct Sums {
    runs: f64,
    ended: f64,
    right: f64,
    evals: f64,
    score: f64,
}

impl Sums {
    fn from_series(series: &Series, share: f64) -> Self {
        let mut sums = Self::default();
        for run in &series.runs {
            let end = run.converged.unwrap_or(run.evals);
            let (score, ended) = (run.after(end), run.converged.is_some());
            sums.runs += 1.0;
            sums.ended += f64::from(u8::from(ended));
            sums.right += f64::from(u8::from(ended && score >= 1.0 - share));
            sums.evals += end as f64;
            sums.score += score;
        }
        sums
    }

    fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.ended += other.ended;
        self.right += other.right;
        self.evals += other.evals;
        self.score += other.score;
    }

    fn row(&self, file: &str, strategy: &str, share: f64, seeds: u64) -> Row {
        let runs = self.runs.max(1.0);
        Row {
            file: file.to_owned(),
            strategy: strategy.to_owned(),
            left: share,
            seeds,
            ended: self.ended / runs,
            right: (self.ended > 0.0).then(|| self.right / self.ended),
            mean_evals: self.evals / runs,
            mean: self.score / runs,
        }
    }
}

/// Formats a line for each file, and one over all files in a table.
pub(super) fn text(
    args: &Args,
    share: f64,
    series: &[Series],
    names: &[String],
) -> Result<String, CliError> {
    let mut all = Sums::default();
    let mut rows = Vec::new();
    for (series, name) in series.iter().zip(names) {
        let sums = Sums::from_series(series, share);
        rows.push(sums.row(name, &series.strategy, share, args.seeds));
        all.add(&sums);
    }
    let for_people = matches!(args.format, Format::Table | Format::Md);
    if for_people && names.len() > 1 {
        rows.push(all.row(
            "all files",
            StrategyName::default().name(),
            share,
            args.seeds,
        ));
    }
    Ok(output::values(args.format, &COLUMNS, &rows)?)
}
