//! Products of matrices of single bits: the number of bits of `xor` or `and` of each row and column.
//!
//! **Source**: PTX ISA, "Multiply-and-accumulate instruction: `mma`", `.b1`; a register has 32 elements of a row.

use super::{Lanes, Registers};
use crate::layout::{a_element, accumulator_element, b_element};

/// Elements in a register.
const PER_REGISTER: usize = 32;
/// Registers along K of a row, at most.
const MOST_WORDS: usize = 8;

/// One form of `mma.sync.….s32.b1.b1.s32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BitMma {
    /// Rows of A and D: 8 or 16.
    pub m: usize,
    /// Columns of A and rows of B: 128 or 256.
    pub k: usize,
    /// `.and.popc`; otherwise `.xor.popc`.
    pub and: bool,
}

impl BitMma {
    /// Returns the operands' register counts; `None` where PTX has no such form.
    pub fn registers(self) -> Option<Registers> {
        let fits = matches!((self.m, self.k), (8 | 16, 128) | (16, 256));
        fits.then_some(Registers {
            a: self.m * self.k / 32 / PER_REGISTER,
            b: self.k * 8 / 32 / PER_REGISTER,
            c: self.m / 4,
            d: self.m / 4,
        })
    }

    /// Computes D = A·B + C. The slices must have the register counts of [`BitMma::registers`].
    pub fn run(self, a: &[&Lanes], b: &[&Lanes], c: &[&Lanes], d: &mut [Lanes]) {
        let (mut left, mut right) = ([[0; MOST_WORDS]; 16], [[0; MOST_WORDS]; 8]);
        for lane in 0..32 {
            for (register, words) in a.iter().enumerate() {
                let (row, k) = a_element(self.m, PER_REGISTER, lane, register, 0);
                left[row][k / PER_REGISTER] = words[lane];
            }
            for (register, words) in b.iter().enumerate() {
                let (k, column) = b_element(PER_REGISTER, lane, register, 0);
                right[column][k / PER_REGISTER] = words[lane];
            }
        }
        for (register, (c, d)) in c.iter().zip(d).enumerate() {
            for lane in 0..32 {
                let (row, column) = accumulator_element(1, lane, register, 0);
                let pairs = left[row].iter().zip(&right[column]);
                let bits = pairs.map(|(x, y)| if self.and { x & y } else { x ^ y });
                let count: u32 = bits.map(u32::count_ones).sum();
                d[lane] = c[lane].wrapping_add(count);
            }
        }
    }
}
