//! Time accounting of a GPU's worker.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Time of a worker, by purpose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Device time for launches of the gate.
    pub gate: Duration,
    /// Device time for timed samples and warm-up.
    pub timing: Duration,
    /// Copies between host and device.
    pub copies: Duration,
    /// Loading of code.
    pub load: Duration,
    /// Total, including the host's own work.
    pub total: Duration,
}

impl Spent {
    /// Returns the time during which the device had work.
    #[must_use]
    pub fn busy(&self) -> Duration {
        self.gate + self.timing
    }

    /// Returns the rest: inputs, expectations, comparisons.
    #[must_use]
    pub fn host(&self) -> Duration {
        let known = self.busy() + self.copies + self.load;
        self.total.saturating_sub(known)
    }

    /// Adds another measurement.
    pub fn add(&mut self, more: &Self) {
        self.gate += more.gate;
        self.timing += more.timing;
        self.copies += more.copies;
        self.load += more.load;
        self.total += more.total;
    }
}

#[cfg(test)]
mod tests;
