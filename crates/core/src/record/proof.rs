//! Reliability of a row or a time.

use super::{LeaderboardRow, Measurement, TimingKind};

impl LeaderboardRow {
    /// Returns the interval of the median from its samples, µs; the median itself if there is none. A
    /// prediction's interval covers other kernels, so it does not separate two predictions.
    #[must_use]
    pub fn sampled_interval_us(&self) -> [f64; 2] {
        let interval = self
            .ci95_us
            .filter(|_| self.timing != TimingKind::Predicted);
        interval.unwrap_or([self.time_us_p50; 2])
    }

    /// Returns its fastest time of the search, µs, which makes all candidates comparable.
    #[must_use]
    pub fn search_time_us(&self) -> f64 {
        self.search_us.unwrap_or(self.time_us_p50)
    }

    /// Returns false after only the first gate level, on which nothing is published.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        self.gate.as_deref() != Some(FIRST_LEVEL)
    }
}

/// Name of the first gate level; `Level::First` of the gate.
const FIRST_LEVEL: &str = "first";

impl Measurement {
    /// Returns false after only the first gate level, on which nothing is published.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        let evidence = self.evidence.as_ref();
        evidence.and_then(|evidence| evidence.gate.as_deref()) != Some(FIRST_LEVEL)
    }
}
