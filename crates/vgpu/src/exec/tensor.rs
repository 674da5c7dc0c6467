//! Bulk copies of boxes of a tensor. As other bulk copies they copy at once, and complete at the next poll
//! of their `mbarrier` or wait for their group.

use super::access::{CheckedLocation, Touch};
use super::atomics::BulkElement;
use super::cta::Cta;
use super::descriptor::Swizzle;
use super::stop::{Halt, Stop};
use super::transfer::lanes;
use super::warp::Warp;
use crate::hazard::report::Location;
use crate::hazard::{HazardKind, Space};
use crate::lower::program::{Area, NONE, TensorCopy};
use crate::tensor_map::{TENSOR_MAP_BYTES, TensorElement, TensorMap};
use gpu_arithmetic::atomic::{AtomOp, AtomType};

/// Alignment of a box in shared memory, bytes.
const BOX_ALIGNMENT: u32 = 128;

/// Elements outside a floating-point tensor that asks for NaN, by their bytes (all bits but the sign).
const NAN_16: u64 = 0x7fff;
const NAN_32: u64 = 0x7fff_ffff;

/// The copy of one lane.
struct BoxCopy<'m> {
    lane: usize,
    map: &'m TensorMap,
    /// First coordinates of the box, innermost first.
    corner: Vec<i64>,
    /// Offset in shared memory.
    shared: u32,
    stores: bool,
    reduce: Option<AtomOp>,
}

/// A word of shared memory and the elements in it.
struct BoxWord {
    at: u32,
    /// Address of each element, or none outside the tensor.
    elements: Vec<Option<u64>>,
}

impl BoxCopy<'_> {
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
    fn bytes(&self) -> u32 {
        self.counts().iter().product::<u32>() * self.map.element.bytes()
    }

    /// Returns the address of an element of the box by its indices; `None` outside the tensor.
    fn address(&self, index: &[u32]) -> Option<u64> {
        let map = self.map;
        let mut at = map.address;
        for (dimension, index) in index.iter().enumerate() {
            let step = if dimension == 0 {
                1
            } else {
                *map.steps.get(dimension)?
            };
            let place = self.corner.get(dimension)? + i64::from(*index) * i64::from(step);
            if place < 0 || place as u64 >= *map.sizes.get(dimension)? {
                return None;
            }
            let stride = match dimension {
                0 => map.element.bytes().into(),
                _ => *map.strides.get(dimension - 1)?,
            };
            at = at.wrapping_add((place as u64).wrapping_mul(stride));
        }
        Some(at)
    }

    /// Returns the value of an element outside the tensor.
    fn outside(&self) -> u64 {
        match (self.map.fills_nan, self.map.element.bytes()) {
            (false, _) => 0,
            (true, 2) => NAN_16,
            (true, _) => NAN_32,
        }
    }
}

impl Cta<'_> {
    /// Executes a copy: lanes copy one after the other.
    pub(super) fn tensor_copy(&mut self, w: &mut Warp, c: &TensorCopy, mask: u32) {
        for lane in lanes(mask) {
            self.tensor_copy_lane(w, c, lane);
        }
    }

    fn tensor_copy_lane(&mut self, w: &mut Warp, c: &TensorCopy, lane: usize) {
        let thread = w.index * 32 + lane;
        let Some(map) = self.read_map(w, c, lane) else {
            return;
        };
        let shared = w.address(&c.shared, lane) as u32;
        let stores = c.mbarrier.is_none();
        let problem = self.box_problem(w, c, lane, &map, shared);
        let executed = problem.is_none();
        if let Some(what) = problem {
            let place = Location::new(Space::Shared, shared.into());
            let kind = match shared.is_multiple_of(BOX_ALIGNMENT) {
                true => HazardKind::Crashed,
                false => HazardKind::Misaligned,
            };
            self.hazard(kind, thread, place, NONE, || what);
        }
        let corner = c.coordinates.iter();
        let corner = corner.map(|row| i64::from(w.regs.r32[*row as usize][lane] as i32));
        let copy = BoxCopy {
            lane,
            map: &map,
            corner: corner.collect(),
            shared,
            stores,
            reduce: c.reduce,
        };
        // After a hazard the bytes still arrive, so that the barrier completes.
        let words = if executed {
            self.copy_box(w, &copy)
        } else {
            Vec::new()
        };
        let bytes = copy.bytes();
        self.counters.global_load_bytes += u64::from(bytes) * u64::from(!stores);
        self.counters.global_store_bytes += u64::from(bytes) * u64::from(stores);
        if let Some(barrier) = &c.mbarrier {
            let at = w.address(barrier, lane) as u32;
            self.bulk_done(at, thread, bytes, words);
        } else {
            self.bulk_reads(thread, &words);
        }
    }

    /// Reads the tensor map of a copy.
    fn read_map(&mut self, w: &mut Warp, c: &TensorCopy, lane: usize) -> Option<TensorMap> {
        let at = w.address(&c.map, lane);
        let mut bytes = Vec::with_capacity(TENSOR_MAP_BYTES);
        for offset in (0..TENSOR_MAP_BYTES as u64).step_by(4) {
            let place = self.touch(w, c.map.area, at + offset, Touch::read(lane, 4))?;
            bytes.extend((self.get(w, place, 0, 4) as u32).to_le_bytes());
        }
        let map = TensorMap::decode(&bytes);
        if map.is_none() {
            self.halted = Some(Halt(Stop::IllegalOperand, "a copy without a tensor map"));
            let place = Location::new(Space::Global, at);
            self.hazard(
                HazardKind::Crashed,
                w.index * 32 + lane,
                place,
                NONE,
                || "a copy names 128 bytes that are no tensor map".to_owned(),
            );
        }
        map
    }

    /// Returns why a copy cannot be executed.
    fn box_problem(
        &self,
        w: &Warp,
        c: &TensorCopy,
        lane: usize,
        map: &TensorMap,
        shared: u32,
    ) -> Option<String> {
        if !shared.is_multiple_of(BOX_ALIGNMENT) {
            return Some(format!(
                "a box of a tensor begins at shared address {shared}, not a multiple of {BOX_ALIGNMENT}"
            ));
        }
        let (rank, have) = (map.sizes.len(), c.coordinates.len());
        if rank != have {
            return Some(format!(
                "{have} coordinates in a tensor of {rank} dimensions"
            ));
        }
        if map.interleave != 0 || pattern(map).is_none() {
            return Some(
                "interleaved tensor maps and swizzles of wide atoms are not executed".to_owned(),
            );
        }
        if c.multicast != NONE && w.regs.r32[c.multicast as usize][lane] & 0xffff != 1 {
            return Some("a multicast names blocks outside the cluster".to_owned());
        }
        if c.reduce.is_some() && reduced_type(map.element).is_none() {
            return Some("a reduction of this type of element does not exist".to_owned());
        }
        None
    }

    /// Copies the box; returns its words of shared memory.
    fn copy_box(&mut self, w: &mut Warp, copy: &BoxCopy<'_>) -> Vec<u32> {
        let counts = copy.counts();
        let width = copy.map.element.bytes();
        let rows: u32 = counts.iter().skip(1).product();
        let inner = counts.first().copied().unwrap_or_default();
        let swizzle = pattern(copy.map).unwrap_or(Swizzle::None);
        let per_word = (4 / width).max(1);
        let mut words = Vec::new();
        let mut index = vec![0; counts.len()];
        for row in 0..rows {
            let mut rest = row;
            for (place, count) in index.iter_mut().zip(&counts).skip(1) {
                (*place, rest) = (rest % count, rest / count);
            }
            let start = copy.shared + row * inner * width;
            for first in (0..inner).step_by(per_word as usize) {
                let linear = start + first * width;
                let elements = (first..first + per_word).map(|element| {
                    index[0] = element;
                    copy.address(&index)
                });
                let elements = elements.collect();
                let at = swizzle.apply(linear & !15, 0) | linear & 15;
                if self.copy_word(w, copy, &BoxWord { at, elements }) {
                    // Elements of eight bytes have two words.
                    words.extend(at / 4..at / 4 + width.div_ceil(4));
                }
            }
        }
        words
    }

    /// Copies the elements of one word, or one element of eight bytes; returns whether the word exists.
    fn copy_word(&mut self, w: &mut Warp, copy: &BoxCopy<'_>, word: &BoxWord) -> bool {
        let (lane, width) = (copy.lane, copy.map.element.bytes());
        let whole = width.max(4);
        let touch = match copy.stores {
            true => Touch::read(lane, whole),
            false => Touch {
                in_flight: true,
                ..Touch::write(lane, whole)
            },
        };
        let shared = self.touch(w, Area::Shared, word.at.into(), touch);
        let mask = if width == 8 {
            u64::MAX
        } else {
            (1 << (8 * width)) - 1
        };
        if copy.stores {
            let value = shared.map_or(0, |place| self.get(w, place, 0, whole));
            for (number, element) in (0..).zip(&word.elements) {
                if let Some(at) = element {
                    let part = value >> (8 * width * number) & mask;
                    self.store_element(w, copy, *at, part);
                }
            }
            return shared.is_some();
        }
        let mut value = 0;
        for (number, element) in (0..).zip(&word.elements) {
            let part = match element {
                None => copy.outside(),
                Some(at) => {
                    let place = self.touch(w, Area::Global, *at, Touch::read(lane, width));
                    place.map_or(0, |place| self.get(w, place, 0, width))
                }
            };
            value |= (part & mask) << (8 * width * number);
        }
        if let Some(place @ CheckedLocation::Shared(_)) = shared {
            self.put(w, place, 0, whole, value);
        }
        shared.is_some()
    }

    fn store_element(&mut self, w: &mut Warp, copy: &BoxCopy<'_>, at: u64, value: u64) {
        let width = copy.map.element.bytes();
        if let (Some(op), Some(ty)) = (copy.reduce, reduced_type(copy.map.element)) {
            self.reduce_element(w, copy.lane, BulkElement { op, ty, at, value });
            return;
        }
        if let Some(place) = self.touch(w, Area::Global, at, Touch::write(copy.lane, width)) {
            self.put(w, place, 0, width, value);
        }
    }
}

/// Returns the permutation of 16-byte chunks in shared memory; `None` for one that is not executed.
fn pattern(map: &TensorMap) -> Option<Swizzle> {
    match map.swizzle {
        0 => Some(Swizzle::None),
        1..=3 => Some(Swizzle::Rows(map.span())),
        _ => None,
    }
}

/// Returns the type of a reducing copy; `None` where there is none.
fn reduced_type(element: TensorElement) -> Option<AtomType> {
    Some(match element {
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
