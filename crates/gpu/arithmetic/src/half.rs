//! The 16-bit formats: `f16` and `bf16`, scalar and packed in pairs.
//!
//! Values are raw codes (`u16`, or `u32` for a pair with the first element in the low half). All
//! arithmetic rounds once, to nearest even, and returns the canonical NaN 0x7fff. Subnormals are
//! kept unless [`Half::flush`] is applied to operands and result.

use super::soft::{self, BF16, F16, F32, Format};
use super::{Lanes, Overflow, Round, single};

/// The canonical NaN of both formats.
pub const NAN: u16 = 0x7fff;

/// A 16-bit format; implemented by [`Fp16`] and [`Bfloat16`].
pub trait Half {
    /// The format's description.
    const FORMAT: Format;
    /// The product of two values is always exact in single precision.
    const EXACT_PRODUCT: bool;
    /// Code of 1.
    const ONE: u16;
    /// Exact value; NaN becomes the canonical single NaN.
    fn widen(bits: u16) -> f32;
    /// Rounds to nearest even.
    fn narrow(value: f32) -> u16;
    /// Value of the low 16 bits of a word, NaN payload kept.
    fn widen_word(word: u32) -> f32;
    /// [`Half::narrow`] in the low bits of a word.
    fn narrow_word(value: f32) -> u32;

    /// `.ftz`: a subnormal becomes a zero of the same sign.
    #[inline(always)]
    fn flush(bits: u16) -> u16 {
        let smallest = 1 << Self::FORMAT.fraction;
        if bits & 0x7fff < smallest {
            bits & 0x8000
        } else {
            bits
        }
    }

    /// Reports whether the code is a NaN.
    #[inline(always)]
    fn is_nan(bits: u16) -> bool {
        bits & 0x7fff > Self::FORMAT.infinity() as u16
    }
}

/// IEEE half precision, PTX `.f16`.
#[derive(Clone, Copy, Debug)]
pub struct Fp16;

/// The upper half of a single, PTX `.bf16`.
#[derive(Clone, Copy, Debug)]
pub struct Bfloat16;

impl Half for Fp16 {
    const FORMAT: Format = F16;
    const EXACT_PRODUCT: bool = true;
    const ONE: u16 = 0x3c00;

    #[inline(always)]
    fn widen(bits: u16) -> f32 {
        f16_to_f32(bits)
    }

    #[inline(always)]
    fn narrow(value: f32) -> u16 {
        f32_to_f16(value)
    }

    #[inline(always)]
    fn widen_word(word: u32) -> f32 {
        f16_to_f32_raw(word)
    }

    #[inline(always)]
    fn narrow_word(value: f32) -> u32 {
        f32_to_f16_raw(value)
    }
}

impl Half for Bfloat16 {
    const FORMAT: Format = BF16;
    const EXACT_PRODUCT: bool = false;
    const ONE: u16 = 0x3f80;

    #[inline(always)]
    fn widen(bits: u16) -> f32 {
        bf16_to_f32(bits)
    }

    #[inline(always)]
    fn narrow(value: f32) -> u16 {
        f32_to_bf16(value)
    }

    #[inline(always)]
    fn widen_word(word: u32) -> f32 {
        f32::from_bits(word << 16)
    }

    #[inline(always)]
    fn narrow_word(value: f32) -> u32 {
        let bits = value.to_bits();
        // Half of the last place, less one unit if that is even: ties go to even numbers.
        let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
        if value.is_nan() { NAN.into() } else { rounded }
    }
}

/// `cvt.f32.f16`.
#[inline(always)]
pub fn f16_to_f32(bits: u16) -> f32 {
    single::canonical(f16_to_f32_raw(bits.into()))
}

/// Value of the low 16 bits with NaN payloads kept; branch-free so that loops vectorise.
#[inline(always)]
pub(crate) fn f16_to_f32_raw(bits: u32) -> f32 {
    let magnitude = (bits & 0x7fff) << 13;
    // The exponent of the single is 112 too small; the product is exact, subnormals included.
    let scaled = f32::from_bits(magnitude) * f32::from_bits(0x7780_0000);
    // The product is finite for infinities and NaNs, too: they get the highest exponent.
    let special = if magnitude >= 0x0f80_0000 {
        0x7f80_0000
    } else {
        0
    };
    f32::from_bits(scaled.to_bits() | special | (bits & 0x8000) << 16)
}

/// `cvt.rn.f16.f32`.
#[inline(always)]
pub fn f32_to_f16(value: f32) -> u16 {
    f32_to_f16_raw(value) as u16
}

/// [`f32_to_f16`] in the low bits of a word: 32-bit throughout, so that loops vectorise.
#[inline(always)]
pub(crate) fn f32_to_f16_raw(value: f32) -> u32 {
    let bits = value.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    // Rebias by -112 binades and round half to even on the 13 dropped bits.
    let odd = (magnitude >> 13) & 1;
    let normal = magnitude.wrapping_add(0xc800_0fff).wrapping_add(odd) >> 13;
    // Adding 0.5 aligns the subnormal code with the low bits, and the addition rounds it.
    let tiny = (f32::from_bits(magnitude) + 0.5)
        .to_bits()
        .wrapping_sub(0x3f00_0000);
    let finite = if magnitude < 0x3880_0000 {
        tiny
    } else {
        normal
    };
    let large = if magnitude > 0x7f80_0000 {
        0x7fff
    } else {
        0x7c00
    };
    let code = if magnitude >= 0x477f_f000 {
        large
    } else {
        finite
    };
    // The canonical NaN has no sign.
    let sign = if magnitude > 0x7f80_0000 {
        0
    } else {
        (bits >> 16) & 0x8000
    };
    code | sign
}

/// `cvt.f32.bf16`.
#[inline(always)]
pub fn bf16_to_f32(bits: u16) -> f32 {
    single::canonical(f32::from_bits(u32::from(bits) << 16))
}

/// `cvt.rn.bf16.f32`.
#[inline(always)]
pub fn f32_to_bf16(value: f32) -> u16 {
    Bfloat16::narrow_word(value) as u16
}

/// `cvt.{rn,rz,rm,rp,rna}{.satfinite}.{f16,bf16}.f32`.
#[inline]
pub fn from_f32<H: Half>(value: f32, round: Round, overflow: Overflow) -> u16 {
    if round == Round::Rn && overflow == Overflow::Infinite {
        return H::narrow(value);
    }
    soft::convert(F32, H::FORMAT, value.to_bits().into(), round, overflow) as u16
}

/// `cvt.rs`: rounds with as many random bits as the format discards of a single's significand.
pub fn from_f32_stochastic<H: Half>(value: f32, random: u16, overflow: Overflow) -> u16 {
    let count = F32.fraction - H::FORMAT.fraction;
    let number = u32::from(random) & ((1 << count) - 1);
    let random = soft::RandomBits { number, count };
    soft::convert_stochastic(F32, H::FORMAT, value.to_bits().into(), random, overflow) as u16
}

/// `.relu`: negative values and -0 become +0; NaN becomes canonical.
#[inline(always)]
pub fn relu<H: Half>(bits: u16) -> u16 {
    if H::is_nan(bits) {
        NAN
    } else if bits & 0x8000 != 0 {
        0
    } else {
        bits
    }
}

/// `.sat`: clamps to [0, 1]; NaN becomes +0.
#[inline(always)]
pub fn sat<H: Half>(bits: u16) -> u16 {
    if H::is_nan(bits) | (bits & 0x8000 != 0) {
        0
    } else {
        // Positive numbers have the order of their codes.
        bits.min(H::ONE)
    }
}

/// `a + b`.
#[inline(always)]
pub fn add<H: Half>(a: u16, b: u16) -> u16 {
    add_word::<H>(a.into(), b.into()) as u16
}

/// `a - b`.
#[inline(always)]
pub fn sub<H: Half>(a: u16, b: u16) -> u16 {
    add_word::<H>(a.into(), u32::from(b) ^ 0x8000) as u16
}

/// `a · b`.
#[inline(always)]
pub fn mul<H: Half>(a: u16, b: u16) -> u16 {
    mul_word::<H>(a.into(), b.into()) as u16
}

/// `a · b + c` with one rounding.
#[inline(always)]
pub fn fma<H: Half>(a: u16, b: u16, c: u16) -> u16 {
    fma_word::<H>(a.into(), b.into(), c.into()) as u16
}

#[inline(always)]
fn add_word<H: Half>(a: u32, b: u32) -> u32 {
    // The intermediate has more than twice the fraction bits, so that the double rounding is
    // harmless.
    H::narrow_word(H::widen_word(a) + H::widen_word(b))
}

#[inline(always)]
fn mul_word<H: Half>(a: u32, b: u32) -> u32 {
    if suspicious_product::<H>(a, b) {
        return soft::mul(
            H::FORMAT,
            (a & 0xffff).into(),
            (b & 0xffff).into(),
            Round::Rn,
        ) as u32;
    }
    H::narrow_word(H::widen_word(a) * H::widen_word(b))
}

#[inline(always)]
fn fma_word<H: Half>(a: u32, b: u32, c: u32) -> u32 {
    if suspicious_product::<H>(a, b) {
        let [a, b, c] = [a, b, c].map(|x| u64::from(x & 0xffff));
        return soft::fma(H::FORMAT, a, b, c, Round::Rn) as u32;
    }
    fma_fast::<H>(a, b, c)
}

#[inline(always)]
fn fma_fast<H: Half>(a: u32, b: u32, c: u32) -> u32 {
    H::narrow_word(add_odd(
        H::widen_word(a) * H::widen_word(b),
        H::widen_word(c),
    ))
}

/// Reports whether the product may be inexact in single precision: outside its normal range, and
/// not zero because of a zero factor.
#[expect(
    clippy::manual_range_contains,
    reason = "lanes side by side need no short circuit"
)]
#[inline(always)]
fn suspicious_product<H: Half>(a: u32, b: u32) -> bool {
    let (x, y) = (H::widen_word(a), H::widen_word(b));
    let product = (x * y).abs();
    let ordinary = (product >= 1e-30) & (product < 1e38);
    !H::EXACT_PRODUCT & !ordinary & (x != 0.0) & (y != 0.0)
}

/// `add.{f16x2,bf16x2}` of a whole warp.
#[inline(always)]
pub fn add_lanes<H: Half>(a: &Lanes, b: &Lanes) -> Lanes {
    let mut d = [0; 32];
    for i in 0..32 {
        let low = add_word::<H>(a[i], b[i]);
        d[i] = low & 0xffff | add_word::<H>(a[i] >> 16, b[i] >> 16) << 16;
    }
    d
}

/// `sub.{f16x2,bf16x2}` of a whole warp.
#[inline(always)]
pub fn sub_lanes<H: Half>(a: &Lanes, b: &Lanes) -> Lanes {
    let mut negative = *b;
    for x in &mut negative {
        *x ^= 0x8000_8000;
    }
    add_lanes::<H>(a, &negative)
}

/// `mul.{f16x2,bf16x2}` of a whole warp.
#[inline(always)]
pub fn mul_lanes<H: Half>(a: &Lanes, b: &Lanes) -> Lanes {
    let mut d = [0; 32];
    if suspicious_lanes::<H>(a, b) {
        for i in 0..32 {
            d[i] = map2(a[i], b[i], mul::<H>);
        }
        return d;
    }
    let one = |a, b| H::narrow_word(H::widen_word(a) * H::widen_word(b));
    for i in 0..32 {
        d[i] = one(a[i], b[i]) & 0xffff | one(a[i] >> 16, b[i] >> 16) << 16;
    }
    d
}

/// `fma.rn.{f16x2,bf16x2}` of a whole warp.
#[inline(always)]
pub fn fma_lanes<H: Half>(a: &Lanes, b: &Lanes, c: &Lanes) -> Lanes {
    let mut d = [0; 32];
    if suspicious_lanes::<H>(a, b) {
        for i in 0..32 {
            d[i] = map3(a[i], b[i], c[i], fma::<H>);
        }
        return d;
    }
    for i in 0..32 {
        let low = fma_fast::<H>(a[i], b[i], c[i]);
        d[i] = low & 0xffff | fma_fast::<H>(a[i] >> 16, b[i] >> 16, c[i] >> 16) << 16;
    }
    d
}

/// Reports whether any lane needs the careful path; tests all lanes together so that loops
/// vectorise.
#[inline(always)]
fn suspicious_lanes<H: Half>(a: &Lanes, b: &Lanes) -> bool {
    if H::EXACT_PRODUCT {
        return false;
    }
    let mut any = false;
    for (a, b) in a.iter().zip(b) {
        any |= suspicious_product::<H>(*a, *b) | suspicious_product::<H>(a >> 16, b >> 16);
    }
    any
}

/// `a + b` rounded to odd: the neighbour with an odd fraction if inexact. A second rounding to a
/// format at least two bits narrower is then correct.
#[inline(always)]
fn add_odd(a: f32, b: f32) -> f32 {
    let sum = a + b;
    let b_part = sum - a;
    let error = (a - (sum - b_part)) + (b - b_part);
    let bits = sum.to_bits();
    // Not `error != 0`: a NaN error of an infinite sum must leave the sum unchanged.
    let inexact = (error < 0.0) | (error > 0.0);
    let step = if (error > 0.0) == (sum > 0.0) {
        1
    } else {
        u32::MAX
    };
    let odd = bits.wrapping_add(step);
    f32::from_bits(if inexact & (bits & 1 == 0) { odd } else { bits })
}

#[inline(always)]
fn order(bits: u16) -> i16 {
    // Negative numbers have the reverse order of their bits; -0 then is just below +0.
    let x = bits as i16;
    x ^ (((x >> 15) as u16) >> 1) as i16
}

/// `min`: a NaN operand yields the other one; -0 is below +0.
#[inline(always)]
pub fn min<H: Half>(a: u16, b: u16) -> u16 {
    select::<H>(a, b, order(a) <= order(b))
}

/// `max`: a NaN operand yields the other one; +0 is above -0.
#[inline(always)]
pub fn max<H: Half>(a: u16, b: u16) -> u16 {
    select::<H>(a, b, order(a) >= order(b))
}

#[inline(always)]
fn select<H: Half>(a: u16, b: u16, first: bool) -> u16 {
    let number = if first { a } else { b };
    let r = if H::is_nan(a) { b } else { number };
    let r = if H::is_nan(b) { a } else { r };
    if H::is_nan(r) { NAN } else { r }
}

/// `min.NaN`: a NaN operand yields the canonical NaN.
#[inline(always)]
pub fn min_nan<H: Half>(a: u16, b: u16) -> u16 {
    if H::is_nan(a) | H::is_nan(b) {
        NAN
    } else {
        min::<H>(a, b)
    }
}

/// `max.NaN`: a NaN operand yields the canonical NaN.
#[inline(always)]
pub fn max_nan<H: Half>(a: u16, b: u16) -> u16 {
    if H::is_nan(a) | H::is_nan(b) {
        NAN
    } else {
        max::<H>(a, b)
    }
}

/// `{min,max}.xorsign.abs`: `result` of the magnitudes gets the exclusive or of both signs.
#[inline(always)]
pub fn xorsign_abs<H: Half>(a: u16, b: u16, select: impl Fn(u16, u16) -> u16) -> u16 {
    let r = select(a & 0x7fff, b & 0x7fff);
    if H::is_nan(r) {
        r
    } else {
        r | (a ^ b) & 0x8000
    }
}

/// Splits a register into its low and high half.
#[inline(always)]
pub fn unpack(pair: u32) -> (u16, u16) {
    (pair as u16, (pair >> 16) as u16)
}

/// Joins two halves into a register.
#[inline(always)]
pub fn pack(low: u16, high: u16) -> u32 {
    u32::from(low) | u32::from(high) << 16
}

/// Applies a unary operation to both halves.
#[inline(always)]
pub fn map1(a: u32, f: impl Fn(u16) -> u16) -> u32 {
    let (low, high) = unpack(a);
    pack(f(low), f(high))
}

/// Applies a binary operation to both halves.
#[inline(always)]
pub fn map2(a: u32, b: u32, f: impl Fn(u16, u16) -> u16) -> u32 {
    let ((a0, a1), (b0, b1)) = (unpack(a), unpack(b));
    pack(f(a0, b0), f(a1, b1))
}

/// Applies a ternary operation to both halves.
#[inline(always)]
pub fn map3(a: u32, b: u32, c: u32, f: impl Fn(u16, u16, u16) -> u16) -> u32 {
    let ((a0, a1), (b0, b1), (c0, c1)) = (unpack(a), unpack(b), unpack(c));
    pack(f(a0, b0, c0), f(a1, b1, c1))
}
