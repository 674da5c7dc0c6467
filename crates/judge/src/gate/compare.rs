//! Comparison of a kernel's outputs with the expected values.

pub(super) mod bias;

use super::expected::ExpectedValues;
use super::expected_output::{Rule, expected_output, slabs};
use super::oracle::Oracle;
use super::pattern::WrongElements;
use bias::Bias;
use std::ops::Range;
use tuner_core::element::Element;

/// The result of comparing one output.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Comparison {
    /// Elements compared.
    pub compared: u64,
    /// Elements outside their tolerance.
    pub wrong: u64,
    /// Largest error divided by its tolerance; infinite if a non-finite value replaces a finite
    /// one.
    pub max_error: f64,
    /// First wrong element: index, actual value, expected value, tolerance.
    pub first_wrong: Option<(u64, f64, f64, f64)>,
    /// Positions of the wrong elements and their kind of difference.
    pub(super) pattern: Option<WrongElements>,
    /// Elements at which the reference jumps under other roundings: each is compared with all values that
    /// the reference returned.
    pub discontinuous: u64,
    /// Elements outside their tolerance, but few and near enough to be explained by rounding.
    pub rare: u64,
    /// Largest error of these, in tolerances.
    pub rare_error: f64,
    /// Both values of the first wrong element if they are integers, which float64 may not
    /// distinguish.
    pub first_whole: Option<(i128, i128)>,
    /// Summary of the expected values.
    pub expected: ExpectedValues,
    /// Errors that all elements share.
    pub(super) bias: Bias,
    /// Systematic error above its limit.
    pub(super) biased: Option<f64>,
}

/// Elements for each one that may be outside its tolerance.
const ELEMENTS_PER_RARE: u64 = 10_000;

/// Largest error of such an element, in tolerances.
const RARE_ERROR: f64 = 2.0;

/// Values of one compared element.
#[derive(Debug, Clone, Copy)]
struct ElementValues {
    got: f64,
    want: f64,
    tolerance: f64,
}

impl Comparison {
    /// Reports whether all elements are within their tolerances.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.wrong == 0 && self.max_error <= 1.0 && self.biased.is_none()
    }

    /// Accepts a few wrong elements of a floating-point type: at most one in [`ELEMENTS_PER_RARE`], within
    /// [`RARE_ERROR`] tolerances. A candidate that rounds at other points than the reference has such
    /// elements.
    pub(super) fn accept_rare(&mut self) {
        if self.wrong > 0 && self.has_few_wrong() && self.max_error <= RARE_ERROR {
            self.rare = std::mem::take(&mut self.wrong);
            // `passed` admits an error of at most one tolerance.
            self.rare_error = std::mem::replace(&mut self.max_error, 1.0);
            (self.first_wrong, self.first_whole, self.pattern) = (None, None, None);
        }
    }

    /// Reports whether at most one element in [`ELEMENTS_PER_RARE`] is wrong.
    pub(super) fn has_few_wrong(&self) -> bool {
        self.wrong.saturating_mul(ELEMENTS_PER_RARE) <= self.compared
    }

    /// Merges the comparison of another part.
    pub fn merge(&mut self, other: &Self) {
        self.compared += other.compared;
        self.expected.merge(other.expected);
        self.bias.merge(&other.bias);
        self.biased = self.biased.or(other.biased);
        self.wrong += other.wrong;
        self.discontinuous += other.discontinuous;
        self.rare += other.rare;
        self.rare_error = self.rare_error.max(other.rare_error);
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

    /// Sets the systematic error that the output may have, after all its elements.
    pub(super) fn limit_bias(&mut self, limit: f64) {
        self.bias.set_limit(limit);
        self.biased = self.bias.above(1.0);
    }

    fn element(&mut self, index: u64, got: f64, [want, tolerance]: [f64; 2]) {
        // Equal infinities agree; NaN agrees only with NaN; any other non-finite value is wrong.
        let difference = if got == want || (got.is_nan() && want.is_nan()) {
            0.0
        } else if got.is_finite() && want.is_finite() {
            (got - want).abs()
        } else {
            f64::INFINITY
        };
        let values = ElementValues {
            got,
            want,
            tolerance,
        };
        self.add_element(index, difference, values, None);
    }

    /// Compares integers, whose difference is exact.
    fn whole(&mut self, index: u64, got: i128, want: i128, tolerance: f64) {
        let values = ElementValues {
            got: got as f64,
            want: want as f64,
            tolerance,
        };
        self.add_element(index, got.abs_diff(want) as f64, values, Some((got, want)));
    }

    fn add_element(
        &mut self,
        index: u64,
        difference: f64,
        values: ElementValues,
        whole: Option<(i128, i128)>,
    ) {
        let ElementValues {
            got,
            want,
            tolerance,
        } = values;
        self.compared += 1;
        self.expected.add(want, tolerance);
        let ratio = if difference == 0.0 || difference == f64::INFINITY {
            difference
        } else {
            // Without a tolerance any error counts as infinite. For integers half a unit is the
            // divisor, since they differ by at least one.
            let least = if whole.is_some() { 0.5 } else { 0.0 };
            // Infinity is reserved for a non-finite value in place of a finite one.
            (difference / tolerance.max(least)).min(f64::MAX)
        };
        self.max_error = self.max_error.max(ratio);
        if ratio > 1.0 {
            self.wrong += 1;
            self.add_wrong(Some(WrongElements::new(index, got, want)));
            if self.first_wrong.is_none() {
                self.first_wrong = Some((index, got, want, tolerance));
                self.first_whole = whole;
            }
        }
    }

    /// Describes the number of wrong elements and the first one with both values.
    #[must_use]
    pub fn describe(&self, output: &str, shape: &[u64]) -> String {
        match (self.first_wrong, self.biased) {
            (Some((index, got, want, tolerance)), _) => format!(
                "{} of {} elements of `{output}` are wrong; first {output}{} = {}{}",
                self.wrong,
                self.compared,
                subscript(index, shape),
                self.values(got, want, tolerance),
                self.pattern
                    .map_or_else(String::new, |all| all.describe(self.compared, shape)),
            ),
            (None, Some(error)) => bias::describe(error, output),
            (None, None) => format!(
                "the error norm of a tile of `{output}` is {:.2} times its bound though each element is within its own: precision was lost across the tile",
                self.max_error
            ),
        }
    }

    /// Formats `1.5e0, expected 1e0 ± 1.0e-3`.
    fn values(&self, got: f64, want: f64, tolerance: f64) -> String {
        match self.first_whole {
            Some((got, want)) if tolerance == 0.0 => format!("{got}, expected {want} exactly"),
            Some((got, want)) => format!("{got}, expected {want} ± {tolerance}"),
            None => format!("{got:e}, expected {want:e} ± {tolerance:.1e}"),
        }
    }
}

/// Formats a flat index as `[1][0][3]`.
pub(super) fn subscript(index: u64, shape: &[u64]) -> String {
    let mut rest = index;
    let mut parts = Vec::new();
    for extent in shape.iter().rev() {
        let extent = (*extent).max(1);
        parts.push(rest % extent);
        rest /= extent;
    }
    parts.iter().rev().map(|i| format!("[{i}]")).collect()
}

/// Returns the bytes from element `index` on; empty if out of range.
pub(super) fn from(element: Element, bytes: &[u8], index: u64) -> &[u8] {
    let start = usize::try_from(index)
        .unwrap_or(usize::MAX)
        .saturating_mul(element.size());
    bytes.get(start..).unwrap_or(&[])
}

/// Reports whether elements in ranges of an output have the bytes of a reference of the same type.
pub(super) fn are_equal(
    element: Element,
    bytes: &[u8],
    reference: &[u8],
    ranges: &[Range<u64>],
) -> bool {
    let part = |bytes, range: &Range<u64>| {
        let start = from(element, bytes, range.start);
        let count = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        start.get(..count.saturating_mul(element.size()))
    };
    ranges.iter().all(|range| {
        let (got, want) = (part(bytes, range), part(reference, range));
        got.is_some() && got == want
    })
}

/// Compares ranges of an output with an oracle by a rule: each element, and the error norm of each
/// run that the rule judges by norm.
#[must_use]
pub fn with_oracle(
    oracle: &dyn Oracle,
    output: usize,
    element: Element,
    bytes: &[u8],
    ranges: &[Range<u64>],
    rule: Rule,
) -> Comparison {
    let mut total = Comparison::default();
    for range in ranges {
        let mut result = Comparison::default();
        for slab in slabs(oracle, output, range) {
            let expected = expected_output(oracle, output, element, &[slab], rule);
            let mut values = expected.values.iter();
            for unit in &expected.units {
                let mut error = 0.0;
                for (index, want) in (unit.start..unit.start + unit.count).zip(&mut values) {
                    let got = element.decode(from(element, bytes, index));
                    result.element(index, got, *want);
                    error += (got - want[0]).powi(2);
                }
                // Equal infinities differ by NaN; other ones already count as wrong elements.
                if unit.bound > 0.0 && error.is_finite() {
                    result.max_error = result.max_error.max((error / unit.bound).sqrt());
                }
            }
        }
        total.merge(&result);
    }
    total
}

/// Compares elements `range` of an output with a reference of the same type. `expected` returns the
/// expected value and the tolerance for an element's index and reference value. Integers are compared
/// with the reference exactly, not as float64.
pub fn with_reference(
    element: Element,
    bytes: &[u8],
    reference: &[u8],
    range: Range<u64>,
    mut expected: impl FnMut(u64, f64) -> [f64; 2],
) -> Comparison {
    let mut result = Comparison::default();
    let biased = bias::is_checked(element);
    for index in range {
        let (got, want) = (from(element, bytes, index), from(element, reference, index));
        let value = element.decode(want);
        let [centre, tolerance] = expected(index, value);
        if let (Some(got), Some(want)) = (element.whole(got), element.whole(want)) {
            result.whole(index, got, want, tolerance);
            continue;
        }
        let got = element.decode(got);
        // The reference's own result is never wrong, however far it is from the centre.
        let centre = if got == value { value } else { centre };
        if biased {
            result.bias.add(got - centre, centre);
        }
        result.element(index, got, [centre, tolerance]);
    }
    result
}

#[cfg(test)]
mod tests;
