//! The contract of every strategy: valid, never twice, all in the end, whatever the order of tells.

use proptest::prelude::*;
use rand::SeedableRng as _;
use std::collections::BTreeSet;
use tuner::evolve::{STRATEGIES, Told, strategy};
use tuner::record::Verdict;
use tuner::space::{Config, Space};
use tuner::units::{Micros, Seed};

const RULES: [&str; 4] = [
    "p0 * p1 <= 12",
    "p0 % p2 == 0",
    "p1 + p2 != 5",
    "p0 * p1 % 2 == 0 or p2 > 1",
];

/// Deterministic results: some fail, the rest have a slope.
fn outcome(config: &Config) -> Told {
    let sum: u32 = config.choices().iter().map(|choice| choice * 7 % 11).sum();
    match sum % 5 {
        0 => Told::Failed(Verdict::CompileFailed),
        _ => Told::Time(Micros::new(f64::from(sum) + 1.0).unwrap()),
    }
}

/// Asks until nothing comes any more, telling in a random order with random delay.
fn exhaust(space: &Space, name: &str, seed: u64, chaos: u64) -> Vec<Config> {
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(chaos);
    let mut search = strategy(name, space, Seed(seed), &[space.default_config()]).unwrap();
    let mut flying = Vec::new();
    let mut asked = Vec::new();
    loop {
        let proposal = search.ask();
        let nothing = proposal.is_none();
        if let Some(proposal) = proposal {
            asked.push(proposal.config.clone());
            flying.push(proposal);
        } else if flying.is_empty() {
            assert!(search.exhausted(), "{name} gave up early");
            return asked;
        }
        while !flying.is_empty() && (nothing || rng.random_bool(0.5)) {
            let place = rng.random_range(0..flying.len());
            let told = flying.swap_remove(place);
            search.tell(told.id, outcome(&told.config));
            // Nonsense that a careless caller might say.
            search.tell(told.id, outcome(&told.config));
            search.tell(u64::MAX, outcome(&told.config));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn every_strategy_proposes_each_valid_configuration_exactly_once(
        sizes in proptest::collection::vec(1_usize..6, 3..5),
        rules in proptest::sample::subsequence(RULES.to_vec(), 0..=3),
        seed in 0_u64..1000,
        chaos: u64,
    ) {
        let space = super::space(&sizes, &rules);
        for name in STRATEGIES {
            let asked = exhaust(&space, name, seed, chaos);
            prop_assert!(asked.iter().all(|config| space.contains(config)));
            let unique: BTreeSet<&Config> = asked.iter().collect();
            prop_assert_eq!(unique.len(), asked.len(), "{} repeats itself", name);
            prop_assert_eq!(asked.len() as u128, space.count());
        }
    }

    #[test]
    fn the_same_seed_and_history_give_the_same_proposals(seed in 0_u64..1000, chaos: u64) {
        let space = super::space(&[5, 5, 5, 4], &RULES[..2]);
        for name in STRATEGIES {
            let first = exhaust(&space, name, seed, chaos);
            prop_assert_eq!(first, exhaust(&space, name, seed, chaos));
        }
    }
}

#[test]
fn another_seed_gives_another_order() {
    let space = super::space(&[9, 9, 9], &["p0 * p1 <= 40"]);
    for name in STRATEGIES {
        assert_ne!(
            exhaust(&space, name, 1, 0),
            exhaust(&space, name, 2, 0),
            "{name}"
        );
    }
}

#[test]
fn start_configurations_come_first_and_only_where_valid_and_new() {
    let space = super::space(&[4, 4], &["p0 != p1"]);
    let [good, bad] = [Config::new([1, 2]), Config::new([1, 1])];
    for name in STRATEGIES {
        let start = [bad.clone(), good.clone(), good.clone()];
        let mut search = strategy(name, &space, Seed(1), &start).unwrap();
        let first = search.ask().unwrap();
        assert_eq!(
            (first.config, first.origin),
            (good.clone(), "start"),
            "{name}"
        );
        assert_ne!(search.ask().unwrap().config, good, "{name}");
    }
}

#[test]
fn observed_configurations_are_not_proposed_again() {
    let space = super::space(&[3, 3], &[]);
    for name in STRATEGIES {
        let mut search = strategy(name, &space, Seed(1), &[]).unwrap();
        for index in 0..8 {
            let config = space.config_at(index).unwrap();
            search.observe(&config, outcome(&config));
        }
        assert_eq!(
            search.ask().map(|last| last.config),
            space.config_at(8),
            "{name}"
        );
        assert!(search.ask().is_none() && search.exhausted(), "{name}");
    }
}

#[test]
fn a_huge_space_is_searched_without_listing_it() {
    let space = super::space(&[64; 12], &["p0 * p1 <= 512", "p2 % p3 == 0"]);
    assert!(space.count() > 1_u128 << 60);
    for name in STRATEGIES {
        let mut search = strategy(name, &space, Seed(3), &[]).unwrap();
        let mut seen = BTreeSet::new();
        for _ in 0..300 {
            let proposal = search.ask().unwrap();
            search.tell(proposal.id, outcome(&proposal.config));
            assert!(
                space.contains(&proposal.config) && seen.insert(proposal.config),
                "{name}"
            );
        }
    }
}

#[test]
fn random_draws_are_uniform_over_what_is_left() {
    // The first draw over many seeds: 6 configurations, 3000 draws, chi-square with 5 degrees of
    // freedom stays under 20.5 with probability 0.999.
    let space = super::space(&[3, 3], &["p0 != p1"]);
    let mut counts = [0_u32; 6];
    for seed in 0..3000 {
        let mut search = strategy("random", &space, Seed(seed), &[]).unwrap();
        for _ in 0..3 {
            search.ask();
        }
        let fourth = search.ask().unwrap().config;
        counts[space.index_of(&fourth).unwrap() as usize] += 1;
    }
    let chi: f64 = counts
        .iter()
        .map(|&n| (f64::from(n) - 500.0).powi(2) / 500.0)
        .sum();
    assert!(chi < 20.5, "{counts:?}: {chi}");
}

#[test]
fn an_unknown_strategy_is_told_the_known_ones() {
    let space = super::space(&[2], &[]);
    let error = strategy("magic", &space, Seed(1), &[])
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("`magic`") && error.contains("evolve, random, local"),
        "{error}"
    );
}
