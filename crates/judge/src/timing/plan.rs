//! What timing plans have in common: they are asked for the next step, are told what came of it,
//! and decide. They never wait, measure or look at a clock, so every decision is tested on
//! synthetic ones.

use crate::stopwatch::{Sample, Subject};
use std::time::Duration;

/// What a plan wants next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// A sample.
    Sample {
        /// Of what.
        subject: Subject,
        /// Launch sequences in it.
        launches: u32,
    },
    /// Nothing for a while.
    Pause(Duration),
    /// No more: the plan has its result.
    Done,
}

/// A pure state machine that times something.
pub trait Plan {
    /// What to do now; the same until [`Plan::tell`] is called.
    fn next(&self) -> Step;

    /// What came of the step: the sample, or `None` after a pause.
    fn tell(&mut self, sample: Option<Sample>);
}

/// A subject with the number of launches a sample of it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Runner {
    /// The subject.
    pub subject: Subject,
    /// Launch sequences a sample.
    pub launches: u32,
}

tuner_core::with_defaults! {
    /// The constants of the protocol. Their sources are the ranges that published harnesses use
    /// (NVBench, Triton's `do_bench`, FlashInfer) and what the synthetic clocks of `benches/timing.rs`
    /// confirm.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct Settings {
        /// What a sample should last, microseconds: event stamps resolve about 0.5 µs, so a sample of
        /// 1.5 ms is good to 0.03 %.
        pub sample_us: f64 = 1500.0,
        /// Most launches a sample: a larger graph takes longer to build than to run.
        pub launches_max: u32 = 500,
        /// The reference runs this long before anything counts, microseconds: clocks and heat settle.
        pub warm_up_us: f64 = 1.5e6,
        /// A candidate runs this long, and three times at least, before it counts, microseconds.
        pub candidate_warm_us: f64 = 5000.0,
        /// A candidate whose best of the first three samples is slower than the incumbent by this
        /// factor is dropped.
        pub race_factor: f64 = 1.15,
        /// Fewest samples of a candidate that is not dropped.
        pub samples_min: usize = 12,
        /// Most samples; twice as many for a bimodal one.
        pub samples_max: usize = 40,
        /// The 95 % interval of the ratio is narrow enough at this half-width, relative.
        pub half_width: f64 = 0.005,
        /// GPU time a race may take, microseconds.
        pub race_us: f64 = 300e3,
        /// The two ends of a block may differ by this much, relative; else it is done again.
        pub block_drift: f64 = 0.02,
        /// The reference in a block may differ from its running median by this much, relative; else
        /// the device is warmed up again.
        pub session_drift: f64 = 0.05,
        /// A sample whose clock is below this share of the reference's is discarded: the device has
        /// been slowed down. NVBench's threshold.
        pub clock_share: f64 = 0.75,
        /// Blocks done again in a row, at most; then the device is as unsteady as it is.
        pub redo_max: u32 = 4,
        /// Pauses for a low clock, and times the device is warmed up again, a plan at most.
        pub pauses_max: u32 = 6,
        /// Fewest pairs of a duel.
        pub duel_pairs_min: usize = 40,
        /// Most pairs of a duel that stays undecided.
        pub duel_pairs_max: usize = 160,
        /// GPU time a duel may take beyond its first eight pairs, microseconds.
        pub duel_us: f64 = 2e6,
        /// A challenger replaces an incumbent when the interval of its ratio lies below this.
        pub win: f64 = 0.99,
        /// Rounds of the final comparison.
        pub final_rounds: usize = 40,
        /// Least length of a window in which energy is counted, microseconds: the counter steps every 20
        /// to 100 ms.
        pub energy_us: f64 = 120e3,
        /// Windows in which energy is counted.
        pub energy_windows: usize = 3,
    }
}

impl Settings {
    /// Launches that make a sample of a subject with this time a launch last as long as it should.
    /// One that is longer by itself is one launch.
    #[must_use]
    pub fn launches(&self, micros: f64) -> u32 {
        self.launches_for(self.sample_us, micros)
            .min(self.launches_max)
    }

    /// Launches that last `total` microseconds, at least one.
    pub(super) fn launches_for(&self, total: f64, micros: f64) -> u32 {
        let wanted = (total / micros.max(1e-3)).ceil();
        wanted.clamp(1.0, f64::from(self.launches_max) * 10.0) as u32
    }
}

#[cfg(test)]
mod tests;
