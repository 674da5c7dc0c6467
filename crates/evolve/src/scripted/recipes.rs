//! Combinations of transformations: reading input rows once pays off only if the filter's rows and the copy
//! to shared memory are wide too.

use super::code::Source;
use super::{Subject, Variant, align_rows, batch_loads, swap_loops, widen};

pub(super) fn variants(subject: &Subject<'_>) -> Vec<Variant> {
    let mut all = Vec::new();
    for swapped in swap_loops::variants(subject) {
        for filter in then(subject, &swapped, |next| {
            align_rows::filter(next).into_iter().collect()
        }) {
            let copies = |next: &Subject<'_>| {
                let batched = batch_loads::variants(next).into_iter();
                // The first copy is the tile's; the filter is small.
                let batched = batched.take(batch_loads::FACTORS.len());
                batched.chain(widen::variants(next)).collect()
            };
            for copied in then(subject, &filter, copies) {
                all.extend(then(subject, &copied, |next| {
                    align_rows::tile(next).into_iter().collect()
                }));
            }
        }
    }
    all
}

/// Applies a transformation to a variant.
fn then(
    subject: &Subject<'_>,
    first: &Variant,
    transformation: impl Fn(&Subject<'_>) -> Vec<Variant>,
) -> Vec<Variant> {
    let Some(code) = Source::parse(&first.source) else {
        return Vec::new();
    };
    let space = subject.space;
    let seconds = transformation(&Subject { code, space }).into_iter();
    seconds.map(|second| combined(first, second)).collect()
}

fn combined(first: &Variant, second: Variant) -> Variant {
    let mut space = first.space.clone().unwrap_or_default();
    let further = second.space.unwrap_or_default();
    space.derived.extend(further.derived);
    space.parameters.extend(further.parameters);
    space.seeds.extend(further.seeds);
    Variant {
        label: format!("{}; {}", first.label, second.label),
        source: second.source,
        space: Some(space),
    }
}
