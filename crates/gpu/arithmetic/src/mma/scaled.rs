//! Products whose operands have a scale for each block along K (`.block_scale`).
//!
//! **Source**: PTX ISA, "Block scaling for `mma.sync`". The exact products of a block are summed in single
//! precision in the order of k, multiplied by both scales, and added to the sum of the blocks before.

use super::{Lanes, Mma, SparseOperands, accumulate_f32, unpack};
use crate::layout::{a_element, b_element};
use crate::small::{self, Small};

/// Largest K, and elements in a register.
const MOST_K: usize = 64;
const MOST_IN_REGISTER: usize = 8;

/// Form of the scales of A and B.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockScales {
    /// Scales of a row of A, or column of B: 1, 2 or 4 (`.scale_vec::1X` and so on).
    pub blocks: usize,
    /// The scales are `ue4m3`; otherwise `ue8m0`, powers of two.
    pub fractions: bool,
}

/// Scales of A or of B, as an instruction names them.
#[derive(Clone, Copy, Debug)]
pub struct ScaleOperand<'a> {
    /// A register of each lane with four scales.
    pub words: &'a Lanes,
    /// The first of them that is used.
    pub byte: u32,
    /// The lanes of each four that have the scales: for A a pair (0, 1), for B one (0 to 3).
    pub thread: u32,
}

impl BlockScales {
    /// Computes D = A·B + C, all of single precision. The slices must have the register counts of
    /// [`Mma::registers`] of `form`.
    pub fn run(
        self,
        form: &Mma,
        [a, b, c]: [&[&Lanes]; 3],
        d: &mut [Lanes],
        scales: [ScaleOperand<'_>; 2],
    ) {
        let (left, right) = along_k::<MOST_K, MOST_K>(form, a, b);
        let depth = form.k / self.blocks;
        let mut dot = [[0.0; 64]; 2];
        for (row, left) in left.iter().enumerate() {
            for (column, right) in right.iter().enumerate() {
                let pairs = left.chunks(depth).zip(right.chunks(depth));
                let sums = pairs.take(self.blocks).enumerate().map(|(block, (x, y))| {
                    let sum = x.iter().zip(y).fold(0.0, |sum, (x, y)| sum + x * y);
                    self.scaled(sum, scales, [row, column], block)
                });
                dot[row / 8][row % 8 * 8 + column] = sums.sum();
            }
        }
        accumulate_f32(&dot, c, d);
    }

    /// Does the same with a sparse A. The blocks divide K with its zeros.
    pub fn run_sparse(
        self,
        form: &Mma,
        operands: SparseOperands<'_>,
        d: &mut [Lanes],
        scales: [ScaleOperand<'_>; 2],
    ) {
        let depth = form.k / self.blocks;
        let mut dot = [[0.0; 64]; 2];
        form.for_each_sparse_row(&operands, |row, column, left, right| {
            let sums = (0..self.blocks).map(|block| {
                let own = left.iter().filter(|(k, _)| k / depth == block);
                let sum = own.fold(0.0, |sum, (k, x)| sum + x * right[*k]);
                self.scaled(sum, scales, [row, column], block)
            });
            dot[row / 8][row % 8 * 8 + column] = sums.sum();
        });
        accumulate_f32(&dot, operands.c, d);
    }

    /// Returns the sum of a block of a row of A and a column of B, times their scales.
    fn scaled(
        self,
        sum: f32,
        [of_a, of_b]: [ScaleOperand<'_>; 2],
        [row, column]: [usize; 2],
        block: usize,
    ) -> f32 {
        // Both lanes of a pair have a row: the first those of the upper half, the second the lower.
        let lane = row % 8 * 4 + of_a.thread as usize % 2 * 2 + row / 8;
        let other = column * 4 + of_b.thread as usize % 4;
        sum * self.value(of_a, lane, block) * self.value(of_b, other, block)
    }

    /// Returns the scale of a block from a lane's register.
    fn value(self, scales: ScaleOperand<'_>, lane: usize, block: usize) -> f32 {
        let byte = (scales.byte as usize + block) % 4;
        let code = scales.words[lane].to_le_bytes()[byte];
        match self.fractions {
            // The highest bit is not part of `ue4m3`, which has no sign.
            true => small::to_f32(Small::E4m3, code & 0x7f),
            false => small::ue8m0_to_f32(code),
        }
    }
}

/// Returns the rows of A and the columns of B; A has `LEFT` columns at most, B `RIGHT` rows.
pub(super) fn along_k<const LEFT: usize, const RIGHT: usize>(
    form: &Mma,
    a: &[&Lanes],
    b: &[&Lanes],
) -> ([[f32; LEFT]; 16], [[f32; RIGHT]; 8]) {
    let (mut left, mut right) = ([[0.0; LEFT]; 16], [[0.0; RIGHT]; 8]);
    let per = form.a.per_register();
    for_each_element(form.a, a, |register, lane, sub, value| {
        let (row, k) = a_element(form.m, per, lane, register, sub);
        left[row][k] = value;
    });
    for_each_element(form.b, b, |register, lane, sub, value| {
        let (k, column) = b_element(per, lane, register, sub);
        right[column][k] = value;
    });
    (left, right)
}

/// Calls `f` with register, lane, position in the register and value of each element.
fn for_each_element(
    element: super::Element,
    registers: &[&Lanes],
    mut f: impl FnMut(usize, usize, usize, f32),
) {
    let mut planes = [[0.0; 32]; MOST_IN_REGISTER];
    for (number, register) in registers.iter().enumerate() {
        let planes = &mut planes[..element.per_register()];
        unpack(element, register, planes);
        for (sub, plane) in planes.iter().enumerate() {
            for (lane, value) in plane.iter().enumerate() {
                f(number, lane, sub, *value);
            }
        }
    }
}
