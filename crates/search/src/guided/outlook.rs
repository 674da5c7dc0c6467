//! What further trials may still bring.
//!
//! The model alone is no judge of that: where it is wrong it is sure, and says that nothing is left
//! while it sits in a local optimum. The results alone are none either: a long time without a gain
//! means little while much of the space is unknown. Both have to agree.

use super::Guided;
use super::acquisition::Acquisition;

/// Shares of the best time that may be left, and the results in a row without a gain from which each
/// is believed to be the most: nine runs in ten were right on recorded spaces (`docs/search.md`).
const LEVELS: [(f64, usize); 5] = [(0.01, 150), (0.02, 130), (0.05, 100), (0.1, 60), (0.2, 40)];
/// Configurations of the space, by the model's count, that may gain more than what is believed to be
/// left at most.
const MOST_EXPECTED: f64 = 3.0;

/// What the model said when it was made: the expected number of configurations that gain more than
/// each of the levels.
#[derive(Debug, Default)]
pub(super) struct Outlook {
    expected: Option<[f64; LEVELS.len()]>,
}

impl Outlook {
    /// The most that is left, after so many results without a gain; `None`: it may be anything.
    pub(super) fn left(&self, idle: usize) -> Option<f64> {
        let expected = self.expected?;
        let mut levels = LEVELS.iter().zip(expected);
        levels
            .find(|((_, least), expected)| idle >= *least && *expected < MOST_EXPECTED)
            .map(|((share, _), _)| *share)
    }
}

impl Guided {
    /// Asks the model about its new pool: candidates near the fastest as they are, and uniform
    /// draws as a sample of the space.
    pub(super) fn look_ahead(&mut self) {
        let promise = Acquisition::new(&self.archive, &self.process, &self.held, &self.settings);
        if promise.scale.is_none() {
            return;
        }
        let (mut near, mut anywhere) = ([0.0; LEVELS.len()], [0.0; LEVELS.len()]);
        let mut draws = 0_u32;
        for (origin, point) in self.pool.points() {
            let drawn = origin == super::candidates::UNIFORM;
            draws += u32::from(drawn);
            let sums = if drawn { &mut anywhere } else { &mut near };
            for (sum, (share, _)) in sums.iter_mut().zip(LEVELS) {
                // A gain of this share, as a difference of log times.
                *sum += promise.chance_beyond(point, -(1.0 - share).ln());
            }
        }
        let weight = self.fresh.space().count() as f64 / f64::from(draws.max(1));
        for (near, anywhere) in near.iter_mut().zip(anywhere) {
            *near += weight * anywhere;
        }
        self.outlook.expected = Some(near);
    }
}

#[cfg(test)]
mod tests;
