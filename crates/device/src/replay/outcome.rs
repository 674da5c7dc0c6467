//! Outcomes from the figures and errors in recorded files.

use std::sync::Arc;
use tuner_core::record::Verdict;
use tuner_core::recorded::Outcome;
use tuner_core::units::Micros;

/// Time in milliseconds that marks a failure in files before about 2015.
const FAILED_MS: f64 = 1e20;

/// Returns the outcome of a row with a mean, in milliseconds, and optional single launches.
pub(super) fn timed(mean_ms: Option<f64>, samples_ms: &[f64]) -> Outcome {
    let samples: Arc<[Micros]> = samples_ms
        .iter()
        .filter_map(|&ms| Micros::from_millis(ms))
        .collect();
    let mean_ms = mean_ms.or_else(|| {
        (!samples_ms.is_empty()).then(|| samples_ms.iter().sum::<f64>() / samples_ms.len() as f64)
    });
    match mean_ms
        .filter(|&ms| ms < FAILED_MS)
        .and_then(Micros::from_millis)
    {
        Some(time) => Outcome::Timed { time, samples },
        None => failed(
            Verdict::Crashed,
            &match mean_ms {
                Some(ms) => format!("the recorded time, {ms} ms, marks a failure"),
                None => "the file has neither a time nor an error for this configuration".into(),
            },
        ),
    }
}

/// Returns the outcome of a Kernel Tuner row that names an error.
pub(super) fn kernel_tuner_error(error: &str) -> Outcome {
    let verdict = Verdict::from_kernel_tuner(error);
    failed(verdict, &format!("recorded as {error}"))
}

pub(super) fn failed(verdict: Verdict, detail: &str) -> Outcome {
    Outcome::Failed {
        verdict,
        detail: detail.into(),
    }
}

/// Converts a recorded duration to microseconds; absent, negative and non-finite ones are 0.
pub(super) fn micros(value: Option<f64>, us_per_unit: f64) -> u64 {
    value.map_or(0, |value| (value * us_per_unit).max(0.0).round() as u64)
}
