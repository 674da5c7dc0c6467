//! Floating-point inputs far from zero, for plans with a reference kernel.
//!
//! An exponential without the maximum subtracted, or a conversion without saturation, is correct on N(0, 1).

use super::{CaseInputs, beside_reference_if, each_number, is_plain_float};
use tuner_core::fill::Fill;
use tuner_core::plan::{Plan, PlanArgument};

/// Factor: exponentials of most numbers leave the range of float32, and 8-bit floats hold nearly all of them.
const FACTOR: f64 = 64.0;

/// Builds the inputs; `None` if the space gives each floating-point input a fill. All candidates share them.
pub(super) fn make(plan: &Plan, seed: u64) -> Option<CaseInputs> {
    beside_reference_if(plan, seed, is_default, |_, argument, content| {
        each_number(argument, &content, |number| FACTOR * number)
    })
}

/// Reports whether an input of floating-point numbers has the default fill, which promises no range.
fn is_default(argument: &PlanArgument) -> bool {
    is_plain_float(argument) && argument.fill == Fill::default_for(argument.element)
}
