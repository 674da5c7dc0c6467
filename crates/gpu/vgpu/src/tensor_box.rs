//! Boxes of tensors: which bytes of global and shared memory a bulk copy of a box moves. The executors of PTX
//! and of machine code share it.

use crate::warpgroup::{CHUNK_BYTES, Swizzle};
use gpu_arithmetic::atomic::AtomType;
use gpu_tensor_map::{TensorElement, TensorMap};
use std::ops::Range;

/// Alignment of a box in shared memory, bytes.
const BOX_ALIGNMENT: u32 = 128;

/// Elements outside a floating-point tensor that asks for NaN, by their bytes (all bits but the sign).
const NAN_16: u64 = 0x7fff;
const NAN_32: u64 = 0x7fff_ffff;

/// The box that one copy moves.
#[derive(Debug, Clone)]
pub struct TensorBox<'m> {
    /// The tensor.
    pub map: &'m TensorMap,
    /// Coordinates of the first element, innermost first.
    pub corner: Vec<i64>,
    /// Byte offset in shared memory.
    pub shared: u32,
}

/// 16 bytes of a box, contiguous in both memories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Offset in shared memory, after the swizzle.
    pub shared: u32,
    /// Address of the first byte, also where it lies outside the tensor.
    pub global: u64,
    /// Bytes inside the tensor.
    pub inside: Range<u32>,
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
        if rank != have {
            return Some(format!(
                "{have} coordinates in a tensor of {rank} dimensions"
            ));
        }
        if self.map.interleave != 0 || self.swizzle().is_none() {
            return Some(
                "interleaved tensor maps and swizzles of wide atoms are not executed".to_owned(),
            );
        }
        None
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
            _ => None,
        }
    }

    /// Returns the counts of elements in each dimension.
    fn counts(&self) -> Vec<u32> {
        let sizes = self.map.boxes.iter().zip(&self.map.steps).enumerate();
        // The innermost dimension has no step.
        let count = |(dimension, (size, step)): (usize, (&u32, &u32))| match dimension {
            0 => *size,
            _ => size.div_ceil(*step),
        };
        sizes.map(count).collect()
    }

    /// Returns the bytes of the box in shared memory.
    #[must_use]
    pub fn bytes(&self) -> u32 {
        self.counts().iter().product::<u32>() * self.map.element.bytes()
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
            TensorElement::U8 | TensorElement::U16 => return None,
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
        let width = self.map.element.bytes();
        let inner = counts.first().copied().unwrap_or_default();
        let rows: u32 = counts.iter().skip(1).product();
        let swizzle = self.swizzle().unwrap_or(Swizzle::None);
        let each = CHUNK_BYTES / width;
        (0..rows).flat_map(move |row| {
            let (start, inside) = self.row(row, &counts);
            let line = self.shared + row * inner * width;
            let first = self.corner.first().copied().unwrap_or_default();
            let size = self.map.sizes.first().copied().unwrap_or_default() as i64;
            (0..inner).step_by(each as usize).map(move |column| {
                let place = first + i64::from(column);
                let element = |at: i64| at.clamp(0, each.into()) as u32 * width;
                let (low, high) = (element(-place), element(size - place));
                Chunk {
                    shared: swizzle.apply(line + column * width, 0),
                    global: start.wrapping_add((place * i64::from(width)) as u64),
                    inside: if inside && low < high {
                        low..high
                    } else {
                        0..0
                    },
                }
            })
        })
    }

    /// Returns the address of the element with the innermost coordinate 0 in a row of the box, and whether
    /// the row lies inside the tensor.
    fn row(&self, row: u32, counts: &[u32]) -> (u64, bool) {
        let map = self.map;
        let (mut rest, mut at, mut inside) = (row, map.address, true);
        let outer = counts.iter().zip(&map.steps).zip(&self.corner);
        let outer = outer.zip(&map.sizes).skip(1).zip(&map.strides);
        for ((((count, step), corner), size), stride) in outer {
            let place = corner + i64::from(rest % count) * i64::from(*step);
            rest /= count;
            inside &= place >= 0 && (place as u64) < *size;
            at = at.wrapping_add((place as u64).wrapping_mul(*stride));
        }
        (at, inside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(swizzle: u32) -> TensorMap {
        TensorMap {
            element: TensorElement::F16,
            address: 4096,
            sizes: vec![100, 10],
            strides: vec![208],
            boxes: vec![64, 4],
            steps: vec![1, 1],
            interleave: 0,
            swizzle,
            promotion: 0,
            fills_nan: false,
        }
    }

    #[test]
    fn chunks_outside_the_tensor_are_cut() {
        let map = map(0);
        let copy = TensorBox {
            map: &map,
            corner: vec![-4, 8],
            shared: 256,
        };
        assert_eq!(copy.bytes(), 512);
        let chunks: Vec<Chunk> = copy.chunks().collect();
        assert_eq!(chunks.len(), 32);
        assert_eq!(chunks[0].inside, 8..16);
        assert_eq!(chunks[0].global, 4096 + 8 * 208 - 8);
        assert_eq!(chunks[1].inside, 0..16);
        assert_eq!(chunks[9].shared, 256 + 128 + 16);
        // Row 10 does not exist.
        assert_eq!(chunks[17].inside, 0..0);
        let end = TensorBox {
            corner: vec![92, 0],
            ..copy
        };
        assert_eq!(end.chunks().next().unwrap().inside, 0..16);
        assert_eq!(end.chunks().nth(1).unwrap().inside, 0..0);
    }

    #[test]
    fn a_swizzle_permutes_the_chunks_of_a_row() {
        let map = map(3);
        let copy = TensorBox {
            map: &map,
            corner: vec![0, 0],
            shared: 1024,
        };
        let second: Vec<u32> = copy.chunks().skip(8).take(2).map(|c| c.shared).collect();
        assert_eq!(second, [1024 + 128 + 16, 1024 + 128]);
    }
}
