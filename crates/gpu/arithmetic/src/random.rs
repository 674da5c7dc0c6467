//! Random rounding: a result moves to one of its two neighbours in a format by the toss of a coin.
//!
//! This is random rounding as CADNA and Verrou use it to estimate the rounding error of a program:
//! J. Vignes, "Discrete Stochastic Arithmetic for Validating Results of Numerical Software", 2004;
//! F. Févotte and B. Lathuilière, "VERROU", 2016. Exact results stay exact. A precision below that
//! of the format rounds results to fewer bits, as in VPREC (Y. Chatelain et al., 2019).

use super::half::Half;
use super::single;

/// Significand bits of a single, the leading one included.
pub const SINGLE_BITS: u32 = 24;
/// Significand bits of a double, the leading one included.
pub const DOUBLE_BITS: u32 = 53;

/// [`f32::is_normal`] without branches.
#[inline(always)]
fn is_normal(x: f32) -> bool {
    let exponent = x.to_bits() & 0x7f80_0000;
    (exponent != 0) & (exponent != 0x7f80_0000)
}

/// Reports whether an addend rounds a single to an integer: 2^23, or 1.5 · 2^23 with an offset that
/// the last bits carry along.
#[inline(always)]
fn rounds_to_whole(x: f32) -> bool {
    let code = x.to_bits() & 0x7fff_ffff;
    (code == 0x4b00_0000) | (code.wrapping_sub(0x4b40_0000 - (1 << 10)) <= 2 << 10)
}

/// The rounding of one result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Toss {
    /// Significand bits that a result keeps at most.
    pub precision: u32,
    /// Away from zero, else towards it.
    pub away: bool,
    /// A second coin, for instructions that round twice.
    pub second: bool,
}

impl Toss {
    /// The second coin as the first.
    #[must_use]
    pub fn other(self) -> Self {
        Self {
            away: self.second,
            second: self.away,
            ..self
        }
    }

    /// Keeps `bits` significand bits of a finite normal number. Without branches, so that loops over
    /// lanes vectorise.
    #[inline(always)]
    fn round(self, exact: f64, bits: u32) -> f64 {
        let dropped = (1_u64 << (DOUBLE_BITS - bits.clamp(1, DOUBLE_BITS))) - 1;
        let code = exact.to_bits();
        let up = self.away & (code & dropped != 0);
        // A carry out of the fraction raises the exponent, as it should.
        f64::from_bits((code & !dropped).wrapping_add(if up { dropped + 1 } else { 0 }))
    }

    /// A single, from its value rounded to nearest and its value in double precision. Subnormal
    /// results, infinities and NaN stay as they are.
    #[must_use]
    #[inline(always)]
    pub fn single(self, nearest: f32, exact: f64) -> f32 {
        let rounded = self.round(exact, self.precision.min(SINGLE_BITS)) as f32;
        if is_normal(nearest) & rounded.is_finite() {
            rounded
        } else {
            nearest
        }
    }

    /// The sum of two singles.
    #[must_use]
    #[inline(always)]
    pub fn single_sum(self, a: f32, b: f32) -> f32 {
        let nearest = single::add_rn(a, b);
        let random = self.single(nearest, f64::from(a) + f64::from(b));
        // The addition rounds to an integer on purpose: a random result would break the idiom.
        if rounds_to_whole(a) | rounds_to_whole(b) {
            nearest
        } else {
            random
        }
    }

    /// `a · b + c` in single precision, with the product rounded too: whether it is fused is the
    /// compiler's choice. Product and sum have separate coins.
    #[must_use]
    #[inline(always)]
    pub fn single_fused(self, a: f32, b: f32, c: f32) -> f32 {
        let product = f64::from(a) * f64::from(b);
        let rounded = self.other().single(product as f32, product);
        let exact = f64::from(rounded) + f64::from(c);
        let random = self.single(exact as f32, exact);
        let nearest = single::canonical(a.mul_add(b, c));
        // A product that is not normal has lost bits that the fused result keeps.
        if rounds_to_whole(c) | !is_normal(rounded) {
            nearest
        } else {
            random
        }
    }

    /// A single that an approximate function returned: it moves by a unit in the last place at
    /// most. Powers of two and whole numbers count as exact.
    #[must_use]
    pub fn approximate(self, nearest: f32) -> f32 {
        let exact = nearest.to_bits() & 0x007f_ffff == 0 || nearest.trunc() == nearest;
        // At most a quarter of the last place: rounding takes the number itself or its neighbour.
        let (value, last_place) = (f64::from(nearest), 2_f64.powi(-26));
        let moved = match (exact, self.second) {
            (true, _) => value,
            (false, true) => value * (1.0 + last_place),
            (false, false) => value * (1.0 - last_place),
        };
        self.single(nearest, moved)
    }

    /// A double, from its value rounded to nearest and the sign of what that leaves out.
    #[must_use]
    pub fn double(self, nearest: f64, error: f64) -> f64 {
        if !nearest.is_normal() {
            return nearest;
        }
        if self.precision < DOUBLE_BITS {
            let rounded = self.round(nearest, self.precision);
            return if rounded.is_finite() {
                rounded
            } else {
                nearest
            };
        }
        if error == 0.0 || error.is_nan() {
            return nearest;
        }
        // The exact value lies between `nearest` and its neighbour on the side of the error.
        let outward = (error > 0.0) == (nearest > 0.0);
        let code = nearest.to_bits();
        match (outward, self.away) {
            (true, true) => f64::from_bits(code + 1),
            (false, false) => f64::from_bits(code - 1),
            _ => nearest,
        }
    }

    /// A 16-bit number, from its value rounded to nearest and its value in double precision.
    #[must_use]
    pub fn half<H: Half>(self, nearest: u16, exact: f64) -> u16 {
        let magnitude = nearest & 0x7fff;
        let smallest = 1 << H::FORMAT.fraction;
        if magnitude < smallest || u64::from(magnitude) >= H::FORMAT.infinity() {
            return nearest;
        }
        let bits = self.precision.min(H::FORMAT.fraction + 1);
        H::narrow(self.round(exact, bits) as f32)
    }
}

/// What `a + b` to nearest leaves out (Knuth).
#[must_use]
pub fn sum_error(a: f64, b: f64) -> f64 {
    let sum = a + b;
    let b_part = sum - a;
    (a - (sum - b_part)) + (b - b_part)
}

/// What `a · b` to nearest leaves out.
#[must_use]
pub fn product_error(a: f64, b: f64) -> f64 {
    a.mul_add(b, -(a * b))
}

#[cfg(test)]
mod tests;
