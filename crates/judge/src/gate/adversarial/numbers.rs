//! Whole numbers that the declared inputs do not have, unless the space file limits them.
//!
//! Those of 8 and 16 bits get their whole range. Those of 32 and 64 bits are often indices, so they get a wide
//! range in a run of its own, in another one numbers that mark an element, such as the label of rows to ignore,
//! and in a third negative numbers.

use super::{CaseInputs, beside_reference, beside_reference_if};
use rand::{Rng as _, RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;
use tuner_core::element::Element;
use tuner_core::plan::{Plan, PlanArgument, PlanReference};

/// Bits of the largest number of 64 bits: all numbers up to it are exact in float64, and sums of their
/// products by numbers of a declared range fit.
const WIDE_BITS: u32 = 40;

/// One in so many elements becomes a marker.
const ELEMENTS_PER_MARKER: u32 = 8;

/// Most numbers that the reference compares with.
const MARKERS_MAX: usize = 16;

/// Builds inputs of short numbers; `None` if no input can have them. All candidates share them.
pub(super) fn short(plan: &Plan, seed: u64) -> Option<CaseInputs> {
    make(plan, seed, short_range, |range, rng| {
        i128::from(rng.random_range(range.clone()))
    })
}

/// Builds inputs of wide numbers, of any magnitude alike; `None` if no input can have them. All candidates
/// share them.
pub(super) fn wide(plan: &Plan, seed: u64) -> Option<CaseInputs> {
    make(plan, seed, wide_bits, |bits, rng| magnitude(*bits, rng))
}

/// Builds inputs of which half of the numbers are negative, of any magnitude alike; `None` if no input can have
/// them. All candidates share them.
pub(super) fn signed(plan: &Plan, seed: u64) -> Option<CaseInputs> {
    make(plan, seed, signed_bits, |bits, rng| {
        match rng.random_bool(0.5) {
            true => -1 - magnitude(*bits, rng),
            false => rng.random_range(0..=100),
        }
    })
}

/// Builds inputs with negative numbers that the reference compares with among the declared ones; `None` if no
/// input can have them. All candidates share them.
pub(super) fn markers(plan: &Plan, seed: u64) -> Option<CaseInputs> {
    let numbers = markers_of(plan);
    if numbers.is_empty() {
        return None;
    }
    let takes = |argument: &PlanArgument| signed_bits(argument).is_some();
    beside_reference_if(plan, seed, takes, |index, argument, content| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed ^ index.rotate_right(16));
        let mut made = Vec::with_capacity(content.len());
        for value in content.chunks_exact(argument.element.size()) {
            match rng.random_ratio(1, ELEMENTS_PER_MARKER) {
                true => {
                    let number = numbers[rng.random_range(0..numbers.len())];
                    argument.element.encode_whole(number, &mut made);
                }
                false => made.extend(value),
            }
        }
        made.into()
    })
}

/// Draws a number of at most so many bits, each length alike.
fn magnitude(bits: u32, rng: &mut ChaCha8Rng) -> i128 {
    i128::from(rng.next_u64() >> (64 - bits)) >> rng.random_range(0..bits)
}

/// Builds inputs of the numbers that `draw` returns for each input with a range.
fn make<R>(
    plan: &Plan,
    seed: u64,
    range: fn(&PlanArgument) -> Option<R>,
    draw: impl Fn(&R, &mut ChaCha8Rng) -> i128,
) -> Option<CaseInputs> {
    if plan
        .arguments
        .iter()
        .all(|argument| range(argument).is_none())
    {
        return None;
    }
    beside_reference(plan, seed, |index, argument| {
        let range = range(argument)?;
        let mut rng = ChaCha8Rng::seed_from_u64(seed ^ index.rotate_right(16));
        let mut bytes = Vec::new();
        for _ in 0..argument.count() {
            argument
                .element
                .encode_whole(draw(&range, &mut rng), &mut bytes);
        }
        Some(Arc::from(bytes))
    })
}

/// Reports whether nothing limits the numbers of an input.
fn is_free(argument: &PlanArgument) -> bool {
    argument.any_value && argument.layout.is_none()
}

/// Returns the range of numbers of an input; `None` if they are limited or wide. A sum of a hundred
/// products of two such numbers fits into 32 bits.
fn short_range(argument: &PlanArgument) -> Option<RangeInclusive<i32>> {
    match argument.element {
        _ if !is_free(argument) => None,
        Element::I8 => Some(-128..=127),
        Element::U8 => Some(0..=255),
        Element::I16 => Some(-4096..=4095),
        Element::U16 => Some(0..=4095),
        _ => None,
    }
}

/// Returns the bits of an input's numbers above zero; `None` if they are limited or short.
fn wide_bits(argument: &PlanArgument) -> Option<u32> {
    match argument.element {
        _ if !is_free(argument) => None,
        Element::I32 => Some(31),
        Element::U32 => Some(32),
        Element::I64 | Element::U64 => Some(WIDE_BITS),
        _ => None,
    }
}

/// Returns the same for inputs that can be negative.
fn signed_bits(argument: &PlanArgument) -> Option<u32> {
    let signed = matches!(argument.element, Element::I32 | Element::I64);
    wide_bits(argument).filter(|_| signed)
}

/// Returns the whole numbers below zero that the reference compares with, and −1 if it asks for a sign.
fn markers_of(plan: &Plan) -> Vec<i128> {
    let PlanReference::Kernel { code, .. } = &plan.reference else {
        return Vec::new();
    };
    let compared = code.ptx.lines().filter(|line| line.contains("setp."));
    let numbers = compared.filter_map(|line| {
        let operand = line.trim_end_matches(';').rsplit(',').next()?;
        let asks_sign = ["setp.lt.s", "setp.ge.s"]
            .iter()
            .any(|name| line.contains(name));
        match operand.trim().parse::<i128>() {
            Ok(0) if asks_sign => Some(-1),
            Ok(number) => Some(number),
            Err(_) => None,
        }
    });
    let found: BTreeSet<i128> = numbers.filter(|number| *number < 0).collect();
    found.into_iter().take(MARKERS_MAX).collect()
}
