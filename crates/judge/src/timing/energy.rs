//! Energy of a launch sequence, from the device's counter.
//!
//! Such counters (NVML's `nvmlDeviceGetTotalEnergyConsumption`) advance in steps of 20 to 100 ms. So a
//! window starts and ends at a step and lasts longer than one, and the device runs only the candidate, back
//! to back. Idle power is included: a slower candidate incurs it longer.

use super::plan::{Runner, Settings};
use crate::stopwatch::Stopwatch;
use tuner_core::judgement::Judgement;
use tuner_core::record::Energy;
use tuner_core::statistics::{interval_of_median, median};

/// Measures the energy of a runner whose launch sequence takes `micros` microseconds; `None` if the
/// device does not count its energy.
///
/// # Errors
/// The device failed.
pub fn measure(
    watch: &mut dyn Stopwatch,
    runner: Runner,
    micros: f64,
    settings: Settings,
) -> Result<Option<Energy>, Judgement> {
    // Shorter windows would contain too few steps of the counter.
    let least = (settings.energy_us / micros.max(1e-3)).ceil() as u64;
    let mut samples = Vec::with_capacity(settings.energy_windows);
    for _ in 0..settings.energy_windows {
        let Some(draw) = watch.draw(runner.subject, runner.launches, least)? else {
            return Ok(None);
        };
        samples.push(draw.millijoules as f64 / draw.launches.max(1) as f64);
    }
    let found = median(&samples).zip(interval_of_median(&samples));
    Ok(found.map(|(launch_mj, ci95_mj)| Energy {
        launch_mj,
        ci95_mj,
        samples_mj: samples,
    }))
}

#[cfg(test)]
mod tests;
