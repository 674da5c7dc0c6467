//! `tuner replay --until-converged`: when runs would have ended, and whether they were right to.

use super::{Args, Format, output};
use crate::cli::{CliError, usage};
use serde::Serialize;
use tuner_engine::quality::Series;
use tuner_search as evolve;

/// Keys of the JSON, and headings of the table.
const HEADINGS: [&str; 8] = [
    "file",
    "strategy",
    "left",
    "seeds",
    "ended",
    "right",
    "mean_evals",
    "mean",
];

/// The strategies asked for that can tell when they are done.
pub(super) fn strategies(asked: &[String]) -> Result<Vec<String>, CliError> {
    let able = evolve::STRATEGIES[0];
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
struct Row<'a> {
    file: &'a str,
    strategy: &'a str,
    /// The share of the best time that may be left.
    left: f64,
    seeds: u64,
    /// Share of runs that ended within the evaluations.
    ended: f64,
    /// Share of these that were within that share of the optimum; null where none ended.
    right: Option<f64>,
    /// Mean number of evaluations; those of the limit for runs that did not end.
    mean_evals: f64,
    /// Mean score at the end.
    mean: f64,
}

/// Runs that ended, runs that were right to, and sums over all.
#[derive(Default)]
struct Sums {
    runs: f64,
    ended: f64,
    right: f64,
    evals: f64,
    score: f64,
}

impl Sums {
    fn of(series: &Series, share: f64) -> Self {
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

    fn row<'a>(&self, file: &'a str, strategy: &'a str, share: f64, seeds: u64) -> Row<'a> {
        let runs = self.runs.max(1.0);
        Row {
            file,
            strategy,
            left: share,
            seeds,
            ended: self.ended / runs,
            right: (self.ended > 0.0).then(|| self.right / self.ended),
            mean_evals: self.evals / runs,
            mean: self.score / runs,
        }
    }
}

/// A line a file, and one of all for people.
pub(super) fn text(
    args: &Args,
    share: f64,
    series: &[Series],
    names: &[String],
) -> Result<String, CliError> {
    let mut all = Sums::default();
    let mut rows = Vec::new();
    for (series, name) in series.iter().zip(names) {
        let sums = Sums::of(series, share);
        rows.push(sums.row(name, &series.strategy, share, args.seeds));
        all.add(&sums);
    }
    if args.format == Format::Json {
        let json = serde_json::to_string_pretty(&rows)?;
        return Ok(json);
    }
    if args.format != Format::Csv && names.len() > 1 {
        rows.push(all.row("all files", evolve::STRATEGIES[0], share, args.seeds));
    }
    let cells = rows.iter().map(|row| {
        vec![
            row.file.to_owned(),
            row.strategy.to_owned(),
            format!("{:.3}", row.left),
            row.seeds.to_string(),
            format!("{:.2}", row.ended),
            row.right
                .map_or("-".to_owned(), |right| format!("{right:.3}")),
            format!("{:.0}", row.mean_evals),
            format!("{:.3}", row.mean),
        ]
    });
    let cells: Vec<Vec<String>> = cells.collect();
    Ok(output::rows(args.format, &HEADINGS, &cells))
}
