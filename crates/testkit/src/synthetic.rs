//! Synthetic clocks with defects, which test the timing protocol against known times. Used by tests
//! and `benches/timing.rs`.
#![expect(
    clippy::indexing_slicing,
    reason = "subjects are numbered by the list of their true times"
)]

use rand::{RngExt as _, SeedableRng as _};
use std::time::Duration;
use tuner_core::cache_mode::CacheMode;
use tuner_core::judgement::Judgement;
use tuner_judge::stopwatch::{OutputSet, Sample, Stopwatch, Subject};

/// Defects of a clock. All shares are relative: 0.01 is one per cent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noise {
    /// Standard deviation of a sample.
    pub deviation: f64,
    /// The clock slows down by this share while the device heats up.
    pub warming: f64,
    /// Time constant of the warming, microseconds.
    pub warming_us: f64,
    /// The clock swings by this share.
    pub swing: f64,
    /// Period of the swing, microseconds.
    pub swing_us: f64,
    /// Share of samples disturbed by other load of the machine.
    pub spikes: f64,
    /// Share by which such a sample is longer.
    pub spike: f64,
    /// Share of samples in the slower of two modes.
    pub modes: f64,
    /// Share by which the slow mode is longer.
    pub mode: f64,
    /// Share of the time in which the device throttles.
    pub throttling: f64,
    /// Share by which the clock falls while throttled.
    pub throttled: f64,
}

/// No defects but a little noise.
const QUIET: Noise = Noise {
    deviation: 0.003,
    warming: 0.0,
    warming_us: 1e6,
    swing: 0.0,
    swing_us: 1e6,
    spikes: 0.0,
    spike: 0.0,
    modes: 0.0,
    mode: 0.0,
    throttling: 0.0,
    throttled: 0.0,
};

/// The clocks of the protocol's tests, by name.
pub const CLOCKS: [(&str, Noise); 6] = [
    ("quiet", QUIET),
    (
        "noisy",
        Noise {
            deviation: 0.01,
            ..QUIET
        },
    ),
    (
        "drift",
        Noise {
            warming: 0.10,
            warming_us: 0.7e6,
            swing: 0.03,
            swing_us: 0.4e6,
            deviation: 0.005,
            ..QUIET
        },
    ),
    (
        "bimodal",
        Noise {
            modes: 0.3,
            mode: 0.03,
            ..QUIET
        },
    ),
    (
        "spikes",
        Noise {
            spikes: 0.08,
            spike: 0.4,
            deviation: 0.005,
            ..QUIET
        },
    ),
    (
        "throttling",
        Noise {
            throttling: 0.25,
            throttled: 0.2,
            deviation: 0.005,
            ..QUIET
        },
    ),
];

/// Period of throttling, including the time between, microseconds.
const THROTTLE_PERIOD_US: f64 = 200e3;
/// Clock of the synthetic device, MHz.
const CLOCK_MHZ: f64 = 1500.0;
/// Host time between samples, microseconds.
const GAP_US: f64 = 20.0;

/// A stopwatch with known times of its subjects.
#[derive(Debug, Clone)]
pub struct SyntheticClock {
    noise: Noise,
    /// True times by subject, microseconds.
    truth: Vec<f64>,
    rng: rand_chacha::ChaCha8Rng,
    now_us: f64,
    /// GPU time spent, microseconds.
    spent_us: f64,
    /// Samples carry cycles and clocks.
    pub stamps: bool,
    /// A subject whose time stamps are divided by the factor, with unchanged cycles.
    pub liar: Option<(Subject, f64)>,
}

impl SyntheticClock {
    /// Creates a clock on which subject `i` takes `truth[i]` microseconds.
    #[must_use]
    pub fn new(noise: Noise, truth: Vec<f64>, seed: u64) -> Self {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        // Trials start at different points of the swing and the throttling.
        let now_us = rng.random::<f64>() * 4.0 * noise.swing_us.max(THROTTLE_PERIOD_US);
        Self {
            noise,
            truth,
            rng,
            now_us,
            spent_us: 0.0,
            stamps: true,
            liar: None,
        }
    }

    /// Returns the GPU time spent so far, microseconds.
    #[must_use]
    pub fn spent_us(&self) -> f64 {
        self.spent_us
    }

    fn throttling(&self) -> bool {
        let phase = (self.now_us / THROTTLE_PERIOD_US).fract();
        phase < self.noise.throttling
    }

    /// Returns the current clock relative to the nominal one.
    fn clock(&self) -> f64 {
        let heat = self.noise.warming * (1.0 - (-self.spent_us / self.noise.warming_us).exp());
        let turn = std::f64::consts::TAU * self.now_us / self.noise.swing_us;
        let fall = if self.throttling() {
            self.noise.throttled
        } else {
            0.0
        };
        (1.0 - heat) * (1.0 + self.noise.swing / 2.0 * turn.sin()) * (1.0 - fall)
    }

    /// Returns a random number of mean 0 and deviation 1 (a sum of twelve uniform ones).
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.rng.random::<f64>()).sum::<f64>() - 6.0
    }

    fn chance(&mut self, share: f64) -> bool {
        share > 0.0 && self.rng.random::<f64>() < share
    }
}

impl Stopwatch for SyntheticClock {
    fn sample(
        &mut self,
        subject: Subject,
        cache: CacheMode,
        launches: u32,
    ) -> Result<Sample, Judgement> {
        let cold = if cache == CacheMode::Cold { 1.3 } else { 1.0 };
        let mut work = self.truth[subject.0] * cold * (1.0 + self.noise.deviation * self.normal());
        if self.chance(self.noise.spikes) {
            work *= 1.0 + self.noise.spike * self.rng.random::<f64>();
        }
        if self.chance(self.noise.modes) {
            work *= 1.0 + self.noise.mode;
        }
        let clock = self.clock();
        let throttled = self.throttling();
        let micros = work / clock;
        let all = micros * f64::from(launches);
        self.now_us += all + GAP_US;
        self.spent_us += all;
        let lie = self.liar.filter(|(liar, _)| *liar == subject);
        Ok(Sample {
            micros: lie.map_or(micros, |(_, factor)| micros / factor),
            cycles: self.stamps.then_some(work * CLOCK_MHZ),
            clock_mhz: self.stamps.then_some(clock * CLOCK_MHZ),
            throttled,
            late: false,
        })
    }

    fn pause(&mut self, how_long: Duration) {
        self.now_us += how_long.as_secs_f64() * 1e6;
    }

    fn poison(&mut self, _subject: Subject) -> Result<(), Judgement> {
        Ok(())
    }

    fn outputs(&mut self, _subject: Subject) -> Result<Vec<OutputSet>, Judgement> {
        Ok(Vec::new())
    }
}

/// Measures like other tuners: the mean of `runs` runs of one subject, then of the other. Each run
/// is one launch between two event stamps with a resolution of half a microsecond. Returns the two
/// means.
///
/// # Errors
/// None.
pub fn sequential_means(
    clock: &mut SyntheticClock,
    subjects: [Subject; 2],
    runs: u32,
) -> Result<[f64; 2], Judgement> {
    const RESOLUTION_US: f64 = 0.5;
    let mut means = [0.0; 2];
    for (mean, subject) in means.iter_mut().zip(subjects) {
        for _ in 0..runs {
            let sample = clock.sample(subject, CacheMode::Warm, 1)?;
            let ticks = (sample.micros / RESOLUTION_US).round().max(1.0);
            *mean += ticks * RESOLUTION_US / f64::from(runs);
        }
        // There is a compilation and a check between two candidates.
        clock.pause(Duration::from_millis(50));
    }
    Ok(means)
}
