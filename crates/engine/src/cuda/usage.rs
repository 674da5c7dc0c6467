//! GPU utilisation of a run, and its report.

use std::time::{Duration, Instant};
use tuner_device::gpu::meter::Spent;

/// Utilisation so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Usage {
    pub(super) spent: Spent,
    /// Time of the workers in deferred checks.
    pub(super) deferred: Duration,
    pub(super) candidates: u64,
    /// Start of the first candidate.
    pub(super) began: Option<Instant>,
    /// End of the last candidate.
    pub(super) ended: Option<Instant>,
}

impl Usage {
    /// Formats `GPU busy 91 % of 12.0 s (…); the rest: …; 33,100 candidates an hour`, `all` being the
    /// time of all GPUs.
    pub(super) fn line(&self, all: Duration) -> String {
        let spent = &self.spent;
        let seconds = all.as_secs_f64().max(1e-9);
        let share = |part: Duration| 100.0 * part.as_secs_f64() / seconds;
        let idle = all.saturating_sub(spent.total + self.deferred);
        format!(
            "GPU busy {:.0} % of {:.1} s (timing {:.0} %, gate {:.0} %, checks on other problems {:.0} %); \
             the rest: waiting for compiled candidates {:.0} %, comparing on the host {:.0} %, copies \
             {:.0} %, loading code {:.0} %; {:.0} candidates an hour",
            share(spent.busy() + self.deferred),
            seconds,
            share(spent.timing),
            share(spent.gate),
            share(self.deferred),
            share(idle),
            share(spent.host()),
            share(spent.copies),
            share(spent.load),
            self.candidates as f64 / seconds * 3600.0,
        )
    }
}

#[cfg(test)]
mod tests;
