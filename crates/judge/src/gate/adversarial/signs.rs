//! Inputs of one sign, for plans with a reference kernel.
//!
//! A maximum or a minimum that starts at zero, or bits of floats that are compared as whole numbers, are correct
//! where each row has numbers of both signs, as nearly all rows of random numbers have.

use super::{CaseInputs, beside_reference, is_plain_float};
use std::sync::Arc;
use tuner_core::fill::Fill;
use tuner_core::plan::{Plan, PlanArgument};

/// Builds the inputs: magnitudes of the declared values times `sign`. `None` if no input has both signs alike. All
/// candidates share them.
pub(super) fn make(plan: &Plan, seed: u64, sign: f64) -> Option<CaseInputs> {
    if !plan.arguments.iter().any(is_symmetric) {
        return None;
    }
    beside_reference(plan, seed, |index, argument| {
        if !is_symmetric(argument) {
            return None;
        }
        let bytes = argument.content(seed, index).ok()?;
        Some(signed(&bytes, argument, sign))
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

fn signed(bytes: &[u8], argument: &PlanArgument, sign: f64) -> Arc<[u8]> {
    let mut made = Vec::with_capacity(bytes.len());
    for value in bytes.chunks_exact(argument.element.size()) {
        let number = argument.element.decode(value);
        argument.element.encode(sign * number.abs(), &mut made);
    }
    made.into()
}
