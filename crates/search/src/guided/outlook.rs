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
mod tests {
    use super::{LEVELS, Outlook};
    use crate::{Observation, Settings, evolve_with};
    use tuner_core::record::Verdict;
    use tuner_core::units::{Micros, Seed};
    use tuner_core::value::Value;
    use tuner_space::{Environment, Parameter, Space};

    #[test]
    fn both_the_model_and_the_results_have_to_agree() {
        let sure = Outlook {
            expected: Some([0.0; LEVELS.len()]),
        };
        assert_eq!(sure.left(39), None);
        assert_eq!((sure.left(40), sure.left(149)), (Some(0.2), Some(0.02)));
        assert_eq!(sure.left(150), Some(0.01));
        let hopeful = Outlook {
            expected: Some([40.0, 10.0, 2.9, 1.0, 0.0]),
        };
        assert_eq!(hopeful.left(1000), Some(0.05));
        assert_eq!(Outlook::default().left(1000), None);
    }

    #[test]
    fn nothing_is_said_while_nothing_passed_and_a_solved_space_converges() {
        let sizes: Vec<Value> = (0..16).map(Value::Int).collect();
        let named = ["a", "b", "c"].map(|name| Parameter::new(name, sizes.clone()));
        let space = Space::build("test", named.into(), &[], &Environment::default()).unwrap();
        let mut failing = evolve_with(&space, Seed(1), &[], Settings::default());
        let mut smooth = evolve_with(&space, Seed(1), &[], Settings::default());
        let mut said = Vec::new();
        for _ in 0..220 {
            let proposal = failing.ask().unwrap();
            failing.tell(proposal.id, Observation::Failed(Verdict::Crashed));
            assert_eq!(failing.left(), None);
            let proposal = smooth.ask().unwrap();
            let far = proposal.config.choices().iter().map(|at| at.abs_diff(5));
            let time = Micros::new(10.0 + f64::from(far.sum::<u32>())).unwrap();
            smooth.tell(proposal.id, Observation::exactly(time));
            said.extend(smooth.left());
        }
        assert_eq!((said.first(), said.last()), (Some(&0.2), Some(&0.01)));
    }
}
