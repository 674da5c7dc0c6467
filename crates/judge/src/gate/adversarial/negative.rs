//! Inputs without positive numbers, for plans with a reference kernel.
//!
//! A maximum that starts at zero, or bits of floats that are compared as whole numbers, are correct where
//! each row has a positive number, as nearly all rows of random numbers have.

use super::{CaseInputs, beside_reference, is_plain_float};
use std::sync::Arc;
use tuner_core::fill::Fill;
use tuner_core::plan::{Plan, PlanArgument};

/// Builds the inputs: declared values, those above zero with the other sign. `None` if no input has both signs
/// alike. All candidates share them.
pub(super) fn make(plan: &Plan, seed: u64) -> Option<CaseInputs> {
    if !plan.arguments.iter().any(is_symmetric) {
        return None;
    }
    beside_reference(plan, seed, |index, argument| {
        if !is_symmetric(argument) {
            return None;
        }
        let bytes = argument.content(seed, index).ok()?;
        Some(negated(&bytes, argument))
    })
}

/// Reports whether the fill of a floating-point input produces each number with either sign.
fn is_symmetric(argument: &PlanArgument) -> bool {
    let symmetric = match argument.fill {
        Fill::Normal { mean, .. } => mean == 0.0,
        Fill::Uniform { min, max } => min == -max,
        _ => false,
    };
    symmetric && is_plain_float(argument)
}

fn negated(bytes: &[u8], argument: &PlanArgument) -> Arc<[u8]> {
    let mut made = Vec::with_capacity(bytes.len());
    for value in bytes.chunks_exact(argument.element.size()) {
        let number = argument.element.decode(value);
        argument.element.encode(-number.abs(), &mut made);
    }
    made.into()
}
