//! Inputs with equal numbers, for plans with a reference kernel. All numbers are those of the declared fill.
//!
//! Random floating-point numbers are never equal, and random whole numbers hardly ever several times in a row: a
//! counter of eight bits, a search for the end of a run in the next tile, or a row that is masked whole is not
//! tried by them.

use super::{CaseInputs, beside_reference_if, is_plain_float};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;
use tuner_core::fill::Fill;
use tuner_core::plan::{Plan, PlanArgument};

/// Distinct numbers of an input with ties.
const DISTINCT: u64 = 16;

/// Minimum elements of an input that is changed.
const LEAST_ELEMENTS: u64 = 64;

/// Longest run, elements; at most a quarter of the input.
const LONGEST_RUN: u64 = 4096;

/// Builds inputs whose whole numbers form runs of any length alike; `None` if no input can. All candidates
/// share them.
pub(super) fn runs(plan: &Plan, seed: u64) -> Option<CaseInputs> {
    let takes = |argument: &PlanArgument| {
        let whole = argument.role.is_filled() && argument.layout.is_none();
        whole && !argument.element.is_float() && repeats(argument)
    };
    changed(plan, seed, takes, |argument, bytes, rng| {
        let size = argument.element.size();
        let count = bytes.len() / size;
        let longest = (argument.count() / 4).min(LONGEST_RUN).ilog2();
        let mut start = 0;
        let mut made = Vec::with_capacity(bytes.len());
        while start < count {
            let length = rng.random_range(0..=longest);
            let length = rng.random_range(1..=2_usize << length);
            let length = length.min(count - start);
            let value = bytes.get(start * size..(start + 1) * size).unwrap_or(&[]);
            made.extend(value.repeat(length));
            start += length;
        }
        made
    })
}

/// Builds inputs whose floating-point numbers are drawn from a few, the same for all inputs of a type and fill;
/// `None` if no input can. All candidates share them.
pub(super) fn ties(plan: &Plan, seed: u64) -> Option<CaseInputs> {
    let takes = |argument: &PlanArgument| is_plain_float(argument) && repeats(argument);
    changed(plan, seed, takes, |argument, bytes, rng| {
        let mut numbers: Vec<f64> = (0..DISTINCT)
            .map(|number| argument.fill.value(seed, 0, number))
            .collect();
        numbers.sort_by(f64::total_cmp);
        let count = argument.count();
        let mut made = Vec::with_capacity(bytes.len());
        for index in 0..count {
            let number = match argument.fill {
                Fill::Sorted { .. } => index * DISTINCT / count,
                _ => rng.random_range(0..DISTINCT),
            };
            let number = usize::try_from(number).unwrap_or(0);
            let value = numbers.get(number).copied().unwrap_or(0.0);
            argument.element.encode(value, &mut made);
        }
        made
    })
}

/// Builds inputs of which those that `takes` accepts are replaced.
fn changed(
    plan: &Plan,
    seed: u64,
    takes: impl Fn(&PlanArgument) -> bool,
    change: impl Fn(&PlanArgument, &[u8], &mut ChaCha8Rng) -> Vec<u8>,
) -> Option<CaseInputs> {
    beside_reference_if(plan, seed, takes, |index, argument, content| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed ^ index.rotate_right(24));
        Arc::from(change(argument, &content, &mut rng))
    })
}

/// Reports whether the fill produces independent numbers, each of which may occur again.
fn repeats(argument: &PlanArgument) -> bool {
    let random = matches!(
        argument.fill,
        Fill::Normal { .. } | Fill::Uniform { .. } | Fill::Sparse { .. } | Fill::Sorted { .. }
    );
    random && argument.count() >= LEAST_ELEMENTS
}
