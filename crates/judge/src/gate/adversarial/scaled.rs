//! Floating-point inputs far from zero, for plans with a reference kernel.
//!
//! An exponential without the maximum subtracted, or a conversion without saturation, is correct on N(0, 1).

use super::{CaseInputs, beside_reference, is_plain_float};
use std::sync::Arc;
use tuner_core::fill::Fill;
use tuner_core::plan::{Plan, PlanArgument};

/// Factor: exponentials of most numbers leave the range of float32, and 8-bit floats hold nearly all of them.
const FACTOR: f64 = 64.0;

/// Builds the inputs; `None` if the space gives each floating-point input a fill. All candidates share them.
pub(super) fn make(plan: &Plan, seed: u64) -> Option<CaseInputs> {
    if !plan.arguments.iter().any(is_default) {
        return None;
    }
    beside_reference(plan, seed, |index, argument| {
        if !is_default(argument) {
            return None;
        }
        let bytes = argument.content(seed, index).ok()?;
        let mut made = Vec::with_capacity(bytes.len());
        for value in bytes.chunks_exact(argument.element.size()) {
            let number = argument.element.decode(value);
            argument.element.encode(FACTOR * number, &mut made);
        }
        Some(Arc::from(made))
    })
}

/// Reports whether an input of floating-point numbers has the default fill, which promises no range.
fn is_default(argument: &PlanArgument) -> bool {
    is_plain_float(argument) && argument.fill == Fill::default_for(argument.element)
}
