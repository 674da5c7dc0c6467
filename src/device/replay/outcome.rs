//! What a recorded file says of one configuration.

use crate::record::Verdict;
use crate::units::Micros;
use std::sync::Arc;

/// What became of a configuration when it was recorded.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It ran, and its result was accepted by whoever recorded it.
    Timed {
        /// The file's one figure for it: Kernel Tuner's `time`, the mean over launches.
        time: Micros,
        /// The single launches, where the file lists them.
        samples: Arc<[Micros]>,
    },
    /// It failed.
    Failed {
        /// What the failure amounts to here.
        verdict: Verdict,
        /// What the file says.
        detail: Arc<str>,
    },
}

/// One recorded configuration with what it had cost to find out.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// What became of it.
    pub outcome: Outcome,
    /// Recorded compile time, microseconds.
    pub compile_us: u64,
    /// Recorded benchmark time, microseconds.
    pub benchmark_us: u64,
}

impl Recorded {
    /// The recorded time, if it has one.
    #[must_use]
    pub fn time(&self) -> Option<Micros> {
        match self.outcome {
            Outcome::Timed { time, .. } => Some(time),
            Outcome::Failed { .. } => None,
        }
    }

    /// What one evaluation is charged on the virtual clock, microseconds.
    #[must_use]
    pub fn charged_us(&self) -> u64 {
        self.compile_us.saturating_add(self.benchmark_us)
    }
}

/// Files before 2015 or so mark a failure by this time in milliseconds.
const FAILED_MS: f64 = 1e20;

/// The outcome of a row that has a figure, in milliseconds, and perhaps single launches.
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

/// The outcome of a Kernel Tuner row that names an error.
pub(super) fn kernel_tuner_error(error: &str) -> Outcome {
    let verdict = match error {
        "CompilationFailedConfig" => Verdict::CompileFailed,
        "InvalidConfig" => Verdict::LaunchFailed,
        _ => Verdict::Crashed,
    };
    failed(verdict, &format!("recorded as {error}"))
}

pub(super) fn failed(verdict: Verdict, detail: &str) -> Outcome {
    Outcome::Failed {
        verdict,
        detail: detail.into(),
    }
}

/// A recorded duration in microseconds; absent, negative and non-finite ones are 0.
pub(super) fn micros(value: Option<f64>, us_per_unit: f64) -> u64 {
    value.map_or(0, |value| (value * us_per_unit).max(0.0).round() as u64)
}
