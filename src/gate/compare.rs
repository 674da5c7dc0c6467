//! Comparing what a kernel wrote with what it should have written.

use super::element::Element;
use super::oracle::{Expected, Oracle};
use super::pattern::WrongElements;

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
        self.first_wrong = match (self.first_wrong, other.first_wrong) {
            (Some(mine), Some(theirs)) if theirs.0 < mine.0 => Some(theirs),
            (mine, theirs) => mine.or(theirs),
        };
        self.add_wrong(other.pattern);
    }

    fn add_wrong(&mut self, more: Option<WrongElements>) {
        match (&mut self.pattern, more) {
            (Some(all), Some(more)) => all.join(&more),
            (pattern, more) => *pattern = pattern.or(more),
        }
    }

    /// Moves the index of the first wrong element, for a part that began at `start`.
    pub(super) fn shift(&mut self, start: u64) {
        if let Some(wrong) = &mut self.first_wrong {
            wrong.0 += start;
        }
        if let Some(pattern) = &mut self.pattern {
            pattern.shift(start);
        }
    }

    fn element(&mut self, index: u64, got: f64, want: Expected) {
        self.compared += 1;
        // Equal infinities agree; NaN agrees with NaN only; anything else not finite is wrong.
        let ratio = if got == want.value || (got.is_nan() && want.value.is_nan()) {
            0.0
        } else if got.is_finite() && want.value.is_finite() {
            (got - want.value).abs() / want.tolerance.max(f64::MIN_POSITIVE)
        } else {
            f64::INFINITY
        };
        self.max_error = self.max_error.max(ratio);
        if ratio > 1.0 {
            self.wrong += 1;
            self.add_wrong(Some(WrongElements::one(index, got, want.value)));
            self.first_wrong
                .get_or_insert((index, got, want.value, want.tolerance));
        }
    }

    /// A sentence for people: how many are wrong, and the first with both values.
    #[must_use]
    pub fn describe(&self, output: &str, shape: &[u64]) -> String {
        match self.first_wrong {
            Some((index, got, want, tolerance)) => format!(
                "{} of {} elements of `{output}` are wrong; first {output}{} = {got:e}, expected {want:e} ± {tolerance:.1e}{}",
                self.wrong,
                self.compared,
                subscript(index, shape),
                self.pattern
                    .map_or_else(String::new, |all| all.describe(self.compared, shape)),
            ),
            None => format!(
                "the error norm of a tile of `{output}` is {:.2} times its bound though each element is within its own: precision was lost across the tile",
                self.max_error
            ),
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

/// Tiles of fewer elements than this are not judged by their norm: too few for a statistic.
const NORM_MIN_ELEMENTS: usize = 64;

/// Nor are tiles whose bound a few large elements carry, such as a peaked softmax row: one element
/// may honestly err by more than the rms that the bound is made of. Counted as (Σb)² / Σb².
const NORM_MIN_EFFECTIVE: f64 = 16.0;

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
    let size = element.size();
    let tile = oracle.tile(output).max(1);
    let (mut at, end) = (start, start + count);
    while at < end {
        let next = ((at / tile + 1) * tile).min(end);
        let expected = oracle.span(output, at, next - at);
        let (mut error, mut bound, mut bound_squares) = (0.0, 0.0, 0.0);
        for (index, want) in (at..next).zip(&expected) {
            let from = usize::try_from(index)
                .unwrap_or(usize::MAX)
                .saturating_mul(size);
            let got = bytes
                .get(from..)
                .map_or(f64::NAN, |rest| element.decode(rest));
            result.element(index, got, *want);
            error += (got - want.value).powi(2);
            let square = want.rms.powi(2) + element.smallest_step().powi(2);
            bound += square;
            bound_squares += square * square;
        }
        let enough = expected.len() >= NORM_MIN_ELEMENTS
            && bound * bound >= NORM_MIN_EFFECTIVE * bound_squares;
        if enough && bound > 0.0 && error.is_finite() {
            result.max_error = result.max_error.max((error / bound).sqrt());
        }
        at = next;
    }
    result
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
    range: &std::ops::Range<u64>,
    flat: Option<(f64, f64)>,
) -> Comparison {
    let mut result = Comparison::default();
    let expected = oracle.span(output, range.start, range.end - range.start);
    for (index, want) in range.clone().zip(expected) {
        let from = usize::try_from(index)
            .unwrap_or(usize::MAX)
            .saturating_mul(element.size());
        let got = bytes
            .get(from..)
            .map_or(f64::NAN, |rest| element.decode(rest));
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
    range: &std::ops::Range<u64>,
) -> Comparison {
    let mut result = Comparison::default();
    let expected = oracle.span(output, range.start, range.end - range.start);
    for (index, want) in range.clone().zip(expected) {
        let from = usize::try_from(index)
            .unwrap_or(usize::MAX)
            .saturating_mul(element.size());
        let got = bytes
            .get(from..)
            .map_or(f64::NAN, |rest| element.decode(rest));
        let rounded = Expected {
            value: element.round(want.value),
            tolerance: 0.0,
            rms: 0.0,
        };
        result.element(index, got, rounded);
    }
    // An error over no tolerance is no figure: what counts is right or wrong.
    if result.wrong > 0 {
        result.max_error = f64::MAX;
    }
    result
}

/// Compares with reference bytes of the same type under `|got − want| ≤ atol + rtol · |want|`.
#[must_use]
pub fn with_reference(
    element: Element,
    bytes: &[u8],
    reference: &[u8],
    atol: f64,
    rtol: f64,
) -> Comparison {
    let mut result = Comparison::default();
    let size = element.size();
    let parts = bytes.chunks_exact(size).zip(reference.chunks_exact(size));
    for (index, (got, want)) in (0u64..).zip(parts) {
        let value = element.decode(want);
        let tolerance = atol + rtol * value.abs();
        result.element(
            index,
            element.decode(got),
            Expected {
                value,
                tolerance,
                rms: 0.0,
            },
        );
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|v| v.to_le_bytes()).collect()
    }

    #[test]
    fn a_nan_in_place_of_a_number_is_wrong_however_loose_the_tolerance() {
        let result = with_reference(
            Element::F32,
            &bytes(&[1.0, f32::NAN]),
            &bytes(&[1.0, 2.0]),
            1e9,
            1.0,
        );
        assert_eq!((result.wrong, result.passed()), (1, false));
        assert!(
            result.describe("c", &[1, 2]).contains("c[0][1] = NaN"),
            "{}",
            result.describe("c", &[1, 2])
        );
    }

    #[test]
    fn equal_infinities_agree_and_opposite_ones_do_not() {
        let inf = f32::INFINITY;
        assert!(with_reference(Element::F32, &bytes(&[inf]), &bytes(&[inf]), 0.0, 0.0).passed());
        assert!(!with_reference(Element::F32, &bytes(&[inf]), &bytes(&[-inf]), 1.0, 1.0).passed());
    }

    /// One tile of 100 float32 elements of which the first is `first` and the others are 1e-6.
    struct Peaked {
        first: f64,
    }

    impl Oracle for Peaked {
        fn span(&self, _output: usize, start: u64, count: u64) -> Vec<Expected> {
            let value = |i| if i == 0 { self.first } else { 1e-6 };
            (start..start + count)
                .map(|i| Expected {
                    value: value(i),
                    tolerance: 0.01 * value(i),
                    rms: 0.003 * value(i),
                })
                .collect()
        }

        fn tile(&self, _output: usize) -> u64 {
            100
        }
    }

    #[test]
    fn a_tile_that_one_element_dominates_is_judged_by_its_elements_alone() {
        let check = |first: f64| {
            let values: Vec<f32> = (0..100)
                .map(|i| (if i == 0 { first } else { 1e-6 } * 1.008) as f32)
                .collect();
            let oracle = Peaked { first };
            with_oracle(&oracle, 0, Element::F32, &bytes(&values), 0, 100).passed()
        };
        assert!(check(1.0), "0.8 of its tolerance");
        assert!(!check(1e-6), "every element is off by 0.8 of its tolerance");
    }

    proptest! {
        #[test]
        fn a_single_corrupted_element_is_always_found(
            values in proptest::collection::vec(-1e3f32..1e3, 1..50),
            at in any::<prop::sample::Index>(),
        ) {
            let mut other = values.clone();
            let i = at.index(values.len());
            other[i] += other[i].abs() * 0.01 + 0.01;
            let result = with_reference(Element::F32, &bytes(&other), &bytes(&values), 1e-3, 1e-3);
            prop_assert_eq!(result.first_wrong.map(|w| w.0), Some(i as u64));
            prop_assert!(with_reference(Element::F32, &bytes(&values), &bytes(&values), 0.0, 0.0).passed());
        }
    }
}
