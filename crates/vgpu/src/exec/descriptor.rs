//! Matrix descriptors of shared memory and the addresses that they mean (PTX ISA, 9.7.15.5; the
//! canonical layouts are those of CuTe's `mma_sm90_desc.hpp`).

/// Bytes of a step along K for every type of a `wgmma`.
pub(super) const STEP_BYTES: u32 = 32;

/// Bytes that keep their order under every swizzle.
pub(super) const CHUNK_BYTES: u32 = 16;

/// Shared addresses of `wgmma` have 18 bits.
const ADDRESS_MASK: u32 = (1 << 18) - 1;

/// A decoded descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Descriptor {
    start: u32,
    /// Byte offsets.
    leading: u32,
    stride: u32,
    base_offset: u32,
    swizzle: Swizzle,
}

/// Permutation of the 16-byte chunks of rows of 32, 64 or 128 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Swizzle {
    None,
    /// By its row bytes.
    Rows(u32),
}

impl Swizzle {
    /// Returns the shared address of a chunk, before the permutation at `at`.
    pub(crate) fn apply(self, at: u32, base_offset: u32) -> u32 {
        let Swizzle::Rows(bytes) = self else {
            return at;
        };
        let row = (at >> 7).wrapping_sub(base_offset);
        at ^ (row & (bytes / CHUNK_BYTES - 1)) << 4
    }
}

impl Descriptor {
    /// Decodes the 64 bits of a descriptor.
    pub(super) fn decode(bits: u64) -> Self {
        let field = |low: u32| (bits >> low & 0x3fff) as u32 * CHUNK_BYTES;
        Self {
            start: field(0),
            leading: field(16),
            stride: field(32),
            base_offset: (bits >> 49 & 7) as u32,
            swizzle: match bits >> 62 {
                0 => Swizzle::None,
                1 => Swizzle::Rows(128),
                2 => Swizzle::Rows(64),
                _ => Swizzle::Rows(32),
            },
        }
    }

    /// Returns the address of chunk `chunk` (0 or 1) of a row of A or column of B, stored along K.
    pub(super) fn along_k(&self, row: u32, chunk: u32) -> u32 {
        let (group, within) = (row / 8, row % 8);
        let offset = match self.swizzle {
            Swizzle::None => within * CHUNK_BYTES + group * self.stride + chunk * self.leading,
            Swizzle::Rows(bytes) => within * bytes + group * self.stride + chunk * CHUNK_BYTES,
        };
        self.swizzled_address(offset)
    }

    /// Returns the address of the chunk of eight rows from `8 * eight` on at the column `k`, stored along
    /// M or N.
    pub(super) fn along_rows(&self, eight: u32, k: u32) -> u32 {
        let (group, within) = (k / 8, k % 8);
        let offset = match self.swizzle {
            Swizzle::None => eight * self.stride + within * CHUNK_BYTES + group * self.leading,
            Swizzle::Rows(bytes) => {
                let wide = bytes / CHUNK_BYTES;
                eight % wide * CHUNK_BYTES
                    + eight / wide * self.leading
                    + within * bytes
                    + group * self.stride
            }
        };
        self.swizzled_address(offset)
    }

    fn swizzled_address(&self, offset: u32) -> u32 {
        let at = self.start.wrapping_add(offset) & ADDRESS_MASK;
        self.swizzle.apply(at, self.base_offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptor(start: u64, leading: u64, stride: u64, swizzle: u64) -> Descriptor {
        Descriptor::decode(start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | swizzle << 62)
    }

    #[test]
    fn chunks_of_a_swizzled_tile_are_a_permutation_of_it() {
        for (swizzle, bytes) in [(1, 128), (2, 64), (3, 32)] {
            // 64 rows of `bytes`, in groups of eight.
            let tile = descriptor(1024, 16, 8 * bytes, swizzle);
            let mut places = Vec::new();
            for step in 0..bytes as u32 / STEP_BYTES {
                let start = 1024 + u64::from(step * STEP_BYTES);
                let at = descriptor(start, 16, 8 * bytes, swizzle);
                for row in 0..64 {
                    places.extend([at.along_k(row, 0), at.along_k(row, 1)]);
                }
            }
            places.sort_unstable();
            let all = (0..64 * bytes as u32 / CHUNK_BYTES).map(|n| 1024 + n * CHUNK_BYTES);
            assert_eq!(places, all.collect::<Vec<_>>());
            // Row 1 of a 128-byte swizzle has its first two chunks exchanged.
            assert_eq!(tile.along_k(0, 0), 1024);
        }
        let tile = descriptor(1024, 16, 1024, 1);
        assert_eq!(tile.along_k(1, 0), 1024 + 128 + 16);
        assert_eq!(tile.along_k(1, 1), 1024 + 128);
    }

    #[test]
    fn tiles_without_a_swizzle_have_core_matrices_of_eight_rows() {
        let tile = descriptor(256, 128, 256, 0);
        assert_eq!(tile.along_k(0, 1), 256 + 128);
        assert_eq!(tile.along_k(9, 0), 256 + 256 + 16);
        assert_eq!(tile.along_rows(1, 0), 256 + 256);
        assert_eq!(tile.along_rows(0, 9), 256 + 128 + 16);
    }
}
