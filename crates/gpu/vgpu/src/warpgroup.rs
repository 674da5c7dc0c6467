//! Operands of `wgmma` products: matrix descriptors of shared memory with the addresses that they mean (PTX
//! ISA, 9.7.15.5; the canonical layouts are those of CuTe's `mma_sm90_desc.hpp`), and the part of a product
//! that one warp computes. The executors of PTX and of SASS share it.

use gpu_arithmetic::Lanes;
use gpu_arithmetic::mma::{Element, Mma, SparseOperands};
use std::ops::Range;

/// Bytes of a step along K for every type of a `wgmma`.
const STEP_BYTES: u32 = 32;

/// Bytes that keep their order under every swizzle.
pub const CHUNK_BYTES: u32 = 16;

/// Bytes of the rows in which swizzles are counted.
const ROW_BYTES: u32 = 128;

/// Shared addresses of `wgmma` have 18 bits.
const ADDRESS_MASK: u32 = (1 << 18) - 1;

/// Words of a step along K.
const STEP_WORDS: usize = STEP_BYTES as usize / 4;

/// Row of A, or column of B: one step along K.
pub type Step = [u32; STEP_WORDS];

/// A decoded matrix descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptor {
    start: u32,
    /// Byte offsets.
    leading: u32,
    stride: u32,
    base_offset: u32,
    swizzle: Swizzle,
}

/// Permutation of the chunks of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Swizzle {
    None,
    /// 16-byte chunks of rows of 32, 64 or 128 bytes.
    Rows(u32),
    /// Atoms of 32 or 64 bytes of rows of 128.
    Atoms(u32),
}

impl Swizzle {
    /// Returns the shared address of a chunk, before the permutation at `at`.
    pub(crate) fn apply(self, at: u32, base_offset: u32) -> u32 {
        let (bytes, atom) = match self {
            Swizzle::None => return at,
            Swizzle::Rows(bytes) => (bytes, CHUNK_BYTES),
            Swizzle::Atoms(atom) => (ROW_BYTES, atom),
        };
        let row = (at / ROW_BYTES).wrapping_sub(base_offset);
        at ^ ((row & (bytes / atom - 1)) * atom)
    }
}

impl Descriptor {
    /// Decodes the 64 bits of a descriptor.
    #[must_use]
    pub fn decode(bits: u64) -> Self {
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

    /// Decodes the 64 bits of a descriptor of `tcgen05`, whose layouts are those of `wgmma`. `transposed` has
    /// the bytes of an element where the matrix is stored along M or N.
    ///
    /// # Errors
    /// A field that is not valid.
    pub fn decode_tensor_core(bits: u64, transposed: Option<u32>) -> Result<Self, String> {
        if bits >> 46 & 7 != 1 {
            return Err("has no 0b001 in bits 46 to 48".to_owned());
        }
        let swizzle = match (bits >> 61, transposed) {
            // Elements of 32 bits along M or N have this one, and others do not (PTX ISA, 9.7.16.10.3).
            (1, Some(4)) => Swizzle::Atoms(32),
            (mode, Some(4)) => {
                return Err(format!(
                    "has the swizzle mode {mode}; elements of 32 bits along M or N have mode 1 only"
                ));
            }
            (0, _) => Swizzle::None,
            (2, _) => Swizzle::Rows(128),
            (4, _) => Swizzle::Rows(64),
            (6, _) => Swizzle::Rows(32),
            (mode, _) => {
                return Err(format!(
                    "has the swizzle mode {mode}, which is not supported"
                ));
            }
        };
        Ok(Self {
            swizzle,
            ..Self::decode(bits)
        })
    }

    /// Returns the address of chunk `chunk` (0 or 1) of a row of A or column of B, stored along K.
    #[must_use]
    pub fn along_k(&self, row: u32, chunk: u32) -> u32 {
        let (group, within) = (row / 8, row % 8);
        let offset = match self.swizzle {
            Swizzle::None => within * CHUNK_BYTES + group * self.stride + chunk * self.leading,
            Swizzle::Rows(bytes) => within * bytes + group * self.stride + chunk * CHUNK_BYTES,
            Swizzle::Atoms(_) => within * ROW_BYTES + group * self.stride + chunk * CHUNK_BYTES,
        };
        self.swizzled_address(offset)
    }

    /// Returns the address of the chunk of rows with a number at the column `k`, stored along M or N: of
    /// eight rows of 16-bit elements.
    fn along_rows(&self, eight: u32, k: u32) -> u32 {
        let (bytes, each) = match self.swizzle {
            Swizzle::None => (CHUNK_BYTES, 8),
            Swizzle::Rows(bytes) => (bytes, 8),
            Swizzle::Atoms(atom) => (ROW_BYTES, ROW_BYTES / atom),
        };
        let (group, within, wide) = (k / each, k % each, bytes / CHUNK_BYTES);
        // Without a swizzle the strides have each other's place.
        let [groups, wides] = match self.swizzle {
            Swizzle::None => [self.leading, self.stride],
            _ => [self.stride, self.leading],
        };
        let offset =
            eight % wide * CHUNK_BYTES + eight / wide * wides + within * bytes + group * groups;
        self.swizzled_address(offset)
    }

    /// Reads the step along K with a number, of some rows of A or columns of B. `transposed` has the bytes of an
    /// element where they are stored along M or N. `read` returns the 16 bytes at an address of shared memory.
    ///
    /// # Errors
    /// The first error of `read`.
    pub fn steps<E>(
        &self,
        rows: Range<u32>,
        transposed: Option<u32>,
        number: u32,
        mut read: impl FnMut(u32) -> Result<[u32; 4], E>,
    ) -> Result<Vec<Step>, E> {
        let first = rows.start;
        let mut steps = vec![[0; STEP_WORDS]; rows.len()];
        let Some(bytes) = transposed else {
            for (row, step) in rows.zip(&mut steps) {
                for (chunk, words) in (2 * number..).zip(step.chunks_exact_mut(4)) {
                    words.copy_from_slice(&read(self.along_k(row, chunk))?);
                }
            }
            return Ok(steps);
        };
        let (wide, each) = (CHUNK_BYTES / bytes, 4 / bytes);
        let mask = u32::MAX >> (32 - 8 * bytes);
        for eight in first / wide..rows.end.div_ceil(wide) {
            for k in 0..STEP_BYTES / bytes {
                let words = read(self.along_rows(eight, number * (STEP_BYTES / bytes) + k))?;
                let elements = words
                    .iter()
                    .flat_map(|word| (0..each).map(move |n| word >> (8 * bytes * n) & mask));
                for (row, element) in (eight * wide..).zip(elements) {
                    // The first and the last chunk may have rows of others.
                    let step = row
                        .checked_sub(first)
                        .and_then(|n| steps.get_mut(n as usize));
                    if let Some(word) = step.and_then(|step| step.get_mut((k / each) as usize)) {
                        *word |= element << (k % each * 8 * bytes);
                    }
                }
            }
        }
        Ok(steps)
    }

    fn swizzled_address(&self, offset: u32) -> u32 {
        let at = self.start.wrapping_add(offset) & ADDRESS_MASK;
        self.swizzle.apply(at, self.base_offset)
    }
}

/// Adds the product of 16 rows of A, in the registers of one warp, and columns of B to accumulators.
/// `negate` inverts the signs of A and of B. `form` is that of 16 rows and 8 columns; `d` has the
/// registers of all columns.
pub fn multiply(form: Mma, a: &[Lanes], columns: &[Step], negate: [bool; 2], d: &mut [Lanes]) {
    let each = 4 / form.d.per_register();
    let a = with_sign(a.to_vec(), form.a, negate[0]);
    let left: Vec<&Lanes> = a.iter().collect();
    for (eight, registers) in columns.chunks_exact(8).zip(d.chunks_exact_mut(each)) {
        let right = with_sign(fragment_b(eight).to_vec(), form.b, negate[1]);
        let right: Vec<&Lanes> = right.iter().collect();
        let before = registers.to_vec();
        let before: Vec<&Lanes> = before.iter().collect();
        match form.a {
            Element::E4m3 | Element::E5m2 => form.run_narrow(&left, &right, &before, registers),
            _ => form.run(&left, &right, &before, registers),
        }
    }
}

/// Does the same with a sparse A, whose zeros `form` counts, and two steps of the columns of B.
pub fn multiply_sparse(
    form: Mma,
    a: &[Lanes],
    columns: [&[Step]; 2],
    places: Places<'_>,
    negate: [bool; 2],
    d: &mut [Lanes],
) {
    let each = 4 / form.d.per_register();
    let a = with_sign(a.to_vec(), form.a, negate[0]);
    let left: Vec<&Lanes> = a.iter().collect();
    let [first, second] = columns.map(|columns| columns.chunks_exact(8));
    for ((first, second), registers) in first.zip(second).zip(d.chunks_exact_mut(each)) {
        let right = [fragment_b(first), fragment_b(second)].concat();
        let right = with_sign(right, form.b, negate[1]);
        let right: Vec<&Lanes> = right.iter().collect();
        let before = registers.to_vec();
        let before: Vec<&Lanes> = before.iter().collect();
        let operands = SparseOperands {
            a: &left,
            b: &right,
            c: &before,
            metadata: places.metadata,
            selector: places.selector,
        };
        form.run_sparse(operands, registers);
    }
}

/// Places of the nonzero elements of a sparse A, as of `mma.sp`.
#[derive(Debug, Clone, Copy)]
pub struct Places<'a> {
    /// The metadata of a warp.
    pub metadata: &'a Lanes,
    /// The lanes of four that have them.
    pub selector: u32,
}

/// Arranges 16 rows as the registers of A.
#[must_use]
#[expect(
    clippy::indexing_slicing,
    reason = "the caller passes 16 rows; lanes and registers are numbered below"
)]
pub fn fragment_a(rows: &[Step]) -> [Lanes; 4] {
    // Registers 0 and 2 hold rows 0 to 7, registers 2 and 3 the second half of a step.
    std::array::from_fn(|register| {
        std::array::from_fn(|lane| {
            let row = lane / 4 + register % 2 * 8;
            rows[row][register / 2 * 4 + lane % 4]
        })
    })
}

/// Arranges 8 columns as the registers of B.
#[expect(
    clippy::indexing_slicing,
    reason = "the caller passes 8 columns; lanes and registers are numbered below"
)]
fn fragment_b(columns: &[Step]) -> [Lanes; 2] {
    std::array::from_fn(|register| {
        std::array::from_fn(|lane| columns[lane / 4][register * 4 + lane % 4])
    })
}

/// Inverts the signs of all elements of some registers.
fn with_sign(rows: Vec<Lanes>, element: Element, negated: bool) -> Vec<Lanes> {
    let signs = match element {
        _ if !negated => return rows,
        Element::F16 | Element::Bf16 => 0x8000_8000,
        Element::E4m3 | Element::E5m2 => 0x8080_8080,
        _ => 0x8000_0000,
    };
    let inverted = |row: Lanes| row.map(|word| word ^ signs);
    rows.into_iter().map(inverted).collect()
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
    fn atoms_of_32_bytes_have_patterns_of_four_rows() {
        let bits = 1024 >> 4 | (4096 >> 4) << 16 | (512 >> 4) << 32 | 1 << 46 | 1 << 61;
        let tile = Descriptor::decode_tensor_core(bits, Some(4)).unwrap();
        // The first row of the second pattern, and the first chunk behind 128 bytes along M.
        assert_eq!(tile.along_rows(0, 4), 1024 + 512);
        assert_eq!(tile.along_rows(8, 0), 1024 + 4096);
        // PTX ISA, 5.5.7: rows of chunks by their numbers.
        let rows = [
            [0, 1, 2, 3, 4, 5, 6, 7],
            [2, 3, 0, 1, 6, 7, 4, 5],
            [4, 5, 6, 7, 0, 1, 2, 3],
            [6, 7, 4, 5, 2, 3, 0, 1],
        ];
        for (k, row) in (0..).zip(rows) {
            for (eight, place) in (0..).zip(row) {
                let at = 1024 + k * ROW_BYTES + place * CHUNK_BYTES;
                assert_eq!(tile.along_rows(eight, k), at);
            }
        }
        for (mode, transposed) in [(1, None), (1, Some(2)), (2, Some(4)), (3, None), (5, None)] {
            let bits = 1 << 46 | mode << 61;
            assert!(Descriptor::decode_tensor_core(bits, transposed).is_err());
        }
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
