//! Python's arithmetic on whole numbers (exact to 127 bits) and floats.

use super::op::Op;
use super::val::{Fault, Val};

const OVERFLOW: Val = Val::Fault(Fault::Overflow);
const BY_ZERO: Val = Val::Fault(Fault::DivisionByZero);

fn whole(value: Option<i128>) -> Val {
    value.map_or(OVERFLOW, Val::Int)
}

/// Narrows both numbers to 64 bits, for which the hardware's product is exact and its quotient ten times
/// faster than 128-bit routines.
fn narrow(a: i128, b: i128) -> Option<(i64, i64)> {
    Some((i64::try_from(a).ok()?, i64::try_from(b).ok()?))
}

pub(super) fn binary_int(op: Op, a: i128, b: i128) -> Val {
    match op {
        Op::Add => whole(a.checked_add(b)),
        Op::Sub => whole(a.checked_sub(b)),
        Op::Mul => match narrow(a, b) {
            Some((x, y)) => Val::Int(i128::from(x) * i128::from(y)),
            None => whole(a.checked_mul(b)),
        },
        Op::Div => true_division(a, b),
        Op::FloorDiv if b == 0 => BY_ZERO,
        Op::FloorDiv => whole(floor_div(a, b)),
        Op::CeilDiv if b == 0 => BY_ZERO,
        Op::CeilDiv => whole(ceil_div(a, b)),
        Op::Mod if b == 0 => BY_ZERO,
        Op::Mod => Val::Int(modulo(a, b)),
        Op::Pow => power_int(a, b),
        Op::BitAnd => Val::Int(a & b),
        Op::BitOr => Val::Int(a | b),
        Op::BitXor => Val::Int(a ^ b),
        Op::Shl | Op::Shr if b < 0 => Val::Fault(Fault::Domain(op.name())),
        // Zero stays zero, even for a shift that is rejected below.
        Op::Shl if a == 0 => Val::Int(0),
        Op::Shl => whole(
            u32::try_from(b)
                .ok()
                .filter(|shift| *shift < 127)
                .and_then(|shift| a.checked_mul(1_i128 << shift)),
        ),
        // A shift by 128 or more panics in Rust; a shift by 127 returns 0 or -1, like Python.
        Op::Shr => Val::Int(a >> u32::try_from(b).unwrap_or(127).min(127)),
        Op::Round => round_int(a, b),
        _ => Val::Fault(Fault::Type(op.name())),
    }
}

fn floor_div(a: i128, b: i128) -> Option<i128> {
    if let Some((x, y)) = narrow(a, b)
        && let Some(quotient) = x.checked_div(y)
    {
        let below = x % y != 0 && (x < 0) != (y < 0);
        return Some(i128::from(quotient) - i128::from(below));
    }
    let below = a.checked_rem(b)? != 0 && (a < 0) != (b < 0);
    Some(a.checked_div(b)? - i128::from(below))
}

fn ceil_div(a: i128, b: i128) -> Option<i128> {
    let floor = floor_div(a, b)?;
    Some(floor + i128::from(modulo(a, b) != 0))
}

/// Computes the remainder with the sign of the divisor.
fn modulo(a: i128, b: i128) -> i128 {
    let rest = match narrow(a, b) {
        // `MIN % -1` overflows in hardware, although the remainder is 0.
        Some((x, y)) => i128::from(x.wrapping_rem(y)),
        None => a.wrapping_rem(b),
    };
    if rest != 0 && (rest < 0) != (b < 0) {
        rest + b
    } else {
        rest
    }
}

/// Divides with a single rounding to the nearest float, as Python does for whole numbers of any
/// size.
fn true_division(a: i128, b: i128) -> Val {
    const EXACT: u128 = 1 << 53;
    if b == 0 {
        return BY_ZERO;
    }
    if a.unsigned_abs() <= EXACT && b.unsigned_abs() <= EXACT {
        return Val::Float(a as f64 / b as f64);
    }
    let (numerator, denominator) = (a.unsigned_abs(), b.unsigned_abs());
    let (mut quotient, mut rest) = (numerator / denominator, numerator % denominator);
    let mut exponent = 0_i32;
    // 55 quotient bits and a sticky bit determine the rounding to the 53 bits of a float.
    while quotient < (1 << 55) && rest != 0 {
        // No overflow: `rest < denominator <= 2^127`.
        rest *= 2;
        quotient = quotient * 2 + u128::from(rest >= denominator);
        if rest >= denominator {
            rest -= denominator;
        }
        exponent += 1;
    }
    let sticky = u128::from(rest != 0);
    let magnitude = (quotient | sticky) as f64 * 2_f64.powi(-exponent);
    Val::Float(if (a < 0) == (b < 0) {
        magnitude
    } else {
        -magnitude
    })
}

fn power_int(base: i128, exponent: i128) -> Val {
    if exponent < 0 {
        return if base == 0 {
            BY_ZERO
        } else {
            power_float(base as f64, exponent as f64)
        };
    }
    match base {
        0 | 1 => Val::Int(if exponent == 0 { 1 } else { base }),
        -1 => Val::Int(if exponent % 2 == 0 { 1 } else { -1 }),
        _ => whole(
            u32::try_from(exponent)
                .ok()
                .and_then(|exponent| base.checked_pow(exponent)),
        ),
    }
}

fn power_float(base: f64, exponent: f64) -> Val {
    if base == 0.0 && exponent < 0.0 {
        return BY_ZERO;
    }
    if base < 0.0 && base.is_finite() && exponent.is_finite() && exponent.fract() != 0.0 {
        // Python returns a complex number, which is useless as a parameter.
        return Val::Fault(Fault::Domain(Op::Pow.name()));
    }
    let power = base.powf(exponent);
    if power.is_infinite() && base.is_finite() && exponent.is_finite() {
        OVERFLOW
    } else {
        Val::Float(power)
    }
}

/// Rounds half to even, at `10^-digits` when `digits` is negative.
fn round_int(value: i128, digits: i128) -> Val {
    if digits >= 0 {
        return Val::Int(value);
    }
    let Some(step) = u32::try_from(digits.unsigned_abs())
        .ok()
        .and_then(|power| 10_i128.checked_pow(power))
    else {
        return Val::Int(0);
    };
    let Some(below) = value.div_euclid(step).checked_mul(step) else {
        return OVERFLOW;
    };
    let rest = value - below;
    let up = match rest.cmp(&(step - rest)) {
        std::cmp::Ordering::Less => false,
        std::cmp::Ordering::Greater => true,
        std::cmp::Ordering::Equal => (below / step) % 2 != 0,
    };
    whole(if up {
        below.checked_add(step)
    } else {
        Some(below)
    })
}

pub(super) fn binary_float(op: Op, a: f64, b: f64) -> Val {
    match op {
        Op::Add => Val::Float(a + b),
        Op::Sub => Val::Float(a - b),
        Op::Mul => Val::Float(a * b),
        Op::Div | Op::FloorDiv | Op::Mod | Op::CeilDiv if b == 0.0 => BY_ZERO,
        Op::Div => Val::Float(a / b),
        Op::FloorDiv => Val::Float(divmod_float(a, b).0),
        // Subtraction from 0 avoids -0.0.
        Op::CeilDiv => Val::Float(0.0 - divmod_float(-a, b).0),
        Op::Mod => Val::Float(divmod_float(a, b).1),
        Op::Pow => power_float(a, b),
        Op::Round => {
            if b.fract() != 0.0 {
                return Val::Fault(Fault::Type(op.name()));
            }
            round_digits(a, b)
        }
        _ => Val::Fault(Fault::Type(op.name())),
    }
}

/// Returns floor division and remainder of floats, consistent with each other.
fn divmod_float(a: f64, b: f64) -> (f64, f64) {
    let mut rest = a % b;
    let mut quotient = (a - rest) / b;
    if rest == 0.0 {
        rest = 0.0_f64.copysign(b);
    } else if (b < 0.0) != (rest < 0.0) {
        rest += b;
        quotient -= 1.0;
    }
    let floor = if quotient == 0.0 {
        0.0_f64.copysign(a / b)
    } else {
        let floor = quotient.floor();
        // As in CPython: the division may be rounded to just below a whole number.
        if quotient - floor > 0.5 {
            floor + 1.0
        } else {
            floor
        }
    };
    (floor, rest)
}

fn round_digits(value: f64, digits: f64) -> Val {
    if !value.is_finite() || digits > 400.0 {
        return Val::Float(value);
    }
    if digits < 0.0 {
        let step = 10_f64.powf(-digits);
        if !step.is_finite() {
            return Val::Float(0.0_f64.copysign(value));
        }
        return Val::Float((value / step).round_ties_even() * step);
    }
    // Rust's formatting rounds correctly, so this is Python's decimal rounding.
    let text = format!("{value:.*}", digits as usize);
    Val::Float(text.parse().unwrap_or(value))
}

fn to_whole(value: f64) -> Val {
    // Just below 2^127, at which the cast saturates.
    if value.is_finite() && value.abs() < 1.7e38 {
        Val::Int(value as i128)
    } else {
        OVERFLOW
    }
}

pub(super) fn unary_float(op: Op, value: f64) -> Val {
    match op {
        Op::Neg => Val::Float(-value),
        Op::Pos | Op::Float => Val::Float(value),
        Op::Abs => Val::Float(value.abs()),
        Op::Int => to_whole(value.trunc()),
        Op::Floor => to_whole(value.floor()),
        Op::Ceil => to_whole(value.ceil()),
        Op::Round => to_whole(value.round_ties_even()),
        Op::Sqrt if value < 0.0 => Val::Fault(Fault::Domain(op.name())),
        Op::Sqrt => Val::Float(value.sqrt()),
        Op::Log2 if value <= 0.0 => Val::Fault(Fault::Domain(op.name())),
        Op::Log2 => Val::Float(value.log2()),
        _ => Val::Fault(Fault::Type(op.name())),
    }
}

pub(super) fn unary_int(op: Op, value: i128) -> Val {
    match op {
        Op::Neg => whole(value.checked_neg()),
        Op::Pos | Op::Int | Op::Floor | Op::Ceil | Op::Round => Val::Int(value),
        Op::Invert => Val::Int(!value),
        Op::Abs => whole(value.checked_abs()),
        _ => unary_float(op, value as f64),
    }
}
