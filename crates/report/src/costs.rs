//! Cost of the tuning: GPU time, and its price.

use super::document::{Block, code, plain};
use super::model::Input;
use std::collections::BTreeMap;
use tuner_core::record::TimingKind;
use tuner_store::RunFacts;

struct Cost<'a> {
    run: &'a RunFacts,
    device: &'a str,
    timing: TimingKind,
    candidates: usize,
    /// Charged device time, µs.
    charged_us: u64,
}

/// Builds a table of runs with the total.
pub(super) fn blocks(input: &Input) -> Vec<Block> {
    let mut costs: BTreeMap<&str, Cost<'_>> = BTreeMap::new();
    for subject in &input.subjects {
        for line in &subject.runs {
            // A run over several problems occurs in several subjects, but costs once.
            let cost = costs.entry(&line.run.name).or_insert(Cost {
                run: &line.run,
                device: &subject.board.key.device,
                timing: subject.board.timing,
                candidates: 0,
                charged_us: 0,
            });
            cost.candidates += line.steps.len();
            cost.charged_us += line.steps.iter().map(|step| step.charged_us).sum::<u64>();
        }
    }
    let mut total = 0.0;
    let rows = costs
        .values()
        .map(|cost| {
            let (hours, basis) = gpu_hours(cost);
            total += hours;
            let price = input
                .gpu_price
                .map_or("-".to_owned(), |price| format!("{:.2}", price * hours));
            vec![
                code(&cost.run.name),
                plain(cost.device),
                plain(&format!("{}, seed {}", cost.run.strategy, cost.run.seed)),
                plain(&cost.run.state),
                cost.candidates.to_string(),
                format!("{hours:.4}"),
                price,
                basis.to_owned(),
            ]
        })
        .collect();
    let head = [
        "run",
        "device",
        "search",
        "state",
        "candidates",
        "GPU hours",
        "price",
        "counted as",
    ];
    let sum = match input.gpu_price {
        Some(price) => format!(
            "Together {total:.4} GPU hours, {:.2} at {price} an hour.",
            total * price
        ),
        None => format!("Together {total:.4} GPU hours; `--gpu-price 0.75` adds their price."),
    };
    vec![
        Block::Heading(2, "GPU hours and their price".to_owned()),
        Block::table(&head, 4, rows),
        Block::text(sum),
    ]
}

/// Returns the GPU hours of a run and their source.
fn gpu_hours(cost: &Cost<'_>) -> (f64, &'static str) {
    const US_PER_HOUR: f64 = 3.6e9;
    match cost.timing {
        TimingKind::Predicted => (0.0, "no GPU was used"),
        TimingKind::Recorded => (
            cost.charged_us as f64 / US_PER_HOUR,
            "recorded compile and benchmark time",
        ),
        // A rented GPU also costs while it waits for the compiler.
        TimingKind::Measured => match wall_hours(cost.run) {
            Some(hours) => (hours, "time from the run's start to its end"),
            None => (cost.charged_us as f64 / US_PER_HOUR, "device time charged"),
        },
    }
}

fn wall_hours(run: &RunFacts) -> Option<f64> {
    let at = |text: &str| text.parse::<jiff::Timestamp>().ok();
    let (from, to) = (at(&run.started_at)?, at(run.ended_at.as_deref()?)?);
    let seconds = to.duration_since(from).as_secs_f64();
    // The host's clock may have been set back during the run.
    (seconds >= 0.0).then_some(seconds / 3600.0)
}
