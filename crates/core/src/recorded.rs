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
