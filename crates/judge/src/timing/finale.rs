//! Final comparison: the best few again, in shuffled order, in a fresh process on new data.
//!
//! The best of many noisy times is biased low (the winner's curse), so only the final comparison is
//! published. A round is the reference, every finalist in random order, and the reference again;
//! the ratio of two finalists is taken within rounds.

use super::plan::{Plan, Runner, Settings, Step};
use super::reference::Reference;
use super::summary::{Conditions, SampleSummary};
use crate::stopwatch::Sample;
use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use tuner_core::cache_mode::CacheMode;
use tuner_core::evidence::{Measured, Proof};
use tuner_core::statistics::{bimodal, median, quantile_of};

/// Name of this protocol, stored with each time.
pub const PROTOCOL: &str = "final comparison in shuffled rounds, version 1";

/// A final comparison in progress.
#[derive(Debug, Clone)]
pub struct FinalComparison {
    settings: Settings,
    finalists: Vec<Runner>,
    reference: Reference,
    rng: rand_chacha::ChaCha8Rng,
    order: Vec<usize>,
    taken: Vec<Sample>,
    rounds: Vec<Round>,
    redone: u32,
    unsteady: bool,
}

/// One round: the reference's time, and a sample of each finalist by index.
#[derive(Debug, Clone)]
struct Round {
    reference_us: f64,
    samples: Vec<Sample>,
}

impl FinalComparison {
    /// Starts a comparison of warmed-up finalists; `seed` shuffles them.
    #[must_use]
    pub fn new(
        settings: Settings,
        finalists: Vec<Runner>,
        reference: Reference,
        seed: u64,
    ) -> Self {
        let mut finale = Self {
            settings,
            order: (0..finalists.len()).collect(),
            finalists,
            reference,
            rng: rand_chacha::ChaCha8Rng::seed_from_u64(seed),
            taken: Vec::new(),
            rounds: Vec::new(),
            redone: 0,
            unsteady: false,
        };
        // A fixed order would give each finalist the same predecessor, whose cache contents and
        // heat it inherits.
        finale.order.shuffle(&mut finale.rng);
        finale
    }

    /// Returns the ratios of a finalist to the reference, one for each round.
    #[expect(
        clippy::indexing_slicing,
        reason = "finalists are numbered by the list that every round has a sample of each of"
    )]
    fn ratios(&self, finalist: usize) -> Vec<f64> {
        let rounds = self.rounds.iter();
        rounds
            .map(|round| round.samples[finalist].micros / round.reference_us)
            .collect()
    }

    /// Returns a finalist's published time. `None` before the first round.
    #[must_use]
    #[expect(
        clippy::indexing_slicing,
        reason = "finalists are numbered by the list that every round has a sample of each of"
    )]
    pub fn measured(
        &self,
        proof: &dyn Proof,
        finalist: usize,
        cache: CacheMode,
    ) -> Option<Measured> {
        let ratios = self.ratios(finalist);
        // The reference's time in these rounds: the clock may have moved since the warm-up.
        let taken: Vec<f64> = self.rounds.iter().map(|r| r.reference_us).collect();
        let unit = median(&taken)?;
        let samples: Vec<Sample> = self.rounds.iter().map(|r| r.samples[finalist]).collect();
        let flags = [
            (bimodal(&ratios), "bimodal"),
            (self.unsteady, "unsteady"),
            (samples.iter().any(|s| s.throttled), "throttled"),
            (samples.iter().any(|s| s.late), "late"),
        ];
        // From ratios, so that clock changes between rounds do not widen it.
        let p90 = quantile_of(&ratios, 0.9)? * unit;
        let launches = self.finalists.get(finalist)?.launches;
        let conditions = Conditions {
            protocol: PROTOCOL,
            cache,
            launches,
            reference: &self.reference,
        };
        let summary = SampleSummary::new(ratios, unit, p90, samples)?;
        Some(summary.measured(proof, conditions, &flags))
    }

    fn runner(&self) -> Option<Runner> {
        match self.taken.len() {
            0 => Some(self.reference.runner),
            at => match self.order.get(at - 1) {
                Some(finalist) => self.finalists.get(*finalist).copied(),
                None => Some(self.reference.runner),
            },
        }
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "finalists are numbered by the list that every round has a sample of each of"
    )]
    fn end_round(&mut self) {
        let taken = std::mem::take(&mut self.taken);
        let (Some(first), Some(last)) = (taken.first(), taken.last()) else {
            return;
        };
        let drift = (last.micros / first.micros - 1.0).abs();
        let usual = self.reference.clock_mhz;
        let is_slow = |sample: &Sample| {
            let clocks = sample.clock_mhz.zip(usual);
            let low = clocks.is_some_and(|(now, usual)| now < self.settings.clock_share * usual);
            low || sample.throttled
        };
        let slowed = taken.iter().any(is_slow);
        // A round is longer than a block and may drift further; ratios within it are adjacent in time.
        if (drift > 2.0 * self.settings.block_drift || slowed)
            && self.redone < self.settings.redo_max
        {
            self.redone += 1;
            return;
        }
        self.unsteady |= drift > 2.0 * self.settings.block_drift;
        self.redone = 0;
        // Placeholders: the order contains each finalist once, so every one is replaced.
        let mut samples = vec![*first; self.finalists.len()];
        for (finalist, sample) in self.order.iter().zip(&taken[1..]) {
            samples[*finalist] = *sample;
        }
        self.rounds.push(Round {
            // The geometric mean of both ends, as in a block, removes linear drift over the round.
            reference_us: (first.micros * last.micros).sqrt(),
            samples,
        });
        self.order.shuffle(&mut self.rng);
    }
}

impl Plan for FinalComparison {
    fn next(&self) -> Step {
        let over = self.finalists.is_empty() || self.rounds.len() >= self.settings.final_rounds;
        match self.runner() {
            Some(runner) if !over => Step::Sample {
                subject: runner.subject,
                launches: runner.launches,
            },
            _ => Step::Done,
        }
    }

    fn tell(&mut self, sample: Option<Sample>) {
        self.taken.extend(sample);
        if self.taken.len() == self.finalists.len() + 2 {
            self.end_round();
        }
    }
}
