//! Global memory that must not change: the operands of `ld.global.nc`, and the source of a
//! `cp.async` until its wait.
//!
//! A read through the non-coherent cache may return the contents from before the launch, whatever
//! orders it after a write (PTX ISA 9.0, 9.7.9.8: the memory is read-only for the kernel). The
//! executor copies a `cp.async` at once. To find a store that comes too early, it compares the last
//! write of each source word at the wait with that at the copy.

use super::access::{split, word_mask};
use super::cta::Cta;
use super::rows::Row;
use super::transfer::lanes;
use super::warp::Warp;
use crate::hazard::report::Location;
use crate::hazard::shadow::{Conflict, Stamp};
use crate::hazard::{HazardKind, Space};
use crate::lower::program::{Area, Mem};
use crate::memory::Lookup;
use gpu_tensor_map::TENSOR_MAP_BYTES;

/// Words of the widest load.
pub(super) const MAX_LOAD_WORDS: usize = 8;

/// The last write to a word in this launch: its stamp and block.
pub(super) type Written = Option<(Stamp, u32)>;

/// Source of an asynchronous copy, with its last writes at issue.
#[derive(Debug, Clone)]
pub(super) struct Source {
    place: Lookup,
    pc: u32,
    /// `None` where the launch had not written to the buffer.
    before: Option<Box<[Written; MAX_LOAD_WORDS]>>,
}

/// Range of global memory that a bulk copy reads, with its last writes at issue.
#[derive(Debug, Clone)]
pub(super) struct BulkRange {
    at: u64,
    bytes: u64,
    pc: u32,
    /// By piece of the range; none where the launch had not written to the buffer.
    before: Vec<[Written; MAX_LOAD_WORDS]>,
}

/// Bytes of a piece of a range.
pub(super) const PIECE_BYTES: u32 = MAX_LOAD_WORDS as u32 * 4;

impl Cta<'_> {
    /// Returns a range that a bulk copy reads from now on, after it checked its proxy.
    pub(super) fn bulk_range(&mut self, thread: usize, at: u64, bytes: u64) -> Option<BulkRange> {
        if !self.context.checks.races || self.context.skip_unless != 0 {
            return None;
        }
        let before = self.writes_of_range(at, bytes).unwrap_or_default();
        self.check_global_proxy(thread, at, &before);
        Some(BulkRange {
            at,
            bytes,
            pc: self.pc,
            before,
        })
    }

    /// Returns the tensor map of a copy as a range that it reads from now on; `None` where it is a parameter, which nobody
    /// changes.
    pub(super) fn map_range(&self, at: u64) -> Option<BulkRange> {
        let checked = self.context.checks.races && self.context.skip_unless == 0;
        if !checked || split(at).0 != Area::Global {
            return None;
        }
        let bytes = TENSOR_MAP_BYTES as u64;
        Some(BulkRange {
            at,
            bytes,
            pc: self.pc,
            before: self.writes_of_range(at, bytes).unwrap_or_default(),
        })
    }

    /// Returns the last writes of this launch to the pieces of a range; `None` where the buffer
    /// holds what the host wrote.
    pub(super) fn writes_of_range(
        &self,
        at: u64,
        bytes: u64,
    ) -> Option<Vec<[Written; MAX_LOAD_WORDS]>> {
        let pieces = (0..bytes).step_by(PIECE_BYTES as usize);
        let writes = pieces.map(|offset| {
            let found = self.context.memory.find(at + offset)?;
            self.last_writes(found, PIECE_BYTES.min((bytes - offset) as u32))
        });
        writes.collect()
    }

    /// Reports writes to a range between the issue and the completion of the copy that reads it.
    pub(super) fn check_range(&mut self, thread: usize, range: &BulkRange) {
        let Some(now) = self.writes_of_range(range.at, range.bytes) else {
            return;
        };
        let before = range.before.iter().copied();
        let before = before.chain(std::iter::repeat([None; MAX_LOAD_WORDS]));
        for (place, (now, before)) in (range.at..)
            .step_by(PIECE_BYTES as usize)
            .zip(now.iter().zip(before))
        {
            let changed = now.iter().zip(&before).find(|(now, before)| now != before);
            if let Some((Some((stamp, _)), _)) = changed {
                let by = (stamp.pc, stamp.thread.into());
                let place = Location::new(Space::Global, place);
                self.written_early(thread, range.pc, by, place);
                return;
            }
        }
    }

    /// Reports a write, by an instruction and thread, to the source of a copy before it was
    /// complete. The hazard is attributed to the store, which is the later of the two accesses.
    pub(super) fn written_early(
        &mut self,
        thread: usize,
        copy: u32,
        by: (u32, usize),
        place: Location,
    ) {
        let conflict = Conflict {
            pc: copy,
            thread,
            block: None,
            was_write: false,
            in_flight: true,
        };
        let here = std::mem::replace(&mut self.pc, by.0);
        self.race(by.1, place, true, conflict);
        self.pc = here;
    }

    /// Returns the last writes of this launch to the words of an access; `None` where the buffer
    /// holds what the host wrote.
    pub(super) fn last_writes(
        &self,
        found: Lookup,
        bytes: u32,
    ) -> Option<[Written; MAX_LOAD_WORDS]> {
        let allocation = &self.context.memory.allocations[found.index];
        // Most sources are inputs: they need no search of the shadow.
        if allocation.init.is_as_uploaded() {
            return None;
        }
        let first = (found.offset / 4) as usize;
        let words = bytes.div_ceil(4).min(MAX_LOAD_WORDS as u32) as usize;
        let mask = word_mask(found.offset, bytes);
        // A piece of a bulk copy may leave the buffer, which is reported where it is copied.
        let end = allocation.bytes.div_ceil(4) as usize;
        let mut all = [None; MAX_LOAD_WORDS];
        for (word, written) in (first..end.min(first + words)).zip(&mut all) {
            let open = allocation.shadow.open(word);
            let key = allocation.base + word as u64 * 4;
            *written = open.last_write(word, mask, self.context.launch, key, &self.lists);
        }
        Some(all)
    }

    /// Reports whether a row is in a buffer that a kernel may have written to.
    #[inline]
    pub(super) fn may_have_changed(&self, row: &Row) -> bool {
        let memory = self.context.memory;
        let allocation = row.allocation.and_then(|at| memory.allocations.get(at));
        allocation.is_some_and(|a| !a.init.is_as_uploaded())
    }

    /// Reports lanes that read words through the non-coherent cache that this launch has written.
    pub(super) fn read_only_load(&mut self, w: &Warp, m: &Mem, mask: u32) {
        if !self.context.checks.races {
            return;
        }
        let bytes = m.width * m.data.len() as u32;
        for lane in lanes(mask) {
            let at = w.address(&m.at, lane);
            let global = m.at.area == Area::Global || split(at).0 == Area::Global;
            let found = self.context.memory.find(at).filter(|_| global);
            let writes = found.and_then(|found| self.last_writes(found, bytes));
            if let Some((stamp, _)) = writes.iter().flatten().flatten().next() {
                let thread = w.index * 32 + lane;
                self.hazard(
                    HazardKind::Race,
                    thread,
                    Location::new(Space::Global, at),
                    stamp.pc,
                    || {
                        "a read through the non-coherent cache (`__ldg`, `const __restrict__`) of \
                     memory that the same launch writes: it may return the old value"
                            .to_owned()
                    },
                );
            }
        }
    }

    /// Returns the source of a copy that is issued now.
    pub(super) fn source_of_copy(&self, place: Lookup, bytes: u32) -> Source {
        let checked = self.context.checks.races;
        let before = checked.then(|| self.last_writes(place, bytes)).flatten();
        Source {
            place,
            pc: self.pc,
            before: before.map(Box::new),
        }
    }

    /// Reports a write to the source of a copy between its issue and its wait.
    pub(super) fn check_source(&mut self, thread: usize, source: &Source, bytes: u32) {
        let Some(now) = self.last_writes(source.place, bytes) else {
            return;
        };
        let before = source.before.as_deref().copied().unwrap_or_default();
        let changed = now.iter().zip(&before).find(|(now, before)| now != before);
        if let Some((Some((stamp, _)), _)) = changed {
            let base = self.context.memory.allocations[source.place.index].base;
            let place = Location::new(Space::Global, base + source.place.offset);
            let by = (stamp.pc, stamp.thread.into());
            self.written_early(thread, source.pc, by, place);
        }
    }
}
