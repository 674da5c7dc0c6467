//! Expected values in the form in which a device compares them.

use super::oracle::{Expected, Oracle};
use super::sampling::PIECE_MAX;
use crate::session::{ExpectedOutput, Unit};
use std::ops::Range;
use tuner_core::element::Element;

/// Rule for comparing elements with an oracle.
#[derive(Debug, Clone, Copy)]
pub enum Rule {
    /// Within the oracle's tolerance, and whole tiles also by the norm of their errors.
    Tiles,
    /// Within the oracle's tolerance or, if given, `|got − want| ≤ atol + rtol · |want|`. The norm
    /// of tiles is not checked: its bound is a statistic of random inputs.
    Elements(Option<(f64, f64)>),
    /// Exactly, with the oracle's values rounded to the output's type.
    Exact,
}

/// Elements that one thread of a device compares, if no norm is checked.
const UNIT_ELEMENTS: u64 = 256;

/// Minimum elements of a tile that is judged by its norm: fewer are too few for a statistic.
const NORM_MIN_ELEMENTS: u64 = 64;

/// Minimum [groups](Oracle::together) of elements with correlated errors for a norm: two rows of
/// attention may both have a weight that rounds badly.
const NORM_MIN_GROUPS: u64 = 8;

/// Minimum effective number of elements, (Σb)² / Σb², for a norm. It excludes tiles whose bound
/// comes from a few large elements, such as a peaked softmax row: one element may honestly err by
/// more than the rms that the bound is built from. A tile of 48 is seven standard deviations from
/// its bound if it only rounds.
const NORM_MIN_EFFECTIVE: f64 = 48.0;

/// Effective number of [groups](Oracle::together) of elements with correlated errors above which their mean
/// is reliable. With fewer, one row of attention whose largest weight rounds badly may dominate the tile,
/// and the squared bound grows by the share [`PER_MISSING_GROUP`] · ([`MANY_GROUPS`] / groups − 1).
const MANY_GROUPS: f64 = 10.0;

/// Of 9,600 simulated honest tiles (weights spread over many keys, and over few; the maximum of the first
/// 64 keys) the worst reaches 1.18 of the bound without this, and 0.97 with it.
const PER_MISSING_GROUP: f64 = 0.35;

/// Elements expected at once: limits their memory and the time between two progress reports.
const SLAB_ELEMENTS: u64 = 1 << 18;
/// Maximum multiplications of a slab, unless one tile has more.
const SLAB_WORK: u64 = 1 << 32;

/// Splits a range into pieces of whole tiles.
pub(super) fn slabs(oracle: &dyn Oracle, output: usize, range: &Range<u64>) -> Vec<Range<u64>> {
    let tile = oracle.tile(output).max(1);
    let most = (SLAB_WORK / oracle.work().max(1)).clamp(1, SLAB_ELEMENTS);
    pieces(range, (most / tile).max(1) * tile).collect()
}

/// Cuts a range at the multiples of a length.
fn pieces(range: &Range<u64>, length: u64) -> impl Iterator<Item = Range<u64>> {
    let (mut at, end) = (range.start, range.end);
    std::iter::from_fn(move || {
        let start = at;
        at = ((at / length + 1) * length).min(end);
        (start < end).then_some(start..at)
    })
}

/// Builds the expected values of output ranges by a rule.
#[must_use]
pub fn expected_output(
    oracle: &dyn Oracle,
    output: usize,
    element: Element,
    ranges: &[Range<u64>],
    rule: Rule,
) -> ExpectedOutput {
    let (by_norm, length) = match rule {
        Rule::Tiles => (true, oracle.tile(output).max(1)),
        _ => (false, UNIT_ELEMENTS),
    };
    let bounds = |want: &Expected| {
        let want = match rule {
            // Rounded like the kernel's store, else every inexact value would differ.
            Rule::Exact => return [element.round(want.value), 0.0],
            _ => stored(element, *want),
        };
        match rule {
            Rule::Elements(Some((atol, rtol))) => [want.value, atol + rtol * want.value.abs()],
            _ => [want.value, want.tolerance],
        }
    };
    let mut wanted = ExpectedOutput::default();
    for slab in ranges.iter().flat_map(|range| slabs(oracle, output, range)) {
        let all = oracle.span(output, slab.start, slab.end - slab.start);
        let mut rest = &all[..];
        for piece in pieces(&slab, length) {
            let count = usize::try_from(piece.end - piece.start).unwrap_or(0);
            let (expected, behind) = rest.split_at(count.min(rest.len()));
            rest = behind;
            wanted.units.push(Unit {
                start: piece.start,
                at: wanted.values.len() as u64,
                count: expected.len() as u64,
                bound: if by_norm {
                    norm_bound(oracle, element, expected)
                } else {
                    0.0
                },
            });
            wanted.values.extend(expected.iter().map(bounds));
        }
    }
    wanted
}

/// Adapts an expectation to the output type: integers are exact.
fn stored(element: Element, want: Expected) -> Expected {
    if element.is_float() {
        return want;
    }
    Expected {
        value: element.round(want.value),
        tolerance: 0.0,
        rms: 0.0,
    }
}

/// Returns the largest sum of squared errors of a tile; 0 if it is not judged by its norm.
fn norm_bound(oracle: &dyn Oracle, element: Element, expected: &[Expected]) -> f64 {
    // A kernel may flush subnormals: one smallest step per element is honest.
    let step = element.smallest_step().powi(2);
    let squares: Vec<f64> = expected
        .iter()
        .map(|want| stored(element, *want).rms.powi(2) + step)
        .collect();
    let least = NORM_MIN_ELEMENTS.max(NORM_MIN_GROUPS * oracle.together());
    // Where whole tiles cost too much, a piece has no more than `PIECE_MAX` elements.
    let enough = expected.len() as u64 >= least.min(PIECE_MAX)
        && effective(squares.iter().copied()) >= NORM_MIN_EFFECTIVE;
    if !enough {
        return 0.0;
    }
    let together = usize::try_from(oracle.together()).unwrap_or(1).max(1);
    let groups = effective(squares.chunks(together).map(|group| group.iter().sum()));
    let missing = (MANY_GROUPS / groups - 1.0).max(0.0);
    squares.iter().sum::<f64>() * (1.0 + PER_MISSING_GROUP * missing)
}

/// Returns the number of equal parts with the same sum and sum of squares: (Σx)² / Σx².
fn effective(parts: impl Iterator<Item = f64>) -> f64 {
    let (sum, squares) = parts.fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    if squares > 0.0 {
        sum * sum / squares
    } else {
        0.0
    }
}

/// Splits ranges into short runs with a value and tolerance for each element and no norm.
pub(super) fn in_runs(
    ranges: &[Range<u64>],
    mut value: impl FnMut(u64) -> [f64; 2],
) -> ExpectedOutput {
    let mut wanted = ExpectedOutput::default();
    for piece in ranges.iter().flat_map(|range| pieces(range, UNIT_ELEMENTS)) {
        wanted.units.push(Unit {
            start: piece.start,
            at: wanted.values.len() as u64,
            count: piece.end - piece.start,
            bound: 0.0,
        });
        wanted.values.extend(piece.map(&mut value));
    }
    wanted
}
