//! `cvt` between floating point and integers, between integer widths, and integral rounding.

use super::soft::{self, F16, F32, F64, Finite, Format};
use super::{Overflow, Round, double, single};

/// An integer type of PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IntType {
    /// Width: 8, 16, 32 or 64.
    pub bits: u32,
    /// The type is signed.
    pub signed: bool,
}

impl IntType {
    /// Returns the smallest and the largest value.
    #[inline]
    pub const fn range(self) -> (i128, i128) {
        if self.signed {
            (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1)
        } else {
            (0, (1 << self.bits) - 1)
        }
    }

    /// Returns the value of the low bits of a register.
    #[inline]
    pub const fn value(self, register: u64) -> i128 {
        let unused = 64 - self.bits;
        if self.signed {
            ((register << unused) as i64 >> unused) as i128
        } else {
            ((register << unused) >> unused) as i128
        }
    }
}

/// `cvt.{rni,rzi,rmi,rpi}.f32.f32`: the nearest integral value in that direction. A float and its
/// integral neighbours are exact as doubles.
#[inline]
pub fn integral_f32(x: f32, round: Round) -> f32 {
    single::canonical(toward(f64::from(x), round) as f32)
}

/// `cvt.{rni,rzi,rmi,rpi}.f64.f64`: the nearest integral value in that direction.
#[inline]
pub fn integral_f64(x: f64, round: Round) -> f64 {
    double::canonical(toward(x, round))
}

#[inline]
fn toward(x: f64, round: Round) -> f64 {
    match round {
        Round::Rn => x.round_ties_even(),
        Round::Rz => x.trunc(),
        Round::Rm => x.floor(),
        Round::Rp => x.ceil(),
        Round::Rna => x.round(),
    }
}

/// Converts a float to an integer, clamped to the type's range; the result is sign- or
/// zero-extended.
///
/// `from_f64` marks a `.f64` source (narrower sources convert exactly to `x`). NaN becomes 0; for a
/// 64-bit source or destination it becomes the destination's highest bit (PTX ISA, cvt).
#[inline]
pub fn float_to_int(x: f64, from_f64: bool, to: IntType, round: Round) -> u64 {
    if x.is_nan() {
        if !from_f64 && to.bits != 64 {
            return 0;
        }
        let top = 1_u64 << (to.bits - 1);
        return if to.signed { to.value(top) as u64 } else { top };
    }
    let integral = integral_f64(x, round);
    // Rust's casts saturate as `cvt` does.
    match (to.bits, to.signed) {
        (8, true) => i64::from(integral as i8) as u64,
        (8, false) => u64::from(integral as u8),
        (16, true) => i64::from(integral as i16) as u64,
        (16, false) => u64::from(integral as u16),
        (32, true) => i64::from(integral as i32) as u64,
        (32, false) => u64::from(integral as u32),
        (_, true) => integral as i64 as u64,
        (_, false) => integral as u64,
    }
}

/// `cvt.rzi.s32.f32`, the common case.
#[inline(always)]
pub fn f32_to_s32_rz(x: f32) -> i32 {
    x as i32
}

/// Integer to `.f32`.
#[inline]
pub fn int_to_f32(register: u64, from: IntType, round: Round) -> f32 {
    match round {
        // Rust's casts round to nearest even as well.
        Round::Rn if from.signed => from.value(register) as i64 as f32,
        Round::Rn => from.value(register) as u64 as f32,
        _ => f32::from_bits(int_to_float(register, from, F32, round) as u32),
    }
}

/// Integer to `.f64`.
#[inline]
pub fn int_to_f64(register: u64, from: IntType, round: Round) -> f64 {
    match round {
        Round::Rn if from.signed => from.value(register) as i64 as f64,
        Round::Rn => from.value(register) as u64 as f64,
        _ => f64::from_bits(int_to_float(register, from, F64, round)),
    }
}

/// Integer to `.f16`.
#[inline]
pub fn int_to_f16(register: u64, from: IntType, round: Round) -> u16 {
    int_to_float(register, from, F16, round) as u16
}

/// Integer to any float format.
pub fn int_to_float(register: u64, from: IntType, to: Format, round: Round) -> u64 {
    let value = from.value(register);
    let exact = Finite {
        negative: value < 0,
        significand: value.unsigned_abs(),
        exponent: 0,
    };
    soft::encode(to, exact, round, Overflow::Infinite)
}

/// `cvt.f32.f64` in any rounding.
#[inline]
pub fn f64_to_f32(x: f64, round: Round) -> f32 {
    match round {
        Round::Rn => single::canonical(x as f32),
        _ => {
            let bits = soft::convert(F64, F32, x.to_bits(), round, Overflow::Infinite);
            f32::from_bits(bits as u32)
        }
    }
}

/// `cvt.f64.f32`: exact; NaN becomes canonical.
#[inline(always)]
pub fn f32_to_f64(x: f32) -> f64 {
    double::canonical(x.into())
}

/// `cvt{.sat}` between integers: the value modulo the width, or clamped with `.sat`; the result is
/// sign- or zero-extended to 64 bits by the destination's signedness.
#[inline]
pub fn int_to_int(register: u64, from: IntType, to: IntType, sat: bool) -> u64 {
    let value = from.value(register);
    let value = if sat {
        let (low, high) = to.range();
        value.clamp(low, high)
    } else {
        value
    };
    to.value(value as u64) as u64
}
