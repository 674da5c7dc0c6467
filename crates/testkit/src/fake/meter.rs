//! Energy counter of the stand-in.

use super::cache::Gauges;
use tuner_device::gpu::nvml::EnergyCounter;

/// Power while it works, W.
const POWER_W: f64 = 300.0;
/// Interval of the counter, microseconds of the stand-in's time.
const STEP_US: f64 = 500.0;

/// Energy by the busy time of the stand-in.
#[derive(Debug)]
pub struct Meter(pub Gauges);

impl EnergyCounter for Meter {
    fn energy_mj(&self) -> Option<u64> {
        let counted_us = (self.0.busy_us() / STEP_US).floor() * STEP_US;
        // W · µs = µJ.
        Some((POWER_W * counted_us / 1e3) as u64)
    }
}
