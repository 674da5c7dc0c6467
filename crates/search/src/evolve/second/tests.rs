use crate::{Observation, Settings, evolve_with};
use tuner_core::units::{Micros, Seed};
use tuner_core::value::Value;
use tuner_space::{Config, Environment, Parameter, Space};

fn space() -> Space {
    let sizes: Vec<Value> = (0..8).map(Value::Int).collect();
    let named = ["a", "b", "c", "d", "e", "f", "g"].map(|name| Parameter::new(name, sizes.clone()));
    Space::build("test", named.into(), &[], &Environment::default()).unwrap()
}

/// A time with two valleys, one deeper; five parameters must change at once between them.
fn time(config: &Config) -> f64 {
    let choices = config.choices();
    let high = choices[..5].iter().filter(|at| **at >= 4).count();
    let (level, best) = match high {
        0 => (20.0, 1),
        5 => (18.0, 6),
        _ => (40.0, 3),
    };
    let far: u32 = choices.iter().map(|at| at.abs_diff(best)).sum();
    level + f64::from(far)
}

/// Counts searches of 300 trials that found the deeper valley, and trials of the second search.
fn found(settings: &Settings) -> (usize, usize) {
    let space = space();
    let (mut deeper, mut seconds) = (0, 0);
    for seed in 1..=6 {
        let mut search = evolve_with(&space, Seed(seed), &[], settings.clone());
        let mut best = f64::INFINITY;
        for _ in 0..300 {
            let proposal = search.ask().unwrap();
            seconds += usize::from(proposal.origin == "second");
            let time = time(&proposal.config);
            best = best.min(time);
            let observation = Observation::exactly(Micros::new(time).unwrap());
            search.tell(proposal.id, observation);
        }
        deeper += usize::from(best < 19.0);
    }
    (deeper, seconds)
}

#[test]
fn a_second_search_leaves_the_valley_of_the_first() {
    let alone = Settings {
        second_after: usize::MAX,
        ..Settings::default()
    };
    let (alone, none) = found(&alone);
    let (both, some) = found(&Settings::default());
    assert!(none == 0 && some > 0);
    assert!(both > alone, "{both} against {alone} of 6");
}

#[test]
fn a_space_that_is_used_up_ends_both() {
    let sizes: Vec<Value> = (0..9).map(Value::Int).collect();
    let named = ["a", "b"].map(|name| Parameter::new(name, sizes.clone()));
    let space = Space::build("test", named.into(), &[], &Environment::default()).unwrap();
    let settings = Settings {
        second_after: 10,
        ..Settings::default()
    };
    let mut search = evolve_with(&space, Seed(1), &[], settings);
    let mut tried = std::collections::HashSet::new();
    while let Some(proposal) = search.ask() {
        assert!(tried.insert(proposal.config.clone()));
        search.tell(proposal.id, Observation::exactly(Micros::new(5.0).unwrap()));
    }
    assert_eq!(tried.len(), 81);
}
