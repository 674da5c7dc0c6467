use super::{Front, Prediction};
use crate::{Observation, Settings, evolve_with};
use tuner_core::objective::front as undominated;
use tuner_core::units::{Micros, Seed};
use tuner_core::value::Value;
use tuner_space::{Environment, Parameter, Space};

fn front() -> Front {
    Front::new(vec![[1.0, 4.0], [2.0, 2.0], [4.0, 1.0]], [1.0, 1.0])
}

fn normal(mean: f64, deviation: f64) -> Prediction {
    Prediction { mean, deviation }
}

#[test]
fn without_doubt_it_is_the_area_that_a_point_adds() {
    let sure = |x, y| front().log_growth(normal(x, 1e-7), normal(y, 1e-7)).exp();
    // Corner at 4.3 and 4.3. (1.5, 1.5): from 1.5 to 2 down from 4, from 2 to 4 down from 2.
    assert!((sure(1.5, 1.5) - (0.5 * 2.5 + 2.0 * 0.5)).abs() < 1e-3);
    assert!((sure(0.5, 4.2) - 0.5 * 0.1).abs() < 1e-3);
    assert!(sure(3.0, 3.0) < 1e-6);
}

#[test]
fn it_is_the_mean_over_what_may_be_and_ranks_where_it_underflows() {
    let (first, second) = (normal(1.8, 0.7), normal(2.4, 0.9));
    let grown = |x: f64, y: f64| front().log_growth(normal(x, 1e-7), normal(y, 1e-7)).exp();
    let density = |z: f64| (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let places = || (-50..=50).map(|at| f64::from(at) / 10.0);
    let mut sampled = 0.0;
    for (a, b) in places().flat_map(|a| places().map(move |b| (a, b))) {
        let here = grown(
            first.mean + first.deviation * a,
            second.mean + second.deviation * b,
        );
        sampled += 0.01 * density(a) * density(b) * here;
    }
    let exact = front().log_growth(first, second).exp();
    assert!((exact / sampled - 1.0).abs() < 0.01, "{exact} {sampled}");
    let far = |x: f64| front().log_growth(normal(x, 0.1), normal(9.0, 0.1));
    assert!(far(9.0) < -1000.0 && far(9.5) < far(9.0) && far(30.0).is_finite());
}

/// Returns the area that the front of a search dominates; `known`: the search gets the second
/// objective.
fn area(seed: u64, known: bool) -> f64 {
    let sizes: Vec<Value> = (1..=12).map(Value::Int).collect();
    let named = ["a", "b", "c", "d"].map(|name| Parameter::new(name, sizes.clone()));
    let space = Space::build("test", named.into(), &[], &Environment::default()).unwrap();
    let mut search = evolve_with(&space, Seed(seed), &[], Settings::default());
    let mut points = Vec::new();
    for _ in 0..60 {
        let proposal = search.ask().unwrap();
        let at = |place: usize| f64::from(proposal.config.choices()[place]);
        // The objectives conflict, and two more parameters have separate optima.
        let rest = (at(1) - 4.0).abs() + (at(2) - 7.0).abs();
        let time = 10.0 + 2.0 * at(0) + rest + 0.5 * at(3);
        let other = 40.0 - 2.0 * at(0) + rest + 0.5 * (11.0 - at(3));
        points.push([time, other]);
        let seen = Observation::Time {
            time: Micros::new(time).unwrap(),
            error: 0.0,
            other: known.then_some(other),
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
fn a_search_that_is_observation_for_both_finds_a_wider_front() {
    let sum = |known: bool| (1..=4).map(|seed| area(seed, known)).sum::<f64>();
    let (both, alone) = (sum(true), sum(false));
    assert!(both > 1.03 * alone, "{both} against {alone}");
}
