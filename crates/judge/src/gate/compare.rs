//! Comparing what a kernel wrote with what it should have written.

use super::oracle::{Expected, Oracle};
use super::pattern::WrongElements;
use super::sampling::PIECE_MAX;
use std::ops::Range;
use tuner_core::element::Element;

/// The result of comparing one output.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Comparison {
    /// Elements compared.
    pub compared: u64,
    /// Elements outside their tolerance.
    pub wrong: u64,
    /// Largest error divided by its tolerance; infinite where a value that is not finite stands
    /// in place of a finite one.
    pub max_error: f64,
    /// The first wrong element: index, value found, value expected, tolerance.
    pub first_wrong: Option<(u64, f64, f64, f64)>,
    /// Where the wrong elements lie and how they differ.
    pub(super) pattern: Option<WrongElements>,
    /// Both values of the first wrong element where they are whole numbers, which float64 may not
    /// tell apart.
    pub first_whole: Option<(i128, i128)>,
}

impl Comparison {
    /// Everything lies within its tolerance.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.wrong == 0 && self.max_error <= 1.0
    }

    /// Joins the comparisons of two parts.
    pub fn merge(&mut self, other: &Self) {
        self.compared += other.compared;
        self.wrong += other.wrong;
        self.max_error = self.max_error.max(other.max_error);
        let earlier = match (self.first_wrong, other.first_wrong) {
            (Some(mine), Some(theirs)) => theirs.0 < mine.0,
            (mine, theirs) => mine.is_none() && theirs.is_some(),
        };
        if earlier {
            (self.first_wrong, self.first_whole) = (other.first_wrong, other.first_whole);
        }
        self.add_wrong(other.pattern);
    }

    fn add_wrong(&mut self, more: Option<WrongElements>) {
        match (&mut self.pattern, more) {
            (Some(all), Some(more)) => all.join(&more),
            (pattern, more) => *pattern = pattern.or(more),
        }
    }

    fn element(&mut self, index: u64, got: f64, want: Expected) {
        // Equal infinities agree; NaN agrees with NaN only; anything else not finite is wrong.
        let difference = if got == want.value || (got.is_nan() && want.value.is_nan()) {
            0.0
        } else if got.is_finite() && want.value.is_finite() {
            (got - want.value).abs()
        } else {
            f64::INFINITY
        };
        self.one(index, difference, (got, want.value, want.tolerance), None);
    }

    /// Whole numbers, whose difference is exact.
    fn whole(&mut self, index: u64, (got, want): (i128, i128), tolerance: f64) {
        let values = (got as f64, want as f64, tolerance);
        self.one(index, got.abs_diff(want) as f64, values, Some((got, want)));
    }

    fn one(
        &mut self,
        index: u64,
        difference: f64,
        (got, want, tolerance): (f64, f64, f64),
        whole: Option<(i128, i128)>,
    ) {
        self.compared += 1;
        let ratio = if difference == 0.0 || difference == f64::INFINITY {
            difference
        } else {
            // No tolerance at all is no figure to divide by: any error is the largest one, but of whole
            // numbers, which are told apart from half a unit on.
            let least = if whole.is_some() { 0.5 } else { 0.0 };
            (difference / tolerance.max(least)).min(f64::MAX)
        };
        self.max_error = self.max_error.max(ratio);
        if ratio > 1.0 {
            self.wrong += 1;
            self.add_wrong(Some(WrongElements::one(index, got, want)));
            if self.first_wrong.is_none() {
                self.first_wrong = Some((index, got, want, tolerance));
                self.first_whole = whole;
            }
        }
    }

    /// A sentence for people: how many are wrong, and the first with both values.
    #[must_use]
    pub fn describe(&self, output: &str, shape: &[u64]) -> String {
        match self.first_wrong {
            Some((index, got, want, tolerance)) => format!(
                "{} of {} elements of `{output}` are wrong; first {output}{} = {}{}",
                self.wrong,
                self.compared,
                subscript(index, shape),
                self.values(got, want, tolerance),
                self.pattern
                    .map_or_else(String::new, |all| all.describe(self.compared, shape)),
            ),
            None => format!(
                "the error norm of a tile of `{output}` is {:.2} times its bound though each element is within its own: precision was lost across the tile",
                self.max_error
            ),
        }
    }

    /// `1.5e0, expected 1e0 ± 1.0e-3`.
    fn values(&self, got: f64, want: f64, tolerance: f64) -> String {
        match self.first_whole {
            Some((got, want)) if tolerance == 0.0 => format!("{got}, expected {want} exactly"),
            Some((got, want)) => format!("{got}, expected {want} ± {tolerance}"),
            None => format!("{got:e}, expected {want:e} ± {tolerance:.1e}"),
        }
    }
}

/// `[1][0][3]` for a flat index.
fn subscript(index: u64, shape: &[u64]) -> String {
    let mut rest = index;
    let mut parts = Vec::new();
    for extent in shape.iter().rev() {
        let extent = (*extent).max(1);
        parts.push(rest % extent);
        rest /= extent;
    }
    parts.iter().rev().map(|i| format!("[{i}]")).collect()
}

/// The bytes from element `index` on; none where there are none.
fn from(element: Element, bytes: &[u8], index: u64) -> &[u8] {
    let start = usize::try_from(index)
        .unwrap_or(usize::MAX)
        .saturating_mul(element.size());
    bytes.get(start..).unwrap_or(&[])
}

/// What is expected of an output of this type: a whole number is right or wrong.
pub(super) fn stored(element: Element, want: Expected) -> Expected {
    if element.is_float() {
        return want;
    }
    Expected {
        value: element.round(want.value),
        tolerance: 0.0,
        rms: 0.0,
    }
}

/// Tiles of fewer elements than this are not judged by their norm: too few for a statistic.
const NORM_MIN_ELEMENTS: u64 = 64;

/// Nor are those of fewer [groups](Oracle::together) of elements whose errors go together: two rows of
/// attention may both have a weight that rounds badly.
const NORM_MIN_GROUPS: u64 = 8;

/// Nor are tiles whose bound a few large elements carry, such as a peaked softmax row: one element
/// may honestly err by more than the rms that the bound is made of. Counted as (Σb)² / Σb². A tile of
/// 48 is seven standard deviations from its bound when all it does is to round.
const NORM_MIN_EFFECTIVE: f64 = 48.0;

/// Compares elements `start..start + count` of an output with an oracle, element by element and
/// by the error norm of each whole tile in the range.
#[must_use]
pub fn with_oracle(
    oracle: &dyn Oracle,
    output: usize,
    element: Element,
    bytes: &[u8],
    start: u64,
    count: u64,
) -> Comparison {
    let mut result = Comparison::default();
    let tile = oracle.tile(output).max(1);
    for slab in slabs(oracle, output, start..start + count) {
        let all = oracle.span(output, slab.start, slab.end - slab.start);
        let mut rest = &all[..];
        let (mut at, end) = (slab.start, slab.end);
        while at < end {
            let next = ((at / tile + 1) * tile).min(end);
            let length = usize::try_from(next - at).unwrap_or(0).min(rest.len());
            let (expected, behind) = rest.split_at(length);
            rest = behind;
            let bound = norm_bound(oracle, element, expected);
            whole_tile(&mut result, element, bytes, at, expected, bound);
            at = next;
        }
    }
    result
}

/// Elements that are expected at once: a bound of the memory that this takes, and of the time
/// between two words of it.
const SLAB_ELEMENTS: u64 = 1 << 18;
/// Multiplications of a slab at most, where a tile has no more.
const SLAB_WORK: u64 = 1 << 32;

/// A range in pieces of whole tiles.
pub(super) fn slabs(oracle: &dyn Oracle, output: usize, range: Range<u64>) -> Vec<Range<u64>> {
    let tile = oracle.tile(output).max(1);
    let most = (SLAB_WORK / oracle.work().max(1)).clamp(1, SLAB_ELEMENTS);
    let slab = (most / tile).max(1) * tile;
    let mut slabs = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let next = ((at / slab + 1) * slab).min(range.end);
        slabs.push(at..next);
        at = next;
    }
    slabs
}

/// The elements of a tile from `at` on, and the norm of their errors.
fn whole_tile(
    result: &mut Comparison,
    element: Element,
    bytes: &[u8],
    at: u64,
    expected: &[Expected],
    bound: f64,
) {
    let mut error = 0.0;
    for (index, want) in (at..).zip(expected) {
        let got = element.decode(from(element, bytes, index));
        let want = stored(element, *want);
        result.element(index, got, want);
        error += (got - want.value).powi(2);
    }
    if bound > 0.0 && error.is_finite() {
        result.max_error = result.max_error.max((error / bound).sqrt());
    }
}

/// The largest sum of squared errors of a tile; 0 where it is not judged by its norm.
pub(super) fn norm_bound(oracle: &dyn Oracle, element: Element, expected: &[Expected]) -> f64 {
    let (mut bound, mut bound_squares) = (0.0, 0.0);
    for want in expected {
        let want = stored(element, *want);
        let square = want.rms.powi(2) + element.smallest_step().powi(2);
        bound += square;
        bound_squares += square * square;
    }
    let least = NORM_MIN_ELEMENTS.max(NORM_MIN_GROUPS * oracle.together());
    let enough = expected.len() as u64 >= least.min(PIECE_MAX)
        && bound * bound >= NORM_MIN_EFFECTIVE * bound_squares;
    if enough { bound } else { 0.0 }
}

/// The elements of a range with what is expected of each.
pub(super) fn expectations(
    oracle: &dyn Oracle,
    output: usize,
    range: &Range<u64>,
) -> impl Iterator<Item = (u64, Expected)> {
    let slabs = slabs(oracle, output, range.clone()).into_iter();
    slabs.flat_map(move |slab| {
        let expected = oracle.span(output, slab.start, slab.end - slab.start);
        slab.zip(expected)
    })
}

/// Compares a range element by element, within the oracle's own tolerance or, where given, under
/// `|got − want| ≤ atol + rtol · |want|`. The norm of tiles is left out: its bound is a statistic of
/// random inputs.
#[must_use]
pub fn by_elements(
    oracle: &dyn Oracle,
    output: usize,
    element: Element,
    bytes: &[u8],
    range: &Range<u64>,
    flat: Option<(f64, f64)>,
) -> Comparison {
    let mut result = Comparison::default();
    for (index, want) in expectations(oracle, output, range) {
        let got = element.decode(from(element, bytes, index));
        let want = stored(element, want);
        let tolerance = flat.map_or(want.tolerance, |(atol, rtol)| {
            atol + rtol * want.value.abs()
        });
        result.element(index, got, Expected { tolerance, ..want });
    }
    result
}

/// Compares a range bit for bit with an oracle's values rounded to the output's type.
#[must_use]
pub fn exactly(
    oracle: &dyn Oracle,
    output: usize,
    element: Element,
    bytes: &[u8],
    range: &Range<u64>,
) -> Comparison {
    let mut result = Comparison::default();
    for (index, want) in expectations(oracle, output, range) {
        let got = element.decode(from(element, bytes, index));
        let rounded = Expected {
            value: element.round(want.value),
            tolerance: 0.0,
            rms: 0.0,
        };
        result.element(index, got, rounded);
    }
    result
}

/// Compares elements `range` of an output with those of a reference of the same type, each within
/// what `tolerance` says of its number and the reference's value. Whole numbers are compared as
/// such, not by way of float64.
pub fn with_reference(
    element: Element,
    bytes: &[u8],
    reference: &[u8],
    range: Range<u64>,
    tolerance: impl Fn(u64, f64) -> f64,
) -> Comparison {
    let mut result = Comparison::default();
    for index in range {
        let (got, want) = (from(element, bytes, index), from(element, reference, index));
        let value = element.decode(want);
        let tolerance = tolerance(index, value);
        if let (Some(got), Some(want)) = (element.whole(got), element.whole(want)) {
            result.whole(index, (got, want), tolerance);
            continue;
        }
        let want = Expected {
            value,
            tolerance,
            rms: 0.0,
        };
        result.element(index, element.decode(got), want);
    }
    result
}

#[cfg(test)]
mod tests;
