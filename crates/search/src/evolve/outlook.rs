//! Estimate of the gain of further trials.
//!
//! Two conditions must agree, because each alone misleads. The model is overconfident in its errors: in a
//! local optimum it predicts no further gain. A long time without a gain is weak evidence while much of the
//! space is unknown.

use super::Evolve;
use super::acquisition::Acquisition;

/// Remaining gains as shares of the best time, each with the number of consecutive results without a gain
/// that it requires. Calibrated to hold in nine runs of ten on recorded spaces (`docs/evidence/search.md`).
const GAIN_LEVELS: [(f64, usize); 5] =
    [(0.01, 150), (0.02, 130), (0.05, 100), (0.1, 60), (0.2, 40)];
/// Largest expected number of configurations that gain more than the stated remaining gain.
const MAX_EXPECTED_CONFIGS: f64 = 3.0;

/// Weight of the newest proposal in the mean expected improvement.
const NEWEST_WEIGHT: f64 = 0.25;

/// Predictions of the model.
#[derive(Debug, Default)]
pub(super) struct Outlook {
    /// At its last fit, the expected number of configurations that gain more than each level.
    expected: Option<[f64; GAIN_LEVELS.len()]>,
    /// Mean expected improvement of the last proposals.
    improvement: Option<f64>,
}

impl Outlook {
    /// Updates the mean with the expected improvement of a proposal.
    pub(super) fn note_improvement(&mut self, gain: Option<f64>) {
        let Some(gain) = gain else { return };
        // A single proposal is weak evidence: it may explore.
        let before = self.improvement.unwrap_or(gain);
        self.improvement = Some(before + NEWEST_WEIGHT * (gain - before));
    }

    /// Returns the mean expected improvement of the last proposals.
    pub(super) fn improvement(&self) -> Option<f64> {
        self.improvement
    }

    /// Returns the largest remaining gain after `idle` results without a gain; `None` if unbounded.
    pub(super) fn remaining_gain(&self, idle: usize) -> Option<f64> {
        let expected = self.expected?;
        let mut levels = GAIN_LEVELS.iter().zip(expected);
        levels
            .find(|((_, least), expected)| idle >= *least && *expected < MAX_EXPECTED_CONFIGS)
            .map(|((share, _), _)| *share)
    }
}

impl Evolve {
    /// Estimates the remaining gain from the new pool: candidates near the fastest count once,
    /// uniform draws count as a sample of the space.
    pub(super) fn estimate_gain(&mut self) {
        let acquisition = Acquisition::new(
            &self.archive,
            &self.process,
            &self.model_entries,
            &self.settings,
        );
        if acquisition.scale.is_none() {
            return;
        }
        let (mut near, mut anywhere) = ([0.0; GAIN_LEVELS.len()], [0.0; GAIN_LEVELS.len()]);
        let mut draws = 0_u32;
        for (origin, point) in self.pool.points() {
            let drawn = origin == super::candidates::UNIFORM;
            draws += u32::from(drawn);
            let sums = if drawn { &mut anywhere } else { &mut near };
            for (sum, (share, _)) in sums.iter_mut().zip(GAIN_LEVELS) {
                // The gain as a difference of log times.
                *sum += acquisition.chance_beyond(point, -(1.0 - share).ln());
            }
        }
        // Uniform draws represent the whole space; neighbours and children only themselves.
        let weight = self.fresh.space().count() as f64 / f64::from(draws.max(1));
        for (near, anywhere) in near.iter_mut().zip(anywhere) {
            *near += weight * anywhere;
        }
        self.outlook.expected = Some(near);
    }
}

#[cfg(test)]
mod tests;
