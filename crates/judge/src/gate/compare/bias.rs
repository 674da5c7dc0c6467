//! Systematic error of an output: a factor by which all its elements are too large or too small.
//!
//! A constant that is wrong by one rounding of a 16-bit type keeps each element within its tolerance. Rounding
//! errs on either side, so over many elements it cancels, and a factor remains. The factor is the
//! regression coefficient of the errors on the expected values, `b = Σ(got − want)·want / Σwant²`, with the standard
//! error `√Σ((got − want)·want)² / Σwant²` of independent errors.

use tuner_core::element::Element;

/// Standard errors that a systematic error must exceed.
const STANDARD_ERRORS: f64 = 6.0;

/// Reports whether the rounding of a type is above other errors, so that outputs of it are checked.
pub(super) fn is_checked(element: Element) -> bool {
    element.unit_roundoff() >= Element::F16.unit_roundoff()
}

/// Returns the systematic error that a kernel with this relative tolerance may have: one rounding of a factor
/// that all elements share, such as a scale in a 16-bit type, and the truncation of sums. Zero for types
/// that are not checked.
pub(in crate::gate) fn limit(element: Element, relative: f64) -> f64 {
    if !is_checked(element) {
        return 0.0;
    }
    let rounding = element.unit_roundoff();
    rounding.min(Element::Bf16.unit_roundoff()) + relative - 2.0 * rounding
}

/// Sums over the compared elements of an output.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(in crate::gate) struct Bias {
    /// `Σ(got − want)·want`.
    product: f64,
    /// `Σ((got − want)·want)²`.
    noise: f64,
    /// `Σwant²`.
    square: f64,
    /// Systematic error that a kernel may have; zero if it is not checked.
    limit: f64,
}

impl Bias {
    /// Adds an element with its error.
    pub(super) fn add(&mut self, error: f64, want: f64) {
        let product = error * want;
        if product.is_finite() {
            self.product += product;
            self.noise += product * product;
            self.square += want * want;
        }
    }

    /// Adds the sums of other elements of the output.
    pub(in crate::gate) fn merge(&mut self, other: &Self) {
        self.product += other.product;
        self.noise += other.noise;
        self.square += other.square;
        self.limit = self.limit.max(other.limit);
    }

    /// Sets the systematic error that a kernel may have.
    pub(in crate::gate) fn set_limit(&mut self, limit: f64) {
        self.limit = limit;
    }

    /// Returns the systematic error if it is certain to exceed a share of the limit.
    pub(in crate::gate) fn above(&self, share: f64) -> Option<f64> {
        if self.limit <= 0.0 || self.square <= 0.0 {
            return None;
        }
        let error = self.product / self.square;
        let uncertainty = STANDARD_ERRORS * self.noise.sqrt() / self.square;
        (error.abs() - uncertainty > share * self.limit).then_some(error)
    }
}

/// Describes a systematic error.
pub(in crate::gate) fn describe(error: f64, output: &str) -> String {
    let direction = if error < 0.0 { "small" } else { "large" };
    format!(
        "`{output}` is {:.2} % too {direction} on average, though each element is within its tolerance: a constant \
         or a rounding mode is wrong",
        100.0 * error.abs()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the sums of values that are rounded to the type after a factor.
    fn with_factor(element: Element, factor: f64, count: u32) -> Bias {
        let mut bias = Bias::default();
        for index in 1..=count {
            let want = f64::from(index).sqrt() * if index % 2 == 0 { 1.0 } else { -1.0 };
            bias.add(element.round(want * factor) - want, want);
        }
        bias.set_limit(limit(element, 2.0 * element.unit_roundoff()));
        bias
    }

    #[test]
    fn a_factor_of_more_than_a_rounding_is_found() {
        for element in [Element::Bf16, Element::F16] {
            let unit = element.unit_roundoff();
            assert_eq!(with_factor(element, 1.0, 4096).above(0.1), None);
            assert_eq!(
                with_factor(element, 1.0 + unit / 2.0, 4096).above(1.0),
                None
            );
            let small = with_factor(element, 1.0 - 1.5 * unit, 4096).above(1.0);
            assert!(small.is_some_and(|error| error < -unit), "{small:?}");
            let few = with_factor(element, 1.0 - 1.5 * unit, 16).above(1.0);
            assert_eq!(few, None, "16 elements do not tell a factor from rounding");
        }
    }

    #[test]
    fn types_of_more_digits_are_not_checked() {
        assert_eq!(limit(Element::F32, 1e-5), 0.0);
        assert_eq!(limit(Element::I8, 0.0), 0.0);
    }
}
