//! Asynchronous copies: `cp.async` and `cp.async.bulk`.

use super::access::{CheckedLocation, Touch};
use super::async_stores::CopyTarget;
use super::atomics::BulkElement;
use super::cta::Cta;
use super::order::CopyDestination;
use super::phases::Delivery;
use super::rows::Kind;
use super::transfer::lanes;
use super::warp::Warp;
use crate::hazard::clock::copy_agent;
use crate::hazard::report::Location;
use crate::hazard::{HazardKind, Space};
use crate::lower::program::{Area, Bulk, CpAsync, NONE};
use crate::memory::Lookup;
use gpu_arithmetic::atomic::{AtomOp, AtomType};

/// A reducing bulk copy of one lane: addresses, size in bytes, and the operation on each element.
struct Reduction {
    /// State space of the destination.
    area: Area,
    /// Shared address of the `mbarrier` that counts the bytes; none for a bulk group.
    barrier: Option<u32>,
    to: u64,
    from: u64,
    bytes: u32,
    op: AtomOp,
    ty: AtomType,
}

/// Addresses and size of a bulk copy of one lane.
struct BulkPart {
    to: u64,
    from: u64,
    bytes: u32,
}

impl Cta<'_> {
    pub(super) fn copy_async(&mut self, w: &mut Warp, c: &CpAsync, mask: u32) {
        if self.copy_rows(w, c, mask) {
            return;
        }
        self.count(w, &c.from, mask, c.bytes, false);
        self.count(w, &c.to, mask, c.bytes, true);
        for lane in lanes(mask) {
            let thread = w.index * 32 + lane;
            let mut real = c.bytes;
            if c.source_bytes != NONE {
                real = w.regs.r32[c.source_bytes as usize][lane];
                // PTX ISA, `cp.async`: a source size above that of the copy is undefined behavior.
                if real > c.bytes {
                    let at = w.address(&c.from, lane);
                    self.hazard(
                        HazardKind::Crashed,
                        thread,
                        Location::new(Space::Global, at),
                        NONE,
                        || format!("cp.async reads {real} bytes into a copy of {}", c.bytes),
                    );
                    real = c.bytes;
                }
            }
            if c.ignore != NONE && w.regs.preds[c.ignore as usize] >> lane & 1 == 1 {
                real = 0;
            }
            let data = self.fetch(w, c, lane, real);
            let to = w.address(&c.to, lane);
            // The whole size is written: PTX zero-fills beyond the source size.
            let touch = Touch {
                in_flight: true,
                ..Touch::write(lane, c.bytes)
            };
            let Some(place) = self.touch(w, c.to.area, to, touch) else {
                continue;
            };
            for (i, word) in data.iter().take(c.bytes as usize / 4).enumerate() {
                self.put(w, place, i as u32 * 4, 4, u64::from(*word));
            }
            if let CheckedLocation::Shared(at) = place {
                let from = self.context.memory.find(w.address(&c.from, lane));
                let from = from.filter(|_| real > 0);
                self.note_copy(thread, at / 4, c.bytes / 4, from);
            }
        }
    }

    /// Executes copies that are whole or all zeros in each lane; otherwise returns `false` and
    /// changes nothing.
    fn copy_rows(&mut self, w: &mut Warp, c: &CpAsync, mask: u32) -> bool {
        let mut whole = mask;
        if c.source_bytes != NONE {
            for lane in lanes(mask) {
                match w.regs.r32[c.source_bytes as usize][lane] {
                    0 => whole &= !(1 << lane),
                    n if n == c.bytes => {}
                    _ => return false,
                }
            }
        }
        if c.ignore != NONE {
            whole &= !w.regs.preds[c.ignore as usize];
        }
        // Both rows are checked before anything is counted: the slow path starts from the
        // beginning.
        let Some(to) = self.row(w, &c.to, mask, c.bytes) else {
            return false;
        };
        let mut words = [[0; 32]; 4];
        let mut source = None;
        if whole != 0 {
            let Some(from) = self.row(w, &c.from, whole, c.bytes) else {
                return false;
            };
            self.count_row(&from, whole, c.bytes, false);
            words = self.read_row(w, &from, whole, c.bytes);
            source = from.allocation.map(|index| (index, from.at));
        }
        self.count_row(&to, mask, c.bytes, true);
        let kind = Kind {
            in_flight: true,
            ..Kind::write(c.bytes)
        };
        let done = self.write_row(w, &to, mask, kind, &mut words);
        if to.allocation.is_none() {
            for lane in lanes(done) {
                let first = (to.at[lane] / 4) as u32;
                let read = source.filter(|_| whole >> lane & 1 == 1);
                let from = read.map(|(index, at)| Lookup {
                    index,
                    offset: at[lane],
                });
                self.note_copy(w.index * 32 + lane, first, c.bytes / 4, from);
            }
        }
        true
    }

    /// Adds a copy to the thread's open group.
    fn note_copy(&mut self, thread: usize, first: u32, words: u32, from: Option<Lookup>) {
        let source = from.map(|place| self.source_of_copy(place, words * 4));
        let copies = &mut self.threads[thread].copies;
        if copies.is_empty() {
            copies.push(Vec::new());
        }
        if let Some(open) = copies.last_mut() {
            open.push(CopyDestination {
                first,
                words,
                source,
            });
        }
    }

    /// Returns the bytes that a copy reads; zeros beyond `real`.
    fn fetch(&mut self, w: &mut Warp, c: &CpAsync, lane: usize, real: u32) -> [u32; 4] {
        let mut data = [0; 4];
        if real == 0 {
            return data;
        }
        let from = w.address(&c.from, lane);
        if real == c.bytes {
            let Some(place) = self.touch(w, c.from.area, from, Touch::read(lane, real)) else {
                return data;
            };
            for (i, word) in data.iter_mut().take(real as usize / 4).enumerate() {
                *word = self.get(w, place, i as u32 * 4, 4) as u32;
            }
            return data;
        }
        // A partial copy goes byte by byte, because the other bytes may be out of bounds or
        // unwritten.
        for i in 0..real {
            let at = from + u64::from(i);
            if let Some(place) = self.touch(w, c.from.area, at, Touch::read(lane, 1)) {
                let byte = self.get(w, place, 0, 1) as u32;
                data[(i / 4) as usize] |= byte << (i % 4 * 8);
            }
        }
        data
    }

    pub(super) fn commit_group(&mut self, w: &Warp, mask: u32) {
        for lane in lanes(mask) {
            let copies = &mut self.threads[w.index * 32 + lane].copies;
            // A commit without copies makes an empty group (PTX ISA, `cp.async.commit_group`),
            // which a later `wait_group` counts.
            if copies.is_empty() {
                copies.push(Vec::new());
            }
            copies.push(Vec::new());
        }
    }

    /// Lets an `mbarrier` count all copies of a thread: those who wait for its phase see their words.
    pub(super) fn count_copies(&mut self, at: u32, thread: usize) {
        let copies = std::mem::take(&mut self.threads[thread].copies);
        if copies.iter().all(Vec::is_empty) || !self.context.checks.races {
            return;
        }
        let event = self.clocks.agent_segment(copy_agent(at));
        self.issuers[event.0 - self.clocks.threads] = thread;
        for copied in copies.into_iter().flatten() {
            if let Some(source) = &copied.source {
                self.check_source(thread, source, copied.words * 4);
            }
            for word in copied.first..copied.first + copied.words {
                self.shadow
                    .give_to_agent(word as usize, thread, event, false);
            }
        }
        if let Some(m) = self.mbarriers.get_mut(at) {
            self.clocks.publish(event, &mut m.current);
            self.clocks.publish(event, &mut m.own[0]);
        }
        // `cp.async.wait_group` makes them visible to the thread itself, too.
        let counted = &mut self.threads[thread].counted_copies;
        counted.retain(|(agent, _)| *agent != event.0);
        counted.push(event);
    }

    /// Waits until at most `left` committed groups are in flight; `NONE` waits for all copies.
    pub(super) fn wait_group(&mut self, w: &Warp, left: u32, mask: u32) {
        for lane in lanes(mask) {
            let thread = w.index * 32 + lane;
            let segment = self.clocks.segment[thread];
            for event in std::mem::take(&mut self.threads[thread].counted_copies) {
                self.clocks.learn(thread, event);
            }
            let mut copies = std::mem::take(&mut self.threads[thread].copies);
            // The last entry is the open group, which `wait_group` does not count.
            let keep = if left == NONE { 0 } else { left as usize + 1 };
            let done = copies.len().saturating_sub(keep);
            for copied in copies.drain(..done).flatten() {
                if !self.context.checks.races {
                    continue;
                }
                if let Some(source) = &copied.source {
                    self.check_source(thread, source, copied.words * 4);
                }
                // The copied words now count as writes of this thread in its current segment.
                for word in copied.first..copied.first + copied.words {
                    self.shadow.complete_copy(word as usize, thread, segment);
                }
            }
            self.threads[thread].copies = copies;
        }
    }

    /// Executes `cp.reduce.async.bulk` of one lane, from shared memory to global memory or that of a
    /// block of the cluster.
    fn bulk_reduce(&mut self, w: &mut Warp, lane: usize, copy: Reduction) {
        let thread = w.index * 32 + lane;
        let width = copy.ty.bytes();
        let mut words = Vec::new();
        for at in (0..u64::from(copy.bytes)).step_by(width as usize) {
            let read = Touch::read(lane, width);
            let Some(source) = self.touch(w, Area::Shared, copy.from + at, read) else {
                break;
            };
            if let CheckedLocation::Shared(at) = source {
                words.extend(at / 4..=(at + width - 1) / 4);
            }
            let element = BulkElement {
                op: copy.op,
                ty: copy.ty,
                at: copy.to + at,
                value: self.get(w, source, 0, width),
            };
            let touch = self.reduce_element(w, lane, copy.area, element);
            if copy.area == Area::Global {
                self.bulk_writes(thread, copy.to + at, touch);
            }
        }
        // Elements of 2 bytes list their word twice.
        words.dedup();
        let Some(at) = copy.barrier else {
            self.bulk_reads(thread, &words);
            return;
        };
        self.check_proxy(thread, &words);
        let done = Delivery {
            thread,
            bytes: copy.bytes,
            sources: self.sources_of(&words),
            ..Delivery::default()
        };
        self.bulk_done(at, done);
    }

    /// Executes `cp.async.bulk`: lanes copy one after the other.
    pub(super) fn bulk(&mut self, w: &mut Warp, b: &Bulk, mask: u32) {
        for lane in lanes(mask) {
            let bytes = w.regs.r32[b.bytes as usize][lane];
            let (to, from) = (w.address(&b.to, lane), w.address(&b.from, lane));
            let thread = w.index * 32 + lane;
            if (u64::from(bytes) | to | from) & 15 != 0 {
                self.hazard(HazardKind::Misaligned, thread, Location::new(Space::Global, from), NONE, || {
                    format!("cp.async.bulk needs addresses and a size that are multiples of 16 (to 0x{to:x}, from 0x{from:x}, {bytes} bytes)")
                });
            }
            if let Some((op, ty)) = b.reduce {
                let reduction = Reduction {
                    area: b.to.area,
                    barrier: b.mbarrier.map(|at| w.address(&at, lane) as u32),
                    to: to & !15,
                    from: from & !15,
                    bytes,
                    op,
                    ty,
                };
                self.bulk_reduce(w, lane, reduction);
                continue;
            }
            let flight = b.to.area != Area::Global;
            if self.trace.is_some() && !(flight && b.from.area == Area::Shared) {
                let start = if flight { from } else { to };
                let range = start..start.saturating_add(bytes.into());
                self.trace_bulk(std::iter::once(range), !flight);
            }
            match (b.from.area, b.to.area) {
                (_, Area::Global) => self.counters.global_store_bytes += u64::from(bytes),
                (Area::Global, _) => self.counters.global_load_bytes += u64::from(bytes),
                _ => {}
            }
            let mut part = BulkPart {
                to: to & !3,
                from: from & !3,
                bytes,
            };
            let Some(barrier) = &b.mbarrier else {
                let (_, sources) = self.copy_part(w, b, lane, &part);
                if !flight {
                    self.bulk_reads(thread, &sources);
                }
                continue;
            };
            let target = CopyTarget {
                to: part.to as u32,
                barrier: w.address(barrier, lane) as u32,
                multicast: self.multicast(w, b.multicast, lane),
                pair: false,
            };
            for (to, at) in self.copy_targets(thread, target) {
                part.to = to.into();
                let range = match b.from.area {
                    Area::Global => self.bulk_range(thread, part.from, bytes.into()),
                    _ => None,
                };
                let (words, read) = self.copy_part(w, b, lane, &part);
                self.check_proxy(thread, &read);
                let sources = self.sources_of(&read);
                let done = Delivery {
                    thread,
                    bytes,
                    words,
                    ranges: range.into_iter().collect(),
                    sources,
                    ..Delivery::default()
                };
                self.bulk_done(at, done);
            }
        }
    }

    /// Copies the bytes of one lane to one destination. Returns the words of shared memory that it
    /// wrote, and those that it read.
    fn copy_part(
        &mut self,
        w: &mut Warp,
        b: &Bulk,
        lane: usize,
        part: &BulkPart,
    ) -> (Vec<u32>, Vec<u32>) {
        let (mut written, mut read) = (Vec::new(), Vec::new());
        let mask = match b.byte_mask {
            NONE => u32::MAX,
            row => w.regs.r32[row as usize][lane],
        };
        // After a hazard the copy continues with zeros, so that its barrier still completes.
        let mut from = Some(part.from);
        for (i, bytes) in masked_pieces(part.bytes, mask) {
            let touch = Touch::read(lane, bytes);
            let source = from.and_then(|at| self.touch(w, b.from.area, at + i, touch));
            if source.is_none() {
                from = None;
            }
            let value = source.map_or(0, |s| self.get(w, s, 0, bytes));
            let touch = Touch {
                in_flight: b.to.area != Area::Global,
                ..Touch::write(lane, bytes)
            };
            let Some(place) = self.touch(w, b.to.area, part.to + i, touch) else {
                break;
            };
            self.put(w, place, 0, bytes, value);
            if b.to.area == Area::Global {
                self.bulk_writes(w.index * 32 + lane, part.to + i, touch);
            }
            // The copy owns these words of shared memory until it completes.
            if let CheckedLocation::Shared(at) = place {
                written.push(at / 4);
            }
            if let Some(CheckedLocation::Shared(at)) = source {
                read.push(at / 4);
            }
        }
        // Bytes of one word list it more than once.
        read.dedup();
        (written, read)
    }
}

/// Returns the bytes that a bulk copy moves at once, as offset and size: words, and single bytes where the mask of each
/// 16 bytes leaves others of their word out.
fn masked_pieces(bytes: u32, mask: u32) -> impl Iterator<Item = (u64, u32)> {
    (0..bytes).step_by(4).flat_map(move |at| {
        let set = mask >> (at % 16) & 15;
        let (count, width) = if set == 15 { (1, 4) } else { (4, 1) };
        let is_set = move |n: &u32| width == 4 || set >> n & 1 == 1;
        (0..count)
            .filter(is_set)
            .map(move |n| (u64::from(at + n), width))
    })
}
