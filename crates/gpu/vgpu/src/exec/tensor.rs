//! Bulk copies of boxes of a tensor. As other bulk copies they copy at once, and complete at the next poll
//! of their `mbarrier` or wait for their group.

use super::access::{CheckedLocation, Touch};
use super::async_stores::CopyTarget;
use super::atomics::BulkElement;
use super::cta::Cta;
use super::phases::Delivery;
use super::stop::{Halt, Stop};
use super::transfer::lanes;
use super::unchanged::BulkRange;
use super::warp::Warp;
use crate::hazard::report::Location;
use crate::hazard::{HazardKind, Space};
use crate::lower::program::{Area, NONE, TensorCopy};
use crate::tensor_box::{Chunk, CopyMode, TensorBox};
use gpu_arithmetic::atomic::AtomOp;
use gpu_tensor_map::{TENSOR_MAP_BYTES, TensorMap};
use std::ops::Range;

/// The copy of one lane.
struct BoxCopy<'m> {
    lane: usize,
    place: TensorBox<'m>,
    stores: bool,
    reduce: Option<AtomOp>,
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
        let corner = c.coordinates.iter();
        let corner = corner.map(|row| i64::from(w.regs.r32[*row as usize][lane] as i32));
        let copy = BoxCopy {
            lane,
            place: TensorBox {
                map: &map,
                mode: copy_mode(w, c, map.sizes.len(), lane),
                corner: corner.collect(),
                shared,
            },
            stores,
            reduce: c.reduce,
        };
        let problem = box_problem(c, &copy);
        let executed = problem.is_none();
        if let Some(what) = problem {
            let place = Location::new(Space::Shared, shared.into());
            let kind = match copy.place.is_aligned() {
                true => HazardKind::Crashed,
                false => HazardKind::Misaligned,
            };
            self.hazard(kind, thread, place, NONE, || what);
        }
        let bytes = copy.place.bytes();
        self.counters.global_load_bytes += u64::from(bytes) * u64::from(!stores);
        self.counters.global_store_bytes += u64::from(bytes) * u64::from(stores);
        if self.trace.is_some() && executed {
            let chunks: Vec<Chunk> = copy.place.chunks().collect();
            self.trace_bulk(chunks.iter().map(Chunk::range), stores);
        }
        let Some(barrier) = &c.mbarrier else {
            let words = match executed {
                true => self.copy_box(w, &copy),
                false => Vec::new(),
            };
            let used = self.map_range(w.address(&c.map, lane));
            self.bulk_map(thread, used);
            return self.bulk_reads(thread, &words);
        };
        let target = CopyTarget {
            to: shared,
            barrier: w.address(barrier, lane) as u32,
            multicast: self.multicast(w, c.multicast, lane),
            pair: c.pair,
        };
        let mut copy = copy;
        for (to, at) in self.copy_targets(thread, target) {
            copy.place.shared = to;
            let mut ranges = match executed {
                true => self.box_ranges(thread, &copy),
                false => Vec::new(),
            };
            ranges.extend(self.map_range(w.address(&c.map, lane)));
            // After a hazard the bytes still arrive, so that the barrier completes.
            let words = match executed {
                true => self.copy_box(w, &copy),
                false => Vec::new(),
            };
            let done = Delivery {
                thread,
                bytes,
                words,
                ranges,
                ..Delivery::default()
            };
            self.bulk_done(at, done);
        }
    }

    /// Returns the ranges of global memory that a box covers, one for consecutive chunks.
    fn box_ranges(&mut self, thread: usize, copy: &BoxCopy<'_>) -> Vec<BulkRange> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for range in copy.place.chunks().map(|chunk| chunk.range()) {
            match ranges.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ if range.is_empty() => {}
                _ => ranges.push(range),
            }
        }
        let ranges = ranges.into_iter();
        let ranges = ranges.filter_map(|range| {
            self.bulk_range(thread, range.start, range.end.wrapping_sub(range.start))
        });
        ranges.collect()
    }

    /// Reads the tensor map of a copy.
    fn read_map(&mut self, w: &mut Warp, c: &TensorCopy, lane: usize) -> Option<TensorMap> {
        let at = w.address(&c.map, lane);
        self.check_map(w.index * 32 + lane, at);
        let mut bytes = Vec::with_capacity(TENSOR_MAP_BYTES);
        for offset in (0..TENSOR_MAP_BYTES as u64).step_by(4) {
            let place = self.touch(w, c.map.area, at + offset, Touch::read(lane, 4))?;
            bytes.extend((self.get(w, place, 0, 4) as u32).to_le_bytes());
        }
        match TensorMap::decode(&bytes) {
            Ok(map) => Some(map),
            Err(why) => {
                self.halted = Some(Halt(Stop::IllegalOperand, "a copy without a tensor map"));
                let (place, thread) = (Location::new(Space::Global, at), w.index * 32 + lane);
                self.hazard(HazardKind::Crashed, thread, place, NONE, || {
                    format!("a copy cannot use its tensor map: {why}")
                });
                None
            }
        }
    }

    /// Copies the box; returns its words of shared memory.
    fn copy_box(&mut self, w: &mut Warp, copy: &BoxCopy<'_>) -> Vec<u32> {
        // Elements of eight bytes have two words.
        let whole = copy.place.map.element.bytes().max(4);
        let mut words = Vec::new();
        for chunk in copy.place.chunks() {
            for offset in (0..chunk.bytes).step_by(whole as usize) {
                if self.copy_word(w, copy, &chunk, offset) {
                    let first = (chunk.shared + offset) / 4;
                    words.extend(first..first + whole / 4);
                }
            }
        }
        words
    }

    /// Copies the elements of one word of a chunk, or one element of eight bytes; returns whether the word
    /// exists.
    fn copy_word(&mut self, w: &mut Warp, copy: &BoxCopy<'_>, chunk: &Chunk, offset: u32) -> bool {
        let (lane, width) = (copy.lane, copy.place.map.element.bytes());
        let whole = width.max(4);
        let touch = match copy.stores {
            true => Touch::read(lane, whole),
            false => Touch {
                in_flight: true,
                ..Touch::write(lane, whole)
            },
        };
        let at = u64::from(chunk.shared + offset);
        // Only a destination may be in another block of the cluster: the source of a store is
        // `.shared::cta` (PTX ISA, `cp.async.bulk.tensor`).
        let area = if copy.stores {
            Area::Shared
        } else {
            Area::Cluster
        };
        let shared = self.touch(w, area, at, touch);
        let mask = u64::MAX >> (64 - 8 * width);
        let elements = (offset..offset + whole).step_by(width as usize);
        if copy.stores {
            let value = shared.map_or(0, |place| self.get(w, place, 0, whole));
            let thread = w.index * 32 + lane;
            for element in elements.filter(|element| chunk.inside.contains(element)) {
                let part = value >> (8 * (element - offset)) & mask;
                let at = chunk.global.wrapping_add(element.into());
                let touch = self.store_element(w, copy, at, part);
                self.bulk_writes(thread, at, touch);
            }
            return shared.is_some();
        }
        let mut value = 0;
        for element in elements {
            let part = if chunk.inside.contains(&element) {
                let at = chunk.global.wrapping_add(element.into());
                let place = self.touch(w, Area::Global, at, Touch::read(lane, width));
                place.map_or(0, |place| self.get(w, place, 0, width))
            } else {
                copy.place.outside()
            };
            value |= (part & mask) << (8 * (element - offset));
        }
        if let Some(place @ CheckedLocation::Shared(_)) = shared {
            self.put(w, place, 0, whole, value);
        }
        shared.is_some()
    }

    /// Stores or reduces an element; returns the access.
    fn store_element(&mut self, w: &mut Warp, copy: &BoxCopy<'_>, at: u64, value: u64) -> Touch {
        let width = copy.place.map.element.bytes();
        if let (Some(op), Some(ty)) = (copy.reduce, copy.place.reduced_type()) {
            let element = BulkElement { op, ty, at, value };
            return self.reduce_element(w, copy.lane, Area::Global, element);
        }
        let touch = Touch::write(copy.lane, width);
        if let Some(place) = self.touch(w, Area::Global, at, touch) {
            self.put(w, place, 0, width, value);
        }
        touch
    }
}

/// Returns the mode of a copy with the values of a lane.
fn copy_mode(w: &Warp, c: &TensorCopy, rank: usize, lane: usize) -> CopyMode {
    let mask = (1 << CopyMode::offset_bits(rank)) - 1;
    let value = |row: &u32| w.regs.r32[*row as usize][lane] & mask;
    c.mode.with_offsets(|rows| rows.iter().map(value).collect())
}

/// Returns why a copy cannot be executed.
fn box_problem(c: &TensorCopy, copy: &BoxCopy<'_>) -> Option<String> {
    let problem = copy.place.problem();
    if problem.is_some() {
        return problem;
    }
    if copy.stores && copy.place.map.element.is_padded() {
        return Some("stores of padded elements are not executed".to_owned());
    }
    if c.reduce.is_some() && copy.place.reduced_type().is_none() {
        return Some("a reduction of this type of element does not exist".to_owned());
    }
    None
}
