use super::{Experience, Knowledge};
use crate::encode::Encoder;
use crate::{Observation, Settings, evolve_with_knowledge};
use tuner_core::record::ConfigValues;
use tuner_core::units::{Micros, Seed};
use tuner_core::value::Value;
use tuner_space::{Config, Environment, Parameter, Space};

fn space(parameters: &[(&str, &[i64])]) -> Space {
    let parameters = parameters.iter().map(|(name, values)| {
        let values: Vec<Value> = values.iter().map(|value| Value::Int(*value)).collect();
        Parameter::new(*name, values)
    });
    Space::build("test", parameters.collect(), &[], &Environment::default()).unwrap()
}

const SIZES: [i64; 7] = [1, 2, 4, 8, 16, 32, 64];

fn cube() -> Space {
    space(&[("a", &SIZES), ("b", &SIZES), ("c", &SIZES), ("d", &SIZES)])
}

/// Computes a time with interactions and a cliff; `shift` moves the best.
fn time(choices: &[u32], shift: u32) -> f64 {
    let far = |at: usize, best: u32| f64::from(choices[at].abs_diff((best + shift) % 7));
    let cliff = if choices[0] + choices[1] > 9 {
        4.0
    } else {
        0.0
    };
    10.0 + far(0, 4) * far(1, 2) + far(1, 2) + 2.0 * far(2, 5) + far(3, 1) + cliff
}

fn experience(space: &Space, log: impl Fn(usize, &Config) -> f64) -> Experience {
    let configs = (0..space.count()).filter_map(|at| space.config_at(at));
    let row = |(at, config): (usize, Config)| -> (ConfigValues, Option<Micros>) {
        (space.values(&config), Micros::new(log(at, &config).exp()))
    };
    Experience {
        name: "another device".to_owned(),
        rows: configs.enumerate().map(row).collect(),
    }
}

/// Returns the mean score after that number of trials.
fn score(space: &Space, knowledge: &Knowledge, evals: &[usize]) -> Vec<f64> {
    const SEEDS: u64 = 6;
    let most = evals.iter().copied().max().unwrap_or(0);
    let mut scores = vec![0.0; evals.len()];
    for seed in 1..=SEEDS {
        let settings = Settings::default();
        let mut search = evolve_with_knowledge(space, Seed(seed), &[], settings, knowledge);
        let mut best = f64::INFINITY;
        for done in 1..=most {
            let proposal = search.ask().unwrap();
            let time = time(proposal.config.choices(), 0);
            best = best.min(time);
            search.tell(
                proposal.id,
                Observation::exactly(Micros::new(time).unwrap()),
            );
            for (score, evals) in scores.iter_mut().zip(evals) {
                *score += if *evals == done {
                    10.0 / best / SEEDS as f64
                } else {
                    0.0
                };
            }
        }
    }
    scores
}

#[test]
fn what_becomes_known_in_the_middle_of_a_search_helps_it_from_then_on() {
    const SEEDS: u64 = 8;
    let space = cube();
    let right = experience(&space, |_, config| time(config.choices(), 0).ln());
    let knowledge = Knowledge::new(&space, &[right]);
    let best_after = |informed: bool, seed: u64| {
        let none = Knowledge::default();
        let mut search = evolve_with_knowledge(&space, Seed(seed), &[], Settings::default(), &none);
        let mut best = f64::INFINITY;
        for done in 0..14 {
            if informed && done == 8 {
                search.know(&knowledge);
            }
            let proposal = search.ask().unwrap();
            let time = time(proposal.config.choices(), 0);
            best = best.min(time);
            let told = Observation::exactly(Micros::new(time).unwrap());
            search.tell(proposal.id, told);
        }
        best
    };
    let sum = |informed: bool| {
        (1..=SEEDS)
            .map(|seed| best_after(informed, seed))
            .sum::<f64>()
    };
    let (without, with) = (sum(false), sum(true));
    assert!(with < 0.9 * without, "{with} against {without}");
    assert!(with < 10.5 * SEEDS as f64, "{with}");
}

#[test]
fn one_that_is_right_is_believed_at_once_and_one_that_is_wrong_does_no_harm() {
    let space = cube();
    let evals = [6, 50];
    let cold = score(&space, &Knowledge::default(), &evals);
    let knowing = |log: &dyn Fn(usize, &Config) -> f64| {
        let knowledge = Knowledge::new(&space, &[experience(&space, log)]);
        assert!(!knowledge.is_empty());
        score(&space, &knowledge, &evals)
    };
    let truth = |config: &Config| time(config.choices(), 0).ln();
    let right = knowing(&|at, config| 1.3 * truth(config) + 0.02 * ((at * 37 % 11) as f64));
    assert!(
        right[0] > 0.95 && right[0] > cold[0] + 0.1,
        "{right:?} {cold:?}"
    );
    let inverted = knowing(&|_, config| -truth(config));
    let random = knowing(&|at, _| ((at * 7919 % 1009) as f64) / 500.0);
    let unrelated = knowing(&|_, config| time(config.choices(), 3).ln());
    for wrong in [inverted, random, unrelated] {
        assert!(wrong[1] >= cold[1] - 0.01, "{wrong:?} {cold:?}");
    }
}

#[test]
fn parameters_are_matched_by_name_and_what_does_not_fit_is_handled() {
    let here = space(&[
        ("a", &SIZES),
        ("new", &[0, 1]),
        ("b", &[1, 2, 4]),
        ("fixed", &[3]),
    ]);
    let encoder = Encoder::new(&here, true, true);
    let mut rows = Vec::new();
    for a in SIZES {
        for b in [1, 2, 4, 8] {
            for (fixed, gone) in [(3, 0), (3, 1), (5, 0)] {
                // The best is a = 8 and b = 8, a value outside this space. With another constant
                // the order of times is reversed.
                let far = (a as f64 / 8.0).log2().abs() + (8.0 / b as f64).log2();
                let time = if fixed == 3 {
                    10.0 + far + f64::from(gone)
                } else {
                    30.0 - far
                };
                let value = |name: &str, value: i64| (name.to_owned(), Value::Int(value));
                let gone = i64::from(gone);
                let row = vec![
                    value("gone", gone),
                    value("b", b),
                    value("a", a),
                    value("fixed", fixed),
                ];
                rows.push((row, Micros::new(time)));
            }
        }
    }
    let name = "before the last commit".to_owned();
    let knowledge = Knowledge::new(&here, &[Experience { name, rows }]);
    let expected = |choices: [u32; 4]| {
        let config = Config::new(choices);
        knowledge.input(&encoder, &config, 1.0).mean
    };
    let best = expected([3, 0, 2, 0]);
    assert!((best - expected([3, 1, 2, 0])).abs() < 1e-9);
    for worse in [[0, 0, 2, 0], [6, 0, 2, 0], [3, 0, 0, 0]] {
        assert!(best < expected(worse) - 0.01, "{worse:?}");
    }
    // The source's best configuration is outside this space: its nearest neighbour is a candidate.
    assert_eq!(knowledge.best(1)[0].choices()[0], 3);
}

#[test]
fn what_shares_no_parameter_or_holds_no_time_is_no_source() {
    let here = space(&[("a", &SIZES)]);
    let stranger = space(&[("x", &SIZES)]);
    let strange = experience(&stranger, |at, _| at as f64 / 10.0);
    let mut failed = experience(&here, |_, _| 0.0);
    failed.rows.iter_mut().for_each(|row| row.1 = None);
    assert!(Knowledge::new(&here, &[strange, failed]).is_empty());
}

#[test]
fn a_few_results_spread_over_the_space_say_something_of_the_others() {
    let space = cube();
    let mut few = experience(&space, |_, config| time(config.choices(), 0).ln());
    few.rows = few.rows.into_iter().step_by(17).collect();
    let knowledge = Knowledge::new(&space, &[few]);
    let cold = score(&space, &Knowledge::default(), &[10]);
    let knowing = score(&space, &knowledge, &[10]);
    assert!(knowing[0] > cold[0] + 0.05, "{knowing:?} {cold:?}");
}
