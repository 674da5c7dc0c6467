//! How far a row or a time may be relied on.

use super::{LeaderboardRow, Measurement, TimingKind};

impl LeaderboardRow {
    /// The interval of the median by its samples, µs; the median itself where there is none. A
    /// prediction's interval is about other kernels: between two predictions it says nothing.
    #[must_use]
    pub fn sampled_interval_us(&self) -> [f64; 2] {
        let interval = self
            .ci95_us
            .filter(|_| self.timing != TimingKind::Predicted);
        interval.unwrap_or([self.time_us_p50; 2])
    }

    /// Returns false where the gate had only a first look, on which nothing is published.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        self.gate.as_deref() != Some(FIRST_LEVEL)
    }
}

/// The gate's level of a candidate that was judged only briefly; `Level::First` of the gate.
const FIRST_LEVEL: &str = "first";

impl Measurement {
    /// Returns false where the gate had only a first look, on which nothing is published.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        let evidence = self.evidence.as_ref();
        evidence.and_then(|evidence| evidence.gate.as_deref()) != Some(FIRST_LEVEL)
    }
}
