//! Interface of timing plans: a plan returns the next step, receives its result, and decides.
//! Plans never wait, measure or read a clock, so every decision is tested on synthetic ones.

use crate::stopwatch::{Sample, Subject};
use std::time::Duration;

/// Next step of a plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// A sample.
    Sample {
        /// Subject of the sample.
        subject: Subject,
        /// Launch sequences in it.
        launches: u32,
    },
    /// A pause.
    Pause(Duration),
    /// The plan has its result.
    Done,
}

/// A pure state machine that times something.
pub trait Plan {
    /// Returns the next step; unchanged until [`Plan::tell`] is called.
    fn next(&self) -> Step;

    /// Records the result of the step: the sample, or `None` after a pause.
    fn tell(&mut self, sample: Option<Sample>);
}

/// A subject with its launches per sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Runner {
    /// The subject.
    pub subject: Subject,
    /// Launch sequences per sample.
    pub launches: u32,
}

tuner_core::with_defaults! {
    /// Constants of the protocol. Their sources are the ranges of published harnesses (NVBench,
    /// Triton's `do_bench`, FlashInfer) and the synthetic clocks of `benches/timing.rs`.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct Settings {
        /// Target duration of a sample, microseconds: event stamps resolve about 0.5 µs, so a
        /// sample of 1.5 ms is accurate to 0.03 %.
        pub sample_us: f64 = 1500.0,
        /// Maximum launches per sample: a larger graph takes longer to build than to run.
        pub launches_max: u32 = 500,
        /// Warm-up of the reference, microseconds: clocks and heat settle.
        pub warm_up_us: f64 = 1.5e6,
        /// Warm-up of a candidate, microseconds; at least three samples.
        pub candidate_warm_us: f64 = 5000.0,
        /// A candidate is dropped if the best of its first three samples is slower than the
        /// incumbent by this factor.
        pub race_factor: f64 = 1.15,
        /// Minimum samples of a candidate that is not dropped.
        pub samples_min: usize = 12,
        /// Maximum samples; twice as many for a bimodal candidate.
        pub samples_max: usize = 40,
        /// Half-width of the 95 % interval of the ratio at which a race ends, relative.
        pub half_width: f64 = 0.005,
        /// Maximum GPU time of a race, microseconds.
        pub race_us: f64 = 300e3,
        /// Maximum difference between the two ends of a block, relative; larger: the block is
        /// repeated.
        pub block_drift: f64 = 0.02,
        /// Maximum deviation of the reference in a block from its running median, relative; larger:
        /// the device is warmed up again.
        pub session_drift: f64 = 0.05,
        /// A sample whose clock is below this share of the reference's is discarded: the device
        /// throttled. NVBench's threshold.
        pub clock_share: f64 = 0.75,
        /// Maximum consecutive repetitions of a block; then the unsteady device is accepted.
        pub redo_max: u32 = 4,
        /// Maximum pauses for a low clock, and maximum repeated warm-ups, of a plan.
        pub pauses_max: u32 = 6,
        /// Minimum pairs of a paired comparison.
        pub duel_pairs_min: usize = 40,
        /// Maximum pairs of an undecided paired comparison.
        pub duel_pairs_max: usize = 160,
        /// Maximum GPU time of a paired comparison beyond its first eight pairs, microseconds.
        pub duel_us: f64 = 2e6,
        /// A challenger replaces an incumbent if the interval of its ratio is below this.
        pub win: f64 = 0.99,
        /// Rounds of the final comparison.
        pub final_rounds: usize = 40,
        /// Minimum length of a window in which energy is counted, microseconds: the counter steps
        /// every 20 to 100 ms.
        pub energy_us: f64 = 120e3,
        /// Windows in which energy is counted.
        pub energy_windows: usize = 3,
    }
}

impl Settings {
    /// Returns the launches of a sample of the target duration at this time per launch; one if a
    /// launch is longer.
    #[must_use]
    pub fn launches(&self, micros: f64) -> u32 {
        self.launches_for(self.sample_us, micros)
            .min(self.launches_max)
    }

    /// Returns the launches that last `total` microseconds, at least one.
    pub(super) fn launches_for(&self, total: f64, micros: f64) -> u32 {
        let wanted = (total / micros.max(1e-3)).ceil();
        wanted.clamp(1.0, f64::from(self.launches_max) * 10.0) as u32
    }
}

#[cfg(test)]
mod tests;
