//! The stand-in's count of its energy.

use super::cache::Gauges;
use tuner_device::gpu::nvml::EnergyCounter;

/// What it draws while it works, W.
const POWER_W: f64 = 300.0;
/// The counter steps this often, microseconds of the stand-in's time.
const STEP_US: f64 = 500.0;

/// Energy by the time that the stand-in has worked.
#[derive(Debug)]
pub struct Meter(pub Gauges);

impl EnergyCounter for Meter {
    fn energy_mj(&self) -> Option<u64> {
        let counted_us = (self.0.busy_us() / STEP_US).floor() * STEP_US;
        // W · µs = µJ.
        Some((POWER_W * counted_us / 1e3) as u64)
    }
}
