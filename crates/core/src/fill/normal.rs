//! Normally distributed elements, many at once.
//!
//! Most of a random buffer's time is spent in the C library's logarithm and cosine. Here both are series
//! that the compiler vectorizes. They are used for an element only if their error cannot change its
//! rounding; [`Fill::value`] computes the others, so the bytes are those of `Fill::value`.

use super::{Fill, uniforms};
use crate::element::Element;
use crate::fp8;
use gpu_arithmetic::host::vectorised;
use half::{bf16, f16};
use std::f64::consts::{LN_2, SQRT_2, TAU};
use std::ops::Range;

/// Largest standard normal value of 53 random bits, √(2 · 54 · ln 2), rounded up.
const MAX_NORMAL: f64 = 9.0;

/// Bound of the combined error of the series and the C library, for the largest value. Each operation errs
/// by at most 2⁻⁵³ of its result; this allows more than a hundred operations.
const MAX_ERROR: f64 = 1.0 / (1_u64 << 45) as f64;

/// Source of a buffer's random values.
pub(super) struct Normal {
    pub(super) mean: f64,
    pub(super) std: f64,
    pub(super) seed: u64,
    pub(super) buffer: u64,
}

impl Normal {
    /// Appends the elements of `range`, little-endian. Returns false, and appends nothing, for
    /// types that are as precise as the computation, for integers, and for values near infinity.
    pub(super) fn append(&self, element: Element, range: Range<u64>, out: &mut Vec<u8>) -> bool {
        let largest = self.largest();
        if largest > f64::from(f32::MAX) || largest.is_nan() {
            return false;
        }
        match element {
            Element::F16 => self.rounded(element, range, out, |x| f16::from_f64(x).to_le_bytes()),
            Element::Bf16 => self.rounded(element, range, out, |x| bf16::from_f64(x).to_le_bytes()),
            Element::F32 => self.rounded(element, range, out, |x| (x as f32).to_le_bytes()),
            Element::F8e4m3 => self.rounded(element, range, out, |x| [fp8::E4M3.encode(x)]),
            Element::F8e5m2 => self.rounded(element, range, out, |x| [fp8::E5M2.encode(x)]),
            _ => return false,
        }
        true
    }

    /// Appends elements that `round` rounds to `element`; it must be monotonic.
    fn rounded<const N: usize>(
        &self,
        element: Element,
        range: Range<u64>,
        out: &mut Vec<u8>,
        round: impl Fn(f64) -> [u8; N],
    ) {
        let error = self.largest() * MAX_ERROR;
        let exact = Fill::Normal {
            mean: self.mean,
            std: self.std,
        };
        let pairs = range
            .clone()
            .map(|index| uniforms(self.seed, self.buffer, index));
        let (mut values, seconds): (Vec<f64>, Vec<f64>) = pairs.unzip();
        vectorised(
            #[inline(always)]
            || {
                for (value, second) in values.iter_mut().zip(&seconds) {
                    *value = self.mean + self.std * normal(*value, *second);
                }
            },
        );
        for (index, value) in range.zip(&values) {
            let (low, high) = (round(value - error), round(value + error));
            if low == high {
                out.extend(low);
            } else {
                element.encode(exact.value(self.seed, self.buffer, index), out);
            }
        }
    }

    /// Returns a bound of the values.
    fn largest(&self) -> f64 {
        self.mean.abs() + MAX_NORMAL * self.std.abs()
    }
}

/// Returns a standard normal value from two uniform ones (Box and Muller 1958).
#[inline(always)]
fn normal(first: f64, second: f64) -> f64 {
    (-2.0 * logarithm(first)).sqrt() * cosine_of_turns(second)
}

/// Returns the natural logarithm of a normal number: 2 artanh((m − 1) / (m + 1)) of its mantissa m between
/// √½ and √2, as a Taylor series.
#[inline(always)]
fn logarithm(x: f64) -> f64 {
    let root = (0.5 * SQRT_2).to_bits();
    let exponent = (x.to_bits().wrapping_sub(root) as i64) >> 52;
    let mantissa = f64::from_bits(x.to_bits().wrapping_sub((exponent << 52) as u64));
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let z = s * s;
    // z is below 0.0295, so the first omitted term is below 2⁻⁵³.
    let series = (0..10)
        .rev()
        .fold(0.0, |sum, term| sum * z + 1.0 / f64::from(2 * term + 1));
    exponent as f64 * LN_2 + 2.0 * s * series
}

/// Returns cos(2π `turns`) for `turns` between 0 and 1: Taylor series within an eighth of a turn of the
/// nearest quarter.
#[inline(always)]
fn cosine_of_turns(turns: f64) -> f64 {
    let quarter = (4.0 * turns + 0.5).floor();
    let angle = TAU * (turns - 0.25 * quarter);
    let z = -angle * angle;
    // Factors of successive terms; the first omitted term is below 2⁻⁵³.
    let cosine = (1..9).rev().fold(1.0, |sum, term| {
        let n = f64::from(2 * term);
        1.0 + sum * z * (1.0 / (n * (n - 1.0)))
    });
    let sine = (1..9).rev().fold(1.0, |sum, term| {
        let n = f64::from(2 * term);
        1.0 + sum * z * (1.0 / (n * (n + 1.0)))
    });
    let odd = quarter == 1.0 || quarter == 3.0;
    let size = if odd { angle * sine } else { cosine };
    let negative = quarter == 1.0 || quarter == 2.0;
    if negative { -size } else { size }
}

#[cfg(test)]
mod tests;
