//! Accesses of a whole warp: one check of all addresses, then word by word without calls where the
//! epoch shows that an access is ordered.
//!
//! What is out of the ordinary goes lane by lane through [`Cta::touch`], which says what is wrong:
//! a warp with a bad address as a whole, a lane that reads unwritten bytes, a word whose order
//! needs vector clocks. The order of the effects is the same: lane after lane.

use std::sync::atomic::Ordering::Relaxed;

use super::access::{Touch, word_mask};
use super::cta::Cta;
use super::regs::FULL;
use super::transfer::lanes;
use super::warp::Warp;
use crate::hazard::Space;
use crate::hazard::global::OpenChunk;
use crate::hazard::shadow::{Access, Conflict, Epoch, Stamp, WIDE};
use crate::lower::program::{Address, Area, Data, SHARED_WINDOW, WINDOW};
use crate::memory::Allocation;
use gpu_arithmetic::host::vectorised;

/// Byte offsets of the lanes of one access, in bounds and aligned for the active ones.
pub(super) struct Row {
    /// The allocation, or none for shared memory.
    pub(super) allocation: Option<usize>,
    pub(super) at: [u64; 32],
}

/// The words of up to 16 bytes a lane: word, then lane.
pub(super) type Words = [[u32; 32]; 4];

/// What all lanes of an access have in common.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    pub(super) bytes: u32,
    pub(super) write: bool,
    pub(super) in_flight: bool,
}

impl Kind {
    pub(super) fn read(bytes: u32) -> Kind {
        Kind {
            bytes,
            write: false,
            in_flight: false,
        }
    }

    pub(super) fn write(bytes: u32) -> Kind {
        Kind {
            write: true,
            ..Kind::read(bytes)
        }
    }

    fn touch(self, lane: usize) -> Touch {
        if self.write {
            Touch {
                in_flight: self.in_flight,
                ..Touch::write(lane, self.bytes)
            }
        } else {
            Touch::read(lane, self.bytes)
        }
    }

    fn access(self, stamp: &Stamp) -> Access {
        Access {
            thread: usize::from(stamp.thread),
            segment: stamp.segment,
            pc: stamp.pc,
            write: self.write,
            strong: false,
            narrow: false,
            in_flight: self.in_flight,
            same_value: false,
            observes: false,
            commutes: 0,
        }
    }
}

/// Addresses of all lanes.
#[inline(always)]
fn addresses(w: &Warp, a: &Address) -> [u64; 32] {
    let mut at = [0u64; 32];
    match a.base {
        Data::R64(row) => {
            for (at, base) in at.iter_mut().zip(&w.regs.r64[row as usize]) {
                *at = base.wrapping_add(a.offset as u64);
            }
        }
        Data::R32(row) => {
            for (at, base) in at.iter_mut().zip(&w.regs.r32[row as usize]) {
                *at = u64::from(*base).wrapping_add(a.offset as u64);
            }
        }
        Data::Nothing => at = [a.offset as u64; 32],
    }
    at
}

/// The lowest and highest active address, and all their bits together.
#[inline(always)]
fn extent(at: &[u64; 32], mask: u32) -> (u64, u64, u64) {
    let (mut low, mut high, mut bits) = (u64::MAX, 0, 0);
    for (lane, at) in at.iter().enumerate() {
        let active = mask == FULL || mask >> lane & 1 == 1;
        low = low.min(if active { *at } else { u64::MAX });
        high = high.max(if active { *at } else { 0 });
        bits |= if active { *at } else { 0 };
    }
    (low, high, bits)
}

impl Cta<'_> {
    /// The offsets of an access of `bytes` (a power of two) by the lanes of `mask`, if it is all in
    /// one allocation or in shared memory and all aligned.
    pub(super) fn row(&mut self, w: &Warp, a: &Address, mask: u32, bytes: u32) -> Option<Row> {
        let (mut at, (mut low, mut high, bits)) = vectorised(
            #[inline(always)]
            || {
                let mut at = addresses(w, a);
                if a.area == Area::Shared && matches!(a.base, Data::R32(_)) {
                    // Shared addresses have 32 bits.
                    at.iter_mut().for_each(|at| *at &= 0xffff_ffff);
                }
                let extent = extent(&at, mask);
                (at, extent)
            },
        );
        if bits & u64::from(bytes - 1) != 0 || mask == 0 || bytes > 16 {
            return None;
        }
        let mut area = a.area;
        if area == Area::Generic && low >= SHARED_WINDOW && high < SHARED_WINDOW + WINDOW {
            at.iter_mut()
                .for_each(|at| *at = at.wrapping_sub(SHARED_WINDOW));
            low -= SHARED_WINDOW;
            high -= SHARED_WINDOW;
            area = Area::Shared;
        }
        let end = high.checked_add(u64::from(bytes))?;
        let allocation = match area {
            Area::Shared if end <= self.shared.len() as u64 * 4 => None,
            Area::Global | Area::Generic if high < SHARED_WINDOW => {
                let index = self.allocation(low, end)?;
                let base = self.context.memory.allocations[index].base;
                at.iter_mut().for_each(|at| *at = at.wrapping_sub(base));
                Some(index)
            }
            _ => return None,
        };
        Some(Row { allocation, at })
    }

    /// The allocation that holds a range.
    fn allocation(&mut self, start: u64, end: u64) -> Option<usize> {
        let (memory, heap) = (self.context.memory, self.context.heap);
        let holds = |index: usize| {
            let a = memory.allocations.get(index);
            // Blocks of the heap have separate bounds.
            index != heap && a.is_some_and(|a| start >= a.base && end <= a.base + a.bytes)
        };
        if !holds(self.last) {
            self.last = memory.find(start).map(|l| l.index).filter(|i| holds(*i))?;
        }
        Some(self.last)
    }

    /// Reads the words of all active lanes; narrow ones are shifted down.
    pub(super) fn read_row(&mut self, w: &mut Warp, row: &Row, mask: u32, bytes: u32) -> Words {
        let mut to = [[0; 32]; 4];
        let kind = Kind::read(bytes);
        match (row.allocation, bytes) {
            (None, 8) => self.shared_row::<2>(w, row, mask, kind, &mut to),
            (None, 16) => self.shared_row::<4>(w, row, mask, kind, &mut to),
            (None, _) => self.shared_row::<1>(w, row, mask, kind, &mut to),
            (Some(_), 8) => self.global_row::<2>(w, row, mask, kind, &mut to),
            (Some(_), 16) => self.global_row::<4>(w, row, mask, kind, &mut to),
            (Some(_), _) => self.global_row::<1>(w, row, mask, kind, &mut to),
        };
        to
    }

    /// Writes the words of all active lanes. Returns the lanes that could.
    pub(super) fn write_row(
        &mut self,
        w: &mut Warp,
        row: &Row,
        mask: u32,
        kind: Kind,
        from: &mut Words,
    ) -> u32 {
        match (row.allocation, kind.bytes) {
            (None, 8) => self.shared_row::<2>(w, row, mask, kind, from),
            (None, 16) => self.shared_row::<4>(w, row, mask, kind, from),
            (None, _) => self.shared_row::<1>(w, row, mask, kind, from),
            (Some(_), 8) => self.global_row::<2>(w, row, mask, kind, from),
            (Some(_), 16) => self.global_row::<4>(w, row, mask, kind, from),
            (Some(_), _) => self.global_row::<1>(w, row, mask, kind, from),
        }
    }

    #[inline(always)]
    fn stamp(&self, thread: usize, kind: Kind) -> Stamp {
        let plain = Stamp::plain(thread, self.clocks.segment[thread], self.pc);
        if kind.in_flight {
            plain.in_flight()
        } else {
            plain
        }
    }

    fn shared_row<const N: usize>(
        &mut self,
        w: &mut Warp,
        row: &Row,
        mask: u32,
        kind: Kind,
        words: &mut Words,
    ) -> u32 {
        if self.shared_quick::<N>(w, row, mask, kind, words) {
            return mask;
        }
        let (mut done, mut changed) = (mask, false);
        for lane in lanes(mask) {
            let at = row.at[lane];
            let (first, part) = ((at / 4) as usize, word_mask(at, kind.bytes));
            let touched = self.touch(w, Area::Shared, at, kind.touch(lane));
            if touched.is_none() {
                done &= !(1 << lane);
                continue;
            }
            let shared = &mut self.shared[first..first + N];
            if kind.write {
                for (word, from) in shared.iter_mut().zip(words.iter()) {
                    let new = merged(*word, from[lane], part, at);
                    changed |= *word != new;
                    *word = new;
                }
            } else {
                for (word, to) in shared.iter().zip(words.iter_mut()) {
                    to[lane] = cut(*word, part, at);
                }
            }
        }
        self.version += u64::from(changed);
        done
    }

    /// Whole words that exist and, where they are read, were written. Else `false`, and nothing is
    /// done. One pass for the state of the words, one for their order, one for the data.
    #[inline(always)]
    fn shared_quick<const N: usize>(
        &mut self,
        w: &Warp,
        row: &Row,
        mask: u32,
        kind: Kind,
        words: &mut Words,
    ) -> bool {
        if kind.bytes != 4 * N as u32 {
            return false;
        }
        let place = |lane: usize| (row.at[lane & 31] / (4 * N as u64)) as usize;
        let read_unwritten = kind.write || !self.context.checks.uninitialized;
        let needed = if read_unwritten { 0xf0 } else { 0xff };
        let states = self.shared_state.as_chunks_mut::<N>().0;
        let mut all = needed;
        each(mask, |lane| {
            states[place(lane)].iter().for_each(|s| all &= s);
        });
        if all != needed {
            return false;
        }
        if kind.write {
            each(mask, |lane| {
                states[place(lane)].iter_mut().for_each(|s| *s |= 15);
            });
        }
        if self.context.checks.races {
            self.shared_order::<N>(w, row, mask, kind);
        }
        let shared = self.shared.as_chunks_mut::<N>().0;
        if kind.write {
            let mut changed = 0;
            each(mask, |lane| {
                for (word, from) in shared[place(lane)].iter_mut().zip(words.iter()) {
                    changed |= *word ^ from[lane & 31];
                    *word = from[lane & 31];
                }
            });
            self.version += u64::from(changed != 0);
        } else {
            each(mask, |lane| {
                for (word, to) in shared[place(lane)].iter().zip(words.iter_mut()) {
                    to[lane & 31] = *word;
                }
            });
        }
        true
    }

    /// Notes an access of whole words in the shadow of shared memory.
    #[inline(always)]
    fn shared_order<const N: usize>(&mut self, w: &Warp, row: &Row, mask: u32, kind: Kind) {
        let epoch = Epoch::of(&self.clocks);
        // Two lanes of this warp have just read the same: one more changes nothing.
        let repeats = if kind.write {
            0
        } else {
            self.repeats(w, row, mask)
        };
        let (pc, shadow, clocks) = (self.pc, &mut self.shadow, &self.clocks);
        let mut races: Vec<(usize, u64, Conflict)> = Vec::new();
        each(mask & !repeats, |lane| {
            let thread = w.index * 32 + lane;
            let mut stamp = Stamp::plain(thread, clocks.segment[thread], pc);
            if kind.in_flight {
                stamp = stamp.in_flight();
            }
            let first = (row.at[lane & 31] / 4) as usize;
            if N == WIDE
                && clocks.exact_readers
                && let Ok(found) = shadow.access_wide(first, &kind.access(&stamp), clocks)
            {
                let of_each_word = found.map(|c| [(thread, row.at[lane & 31], c); WIDE]);
                races.extend(of_each_word.into_iter().flatten());
                return;
            }
            for i in 0..N {
                let cell = &mut shadow.cells(first, N)[i];
                if !cell.plain(&stamp, kind.write, epoch)
                    && let Some(c) = shadow.access(first + i, 15, &kind.access(&stamp), clocks)
                {
                    races.push((thread, row.at[lane & 31], c));
                }
            }
        });
        for (thread, at, conflict) in races {
            self.race(thread, (Space::Shared, at), kind.write, conflict);
        }
    }

    /// Lanes that read what the two lanes before them do, in the same segment.
    #[inline(always)]
    fn repeats(&self, w: &Warp, row: &Row, mask: u32) -> u32 {
        let threads = w.index * 32..w.index * 32 + 32;
        if mask != FULL || self.clocks.exact_readers {
            return 0;
        }
        let Some(segments) = self.clocks.segment.get(threads) else {
            return 0;
        };
        vectorised(
            #[inline(always)]
            || {
                let (mut bits, mut other) = (0, 0);
                for lane in 2..32 {
                    let at = row.at[lane];
                    let same = at == row.at[lane - 1] && at == row.at[lane - 2];
                    bits |= u32::from(same) << lane;
                }
                for segment in segments {
                    other |= segment ^ segments[0];
                }
                if other == 0 { bits } else { 0 }
            },
        )
    }

    fn global_row<const N: usize>(
        &mut self,
        w: &mut Warp,
        row: &Row,
        mask: u32,
        kind: Kind,
        words: &mut Words,
    ) -> u32 {
        let context = self.context;
        let Some(index) = row.allocation else {
            return 0;
        };
        let allocation = &*context.memory.allocations[index];
        let offsets = lanes(mask).map(|lane| row.at[lane]);
        self.note_access(index, offsets, kind.bytes, kind.write);
        let epoch = Epoch::of(&self.clocks);
        let checks = context.checks;
        let (races, unwritten) = (checks.races, checks.uninitialized && !kind.write);
        let mut open: Option<OpenChunk<'_>> = None;
        let (mut changed, mut mark) = (false, allocation.init.marker());
        for lane in lanes(mask) {
            let at = row.at[lane];
            let first = (at / 4) as usize;
            let part = word_mask(at, kind.bytes);
            let stamp = self.stamp(w.index * 32 + lane, kind);
            for word in first..first + N {
                if unwritten && !allocation.init.has_word(word, part) {
                    self.unwritten_global(usize::from(stamp.thread), word, allocation);
                }
                if kind.write {
                    mark.word(word, part);
                }
            }
            if races && (kind.write || !allocation.shadow.is_quiet(first, N, context.launch)) {
                if !open.as_ref().is_some_and(|o| o.holds(first)) {
                    // The old one is given back first: two workers must not wait for each other.
                    drop(open.take());
                    let mut chunk = allocation.shadow.open(first);
                    if kind.write {
                        context.save(&mut chunk, allocation);
                    }
                    open = Some(chunk);
                }
                if let Some(open) = &mut open {
                    for word in first..first + N {
                        self.global_order(open, allocation, (word, at, part), &stamp, kind, epoch);
                    }
                }
            }
            let memory = &allocation.words[first..first + N];
            if kind.write {
                for (word, from) in memory.iter().zip(words.iter()) {
                    changed |= store(word, from[lane], part, at);
                }
            } else {
                for (word, to) in memory.iter().zip(words.iter_mut()) {
                    to[lane] = cut(word.load(Relaxed), part, at);
                }
            }
        }
        self.version += u64::from(changed);
        mask
    }

    /// Notes an access in the shadow of global memory.
    #[inline(always)]
    fn global_order(
        &mut self,
        open: &mut OpenChunk<'_>,
        allocation: &Allocation,
        (word, at, part): (usize, u64, u32),
        stamp: &Stamp,
        kind: Kind,
        epoch: Epoch,
    ) {
        let here = (self.context.launch, self.block);
        if part == 15 && open.plain(word, stamp, kind.write, here, epoch) {
            return;
        }
        let access = kind.access(stamp);
        if let Some(c) = self.global_access(open, allocation, (word, part), &access) {
            let place = (Space::Global, allocation.base + at);
            self.race(access.thread, place, kind.write, c);
        }
    }
}

/// Calls `f` for the lanes of a mask, in a loop of its own where that is all of them.
#[inline(always)]
fn each(mask: u32, mut f: impl FnMut(usize)) {
    if mask == FULL {
        (0..32).for_each(f);
    } else {
        lanes(mask).for_each(&mut f);
    }
}

/// The bytes `part` of a word, shifted down.
#[inline(always)]
fn cut(word: u32, part: u32, at: u64) -> u32 {
    if part == 15 {
        return word;
    }
    let narrow = if part.count_ones() == 1 { 0xff } else { 0xffff };
    word >> ((at & 3) * 8) & narrow
}

/// A word with its bytes `part` replaced.
#[inline(always)]
fn merged(old: u32, new: u32, part: u32, at: u64) -> u32 {
    if part == 15 {
        return new;
    }
    let shift = (at & 3) * 8;
    let narrow = if part.count_ones() == 1 { 0xff } else { 0xffff } << shift;
    old & !narrow | new << shift & narrow
}

/// Stores to a word that other blocks may use; true when that changed it.
#[inline(always)]
fn store(word: &std::sync::atomic::AtomicU32, new: u32, part: u32, at: u64) -> bool {
    let old = word.load(Relaxed);
    if part == 15 {
        word.store(new, Relaxed);
        return old != new;
    }
    // Neighbouring bytes may be stored by another block at the same time.
    let _ = word.fetch_update(Relaxed, Relaxed, |old| Some(merged(old, new, part, at)));
    merged(old, new, part, at) != old
}
