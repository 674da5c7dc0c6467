//! Element types of kernel arguments: encoding and rounding error.
//!
//! The conversions are intentionally separate from the virtual GPU's: the judge shares no code with the
//! device it judges.

mod vectors;

pub use vectors::{PAIRS, VECTORS, vector_type};

use super::fp8;
use crate::named::named;
use half::{bf16, f16};

named! {
    /// The type of one element of a buffer, or of a scalar argument; written as in space files.
    pub enum Element {
        /// IEEE 754 half precision.
        F16,
        /// The upper half of an `f32`.
        Bf16,
        /// IEEE 754 single precision.
        F32,
        /// IEEE 754 double precision.
        F64,
        /// One byte that is 0 or 1.
        Bool,
        /// Signed 8-bit integer.
        I8,
        /// Unsigned 8-bit integer.
        U8,
        /// Signed 16-bit integer.
        I16,
        /// Unsigned 16-bit integer.
        U16,
        /// Signed 32-bit integer.
        I32,
        /// Unsigned 32-bit integer.
        U32,
        /// Signed 64-bit integer.
        I64,
        /// Unsigned 64-bit integer.
        U64,
        /// 8-bit float with 4 exponent bits, no infinities (OCP FP8 E4M3).
        F8e4m3,
        /// 8-bit float with 5 exponent bits (OCP FP8 E5M2).
        F8e5m2,
    }
}

/// Returns the first `N` bytes, if there are enough.
fn take<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.get(..N).and_then(|part| part.try_into().ok())
}

impl Element {
    /// Returns the bytes of one element.
    #[must_use]
    pub fn size(self) -> usize {
        match self {
            Self::Bool | Self::I8 | Self::U8 | Self::F8e4m3 | Self::F8e5m2 => 1,
            Self::F16 | Self::Bf16 | Self::I16 | Self::U16 => 2,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F64 | Self::I64 | Self::U64 => 8,
        }
    }

    /// Returns the spellings of the type in CUDA C++, the preferred one first.
    #[must_use]
    pub fn cpp_names(self) -> &'static [&'static str] {
        match self {
            Self::F16 => &["__half", "half"],
            Self::Bf16 => &["__nv_bfloat16", "nv_bfloat16"],
            Self::F32 => &["float"],
            Self::F64 => &["double"],
            Self::Bool => &["bool"],
            Self::I8 => &["signed char", "char", "int8_t"],
            Self::U8 => &["unsigned char", "uchar", "uint8_t"],
            Self::I16 => &["short", "int16_t"],
            Self::U16 => &["unsigned short", "ushort", "uint16_t"],
            Self::I32 => &["int", "int32_t"],
            Self::U32 => &["unsigned int", "unsigned", "uint", "uint32_t"],
            Self::I64 => &["long long", "long", "int64_t"],
            Self::U64 => &["unsigned long long", "unsigned long", "size_t", "uint64_t"],
            Self::F8e4m3 => &["__nv_fp8_e4m3"],
            Self::F8e5m2 => &["__nv_fp8_e5m2"],
        }
    }

    /// Returns the integer type with the same bits for languages that lack the type, as in CUDA's headers;
    /// `None` for a type that C has.
    #[must_use]
    pub fn storage(self) -> Option<Self> {
        match self {
            Self::F16 | Self::Bf16 => Some(Self::U16),
            Self::F8e4m3 | Self::F8e5m2 => Some(Self::U8),
            Self::F32 | Self::F64 | Self::Bool | Self::I8 | Self::U8 | Self::I16 => None,
            Self::U16 | Self::I32 | Self::U32 | Self::I64 | Self::U64 => None,
        }
    }

    /// Returns the preferred spelling in CUDA C++.
    #[must_use]
    pub fn cpp_name(self) -> &'static str {
        self.cpp_names().first().copied().unwrap_or_default()
    }

    /// Returns the type with this spelling in CUDA C++.
    #[must_use]
    pub fn from_cpp(name: &str) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|element| element.cpp_names().contains(&name))
    }

    /// Reports whether it is a floating-point type.
    #[must_use]
    pub fn is_float(self) -> bool {
        match self {
            Self::F16 | Self::Bf16 | Self::F32 | Self::F64 | Self::F8e4m3 | Self::F8e5m2 => true,
            Self::Bool | Self::I8 | Self::U8 | Self::I16 | Self::U16 => false,
            Self::I32 | Self::U32 | Self::I64 | Self::U64 => false,
        }
    }

    /// Reports whether it is a type of whole numbers, which booleans are not.
    #[must_use]
    pub fn is_integer(self) -> bool {
        !self.is_float() && self != Self::Bool
    }

    /// Returns the unit roundoff: the largest relative error of rounding to nearest, half an ulp of
    /// 1. Zero for integers.
    #[must_use]
    pub fn unit_roundoff(self) -> f64 {
        match self {
            Self::F16 => 2f64.powi(-11),
            Self::Bf16 => 2f64.powi(-8),
            Self::F32 => 2f64.powi(-24),
            Self::F64 => 2f64.powi(-53),
            Self::F8e4m3 => 2f64.powi(-4),
            Self::F8e5m2 => 2f64.powi(-3),
            Self::Bool | Self::I8 | Self::U8 | Self::I16 | Self::U16 => 0.0,
            Self::I32 | Self::U32 | Self::I64 | Self::U64 => 0.0,
        }
    }

    /// Returns the type in which a kernel accumulates values of this type: float64 for float64,
    /// float32 for every other.
    #[must_use]
    pub fn accumulator(self) -> Self {
        match self {
            Self::F64 => Self::F64,
            _ => Self::F32,
        }
    }

    /// Returns the smallest step of the type near zero (its smallest subnormal), absolute. Zero for
    /// float64, the type of the computation, and for integers.
    #[must_use]
    pub fn smallest_step(self) -> f64 {
        match self {
            Self::F16 => 2f64.powi(-24),
            Self::Bf16 => 2f64.powi(-133),
            Self::F32 => 2f64.powi(-149),
            Self::F8e4m3 => 2f64.powi(-9),
            Self::F8e5m2 => 2f64.powi(-16),
            Self::F64 | Self::Bool | Self::I8 | Self::U8 | Self::I16 | Self::U16 => 0.0,
            Self::I32 | Self::U32 | Self::I64 | Self::U64 => 0.0,
        }
    }

    /// Appends `value`, rounded to nearest-even (integers: to nearest, clamped), little-endian.
    pub fn encode(self, value: f64, out: &mut Vec<u8>) {
        match self {
            Self::F16 => out.extend(f16::from_f64(value).to_le_bytes()),
            Self::Bf16 => out.extend(bf16::from_f64(value).to_le_bytes()),
            Self::F32 => out.extend((value as f32).to_le_bytes()),
            Self::F64 => out.extend(value.to_le_bytes()),
            Self::Bool => out.push(u8::from(value.round_ties_even() != 0.0)),
            Self::I16 => out.extend((value.round_ties_even() as i16).to_le_bytes()),
            Self::U16 => out.extend((value.round_ties_even() as u16).to_le_bytes()),
            Self::U64 => out.extend((value.round_ties_even() as u64).to_le_bytes()),
            Self::I8 => out.extend((value.round_ties_even() as i8).to_le_bytes()),
            Self::U8 => out.push(value.round_ties_even() as u8),
            Self::I32 => out.extend((value.round_ties_even() as i32).to_le_bytes()),
            Self::U32 => out.extend((value.round_ties_even() as u32).to_le_bytes()),
            Self::I64 => out.extend((value.round_ties_even() as i64).to_le_bytes()),
            Self::F8e4m3 => out.push(fp8::E4M3.encode(value)),
            Self::F8e5m2 => out.push(fp8::E5M2.encode(value)),
        }
    }

    /// Returns the value at the start of `bytes`; NaN if there are too few bytes.
    #[must_use]
    pub fn decode(self, bytes: &[u8]) -> f64 {
        let value = match self {
            Self::F16 => take(bytes).map(|b| f16::from_le_bytes(b).to_f64()),
            Self::Bf16 => take(bytes).map(|b| bf16::from_le_bytes(b).to_f64()),
            Self::F32 => take(bytes).map(|b| f64::from(f32::from_le_bytes(b))),
            Self::F64 => take(bytes).map(f64::from_le_bytes),
            Self::I8 => take(bytes).map(|b| f64::from(i8::from_le_bytes(b))),
            Self::Bool | Self::U8 => take(bytes).map(|b: [u8; 1]| f64::from(b[0])),
            Self::I16 => take(bytes).map(|b| f64::from(i16::from_le_bytes(b))),
            Self::U16 => take(bytes).map(|b| f64::from(u16::from_le_bytes(b))),
            Self::U64 => take(bytes).map(|b| u64::from_le_bytes(b) as f64),
            Self::I32 => take(bytes).map(|b| f64::from(i32::from_le_bytes(b))),
            Self::U32 => take(bytes).map(|b| f64::from(u32::from_le_bytes(b))),
            Self::I64 => take(bytes).map(|b| i64::from_le_bytes(b) as f64),
            Self::F8e4m3 => take(bytes).map(|b: [u8; 1]| fp8::E4M3.decode(b[0])),
            Self::F8e5m2 => take(bytes).map(|b: [u8; 1]| fp8::E5M2.decode(b[0])),
        };
        value.unwrap_or(f64::NAN)
    }

    /// Returns the exact integer at the start of `bytes`; `None` for floating-point types and if
    /// there are too few bytes.
    #[must_use]
    pub fn whole(self, bytes: &[u8]) -> Option<i128> {
        match self {
            Self::I8 => take(bytes).map(|b| i128::from(i8::from_le_bytes(b))),
            Self::Bool | Self::U8 => take(bytes).map(|b| i128::from(u8::from_le_bytes(b))),
            Self::I16 => take(bytes).map(|b| i128::from(i16::from_le_bytes(b))),
            Self::U16 => take(bytes).map(|b| i128::from(u16::from_le_bytes(b))),
            Self::U64 => take(bytes).map(|b| i128::from(u64::from_le_bytes(b))),
            Self::I32 => take(bytes).map(|b| i128::from(i32::from_le_bytes(b))),
            Self::U32 => take(bytes).map(|b| i128::from(u32::from_le_bytes(b))),
            Self::I64 => take(bytes).map(|b| i128::from(i64::from_le_bytes(b))),
            Self::F16 | Self::Bf16 | Self::F32 | Self::F64 | Self::F8e4m3 | Self::F8e5m2 => None,
        }
    }

    /// Appends an integer exactly, clamped to the type's range, little-endian.
    pub fn encode_whole(self, value: i128, out: &mut Vec<u8>) {
        let clamped = |least: i128, most: i128| value.clamp(least, most).to_le_bytes();
        let bytes = match self {
            Self::Bool => u128::from(value != 0).to_le_bytes(),
            Self::I8 => clamped(i8::MIN.into(), i8::MAX.into()),
            Self::U8 => clamped(0, u8::MAX.into()),
            Self::I16 => clamped(i16::MIN.into(), i16::MAX.into()),
            Self::U16 => clamped(0, u16::MAX.into()),
            Self::I32 => clamped(i32::MIN.into(), i32::MAX.into()),
            Self::U32 => clamped(0, u32::MAX.into()),
            Self::I64 => clamped(i64::MIN.into(), i64::MAX.into()),
            Self::U64 => clamped(0, u64::MAX.into()),
            Self::F16 | Self::Bf16 | Self::F32 | Self::F64 | Self::F8e4m3 | Self::F8e5m2 => {
                return self.encode(value as f64, out);
            }
        };
        out.extend(bytes.iter().take(self.size()));
    }

    /// Rounds `value` to this type.
    #[must_use]
    pub fn round(self, value: f64) -> f64 {
        let mut bytes = Vec::with_capacity(8);
        self.encode(value, &mut bytes);
        self.decode(&bytes)
    }

    /// Returns the byte pattern of an unwritten element: a NaN for floating-point types, a value far from
    /// any result for integers.
    ///
    /// The NaN is negative, with a payload if the type has room for one. Arithmetic and conversions of a
    /// GPU return the canonical NaN, all ones except the sign (PTX ISA, floating-point instructions), which
    /// occurs in honest results.
    #[must_use]
    pub fn poison(self) -> &'static [u8] {
        match self {
            Self::F16 => &[0xa5, 0xff],
            Self::Bf16 => &[0xe5, 0xff],
            Self::F32 => &[0xa5, 0xa5, 0xe5, 0xff],
            Self::F64 => &[0xa5, 0xa5, 0xa5, 0xa5, 0xa5, 0xa5, 0xfd, 0xff],
            Self::Bool | Self::I8 | Self::U8 => &[0xa5],
            Self::I16 | Self::U16 => &[0xa5; 2],
            Self::I32 | Self::U32 => &[0xa5; 4],
            Self::I64 | Self::U64 => &[0xa5; 8],
            // The only other NaN of this type.
            Self::F8e4m3 => &[0xff],
            Self::F8e5m2 => &[0xfd],
        }
    }
}

#[cfg(test)]
mod tests;
