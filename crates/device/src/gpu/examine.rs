//! Examination of a GPU under load: its rates, its clock, and whether the host queues work ahead of it.

use super::nvml::Health;
use super::session::GpuSession;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use tuner_core::judgement::Judgement;
use tuner_core::statistics::{median, quantile_of};
use tuner_judge::timing::calibration::{Calibration, Probe, Prober as _};

/// Samples of the empty kernel.
const NULL_SAMPLES: usize = 20;
/// Minimum number of samples under load.
const LOAD_SAMPLES: usize = 10;

/// Result of an examination.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Examination {
    /// Rates and floors.
    pub calibration: Calibration,
    /// Health of the GPU before it had work.
    pub idle: Option<Health>,
    /// Health of the GPU at the end of the load.
    pub loaded: Option<Health>,
    /// Duration of the load, seconds.
    pub load_s: f64,
    /// Clock under load, MHz: the first samples, and lowest and highest of the second half (5 and
    /// 95 %). `None` if the device does not stamp clocks.
    pub clock_mhz: Option<ClockRange>,
    /// Spread of the times of one kernel in the second half of the load (5 to 95 %), relative.
    pub spread: f64,
    /// The empty kernel, microseconds: median, and 95 % quantile.
    pub null_us: [f64; 2],
    /// Time of the host to queue a sample, and time that the device waited for it, microseconds,
    /// for the sample with the smallest margin.
    pub queued_us: f64,
    /// See [`Examination::queued_us`].
    pub window_us: f64,
    /// The host was late even with the longest wait.
    pub late: bool,
}

/// A clock under load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ClockRange {
    /// At the beginning, MHz.
    pub first: f64,
    /// Lowest clock in the second half.
    pub lowest: f64,
    /// The median.
    pub median: f64,
    /// The highest.
    pub highest: f64,
}

/// Smallest margin by which the host queued work ahead of the device.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Margin {
    pub(super) queued_us: f64,
    pub(super) window_us: f64,
    pub(super) late: bool,
}

impl Margin {
    /// Records a sample.
    pub(super) fn note(&mut self, queued: Duration, window_ns: u32, late: bool) {
        let (queued_us, window_us) = (queued.as_secs_f64() * 1e6, f64::from(window_ns) / 1e3);
        self.late |= late;
        if self.window_us == 0.0 || queued_us / window_us > self.queued_us / self.window_us {
            (self.queued_us, self.window_us) = (queued_us, window_us);
        }
    }
}

impl GpuSession {
    /// Loads the GPU for `load` and monitors it.
    ///
    /// # Errors
    /// The device failed.
    pub fn examine(&mut self, load: Duration) -> Result<Examination, Judgement> {
        let idle = self.monitor.health();
        let promise = self.gpu.facts().promise();
        let calibration = Calibration::measure(self, promise)?;
        let probe = if calibration.tensor_tflops.is_some() {
            Probe::Tensor
        } else {
            Probe::Single
        };
        let (mut times, mut clocks) = (Vec::new(), Vec::new());
        let began = Instant::now();
        while began.elapsed() < load || times.len() < LOAD_SAMPLES {
            let Some((sample, _)) = self.probe(probe)? else {
                break;
            };
            times.push(sample.micros);
            clocks.extend(sample.clock_mhz);
        }
        let loaded = self.monitor.health();
        self.margin = Margin::default();
        let mut nulls = Vec::new();
        for _ in 0..NULL_SAMPLES {
            let sample = self.probe(Probe::Null)?;
            nulls.extend(sample.map(|(sample, _)| sample.micros));
        }
        // Clock and temperature may still change in the first half.
        let settled = &times[times.len() / 2..];
        let of = |values: &[f64], share| quantile_of(values, share).unwrap_or(0.0);
        let middle = median(settled).unwrap_or(1.0);
        Ok(Examination {
            calibration,
            idle,
            loaded,
            load_s: began.elapsed().as_secs_f64(),
            clock_mhz: range(&clocks),
            spread: (of(settled, 0.95) - of(settled, 0.05)) / middle,
            null_us: [median(&nulls).unwrap_or(0.0), of(&nulls, 0.95)],
            queued_us: self.margin.queued_us,
            window_us: self.margin.window_us,
            late: self.margin.late,
        })
    }
}

fn range(clocks: &[f64]) -> Option<ClockRange> {
    let settled = &clocks[clocks.len() / 2..];
    Some(ClockRange {
        first: *clocks.first()?,
        lowest: quantile_of(settled, 0.05)?,
        median: median(settled)?,
        highest: quantile_of(settled, 0.95)?,
    })
}

#[cfg(test)]
mod tests;
