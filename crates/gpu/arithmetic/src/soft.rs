//! Exact arithmetic on any IEEE-like binary format, rounded once, in integers.
//!
//! This is the slow path of every directed rounding and the reference of the fast paths. A finite
//! value is `significand · 2^exponent`. Intermediate results keep at least three bits more than the
//! widest format needs and a sticky lowest bit ("jamming"), so that one rounding at the end is
//! exact.

use super::{Overflow, Round};

/// A binary floating-point format of at most 64 bits with gradual underflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Stored fraction bits.
    pub fraction: u32,
    /// Exponent bits; the bias is `2^(exponent-1) - 1`.
    pub exponent: u32,
    /// Meaning of the codes with the largest exponent.
    pub specials: Specials,
}

/// Meaning of the codes with the largest exponent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Specials {
    /// Infinity and NaNs, as in IEEE 754.
    Ieee,
    /// No infinity; only the all-ones magnitude is NaN (e4m3).
    NanOnly,
    /// Every code is finite (e2m3, e3m2, e2m1).
    None,
}

/// Creates a format without infinities and NaN.
const fn finite(exponent: u32, fraction: u32) -> Format {
    Format {
        fraction,
        exponent,
        specials: Specials::None,
    }
}

const fn ieee(exponent: u32, fraction: u32) -> Format {
    Format {
        fraction,
        exponent,
        specials: Specials::Ieee,
    }
}

/// IEEE double precision.
pub const F64: Format = ieee(11, 52);
/// IEEE single precision.
pub const F32: Format = ieee(8, 23);
/// IEEE half precision.
pub const F16: Format = ieee(5, 10);
/// bfloat16: the upper half of a single.
pub const BF16: Format = ieee(8, 7);
/// TensorFloat-32 as 19 bits; a register holds it shifted left by 13.
pub const TF32: Format = ieee(8, 10);
/// FP8 with five exponent bits.
pub const E5M2: Format = ieee(5, 2);
/// FP8 with four exponent bits; largest finite value 448.
pub const E4M3: Format = Format {
    fraction: 3,
    exponent: 4,
    specials: Specials::NanOnly,
};
/// FP6 with two exponent bits; largest value 7.5.
pub const E2M3: Format = finite(2, 3);
/// FP6 with three exponent bits; largest value 28.
pub const E3M2: Format = finite(3, 2);
/// FP4; largest value 6.
pub const E2M1: Format = finite(2, 1);

impl Format {
    const fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    const fn sign_bit(self) -> u64 {
        1 << (self.exponent + self.fraction)
    }

    /// Returns the magnitude code of infinity (IEEE formats only).
    pub const fn infinity(self) -> u64 {
        ((1 << self.exponent) - 1) << self.fraction
    }

    /// Returns the magnitude code of the largest finite value.
    pub const fn max_finite(self) -> u64 {
        match self.specials {
            Specials::Ieee => self.infinity() - 1,
            Specials::NanOnly => self.sign_bit() - 2,
            Specials::None => self.sign_bit() - 1,
        }
    }

    /// Returns the NaN that PTX produces: all ones below the sign. For formats without NaN, returns
    /// the largest finite value, as `cvt.satfinite` does.
    pub const fn nan(self) -> u64 {
        self.sign_bit() - 1
    }
}

/// A decoded value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Not a number.
    Nan,
    /// Infinity with its sign (`true` is negative).
    Infinite(bool),
    /// A finite number, zero included.
    Finite(Finite),
}

/// `±significand · 2^exponent`; zero has significand 0 and keeps its sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finite {
    /// The sign bit.
    pub negative: bool,
    /// The integer significand.
    pub significand: u128,
    /// The power of two of its lowest bit.
    pub exponent: i32,
}

/// Decodes the low bits of `bits` as `format`.
pub fn decode(format: Format, bits: u64) -> Value {
    let negative = bits & format.sign_bit() != 0;
    let magnitude = bits & (format.sign_bit() - 1);
    if magnitude > format.max_finite() {
        return match format.specials {
            Specials::Ieee if magnitude == format.infinity() => Value::Infinite(negative),
            _ => Value::Nan,
        };
    }
    let field = (magnitude >> format.fraction) as i32;
    let fraction = magnitude & ((1 << format.fraction) - 1);
    let hidden = u64::from(field != 0) << format.fraction;
    // Subnormal numbers have the exponent of the smallest normal ones.
    let exponent = field.max(1) - format.bias() - format.fraction as i32;
    Value::Finite(Finite {
        negative,
        significand: (fraction | hidden).into(),
        exponent,
    })
}

/// Rounds a finite value to `format` and returns its code.
pub fn encode(format: Format, value: Finite, round: Round, overflow: Overflow) -> u64 {
    let sign = if value.negative { format.sign_bit() } else { 0 };
    if value.significand == 0 {
        return sign;
    }
    let smallest = 1 - format.bias();
    let leading = value.exponent + 127 - value.significand.leading_zeros() as i32;
    let binade = leading.max(smallest);
    let shift = binade - format.fraction as i32 - value.exponent;
    let kept = shift_rounded(value.significand, shift, value.negative, round);
    // A carry out of the significand increments the exponent in the same addition.
    let code = (((binade - smallest) as u64) << format.fraction) + kept;
    if code <= format.max_finite() {
        return sign | code;
    }
    sign | overflowed(format, value.negative, round, overflow)
}

fn overflowed(format: Format, negative: bool, round: Round, overflow: Overflow) -> u64 {
    let outward = match round {
        Round::Rn | Round::Rna => true,
        Round::Rz => false,
        Round::Rm => negative,
        Round::Rp => !negative,
    };
    match format.specials {
        Specials::Ieee if outward && overflow == Overflow::Infinite => format.infinity(),
        Specials::NanOnly if outward && overflow == Overflow::Infinite => format.nan(),
        _ => format.max_finite(),
    }
}

/// Returns `significand / 2^shift` rounded to an integer; a negative shift multiplies.
fn shift_rounded(significand: u128, shift: i32, negative: bool, round: Round) -> u64 {
    if shift <= 0 {
        return (significand << -shift) as u64;
    }
    let (kept, rest, half) = match shift {
        1..=127 => {
            let rest = significand & ((1 << shift) - 1);
            (significand >> shift, rest, 1_u128 << (shift - 1))
        }
        128 => (0, significand, 1 << 127),
        // Below half of the lowest bit for every value: a quarter represents it.
        _ => (0, u128::from(significand != 0), 2),
    };
    let up = match round {
        Round::Rn => rest > half || (rest == half && kept & 1 == 1),
        Round::Rna => rest >= half,
        Round::Rz => false,
        Round::Rm => negative && rest != 0,
        Round::Rp => !negative && rest != 0,
    };
    kept as u64 + u64::from(up)
}

/// Converts between formats. NaN becomes the destination's canonical NaN; infinity becomes the
/// largest finite value when it saturates or has no code.
pub fn convert(from: Format, to: Format, bits: u64, round: Round, overflow: Overflow) -> u64 {
    match decode(from, bits) {
        Value::Nan => to.nan(),
        Value::Infinite(negative) => {
            let sign = if negative { to.sign_bit() } else { 0 };
            // An infinity is not an overflow: only satfinite or a missing code make it finite.
            let code = match (to.specials, overflow) {
                (Specials::Ieee, Overflow::Infinite) => to.infinity(),
                (Specials::NanOnly, Overflow::Infinite) => to.nan(),
                _ => to.max_finite(),
            };
            sign | code
        }
        Value::Finite(value) => encode(to, value, round, overflow),
    }
}

/// Random bits of a stochastic rounding: a number of that many bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomBits {
    /// The number.
    pub number: u32,
    /// Its bits.
    pub count: u32,
}

/// Converts between formats with the `.rs` rounding of `cvt`: away from zero where the random bits, added to the highest
/// discarded bits of the significand, carry into its last place.
///
/// NaN and infinity are converted as by [`convert`]. The PTX ISA does not say what becomes of numbers beyond the largest one:
/// infinity here, without saturation.
pub fn convert_stochastic(
    from: Format,
    to: Format,
    bits: u64,
    random: RandomBits,
    overflow: Overflow,
) -> u64 {
    let value = match decode(from, bits) {
        Value::Finite(value) if value.significand != 0 => value,
        _ => return convert(from, to, bits, Round::Rz, overflow),
    };
    let leading = value.exponent + 127 - value.significand.leading_zeros() as i32;
    let last_place = leading.max(1 - to.bias()) - to.fraction as i32;
    let unit = last_place - random.count as i32;
    let exponent = value.exponent.min(unit);
    // What lies far below the lowest random bit cannot carry.
    let random = match unit - exponent {
        up @ 0..=64 => u128::from(random.number) << up,
        _ => 0,
    };
    let significand = (value.significand << (value.exponent - exponent)) + random;
    let leading = exponent + 127 - significand.leading_zeros() as i32;
    if overflow == Overflow::Infinite && to.specials == Specials::Ieee && leading > to.bias() {
        return infinite(to, value.negative);
    }
    let sum = Finite {
        significand,
        exponent,
        ..value
    };
    encode(to, sum, Round::Rz, overflow)
}

fn infinite(format: Format, negative: bool) -> u64 {
    format.infinity() | if negative { format.sign_bit() } else { 0 }
}

/// `a · b + c` with one rounding. `format` must be IEEE-like.
pub fn fma(format: Format, a: u64, b: u64, c: u64, round: Round) -> u64 {
    let (x, y, z) = (decode(format, a), decode(format, b), decode(format, c));
    let product_negative = (a ^ b) & format.sign_bit() != 0;
    let product_infinite = match (x, y) {
        (Value::Nan, _) | (_, Value::Nan) => return format.nan(),
        (Value::Infinite(_), Value::Finite(f)) | (Value::Finite(f), Value::Infinite(_)) => {
            if f.significand == 0 {
                return format.nan();
            }
            true
        }
        (Value::Infinite(_), Value::Infinite(_)) => true,
        _ => false,
    };
    match (product_infinite, z) {
        (_, Value::Nan) => return format.nan(),
        (true, Value::Infinite(n)) if n != product_negative => return format.nan(),
        (true, _) => return infinite(format, product_negative),
        (false, Value::Infinite(n)) => return infinite(format, n),
        _ => {}
    }
    let (Value::Finite(x), Value::Finite(y), Value::Finite(z)) = (x, y, z) else {
        return format.nan();
    };
    let product = Finite {
        negative: product_negative,
        significand: x.significand * y.significand,
        exponent: x.exponent + y.exponent,
    };
    encode(format, sum(product, z, round), round, Overflow::Infinite)
}

/// `a + b` with one rounding. `format` must be IEEE-like.
pub fn add(format: Format, a: u64, b: u64, round: Round) -> u64 {
    // A product with 1 is exact.
    let one = (format.bias() as u64) << format.fraction;
    fma(format, a, one, b, round)
}

/// `a · b` with one rounding. `format` must be IEEE-like.
pub fn mul(format: Format, a: u64, b: u64, round: Round) -> u64 {
    // A zero with the product's sign is neutral in every mode.
    fma(format, a, b, (a ^ b) & format.sign_bit(), round)
}

/// `a / b` with one rounding. `format` must be IEEE-like.
pub fn div(format: Format, a: u64, b: u64, round: Round) -> u64 {
    let negative = (a ^ b) & format.sign_bit() != 0;
    let (x, y) = match (decode(format, a), decode(format, b)) {
        (Value::Finite(x), Value::Finite(y)) => (x, y),
        (Value::Infinite(_), Value::Finite(_)) => return infinite(format, negative),
        (Value::Finite(_), Value::Infinite(_)) => {
            return if negative { format.sign_bit() } else { 0 };
        }
        _ => return format.nan(),
    };
    if y.significand == 0 {
        return if x.significand == 0 {
            format.nan()
        } else {
            infinite(format, negative)
        };
    }
    let up = if x.significand == 0 {
        0
    } else {
        x.significand.leading_zeros()
    };
    // Shifted up, the quotient has at least 75 bits, more than a format needs.
    let numerator = x.significand << up;
    let sticky = u128::from(!numerator.is_multiple_of(y.significand));
    let quotient = Finite {
        negative,
        significand: (numerator / y.significand) | sticky,
        exponent: x.exponent - up as i32 - y.exponent,
    };
    encode(format, quotient, round, Overflow::Infinite)
}

/// `√a` with one rounding. `format` must be IEEE-like.
pub fn sqrt(format: Format, a: u64, round: Round) -> u64 {
    let x = match decode(format, a) {
        Value::Finite(x) => x,
        Value::Infinite(false) => return a,
        _ => return format.nan(),
    };
    if x.significand == 0 {
        return a;
    }
    if x.negative {
        return format.nan();
    }
    let mut up = x.significand.leading_zeros() as i32;
    // The exponent must be even, because the root has half of it.
    up -= (x.exponent - up) & 1;
    let radicand = x.significand << up;
    let root = radicand.isqrt();
    let sticky = u128::from(root * root != radicand);
    let value = Finite {
        negative: false,
        significand: root | sticky,
        exponent: (x.exponent - up) / 2,
    };
    encode(format, value, round, Overflow::Infinite)
}

/// Returns the sum with its low bits jammed; an exact zero has the sign that `round` requires.
fn sum(a: Finite, b: Finite, round: Round) -> Finite {
    if a.significand == 0 && b.significand == 0 {
        let negative = if a.negative == b.negative {
            a.negative
        } else {
            round == Round::Rm
        };
        return Finite { negative, ..a };
    }
    if a.significand == 0 {
        return b;
    }
    if b.significand == 0 {
        return a;
    }
    // Both get their leading bit at position 125. A carry then fits. A shift drops only bits far
    // below any rounding position, unless the leading bits are too far apart to cancel.
    let (a, b) = (normalised(a), normalised(b));
    let exponent = a.exponent.max(b.exponent);
    let x = jammed(a.significand, exponent - a.exponent);
    let y = jammed(b.significand, exponent - b.exponent);
    if a.negative == b.negative {
        return Finite {
            negative: a.negative,
            significand: x + y,
            exponent,
        };
    }
    let negative = match x.cmp(&y) {
        std::cmp::Ordering::Greater => a.negative,
        std::cmp::Ordering::Less => b.negative,
        std::cmp::Ordering::Equal => round == Round::Rm,
    };
    Finite {
        negative,
        significand: x.abs_diff(y),
        exponent,
    }
}

fn normalised(x: Finite) -> Finite {
    let up = x.significand.leading_zeros() as i32 - 2;
    Finite {
        significand: x.significand << up,
        exponent: x.exponent - up,
        ..x
    }
}

fn jammed(significand: u128, down: i32) -> u128 {
    if down >= 127 {
        return u128::from(significand != 0);
    }
    let lost = significand & ((1 << down) - 1);
    (significand >> down) | u128::from(lost != 0)
}
