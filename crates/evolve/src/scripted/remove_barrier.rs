//! Remove a barrier; the gate finds the race if it was needed.

use super::code::spliced;
use super::{Subject, Variant};

const BARRIER: &str = "__syncthreads();";

pub(super) fn variants(subject: &Subject<'_>) -> Vec<Variant> {
    let text = subject.code.text;
    let places = text.match_indices(BARRIER);
    let variant = |(at, _): (usize, &str)| {
        let line = text.get(..at).unwrap_or_default().lines().count();
        let label = format!("remove_barrier: line {line}");
        Variant::new(label, spliced(text, at..at + BARRIER.len(), ";"))
    };
    places.map(variant).collect()
}
