//! Recorded result of one configuration.

use crate::record::Verdict;
use crate::units::Micros;
use std::sync::Arc;

/// Outcome of a configuration in a recording.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It ran, and the author of the recording accepted its result.
    Timed {
        /// The file's figure: Kernel Tuner's `time`, the mean over launches.
        time: Micros,
        /// The single launches, if the file lists them.
        samples: Arc<[Micros]>,
    },
    /// It failed.
    Failed {
        /// The corresponding verdict.
        verdict: Verdict,
        /// The file's text.
        detail: Arc<str>,
    },
}

/// One recorded configuration with the cost of its evaluation.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Outcome.
    pub outcome: Outcome,
    /// Recorded compile time, microseconds.
    pub compile_us: u64,
    /// Recorded benchmark time, microseconds.
    pub benchmark_us: u64,
}

impl Recorded {
    /// Returns the recorded time, if it has one.
    #[must_use]
    pub fn time(&self) -> Option<Micros> {
        match self.outcome {
            Outcome::Timed { time, .. } => Some(time),
            Outcome::Failed { .. } => None,
        }
    }

    /// Returns the charge of one evaluation on the virtual clock, microseconds.
    #[must_use]
    pub fn charged_us(&self) -> u64 {
        self.compile_us.saturating_add(self.benchmark_us)
    }
}
