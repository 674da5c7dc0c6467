//! Simulated fleets: speed-up by the number of GPUs.

use super::Args;
use crate::cli::output::{self, Column, number, or};
use crate::cli::{CliError, usage};
use serde::Serialize;
use std::time::Duration;
use tuner_device::replay::Recording;
use tuner_engine::fleet::simulate::{Search, simulate};
use tuner_engine::format_duration;

/// Result of a strategy on a file with a fleet size.
#[derive(Serialize)]
struct Row {
    file: String,
    strategy: String,
    gpus: u16,
    seeds: u64,
    /// Share of the seeds that reached the target.
    found: f64,
    /// Median time on the virtual clock, seconds, of the seeds that reached it.
    median_s: Option<f64>,
    mean_s: Option<f64>,
    /// Mean number of candidates judged until then.
    evals: f64,
    /// Ratio of the smallest fleet's mean time to this fleet's.
    speed_up: Option<f64>,
    /// Speed-up for each GPU.
    efficiency: Option<f64>,
    /// Share of the GPUs' time spent working.
    utilisation: f64,
}

const COLUMNS: [Column<Row>; 10] = [
    ("file", |row| row.file.clone()),
    ("strategy", |row| row.strategy.clone()),
    ("gpus", |row| row.gpus.to_string()),
    ("found", |row| format!("{:.2}", row.found)),
    ("median", |row| time(row.median_s)),
    ("mean", |row| time(row.mean_s)),
    ("evals", |row| format!("{:.0}", row.evals)),
    ("speed-up", |row| number("–", row.speed_up, 2)),
    ("efficiency", |row| number("–", row.efficiency, 2)),
    ("busy", |row| format!("{:.0} %", 100.0 * row.utilisation)),
];

fn time(seconds: Option<f64>) -> String {
    let duration = seconds.and_then(|s| Duration::try_from_secs_f64(s).ok());
    or("–", duration.map(format_duration))
}

/// Runs the requested simulation and formats it.
pub(super) fn simulated(args: &Args, recordings: &[Recording]) -> Result<String, CliError> {
    if let Some(bare) = recordings.iter().find(|file| !file.has_costs()) {
        refuse!(
            "{} does not record what compiling and benchmarking cost: a fleet on a virtual \
             clock needs that; leave out --gpus",
            bare.path.display()
        );
    }
    let mut rows = Vec::new();
    for recording in recordings {
        for strategy in &args.strategy {
            let first = rows.len();
            for &gpus in &args.gpus {
                let row = row(args, recording, strategy, gpus)?;
                rows.push(row);
            }
            compare(&mut rows[first..]);
        }
    }
    Ok(output::values(args.format, &COLUMNS, &rows)?)
}

fn row(args: &Args, recording: &Recording, strategy: &str, gpus: u16) -> Result<Row, CliError> {
    let searches: Result<Vec<Search>, _> = (1..=args.seeds)
        .map(|seed| simulate(recording, strategy, seed, usize::from(gpus)))
        .collect();
    let searches = searches.map_err(usage)?;
    let mean = |value: &dyn Fn(&Search) -> f64| {
        searches.iter().map(value).sum::<f64>() / searches.len().max(1) as f64
    };
    let mut times: Vec<f64> = searches
        .iter()
        .filter_map(|search| search.found_us)
        .map(|us| us as f64 / 1e6)
        .collect();
    times.sort_by(f64::total_cmp);
    let mean_s = times.iter().sum::<f64>() / times.len().max(1) as f64;
    Ok(Row {
        file: recording.path.display().to_string(),
        strategy: strategy.to_owned(),
        gpus,
        seeds: args.seeds,
        found: times.len() as f64 / searches.len().max(1) as f64,
        median_s: times.get(times.len() / 2).copied(),
        mean_s: (!times.is_empty()).then_some(mean_s),
        evals: mean(&|search| search.evals as f64),
        speed_up: None,
        efficiency: None,
        utilisation: mean(&|search| search.utilisation),
    })
}

/// Adds the speed-up over the row of the smallest fleet.
fn compare(rows: &mut [Row]) {
    let smallest = rows.iter().min_by_key(|row| row.gpus);
    let Some((base_gpus, Some(base))) = smallest.map(|row| (row.gpus, row.mean_s)) else {
        return;
    };
    for row in rows {
        let speed_up = row.mean_s.map(|time| base / time);
        row.speed_up = speed_up;
        let more = f64::from(row.gpus) / f64::from(base_gpus);
        row.efficiency = speed_up.map(|speed_up| speed_up / more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(gpus: u16, mean_s: f64) -> Row {
        Row {
            file: "recorded.json".to_owned(),
            strategy: "evolve".to_owned(),
            gpus,
            seeds: 1,
            found: 1.0,
            median_s: Some(mean_s),
            mean_s: Some(mean_s),
            evals: 1.0,
            speed_up: None,
            efficiency: None,
            utilisation: 1.0,
        }
    }

    #[test]
    fn speed_ups_are_over_the_smallest_fleet_in_any_order() {
        let mut rows = [row(8, 2.0), row(2, 6.0), row(4, 4.0)];
        compare(&mut rows);
        let speed_ups = rows.each_ref().map(|row| row.speed_up.unwrap());
        assert_eq!(speed_ups, [3.0, 1.0, 1.5]);
        let efficiencies = rows.each_ref().map(|row| row.efficiency.unwrap());
        assert_eq!(efficiencies, [0.75, 1.0, 0.75]);
    }
}
