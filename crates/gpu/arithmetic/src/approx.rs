//! The approximate functions of PTX, within the ISA's error bounds and identical on every host.
//!
//! The polynomials use plain adds and multiplies (no platform libm, no contraction). Every function
//! accepts and returns subnormals; the `.ftz` forms flush operand and result with [`single::ftz`].
//! Special values follow the tables of the PTX ISA.
//!
//! | function | documented bound |
//! |---|---|
//! | `ex2.approx.f32` | 2 ulp |
//! | `lg2.approx.f32` | absolute 2^-22 in (0.5, 2), relative 2^-22 elsewhere |
//! | `rcp.approx.f32` | 1 ulp |
//! | `rsqrt.approx.f32` | relative 2^-22.9 |
//! | `sqrt.approx.f32` | relative 2^-23 |
//! | `sin`, `cos.approx.f32` | absolute 2^-20.5 in [-π, π] |
//! | `tanh.approx.f32` | relative 2^-11 |
//! | `div.approx.f32`, `div.full.f32` | 2 ulp |
//! | `ex2.approx.f16`, `.bf16` | relative 2^-9.9, 2^-7 |
//! | `tanh.approx.f16`, `.bf16` | absolute 2^-10.987, 2^-8 |
//! | `rcp.approx.ftz.f64`, `rsqrt.approx.f64` | the upper 32 bits of the result; relative 2^-20 |

use super::half::Half;
use super::single::{self, NAN_BITS, canonical};
use super::{Round, double};

const NAN: f32 = f32::from_bits(NAN_BITS);

/// 2^126, the largest divisor of `div.approx`.
const TWO_TO_126: f32 = f32::from_bits(0x7e80_0000);

/// Addend that rounds a small single to the nearest integer when added and subtracted.
const INTEGER_MAGIC: f32 = 12_582_912.0;

/// `ex2.approx.f32`: 2^x.
#[inline(always)]
pub fn ex2(x: f32) -> f32 {
    // Below -151 the result is zero and above 128 infinite: clamping keeps the exponent small.
    let clamped = if x < 130.0 { x } else { 130.0 };
    let clamped = if clamped > -152.0 { clamped } else { -152.0 };
    let whole = (clamped + INTEGER_MAGIC) - INTEGER_MAGIC;
    let t = clamped - whole;
    // Chebyshev fit of (2^t - 1)/t on [-1/2, 1/2]: error 2^-26.7 with these coefficients.
    let p = 1.545_316_3e-4;
    let p = p * t + 1.339_086_3e-3;
    let p = p * t + 9.618_083e-3;
    let p = p * t + 5.550_357e-2;
    let p = p * t + 2.402_265e-1;
    let p = p * t + std::f32::consts::LN_2;
    let p = p * t + 1.0;
    // Two factors: the first product is exact, so a subnormal result is rounded once.
    let n = (clamped + INTEGER_MAGIC)
        .to_bits()
        .wrapping_sub(INTEGER_MAGIC.to_bits()) as i32;
    let half = n >> 1;
    let first = f32::from_bits((half.wrapping_add(127) as u32) << 23);
    let second = f32::from_bits((n.wrapping_sub(half).wrapping_add(127) as u32) << 23);
    let r = p * first * second;
    // The clamp has made a number of a NaN.
    if x.is_nan() { NAN } else { r }
}

/// `lg2.approx.f32`: log₂ x.
#[inline(always)]
pub fn lg2(x: f32) -> f32 {
    let r = lg2_double(x.into()) as f32;
    let r = if x == 0.0 { f32::NEG_INFINITY } else { r };
    let r = if x == f32::INFINITY { x } else { r };
    if x.is_nan() | (x < 0.0) { NAN } else { r }
}

/// log₂ of a positive finite number whose double is normal.
#[inline(always)]
fn lg2_double(x: f64) -> f64 {
    // m in [√½, √2): subtracting √½'s code moves the binade border there.
    let shifted = x.to_bits().wrapping_sub(0x3fe6_a09e_0000_0000);
    let exponent = (shifted >> 32) as i32 >> 20;
    let m = f64::from_bits((shifted & 0x000f_ffff_ffff_ffff) + 0x3fe6_a09e_0000_0000);
    // log₂ m = 2/ln 2 · artanh((m-1)/(m+1)), |s| ≤ 0.172: Chebyshev fit in s², error 2^-37.
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let p = 0.340_712_041_561_907_2;
    let p = p * z + 0.411_673_766_237_710_4;
    let p = p * z + 0.577_083_566_004_865_9;
    let p = p * z + 0.961_796_673_451_548_5;
    let p = p * z + 2.885_390_081_789_987;
    f64::from(exponent) + s * p
}

/// `rcp.approx.f32`: 1 / x.
#[inline(always)]
pub fn rcp(x: f32) -> f32 {
    canonical(1.0 / x)
}

/// `sqrt.approx.f32`: √x; -0 stays -0.
#[inline(always)]
pub fn sqrt(x: f32) -> f32 {
    single::sqrt_rn(x)
}

/// `rsqrt.approx.f32`: 1 / √x; ±0 gives an infinity of that sign.
#[inline(always)]
pub fn rsqrt(x: f32) -> f32 {
    canonical((1.0 / double::sqrt_rn(x.into())) as f32)
}

/// `div.approx.f32`: a / b, but 0 (or NaN for an infinite `a`) where 2^126 < |b| < 2^128.
#[inline(always)]
pub fn div(a: f32, b: f32) -> f32 {
    let magnitude = b.abs();
    let flushed = (magnitude > TWO_TO_126) & (magnitude < f32::INFINITY);
    let b = if flushed {
        f32::INFINITY.copysign(b)
    } else {
        b
    };
    canonical(a / b)
}

/// `div.full.f32`: a / b over the full range.
#[inline(always)]
pub fn div_full(a: f32, b: f32) -> f32 {
    canonical(a / b)
}

/// `sin.approx.f32`; NaN for an infinite argument.
///
/// As the hardware has it, the argument is first divided by 2π in single precision. The error is
/// below 2^-20.9 in [-π, π] (PTX ISA) and grows with the argument beyond.
#[inline(always)]
pub fn sin(x: f32) -> f32 {
    let turns = turns(x);
    // The product of a subnormal number loses bits; its sine is the number.
    if x.abs() < f32::MIN_POSITIVE {
        x
    } else {
        sin_turns(turns)
    }
}

/// `cos.approx.f32`; NaN for an infinite argument. Its error is that of [`sin`].
#[inline(always)]
pub fn cos(x: f32) -> f32 {
    cos_turns(turns(x))
}

/// Divides an angle by 2π as the assembler does before `MUFU.SIN`: `FMUL.RZ` by the single next to
/// 1/(2π) (machine code that ptxas 13.0 makes of `sin.approx` for sm_80 and sm_90).
#[inline(always)]
fn turns(x: f32) -> f32 {
    const INVERSE_TURN: f32 = f32::from_bits(0x3e22_f983);
    single::mul(x, INVERSE_TURN, Round::Rz)
}

/// Sine of an angle in whole turns, as the hardware unit computes it after `sin.approx` divided by
/// 2π.
#[inline(always)]
pub fn sin_turns(x: f32) -> f32 {
    reduced_sine(x, quarters_of_turns(x))
}

/// Cosine of an angle in whole turns.
#[inline(always)]
pub fn cos_turns(x: f32) -> f32 {
    reduced_cosine(quarters_of_turns(x))
}

/// An angle as quarter turns and a remainder.
struct ReducedAngle {
    /// Number of quarter turns, modulo 2^32.
    quadrant: u32,
    /// The remainder, radians.
    t: f64,
}

/// Sine of `x` from its reduced angle.
#[inline(always)]
fn reduced_sine(x: f32, angle: ReducedAngle) -> f32 {
    let ReducedAngle { quadrant, t } = angle;
    let r = if quadrant & 1 == 0 {
        sine(t)
    } else {
        cosine(t)
    };
    let r = if quadrant & 2 == 0 { r } else { -r };
    // Keeps the sign of zero.
    if x == 0.0 { x } else { canonical(r as f32) }
}

/// Cosine of a reduced angle: the sine a quarter turn later.
#[inline(always)]
fn reduced_cosine(angle: ReducedAngle) -> f32 {
    let ReducedAngle { quadrant, t } = angle;
    let r = if quadrant & 1 == 0 {
        cosine(t)
    } else {
        sine(t)
    };
    let r = if quadrant.wrapping_add(1) & 2 == 0 {
        r
    } else {
        -r
    };
    canonical(r as f32)
}

/// Returns the nearest quarter turn (modulo 2^32) and the remainder in radians.
#[inline(always)]
fn quarters_of_turns(x: f32) -> ReducedAngle {
    const MAGIC: f64 = 6_755_399_441_055_744.0;
    let wide = f64::from(x) * 4.0;
    // Beyond 2^51 the magic number no longer rounds: such arguments are whole turns.
    let wide = if wide.abs() < 2_251_799_813_685_248.0 {
        wide
    } else {
        // Not simply 0: infinities become NaN.
        wide * 0.0
    };
    let shifted = wide + MAGIC;
    let t = (wide - (shifted - MAGIC)) * std::f64::consts::FRAC_PI_2;
    // The magic number has put the integer into the low bits.
    let quadrant = shifted.to_bits() as u32;
    ReducedAngle { quadrant, t }
}

#[inline(always)]
fn sine(t: f64) -> f64 {
    let z = t * t;
    let p = -1.0 / 39_916_800.0;
    let p = p * z + 1.0 / 362_880.0;
    let p = p * z - 1.0 / 5_040.0;
    let p = p * z + 1.0 / 120.0;
    let p = p * z - 1.0 / 6.0;
    t + t * z * p
}

#[inline(always)]
fn cosine(t: f64) -> f64 {
    let z = t * t;
    let p = 1.0 / 479_001_600.0;
    let p = p * z - 1.0 / 3_628_800.0;
    let p = p * z + 1.0 / 40_320.0;
    let p = p * z - 1.0 / 720.0;
    let p = p * z + 1.0 / 24.0;
    let p = p * z - 0.5;
    1.0 + z * p
}

/// `tanh.approx.f32`; keeps the sign of zero.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let a = x.abs();
    // tanh a = 1 - 2 / (e^2a + 1), which cancels for small a: a series there.
    let e = ex2(if a < 10.0 { a } else { 10.0 } * (2.0 * std::f32::consts::LOG2_E));
    let large = 1.0 - 2.0 / (e + 1.0);
    let large = if a < 10.0 { large } else { 1.0 };
    let z = a * a;
    let p = 17.0 / 315.0;
    let p = 2.0 / 15.0 - p * z;
    let p = p * z - 1.0 / 3.0;
    let small = a + a * z * p;
    let r = if a < 0.25 { small } else { large };
    if x.is_nan() { NAN } else { r.copysign(x) }
}

/// `ex2.approx.{f16,bf16}`.
#[inline(always)]
pub fn ex2_half<H: Half>(x: u16) -> u16 {
    H::narrow(ex2(H::widen(x)))
}

/// `tanh.approx.{f16,bf16}`.
#[inline(always)]
pub fn tanh_half<H: Half>(x: u16) -> u16 {
    H::narrow(tanh(H::widen(x)))
}

/// `rcp.approx.ftz.f64`: upper 32 bits of 1 / x from the upper 32 bits of x; the lower 32 bits are
/// zero. Subnormal operands and results flush.
#[inline]
pub fn rcp_f64(x: f64) -> f64 {
    gross(1.0 / flush_f64(upper(x)))
}

/// `rsqrt.approx.f64`: 1 / √x. With `ftz`, its `.ftz` form: upper 32 bits of the result from the
/// upper 32 bits of x.
#[inline]
pub fn rsqrt_f64(x: f64, ftz: bool) -> f64 {
    match ftz {
        true => gross(1.0 / double::sqrt_rn(flush_f64(upper(x)))),
        false => double::canonical(1.0 / double::sqrt_rn(x)),
    }
}

/// Clears the lower 32 bits of a number; a NaN stays a NaN.
fn upper(x: f64) -> f64 {
    match x.is_nan() {
        true => x,
        false => f64::from_bits(x.to_bits() & 0xffff_ffff_0000_0000),
    }
}

fn flush_f64(x: f64) -> f64 {
    if x.abs() < f64::MIN_POSITIVE {
        0.0_f64.copysign(x)
    } else {
        x
    }
}

fn gross(x: f64) -> f64 {
    if x.is_nan() {
        return f64::from_bits(double::NAN_BITS);
    }
    f64::from_bits(flush_f64(x).to_bits() & 0xffff_ffff_0000_0000)
}
