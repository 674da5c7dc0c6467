//! Whole numbers of all bits, or of either sign, where the space file does not limit them.

use super::{Case, CaseInputs, beside_reference};
use rand::{Rng as _, RngExt as _, SeedableRng as _};
use std::sync::Arc;
use tuner_core::element::Element;
use tuner_core::plan::{Plan, PlanArgument};

/// Largest magnitude of a small number, that of the default fill.
const SMALL: i64 = 100;

/// Builds the inputs; `None` where no input can have such numbers. All candidates share them.
pub(super) fn make(plan: &Plan, seed: u64, case: Case) -> Option<CaseInputs> {
    let takes = |argument: &PlanArgument| is_open(argument, case);
    if !plan.arguments.iter().any(takes) {
        return None;
    }
    beside_reference(plan, seed, |index, argument| {
        takes(argument).then(|| numbers(argument, case, seed ^ index.rotate_right(16)))
    })
}

/// Reports whether an input is of whole numbers that no fill limits.
fn is_open(argument: &PlanArgument, case: Case) -> bool {
    use Element::{I8, I16, I32, I64};
    let is_signed = matches!(argument.element, I8 | I16 | I32 | I64);
    argument.any_value && argument.layout.is_none() && (case == Case::AllBits || is_signed)
}

/// Draws small numbers of either sign or, of all bits, half of them, so that comparisons and branches on small numbers
/// are taken as well.
fn numbers(argument: &PlanArgument, case: Case, seed: u64) -> Arc<[u8]> {
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
    let size = argument.element.size();
    let mut bytes = vec![0; usize::try_from(argument.bytes()).unwrap_or_default()];
    for element in bytes.chunks_exact_mut(size) {
        let is_small = case == Case::Signed || rng.random();
        let value = match is_small {
            true => rng.random_range(-SMALL..=SMALL) as u64,
            false => rng.next_u64(),
        };
        element.copy_from_slice(&value.to_le_bytes()[..size]);
    }
    bytes.into()
}
