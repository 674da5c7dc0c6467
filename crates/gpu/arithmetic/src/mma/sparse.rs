//! Products whose A is half zeros by a fixed pattern (`mma.sp`): its registers have the other half, and metadata the
//! places.
//!
//! **Source**: PTX ISA, "Sparse matrix storage" (the pattern) and "Matrix fragments for multiply-accumulate
//! operation with sparse matrix A"; the order of the metadata of a row, and the lanes that have it, as CUTLASS
//! writes and reads them (`uncompress`, `reorder_meta`, the layouts of `SM120_SPARSE_16x8x64_TN`). A row of A has
//! four bits for each chunk, from the lowest on: the places of two nonzero elements of four; of two pairs of eight
//! where elements have four bits; and of the two halves of one of two elements of 32 bits. The products are summed
//! as those of a dense A.

use super::scaled::along_k;
use super::{Lanes, Mma, Registers};

/// Largest K.
const MOST_K: usize = 128;

/// Operands of a product with a sparse A.
#[derive(Clone, Copy, Debug)]
pub struct SparseOperands<'a> {
    /// Registers of the nonzero elements of A.
    pub a: &'a [&'a Lanes],
    /// Registers of B.
    pub b: &'a [&'a Lanes],
    /// Registers of C.
    pub c: &'a [&'a Lanes],
    /// The metadata, of which a product uses those of some lanes.
    pub metadata: &'a Lanes,
    /// Number of the first such lane of four, in units of their number.
    pub selector: u32,
}

impl Mma {
    /// Returns the operands' register counts of a product with a sparse A; `k` counts its zeros, too. `None` where PTX
    /// has no such form.
    pub fn sparse_registers(&self) -> Option<Registers> {
        let units = self.k / (8 * self.a.per_register());
        let least = if self.a.is_byte_float() { 2 } else { 1 };
        let fits = units * 8 * self.a.per_register() == self.k && (least..=2).contains(&units);
        let half = Mma {
            k: self.k / 2,
            ..*self
        };
        let counts = half.registers().filter(|_| fits && self.m == 16)?;
        Some(Registers {
            b: 2 * counts.b,
            ..counts
        })
    }

    /// Computes D = A·B + C with a sparse A. The slices must have the register counts of
    /// [`Mma::sparse_registers`].
    pub fn run_sparse(&self, operands: SparseOperands<'_>, d: &mut [Lanes]) {
        let mut dot = [[0.0; 64]; 2];
        self.for_each_sparse_row(&operands, |row, column, left, right| {
            let products = left.iter().map(|(k, value)| value * right[*k]);
            dot[row / 8][row % 8 * 8 + column] = products.fold(0.0, |sum, product| sum + product);
        });
        self.accumulate(&dot, operands.c, d);
    }

    /// Calls `f` with each row and column, the nonzero elements of that row of A with their places along K, in the order
    /// of k as the sum of a dense product has them, and that column of B.
    pub(super) fn for_each_sparse_row(
        &self,
        operands: &SparseOperands<'_>,
        mut f: impl FnMut(usize, usize, &[(usize, f32)], &[f32; MOST_K]),
    ) {
        let (left, right) = along_k::<{ MOST_K / 2 }, MOST_K>(self, operands.a, operands.b);
        let per = self.a.per_register();
        for (row, left) in left.iter().enumerate() {
            let chunks = self.row_metadata(operands, row);
            let mut places: Vec<(usize, f32)> = left
                .iter()
                .take(self.k / 2)
                .enumerate()
                .map(|(number, value)| (place(per, chunks, number), *value))
                .collect();
            places.sort_by_key(|(k, _)| *k);
            for (column, right) in right.iter().enumerate() {
                f(row, column, &places, right);
            }
        }
    }

    /// Returns the metadata of a row of A.
    fn row_metadata(&self, operands: &SparseOperands<'_>, row: usize) -> u64 {
        let per = self.a.per_register();
        let units = self.k / (8 * per);
        let (group, lower) = (row % 8 * 4, row / 8);
        let selector = operands.selector as usize;
        let word = |lane: usize| u64::from(operands.metadata[group + lane % 4]);
        (0..units).fold(0, |all, unit| {
            all | match per {
                // A lane has 16 bits of each of two rows.
                1 | 2 => (word(selector * units + unit) >> (16 * lower) & 0xffff) << (16 * unit),
                // A lane has one row.
                _ => word(selector * 2 * units + 2 * unit + lower) << (32 * unit),
            }
        })
    }
}

/// Returns the column of the element of A with this number among the nonzero ones of a row.
fn place(per_register: usize, chunks: u64, number: usize) -> usize {
    let chunk = |index: usize| (chunks >> (4 * index)) as usize;
    match per_register {
        1 => 2 * number + (chunk(number) >> 1 & 1),
        8 => {
            let index = chunk(number / 4) >> (number % 4 / 2 * 2) & 3;
            number / 4 * 8 + 2 * index + number % 2
        }
        _ => number / 2 * 4 + (chunk(number / 2) >> (number % 2 * 2) & 3),
    }
}
