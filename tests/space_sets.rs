//! The compressed set of configurations is exactly the set the constraints describe.

use proptest::prelude::*;
use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};
use tuner_core::value::Value;
use tuner_space::{
    BareSpace, Config, Constraint, Environment, Expr, Neighbourhood, Parameter, Space, SpaceError,
};

fn ints(values: impl IntoIterator<Item = i64>) -> Vec<Value> {
    values.into_iter().map(Value::Int).collect()
}

fn rules(texts: &[&str]) -> Vec<Constraint> {
    texts
        .iter()
        .map(|text| Constraint {
            rule: Expr::parse(text).unwrap(),
            why: None,
        })
        .collect()
}

fn build(parameters: Vec<Parameter>, texts: &[&str]) -> Space {
    Space::build("test", parameters, &rules(texts), &Environment::default()).unwrap()
}

/// Every combination, valid or not.
fn all(space: &Space) -> Vec<Config> {
    let mut configs = vec![Vec::new()];
    for parameter in space.parameters() {
        configs = configs
            .into_iter()
            .flat_map(|config| {
                (0..parameter.values.len() as u32).map(move |choice| {
                    let mut longer = config.clone();
                    longer.push(choice);
                    longer
                })
            })
            .collect();
    }
    configs.into_iter().map(Config::new).collect()
}

/// The valid ones, judged one by one by evaluating the constraints.
fn listed(space: &Space) -> BTreeSet<Config> {
    let valid = |config: &Config| space.reject_reason(config).is_none();
    all(space).into_iter().filter(valid).collect()
}

/// Checks every operation of a space against the list of its configurations.
fn check_against_list(space: &Space, valid: &BTreeSet<Config>) {
    assert_eq!(space.count(), valid.len() as u128);
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut indices = BTreeSet::new();
    for config in all(space) {
        assert_eq!(space.contains(&config), valid.contains(&config));
        match space.index_of(&config) {
            Some(index) => {
                assert!(valid.contains(&config) && indices.insert(index));
                assert_eq!(space.config_at(index).as_ref(), Some(&config));
            }
            None => assert!(!valid.contains(&config)),
        }
    }
    assert_eq!(indices.last().map_or(0, |last| last + 1), space.count());
    assert_eq!(space.config_at(space.count()), None);
    match space.draw(&mut rng) {
        Some(config) => assert!(valid.contains(&config)),
        None => assert!(valid.is_empty()),
    }
    for config in all(space).iter().step_by(7) {
        check_around(space, valid, config, &mut rng);
    }
}

/// Neighbours, completions and repairs of one combination.
fn check_around(space: &Space, valid: &BTreeSet<Config>, config: &Config, rng: &mut ChaCha8Rng) {
    let differ = |other: &Config| -> Vec<usize> {
        let pairs = config.choices().iter().zip(other.choices()).enumerate();
        pairs
            .filter(|(_, (a, b))| a != b)
            .map(|(at, _)| at)
            .collect()
    };
    let found = space.neighbours(config, Neighbourhood::Hamming);
    let expected: BTreeSet<&Config> = valid
        .iter()
        .filter(|other| differ(other).len() == 1)
        .collect();
    assert_eq!(found.iter().collect::<BTreeSet<_>>(), expected);
    assert_eq!(found.len(), expected.len());
    for other in space.neighbours(config, Neighbourhood::Adjacent) {
        let at = differ(&other)[0];
        assert!(valid.contains(&other));
        let step = config.choices()[at].abs_diff(other.choices()[at]);
        assert!(step == 1 || !space.parameters()[at].ordered);
    }
    let fixed: Vec<Option<u32>> = config
        .choices()
        .iter()
        .enumerate()
        .map(|(at, choice)| (at % 2 == 0).then_some(*choice))
        .collect();
    let agrees = |other: &Config| {
        let pairs = fixed.iter().zip(other.choices());
        pairs
            .into_iter()
            .all(|(fixed, choice)| fixed.is_none_or(|fixed| fixed == *choice))
    };
    match space.complete(&fixed, rng) {
        Some(completed) => assert!(valid.contains(&completed) && agrees(&completed)),
        None => assert!(!valid.iter().any(agrees)),
    }
    let order: Vec<usize> = (0..config.choices().len()).rev().collect();
    match space.nearest(config.choices(), &order, rng) {
        Some(near) => {
            assert!(valid.contains(&near));
            assert!(near == *config || !valid.contains(config));
            // The first in order is kept where any valid configuration has it.
            let last = order[0];
            let possible = valid
                .iter()
                .any(|other| other.choices()[last] == config.choices()[last]);
            assert_eq!(near.choices()[last] == config.choices()[last], possible);
        }
        None => assert!(valid.is_empty()),
    }
}

fn values() -> impl Strategy<Value = Vec<Value>> {
    let one = prop_oneof![
        8 => (-3_i64..20).prop_map(Value::Int),
        1 => prop::sample::select(vec![0.5, 1.5, 2.0]).prop_map(Value::Float),
        1 => any::<bool>().prop_map(Value::Bool),
    ];
    prop::collection::btree_set(one, 1..5).prop_map(|values| values.into_iter().collect())
}

fn rule() -> impl Strategy<Value = String> {
    let name = || prop::sample::select(vec!["a", "b", "c", "d", "e"]).prop_map(str::to_owned);
    let leaf = prop_oneof![3 => name(), 1 => (0_i64..12).prop_map(|n| n.to_string())];
    let term = leaf.prop_recursive(3, 12, 2, |inner| {
        let operators = vec!["+", "-", "*", "*", "//", "%", "/"];
        prop_oneof![
            5 => (inner.clone(), prop::sample::select(operators), inner.clone())
                .prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("min({a}, {b})")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("ceil_div({a}, {b})")),
            1 => inner.prop_map(|a| format!("abs({a})")),
        ]
    });
    let comparison = (
        term.clone(),
        prop::sample::select(vec!["<", "<=", "==", "!=", ">", ">="]),
        term,
    )
        .prop_map(|(a, op, b)| format!("{a} {op} {b}"));
    prop_oneof![
        4 => comparison.clone(),
        1 => (comparison.clone(), comparison.clone()).prop_map(|(a, b)| format!("{a} or {b}")),
        1 => (comparison.clone(), comparison.clone()).prop_map(|(a, b)| format!("not ({a} and {b})")),
        1 => (comparison.clone(), comparison.clone()).prop_map(|(a, b)| format!("({a}) if {b} else True")),
        1 => (name(), name()).prop_map(|(a, b)| format!("{a} in [{b}, 2, 4]")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_random_space_equals_the_list_of_its_configurations(
        values in prop::collection::vec(values(), 5),
        texts in prop::collection::vec(rule(), 0..5),
    ) {
        let names = ["a", "b", "c", "d", "e"];
        let parameters = names.iter().zip(values).map(|(name, values)| Parameter::new(*name, values));
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let space = build(parameters.collect(), &texts);
        let valid = listed(&space);
        check_against_list(&space, &valid);
        prop_assert_eq!(space.empty_reason().is_some(), valid.is_empty());
    }

    #[test]
    fn listed_rows_make_exactly_their_space(rows in prop::collection::vec((0..3_u32, 0..4_u32, 0..2_u32), 0..30)) {
        let parameters = vec![
            Parameter::new("a", ints(0..3)),
            Parameter::new("b", ints(0..4)),
            Parameter::new("c", ints(0..2)),
        ];
        let rows: Vec<Config> = rows.into_iter().map(|(a, b, c)| Config::new([a, b, c])).collect();
        let space = Space::from_rows("rows", parameters, &rows).unwrap();
        check_against_list(&space, &rows.into_iter().collect());
    }
}

/// The published spaces where they are at hand, with their counts of valid configurations.
fn published() -> Vec<(BareSpace, u128)> {
    let counts = [
        ("dedispersion", 11_130),
        ("expdist", 294_000),
        ("gemm", 116_928),
        ("hotspot", 349_853),
        ("microhh", 138_600),
        ("prl_2x2", 1_200),
        ("prl_4x4", 10_800),
        ("prl_8x8", 48_720),
    ];
    let mut found = Vec::new();
    for (name, count) in counts {
        let path = std::path::PathBuf::from(format!("../shared/spaces/{name}.json"));
        if let Ok(text) = std::fs::read_to_string(&path) {
            found.push((BareSpace::parse(&text, &path).unwrap(), count));
        }
    }
    found
}

#[test]
fn published_spaces_have_the_counts_of_a_brute_force() {
    for (bare, count) in published() {
        let space = bare.space().unwrap();
        assert_eq!(space.count(), count, "{}", bare.name);
        if space.cartesian() <= 40_000 {
            assert_eq!(listed(&space).len() as u128, count, "{}", bare.name);
        }
    }
}

#[test]
fn the_order_of_parameters_changes_no_count() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    for (mut bare, count) in published() {
        for _ in 0..4 {
            bare.parameters.shuffle(&mut rng);
            bare.constraints.shuffle(&mut rng);
            assert_eq!(bare.space().unwrap().count(), count, "{}", bare.name);
        }
    }
}

/// Chi-square statistic of draws against a uniform distribution, in standard deviations.
fn deviation(counts: &[u64]) -> f64 {
    let cells = counts.len() as f64;
    let expected = counts.iter().sum::<u64>() as f64 / cells;
    let square: f64 = counts
        .iter()
        .map(|n| (*n as f64 - expected).powi(2) / expected)
        .sum();
    (square - (cells - 1.0)) / (2.0 * (cells - 1.0)).sqrt()
}

#[test]
fn draws_are_uniform_by_a_chi_square_test() {
    let names = ["a", "b", "c", "d"];
    let parameters = names.map(|name| Parameter::new(name, ints(1..=6))).to_vec();
    let space = build(
        parameters,
        &["a * b <= 12", "c % d == 0 or a == d", "b != c"],
    );
    for seed in 0..2 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut drawn = vec![0_u64; space.count() as usize];
        let mut completed: BTreeMap<u128, u64> = BTreeMap::new();
        for _ in 0..40_000 {
            let config = space.draw(&mut rng).unwrap();
            drawn[space.index_of(&config).unwrap() as usize] += 1;
            let config = space
                .complete(&[None, Some(1), None, Some(1)], &mut rng)
                .unwrap();
            *completed
                .entry(space.index_of(&config).unwrap())
                .or_default() += 1;
        }
        let completed: Vec<u64> = completed.into_values().collect();
        assert!(deviation(&drawn).abs() < 5.0, "{}", deviation(&drawn));
        assert!(
            deviation(&completed).abs() < 5.0,
            "{}",
            deviation(&completed)
        );
    }
}

#[test]
fn huge_spaces_are_ordinary() {
    let parameters = (0..16)
        .map(|at| Parameter::new(format!("p{at}"), ints(1..=32)))
        .collect();
    let space = build(
        parameters,
        &[
            "p0 * p1 * p2 * p3 <= 4096",
            "p4 + p5 + p6 + p7 <= 90",
            "p8 % p9 == 0 or p10 > p11",
        ],
    );
    assert!(space.count() > 1_000_000_000_000_000);
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for _ in 0..1000 {
        let config = space.draw(&mut rng).unwrap();
        assert_eq!(space.reject_reason(&config), None);
        let index = space.index_of(&config).unwrap();
        assert_eq!(space.config_at(index), Some(config));
    }
}

#[test]
fn a_million_values_are_ordinary() {
    let parameters = vec![
        Parameter::new("n", ints(0..1_000_000)),
        Parameter::new("t", ints([1, 2, 5])),
        Parameter::new("m", ints(0..1_000_000)),
    ];
    let space = build(parameters, &["n % t == 0", "n >= 10"]);
    let expected = 999_990 + 499_995 + 199_998;
    assert_eq!(space.count(), expected * 1_000_000);
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let config = space.draw(&mut rng).unwrap();
    assert!(space.contains(&config));
    assert!(space.bytes() < 200 << 20);
}

#[test]
fn a_constraint_that_couples_too_much_is_named() {
    let parameters = vec![
        Parameter::new("n", ints(0..1_000_000)),
        Parameter::new("m", ints(0..1_000_000)),
    ];
    let constraints = rules(&["n > 1", "n ^ m > 12345"]);
    let error = Space::build("test", parameters, &constraints, &Environment::default());
    let error = error.map(|space| space.count()).unwrap_err();
    assert!(matches!(&error, SpaceError::TooCoupled { rule, .. } if rule == "n ^ m > 12345"));
    insta::assert_snapshot!(error, @"the space needs too much memory: the constraint `n ^ m > 12345` couples 2 parameters with too many values (n, m): shorten their lists, or split the constraint into several over fewer parameters");
}

#[test]
fn more_configurations_than_can_be_counted_is_an_error() {
    let parameters = (0..40)
        .map(|at| Parameter::new(format!("p{at}"), ints(0..1000)))
        .collect();
    let error = Space::build("test", parameters, &[], &Environment::default());
    assert!(matches!(error, Err(SpaceError::TooMany)));
}

#[test]
fn an_empty_space_names_the_constraint_to_blame() {
    let parameters = || {
        vec![
            Parameter::new("a", ints(1..4)),
            Parameter::new("b", ints(1..4)),
        ]
    };
    let reason = |texts: &[&str]| build(parameters(), texts).empty_reason().map(str::to_owned);
    assert_eq!(reason(&["a < b"]), None);
    insta::assert_snapshot!(reason(&["a < b", "a * b > 100"]).unwrap(), @"no configuration satisfies the constraint `a * b > 100`");
    insta::assert_snapshot!(reason(&["a < b", "b < a"]).unwrap(), @"no configuration satisfies the constraint `b < a` together with the constraints before it");
    insta::assert_snapshot!(reason(&["1 > 2"]).unwrap(), @"no configuration satisfies the constraint `1 > 2`");
}

#[test]
fn a_division_by_zero_makes_a_rule_false_and_is_told() {
    let parameters = vec![
        Parameter::new("a", ints(0..3)),
        Parameter::new("b", ints([6])),
    ];
    let space = build(parameters, &["b % a == 0"]);
    assert_eq!(space.count(), 2);
    let reason = space.reject_reason(&Config::new([0, 0])).unwrap();
    insta::assert_snapshot!(reason, @"b % a == 0 (division by zero in `b % a == 0`, which counts as false)");
}

#[test]
fn a_configuration_that_is_none_of_this_space_is_told_as_such() {
    let space = build(vec![Parameter::new("a", ints([1, 2]))], &["a < 2"]);
    for config in [Config::new([0, 0]), Config::new([2])] {
        assert!(!space.contains(&config));
        assert_eq!(space.index_of(&config), None);
        let reason = space.reject_reason(&config).unwrap();
        assert_eq!(reason, "it is not a configuration of this space");
    }
}

#[test]
fn derived_values_depend_on_each_other_in_any_order() {
    let expr = |text: &str| Expr::parse(text).unwrap();
    let derived = |pairs: &[(&str, &str)]| Environment {
        derived: pairs
            .iter()
            .map(|(name, text)| ((*name).to_owned(), expr(text)))
            .collect(),
        constants: vec![("N".to_owned(), Value::Int(12))],
    };
    let parameters = || {
        vec![
            Parameter::new("a", ints(1..6)),
            Parameter::new("b", ints(1..6)),
        ]
    };
    let environment = derived(&[("c", "d + 1"), ("d", "a * b"), ("e", "c + d")]);
    let space = Space::build("test", parameters(), &rules(&["e <= N"]), &environment).unwrap();
    assert_eq!(space.count(), listed(&space).len() as u128);
    assert_eq!(space.count(), 10);
    let circle = derived(&[("c", "d"), ("d", "e + a"), ("e", "d * 2")]);
    let error = Space::build("test", parameters(), &[], &circle).map(|space| space.count());
    insta::assert_snapshot!(error.unwrap_err(), @"derived values depend on each other in a circle: d → e → d: break it by writing one of them without the others");
}

#[test]
fn text_and_mixed_values_take_part_in_constraints() {
    let text = |value: &str| Value::Text(value.into());
    let parameters = vec![
        Parameter::new("mode", vec![text("row"), text("col"), Value::Int(3)]),
        Parameter::new("n", ints(1..5)),
    ];
    let space = build(
        parameters,
        &["mode == 'row' or n > 2", "mode != 3 or n == 4"],
    );
    assert_eq!(space.count(), 4 + 2 + 1);
    check_against_list(&space, &listed(&space));
}

#[test]
fn configurations_are_found_by_their_values() {
    let parameters = vec![
        Parameter {
            default: 1,
            ..Parameter::new("a", ints([1, 2, 4]))
        },
        Parameter::new("b", vec![Value::Float(0.5), Value::Float(2.0)]),
    ];
    let space = build(parameters, &[]);
    let given = |pairs: &[(&str, Value)]| {
        let pairs: Vec<_> = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect();
        space
            .config_from_values(&pairs)
            .map_err(|error| error.to_string())
    };
    assert_eq!(given(&[]), Ok(Config::new([1, 0])));
    assert_eq!(
        given(&[("b", Value::Int(2)), ("a", Value::Int(4))]),
        Ok(Config::new([2, 1]))
    );
    insta::assert_snapshot!(given(&[("aa", Value::Int(2))]).unwrap_err(), @"unknown parameter `aa`: did you mean `a`?");
    insta::assert_snapshot!(given(&[("a", Value::Int(3))]).unwrap_err(), @"`a` does not take 3: its values are 1, 2, 4");
}
