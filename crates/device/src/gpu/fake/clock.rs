//! The synthetic time of the stand-in: a device clock that launches advance, with a little noise
//! that is the same in every process.

/// Clock of the multiprocessors, MHz.
pub(super) const MHZ: f64 = 1500.0;

/// A device's time.
#[derive(Debug, Clone)]
pub(super) struct Clock {
    /// Microseconds since the start.
    now: f64,
    state: u64,
}

impl Clock {
    pub(super) fn new() -> Self {
        Self {
            now: 1000.0,
            state: 0x9e37_79b9_7f4a_7c15,
        }
    }

    pub(super) fn micros(&self) -> f64 {
        self.now
    }

    pub(super) fn nanoseconds(&self) -> u64 {
        (self.now * 1e3) as u64
    }

    pub(super) fn cycles(&self) -> u64 {
        (self.now * MHZ) as u64
    }

    /// Something took that long, give or take half a per cent.
    pub(super) fn advance(&mut self, micros: f64) {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let unit = (self.state >> 11) as f64 / (1u64 << 53) as f64;
        self.now += micros * (1.0 + 0.01 * (unit - 0.5));
    }
}
