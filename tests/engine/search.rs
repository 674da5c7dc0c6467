//! The contract of every strategy: valid, never twice, all in the end, whatever the order of tells.

use proptest::prelude::*;
use rand::SeedableRng as _;
use rand_distr::Distribution as _;
use std::collections::BTreeSet;
use tuner_core::record::Verdict;
use tuner_core::units::{Micros, Seed};
use tuner_search::{CompileStats, Observation, Proposal, Ready, StrategyName, strategy};
use tuner_space::{Config, Space};

const RULES: [&str; 4] = [
    "p0 * p1 <= 12",
    "p0 % p2 == 0",
    "p1 + p2 != 5",
    "p0 * p1 % 2 == 0 or p2 > 1",
];

/// Deterministic results: some fail, the rest have a slope.
fn outcome(config: &Config) -> Observation {
    let sum: u32 = config.choices().iter().map(|choice| choice * 7 % 11).sum();
    match sum % 5 {
        0 => Observation::Failed(Verdict::CompileFailed),
        1 => Observation::Unknown,
        _ => Observation::exactly(Micros::new(f64::from(sum) + 1.0).unwrap()),
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
        for name in StrategyName::ALL.iter().map(|strategy| strategy.name()) {
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
        for name in StrategyName::ALL.iter().map(|strategy| strategy.name()) {
            let first = exhaust(&space, name, seed, chaos);
            prop_assert_eq!(first, exhaust(&space, name, seed, chaos));
        }
    }
}

#[test]
fn another_seed_gives_another_order() {
    let space = super::space(&[9, 9, 9], &["p0 * p1 <= 40"]);
    for name in StrategyName::ALL.iter().map(|strategy| strategy.name()) {
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
    for name in StrategyName::ALL.iter().map(|strategy| strategy.name()) {
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
    for name in StrategyName::ALL.iter().map(|strategy| strategy.name()) {
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
    for name in StrategyName::ALL.iter().map(|strategy| strategy.name()) {
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

/// One ready proposal, about which nothing is known.
fn ready(id: u64) -> Ready {
    Ready { id, facts: None }
}

/// Drives a search with a window of candidates of which it chooses, and gives up some.
fn chosen(space: &Space, name: &str, seed: u64, window: usize) -> Vec<Config> {
    let mut search = strategy(name, space, Seed(seed), &[]).unwrap();
    let mut flying: Vec<Proposal> = Vec::new();
    let mut judged = Vec::new();
    loop {
        while flying.len() < window {
            let Some(proposal) = search.ask() else { break };
            flying.push(proposal);
        }
        if flying.is_empty() {
            assert!(search.exhausted(), "{name} gave up early");
            return judged;
        }
        let places = |flying: &[Proposal]| -> Vec<Ready> {
            flying.iter().map(|each| ready(each.id)).collect()
        };
        if flying.len() > 1
            && flying.len() == window
            && let Some(place) = search.withdraw(&places(&flying))
        {
            flying.remove(place);
        }
        let place = search.choose(&places(&flying));
        let next = flying.remove(place);
        search.tell(next.id, outcome(&next.config));
        judged.push(next.config);
    }
}

#[test]
fn what_is_chosen_late_or_given_up_is_still_judged_once_in_the_end() {
    let space = super::space(&[5, 5, 4], &RULES[..1]);
    for name in StrategyName::ALL.iter().map(|strategy| strategy.name()) {
        for window in [1, 2, 7, 40] {
            let judged = chosen(&space, name, 3, window);
            let unique: BTreeSet<&Config> = judged.iter().collect();
            assert_eq!(unique.len(), judged.len(), "{name} repeats itself");
            assert_eq!(judged.len() as u128, space.count(), "{name} {window}");
        }
    }
}

#[test]
fn a_space_where_everything_fails_is_searched_to_its_end() {
    let space = super::space(&[6, 6, 4], &["p0 != p1"]);
    for name in StrategyName::ALL.iter().map(|strategy| strategy.name()) {
        let mut search = strategy(name, &space, Seed(5), &[space.default_config()]).unwrap();
        let mut count = 0_u128;
        while let Some(proposal) = search.ask() {
            search.tell(proposal.id, Observation::Failed(Verdict::LaunchFailed));
            count += 1;
        }
        assert_eq!(count, space.count(), "{name}");
    }
}

#[test]
fn a_space_of_one_configuration_is_one_proposal() {
    let space = super::space(&[1, 1], &[]);
    for name in StrategyName::ALL.iter().map(|strategy| strategy.name()) {
        let mut search = strategy(name, &space, Seed(5), &[]).unwrap();
        let only = search.ask().unwrap();
        assert!(search.ask().is_none(), "{name}");
        assert_eq!(search.choose(&[ready(only.id)]), 0, "{name}");
        search.tell(only.id, Observation::exactly(Micros::new(1.0).unwrap()));
        assert!(search.ask().is_none() && search.exhausted(), "{name}");
    }
}

/// A smooth time that a model can learn, microseconds.
fn valley(config: &Config) -> f64 {
    let far = |(at, choice): (usize, &u32)| (f64::from(*choice) - 4.0).powi(2) * (1.0 + at as f64);
    10.0 + config.choices().iter().enumerate().map(far).sum::<f64>()
}

/// Log of the best time after so many evaluations with sixteen in flight, mean over seeds: by the
/// search's choice among those compiled, or in the order proposed.
fn valley_with_window(choose: bool) -> f64 {
    let space = super::space(&[9, 9, 9, 9], &[]);
    let run = |seed| {
        let mut search = strategy("evolve", &space, Seed(seed), &[]).unwrap();
        let mut flying: Vec<Proposal> = Vec::new();
        let mut best = f64::INFINITY;
        for _ in 0..40 {
            while flying.len() < 16 {
                flying.push(search.ask().unwrap());
            }
            let list: Vec<Ready> = flying.iter().map(|each| ready(each.id)).collect();
            let place = if choose { search.choose(&list) } else { 0 };
            let next = flying.remove(place);
            let time = valley(&next.config);
            best = best.min(time);
            search.tell(next.id, Observation::exactly(Micros::new(time).unwrap()));
        }
        best.ln()
    };
    (1..=12).map(run).sum::<f64>() / 12.0
}

#[test]
fn choosing_among_those_compiled_beats_the_order_they_were_proposed_in() {
    let (chosen, in_order) = (valley_with_window(true), valley_with_window(false));
    assert!(chosen < in_order, "{chosen} {in_order}");
}

/// Log of the best time when sixteen candidates are compiled to choose from and the compiler's
/// company predicts each of them, or not. The times have no pattern that a model could learn.
fn best_after(space: &Space, seed: u64, predicts: bool, evals: usize) -> f64 {
    let mut search = strategy("evolve", space, Seed(seed), &[]).unwrap();
    let truth = |config: &Config| {
        let hash = config.choices().iter().fold(17_u64, |hash, choice| {
            (hash ^ u64::from(*choice))
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .rotate_left(23)
        });
        10.0 + ((hash >> 40) % 1000) as f64
    };
    let told_of = |flying: &[Proposal]| -> Vec<Ready> {
        let facts = |each: &Proposal| CompileStats {
            predicted: Micros::new(3.0 * truth(&each.config)),
            ..CompileStats::default()
        };
        flying
            .iter()
            .map(|each| Ready {
                id: each.id,
                facts: predicts.then(|| facts(each)),
            })
            .collect()
    };
    let mut flying: Vec<Proposal> = Vec::new();
    let mut best = f64::INFINITY;
    for _ in 0..evals {
        for _ in 0..4 {
            if flying.len() == 16
                && let Some(place) = search.withdraw(&told_of(&flying))
            {
                flying.remove(place);
            }
            if flying.len() < 16 {
                flying.push(search.ask().unwrap());
            }
        }
        let next = flying.remove(search.choose(&told_of(&flying)));
        let time = truth(&next.config);
        best = best.min(time);
        search.tell(next.id, Observation::exactly(Micros::new(time).unwrap()));
    }
    best.ln()
}

#[test]
fn a_prediction_that_proves_right_decides_what_is_measured() {
    let space = super::space(&[12, 12, 12], &[]);
    let mean = |predicts| -> f64 {
        let best = |seed| best_after(&space, seed, predicts, 60);
        (1..=8).map(best).sum::<f64>() / 8.0
    };
    let (with, without) = (mean(true), mean(false));
    assert!(
        with < without - 0.2,
        "log time with {with}, without {without}"
    );
}

#[test]
fn with_errors_told_the_search_does_not_chase_noise() {
    // Log-normal noise of 20 %; what counts is how fast the later proposals really are.
    let space = super::space(&[9, 9, 9, 9], &[]);
    let later = |error: f64, seed: u64| {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        let noise = rand_distr::Normal::new(0.0, 0.2).unwrap();
        let mut search = strategy("evolve", &space, Seed(seed), &[]).unwrap();
        let mut sum = 0.0;
        for step in 0..80 {
            let proposal = search.ask().unwrap();
            let truth = valley(&proposal.config);
            if step >= 40 {
                sum += truth.ln() / 40.0;
            }
            let time = Micros::new(truth * f64::exp(noise.sample(&mut rng))).unwrap();
            search.tell(
                proposal.id,
                Observation::Time {
                    time,
                    error,
                    other: None,
                },
            );
        }
        sum
    };
    let mean = |error| (1..=10).map(|seed| later(error, seed)).sum::<f64>() / 10.0;
    let (told, not_told) = (mean(0.2), mean(0.0));
    assert!(told < not_told, "{told} {not_told}");
}
