//! Element layout of matrix fragments in lanes: `mma.sync`, `ldmatrix`, `stmatrix`, `movmatrix`.
//!
//! The figures of the PTX ISA for all shapes but the legacy `m8n8k4.f16` follow one rule. With
//! lane = 4·g + t and E elements in a register, a register of the multiplicand A is a block of
//! 8 rows by 4·E columns in row-major order: the lane holds row g, columns E·t … E·t+E-1. The
//! blocks go down the rows first. B is laid out as A of its transpose, and an accumulator as A with
//! two elements in a register, which for 32-bit elements are two registers.

use super::Lanes;

/// Row and column of element `sub` of `register` of the multiplicand A with `m` rows.
#[inline]
pub const fn a_element(
    m: usize,
    per_register: usize,
    lane: usize,
    register: usize,
    sub: usize,
) -> (usize, usize) {
    let blocks = m / 8;
    let row = lane / 4 + 8 * (register % blocks);
    let column = per_register * (lane % 4) + sub + 4 * per_register * (register / blocks);
    (row, column)
}

/// Row (along k) and column of element `sub` of `register` of the multiplicand B with 8 columns.
#[inline]
pub const fn b_element(
    per_register: usize,
    lane: usize,
    register: usize,
    sub: usize,
) -> (usize, usize) {
    let (column, row) = a_element(8, per_register, lane, register, sub);
    (row, column)
}

/// Row and column of an element of an accumulator with 8 columns; `per_register` is 2 for f16 and
/// 1 for wider elements.
#[inline]
pub const fn accumulator_element(
    per_register: usize,
    lane: usize,
    register: usize,
    sub: usize,
) -> (usize, usize) {
    let (block, sub) = if per_register == 2 {
        (register, sub)
    } else {
        (register / 2, register % 2)
    };
    (lane / 4 + 8 * block, 2 * (lane % 4) + sub)
}

/// Form of the rows that `ldmatrix` reads and `stmatrix` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatrixRows {
    /// `.m8n8…b16`.
    Halves,
    /// `.m8n8.trans…b16`.
    TransposedHalves,
    /// `.m8n16….b8x16.b6x16_p32`: 16 elements of 6 bits, each put into the low bits of a byte.
    Packed6,
    /// `.m8n16….b8x16.b4x16_p64`: the same of 4 bits.
    Packed4,
    /// `.m16n8.trans….b8` of `stmatrix`: the columns of 16 rows of bytes.
    TransposedBytes,
}

impl MatrixRows {
    /// Returns the bytes of a row that are used; the rest of its 16 bytes is padding.
    pub const fn bytes(self) -> u32 {
        match self {
            MatrixRows::Halves | MatrixRows::TransposedHalves | MatrixRows::TransposedBytes => 16,
            MatrixRows::Packed6 => 12,
            MatrixRows::Packed4 => 8,
        }
    }

    /// Returns the destination register of one matrix.
    #[inline]
    pub fn load(self, rows: &[[u32; 4]; 8]) -> Lanes {
        match self {
            MatrixRows::Halves | MatrixRows::TransposedBytes => ldmatrix(rows, false),
            MatrixRows::TransposedHalves => ldmatrix(rows, true),
            MatrixRows::Packed6 => ldmatrix(&rows.map(|row| widen(&row, 6)), false),
            MatrixRows::Packed4 => ldmatrix(&rows.map(|row| widen(&row, 4)), false),
        }
    }
}

impl MatrixRows {
    /// Returns the rows that the source register of one matrix stores.
    #[inline]
    pub fn store(self, register: &Lanes) -> [[u32; 4]; 8] {
        match self {
            MatrixRows::TransposedBytes => stmatrix_bytes(register),
            form => stmatrix(register, form == MatrixRows::TransposedHalves),
        }
    }
}

/// `stmatrix…m16n8…b8`: a lane has two columns of two rows, as of an accumulator of 16 rows (PTX ISA, "Warp-level matrix store
/// instruction"; CUTLASS, `SM100_U8x4_STSM_T`).
fn stmatrix_bytes(register: &Lanes) -> [[u32; 4]; 8] {
    std::array::from_fn(|column| {
        let byte = |row: usize| {
            let lane = row % 8 * 4 + column / 2;
            (register[lane] >> (8 * (column % 2 + row / 8 * 2))) as u8
        };
        std::array::from_fn(|word| u32::from_le_bytes(std::array::from_fn(|n| byte(4 * word + n))))
    })
}

/// Puts each packed element into a byte.
fn widen(row: &[u32; 4], bits: u32) -> [u32; 4] {
    let codes = packed_codes(row, bits);
    std::array::from_fn(|word| {
        u32::from_le_bytes(std::array::from_fn(|byte| codes[4 * word + byte]))
    })
}

/// Returns the 16 elements of `bits` bits, at most 8, that are packed at the start of 16 bytes.
pub fn packed_codes(words: &[u32; 4], bits: u32) -> [u8; 16] {
    let packed = words.iter().rev();
    let packed = packed.fold(0u128, |all, word| all << 32 | u128::from(*word));
    std::array::from_fn(|n| (packed >> (n as u32 * bits) & ((1 << bits) - 1)) as u8)
}

/// `ldmatrix…b16`: one destination register from the eight rows of one 8×8 matrix.
///
/// Row `r` of matrix `i` is the 16 bytes at the address of lane `8·i + r`.
#[inline]
pub fn ldmatrix(rows: &[[u32; 4]; 8], trans: bool) -> Lanes {
    let mut register = [0; 32];
    for (lane, word) in register.iter_mut().enumerate() {
        let (g, t) = (lane / 4, lane % 4);
        *word = if trans {
            half(rows, 2 * t, g) | half(rows, 2 * t + 1, g) << 16
        } else {
            rows[g][t]
        };
    }
    register
}

/// `stmatrix…b16`: the eight rows that one source register stores, the inverse of [`ldmatrix`].
#[inline]
pub fn stmatrix(register: &Lanes, trans: bool) -> [[u32; 4]; 8] {
    let mut rows = [[0; 4]; 8];
    for (lane, word) in register.iter().enumerate() {
        rows[lane / 4][lane % 4] = *word;
    }
    if !trans {
        return rows;
    }
    // A transposition is its own inverse, so that the load serves the store.
    let turned = ldmatrix(&rows, true);
    for (lane, word) in turned.iter().enumerate() {
        rows[lane / 4][lane % 4] = *word;
    }
    rows
}

/// `movmatrix.sync.aligned.m8n8.trans.b16`: the transpose across the warp.
#[inline]
pub fn movmatrix(register: &Lanes) -> Lanes {
    ldmatrix(&stmatrix(register, false), true)
}

#[inline(always)]
fn half(rows: &[[u32; 4]; 8], row: usize, column: usize) -> u32 {
    (rows[row][column / 2] >> (16 * (column % 2))) & 0xffff
}
