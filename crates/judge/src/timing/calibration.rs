//! Peak rates of a device, measured once for each session: the lower bounds below which a time is an error,
//! not a record.
//!
//! Data sheets do not describe this machine's clocks, and probes can fall short of the best kernel (a probe
//! of `mma.sync` reaches two thirds of an H100). So a lower bound uses the faster of the probed rate and
//! the datasheet peak: it may be too low, never too high.

use crate::stopwatch::Sample;
use serde::{Deserialize, Serialize};
use tuner_core::cache_mode::CacheMode;
use tuner_core::judgement::Judgement;
use tuner_core::plan::{Plan, PlanReference};

/// A built-in kernel whose rate measures the hardware.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Probe {
    /// An empty kernel of one block: the cost of a launch inside a graph.
    Null,
    /// Copies a buffer larger than the caches: bytes read plus bytes written count as work.
    DramCopy,
    /// Reads a buffer that fits into the L2 cache repeatedly: bytes read.
    CacheRead,
    /// Tensor-core products of 16-bit floats from registers: floating-point operations.
    Tensor,
    /// Single-precision fused multiply-adds from registers: floating-point operations.
    Single,
}

impl Probe {
    /// All probes, in execution order. The empty kernel runs after those that load the device: at the clock
    /// of an idle device it takes twice as long and is not a lower bound.
    pub const ALL: [Self; 5] = [
        Self::DramCopy,
        Self::CacheRead,
        Self::Single,
        Self::Tensor,
        Self::Null,
    ];
}

/// A device that runs probes.
pub trait Prober {
    /// Times one sample of 1 to 10 ms of a probe, and returns the work of one launch (operations or
    /// bytes; 0 for [`Probe::Null`]). `None` if the device lacks the unit.
    ///
    /// # Errors
    /// The device failed.
    fn probe(&mut self, probe: Probe) -> Result<Option<(Sample, f64)>, Judgement>;
}

/// Peak rates from the device's attributes, without measuring. `None` if they are not reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct DatasheetPeaks {
    /// Multiprocessors.
    pub sm_count: u32,
    /// Compute capability, major and minor.
    pub capability: (u32, u32),
    /// Highest clock of the multiprocessors, MHz.
    pub max_clock_mhz: Option<f64>,
    /// Bus width times memory clock, GB/s.
    pub dram_gb_s: Option<f64>,
    /// Second-level cache, bytes.
    pub l2_bytes: u64,
}

/// Measured and datasheet rates of a device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Time of an empty kernel inside a graph, microseconds.
    pub null_us: Option<f64>,
    /// Bytes copied (read plus written), GB/s.
    pub dram_gb_s: Option<f64>,
    /// Bytes read from the L2 cache, GB/s.
    pub cache_gb_s: Option<f64>,
    /// Tensor cores, 16-bit floats, TFLOP/s.
    pub tensor_tflops: Option<f64>,
    /// Single precision, TFLOP/s.
    pub single_tflops: Option<f64>,
    /// Clock before the device was loaded, MHz.
    pub idle_clock_mhz: Option<f64>,
    /// Clock under load, MHz.
    pub loaded_clock_mhz: Option<f64>,
    /// Peaks from the attributes.
    pub promise: DatasheetPeaks,
}

/// Timed samples of a probe; the first warms up and does not count.
const PROBE_SAMPLES: usize = 6;

impl Calibration {
    /// Runs all probes.
    ///
    /// # Errors
    /// The device failed.
    pub fn measure(prober: &mut dyn Prober, promise: DatasheetPeaks) -> Result<Self, Judgement> {
        let mut calibration = Self {
            promise,
            ..Self::default()
        };
        // Before any load, to record the idle clock; its time is not used.
        let idle = prober.probe(Probe::Null)?;
        calibration.idle_clock_mhz = idle.and_then(|(sample, _)| sample.clock_mhz);
        for probe in Probe::ALL {
            let mut best: Option<(Sample, f64)> = None;
            for number in 0..PROBE_SAMPLES {
                let Some((sample, work)) = prober.probe(probe)? else {
                    break;
                };
                // The fastest sample, not the median: a lower bound for candidates must not be too
                // high.
                let better = best.is_none_or(|(best, _)| sample.micros < best.micros);
                if number > 0 && sample.micros > 0.0 && better {
                    best = Some((sample, work));
                }
            }
            if let Some((sample, work)) = best {
                calibration.keep(probe, sample, work);
            }
        }
        Ok(calibration)
    }

    fn keep(&mut self, probe: Probe, sample: Sample, work: f64) {
        // Work per microsecond: 1e6 operations are 1e-6 T operations, 1e3 bytes 1 GB/s.
        let rate = work / sample.micros;
        match probe {
            Probe::Null => self.null_us = Some(sample.micros),
            Probe::DramCopy => self.dram_gb_s = Some(rate * 1e-3),
            Probe::CacheRead => self.cache_gb_s = Some(rate * 1e-3),
            Probe::Single => {
                self.single_tflops = Some(rate * 1e-6);
                self.loaded_clock_mhz = sample.clock_mhz;
            }
            Probe::Tensor => {
                self.tensor_tflops = Some(rate * 1e-6);
                self.loaded_clock_mhz = sample.clock_mhz.or(self.loaded_clock_mhz);
            }
        }
    }

    /// Returns the highest floating-point rate of any kernel whose narrowest input has `input_bits`
    /// bits, FLOP/s; `None` if unknown.
    #[must_use]
    pub(crate) fn peak_flops(&self, input_bits: u32) -> Option<f64> {
        // Half the width doubles the rate. Single precision may use TF32 only on request, but then
        // runs at no more than the 16-bit rate.
        let widening = if input_bits <= 8 { 2.0 } else { 1.0 };
        let promised = self.promise.max_clock_mhz.map(|mhz| {
            let (major, minor) = self.promise.capability;
            let cycle = tensor_flops_per_cycle(major, minor);
            cycle * f64::from(self.promise.sm_count) * mhz * 1e6
        });
        let probed = [self.tensor_tflops, self.single_tflops]
            .into_iter()
            .flatten()
            .map(|tera| tera * 1e12);
        let best = probed.chain(promised).fold(0.0, f64::max);
        (best > 0.0).then_some(best * widening)
    }

    /// Returns the highest rate of memory traffic, bytes per second.
    #[must_use]
    pub(crate) fn peak_bytes(&self) -> Option<f64> {
        let rates = [self.dram_gb_s, self.promise.dram_gb_s];
        let best = rates.into_iter().flatten().fold(0.0, f64::max);
        (best > 0.0).then_some(best * 1e9)
    }

    /// Returns the shortest possible time for the work of a problem, microseconds, and the limiting
    /// resource.
    #[must_use]
    pub fn floor(&self, work: &NeededWork, cache: CacheMode) -> Option<(f64, &'static str)> {
        let arithmetic = work
            .flops
            .zip(self.peak_flops(work.input_bits))
            .map(|(flops, peak)| (flops / peak * 1e6, "arithmetic peak"));
        // Warm caches may hold the data, so memory bandwidth bounds only cold times.
        let memory = (cache == CacheMode::Cold)
            .then(|| work.bytes.zip(self.peak_bytes()))
            .flatten()
            .map(|(bytes, peak)| (bytes / peak * 1e6, "memory bandwidth"));
        let launch = self.null_us.map(|us| (us, "an empty kernel"));
        [arithmetic, memory, launch]
            .into_iter()
            .flatten()
            .max_by(|a, b| a.0.total_cmp(&b.0))
    }

    /// Explains why a time is impossible; `None` if it is possible. Impossible times are below 0.97 of the
    /// lower bound (0.8 of an empty kernel's time, which is noisier than the rates).
    #[must_use]
    pub fn implausible(&self, micros: f64, work: &NeededWork, cache: CacheMode) -> Option<String> {
        let (floor, limit) = self.floor(work, cache)?;
        // Margins for noise of the probes.
        let share = if limit == "an empty kernel" {
            0.8
        } else {
            0.97
        };
        (micros < share * floor).then(|| {
            format!(
                "{micros:.3} µs with {} cache is faster than physics allows: {limit} sets a floor of {floor:.3} µs",
                cache.name()
            )
        })
    }
}

/// Returns floating-point operations per cycle of one multiprocessor's tensor cores, dense 16-bit
/// inputs: NVIDIA's architecture white papers (Volta, Turing 1024; A100 2048; GA10x, Ada 1024;
/// Hopper 4096; Blackwell data centre 8192). An unknown capability gets the highest.
fn tensor_flops_per_cycle(major: u32, minor: u32) -> f64 {
    match (major, minor) {
        (7, _) | (8, 6 | 7 | 9) => 1024.0,
        (8, _) | (12, _) => 2048.0,
        (9, _) => 4096.0,
        (0..=6, _) => 256.0,
        _ => 8192.0,
    }
}

/// Minimum work of a problem.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NeededWork {
    /// Floating-point operations.
    pub flops: Option<f64>,
    /// Bytes that must move between memory and chip.
    pub bytes: Option<f64>,
    /// Width of the narrowest input element, bits.
    pub input_bits: u32,
}

impl NeededWork {
    /// Returns the work of a plan by its space's `metric`. A metric may count nominal work; if the
    /// oracle is attention with a causal mask, only the visible scores count.
    #[must_use]
    pub fn from_plan(plan: &Plan) -> Self {
        let inputs = plan.filled();
        let bits = inputs
            .map(|argument| 8 * argument.element.size() as u32)
            .min();
        Self {
            flops: plan.flops.map(|flops| flops * visible_share(plan)),
            bytes: plan.bytes,
            input_bits: bits.unwrap_or(32),
        }
    }
}

/// Returns the minimum share of nominal arithmetic that a causal mask leaves: the visible scores.
fn visible_share(plan: &Plan) -> f64 {
    let PlanReference::Oracle(name) = &plan.reference else {
        return 1.0;
    };
    let flag = plan.sizes.iter().find(|(name, _)| name == "CAUSAL");
    if !name.starts_with("attention") || flag.is_none_or(|(_, value)| *value == 0.0) {
        return 1.0;
    }
    let rows = |index: usize| {
        let shape = &plan.arguments.get(index)?.shape;
        shape.get(2).copied()
    };
    let (Some(queries), Some(keys)) = (rows(0), rows(1)) else {
        // A square mask leaves (n + 1) / 2n, so half keeps the lower bound on the safe side.
        return 0.5;
    };
    // Row i sees keys 0 ..= i + keys - queries.
    // With more queries than keys the first rows see none.
    let hidden = queries.saturating_sub(keys);
    let first = (keys + 1).saturating_sub(queries).max(1) as f64;
    let seeing = (queries - hidden) as f64;
    let visible = seeing * (first + keys as f64) / 2.0;
    (visible / (queries as f64 * keys as f64)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests;
