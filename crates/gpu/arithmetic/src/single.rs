//! Single precision: exactly rounded arithmetic, flushing, saturation, minimum and maximum.
//!
//! Arithmetic with a NaN result returns the canonical 0x7fffffff, as PTX specifies for `.f32`.

use super::host;
use super::soft::{self, F32};
use super::{Lanes, Round};

/// The canonical NaN of `.f32`.
pub const NAN_BITS: u32 = 0x7fff_ffff;
const NAN: f32 = f32::from_bits(NAN_BITS);

/// Replaces any NaN by the canonical one.
#[inline(always)]
pub fn canonical(x: f32) -> f32 {
    if x.is_nan() { NAN } else { x }
}

/// `.ftz`: a subnormal becomes a zero of the same sign.
#[inline(always)]
pub fn ftz(x: f32) -> f32 {
    let bits = x.to_bits();
    if x.abs() < f32::MIN_POSITIVE {
        f32::from_bits(bits & 0x8000_0000)
    } else {
        x
    }
}

/// `.sat`: clamps to [0, 1]; NaN becomes +0.
#[inline(always)]
pub fn sat(x: f32) -> f32 {
    // The comparisons are written so that NaN and -0 fail the first one.
    let low = if x > 0.0 { x } else { 0.0 };
    if low < 1.0 { low } else { 1.0 }
}

/// `a + b` to nearest.
#[inline(always)]
pub fn add_rn(a: f32, b: f32) -> f32 {
    canonical(a + b)
}

/// `a - b` to nearest.
#[inline(always)]
pub fn sub_rn(a: f32, b: f32) -> f32 {
    canonical(a - b)
}

/// `a · b` to nearest.
#[inline(always)]
pub fn mul_rn(a: f32, b: f32) -> f32 {
    canonical(a * b)
}

/// `a · b + c` to nearest with one rounding.
#[inline(always)]
pub fn fma_rn(a: f32, b: f32, c: f32) -> f32 {
    if cfg!(target_feature = "fma") {
        return canonical(a.mul_add(b, c));
    }
    let (sum, suspicious) = fma_double(a, b, c);
    if suspicious {
        fma_odd(a, b, c)
    } else {
        canonical(sum)
    }
}

/// Rounds twice: the product is exact in double precision, and the second rounding is wrong only if
/// the first lands on its tie. Returns the result, and whether it may be wrong.
#[inline(always)]
fn fma_double(a: f32, b: f32, c: f32) -> (f32, bool) {
    let sum = f64::from(a) * f64::from(b) + f64::from(c);
    let bits = sum.to_bits() as u32;
    // A subnormal result has its tie at another bit: left to the careful path.
    let tie = bits & 0x1fff_ffff == 0x1000_0000;
    let tiny = (sum.abs() < f64::from(f32::MIN_POSITIVE)) & (sum != 0.0);
    (sum as f32, tie | tiny)
}

/// Computes [`fma_rn`] through a double-precision sum rounded to odd, which makes the second
/// rounding harmless (Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums", 2008).
#[inline(always)]
fn fma_odd(a: f32, b: f32, c: f32) -> f32 {
    let (sum, error) = two_sum(f64::from(a) * f64::from(b), f64::from(c));
    let bits = sum.to_bits();
    // Not `error != 0`: a NaN error of an infinite sum must leave the sum unchanged.
    let inexact = (error < 0.0) | (error > 0.0);
    let step = if (error > 0.0) == (sum > 0.0) {
        1
    } else {
        u64::MAX
    };
    let odd = if inexact & (bits & 1 == 0) {
        bits.wrapping_add(step)
    } else {
        bits
    };
    canonical(f64::from_bits(odd) as f32)
}

/// Returns `a + b` and its exact rounding error (Knuth).
#[inline(always)]
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_part = sum - a;
    let error = (a - (sum - b_part)) + (b - b_part);
    (sum, error)
}

/// `fma.rn.f32` of a whole warp, `fma.rn.ftz.f32` with `FTZ`.
///
/// The lanes are tested together for the rare double rounding, so that the loop vectorises on hosts
/// whose baseline has no fused multiply-add.
#[inline]
pub fn fma_rn_lanes<const FTZ: bool>(a: &Lanes, b: &Lanes, c: &Lanes) -> Lanes {
    host::fused_or(
        (a, b, c),
        #[inline(always)]
        |(a, b, c)| fma_emulated::<FTZ>(a, b, c),
        #[inline(always)]
        |(a, b, c)| fma_fused::<FTZ>(a, b, c),
    )
}

#[inline(always)]
fn load<const FTZ: bool>(bits: u32) -> f32 {
    let x = f32::from_bits(bits);
    if FTZ { ftz(x) } else { x }
}

#[inline(always)]
fn store<const FTZ: bool>(x: f32) -> u32 {
    if FTZ { ftz(x).to_bits() } else { x.to_bits() }
}

/// Version for hosts with a fused multiply-add.
#[inline(always)]
fn fma_fused<const FTZ: bool>(a: &Lanes, b: &Lanes, c: &Lanes) -> Lanes {
    let mut d = [0; 32];
    for i in 0..32 {
        let [x, y, z] = [a[i], b[i], c[i]].map(load::<FTZ>);
        d[i] = store::<FTZ>(canonical(x.mul_add(y, z)));
    }
    d
}

/// [`fma_rn_lanes`] for hosts without a fused multiply-add.
#[inline(always)]
pub fn fma_emulated<const FTZ: bool>(a: &Lanes, b: &Lanes, c: &Lanes) -> Lanes {
    let mut d = [0; 32];
    let mut any = false;
    for i in 0..32 {
        let [x, y, z] = [a[i], b[i], c[i]].map(load::<FTZ>);
        let (sum, suspicious) = fma_double(x, y, z);
        d[i] = store::<FTZ>(canonical(sum));
        any |= suspicious;
    }
    // The careful path is right for every lane, so that no lane is singled out.
    if any {
        for i in 0..32 {
            let [x, y, z] = [a[i], b[i], c[i]].map(load::<FTZ>);
            d[i] = store::<FTZ>(fma_odd(x, y, z));
        }
    }
    d
}

/// `.sat` of a whole warp.
#[inline(always)]
pub fn sat_lanes(a: &Lanes) -> Lanes {
    std::array::from_fn(|i| sat(f32::from_bits(a[i])).to_bits())
}

/// `a + b` in any rounding.
#[inline]
pub fn add(a: f32, b: f32, round: Round) -> f32 {
    match round {
        Round::Rn | Round::Rna => add_rn(a, b),
        _ => directed(f64::from(a), f64::from(b), round),
    }
}

/// `a - b` in any rounding.
#[inline]
pub fn sub(a: f32, b: f32, round: Round) -> f32 {
    add(a, -b, round)
}

/// `a · b` in any rounding.
#[inline]
pub fn mul(a: f32, b: f32, round: Round) -> f32 {
    match round {
        Round::Rn | Round::Rna => mul_rn(a, b),
        _ => {
            let product = f64::from(a) * f64::from(b);
            // A zero with the product's sign is neutral in every mode.
            directed(product, 0.0_f64.copysign(product), round)
        }
    }
}

/// `a · b + c` in any rounding, rounded once.
#[inline]
pub fn fma(a: f32, b: f32, c: f32, round: Round) -> f32 {
    match round {
        Round::Rn | Round::Rna => fma_rn(a, b, c),
        _ => directed(f64::from(a) * f64::from(b), f64::from(c), round),
    }
}

/// `x + y` rounded to single in a directed mode. `x` is a single or an exact product of two.
///
/// Branch-free, because loops over it must vectorise: `expf` is a fused multiply-add towards
/// negative infinity.
#[inline(always)]
fn directed(x: f64, y: f64, round: Round) -> f32 {
    let (sum, error) = two_sum(x, y);
    // Rounding is monotonic, so `sum` shows the order of `near` and the exact value, or the error
    // does where they coincide. The error of an infinite sum is NaN.
    let near = sum as f32;
    let wide = f64::from(near);
    let above = (wide > sum) | ((wide == sum) & (error < 0.0));
    let below = (wide < sum) | ((wide == sum) & (error > 0.0));
    let down = match round {
        Round::Rz => sum > 0.0,
        Round::Rm => true,
        _ => false,
    };
    let bits = near.to_bits();
    let (outward, inward) = (bits.wrapping_add(1), bits.wrapping_sub(1));
    let negative = bits >> 31 == 1;
    let zero = near == 0.0;
    let lower = if negative { outward } else { inward };
    let lower = if zero { 0x8000_0001 } else { lower };
    let upper = if negative { inward } else { outward };
    let upper = if zero { 1 } else { upper };
    let stepped = if down & above { lower } else { bits };
    let stepped = if !down & below { upper } else { stepped };
    // An exact zero from opposite signs is -0 towards negative infinity.
    let differ = (x.to_bits() ^ y.to_bits()) >> 63 == 1;
    let minus = (sum == 0.0) & differ & (round == Round::Rm);
    canonical(f32::from_bits(if minus { 0x8000_0000 } else { stepped }))
}

/// `a / b` in any rounding.
#[inline]
pub fn div(a: f32, b: f32, round: Round) -> f32 {
    match round {
        Round::Rn | Round::Rna => canonical(a / b),
        _ => f32::from_bits(soft::div(F32, a.to_bits().into(), b.to_bits().into(), round) as u32),
    }
}

/// `1 / a` in any rounding.
#[inline]
pub fn rcp(a: f32, round: Round) -> f32 {
    div(1.0, a, round)
}

/// `√a` to nearest.
#[inline(always)]
pub fn sqrt_rn(a: f32) -> f32 {
    // The root of the magnitude: LLVM 21 folds a choice between a root and NaN by the sign of its
    // operand into the bare root, whose NaN has other bits.
    let root = a.abs().sqrt().to_bits() | (a.to_bits() & 0x8000_0000);
    if a >= 0.0 { f32::from_bits(root) } else { NAN }
}

/// `√a` in any rounding.
#[inline]
pub fn sqrt(a: f32, round: Round) -> f32 {
    match round {
        Round::Rn | Round::Rna => sqrt_rn(a),
        _ => f32::from_bits(soft::sqrt(F32, a.to_bits().into(), round) as u32),
    }
}

/// `min.f32`: a NaN operand yields the other one; -0 is below +0.
#[inline(always)]
pub fn min(a: f32, b: f32) -> f32 {
    let (x, y) = (a.to_bits() as i32, b.to_bits() as i32);
    // Maps sign-magnitude to two's complement, so that one integer comparison orders the zeros as
    // well.
    let first = order(x) <= order(y);
    let number = if first { a } else { b };
    let r = if a.is_nan() { b } else { number };
    let r = if b.is_nan() { a } else { r };
    canonical(r)
}

/// `max.f32`: a NaN operand yields the other one; +0 is above -0.
#[inline(always)]
pub fn max(a: f32, b: f32) -> f32 {
    let (x, y) = (a.to_bits() as i32, b.to_bits() as i32);
    let first = order(x) >= order(y);
    let number = if first { a } else { b };
    let r = if a.is_nan() { b } else { number };
    let r = if b.is_nan() { a } else { r };
    canonical(r)
}

#[inline(always)]
fn order(bits: i32) -> i32 {
    bits ^ (((bits >> 31) as u32) >> 1) as i32
}

/// `min.NaN.f32`: a NaN operand yields the canonical NaN.
#[inline(always)]
pub fn min_nan(a: f32, b: f32) -> f32 {
    if a.is_nan() | b.is_nan() {
        NAN
    } else {
        min(a, b)
    }
}

/// `max.NaN.f32`: a NaN operand yields the canonical NaN.
#[inline(always)]
pub fn max_nan(a: f32, b: f32) -> f32 {
    if a.is_nan() | b.is_nan() {
        NAN
    } else {
        max(a, b)
    }
}

/// `min.f32` or, with `max`, `max.f32`; `nan`: a NaN operand yields the canonical NaN.
#[inline(always)]
pub fn extreme(a: f32, b: f32, max: bool, nan: bool) -> f32 {
    match (max, nan) {
        (false, false) => self::min(a, b),
        (true, false) => self::max(a, b),
        (false, true) => min_nan(a, b),
        (true, true) => max_nan(a, b),
    }
}

/// `{min,max}.xorsign.abs`: `result` of the magnitudes gets the exclusive or of both signs.
///
/// Call as `xorsign_abs(a, b, min)`; a NaN result keeps the canonical bits.
#[inline(always)]
pub fn xorsign_abs(a: f32, b: f32, select: impl Fn(f32, f32) -> f32) -> f32 {
    let sign = (a.to_bits() ^ b.to_bits()) & 0x8000_0000;
    let r = select(a.abs(), b.abs());
    if r.is_nan() {
        r
    } else {
        f32::from_bits((r.to_bits() & 0x7fff_ffff) | sign)
    }
}
