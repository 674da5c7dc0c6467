//! Interleaved blocks: A B B A. Linear drift during a block (heat, clocks) cancels in the ratio
//! of its inner to its outer samples.

use super::plan::{Runner, Settings, Step};
use crate::stopwatch::Sample;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tuner_core::statistics::median;

/// A finished block.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// First and last sample.
    pub outer: [Sample; 2],
    /// Samples between the outer ones.
    pub inner: Vec<Sample>,
}

impl Block {
    /// Returns the time of the inner subject over that of the outer one (geometric means).
    #[must_use]
    pub fn ratio(&self) -> f64 {
        // With geometric means, swapping the subjects inverts the ratio. Paired comparisons, in which the
        // subjects alternate, rely on this.
        (mean_log(self.inner.iter().map(|sample| sample.micros)) - self.outer_us().ln()).exp()
    }

    /// Returns the same ratio in cycles, if every sample has them.
    #[must_use]
    pub(crate) fn cycles_ratio(&self) -> Option<f64> {
        let cycles = |samples: &[Sample]| -> Option<Vec<f64>> {
            samples.iter().map(|sample| sample.cycles).collect()
        };
        let (inner, outer) = (cycles(&self.inner)?, cycles(&self.outer)?);
        Some((mean_log(inner.into_iter()) - mean_log(outer.into_iter())).exp())
    }

    /// Returns the geometric mean of the outer samples, microseconds.
    #[must_use]
    pub(crate) fn outer_us(&self) -> f64 {
        mean_log(self.outer.iter().map(|sample| sample.micros)).exp()
    }
}

fn mean_log(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len().max(1) as f64;
    values.map(f64::ln).sum::<f64>() / count
}

/// Counts of repeated blocks, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryStats {
    /// Blocks discarded because their ends differed.
    pub drifted: u32,
    /// Blocks discarded because the device throttled.
    pub throttled: u32,
    /// Times the device was warmed up again because the reference left its running median.
    pub rewarmed: u32,
    /// A block was accepted in spite of its drift: the device is unsteady.
    pub unsteady: bool,
    /// A block was accepted in spite of a low clock.
    pub slowed: bool,
    /// A sample counts although the host queued it late.
    #[serde(default)]
    pub late: bool,
}

/// Usual time and clock of an outer subject that is the reference; `None` for another subject.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ExpectedReference {
    /// Time, microseconds.
    pub micros: Option<f64>,
    /// Clock, MHz.
    pub clock_mhz: Option<f64>,
}

/// Measures blocks in sequence and discards unreliable ones.
#[derive(Debug, Clone)]
pub struct Blocks {
    settings: Settings,
    outer: Runner,
    inner: Runner,
    inner_count: usize,
    /// Running median of the outer subject, if it is the reference.
    expected: Option<f64>,
    /// Its clock, MHz.
    expected_mhz: Option<f64>,
    taken: Vec<Sample>,
    redone: u32,
    pauses: u32,
    pause: Option<Duration>,
    rewarm: u32,
    /// Times of the reference during a repeated warm-up.
    warming: Vec<f64>,
    gpu_us: f64,
    trouble: RetryStats,
}

/// Uncounted samples of the reference in a repeated warm-up.
const REWARM_SAMPLES: u32 = 60;
/// Last warm-up samples whose median becomes the reference's time.
const UNIT_SAMPLES: usize = 15;
/// Pause after the device throttled: NVBench's delay.
const THROTTLE_PAUSE: Duration = Duration::from_millis(50);

impl Blocks {
    /// Creates blocks of `inner_count` samples between two of `outer`; `expected`: time and clock
    /// of the outer subject, if it is the reference.
    #[must_use]
    pub fn new(
        settings: Settings,
        outer: Runner,
        inner: Runner,
        inner_count: usize,
        expected: ExpectedReference,
    ) -> Self {
        Self {
            settings,
            outer,
            inner,
            inner_count,
            expected: expected.micros,
            expected_mhz: expected.clock_mhz,
            taken: Vec::new(),
            redone: 0,
            pauses: 0,
            pause: None,
            rewarm: 0,
            warming: Vec::new(),
            gpu_us: 0.0,
            trouble: RetryStats::default(),
        }
    }

    /// Sets another form for the following blocks.
    pub(crate) fn reshape(&mut self, outer: Runner, inner: Runner, inner_count: usize) {
        self.taken.clear();
        (self.outer, self.inner, self.inner_count) = (outer, inner, inner_count);
    }

    /// Returns the counts of repeated blocks so far.
    #[must_use]
    pub fn trouble(&self) -> RetryStats {
        self.trouble
    }

    /// Returns the GPU time so far, microseconds.
    #[must_use]
    pub(crate) fn gpu_us(&self) -> f64 {
        self.gpu_us
    }

    fn runner(&self) -> Runner {
        let at = self.taken.len();
        // A B B A: the outer subject at both ends, and alone during a repeated warm-up.
        if self.rewarm > 0 || at == 0 || at > self.inner_count {
            self.outer
        } else {
            self.inner
        }
    }

    /// Returns the next step.
    #[must_use]
    pub fn next(&self) -> Step {
        match self.pause {
            Some(how_long) => Step::Pause(how_long),
            None => Step::Sample {
                subject: self.runner().subject,
                launches: self.runner().launches,
            },
        }
    }

    /// Records the result of a step; returns a block when it is complete and reliable.
    #[expect(
        clippy::indexing_slicing,
        reason = "the lengths are checked in the lines before"
    )]
    pub fn tell(&mut self, sample: Option<Sample>) -> Option<Block> {
        let Some(sample) = sample else {
            self.pause = None;
            return None;
        };
        // Discarded samples take time as well, and the limit of a paired comparison is a time.
        self.gpu_us += sample.micros * f64::from(self.runner().launches);
        if self.rewarm > 0 {
            self.warm(&sample);
            return None;
        }
        // A throttled sample would be compared with unthrottled ones of the same block.
        let slowed = sample.throttled || self.is_slow(&sample);
        if slowed && !self.wait_out_throttling() {
            return None;
        }
        // The device has retried a late sample with its longest wait, so it is kept with a flag.
        self.trouble.late |= sample.late;
        self.taken.push(sample);
        if self.taken.len() < self.inner_count + 2 {
            return None;
        }
        let samples = std::mem::take(&mut self.taken);
        let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
            return None;
        };
        let block = Block {
            outer: [*first, *last],
            inner: samples[1..samples.len() - 1].to_vec(),
        };
        self.judge(&block).then_some(block)
    }

    /// Records a warm-up sample of the reference; the last ones set its current time.
    #[expect(
        clippy::indexing_slicing,
        reason = "the lengths are checked in the lines before"
    )]
    fn warm(&mut self, sample: &Sample) {
        self.rewarm -= 1;
        self.warming.push(sample.micros);
        if self.rewarm == 0 {
            let last = self.warming.len().saturating_sub(UNIT_SAMPLES);
            // The device may have settled at a new clock: follow it instead of repeating the
            // warm-up forever.
            self.expected = median(&self.warming[last..]).or(self.expected);
            self.warming.clear();
        }
    }

    /// Reports whether the clock is far below that of the reference.
    fn is_slow(&self, sample: &Sample) -> bool {
        let clocks = sample.clock_mhz.zip(self.expected_mhz);
        clocks.is_some_and(|(now, usual)| now < self.settings.clock_share * usual)
    }

    /// Discards the block and pauses. Returns whether the sample counts because the pause limit is reached.
    fn wait_out_throttling(&mut self) -> bool {
        if self.pauses >= self.settings.pauses_max {
            self.trouble.slowed = true;
            return true;
        }
        self.pause = Some(THROTTLE_PAUSE);
        self.pauses += 1;
        self.trouble.throttled += 1;
        // Drift cancels only between adjacent samples, and the pause would separate these.
        self.taken.clear();
        false
    }

    /// Reports whether a block is reliable; prepares to repeat it otherwise.
    fn judge(&mut self, block: &Block) -> bool {
        let drift = (block.outer[1].micros / block.outer[0].micros - 1.0).abs();
        // Both ends are of the same subject: their difference is drift of the device.
        if drift > self.settings.block_drift {
            if self.redone < self.settings.redo_max {
                self.redone += 1;
                self.trouble.drifted += 1;
                return false;
            }
            self.trouble.unsteady = true;
        }
        self.redone = 0;
        let Some(expected) = self.expected else {
            return true;
        };
        if (block.outer_us() / expected - 1.0).abs() > self.settings.session_drift {
            if self.pauses < self.settings.pauses_max {
                self.pauses += 1;
                self.rewarm = REWARM_SAMPLES;
                self.trouble.rewarmed += 1;
                return false;
            }
            // The device has reached another steady state. Ratios are unaffected.
            self.trouble.unsteady = true;
            self.expected = None;
        }
        true
    }
}

#[cfg(test)]
mod tests;
