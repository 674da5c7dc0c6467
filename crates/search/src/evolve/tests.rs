use super::Settings;
use crate::{Observation, evolve_with};
use tuner_core::units::{Micros, Seed};
use tuner_core::value::Value;
use tuner_space::{Environment, Parameter, Space};

/// Seven parameters of five values.
fn space() -> Space {
    let values: Vec<Value> = [1, 2, 4, 8, 16].map(Value::Int).to_vec();
    let named = (0..7).map(|at| Parameter::new(format!("p{at}"), values.clone()));
    Space::build("test", named.collect(), &[], &Environment::default()).unwrap()
}

/// Computes a time to which each value contributes a factor unrelated to its neighbours' factors.
fn time(choices: &[u32]) -> f64 {
    const LOGS: [f64; 5] = [0.3, 0.0, 0.45, 0.15, 0.6];
    let each = choices.iter().enumerate();
    let logs = each.map(|(at, choice)| LOGS[(*choice as usize * (1 + at % 4) + at) % 5]);
    100.0 * logs.sum::<f64>().exp()
}

/// Returns the mean score after sixty trials.
fn score(apart: bool) -> f64 {
    const SEEDS: u64 = 8;
    let space = space();
    let of = |seed| {
        let settings = Settings {
            apart,
            ..Settings::default()
        };
        let mut search = evolve_with(&space, Seed(seed), &[], settings);
        let mut best = f64::INFINITY;
        for _ in 0..60 {
            let proposal = search.ask().unwrap();
            let time = time(proposal.config.choices());
            best = best.min(time);
            search.tell(
                proposal.id,
                Observation::exactly(Micros::new(time).unwrap()),
            );
        }
        100.0 / best
    };
    (1..=SEEDS).map(of).sum::<f64>() / SEEDS as f64
}

#[test]
fn values_that_say_nothing_of_their_neighbours_are_learned_one_by_one() {
    let (apart, ordered) = (score(true), score(false));
    assert!(
        apart > 0.95 && apart > ordered + 0.1,
        "{apart:.3} {ordered:.3}"
    );
}

/// Returns the share of first or last values in proposals after the opening, before any result.
/// Uniform draws have 0.4.
fn extreme_share(seed: u64) -> f64 {
    let space = space();
    let mut search = evolve_with(&space, Seed(seed), &[], Settings::default());
    let asked: Vec<Vec<u32>> = (0..24)
        .map(|_| search.ask().unwrap().config.choices().to_vec())
        .collect();
    let later = asked[Settings::default().opening..].concat();
    let extreme = later.iter().filter(|choice| [0, 4].contains(*choice));
    extreme.count() as f64 / later.len() as f64
}

#[test]
fn proposals_without_any_result_avoid_the_ends_of_parameters() {
    let shares: Vec<f64> = (1..=8).map(extreme_share).collect();
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    assert!(mean < 0.58, "{mean} {shares:?}");
}
