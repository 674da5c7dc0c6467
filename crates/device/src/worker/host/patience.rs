//! How long a step of a worker may take on a busy machine.

use std::time::Duration;

/// How often a step's time is granted anew to a worker that a busy machine keeps from working.
const EXTENSIONS: u32 = 9;
/// A worker that had at least this share of a step's time on a processor used it.
const BUSY_SHARE: f64 = 0.8;
/// One that had less than this share does nothing.
const IDLE_SHARE: f64 = 0.01;

/// Time that a step is granted: what it has of a processor counts, so that a busy machine makes no
/// hang of a slow step.
pub(super) struct Patience {
    /// Processor time at the step's beginning, and when it was looked at last.
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

    /// Whether a worker that is late and has had this processor time is waited for once more: it works,
    /// and had less than the step's time.
    pub(super) fn goes_on(&mut self, now: Option<Duration>, within: Duration) -> bool {
        let since = |then: Option<Duration>| Some(now?.saturating_sub(then?));
        let (used, lately) = (since(self.begun), since(self.seen));
        self.seen = now;
        self.extensions += 1;
        let busy = used.is_none_or(|used| used >= within.mul_f64(BUSY_SHARE));
        let idle = lately.is_none_or(|lately| lately < within.mul_f64(IDLE_SHARE));
        !busy && !idle && self.extensions <= EXTENSIONS
    }
}

#[cfg(test)]
mod tests;
