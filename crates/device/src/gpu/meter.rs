//! Where the time of a GPU's worker goes.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Time of a worker, by what it was spent on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// The device worked on launches of the gate.
    pub gate: Duration,
    /// The device worked on samples that are timed, and on what warms it up.
    pub timing: Duration,
    /// Copies between host and device.
    pub copies: Duration,
    /// Code was loaded.
    pub load: Duration,
    /// All of it, the host's own work included.
    pub total: Duration,
}

impl Spent {
    /// The device had work.
    #[must_use]
    pub fn busy(&self) -> Duration {
        self.gate + self.timing
    }

    /// What is neither the device's work nor copies nor loading: inputs, expectations, comparisons.
    #[must_use]
    pub fn host(&self) -> Duration {
        let known = self.busy() + self.copies + self.load;
        self.total.saturating_sub(known)
    }

    /// Adds another stretch of time.
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
