//! Cells of the tensor memory of a block: what products, copies and transfers read and write there.

use super::{COLUMNS, Form, LANES, Operand, Shape, container_shift};
use crate::warpgroup::Step;
use gpu_arithmetic::layout;
use std::ops::Range;

/// Cells of a block.
pub const CELLS: usize = (LANES * COLUMNS) as usize;

/// Words that a step along K has in tensor memory.
const STEP_COLUMNS: u32 = 8;

/// Returns the index of a cell of a block.
#[must_use]
pub fn cell(lane: u32, column: u32) -> usize {
    (lane * COLUMNS + column) as usize
}

/// Address in tensor memory: of the first lane and column of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TensorAddress {
    /// The lane.
    pub lane: u32,
    /// The column.
    pub column: u32,
}

impl TensorAddress {
    /// Decodes the 32 bits of an address. Published kernels number the lanes of the second block of a pair from
    /// 128 on, so the GPU leaves the bits above those of a lane out.
    #[must_use]
    pub fn decode(address: u32) -> Self {
        Self {
            lane: address >> 16 & (LANES - 1),
            column: address & 0xffff,
        }
    }
}

/// Lanes and columns of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extent {
    /// The lanes.
    pub lanes: Range<u32>,
    /// The columns.
    pub columns: Range<u32>,
}

/// Scales of rows. Those of 32 rows are in one column, a word each, the same in all quarters of the lanes.
#[derive(Debug, Clone, Copy)]
pub struct Scales {
    /// Address of the first.
    pub at: TensorAddress,
    /// Number of rows.
    pub rows: u32,
    /// First byte in a word.
    pub byte: u32,
    /// Scales of a row.
    pub each: usize,
}

impl Scales {
    /// Returns the lanes and columns that hold them.
    #[must_use]
    pub fn extent(&self) -> Extent {
        let TensorAddress { lane, column } = self.at;
        Extent {
            lanes: lane..lane + self.rows.min(32),
            columns: column..column + self.rows.div_ceil(32),
        }
    }

    /// Reads the scales of each row from the cells of a block, which has all of [`Scales::extent`].
    #[must_use]
    pub fn read(&self, form: &Form, words: &[u32]) -> Vec<f32> {
        let TensorAddress { lane, column } = self.at;
        let code = |row: u32, n: usize| {
            let word = read(words, lane + row % 32, column + row / 32);
            (word >> (8 * ((self.byte + n as u32) % 4))) as u8
        };
        let codes = (0..self.rows).flat_map(|row| (0..self.each).map(move |n| (row, n)));
        codes.map(|(row, n)| form.scale(code(row, n))).collect()
    }
}

/// Cells of one block that a product writes, and how.
#[derive(Debug, Clone)]
pub struct Target {
    /// Address of the first.
    pub at: TensorAddress,
    /// Blocks that take part in the product.
    pub blocks: u32,
    /// The product is added to the cells.
    pub adds: bool,
    /// The cells are divided by two to this power first.
    pub shift: u32,
    /// Masks of lanes that are not written.
    pub disabled: Vec<u32>,
}

/// A row of a product with the lane and column of each of its columns.
pub type ProductRow = (u32, Vec<(u32, u32)>);

impl Target {
    /// Returns the lanes and columns that D covers.
    #[must_use]
    pub fn extent(&self, form: &Form) -> Extent {
        let TensorAddress { lane, column } = self.at;
        let (lanes, columns) = form.extent(self.blocks);
        Extent {
            lanes: lane..lane + lanes,
            columns: column..column + columns,
        }
    }

    /// Returns the rows that are written.
    #[must_use]
    pub fn rows(&self, form: &Form) -> Vec<ProductRow> {
        let place = |row: u32, n: u32| {
            let (lane, column) = form.cell(self.blocks, row, n);
            (self.at.lane + lane, self.at.column + column)
        };
        let enabled = |lane: u32| {
            let word = self.disabled.get(lane as usize / 32);
            word.copied().unwrap_or_default() >> (lane % 32) & 1 == 0
        };
        (0..form.m / self.blocks)
            .map(|row| (row, (0..form.n).map(|n| place(row, n)).collect::<Vec<_>>()))
            .filter(|(_, cells)| cells.first().is_some_and(|(lane, _)| enabled(*lane)))
            .collect()
    }

    /// Writes a product to rows of the cells of a block, which has all of [`Target::extent`].
    pub fn write(
        &self,
        form: &Form,
        [left, right]: [&Operand; 2],
        rows: &[ProductRow],
        words: &mut [u32],
    ) {
        let factor = (-(self.shift as f32)).exp2();
        let before = |word: u32| match self.shift {
            _ if !self.adds => 0,
            0 => word,
            _ => (f32::from_bits(word) * factor).to_bits(),
        };
        for (row, cells) in rows {
            let old = cells.iter().map(|(lane, n)| read(words, *lane, *n));
            let mut values: Vec<u32> = old.map(before).collect();
            form.accumulate(left, right, *row as usize, &mut values);
            for ((lane, column), value) in cells.iter().zip(values) {
                write(words, *lane, *column, value);
            }
        }
    }
}

impl Form {
    /// Returns the lanes and columns of one step of the rows of A in the tensor memory of a block.
    #[must_use]
    pub fn left_extent(&self, at: TensorAddress, blocks: u32) -> Extent {
        let last = self.left_lane(at, self.m / blocks - 1);
        Extent {
            lanes: at.lane..last + 1,
            columns: at.column..at.column + STEP_COLUMNS,
        }
    }

    /// Returns the lane of a row of A: that of D in one block.
    #[must_use]
    pub fn left_lane(&self, at: TensorAddress, row: u32) -> u32 {
        at.lane + self.cell(1, row, 0).0
    }

    /// Reads one step of the rows of A from the cells of a block, which has all of [`Form::left_extent`].
    #[must_use]
    pub fn left_steps(&self, at: TensorAddress, blocks: u32, words: &[u32]) -> Vec<Step> {
        let step = |row| {
            let lane = self.left_lane(at, row);
            std::array::from_fn(|n| read(words, lane, at.column + n as u32))
        };
        (0..self.m / blocks).map(step).collect()
    }
}

/// Rows of 32 bytes that move up by one lane: each lane takes the row of the next one, and the last of each
/// quarter keeps its own. (CUTLASS documents so much of `.ashift` on a B200; the PTX ISA says "down".)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shifted {
    /// Address of the first row.
    pub at: TensorAddress,
    /// Number of lanes.
    pub lanes: u32,
}

impl Shifted {
    /// Returns the lanes and columns of the rows.
    #[must_use]
    pub fn extent(&self) -> Extent {
        let TensorAddress { lane, column } = self.at;
        Extent {
            lanes: lane..lane + self.lanes,
            columns: column..column + STEP_COLUMNS,
        }
    }

    /// Iterates over the lanes and columns that take a new value, in the order of lanes.
    pub fn cells(&self) -> impl Iterator<Item = (u32, u32)> + Clone + use<> {
        let Extent { lanes, columns } = self.extent();
        lanes
            .filter(|lane| lane % 32 != 31)
            .flat_map(move |lane| columns.clone().map(move |column| (lane, column)))
    }

    /// Moves the rows among the cells of a block, which has all of [`Shifted::extent`].
    pub fn write(&self, words: &mut [u32]) {
        for (lane, column) in self.cells() {
            let value = read(words, lane + 1, column);
            write(words, lane, column, value);
        }
    }
}

/// Returns 16 packed elements in a byte each, as products read them from tensor memory.
fn contained(words: &[u32; 4], bits: u32) -> [u32; 4] {
    let bytes = layout::packed_codes(words, bits).map(|code| code << container_shift(bits));
    let mut contained = [0; 4];
    for (word, bytes) in contained.iter_mut().zip(bytes.as_chunks().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    contained
}

/// Shape of `tcgen05.cp`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fill {
    /// Rows in shared memory.
    pub rows: u32,
    /// Bytes of a row, 16 or 32.
    pub bytes: u32,
    /// By copy: the quarters of the lanes that take the first and the second 32 rows.
    pub copies: &'static [[u32; 2]],
    /// Bits of the elements that each 16 bytes of shared memory begin with, 4 or 6: in tensor memory each has a byte. 0
    /// where bytes are copied as they are.
    pub packed_bits: u32,
}

impl Fill {
    /// One copy.
    pub const ONCE: &'static [[u32; 2]] = &[[0, 1]];
    /// `.warpx4`.
    pub const ALL_QUARTERS: &'static [[u32; 2]] = &[[0, 0], [1, 1], [2, 2], [3, 3]];
    /// `.warpx2::02_13`.
    pub const ALTERNATING: &'static [[u32; 2]] = &[[0, 1], [2, 3]];
    /// `.warpx2::01_23`.
    pub const PAIRS: &'static [[u32; 2]] = &[[0, 2], [1, 3]];

    /// Returns the lane of a row in a copy from the lane `first` on.
    #[must_use]
    pub fn lane(&self, first: u32, copy: [u32; 2], row: u32) -> u32 {
        let [even, odd] = copy;
        match self.rows {
            128 => first + row,
            _ => {
                first
                    + if (row / 32).is_multiple_of(2) {
                        even
                    } else {
                        odd
                    } * 32
                    + row % 32
            }
        }
    }

    /// Returns the lanes and columns of a copy.
    #[must_use]
    pub fn extent(&self, at: TensorAddress, copy: [u32; 2]) -> Extent {
        let lane = |row| self.lane(at.lane, copy, row);
        Extent {
            lanes: lane(0)..lane(self.rows - 1) + 1,
            columns: at.column..at.column + self.bytes / 4,
        }
    }

    /// Iterates over the lanes and columns of a copy, by row.
    pub fn cells(
        &self,
        at: TensorAddress,
        copy: [u32; 2],
    ) -> impl Iterator<Item = (u32, u32)> + Clone {
        let words = self.bytes / 4;
        let lanes: Vec<u32> = (0..self.rows)
            .map(|row| self.lane(at.lane, copy, row))
            .collect();
        lanes
            .into_iter()
            .flat_map(move |lane| (0..words).map(move |n| (lane, at.column + n)))
    }

    /// Writes rows to the cells of a block, which has all of [`Fill::extent`].
    pub fn write(&self, at: TensorAddress, copy: [u32; 2], rows: &[Step], words: &mut [u32]) {
        let chunks = rows.iter().flat_map(|step| {
            let chunks = step.as_chunks::<4>().0.iter();
            chunks.take(self.bytes as usize / 16)
        });
        let values = chunks.flat_map(|chunk| match self.packed_bits {
            0 => *chunk,
            bits => contained(chunk, bits),
        });
        for ((lane, column), value) in self.cells(at, copy).zip(values) {
            write(words, lane, column, value);
        }
    }
}

impl Shape {
    /// Returns the cell of each register of each thread of a transfer. `packed`: a register has the
    /// low halves of two columns.
    #[must_use]
    pub fn cells(
        self,
        at: TensorAddress,
        registers: u32,
        packed: bool,
    ) -> Vec<[TensorAddress; 32]> {
        let wide = 1 + u32::from(packed);
        let of = |register: u32| {
            std::array::from_fn(|thread| {
                let (lane, column) = self.cell(register, thread as u32);
                TensorAddress {
                    lane: at.lane + lane,
                    column: at.column + column * wide,
                }
            })
        };
        (0..registers).map(of).collect()
    }

    /// Reads the register of a thread whose first cell is this one.
    #[must_use]
    pub fn load(at: TensorAddress, packed: bool, words: &[u32]) -> u32 {
        let TensorAddress { lane, column } = at;
        let word = read(words, lane, column);
        match packed {
            true => word & 0xffff | read(words, lane, column + 1) << 16,
            false => word,
        }
    }

    /// Writes the register of a thread whose first cell is this one.
    pub fn store(at: TensorAddress, packed: bool, value: u32, words: &mut [u32]) {
        let TensorAddress { lane, column } = at;
        if packed {
            write(words, lane, column, value & 0xffff);
            write(words, lane, column + 1, value >> 16);
        } else {
            write(words, lane, column, value);
        }
    }
}

fn read(words: &[u32], lane: u32, column: u32) -> u32 {
    words.get(cell(lane, column)).copied().unwrap_or_default()
}

fn write(words: &mut [u32], lane: u32, column: u32, value: u32) {
    if let Some(word) = words.get_mut(cell(lane, column)) {
        *word = value;
    }
}
