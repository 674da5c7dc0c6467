//! What a candidate promises where two objectives count: the expected growth of the area that the
//! front dominates (expected hypervolume improvement), exact for two independent normals (Emmerich,
//! Deutz and Klinkenberg 2011), as a logarithm so that it still ranks candidates where it
//! underflows.

use super::improvement::log_improvement;

/// What is believed of one objective of a candidate: its mean and standard deviation.
pub(super) type Belief = (f64, f64);

/// Points that nothing beats, in order of the first objective, and the corner up to which an area
/// counts.
#[derive(Debug)]
pub(super) struct Front {
    points: Vec<[f64; 2]>,
    corner: [f64; 2],
}

/// Beyond the worst of the front, as a share of its extent, an area still counts.
const MARGIN: f64 = 0.1;

impl Front {
    /// Of points in order of the first objective, at least one; `spread`: standard deviations of the
    /// objectives, for a front of one point.
    pub(super) fn new(points: Vec<[f64; 2]>, spread: [f64; 2]) -> Self {
        let corner = |at: usize| {
            let all = || points.iter().map(|point| point[at]);
            let worst = all().fold(f64::NEG_INFINITY, f64::max);
            let best = all().fold(f64::INFINITY, f64::min);
            worst + (MARGIN * (worst - best)).max(MARGIN * spread[at])
        };
        Self {
            corner: [corner(0), corner(1)],
            points,
        }
    }

    /// The logarithm of the expected growth of the area.
    pub(super) fn log_growth(&self, first: Belief, second: Belief) -> f64 {
        // Strips of the first objective, each with the height that the point before it leaves.
        let mut terms = Vec::with_capacity(self.points.len() + 1);
        let (mut before, mut height) = (f64::NEG_INFINITY, self.corner[1]);
        for [end, next] in self.points.iter().copied().chain([self.corner]) {
            let reach = log_below(end, first);
            terms.push(log_difference(reach, before) + log_below(height, second));
            (before, height) = (reach, next);
        }
        log_sum(&terms)
    }
}

/// Logarithm of the expected distance below a limit, 0 above it.
fn log_below(limit: f64, (mean, deviation): Belief) -> f64 {
    deviation.ln() + log_improvement((limit - mean) / deviation)
}

/// `ln(exp(a) - exp(b))` for `a > b`.
fn log_difference(a: f64, b: f64) -> f64 {
    if b < a {
        a + (-(b - a).exp()).ln_1p()
    } else {
        f64::NEG_INFINITY
    }
}

fn log_sum(terms: &[f64]) -> f64 {
    let most = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if most == f64::NEG_INFINITY {
        return most;
    }
    most + terms
        .iter()
        .map(|term| (term - most).exp())
        .sum::<f64>()
        .ln()
}

#[cfg(test)]
mod tests {
    use super::Front;
    use crate::{Observation, Settings, evolve_with};
    use tuner_core::objective::front as undominated;
    use tuner_core::units::{Micros, Seed};
    use tuner_core::value::Value;
    use tuner_space::{Environment, Parameter, Space};

    fn front() -> Front {
        Front::new(vec![[1.0, 4.0], [2.0, 2.0], [4.0, 1.0]], [1.0, 1.0])
    }

    #[test]
    fn without_doubt_it_is_the_area_that_a_point_adds() {
        let sure = |x, y| front().log_growth((x, 1e-7), (y, 1e-7)).exp();
        // Corner at 4.3 and 4.3. (1.5, 1.5): from 1.5 to 2 down from 4, from 2 to 4 down from 2.
        assert!((sure(1.5, 1.5) - (0.5 * 2.5 + 2.0 * 0.5)).abs() < 1e-3);
        assert!((sure(0.5, 4.2) - 0.5 * 0.1).abs() < 1e-3);
        assert!(sure(3.0, 3.0) < 1e-6);
    }

    #[test]
    fn it_is_the_mean_over_what_may_be_and_ranks_where_it_underflows() {
        let (first, second) = ((1.8, 0.7), (2.4, 0.9));
        let grown = |x: f64, y: f64| front().log_growth((x, 1e-7), (y, 1e-7)).exp();
        let density = |z: f64| (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
        let places = || (-50..=50).map(|at| f64::from(at) / 10.0);
        let mut sampled = 0.0;
        for (a, b) in places().flat_map(|a| places().map(move |b| (a, b))) {
            let here = grown(first.0 + first.1 * a, second.0 + second.1 * b);
            sampled += 0.01 * density(a) * density(b) * here;
        }
        let exact = front().log_growth(first, second).exp();
        assert!((exact / sampled - 1.0).abs() < 0.01, "{exact} {sampled}");
        let far = |x: f64| front().log_growth((x, 0.1), (9.0, 0.1));
        assert!(far(9.0) < -1000.0 && far(9.5) < far(9.0) && far(30.0).is_finite());
    }

    /// Area that the front of a search dominates, where the search is told of the second objective or
    /// not.
    fn area(seed: u64, told: bool) -> f64 {
        let sizes: Vec<Value> = (1..=12).map(Value::Int).collect();
        let named = ["a", "b", "c", "d"].map(|name| Parameter::new(name, sizes.clone()));
        let space = Space::build("test", named.into(), &[], &Environment::default()).unwrap();
        let mut search = evolve_with(&space, Seed(seed), &[], Settings::default());
        let mut points = Vec::new();
        for _ in 0..60 {
            let proposal = search.ask().unwrap();
            let at = |place: usize| f64::from(proposal.config.choices()[place]);
            // What makes it fast costs the other, and two more parameters have a best of their own.
            let rest = (at(1) - 4.0).abs() + (at(2) - 7.0).abs();
            let time = 10.0 + 2.0 * at(0) + rest + 0.5 * at(3);
            let other = 40.0 - 2.0 * at(0) + rest + 0.5 * (11.0 - at(3));
            points.push([time, other]);
            let seen = Observation::Time {
                time: Micros::new(time).unwrap(),
                error: 0.0,
                other: told.then_some(other),
            };
            search.tell(proposal.id, seen);
        }
        let (mut area, mut height) = (0.0, 70.0);
        for at in undominated(&points) {
            let [time, other] = points[at];
            area += (70.0 - time).max(0.0) * (height - other).max(0.0);
            height = other.min(height);
        }
        area
    }

    #[test]
    fn a_search_that_is_told_of_both_finds_a_wider_front() {
        let sum = |told: bool| (1..=4).map(|seed| area(seed, told)).sum::<f64>();
        let (both, alone) = (sum(true), sum(false));
        assert!(both > 1.03 * alone, "{both} against {alone}");
    }
}
