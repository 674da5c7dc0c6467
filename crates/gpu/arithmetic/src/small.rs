//! TF32 and the formats of one byte or less: e4m3, e5m2, e2m3, e3m2, e2m1, ue8m0.
//!
//! Codes of less than a byte occupy its low bits.

use super::half::{self, Bfloat16, Fp16, Half};
use super::soft::{self, E2M1, E2M3, E3M2, E4M3, E5M2, F32, Format, TF32};
use super::{Overflow, Round};

/// A format of at most eight bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Small {
    /// FP8: 4 exponent bits, no infinity, largest value 448, NaN 0x7f.
    E4m3,
    /// FP8: 5 exponent bits, IEEE-like, largest value 57344, NaN 0x7f.
    E5m2,
    /// FP6: largest value 7.5, neither infinity nor NaN.
    E2m3,
    /// FP6: largest value 28, neither infinity nor NaN.
    E3m2,
    /// FP4: largest value 6, neither infinity nor NaN.
    E2m1,
}

impl Small {
    /// Returns the format's description.
    pub const fn format(self) -> Format {
        match self {
            Small::E4m3 => E4M3,
            Small::E5m2 => E5M2,
            Small::E2m3 => E2M3,
            Small::E3m2 => E3M2,
            Small::E2m1 => E2M1,
        }
    }

    /// Returns the bits of one element in a packed pair: those of four-bit codes have no padding.
    #[inline(always)]
    pub const fn pair_shift(self) -> u32 {
        match self {
            Small::E2m1 => 4,
            _ => 8,
        }
    }

    /// Returns the codes of a packed pair, the lower one first, without padding.
    #[inline(always)]
    pub const fn split(self, pair: u16) -> [u8; 2] {
        let mask = match self {
            Small::E4m3 | Small::E5m2 => 0xff,
            Small::E2m3 | Small::E3m2 => 0x3f,
            Small::E2m1 => 0xf,
        };
        [pair as u8 & mask, (pair >> self.pair_shift()) as u8 & mask]
    }
}

/// `cvt.rn.satfinite{.relu}.<format>.f32`: to nearest even, saturating to the largest finite value.
///
/// NaN becomes the canonical NaN, or the largest finite value where the format has none.
pub fn from_f32(format: Small, value: f32, relu: bool) -> u8 {
    // Relu maps negative numbers and -0 to +0 but keeps NaN.
    let value = if relu && value.is_sign_negative() && !value.is_nan() {
        0.0
    } else {
        value
    };
    let bits = value.to_bits().into();
    soft::convert(F32, format.format(), bits, Round::Rn, Overflow::Finite) as u8
}

/// Exact value of a code; NaN becomes the canonical single NaN.
#[inline(always)]
pub fn to_f32(format: Small, code: u8) -> f32 {
    match format {
        Small::E4m3 => E4M3_VALUES[usize::from(code)],
        Small::E5m2 => super::half::f16_to_f32(u16::from(code) << 8),
        other => {
            let bits = soft::convert(
                other.format(),
                F32,
                code.into(),
                Round::Rn,
                Overflow::Infinite,
            );
            f32::from_bits(bits as u32)
        }
    }
}

impl Small {
    /// Packs two numbers, rounded as by [`from_f32`].
    pub fn pack(self, high: f32, low: f32, relu: bool) -> u16 {
        let [high, low] = [high, low].map(|x| u16::from(from_f32(self, x, relu)));
        high << self.pair_shift() | low
    }

    /// Returns a packed pair as two halves: `cvt.rn{.relu}.f16x2.<format>x2`, which is exact.
    #[inline(always)]
    pub fn to_halves(self, pair: u16, relu: bool) -> u32 {
        let half = |code: u8| {
            let x = Fp16::narrow(to_f32(self, code));
            if relu { half::relu::<Fp16>(x) } else { x }
        };
        let [low, high] = self.split(pair);
        half::pack(half(low), half(high))
    }
}

/// Random bits of the four numbers of `cvt.rs` to four codes, the one in the lowest bits first: two numbers share 16 bits, the
/// second in reverse order.
///
/// The PTX ISA names the bits of each pair of numbers; their order was measured on a B200 by several public projects.
pub fn shared_bits(format: Small, random: u32) -> [u16; 4] {
    let halves = match format {
        // The lower bytes of both halves, and the upper ones.
        Small::E2m1 => {
            let [b0, b1, b2, b3] = random.to_le_bytes();
            [[b0, b2], [b1, b3]].map(u16::from_le_bytes)
        }
        _ => [random as u16, (random >> 16) as u16],
    };
    let [low, high] = halves;
    [low, low.reverse_bits(), high, high.reverse_bits()]
}

/// `cvt.rs{.relu}.satfinite.<format>.f32` of one number with its random bits.
pub fn from_f32_stochastic(format: Small, value: f32, random: u16, relu: bool) -> u8 {
    let value = if relu && value.is_sign_negative() && !value.is_nan() {
        0.0
    } else {
        value
    };
    let random = soft::RandomBits {
        number: random.into(),
        count: 16,
    };
    let bits = value.to_bits().into();
    soft::convert_stochastic(F32, format.format(), bits, random, Overflow::Finite) as u8
}

/// Packs two powers of two, rounded as by [`to_ue8m0`].
pub fn pack_ue8m0(high: f32, low: f32, round: Round, overflow: Overflow) -> u16 {
    u16::from_le_bytes([low, high].map(|x| to_ue8m0(x, round, overflow)))
}

/// Returns a packed pair of powers of two as two bf16: `cvt.rn.bf16x2.ue8m0x2`.
pub fn ue8m0_to_bf16(pair: u16) -> u32 {
    let [low, high] = pair.to_le_bytes().map(ue8m0_to_f32);
    half::pack(Bfloat16::narrow(low), Bfloat16::narrow(high))
}

/// Values of all e4m3 codes.
pub static E4M3_VALUES: [f32; 256] = e4m3_values();

const fn e4m3_values() -> [f32; 256] {
    let mut values = [0.0; 256];
    let mut code = 0;
    while code < 256 {
        let (field, fraction) = ((code >> 3) & 15, code & 7);
        let magnitude = if code & 0x7f == 0x7f {
            f32::from_bits(super::single::NAN_BITS)
        } else if field == 0 {
            fraction as f32 / 512.0
        } else {
            f32::from_bits(((field + 120) << 23 | fraction << 20) as u32)
        };
        values[code] = if code < 128 || code == 255 {
            magnitude
        } else {
            -magnitude
        };
        code += 1;
    }
    values
}

/// `cvt.{rn,rz,rna}{.satfinite}.tf32.f32`: the result as a register, low 13 bits zero; NaN is
/// 0x7fffffff.
#[inline]
pub fn to_tf32(value: f32, round: Round, overflow: Overflow) -> u32 {
    // The NaN of the format would have zeros in the low 13 bits.
    if value.is_nan() {
        return super::single::NAN_BITS;
    }
    let code = soft::convert(F32, TF32, value.to_bits().into(), round, overflow);
    (code as u32) << 13
}

/// `cvt.rz.satfinite.ue8m0.f32` and its `.rp` form: the power of two as its biased exponent.
///
/// The value must be a magnitude: the sign is ignored. NaN and, without saturation, infinity become
/// 0xff; the smallest power is 2^-127.
pub fn to_ue8m0(value: f32, round: Round, overflow: Overflow) -> u8 {
    let bits = value.to_bits() & 0x7fff_ffff;
    if bits > 0x7f80_0000 {
        return 0xff;
    }
    let exponent = bits >> 23;
    // A subnormal above 2^-127 rounds up to 2^-126; at or below, 2^-127 is the minimum.
    let up = match exponent {
        0 => bits > 0x0040_0000,
        _ => bits & 0x007f_ffff != 0,
    };
    let code = exponent + u32::from(round == Round::Rp && up);
    let largest = if overflow == Overflow::Finite {
        254
    } else {
        255
    };
    code.min(largest) as u8
}

/// Returns the value of a `ue8m0` code: `2^(code - 127)`; 0xff is NaN.
pub fn ue8m0_to_f32(code: u8) -> f32 {
    match code {
        0 => f32::from_bits(0x0040_0000),
        255 => f32::from_bits(super::single::NAN_BITS),
        _ => f32::from_bits(u32::from(code) << 23),
    }
}
