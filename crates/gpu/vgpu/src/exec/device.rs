//! Global memory accesses of one lane.

use super::access::{CheckedLocation, Touch, word_mask};
use super::cta::Cta;
use super::warp::Warp;
use super::watch::Access as Watched;
use crate::hazard::global::{GlobalView, OpenChunk};
use crate::hazard::report::Location;
use crate::hazard::shadow::{Access, Conflict, Strength};
use crate::hazard::{HazardKind, Space};
use crate::lower::program::{NONE, Op};
use crate::memory::{Allocation, Lookup};
use ptx::skeleton::UNUSED;

/// Addresses below this are offsets from a null pointer.
const NULL_BYTES: u64 = 1 << 16;

/// Size and kind of an access that a launch may report.
#[derive(Debug, Clone, Copy)]
pub(super) struct AccessKind {
    pub(super) bytes: u32,
    pub(super) write: bool,
    /// It is atomic towards every thread of the device.
    pub(super) atomic: bool,
}

impl Cta<'_> {
    pub(super) fn touch_global(&mut self, w: &Warp, at: u64, t: Touch) -> Option<CheckedLocation> {
        let memory = self.context.memory;
        let allocations = &memory.allocations;
        let mut hit = None;
        // Consecutive accesses mostly hit one allocation: the last one is tried before the search.
        if let Some(a) = allocations.get(self.last) {
            let offset = at.wrapping_sub(a.base);
            if offset < a.bytes {
                hit = Some(Lookup {
                    index: self.last,
                    offset,
                });
            }
        }
        let hit = hit.or_else(|| memory.find(at));
        let Some(found) =
            hit.filter(|h| h.offset + u64::from(t.bytes) <= allocations[h.index].bytes)
        else {
            self.global_out_of_bounds(w, at, &t);
            return None;
        };
        self.last = found.index;
        if found.index == self.context.heap
            && !self.in_block(w, &allocations[found.index], found, &t)
        {
            return None;
        }
        if !self.aligned(w, Space::Global, at, &t) {
            if t.write {
                self.written_askew(&allocations[found.index], found.offset, t.bytes);
            }
            return None;
        }
        let kind = AccessKind {
            bytes: t.bytes,
            write: t.write,
            atomic: (t.strength == Strength::Strong || t.sets_flag) && !t.narrow,
        };
        self.note_access(found.index, [found.offset], kind);
        if t.write && t.needs_written {
            // An atomic update reads its operand, which another block may have written.
            let read = AccessKind {
                write: false,
                ..kind
            };
            self.note_access(found.index, [found.offset], read);
        }
        let allocation = &allocations[found.index];
        let mask = word_mask(found.offset, t.bytes);
        let first = (found.offset / 4) as usize;
        let words = t.bytes.div_ceil(4) as usize;
        let thread = Self::thread(w, t.lane);
        for word in first..first + words {
            let written = allocation.init.has_word(word, mask);
            if t.needs_written && self.context.checks.uninitialized && !written {
                self.unwritten_global(thread, word, allocation);
            }
            let races = self.context.checks.races;
            // A word that many blocks only read needs no lock: one more reader changes nothing.
            if races && (t.write || !allocation.shadow.are_quiet([word], 1, self.context.launch)) {
                self.order_global(allocation, (word, mask), (thread, at), &t);
            }
            // Only after the old state is saved.
            if t.write {
                allocation.init.mark_word(word, mask);
            }
        }
        Some(CheckedLocation::Global(found))
    }

    /// Checks an access to some bytes of a word, by a thread at an address, and records it.
    #[inline]
    pub(super) fn order_global(
        &mut self,
        allocation: &Allocation,
        (word, mask): (usize, u32),
        (thread, at): (usize, u64),
        t: &Touch,
    ) {
        let access = self.access_of(thread, t);
        let mut open = allocation.shadow.open(word);
        if t.write {
            self.context.save(&mut open, allocation);
        }
        let found = self.global_access(&mut open, allocation, word, mask, &access);
        drop(open);
        if let Some(c) = found {
            self.race(thread, Location::new(Space::Global, at), t.write, c);
        }
    }

    /// Records accesses at these offsets of an allocation, if the launch is watched.
    #[inline]
    pub(super) fn note_access(
        &mut self,
        allocation: usize,
        offsets: impl IntoIterator<Item = u64>,
        kind: AccessKind,
    ) {
        let Some(watch) = self.context.watch else {
            return;
        };
        let inst = &self.context.program.code[self.pc as usize];
        // The text that is printed is not data of the kernel.
        if matches!(inst.op, Op::External(_)) {
            return;
        }
        // The result of an atomic update decides nothing in a slice.
        let decides = inst.keep & UNUSED == 0 && !matches!(inst.op, Op::Atom(_));
        for at in offsets {
            let access = Watched {
                allocation,
                bytes: at..at + u64::from(kind.bytes),
                write: kind.write,
                decides,
                atomic: kind.atomic,
            };
            let rank = self.context.cluster.rank(self.running * 32);
            if let Some(accesses) = self.accesses.get_mut(rank) {
                accesses.record(watch, access);
            }
        }
    }

    /// Marks the bytes of a misaligned store as written, so that a later load of them is not
    /// reported as a second mistake.
    fn written_askew(&self, allocation: &Allocation, offset: u64, bytes: u32) {
        let bytes = offset..offset + u64::from(bytes);
        // `save` covers a whole chunk of words: the first and the last word reach all chunks of the
        // store.
        for word in [bytes.start, bytes.end - 1].map(|byte| (byte / 4) as usize) {
            if self.context.saves {
                self.context
                    .save(&mut allocation.shadow.open(word), allocation);
            }
        }
        bytes.for_each(|byte| {
            allocation
                .init
                .mark_word((byte / 4) as usize, 1 << (byte % 4));
        });
    }

    /// Checks an access to the bytes `mask` of a global word.
    pub(super) fn global_access(
        &mut self,
        open: &mut OpenChunk<'_>,
        allocation: &Allocation,
        word: usize,
        mask: u32,
        access: &Access,
    ) -> Option<Conflict> {
        let context = self.context;
        let mut view = GlobalView {
            launch: context.launch,
            block: self.block,
            clocks: &self.clocks,
            lists: &mut self.lists,
            base: allocation.base,
            serialized: context.serialized,
            can_record: context.can_record,
            conflict: false,
            needs_history: false,
        };
        let found = open.access(word, mask, access, &mut view);
        if view.conflict {
            context.report_conflict();
        }
        if view.needs_history {
            context.request_history(allocation.base + word as u64 * 4);
        }
        found
    }

    #[cold]
    fn global_out_of_bounds(&mut self, w: &Warp, at: u64, t: &Touch) {
        let memory = self.context.memory;
        let act = if t.write { "write" } else { "read" };
        let bytes = t.bytes;
        let gone = memory.holder(at).filter(|near| near.freed);
        let context = self.context;
        let meant = gone.or_else(|| context.meant(self.pc));
        self.hazard(
            HazardKind::OutOfBounds,
            Self::thread(w, t.lane),
            Location::new(Space::Global, at),
            NONE,
            || match meant.or_else(|| memory.nearest(at)) {
                Some(a) if a.freed => format!(
                    "a {act} of {bytes} bytes at byte {} of `{}`, which was freed",
                    at.wrapping_sub(a.base) as i64,
                    a.name
                ),
                Some(a) => format!(
                    "a {act} of {bytes} bytes at byte {} of `{}`, which has {} bytes",
                    at.wrapping_sub(a.base) as i64,
                    a.name,
                    a.bytes
                ),
                None if at < NULL_BYTES => format!(
                    "a {act} of {bytes} bytes at address 0x{at:x}, outside all buffers: a null pointer"
                ),
                None => format!(
                    "a {act} of {bytes} bytes at address 0x{at:x}, outside all buffers and far from \
                     them, as a pointer to host memory is"
                ),
            },
        );
    }
}
