//! What the stand-in's calls cost, and what its cache holds.

use super::cache::{Cache, Gauges};
use super::clock::Costs;
use super::execute::Queued;
use super::virtual_driver::VirtualDriver;

/// Memory traffic, bytes a microsecond.
const MEMORY_RATE: f64 = 2e6;

impl VirtualDriver {
    /// The same with calls and copies that take time. Where `kernel_us` is given, a candidate's kernel
    /// takes that long, and a nanosecond more for each byte of dynamic shared memory.
    #[must_use]
    pub fn costing(mut self, costs: Costs, kernel_us: Option<f64>) -> Self {
        (self.costs, self.kernel_us) = (costs, kernel_us);
        self
    }

    /// The same with a L2 cache of so many bytes.
    #[must_use]
    pub fn with_cache(mut self, bytes: u64) -> Self {
        self.cache = Cache::new(bytes);
        self
    }

    /// What is read off this driver while others use it.
    #[must_use]
    pub fn gauges(&self) -> Gauges {
        self.cache.gauges()
    }

    /// Notes how far the clocks are.
    pub(super) fn tick(&self) {
        self.cache.note(self.clock.host(), self.clock.busy());
    }

    /// The device moves that much of its own memory.
    pub(super) fn moves(&mut self, bytes: u64) {
        self.clock.spend(self.costs.launch_us);
        if self.costs != Costs::NONE {
            self.clock.advance(bytes as f64 / MEMORY_RATE);
        }
    }

    /// The host copies that much, after all that is queued.
    pub(super) fn copied(&mut self, bytes: usize) {
        self.clock.wait();
        self.clock.spend(bytes as f64 / self.costs.copy_rate);
        self.tick();
    }

    /// The buffers of a launch pass through the L2 cache.
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
