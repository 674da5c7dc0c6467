use crate::{BareSpace, SpaceError};
use std::fmt::Write as _;
use std::path::Path;

fn parse(text: &str) -> BareSpace {
    BareSpace::parse(text, Path::new("many.yaml")).unwrap()
}

/// Enough for a quadratic algorithm to take many minutes.
const MANY: usize = 100_000;

#[test]
fn a_hundred_thousand_keys_are_read_checked_and_built() {
    let mut text = "version: 1\nparameters:\n".to_owned();
    for number in 0..MANY {
        writeln!(text, "  P{number}: {{ values: [{number}] }}").unwrap();
    }
    let last = MANY - 1;
    text.push_str("  A: { values: [1, 2, 4, 8] }\n");
    writeln!(text, "constraints:\n  - rule: A * P{last} >= 2 * P{last}").unwrap();
    writeln!(text, "  - rule: P0 + A < P{last}").unwrap();
    let space = parse(&text).space().unwrap();
    assert_eq!(space.parameters().len(), MANY + 1);
    assert_eq!(space.count(), 3);
    assert_eq!(space.groups().len(), MANY - 1);
}

#[test]
fn what_is_wrong_in_each_of_many_entries_is_told_once() {
    let mut text = "parameters:\n".to_owned();
    for number in 0..MANY {
        writeln!(text, "  P{number}: {{ values: [] }}").unwrap();
    }
    let error = BareSpace::parse(&text, Path::new("many.yaml")).unwrap_err();
    assert_eq!(error.items().len(), MANY);
}

/// Each parameter is at most the next one.
fn chain(length: usize) -> BareSpace {
    let mut text = "parameters:\n".to_owned();
    for number in 0..length {
        writeln!(text, "  P{number}: {{ values: [1, 2] }}").unwrap();
    }
    text.push_str("constraints:\n");
    for number in 1..length {
        writeln!(text, "  - rule: P{} <= P{number}", number - 1).unwrap();
    }
    parse(&text)
}

#[test]
fn a_long_chain_of_constraints_is_built_and_a_longer_one_refused() {
    assert_eq!(chain(700).space().unwrap().count(), 701);
    let error = chain(5000).space().unwrap_err();
    assert!(matches!(error, SpaceError::TooManyCoupled(5000)), "{error}");
}
