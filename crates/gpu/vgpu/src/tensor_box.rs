//! Boxes of tensors: which bytes of global and shared memory a bulk copy of a box moves. The executors of PTX
//! and of machine code share it.

use crate::warpgroup::{CHUNK_BYTES, Swizzle};
use gpu_arithmetic::atomic::AtomType;
use gpu_tensor_map::{PADDED_ELEMENTS, TensorElement, TensorMap};
use std::ops::Range;

/// Alignment of a box in shared memory, bytes.
const BOX_ALIGNMENT: u32 = 128;

/// Bytes of a box at most: more than the shared memory of any block.
const MAX_BOX_BYTES: u64 = 1 << 20;

/// Elements outside a floating-point tensor that asks for NaN, by their bytes (all bits but the sign).
const NAN_16: u64 = 0x7fff;
const NAN_32: u64 = 0x7fff_ffff;

/// The elements that a copy moves (PTX ISA, 5.5.3 to 5.5.5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopyMode {
    /// The box of the map.
    Tile,
    /// A column of pixels, each displaced by these offsets, width first. Stores have none.
    Im2col(Vec<u32>),
    /// Four rows of a matrix, whose numbers follow the coordinate of the first column.
    Rows,
}

/// Rows of `tile::gather4` and `tile::scatter4`.
const GATHERED_ROWS: u32 = 4;

impl CopyMode {
    /// Returns the number of coordinates in a tensor of so many dimensions.
    #[must_use]
    pub fn coordinates(&self, rank: usize) -> usize {
        match self {
            Self::Rows => 1 + GATHERED_ROWS as usize,
            _ => rank,
        }
    }

    /// Returns the mode with other offsets, made of those that it has; a mode without offsets stays.
    #[must_use]
    pub fn with_offsets(&self, offsets: impl FnOnce(&[u32]) -> Vec<u32>) -> Self {
        match self {
            Self::Im2col(given) => Self::Im2col(offsets(given)),
            other => other.clone(),
        }
    }

    /// Returns the bits of each offset of an im2col copy in a tensor of so many dimensions: machine code
    /// packs all in 16 bits.
    #[must_use]
    pub fn offset_bits(rank: usize) -> u32 {
        match rank {
            3 => 16,
            4 => 8,
            _ => 5,
        }
    }
}

/// The box that one copy moves.
#[derive(Debug, Clone)]
pub struct TensorBox<'m> {
    /// The tensor.
    pub map: &'m TensorMap,
    /// The elements of it.
    pub mode: CopyMode,
    /// Coordinates of the first element, innermost first.
    pub corner: Vec<i64>,
    /// Byte offset in shared memory.
    pub shared: u32,
}

/// 16 bytes of a box in shared memory, padding included, contiguous in both memories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Offset in shared memory, after the swizzle.
    pub shared: u32,
    /// Address of the first byte, also where it lies outside the tensor.
    pub global: u64,
    /// Bytes inside the tensor.
    pub inside: Range<u32>,
    /// Bytes but the padding at its end.
    pub bytes: u32,
}

impl Chunk {
    /// Returns the addresses inside the tensor.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        let at = |byte: u32| self.global.wrapping_add(byte.into());
        at(self.inside.start)..at(self.inside.end)
    }
}

impl TensorBox<'_> {
    /// Returns why the box cannot be copied: the rules of the ISA, and modes that are not implemented.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        let at = self.shared;
        if !self.is_aligned() {
            return Some(format!(
                "a box of a tensor begins at shared address {at}, not a multiple of {BOX_ALIGNMENT}"
            ));
        }
        let (rank, have) = (self.map.sizes.len(), self.corner.len());
        if self.mode.coordinates(rank) != have {
            return Some(format!(
                "{have} coordinates in a tensor of {rank} dimensions"
            ));
        }
        if let Some(problem) = self.mode_problem(rank) {
            return Some(problem.to_owned());
        }
        if let Some(problem) = self.packed_problem() {
            return Some(problem.to_owned());
        }
        if self.whole_bytes() > MAX_BOX_BYTES {
            return Some(format!(
                "a box of {} bytes is larger than shared memory",
                self.whole_bytes()
            ));
        }
        if self.map.interleave != 0 || self.swizzle().is_none() {
            return Some(
                "interleaved tensor maps and swizzles that flip 8 bytes are not executed"
                    .to_owned(),
            );
        }
        None
    }

    /// Returns why a box of a packed type cannot begin there.
    fn packed_problem(&self) -> Option<&'static str> {
        let first = self.corner.first().copied().unwrap_or_default();
        let multiple = match self.map.element {
            TensorElement::U4 => 2,
            element if element.is_padded() => PADDED_ELEMENTS.into(),
            _ => 1,
        };
        (first % multiple != 0).then_some(match self.map.element {
            TensorElement::U4 => "a box of elements of 4 bits at an odd coordinate",
            _ => "the first coordinate of padded elements is a multiple of 128",
        })
    }

    /// Returns why the map does not fit the mode of the copy.
    fn mode_problem(&self, rank: usize) -> Option<&'static str> {
        let column = self.map.pixels.is_some();
        match &self.mode {
            CopyMode::Im2col(_) if !column => {
                Some("an im2col copy with a tensor map of tiles (`cuTensorMapEncodeTiled`)")
            }
            CopyMode::Im2col(offsets) if !offsets.is_empty() && offsets.len() + 2 != rank => {
                Some("an im2col copy needs one offset for each spatial dimension")
            }
            CopyMode::Tile | CopyMode::Rows if column => {
                Some("a copy of tiles with an im2col tensor map (`cuTensorMapEncodeIm2col`)")
            }
            CopyMode::Rows if rank != 2 || self.map.boxes.get(1) != Some(&1) => {
                Some("four rows are copied with a map of a matrix whose box has one row")
            }
            _ => None,
        }
    }

    /// Reports whether the box has the alignment that the ISA demands.
    #[must_use]
    pub fn is_aligned(&self) -> bool {
        self.shared.is_multiple_of(BOX_ALIGNMENT)
    }

    /// Returns the permutation of chunks in shared memory; `None` for one that is not implemented.
    fn swizzle(&self) -> Option<Swizzle> {
        match self.map.swizzle {
            0 => Some(Swizzle::None),
            1..=3 => Some(Swizzle::Rows(self.map.span())),
            4 => Some(Swizzle::Atoms(32)),
            6 => Some(Swizzle::Atoms(64)),
            _ => None,
        }
    }

    /// Returns the counts of elements in each dimension.
    fn counts(&self) -> Vec<u32> {
        match self.mode {
            CopyMode::Tile => {}
            // A column has as many pixels whatever the steps are.
            CopyMode::Im2col(_) => return self.map.boxes.clone(),
            CopyMode::Rows => {
                let inner = self.map.boxes.first().copied();
                return inner.into_iter().chain([GATHERED_ROWS]).collect();
            }
        }
        let sizes = self.map.boxes.iter().zip(&self.map.steps).enumerate();
        // The innermost dimension has no step.
        let count = |(dimension, (size, step)): (usize, (&u32, &u32))| match dimension {
            0 => *size,
            _ => size.div_ceil(*step),
        };
        sizes.map(count).collect()
    }

    /// Returns the bytes of the elements of the box, as far as they can be counted in 32 bits. An `mbarrier` counts these:
    /// no padding (CUTLASS, for elements of less than a byte).
    #[must_use]
    pub fn bytes(&self) -> u32 {
        u32::try_from(self.whole_bytes()).unwrap_or(u32::MAX)
    }

    fn whole_bytes(&self) -> u64 {
        let bits = u64::from(self.map.element.bits());
        let counts = self.counts().into_iter().map(u64::from);
        counts.fold(bits, u64::saturating_mul) / 8
    }

    /// Returns the bytes of a chunk that hold elements; the others are padding.
    fn chunk_bytes(&self) -> u32 {
        match self.map.element.is_padded() {
            true => 2 * self.map.element.bits(),
            false => CHUNK_BYTES,
        }
    }

    /// Returns the coordinate of the first element, and the elements of the tensor and of the box in the innermost dimension,
    /// in bytes of their containers in shared memory.
    fn innermost(&self, count: u32) -> (i64, i64, u32) {
        let first = self.corner.first().copied().unwrap_or_default();
        let size = self.map.sizes.first().copied().unwrap_or_default() as i64;
        match self.map.element {
            TensorElement::U4 => (first.div_euclid(2), size / 2, count / 2),
            element => {
                let bytes = element.bytes();
                (
                    first * i64::from(bytes),
                    size * i64::from(bytes),
                    count * bytes,
                )
            }
        }
    }

    /// Returns the value of an element outside the tensor.
    #[must_use]
    pub fn outside(&self) -> u64 {
        match (self.map.fills_nan, self.map.element.bytes()) {
            (false, _) => 0,
            (true, 2) => NAN_16,
            (true, _) => NAN_32,
        }
    }

    /// Returns the type of the elements for a reducing copy; `None` where there is none.
    #[must_use]
    pub fn reduced_type(&self) -> Option<AtomType> {
        Some(match self.map.element {
            TensorElement::U8
            | TensorElement::U16
            | TensorElement::U4
            | TensorElement::U4Padded
            | TensorElement::U6Padded => return None,
            TensorElement::U32 => AtomType::U32,
            TensorElement::S32 => AtomType::S32,
            TensorElement::U64 => AtomType::U64,
            TensorElement::S64 => AtomType::S64,
            TensorElement::F16 => AtomType::F16,
            TensorElement::Bf16 => AtomType::Bf16,
            TensorElement::F64 => AtomType::F64,
            _ => AtomType::F32,
        })
    }

    /// Returns the chunks in the order of shared memory before the swizzle.
    pub fn chunks(&self) -> impl Iterator<Item = Chunk> {
        let counts = self.counts();
        let (first, size, inner) = self.innermost(counts.first().copied().unwrap_or_default());
        let each = self.chunk_bytes();
        let rows: u32 = counts.iter().skip(1).product();
        let swizzle = self.swizzle().unwrap_or(Swizzle::None);
        // Only the pixels of a column depend on the ones before.
        let column = match &self.mode {
            CopyMode::Im2col(offsets) => self.pixels(rows, offsets),
            CopyMode::Tile | CopyMode::Rows => Vec::new(),
        };
        let begin = move |row: u32| match self.mode {
            CopyMode::Tile => self.row(row, &counts),
            CopyMode::Im2col(_) => column.get(row as usize).copied().unwrap_or_default(),
            CopyMode::Rows => self.start(self.corner.get(1 + row as usize).copied().into_iter()),
        };
        (0..rows).flat_map(move |row| {
            let (start, inside) = begin(row);
            let line = self.shared + row * inner;
            (0..inner).step_by(CHUNK_BYTES as usize).map(move |column| {
                // Bytes of containers, of which a chunk has 16, and of elements in global memory.
                let place = first + i64::from(column);
                let byte = |at: i64| at.clamp(0, CHUNK_BYTES.into()) as u32 * each / CHUNK_BYTES;
                let (low, high) = (byte(-place), byte(size - place));
                let global = place * i64::from(each) / i64::from(CHUNK_BYTES);
                Chunk {
                    shared: swizzle.apply(line + column, 0),
                    global: start.wrapping_add(global as u64),
                    inside: if inside && low < high {
                        low..high
                    } else {
                        0..0
                    },
                    bytes: each,
                }
            })
        })
    }

    /// Returns the address of the element with the innermost coordinate 0 in a row of the box, and whether
    /// the row lies inside the tensor.
    fn row(&self, row: u32, counts: &[u32]) -> (u64, bool) {
        let mut rest = row;
        let outer = counts.iter().zip(&self.map.steps).zip(&self.corner);
        let places = outer.skip(1).map(|((count, step), corner)| {
            let place = corner + i64::from(rest % count) * i64::from(*step);
            rest /= count;
            place
        });
        self.start(places)
    }

    /// Returns the same for the pixels of a column. The first pixel is the corner; the others follow along
    /// the width, and along the next dimension where one would leave the box of the map.
    fn pixels(&self, count: u32, offsets: &[u32]) -> Vec<(u64, bool)> {
        let Some(pixels) = &self.map.pixels else {
            return Vec::new();
        };
        let mut place: Vec<i64> = self.corner.iter().skip(1).copied().collect();
        let mut column = Vec::with_capacity(count as usize);
        for _ in 0..count {
            // The number of the image has no offset, and a store has none at all.
            let offsets = offsets.iter().chain(std::iter::repeat(&0));
            let displaced = place.iter().zip(offsets);
            column.push(self.start(displaced.map(|(at, offset)| at + i64::from(*offset))));
            let corners = pixels.lower.iter().zip(&pixels.upper);
            let sizes = self.map.sizes.iter().zip(&self.map.steps).skip(1);
            let mut carry = true;
            for ((at, (lower, upper)), (size, step)) in place.iter_mut().zip(corners).zip(sizes) {
                *at += i64::from(*step);
                carry = *at > *size as i64 - 1 + i64::from(*upper);
                if !carry {
                    break;
                }
                *at = i64::from(*lower);
            }
            if let (true, Some(image)) = (carry, place.last_mut()) {
                *image += 1;
            }
        }
        column
    }

    /// Returns the address of the element with the innermost coordinate 0 at the other coordinates, and
    /// whether they lie inside the tensor.
    fn start(&self, outer: impl Iterator<Item = i64>) -> (u64, bool) {
        let (mut at, mut inside) = (self.map.address, true);
        let sizes = self.map.sizes.iter().skip(1);
        for ((place, size), stride) in outer.zip(sizes).zip(&self.map.strides) {
            inside &= place >= 0 && (place as u64) < *size;
            at = at.wrapping_add((place as u64).wrapping_mul(*stride));
        }
        (at, inside)
    }
}

#[cfg(test)]
mod tests;
