//! Costs of the stand-in's calls, and its cache.

use super::cache::{Cache, Gauges};
use super::clock::Costs;
use super::execute::Queued;
use super::virtual_driver::VirtualDriver;

/// Memory bandwidth, bytes per microsecond.
const MEMORY_RATE: f64 = 2e6;

impl VirtualDriver {
    /// Adds costs for calls and copies. With `kernel_us`, a candidate's kernel takes that long, and
    /// a nanosecond more per byte of dynamic shared memory.
    #[must_use]
    pub fn costing(mut self, costs: Costs, kernel_us: Option<f64>) -> Self {
        (self.costs, self.kernel_us) = (costs, kernel_us);
        self
    }

    /// Sets the size of the L2 cache, bytes.
    #[must_use]
    pub fn with_cache(mut self, bytes: u64) -> Self {
        self.cache = Cache::new(bytes);
        self
    }

    /// Returns the counters of this driver.
    #[must_use]
    pub fn gauges(&self) -> Gauges {
        self.cache.gauges()
    }

    /// Updates the counters of the clocks.
    pub(super) fn tick(&self) {
        self.cache.note(self.clock.host(), self.clock.busy());
    }

    /// Accounts for a device copy of `bytes` bytes.
    pub(super) fn moves(&mut self, bytes: u64) {
        self.clock.spend(self.costs.launch_us);
        if self.costs != Costs::NONE {
            self.clock.advance(bytes as f64 / MEMORY_RATE);
        }
    }

    /// Accounts for a host copy of `bytes` bytes, after all queued work.
    pub(super) fn copied(&mut self, bytes: usize) {
        self.clock.wait();
        self.clock.spend(bytes as f64 / self.costs.copy_rate);
        self.tick();
    }

    /// Passes the buffers of a launch through the L2 cache.
    pub(super) fn touch(&mut self, queued: &Queued) {
        for parameter in &queued.config.parameters {
            let Ok(word) = <[u8; 8]>::try_from(parameter.as_slice()) else {
                continue;
            };
            let at = u64::from_le_bytes(word);
            let found = self.living.range(..=at).next_back();
            if let Some((base, (_, bytes))) = found
                && at - base < *bytes
            {
                self.cache.launch_touches(*base, *bytes);
            }
        }
    }
}
