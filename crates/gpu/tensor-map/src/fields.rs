//! Places of the fields in an encoded tensor map.

/// Bits of a word of an encoded map. The places are those of ptxas 13.0 for 9.0a, 10.0a and 12.0a.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Offset of the word, bytes.
    pub offset: u32,
    /// The first bit.
    pub low: u32,
    /// Number of bits.
    pub bits: u32,
}

impl Field {
    /// Lower half of the address of the tensor, which the upper half follows.
    pub const ADDRESS: Field = Field::new(0, 0, 32);
    pub(super) const ADDRESS_HIGH: Field = Field::new(4, 0, 32);
    /// Number of dimensions less one.
    pub const RANK: Field = Field::new(8, 4, 3);
    /// Type of the elements, as `tensormap.replace` numbers them up to `bf16`; packed types follow.
    pub const ELEMENT: Field = Field::new(8, 7, 4);
    /// Number of `CUtensorMapInterleave`.
    pub const INTERLEAVE: Field = Field::new(8, 11, 2);
    /// Swizzle of 0, 32, 64 or 128 bytes.
    pub const SWIZZLE: Field = Field::new(8, 13, 2);
    /// Elements outside the tensor are NaN.
    pub const FILL: Field = Field::new(8, 15, 1);
    /// The elements are rounded to `tf32`.
    pub const ROUNDED: Field = Field::new(8, 16, 1);
    /// Bytes that a swizzle of 128 bytes keeps together: 16, 32, 32 with a flip of 8, 64.
    pub const ATOMS: Field = Field::new(8, 19, 3);
    /// Set by the swizzle of 96 bytes, which is not supported.
    pub const SWIZZLE_96: Field = Field::new(8, 22, 1);
    pub(super) const MAGIC: Field = Field::new(64, 0, 32);
    pub(super) const PROMOTION: Field = Field::new(68, 0, 8);
    pub(super) const COLUMN: Field = Field::new(68, 8, 8);
    pub(super) const PIXELS: Field = Field::new(68, 16, 16);

    pub(super) const fn new(offset: u32, low: u32, bits: u32) -> Self {
        Self { offset, low, bits }
    }

    /// Returns the place of the lower bits of a stride of dimension `index + 1`, in units of 16 bytes.
    #[must_use]
    pub const fn stride(index: u32) -> Self {
        Self::new(12 + 4 * index, 0, 32)
    }

    /// Returns the place of the bits of the same from the 32nd on.
    #[must_use]
    pub const fn stride_high(index: u32) -> Self {
        Self::new(28, 4 * index, 4)
    }

    /// Returns the place of the size of a dimension, less one.
    #[must_use]
    pub const fn size(dimension: u32) -> Self {
        Self::new(32 + 4 * dimension, 0, 32)
    }

    /// Returns the place of the step of a dimension, less one.
    #[must_use]
    pub const fn step(dimension: u32) -> Self {
        Self::new(52, 3 * dimension, 3)
    }

    /// Returns the place of the extent of the box in a dimension, less one.
    #[must_use]
    pub const fn extent(dimension: u32) -> Self {
        match dimension {
            0 => Self::new(52, 24, 8),
            _ => Self::new(56, 8 * (dimension - 1), 8),
        }
    }

    /// Returns the place of a coordinate of the lower corner, or of the upper one.
    pub(super) const fn corner(upper: bool, dimension: u32) -> Self {
        Self::new(72 + 4 * dimension, if upper { 16 } else { 0 }, 16)
    }

    /// Returns the bits in their word.
    #[must_use]
    pub const fn mask(self) -> u32 {
        (u32::MAX >> (32 - self.bits)) << self.low
    }
}
