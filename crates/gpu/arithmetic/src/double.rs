//! Double precision: exactly rounded arithmetic, minimum and maximum.
//!
//! PTX leaves NaN payloads of `.f64` to the implementation. Here every NaN result is
//! 0x7fffffffffffffff, the pattern of the other formats, so that runs compare bit for bit.

use super::Round;
use super::soft::{self, F64};

/// The NaN that arithmetic on doubles returns.
pub const NAN_BITS: u64 = 0x7fff_ffff_ffff_ffff;

/// Replaces any NaN by the canonical one.
#[inline(always)]
pub fn canonical(x: f64) -> f64 {
    if x.is_nan() {
        f64::from_bits(NAN_BITS)
    } else {
        x
    }
}

/// `.sat`: clamps to [0, 1]; NaN becomes +0.
#[inline(always)]
pub fn sat(x: f64) -> f64 {
    let low = if x > 0.0 { x } else { 0.0 };
    if low < 1.0 { low } else { 1.0 }
}

/// `a + b`.
#[inline]
pub fn add(a: f64, b: f64, round: Round) -> f64 {
    match round {
        Round::Rn | Round::Rna => canonical(a + b),
        _ => f64::from_bits(soft::add(F64, a.to_bits(), b.to_bits(), round)),
    }
}

/// `a - b`.
#[inline]
pub fn sub(a: f64, b: f64, round: Round) -> f64 {
    // The sign that a NaN gets does not matter, because every NaN result is canonical.
    add(a, -b, round)
}

/// `a · b`.
#[inline]
pub fn mul(a: f64, b: f64, round: Round) -> f64 {
    match round {
        Round::Rn | Round::Rna => canonical(a * b),
        _ => f64::from_bits(soft::mul(F64, a.to_bits(), b.to_bits(), round)),
    }
}

/// `a · b + c`, rounded once.
#[inline]
pub fn fma(a: f64, b: f64, c: f64, round: Round) -> f64 {
    match round {
        // Specified as IEEE 754's fusedMultiplyAdd, which software emulates exactly on hosts
        // without the instruction.
        Round::Rn | Round::Rna => canonical(a.mul_add(b, c)),
        _ => f64::from_bits(soft::fma(F64, a.to_bits(), b.to_bits(), c.to_bits(), round)),
    }
}

/// `a / b`.
#[inline]
pub fn div(a: f64, b: f64, round: Round) -> f64 {
    match round {
        Round::Rn | Round::Rna => canonical(a / b),
        _ => f64::from_bits(soft::div(F64, a.to_bits(), b.to_bits(), round)),
    }
}

/// `1 / a`.
#[inline]
pub fn rcp(a: f64, round: Round) -> f64 {
    div(1.0, a, round)
}

/// `√a` to nearest; see [`super::single::sqrt_rn`] for the form of the test.
#[inline(always)]
pub fn sqrt_rn(a: f64) -> f64 {
    let root = a.abs().sqrt().to_bits() | (a.to_bits() & (1 << 63));
    f64::from_bits(if a >= 0.0 { root } else { NAN_BITS })
}

/// `√a`.
#[inline]
pub fn sqrt(a: f64, round: Round) -> f64 {
    match round {
        Round::Rn | Round::Rna => sqrt_rn(a),
        _ => f64::from_bits(soft::sqrt(F64, a.to_bits(), round)),
    }
}

/// `min.f64`: a NaN operand yields the other one; -0 is below +0.
#[inline]
pub fn min(a: f64, b: f64) -> f64 {
    select(a, b, order(a) <= order(b))
}

/// `max.f64`: a NaN operand yields the other one; +0 is above -0.
#[inline]
pub fn max(a: f64, b: f64) -> f64 {
    select(a, b, order(a) >= order(b))
}

#[inline(always)]
fn select(a: f64, b: f64, first: bool) -> f64 {
    match (a.is_nan(), b.is_nan()) {
        (true, _) => canonical(b),
        (_, true) => a,
        _ if first => a,
        _ => b,
    }
}

#[inline(always)]
fn order(x: f64) -> i64 {
    // Negative numbers have the reverse order of their bits; -0 then is just below +0.
    let bits = x.to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}
