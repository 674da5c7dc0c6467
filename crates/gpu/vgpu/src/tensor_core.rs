//! Products of the fifth generation of tensor cores, `tcgen05.mma` (PTX ISA, 9.7.16): the instruction
//! descriptor, the shapes of `tcgen05.ld`, elements of the operands, and their product. The executors of PTX
//! and of SASS share it.

mod cells;
mod stationary;

pub use cells::{CELLS, Extent, Fill, ProductRow, Scales, Shifted, Target, TensorAddress, cell};
pub use stationary::ColumnMask;

use crate::warpgroup::Step;
use gpu_arithmetic::small::{self, Small};
use gpu_arithmetic::{half, layout};

/// Lanes of the tensor memory of a block.
pub const LANES: u32 = 128;
/// Columns of the tensor memory of a block, 32 bits each.
pub const COLUMNS: u32 = 512;

/// `.kind` of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProductKind {
    /// `f16`: halves and bfloat16.
    F16,
    /// `tf32`.
    Tf32,
    /// `f8f6f4`.
    F8f6f4,
    /// `i8`.
    I8,
    /// `mxf8f6f4`.
    ScaledF8f6f4,
    /// `mxf4` and `mxf4nvf4`.
    ScaledF4,
}

impl ProductKind {
    /// Returns the kind with a name.
    pub fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "f16" => ProductKind::F16,
            "tf32" => ProductKind::Tf32,
            "f8f6f4" => ProductKind::F8f6f4,
            "i8" => ProductKind::I8,
            "mxf8f6f4" => ProductKind::ScaledF8f6f4,
            "mxf4" | "mxf4nvf4" => ProductKind::ScaledF4,
            _ => return None,
        })
    }

    /// Reports whether blocks of A and B have scales.
    pub fn is_scaled(self) -> bool {
        matches!(self, ProductKind::ScaledF8f6f4 | ProductKind::ScaledF4)
    }
}

/// Type of the elements of A or B.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    /// Halves.
    F16,
    /// `bf16`.
    Bf16,
    /// The upper 19 bits of a word.
    Tf32,
    /// Signed bytes.
    S8,
    /// Unsigned bytes.
    U8,
    /// In containers of a byte: 16 elements of 6 or 4 bits are packed at the start of 16 bytes.
    Small(Small),
    /// In a byte each, as tensor memory has elements of 6 or 4 bits.
    Contained(Small),
    /// `e2m1`, two in a byte.
    Packed,
}

impl Element {
    /// Bytes of an element, or of its container; 1 for two in a byte, which have one order only.
    pub fn bytes(self) -> u32 {
        match self {
            Element::Tf32 => 4,
            Element::F16 | Element::Bf16 => 2,
            _ => 1,
        }
    }

    /// Returns the elements of a step along K.
    pub fn step_elements(self) -> u32 {
        match self {
            Element::Packed => 64,
            element => 32 / element.bytes(),
        }
    }

    /// Appends the values of a step along K.
    fn decode(self, step: &Step, values: &mut Vec<f32>) {
        let bytes = || step.iter().flat_map(|word| word.to_le_bytes());
        let halves = || {
            step.iter()
                .flat_map(|word| [*word as u16, (*word >> 16) as u16])
        };
        match self {
            Element::F16 => values.extend(halves().map(half::f16_to_f32)),
            Element::Bf16 => values.extend(halves().map(half::bf16_to_f32)),
            Element::Tf32 => {
                values.extend(step.iter().map(|word| f32::from_bits(word & 0xffff_e000)));
            }
            Element::S8 => values.extend(bytes().map(|byte| f32::from(byte as i8))),
            Element::U8 => values.extend(bytes().map(f32::from)),
            Element::Small(format @ (Small::E4m3 | Small::E5m2)) => {
                values.extend(bytes().map(|byte| small::to_f32(format, byte)));
            }
            Element::Small(format) => {
                let bits = if format == Small::E2m1 { 4 } else { 6 };
                for words in step.as_chunks::<4>().0 {
                    let codes = layout::packed_codes(words, bits);
                    values.extend(codes.map(|code| small::to_f32(format, code)));
                }
            }
            Element::Contained(format) => {
                let bits = if format == Small::E2m1 { 4 } else { 6 };
                let code = |byte: u8| byte >> container_shift(bits) & ((1 << bits) - 1);
                values.extend(bytes().map(|byte| small::to_f32(format, code(byte))));
            }
            Element::Packed => {
                let codes = bytes().flat_map(|byte| [byte & 15, byte >> 4]);
                values.extend(codes.map(|code| small::to_f32(Small::E2m1, code)));
            }
        }
    }
}

/// Position of an element of 4 or 6 bits in its byte. The PTX ISA has figures of it; these are the places of `mma.sync`, where
/// an `e2m1` is an `e2m3` without its lower bits.
fn container_shift(bits: u32) -> u32 {
    if bits == 4 { 2 } else { 0 }
}

/// Type of the accumulators, each in a column of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accumulator {
    /// Halves.
    F16,
    /// Single precision.
    F32,
    /// Integers.
    S32,
}

/// Storage of A or B.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Side {
    /// Type of the elements.
    pub element: Element,
    /// Stored along M or N instead of along K.
    pub transposed: bool,
}

/// A decoded instruction descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Form {
    /// Rows of D.
    pub m: u32,
    /// Columns of D.
    pub n: u32,
    /// Type of A.
    pub a: Element,
    /// Type of B.
    pub b: Element,
    /// Type of D.
    pub d: Accumulator,
    /// The signs of A and of B are inverted.
    pub negate: [bool; 2],
    /// A and B are stored along M and N instead of along K.
    pub transposed: [bool; 2],
    saturates: bool,
    /// Scales are `ue8m0`, not `ue4m3`.
    powers_of_two: bool,
    /// First byte of the scales of A and B in their columns.
    pub scale_bytes: [u32; 2],
    /// Weight-stationary (`.ws`).
    pub stationary: bool,
}

impl Form {
    /// Decodes a descriptor; `blocks` is that of `.cta_group`.
    ///
    /// # Errors
    /// A field that is not valid.
    pub fn decode(kind: ProductKind, bits: u32, blocks: u32) -> Result<Self, String> {
        let form = Self::fields(kind, bits)?;
        form.check(kind.is_scaled(), blocks)?;
        Ok(form)
    }

    fn fields(kind: ProductKind, bits: u32) -> Result<Self, String> {
        let field = |low: u32, count: u32| bits >> low & ((1 << count) - 1);
        let flag = |at: u32| field(at, 1) == 1;
        let scaled = kind.is_scaled();
        if flag(2) {
            return Err("asks for a sparse product, which is not supported".to_owned());
        }
        let element = |code: u32| element(kind, code).ok_or(format!("has the type {code}"));
        let accumulator = match (kind, field(4, 2)) {
            _ if scaled => Accumulator::F32,
            (ProductKind::I8, 2) => Accumulator::S32,
            (ProductKind::F16 | ProductKind::F8f6f4, 0) => Accumulator::F16,
            (ProductKind::F16 | ProductKind::F8f6f4 | ProductKind::Tf32, 1) => Accumulator::F32,
            (_, code) => return Err(format!("has the type {code} of D")),
        };
        Ok(Form {
            m: field(24, 5) * 16,
            n: field(17, 6) * 8,
            a: element(field(7, 3))?,
            b: element(field(10, 3))?,
            d: accumulator,
            negate: [flag(13), flag(14)],
            transposed: [flag(15), flag(16)],
            saturates: kind == ProductKind::I8 && flag(3),
            powers_of_two: flag(23),
            scale_bytes: [field(29, 2), field(4, 2)],
            stationary: false,
        })
    }

    fn check(&self, scaled: bool, blocks: u32) -> Result<(), String> {
        let (m, n) = (self.m, self.n);
        let step = match (scaled, blocks, m) {
            (true, 1, 128) | (false, 1, 64) => 8,
            (false, 1, 128) | (true, 2, 128 | 256) => 16,
            (false, 2, 128 | 256) => 32,
            _ => return Err(format!("has M = {m}, which `.cta_group::{blocks}` has not")),
        };
        if n == 0 || n % step != 0 || n > 256 {
            return Err(format!(
                "has N = {n}: with M = {m} it is a multiple of {step} up to 256"
            ));
        }
        if self.a == Element::Packed && self.transposed != [false; 2] {
            return Err("transposes elements of 4 bits".to_owned());
        }
        Ok(())
    }

    /// Returns the type of A in shared memory or in tensor memory.
    #[must_use]
    pub fn left_element(&self, in_tensor_memory: bool) -> Element {
        match self.a {
            Element::Small(format @ (Small::E2m3 | Small::E3m2 | Small::E2m1))
                if in_tensor_memory =>
            {
                Element::Contained(format)
            }
            element => element,
        }
    }

    /// Returns how A and B are stored.
    pub fn sides(&self) -> [Side; 2] {
        let [a, b] = self.transposed;
        let side = |element, transposed| Side {
            element,
            transposed,
        };
        [side(self.a, a), side(self.b, b)]
    }

    /// Returns the lane of a row of one block, and of a column `n` the column.
    pub fn cell(&self, blocks: u32, row: u32, n: u32) -> (u32, u32) {
        match (self.m / blocks, blocks) {
            _ if self.stationary => {
                let columns = self.part();
                (row + n / columns * self.m, n % columns)
            }
            (64, 1) => (row / 16 * 32 + row % 16, n),
            // Both halves of the columns lie beside the rows.
            (64, _) => (row + n / (self.n / 2) * 64, n % (self.n / 2)),
            _ => (row, n),
        }
    }

    /// Returns the lanes and columns of one block that D covers.
    pub fn extent(&self, blocks: u32) -> (u32, u32) {
        match (self.m, blocks) {
            _ if self.stationary => (LANES, self.part()),
            // The last of 64 rows is in lane 3 · 32 + 15.
            (64, _) => (112, self.n),
            (128, 2) => (128, self.n / 2),
            _ => (128, self.n),
        }
    }

    /// Returns the value of a scale.
    pub fn scale(&self, code: u8) -> f32 {
        match self.powers_of_two {
            true => small::ue8m0_to_f32(code),
            // `ue4m3` is `e4m3` without a sign (PTX ISA, "Alternate Floating-Point Data Formats").
            false => small::to_f32(Small::E4m3, code & 0x7f),
        }
    }

    /// Adds a product to accumulators as tensor memory has them. The exact products of each block of
    /// scales are summed in single precision in the order of k.
    pub fn accumulate(&self, left: &Operand, right: &Operand, row: usize, d: &mut [u32]) {
        let columns = d.len();
        let mut sums = vec![0.0f32; columns];
        let mut total = vec![0.0f32; columns];
        let depth = left.depth / left.blocks;
        let sign = if self.negate[0] != self.negate[1] {
            -1.0
        } else {
            1.0
        };
        for block in 0..left.blocks {
            sums.fill(0.0);
            for k in block * depth..(block + 1) * depth {
                let a = sign * left.value(row, k);
                let b = right.columns.get(k).map_or(&[][..], Vec::as_slice);
                for (sum, b) in sums.iter_mut().zip(b) {
                    *sum += a * b;
                }
            }
            for (column, (total, sum)) in total.iter_mut().zip(&sums).enumerate() {
                *total += sum * left.scale(row, block) * right.scale(column, block);
            }
        }
        for (d, sum) in d.iter_mut().zip(total) {
            *d = match self.d {
                Accumulator::F32 => (f32::from_bits(*d) + sum).to_bits(),
                Accumulator::F16 => {
                    let before = half::f16_to_f32(*d as u16);
                    half::f32_to_f16(before + sum).into()
                }
                // 32 products of two bytes stay below 2^24: their sum in single precision is exact.
                Accumulator::S32 if self.saturates => (*d as i32).saturating_add(sum as i32) as u32,
                Accumulator::S32 => (*d as i32).wrapping_add(sum as i32) as u32,
            };
        }
    }
}

/// Rows of A, or columns of B, with their scales.
#[derive(Debug, Clone, Default)]
pub struct Operand {
    rows: Vec<Vec<f32>>,
    /// The same by k.
    columns: Vec<Vec<f32>>,
    depth: usize,
    /// Blocks of elements with a scale of their own.
    blocks: usize,
    scales: Vec<f32>,
}

impl Operand {
    /// Decodes the steps of all rows; `scales` has those of each row, in the order of k.
    pub fn new(element: Element, steps: &[Step], scales: Vec<f32>) -> Self {
        let decode = |step: &Step| {
            let mut values = Vec::new();
            element.decode(step, &mut values);
            values
        };
        let rows: Vec<Vec<f32>> = steps.iter().map(decode).collect();
        let depth = rows.first().map_or(0, Vec::len);
        let column = |k: usize| rows.iter().filter_map(|row| row.get(k).copied()).collect();
        Self {
            columns: (0..depth).map(column).collect(),
            depth,
            blocks: (scales.len() / rows.len().max(1)).max(1),
            rows,
            scales,
        }
    }

    fn value(&self, row: usize, k: usize) -> f32 {
        let value = self.rows.get(row).and_then(|row| row.get(k));
        value.copied().unwrap_or_default()
    }

    fn scale(&self, row: usize, block: usize) -> f32 {
        let scale = self.scales.get(row * self.blocks + block);
        scale.copied().unwrap_or(1.0)
    }
}

/// Returns the type with a code in the descriptor.
fn element(kind: ProductKind, code: u32) -> Option<Element> {
    Some(match (kind, code) {
        (ProductKind::F16, 0) => Element::F16,
        (ProductKind::F16, 1) => Element::Bf16,
        (ProductKind::Tf32, 2) => Element::Tf32,
        (ProductKind::I8, 0) => Element::U8,
        (ProductKind::I8, 1) => Element::S8,
        (ProductKind::ScaledF4, 1) => Element::Packed,
        (ProductKind::F8f6f4 | ProductKind::ScaledF8f6f4, code) => Element::Small(match code {
            0 => Small::E4m3,
            1 => Small::E5m2,
            3 => Small::E2m3,
            4 => Small::E3m2,
            5 => Small::E2m1,
            _ => return None,
        }),
        _ => return None,
    })
}

/// Shape of `tcgen05.ld` and `tcgen05.st`: lanes, and bits of a lane, of one repetition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `.32x32b`.
    Lanes32Bits32,
    /// `.16x64b`.
    Lanes16Bits64,
    /// `.16x128b`.
    Lanes16Bits128,
    /// `.16x256b`.
    Lanes16Bits256,
    /// `.16x32bx2`: the second half of the threads has columns from this distance on.
    Halves(u32),
}

impl Shape {
    /// Returns the shape with a name; the distance of [`Shape::Halves`] is an operand.
    pub fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "32x32b" => Shape::Lanes32Bits32,
            "16x64b" => Shape::Lanes16Bits64,
            "16x128b" => Shape::Lanes16Bits128,
            "16x256b" => Shape::Lanes16Bits256,
            "16x32bx2" => Shape::Halves(0),
            _ => return None,
        })
    }

    /// Returns the registers of a thread for one repetition.
    pub fn registers(self) -> usize {
        match self {
            Shape::Lanes16Bits128 => 2,
            Shape::Lanes16Bits256 => 4,
            _ => 1,
        }
    }

    /// Returns the lanes that it covers.
    pub fn lanes(self) -> u32 {
        match self {
            Shape::Lanes32Bits32 => 32,
            _ => 16,
        }
    }

    /// Returns the lane and the column, from those of the address on, of a register of a thread.
    pub fn cell(self, register: u32, thread: u32) -> (u32, u32) {
        let (eighth, rest) = (thread / 4, thread % 4);
        match self {
            Shape::Lanes32Bits32 => (thread, register),
            Shape::Lanes16Bits64 => (eighth + rest % 2 * 8, register * 2 + rest / 2),
            Shape::Lanes16Bits128 => (eighth + register % 2 * 8, register / 2 * 4 + rest),
            Shape::Lanes16Bits256 => {
                let column = register / 4 * 8 + rest * 2 + register % 2;
                (eighth + register / 2 % 2 * 8, column)
            }
            Shape::Halves(distance) => (thread % 16, register + thread / 16 * distance),
        }
    }
}

#[cfg(test)]
mod tests;
