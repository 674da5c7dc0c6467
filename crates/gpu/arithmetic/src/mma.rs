//! `mma.sync` of a whole warp.
//!
//! **Accumulation model.** The products are exact. Their sum over k is computed in single precision
//! with round-to-nearest in the order of k; then the accumulator is added with one more rounding.
//! An f16 accumulator is rounded once more. Tensor cores align the products and the accumulator of
//! a k-block to the largest exponent and truncate, with a width that differs between generations.
//! The ISA guarantees only "at least single precision" for f32 accumulators. The error of this
//! model is at most k·2^-24 of the sum of the magnitudes, within that of hardware. Sums of 8- and
//! 4-bit integer products stay below 2^24, so the same loop is exact for them. Double-precision
//! forms are chains of fused multiply-adds in the order of k.

mod bits;
mod narrow;
mod scaled;
mod sparse;

pub use bits::BitMma;
pub use scaled::{BlockScales, ScaleOperand};
pub use sparse::SparseOperands;

use super::host::vectorised;
use super::layout::{a_element, accumulator_element, b_element};
use super::{Lanes, Round, double, half};

/// Type of a multiplicand's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// IEEE half.
    F16,
    /// bfloat16.
    Bf16,
    /// TensorFloat-32; the low 13 bits of a register are ignored.
    Tf32,
    /// FP8 with four exponent bits.
    E4m3,
    /// FP8 with five exponent bits.
    E5m2,
    /// Signed byte.
    S8,
    /// Unsigned byte.
    U8,
    /// Signed nibble.
    S4,
    /// Unsigned nibble.
    U4,
    /// FP6 with three exponent bits, in the low six bits of a byte.
    E3m2,
    /// FP6 with two exponent bits, in the low six bits of a byte.
    E2m3,
    /// FP4 in bits 2 to 5 of a byte.
    E2m1,
    /// FP4, two in a byte.
    PackedE2m1,
}

impl Element {
    /// Returns the number of elements in a 32-bit register.
    pub const fn per_register(self) -> usize {
        match self {
            Element::Tf32 => 1,
            Element::F16 | Element::Bf16 => 2,
            Element::E4m3
            | Element::E5m2
            | Element::E3m2
            | Element::E2m3
            | Element::E2m1
            | Element::S8
            | Element::U8 => 4,
            Element::S4 | Element::U4 | Element::PackedE2m1 => 8,
        }
    }

    /// Reports whether this is a float in a byte, any two of which `.kind::f8f6f4` multiplies.
    pub const fn is_byte_float(self) -> bool {
        use Element::{E2m1, E2m3, E3m2, E4m3, E5m2};
        matches!(self, E4m3 | E5m2 | E3m2 | E2m3 | E2m1)
    }

    const fn is_integer(self) -> bool {
        matches!(self, Element::S8 | Element::U8 | Element::S4 | Element::U4)
    }
}

/// Type of the accumulators C and D.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Accumulator {
    /// Two halves in a register.
    F16,
    /// A single.
    F32,
    /// A signed integer, for integer multiplicands.
    S32,
}

impl Accumulator {
    /// Returns the number of elements in a 32-bit register.
    pub const fn per_register(self) -> usize {
        if matches!(self, Accumulator::F16) {
            2
        } else {
            1
        }
    }
}

/// Numbers of 32-bit registers of the four operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    /// Registers of A.
    pub a: usize,
    /// Registers of B.
    pub b: usize,
    /// Registers of C.
    pub c: usize,
    /// Registers of D.
    pub d: usize,
}

/// One form of `mma.sync.aligned.….row.col` with 32-bit registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mma {
    /// Rows of A and D: 8 or 16.
    pub m: usize,
    /// Columns of B and D: 8.
    pub n: usize,
    /// Columns of A and rows of B.
    pub k: usize,
    /// Elements of A.
    pub a: Element,
    /// Elements of B.
    pub b: Element,
    /// Elements of C.
    pub c: Accumulator,
    /// Elements of D.
    pub d: Accumulator,
    /// `.satfinite`: clamp an integer result instead of wrapping.
    pub saturate: bool,
}

impl Mma {
    /// Returns the operands' register counts; `None` where PTX has no such form.
    pub fn registers(&self) -> Option<Registers> {
        use Accumulator::{F16, F32, S32};
        use Element as E;
        let accumulators_fit = match (self.a, self.b) {
            (a, b) if a.is_integer() || b.is_integer() => {
                let same_width = a.per_register() == b.per_register();
                a.is_integer() && b.is_integer() && same_width && self.c == S32 && self.d == S32
            }
            (E::F16, E::F16) => matches!((self.c, self.d), (F16, F16) | (F32, F32)),
            (a, b) if a.is_byte_float() && b.is_byte_float() => {
                matches!((self.c, self.d), (F16, F16) | (F32, F32))
            }
            (E::Bf16, E::Bf16) | (E::Tf32, E::Tf32) | (E::PackedE2m1, E::PackedE2m1) => {
                self.c == F32 && self.d == F32
            }
            _ => false,
        };
        let per = self.a.per_register();
        let shape_fits = match per {
            1 => self.m == 16 && matches!(self.k, 4 | 8),
            2 => self.m == 16 && matches!(self.k, 8 | 16),
            4 if self.a.is_integer() => matches!((self.m, self.k), (16, 16 | 32) | (8, 16)),
            4 => self.m == 16 && matches!(self.k, 16 | 32),
            _ if self.a == E::PackedE2m1 => (self.m, self.k) == (16, 64),
            _ => matches!((self.m, self.k), (16, 32 | 64) | (8, 32)),
        };
        if !accumulators_fit || !shape_fits || self.n != 8 {
            return None;
        }
        let of = |acc: Accumulator| self.m * self.n / 32 / acc.per_register();
        Some(Registers {
            a: self.m * self.k / 32 / per,
            b: self.k * self.n / 32 / per,
            c: of(self.c),
            d: of(self.d),
        })
    }

    /// Computes D = A·B + C. The slices must have the register counts of [`Mma::registers`].
    pub fn run(&self, a: &[&Lanes], b: &[&Lanes], c: &[&Lanes], d: &mut [Lanes]) {
        vectorised(
            #[inline(always)]
            || self.run_here(a, b, c, d),
        );
    }

    /// Runs [`Mma::run`] with the vector instructions of the caller's compilation.
    #[inline(always)]
    pub fn run_here(&self, a: &[&Lanes], b: &[&Lanes], c: &[&Lanes], d: &mut [Lanes]) {
        let mut dot = [[0.0; 64]; 2];
        match (self.a.per_register(), self.k) {
            (1, 4) => self.products::<1, 4, 4, 1>(a, b, &mut dot),
            (1, _) => self.products::<1, 4, 8, 2>(a, b, &mut dot),
            (2, 8) => self.products::<2, 8, 8, 2>(a, b, &mut dot),
            (2, _) => self.products::<2, 8, 16, 4>(a, b, &mut dot),
            (4, 16) => self.products::<4, 16, 16, 4>(a, b, &mut dot),
            (4, _) => self.products::<4, 16, 32, 8>(a, b, &mut dot),
            (_, 32) => self.products::<8, 32, 32, 8>(a, b, &mut dot),
            _ => self.products::<8, 32, 64, 16>(a, b, &mut dot),
        }
        self.accumulate(&dot, c, d);
    }

    /// Computes the products of all blocks of 8 rows; `E` elements a register, `W` = 4·E columns a
    /// block, `P` = K / 4 planes.
    #[inline(always)]
    fn products<const E: usize, const W: usize, const K: usize, const P: usize>(
        &self,
        a: &[&Lanes],
        b: &[&Lanes],
        dot: &mut [[f32; 64]; 2],
    ) {
        let blocks = self.m / 8;
        let right = elements::<E, W, K>(self.b, b.iter().copied());
        let mut left = [[0.0; 32]; P];
        for (block, sums) in dot.iter_mut().enumerate().take(blocks) {
            let registers = a.iter().skip(block).step_by(blocks);
            for (register, planes) in registers.zip(left.chunks_exact_mut(E)) {
                unpack(self.a, register, planes);
            }
            multiply::<E, W, K, P>(&left, &right, sums);
        }
    }

    #[inline(always)]
    fn accumulate(&self, dot: &[[f32; 64]; 2], c: &[&Lanes], d: &mut [Lanes]) {
        match (self.c, self.d) {
            (Accumulator::F32, Accumulator::F32) => accumulate_f32(dot, c, d),
            (Accumulator::S32, _) => accumulate_s32(dot, c, d, self.saturate),
            _ => accumulate_mixed(dot, self.c, self.d, c, d),
        }
    }
}

/// Computes the products of 8 rows, row-major, four rows at a time: the accumulator vectors hide
/// the latency of the additions. A plane holds one element of a register in all lanes: four columns
/// of 8 rows.
#[inline(always)]
fn multiply<const E: usize, const W: usize, const K: usize, const P: usize>(
    left: &[[f32; 32]; P],
    right: &[[f32; 8]; K],
    sums: &mut [f32; 64],
) {
    for (half, sums) in sums.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let mut acc = [[0.0_f32; 8]; 4];
        for (k, columns) in right.iter().enumerate() {
            let plane = &left[k / W * E + k % E];
            for (row, sum) in acc.iter_mut().enumerate() {
                let x = plane[half * 16 + row * 4 + k % W / E];
                for (s, y) in sum.iter_mut().zip(columns) {
                    *s += x * y;
                }
            }
        }
        sums.copy_from_slice(acc.as_flattened());
    }
}

/// Unpacks eight columns of B, or rows of A, by their k from registers of `E` elements, `W` = 4·E of
/// a column.
#[inline(always)]
fn elements<'a, const E: usize, const W: usize, const K: usize>(
    element: Element,
    registers: impl Iterator<Item = &'a Lanes>,
) -> [[f32; 8]; K] {
    let mut values = [[0.0; 8]; K];
    let mut planes = [[0.0; 32]; E];
    for (register, values) in registers.zip(values.chunks_exact_mut(W)) {
        unpack(element, register, &mut planes);
        for (k, row) in values.iter_mut().enumerate() {
            let plane = &planes[k % E];
            *row = std::array::from_fn(|line| plane[line * 4 + k / E]);
        }
    }
    values
}

/// Unpacks the elements of a register into one plane for each position.
#[inline(always)]
fn unpack(element: Element, register: &Lanes, planes: &mut [[f32; 32]]) {
    match element {
        Element::Tf32 => fill(register, planes, |w, _| f32::from_bits(w & 0xffff_e000)),
        Element::F16 => fill(register, planes, |w, i| half::f16_to_f32_raw(w >> (16 * i))),
        Element::Bf16 => fill(register, planes, |w, i| {
            f32::from_bits(if i == 0 { w << 16 } else { w & 0xffff_0000 })
        }),
        Element::E4m3 => fill(register, planes, |w, i| e4m3(w >> (8 * i))),
        // The format is the upper byte of a half.
        Element::E5m2 => {
            fill(register, planes, |w, i| {
                half::f16_to_f32_raw((w >> (8 * i) & 0xff) << 8)
            });
        }
        Element::S8 => fill(register, planes, |w, i| {
            ((w << (24 - 8 * i)) as i32 >> 24) as f32
        }),
        Element::U8 => fill(register, planes, |w, i| {
            ((w >> (8 * i)) & 255) as i32 as f32
        }),
        Element::S4 => fill(register, planes, |w, i| {
            ((w << (28 - 4 * i)) as i32 >> 28) as f32
        }),
        Element::U4 => fill(register, planes, |w, i| ((w >> (4 * i)) & 15) as i32 as f32),
        Element::E3m2 => fill(register, planes, |w, i| tiny::<3, 2>(w >> (8 * i))),
        Element::E2m3 => fill(register, planes, |w, i| tiny::<2, 3>(w >> (8 * i))),
        Element::E2m1 => fill(register, planes, |w, i| tiny::<2, 1>(w >> (8 * i + 2))),
        Element::PackedE2m1 => fill(register, planes, |w, i| tiny::<2, 1>(w >> (4 * i))),
    }
}

/// Fills one plane at a time so that the lanes vectorise.
#[inline(always)]
fn fill(register: &Lanes, planes: &mut [[f32; 32]], value: impl Fn(u32, usize) -> f32) {
    for (i, plane) in planes.iter_mut().enumerate() {
        for (slot, word) in plane.iter_mut().zip(register) {
            *slot = value(*word, i);
        }
    }
}

/// Converts the low byte; the exponent as a single is 120 too small, and the product exact.
#[inline(always)]
fn e4m3(bits: u32) -> f32 {
    let magnitude = bits & 0x7f;
    let scaled = f32::from_bits(magnitude << 20) * f32::from_bits(0x7b80_0000);
    let special = if magnitude == 0x7f { 0x7fc0_0000 } else { 0 };
    f32::from_bits(scaled.to_bits() | special | (bits & 0x80) << 24)
}

/// Converts the low bits of a format with `E` exponent bits and `F` bits of fraction, which has neither
/// infinity nor NaN: as a single its exponent is 128 - 2^(E - 1) too small, and the product exact.
#[inline(always)]
fn tiny<const E: u32, const F: u32>(bits: u32) -> f32 {
    let magnitude = bits & ((1 << (E + F)) - 1);
    let power = f32::from_bits((255 - (1 << (E - 1))) << 23);
    let value = f32::from_bits(magnitude << (23 - F)) * power;
    f32::from_bits(value.to_bits() | (bits >> (E + F) & 1) << 31)
}

#[inline(always)]
fn accumulate_f32(dot: &[[f32; 64]; 2], c: &[&Lanes], d: &mut [Lanes]) {
    let pairs = c.as_chunks::<2>().0.iter().zip(d.as_chunks_mut::<2>().0);
    for ((c, d), dot) in pairs.zip(dot) {
        for (lane, pair) in dot.as_chunks::<2>().0.iter().enumerate() {
            for sub in 0..2 {
                let sum = f32::from_bits(c[sub][lane]) + pair[sub];
                d[sub][lane] = super::single::canonical(sum).to_bits();
            }
        }
    }
}

#[inline(always)]
fn accumulate_s32(dot: &[[f32; 64]; 2], c: &[&Lanes], d: &mut [Lanes], saturate: bool) {
    let pairs = c.as_chunks::<2>().0.iter().zip(d.as_chunks_mut::<2>().0);
    for ((c, d), dot) in pairs.zip(dot) {
        for (lane, pair) in dot.as_chunks::<2>().0.iter().enumerate() {
            for sub in 0..2 {
                let (c, sum) = (c[sub][lane] as i32, pair[sub] as i32);
                let sum = if saturate {
                    c.saturating_add(sum)
                } else {
                    c.wrapping_add(sum)
                };
                d[sub][lane] = sum as u32;
            }
        }
    }
}

/// Accumulates where C or D is f16 (`mma` has both f16, `wmma` any mixture).
#[inline(always)]
fn accumulate_mixed(
    dot: &[[f32; 64]; 2],
    c_type: Accumulator,
    d_type: Accumulator,
    c: &[&Lanes],
    d: &mut [Lanes],
) {
    let (c_step, d_step) = (2 / c_type.per_register(), 2 / d_type.per_register());
    let blocks = c.chunks_exact(c_step).zip(d.chunks_exact_mut(d_step));
    for ((c, d), dot) in blocks.zip(dot) {
        let mut sums = *dot;
        for (sum, before) in sums.iter_mut().zip(load(c_type, c)) {
            *sum += before;
        }
        store(d_type, &sums, d);
    }
}

/// Reads the accumulators of 8 rows, row-major.
#[inline(always)]
fn load(accumulator: Accumulator, registers: &[&Lanes]) -> [f32; 64] {
    let mut values = [0.0; 64];
    for (lane, pair) in values.as_chunks_mut::<2>().0.iter_mut().enumerate() {
        for (sub, value) in pair.iter_mut().enumerate() {
            *value = match accumulator {
                Accumulator::F16 => half::f16_to_f32_raw(registers[0][lane] >> (16 * sub)),
                _ => f32::from_bits(registers[sub][lane]),
            };
        }
    }
    values
}

/// Writes the accumulators of 8 rows, row-major.
#[inline(always)]
fn store(accumulator: Accumulator, values: &[f32; 64], registers: &mut [Lanes]) {
    if accumulator == Accumulator::F16 {
        let codes = values.map(half::f32_to_f16_raw);
        for (lane, code) in codes.as_chunks::<2>().0.iter().enumerate() {
            registers[0][lane] = code[0] | code[1] << 16;
        }
        return;
    }
    for (lane, pair) in values.as_chunks::<2>().0.iter().enumerate() {
        for (sub, value) in pair.iter().enumerate() {
            registers[sub][lane] = super::single::canonical(*value).to_bits();
        }
    }
}

/// `mma.sync.…f64`: m8n8k4 and m16n8k{4,8,16}. Each element of `a`, `b`, `c` and `d` is one 64-bit
/// register of all lanes.
pub fn mma_f64(
    m: usize,
    k: usize,
    a: &[[u64; 32]],
    b: &[[u64; 32]],
    c: &[[u64; 32]],
    d: &mut [[u64; 32]],
    round: Round,
) {
    let mut left = [[0.0; 16]; 16];
    let mut right = [[0.0; 8]; 16];
    for lane in 0..32 {
        for (register, words) in a.iter().enumerate() {
            let (row, column) = a_element(m, 1, lane, register, 0);
            left[row][column] = f64::from_bits(words[lane]);
        }
        for (register, words) in b.iter().enumerate() {
            let (row, column) = b_element(1, lane, register, 0);
            right[row][column] = f64::from_bits(words[lane]);
        }
    }
    for (register, (c, d)) in c.iter().zip(d).enumerate() {
        for lane in 0..32 {
            let (row, column) = accumulator_element(1, lane, register, 0);
            let mut sum = f64::from_bits(c[lane]);
            for (x, y) in left[row].iter().zip(&right).take(k) {
                sum = double::fma(*x, y[column], sum, round);
            }
            d[lane] = sum.to_bits();
        }
    }
}
