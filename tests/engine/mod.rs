//! The search, recorded files and the pipeline, through the library.

mod free;
mod known;
mod pipeline;
mod recorded;
mod search;
mod toy;

use tuner_core::value::Value;
use tuner_space::{Constraint, Environment, Expr, Parameter, Space};

/// A space of integer parameters with the given numbers of values and Python constraints.
fn space(sizes: &[usize], rules: &[&str]) -> Space {
    let parameters = sizes
        .iter()
        .enumerate()
        .map(|(at, &size)| {
            let values: Vec<Value> = (1..=size as i64).map(Value::Int).collect();
            Parameter::new(format!("p{at}"), values)
        })
        .collect();
    let constraints: Vec<Constraint> = rules
        .iter()
        .map(|rule| Constraint {
            rule: Expr::parse(rule).unwrap(),
            why: None,
        })
        .collect();
    Space::build("toy", parameters, &constraints, &Environment::default()).unwrap()
}
