//! Whole numbers of 8 and 16 bits over their whole range, unless the space file limits them.
//!
//! Numbers of 32 and 64 bits stay small: on larger ones references overflow and angles lose their meaning,
//! and most such inputs are counts, lengths and indices.

use super::{CaseInputs, beside_reference};
use rand::{RngExt as _, SeedableRng as _};
use std::ops::RangeInclusive;
use std::sync::Arc;
use tuner_core::element::Element;
use tuner_core::plan::{Plan, PlanArgument};

/// Builds the inputs; `None` if no input can have such numbers. All candidates share them.
pub(super) fn make(plan: &Plan, seed: u64) -> Option<CaseInputs> {
    if plan
        .arguments
        .iter()
        .all(|argument| range(argument).is_none())
    {
        return None;
    }
    beside_reference(plan, seed, |index, argument| {
        let range = range(argument)?;
        Some(numbers(argument, &range, seed ^ index.rotate_right(16)))
    })
}

/// Returns the range of numbers of an input; `None` if they are limited or wide. A sum of a hundred
/// products of two such numbers fits into 32 bits.
fn range(argument: &PlanArgument) -> Option<RangeInclusive<i32>> {
    if !argument.any_value || argument.layout.is_some() {
        return None;
    }
    match argument.element {
        Element::I8 => Some(-128..=127),
        Element::U8 => Some(0..=255),
        Element::I16 => Some(-4096..=4095),
        Element::U16 => Some(0..=4095),
        _ => None,
    }
}

fn numbers(argument: &PlanArgument, range: &RangeInclusive<i32>, seed: u64) -> Arc<[u8]> {
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
    let mut bytes = Vec::new();
    for _ in 0..argument.count() {
        let number = rng.random_range(range.clone());
        argument.element.encode(f64::from(number), &mut bytes);
    }
    bytes.into()
}
