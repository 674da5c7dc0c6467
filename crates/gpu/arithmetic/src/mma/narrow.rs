//! Products of 8-bit floats as the tensor cores of Hopper compute them.
//!
//! **Source**: measured on an H200 (docs/evidence/hardware.md); the model reproduces all results of
//! `wgmma` on e4m3 and e5m2 that were recorded there bit by bit. The products of a step along K and
//! the accumulator are aligned to the largest exponent, cut off 13 bits below it, and summed
//! exactly. The sum is cut off to 13 bits of fraction, or rounded to the nearest half. The exponent
//! of a product is the sum of its factors' exponents, before its significand is normalised.

use super::{Accumulator, Element, Lanes, Mma, elements, load, store};
use crate::host::vectorised;

/// Bits of fraction that alignment and the result keep.
const FRACTION: u32 = 13;
/// Bits of a single's fraction beyond those.
const CUT: u32 = (1 << (23 - FRACTION)) - 1;
/// Exponent field of a single.
const EXPONENT: u32 = 0x7f80_0000;
/// Columns of A and rows of B.
const K: usize = 32;

/// Powers between which 2^13 times their inverses are normal numbers.
const SMALLEST: f32 = f32::from_bits(14 << 23);
const LARGEST: f32 = f32::from_bits(240 << 23);

/// Elements of eight rows of A and eight columns of B, by their k, with the powers of two of their
/// exponents; the power of zero is zero.
struct Factors {
    values: [[f32; 8]; K],
    powers: [[f32; 8]; K],
}

impl Factors {
    fn new(element: Element, values: [[f32; 8]; K]) -> Self {
        // Smallest exponent of a normal number.
        let least = match element {
            Element::E5m2 => f32::from_bits((127 - 14) << 23),
            _ => f32::from_bits((127 - 6) << 23),
        };
        let power = |value: f32| match value == 0.0 {
            true => 0.0,
            false => f32::from_bits(value.to_bits() & EXPONENT).max(least),
        };
        Self {
            values,
            powers: values.map(|row| row.map(power)),
        }
    }
}

impl Mma {
    /// Computes D = A·B + C of m16n8k32 on 8-bit floats in the precision of Hopper's tensor cores,
    /// C and D of the same type. The slices must have the register counts of [`Mma::registers`].
    pub fn run_narrow(&self, a: &[&Lanes], b: &[&Lanes], c: &[&Lanes], d: &mut [Lanes]) {
        vectorised(
            #[inline(always)]
            || self.run_narrow_here(a, b, c, d),
        );
    }

    #[inline(always)]
    fn run_narrow_here(&self, a: &[&Lanes], b: &[&Lanes], c: &[&Lanes], d: &mut [Lanes]) {
        let right = Factors::new(self.b, elements::<4, 16, K>(self.b, b.iter().copied()));
        let each = 2 / self.d.per_register();
        let blocks = c.chunks_exact(each).zip(d.chunks_exact_mut(each));
        for (block, (c, d)) in blocks.enumerate() {
            let left = a.iter().skip(block).step_by(2).copied();
            let left = Factors::new(self.a, elements::<4, 16, K>(self.a, left));
            let mut sums = load(self.d, c);
            for (row, sums) in sums.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                self.add_row(&left, row, &right, sums);
            }
            store(self.d, &sums, d);
        }
    }

    /// Adds the products of one row of A to its eight accumulators.
    #[inline(always)]
    fn add_row(&self, left: &Factors, row: usize, right: &Factors, sums: &mut [f32; 8]) {
        let mut largest = [0.0_f32; 8];
        let mut plain = *sums;
        for (k, (values, powers)) in right.values.iter().zip(&right.powers).enumerate() {
            let (value, power) = (left.values[k][row], left.powers[k][row]);
            for column in 0..8 {
                largest[column] = largest[column].max(power * powers[column]);
                plain[column] += value * values[column];
            }
        }
        // 2^13 over the largest power, and its inverse.
        let (mut up, mut down) = ([0.0_f32; 8], [0.0_f32; 8]);
        let mut total = [0_i32; 8];
        for column in 0..8 {
            let own = f32::from_bits(sums[column].to_bits() & EXPONENT);
            let most = largest[column].max(own).clamp(SMALLEST, LARGEST).to_bits();
            up[column] = f32::from_bits(((254 + FRACTION) << 23) - most);
            down[column] = f32::from_bits(most - (FRACTION << 23));
            total[column] = (sums[column] * up[column]) as i32;
        }
        for (k, values) in right.values.iter().enumerate() {
            let value = left.values[k][row];
            for column in 0..8 {
                // Infinities do not fit; their sums are not used.
                let product = (value * values[column] * up[column]) as i32;
                total[column] = total[column].wrapping_add(product);
            }
        }
        // A half is rounded once, to the nearest, from the exact sum.
        let kept = match self.d {
            Accumulator::F16 => u32::MAX,
            _ => !CUT,
        };
        for column in 0..8 {
            let sum = f32::from_bits((total[column] as f32).to_bits() & kept) * down[column];
            // Infinities and NaNs, and numbers beyond the range of the scales, as plain arithmetic
            // has them.
            let in_range = plain[column].is_finite() && sums[column].abs() < LARGEST;
            sums[column] = if in_range { sum } else { plain[column] };
        }
    }
}
