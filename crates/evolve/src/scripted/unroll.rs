//! Unroll an innermost loop by a factor.

use super::code::spliced;
use super::{Subject, Variant};

const FACTORS: [u32; 2] = [4, 8];

pub(super) fn variants(subject: &Subject<'_>) -> Vec<Variant> {
    let loops = subject.code.loops().into_iter();
    let loops = loops.filter(|one| one.innermost && !one.unrolled);
    let variant = |one: super::code::Loop<'_>| {
        FACTORS.map(|factor| {
            let begin = one.statement.start;
            let text = format!("\n#pragma unroll {factor}\n");
            let label = format!(
                "unroll: the loop over {} in line {} by {factor}",
                one.name, one.line
            );
            Variant::new(label, spliced(subject.code.text, begin..begin, &text))
        })
    };
    loops.flat_map(variant).collect()
}
