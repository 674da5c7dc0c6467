//! Types of a tensor map's elements.
//!
//! This file stands alone, as the one that includes it.

/// Type of a tensor's elements, with the number of `CUtensorMapDataType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the driver")]
#[repr(u8)]
pub enum TensorElement {
    U8 = 0,
    U16 = 1,
    U32 = 2,
    S32 = 3,
    U64 = 4,
    S64 = 5,
    F16 = 6,
    F32 = 7,
    F64 = 8,
    Bf16 = 9,
    F32Ftz = 10,
    Tf32 = 11,
    Tf32Ftz = 12,
    /// 16 elements of 4 bits in 8 bytes.
    U4 = 13,
    /// The same, with 8 bytes of padding behind them in shared memory.
    U4Padded = 14,
    /// 16 elements of 6 bits in 12 bytes, with 4 bytes of padding behind them in shared memory.
    U6Padded = 15,
}

/// Elements of the innermost dimension of a box of padded types, of whose multiples their tensors and coordinates consist.
pub const PADDED_ELEMENTS: u32 = 128;

pub(super) const ELEMENTS: [TensorElement; 16] = [
    TensorElement::U8,
    TensorElement::U16,
    TensorElement::U32,
    TensorElement::S32,
    TensorElement::U64,
    TensorElement::S64,
    TensorElement::F16,
    TensorElement::F32,
    TensorElement::F64,
    TensorElement::Bf16,
    TensorElement::F32Ftz,
    TensorElement::Tf32,
    TensorElement::Tf32Ftz,
    TensorElement::U4,
    TensorElement::U4Padded,
    TensorElement::U6Padded,
];

impl TensorElement {
    /// Returns the type with a number of `CUtensorMapDataType`.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        ELEMENTS.get(number as usize).copied()
    }

    /// Returns the size in bytes; of packed types, 1.
    #[must_use]
    pub fn bytes(self) -> u32 {
        match self {
            Self::U8 | Self::U4 | Self::U4Padded | Self::U6Padded => 1,
            Self::U16 | Self::F16 | Self::Bf16 => 2,
            Self::U64 | Self::S64 | Self::F64 => 8,
            _ => 4,
        }
    }

    /// Returns the size in global memory, bits.
    #[must_use]
    pub fn bits(self) -> u32 {
        match self {
            Self::U4 | Self::U4Padded => 4,
            Self::U6Padded => 6,
            other => 8 * other.bytes(),
        }
    }

    /// Reports whether 16 elements have padding behind them in shared memory.
    #[must_use]
    pub fn is_padded(self) -> bool {
        matches!(self, Self::U4Padded | Self::U6Padded)
    }

    /// Returns the number of `tensormap.replace`, and whether the elements are rounded to `tf32`.
    pub(super) fn code(self) -> (u32, bool) {
        match self {
            Self::Tf32 => (7, true),
            Self::Tf32Ftz => (8, true),
            Self::F32Ftz => (8, false),
            Self::F64 => (9, false),
            Self::Bf16 => (10, false),
            Self::U4 => (11, false),
            Self::U4Padded => (12, false),
            Self::U6Padded => (13, false),
            other => (other as u32, false),
        }
    }

    pub(super) fn is_float(self) -> bool {
        !matches!(
            self,
            Self::U8
                | Self::U16
                | Self::U32
                | Self::S32
                | Self::U64
                | Self::S64
                | Self::U4
                | Self::U4Padded
                | Self::U6Padded
        )
    }
}
