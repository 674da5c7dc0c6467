//! Inputs of one sign, for plans with a reference kernel.
//!
//! A maximum or a minimum that starts at zero, or bits of floats that are compared as whole numbers, are correct
//! where each row has numbers of both signs, as nearly all rows of random numbers have.

use super::{CaseInputs, beside_reference_if, each_number, is_plain_float};
use tuner_core::fill::Fill;
use tuner_core::plan::{Plan, PlanArgument};

/// Builds the inputs: magnitudes of the declared values times `sign`. `None` if no input has both signs alike. All
/// candidates share them.
pub(super) fn make(plan: &Plan, seed: u64, sign: f64) -> Option<CaseInputs> {
    beside_reference_if(plan, seed, is_symmetric, |_, argument, content| {
        each_number(argument, &content, |number| sign * number.abs())
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
