//! What elements are compared with, in the form in which a device compares them.

use super::compare::{expectations, norm_bound, slabs, stored};
use super::oracle::Oracle;
use crate::session::{Unit, Wanted};
use std::ops::Range;
use tuner_core::element::Element;

/// Elements of a run that one thread of a device compares.
const UNIT_ELEMENTS: u64 = 256;

/// What [`super::compare::with_oracle`] compares ranges with, for a device.
pub fn tiles(
    oracle: &dyn Oracle,
    output: usize,
    element: Element,
    ranges: &[Range<u64>],
) -> Wanted {
    let mut wanted = Wanted::default();
    let tile = oracle.tile(output).max(1);
    for range in ranges {
        let mut at = range.start;
        for slab in slabs(oracle, output, range.clone()) {
            let all = oracle.span(output, slab.start, slab.end - slab.start);
            let mut rest = &all[..];
            while at < slab.end {
                let next = ((at / tile + 1) * tile).min(slab.end);
                let length = usize::try_from(next - at).unwrap_or(0).min(rest.len());
                let (expected, behind) = rest.split_at(length);
                rest = behind;
                wanted.units.push(Unit {
                    start: at,
                    at: wanted.values.len() as u64,
                    count: length as u64,
                    bound: norm_bound(oracle, element, expected),
                });
                let stored = expected.iter().map(|want| stored(element, *want));
                wanted.values.extend(stored.map(|w| [w.value, w.tolerance]));
                at = next;
            }
        }
    }
    wanted
}

/// What [`super::compare::by_elements`] compares ranges with, for a device.
pub fn elements(
    oracle: &dyn Oracle,
    output: usize,
    element: Element,
    ranges: &[Range<u64>],
    flat: Option<(f64, f64)>,
) -> Wanted {
    in_runs(ranges, |range| {
        expectations(oracle, output, range)
            .map(|(_, want)| {
                let want = stored(element, want);
                let tolerance = flat.map_or(want.tolerance, |(atol, rtol)| {
                    atol + rtol * want.value.abs()
                });
                [want.value, tolerance]
            })
            .collect()
    })
}

/// What [`super::compare::exactly`] compares ranges with, for a device.
pub(super) fn exact(
    oracle: &dyn Oracle,
    output: usize,
    element: Element,
    ranges: &[Range<u64>],
) -> Wanted {
    in_runs(ranges, |range| {
        expectations(oracle, output, range)
            .map(|(_, want)| [element.round(want.value), 0.0])
            .collect()
    })
}

/// Ranges in short runs, each element with value and tolerance, and no norm.
pub(super) fn in_runs(
    ranges: &[Range<u64>],
    mut values: impl FnMut(&Range<u64>) -> Vec<[f64; 2]>,
) -> Wanted {
    let mut wanted = Wanted::default();
    for range in ranges {
        let mut start = range.start;
        let first = wanted.values.len() as u64;
        wanted.values.extend(values(range));
        while start < range.end {
            let count = UNIT_ELEMENTS.min(range.end - start);
            wanted.units.push(Unit {
                start,
                at: first + start - range.start,
                count,
                bound: 0.0,
            });
            start += count;
        }
    }
    wanted
}
