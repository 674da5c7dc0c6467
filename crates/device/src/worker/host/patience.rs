//! Deadline extensions for workers on a busy machine.

use std::time::Duration;

/// Maximum number of extensions of a step's deadline for a worker that is short of processor time.
const EXTENSIONS: u32 = 9;
/// Share of a step's time on a processor above which a worker counts as busy throughout.
const BUSY_SHARE: f64 = 0.8;
/// Share below which a worker counts as idle.
const IDLE_SHARE: f64 = 0.01;

/// Deadline of a step, counted in processor time, so that a busy machine does not turn a slow step
/// into a hang.
pub(super) struct Patience {
    /// Processor time at the beginning of the step, and at the last check.
    begun: Option<Duration>,
    seen: Option<Duration>,
    extensions: u32,
}

impl Patience {
    pub(super) fn new(begun: Option<Duration>) -> Self {
        Self {
            begun,
            seen: begun,
            extensions: 0,
        }
    }

    /// Reports whether to extend the deadline of a late worker with this processor time: it is working, but
    /// had less processor time than the step's limit.
    pub(super) fn grants_extension(&mut self, now: Option<Duration>, within: Duration) -> bool {
        let since = |then: Option<Duration>| Some(now?.saturating_sub(then?));
        let (used, lately) = (since(self.begun), since(self.seen));
        self.seen = now;
        self.extensions += 1;
        // Without processor times, the deadline is not extended.
        let busy = used.is_none_or(|used| used >= within.mul_f64(BUSY_SHARE));
        let idle = lately.is_none_or(|lately| lately < within.mul_f64(IDLE_SHARE));
        !busy && !idle && self.extensions <= EXTENSIONS
    }
}

#[cfg(test)]
mod tests;
