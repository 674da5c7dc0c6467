//! Inputs with zeros, for plans with a reference kernel.

use super::{CaseInputs, beside_reference_if, is_plain_float};
use rand::{RngExt as _, SeedableRng as _};
use std::ops::Range;
use std::sync::Arc;
use tuner_core::element::Element;
use tuner_core::fill::Fill;
use tuner_core::plan::{Plan, PlanArgument};

/// Scattered zeros of an input: few, so that most sums contain none.
const SCATTERED_ZEROS: u64 = 64;

/// Minimum number of elements for each scattered zero.
const MIN_ELEMENTS_PER_ZERO: u64 = 16;

/// Builds the inputs with zeros; `None` if a built-in oracle has its own cases, or no input can hold a
/// zero. All candidates share them.
pub(super) fn make(plan: &Plan, seed: u64) -> Option<CaseInputs> {
    beside_reference_if(plan, seed, can_hold_zeros, |index, argument, content| {
        with_zeros(&content, argument, seed ^ index.rotate_right(8))
    })
}

/// Reports whether the fill of a floating-point input can produce zero.
fn can_hold_zeros(argument: &PlanArgument) -> bool {
    let zero = match argument.fill {
        // A fill whose mean is more than three deviations from zero has hardly any values near zero.
        Fill::Normal { mean, std } => mean.abs() <= 3.0 * std,
        Fill::Uniform { min, max } => min <= 0.0 && max >= 0.0,
        _ => false,
    };
    zero && is_plain_float(argument)
}

/// Sets a row and scattered elements to zero. Inputs of a few numbers, such as a scale, are unchanged.
fn with_zeros(bytes: &Arc<[u8]>, argument: &PlanArgument, seed: u64) -> Arc<[u8]> {
    let (element, count) = (argument.element, argument.count());
    if count < MIN_ELEMENTS_PER_ZERO {
        return Arc::clone(bytes);
    }
    let mut zeroed = bytes.to_vec();
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
    let row = argument.shape.last().copied().unwrap_or(count).max(1);
    let rows = count / row;
    // With fewer rows one is too large a part of the input, so a run of elements is cleared instead.
    if rows >= 4 {
        let start = rng.random_range(0..rows) * row;
        set_to_zero(&mut zeroed, element, start..start + row);
    } else {
        let length = count / MIN_ELEMENTS_PER_ZERO;
        let start = rng.random_range(0..=count - length);
        set_to_zero(&mut zeroed, element, start..start + length);
    }
    for _ in 0..(count / MIN_ELEMENTS_PER_ZERO).min(SCATTERED_ZEROS) {
        let at = rng.random_range(0..count);
        set_to_zero(&mut zeroed, element, at..at + 1);
    }
    zeroed.into()
}

/// Sets elements to zero, which is all bits zero in every type of floats.
fn set_to_zero(bytes: &mut [u8], element: Element, elements: Range<u64>) {
    let byte = |at: u64| {
        usize::try_from(at)
            .unwrap_or(usize::MAX)
            .saturating_mul(element.size())
    };
    if let Some(part) = bytes.get_mut(byte(elements.start)..byte(elements.end)) {
        part.fill(0);
    }
}
