//! `malloc` and `free` in kernels.

use super::access::Touch;
use super::cta::Cta;
use super::warp::Warp;
use crate::hazard::report::Location;
use crate::hazard::{HazardKind, Space};
use crate::lower::program::{External, NONE};
use crate::memory::heap::BadFree;
use crate::memory::{Allocation, Lookup};

impl Cta<'_> {
    /// The address of a new block, unwritten; 0 where the heap has no room.
    pub(super) fn allocate(&mut self, w: &Warp, call: &External, lane: usize, align: u64) -> u64 {
        self.take_block(self.argument(w, call, 0, lane), align)
    }

    /// Takes a block from the heap, unwritten; 0 where it has no room.
    pub(super) fn take_block(&mut self, bytes: u64, align: u64) -> u64 {
        let context = self.context;
        let Some(heap) = &context.memory.heap else {
            return 0;
        };
        if !align.is_power_of_two() {
            return 0;
        }
        let Some(at) = heap.blocks().take(bytes, align) else {
            return 0;
        };
        let allocation = &context.memory.allocations[heap.buffer.0];
        // What was there is another block's: who gave that back is not seen again.
        let words = (at / 4) as usize..(at + bytes).div_ceil(4) as usize;
        let mut word = words.start;
        while word < words.end {
            let mut open = allocation.shadow.open(word);
            context.save(&mut open, allocation);
            let first = word;
            while word < words.end && open.holds(word) {
                word += 1;
            }
            open.forget_words(first..word);
        }
        allocation.init.clear_range(at..at + bytes);
        self.version += 1;
        allocation.base + at
    }

    /// Gives a block back; one that is none is a hazard.
    pub(super) fn free(&mut self, w: &Warp, call: &External, lane: usize) {
        self.give_block(w, lane, self.argument(w, call, 0, lane));
    }

    /// Gives the block of an address back to the heap.
    pub(super) fn give_block(&mut self, w: &Warp, lane: usize, address: u64) {
        let context = self.context;
        if address == 0 {
            return;
        }
        let heap = context.memory.heap.as_ref();
        let offset = heap.and_then(|heap| {
            let base = context.memory.address(heap.buffer);
            Some((heap, address.checked_sub(base)?))
        });
        let freed = match offset {
            Some((heap, offset)) => heap.blocks().give_back(offset),
            None => Err(BadFree::Foreign),
        };
        // A thread may repeat `malloc` until another one frees: this is the progress that it waits
        // for.
        self.version += 1;
        let Err(why) = freed else { return };
        let (thread, place) = (Self::thread(w, lane), Location::new(Space::Global, address));
        self.hazard(HazardKind::OutOfBounds, thread, place, NONE, || match why {
            BadFree::Twice => format!("`free` of 0x{address:x}, which was freed already"),
            BadFree::Foreign => {
                format!("`free` of 0x{address:x}, which `malloc` in a kernel did not return")
            }
        });
    }

    /// Reports an access to the heap that is not inside a block; `true` for one that is.
    pub(super) fn in_block(
        &mut self,
        w: &Warp,
        allocation: &Allocation,
        found: Lookup,
        t: &Touch,
    ) -> bool {
        let Some(heap) = &self.context.memory.heap else {
            return true;
        };
        let blocks = heap.blocks();
        if blocks.holds(found.offset, t.bytes.into()) {
            return true;
        }
        let before = blocks.before(found.offset);
        let freed = blocks.freed_at(found.offset);
        drop(blocks);
        let act = if t.write { "write" } else { "read" };
        let bytes = t.bytes;
        let place = Location::new(Space::Global, allocation.base + found.offset);
        let thread = Self::thread(w, t.lane);
        self.hazard(HazardKind::OutOfBounds, thread, place, NONE, || {
            match (freed, before) {
                (Some(size), _) => {
                    format!("a {act} of {bytes} bytes in a block of {size} bytes after its `free`")
                }
                (None, Some((at, size))) => format!(
                    "a {act} of {bytes} bytes at byte {} of a block of {size} bytes from `malloc`",
                    found.offset - at
                ),
                (None, None) => {
                    format!("a {act} of {bytes} bytes in the heap, where no block is in use")
                }
            }
        });
        false
    }
}
