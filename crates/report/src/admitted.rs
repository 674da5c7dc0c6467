//! Configurations that satisfy constraints.

use tuner_core::record::{ConfigValues, Definition};
use tuner_space::{EvaluateError, Expr, Val};
use tuner_store::{Admits, Board};

/// Returns a function that reports whether a configuration satisfies the constraints of a board's latest
/// run.
#[must_use]
pub fn admitted(board: &Board) -> Admits {
    admitted_by(&board.definition, board)
}

/// Returns a function that reports whether a configuration of a board satisfies the constraints of a search
/// space. A rule over a name that the configuration or the device lacks counts as satisfied.
#[must_use]
pub fn admitted_by(definition: &Definition, board: &Board) -> Admits {
    let rules = definition.constraints.iter();
    let rules: Vec<Expr> = rules
        .filter_map(|one| Expr::parse(&one.rule).ok())
        .collect();
    let derived = definition.derived.iter();
    let derived: Vec<(String, Expr)> = derived
        .filter_map(|(name, text)| Some((name.clone(), Expr::parse(text).ok()?)))
        .collect();
    let constants: ConfigValues = board
        .sizes
        .iter()
        .chain(&board.environment)
        .cloned()
        .collect();
    Box::new(move |config| {
        let mut names = config.clone();
        names.extend(constants.iter().cloned());
        add_derived(&mut names, &derived);
        rules.iter().all(|rule| match rule.evaluate(&names) {
            Ok(value) => Val::from(&value).truth() == Some(true),
            Err(EvaluateError::Fault(_)) => false,
            Err(EvaluateError::Expression(_) | EvaluateError::NoValue) => true,
        })
    })
}

/// Adds the derived values that can be evaluated. One may depend on values before and after it.
fn add_derived(names: &mut ConfigValues, derived: &[(String, Expr)]) {
    let mut left: Vec<&(String, Expr)> = derived.iter().collect();
    loop {
        let before = left.len();
        left.retain(|(name, value)| match value.evaluate(names) {
            Ok(value) => {
                names.push((name.clone(), value));
                false
            }
            Err(_) => true,
        });
        if left.len() == before {
            return;
        }
    }
}
