//! Mutator with fixed transformations of source text. Each proposes its variants of a source; the gate and
//! the times decide about them.

mod align_rows;
mod batch_loads;
mod cache_hints;
mod code;
mod double_buffer;
mod hoist;
mod launch_bounds;
mod recipes;
mod remove_barrier;
mod swap_loops;
mod unroll;
mod widen;

use crate::patch;
use crate::protocol::{MutationAnswer, MutationRequest, SpaceChange};
use code::Source;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

/// Changed code of a transformation.
#[derive(Debug, Clone, PartialEq)]
struct Variant {
    /// Place and kind of the change; unique among the variants of a source.
    label: String,
    source: String,
    space: Option<SpaceChange>,
}

impl Variant {
    /// Creates a variant that changes only the source.
    fn new(label: String, source: String) -> Self {
        Self {
            label,
            source,
            space: None,
        }
    }
}

/// Kernel that is transformed.
struct Subject<'a> {
    code: Source<'a>,
    /// Changeable part of its search space.
    space: &'a Value,
}

/// Probability of choosing a combination if one applies.
const RECIPE_PROBABILITY: f64 = 0.5;

type Transformation = fn(&Subject<'_>) -> Vec<Variant>;

/// All transformations.
const TRANSFORMATIONS: [Transformation; 10] = [
    align_rows::variants,
    batch_loads::variants,
    cache_hints::variants,
    double_buffer::variants,
    hoist::variants,
    launch_bounds::variants,
    remove_barrier::variants,
    swap_loops::variants,
    unroll::variants,
    widen::variants,
];

/// Answers a request with a variant that was not tried on this parent; `None` if no variant remains.
#[must_use]
pub fn answer(request: &MutationRequest) -> Option<MutationAnswer> {
    let subject = Subject {
        code: Source::parse(&request.parent.source)?,
        space: &request.parent.space,
    };
    // A transformation is drawn before its variant: one with many variants is not more likely.
    let mut groups: Vec<Vec<Variant>> = TRANSFORMATIONS
        .iter()
        .map(|transformation| untried(transformation(&subject), request))
        .filter(|variants| !variants.is_empty())
        .collect();
    let mut rng = ChaCha8Rng::seed_from_u64(request.seed);
    let combined = untried(recipes::variants(&subject), request);
    if !combined.is_empty() && (groups.is_empty() || rng.random_bool(RECIPE_PROBABILITY)) {
        groups = vec![combined];
    }
    if groups.is_empty() {
        return None;
    }
    let mut group = groups.swap_remove(rng.random_range(0..groups.len()));
    let variant = group.swap_remove(rng.random_range(0..group.len()));
    Some(MutationAnswer {
        id: request.id.clone(),
        diff: (variant.source != request.parent.source)
            .then(|| patch::between(&request.parent.source, &variant.source)),
        space: variant.space,
        note: variant.label,
        ..MutationAnswer::default()
    })
}

fn untried(variants: Vec<Variant>, request: &MutationRequest) -> Vec<Variant> {
    let tried = |variant: &Variant| {
        let mut notes = request.siblings.iter().map(|sibling| &sibling.note);
        notes.any(|note| *note == variant.label)
    };
    variants
        .into_iter()
        .filter(|variant| !tried(variant))
        .collect()
}

#[cfg(test)]
mod tests;
