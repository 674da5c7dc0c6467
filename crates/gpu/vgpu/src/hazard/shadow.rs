//! Shadow memory: the last accesses to each word, and the rule that makes two accesses a race.

mod access;
mod block;

pub(crate) use access::{Access, Strength};
pub(crate) use block::{BlockShadow, WIDE_WORDS};

use super::clock::Clocks;
use super::history::{AccessBlocks, Lists};

/// The stamp holds an access.
pub(super) const VALID: u8 = 1;
/// The access was atomic (or equivalent: relaxed, acquire, release).
pub(super) const STRONG: u8 = 2;
/// Several lanes of one warp read.
pub(super) const LANES: u8 = 4;
/// Several warps read.
pub(super) const WARPS: u8 = 8;
/// A `cp.async` that was not waited for. With `NARROW`: a write of an agent
/// ([`super::clock::AGENTS`]), which only those see who waited for it.
pub(super) const ASYNC: u8 = 16;
/// The word is split: its bytes are kept elsewhere.
pub(super) const SPLIT: u8 = 32;
/// With `STRONG`: atomic within its own block only. Alone: a volatile access.
pub(super) const NARROW: u8 = 64;
/// All relevant accesses are in the history with number `segment`; with `VALID`, a write is among
/// them.
pub(super) const LISTED: u8 = 128;

/// Stamp of an access: thread, time and instruction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) segment: u32,
    pub(crate) pc: u32,
    pub(crate) thread: u16,
    pub(super) flags: u8,
    /// Commutativity class, where all writes so far commute; else 0.
    pub(super) commutes: u8,
}

/// Last write and the reads since. Several atomic writes, and several reads, share one stamp with
/// `LANES` or `WARPS` while only barriers of whole blocks and warps order anything. Otherwise a
/// history keeps them separately.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(super) write: Stamp,
    pub(super) read: Stamp,
}

/// The last write to a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LastWrite {
    pub(crate) segment: u32,
    pub(crate) pc: u32,
    pub(crate) thread: usize,
}

/// The earlier access of a race.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Conflict {
    pub(crate) pc: u32,
    pub(crate) thread: usize,
    pub(crate) block: Option<u32>,
    pub(crate) was_write: bool,
    /// It was an asynchronous copy not yet waited for.
    pub(crate) in_flight: bool,
}

impl Stamp {
    pub(super) fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    pub(super) fn strength(&self) -> Strength {
        match self.flags & (STRONG | NARROW | ASYNC) {
            NARROW => Strength::Volatile,
            flags if flags & STRONG != 0 => Strength::Strong,
            _ => Strength::Plain,
        }
    }

    /// Reports whether it is atomic within its own block only.
    pub(super) fn is_narrow(&self) -> bool {
        self.flags & (STRONG | NARROW) == STRONG | NARROW
    }

    /// Reports whether it and an access, of the same block or `foreign`, never race, ordered or not
    /// (PTX ISA 8.7, morally strong). `write`: the stamp is of a write.
    pub(super) fn is_atomic_with(&self, a: &Access, write: bool, foreign: bool) -> bool {
        let scopes = !foreign || !self.is_narrow() && !a.narrow;
        scopes
            && match self.strength() {
                Strength::Plain => false,
                Strength::Volatile => a.strength == Strength::Strong || write && a.sets_flag,
                Strength::Strong => a.strength != Strength::Plain,
            }
    }

    /// Creates the stamp of an access that is neither atomic nor in flight.
    #[inline(always)]
    pub(crate) fn plain(thread: usize, segment: u32, pc: u32) -> Stamp {
        Stamp {
            segment,
            pc,
            thread: thread as u16,
            flags: VALID,
            commutes: 0,
        }
    }

    /// Returns the stamp marked as a `cp.async` in flight.
    #[inline(always)]
    pub(crate) fn in_flight(self) -> Stamp {
        Stamp {
            flags: VALID | ASYNC,
            ..self
        }
    }

    /// Reports whether it is an asynchronous copy that nobody has waited for.
    pub(super) fn flies(&self) -> bool {
        self.flags & (ASYNC | NARROW) == ASYNC
    }

    /// Reports whether it is a write of an agent.
    pub(super) fn is_agents(&self) -> bool {
        self.flags & (ASYNC | NARROW) == ASYNC | NARROW
    }

    pub(super) fn from_access(access: &Access) -> Stamp {
        let strength = match access.strength {
            Strength::Plain => 0,
            Strength::Volatile => NARROW,
            Strength::Strong if access.narrow => STRONG | NARROW,
            Strength::Strong => STRONG,
        };
        let flight = if access.in_flight { ASYNC } else { 0 };
        Stamp {
            segment: access.segment,
            pc: access.pc,
            thread: access.thread as u16,
            flags: VALID | strength | flight,
            commutes: 0,
        }
    }

    /// Reports whether all accesses of the stamp happen before the current point of a thread of the
    /// same block.
    #[inline]
    pub(super) fn passed(&self, thread: usize, clocks: &Clocks) -> bool {
        if !self.is(LANES | WARPS) {
            return clocks.ordered(thread, usize::from(self.thread), self.segment);
        }
        let warp = thread / 32;
        // A joint stamp names one of its threads only, so vector clocks cannot decide it. Barriers of
        // the block, and of the warp where all threads are of one warp, order every thread.
        let own_warp = usize::from(self.thread) / 32 == warp && !self.is(WARPS);
        self.segment < clocks.floor || own_warp && self.segment < clocks.warp_floor[warp]
    }

    /// Returns the joint stamp of this access and a further one that is not ordered after it.
    fn merge_with(self, new: &Stamp) -> Stamp {
        let same_warp = self.thread / 32 == new.thread / 32;
        let wide = if same_warp && !self.is(WARPS) {
            LANES
        } else {
            WARPS
        };
        Stamp {
            // The thread of the earlier stamp is kept: it is less often the one that continues.
            flags: (self.flags & !(STRONG | NARROW)) | self.weaker(new) | wide,
            // The later of both: a barrier that orders it orders the other one too.
            segment: self.segment.max(new.segment),
            ..self
        }
    }

    /// Returns the flags that excuse no more than those of either stamp.
    pub(super) fn weaker(&self, new: &Stamp) -> u8 {
        let narrow = self.is_narrow() || new.is_narrow();
        match self.strength().min(new.strength()) {
            Strength::Strong if narrow => STRONG | NARROW,
            Strength::Strong => STRONG,
            Strength::Volatile if !narrow => NARROW,
            _ => 0,
        }
    }

    pub(super) fn conflict(&self, was_write: bool) -> Conflict {
        Conflict {
            pc: self.pc,
            thread: usize::from(self.thread),
            block: None,
            was_write,
            in_flight: self.is(ASYNC),
        }
    }
}

/// Bounds that decide most accesses without vector clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Epoch {
    floor: u32,
    exact_readers: bool,
    /// Only barriers of the whole block or of whole warps have ordered anything so far.
    whole: bool,
}

impl Epoch {
    pub(crate) fn from_clocks(clocks: &Clocks) -> Epoch {
        Epoch {
            floor: clocks.floor,
            exact_readers: clocks.exact_readers,
            whole: !clocks.exact_readers && clocks.is_whole(),
        }
    }
}

impl Cell {
    /// Reports whether the last write is before the floor, or the thread's own.
    #[inline(always)]
    fn written_before(&self, s: &Stamp, e: Epoch) -> bool {
        let w = &self.write;
        w.flags & (ASYNC | SPLIT | LISTED) == 0
            && (w.segment < e.floor || w.thread == s.thread && w.flags & (LANES | WARPS) == 0)
    }

    /// Records a plain read where the epoch shows that it is ordered. Otherwise returns `false` and
    /// changes nothing: [`Cell::access`] must decide.
    #[inline(always)]
    fn plain_read(&mut self, s: &Stamp, e: Epoch) -> bool {
        if !self.written_before(s, e) {
            return false;
        }
        let r = &mut self.read;
        let several = r.flags & (LANES | WARPS) != 0;
        // Readers before the floor cannot race with later accesses of the block and are forgotten.
        if r.segment < e.floor && !(several && e.exact_readers) || !several && r.thread == s.thread
        {
            *r = *s;
            return true;
        }
        if !e.whole || r.segment < s.segment {
            return false;
        }
        // One more reader of this epoch. None of the readers is ordered before another: their
        // segments are not below the new one's, which is not below the floor of its warp.
        let wide = if r.thread / 32 != s.thread / 32 || r.flags & WARPS != 0 {
            WARPS
        } else {
            LANES
        };
        r.flags = (r.flags & !(STRONG | NARROW)) | wide;
        true
    }

    /// Records a plain write, or one of a `cp.async`, under the same condition.
    #[inline(always)]
    fn plain_write(&mut self, s: &Stamp, e: Epoch) -> bool {
        let r = &self.read;
        let several = r.flags & (LANES | WARPS) != 0;
        let read_before = r.segment < e.floor && !(several && e.exact_readers)
            || !several && r.thread == s.thread;
        let right = read_before && self.written_before(s, e);
        // The readers go: they happen before this write, so an access that is ordered after the write
        // is ordered after them.
        if right {
            *self = Cell {
                write: *s,
                read: Stamp::default(),
            };
        }
        right
    }

    /// Records a plain read or write where the epoch shows that it is ordered.
    #[inline(always)]
    pub(crate) fn plain(&mut self, s: &Stamp, write: bool, e: Epoch) -> bool {
        if write {
            self.plain_write(s, e)
        } else {
            self.plain_read(s, e)
        }
    }

    /// Reports whether observing atomic writes can simply replace each other here: the last write
    /// was atomic and there was no read since.
    fn only_atomic(&self) -> bool {
        self.write.flags & (VALID | STRONG | ASYNC | SPLIT | LISTED) == VALID | STRONG
            && !self.read.is(VALID)
    }

    /// Checks one access of the block that owns the cell, and records it.
    #[inline]
    pub(crate) fn access(
        &mut self,
        a: &Access,
        clocks: &Clocks,
        key: u64,
        lists: &mut Lists,
    ) -> Option<Conflict> {
        self.settle(clocks);
        if self.write.is(LISTED) || self.needs_list(a, clocks) {
            return self.listed_access(a, clocks, key, lists);
        }
        // The order of the checks decides which of two races is reported: writes first.
        let after_write = self.after_write(a, clocks);
        if !a.write {
            self.add_reader(a, clocks);
            return after_write;
        }
        let found = after_write.or_else(|| self.after_reads(a, clocks));
        if a.strength != Strength::Plain {
            self.add_atomic(a, clocks);
        } else {
            *self = Cell {
                write: Stamp::from_access(a),
                read: Stamp::default(),
            };
        }
        found
    }

    /// Makes the write of an agent that all threads have seen an ordinary one.
    #[inline]
    pub(super) fn settle(&mut self, clocks: &Clocks) {
        let w = &mut self.write;
        if w.is_agents() && clocks.agent_has_passed(w.thread.into(), w.segment) {
            w.flags = VALID;
        }
    }

    /// Reports whether two stamps are not enough once this access is recorded: an atomic access
    /// must not hide a plain one, and where vector clocks decide, no reader or atomic writer may
    /// hide another.
    fn needs_list(&self, a: &Access, clocks: &Clocks) -> bool {
        if self.write.flies() || (a.write && a.strength == Strength::Plain) {
            return false;
        }
        let live = |s: &Stamp| s.is(VALID) && (s.segment >= clocks.floor || s.is_agents());
        let kept = |s: &Stamp| {
            let replaced = s.strength() >= a.strength
                && clocks.ordered(a.thread, usize::from(s.thread), s.segment);
            live(s) && !replaced
        };
        let (w, r) = (&self.write, &self.read);
        let seen = a.observes && w.strength() >= a.strength;
        match (a.write, clocks.exact_readers) {
            (true, true) => !seen && kept(w) || kept(r),
            (true, false) => [w, r]
                .into_iter()
                .any(|s| live(s) && s.strength() < a.strength),
            (false, exact) => exact && kept(r),
        }
    }

    #[cold]
    fn listed_access(
        &mut self,
        a: &Access,
        clocks: &Clocks,
        key: u64,
        lists: &mut Lists,
    ) -> Option<Conflict> {
        if !self.write.is(LISTED) {
            self.write.segment = lists.begin(key, self, AccessBlocks::default());
        }
        let number = self.write.segment;
        let list = lists.find_history(number, key);
        let Some(list) = list.filter(|list| list.latest >= clocks.floor || list.has_agents) else {
            // All of it is before a barrier of the block.
            *self = Cell::default();
            return self.access(a, clocks, key, lists);
        };
        let found = list.access(a, 0, |_, s| {
            clocks.ordered(a.thread, usize::from(s.thread), s.segment)
        });
        if a.write && a.strength == Strength::Plain {
            lists.end(number);
            *self = Cell {
                write: Stamp::from_access(a),
                read: Stamp::default(),
            };
        } else {
            *self = list.marker(number);
        }
        found
    }

    #[inline]
    pub(super) fn after_write(&mut self, a: &Access, clocks: &Clocks) -> Option<Conflict> {
        let r = &self.read;
        // An atomic read since has observed the atomic write, so the write is ordered too.
        let seen =
            r.is(STRONG) && self.write.strength() != Strength::Plain && r.passed(a.thread, clocks);
        let w = &mut self.write;
        if !w.is(VALID) || w.is_atomic_with(a, true, false) {
            return None;
        }
        if w.flies() || w.is_agents() && !w.passed(a.thread, clocks) {
            // Reported once: follow-up accesses are not new errors.
            let conflict = w.conflict(true);
            *w = Stamp {
                segment: if w.flies() { w.segment } else { 0 },
                flags: w.flags & !(ASYNC | NARROW),
                ..*w
            };
            return Some(conflict);
        }
        if (a.write && a.same_value) || seen || w.passed(a.thread, clocks) {
            return None;
        }
        Some(w.conflict(true))
    }

    pub(super) fn after_reads(&self, a: &Access, clocks: &Clocks) -> Option<Conflict> {
        let r = &self.read;
        if !r.is(VALID) || r.is_atomic_with(a, false, false) || r.passed(a.thread, clocks) {
            return None;
        }
        Some(r.conflict(false))
    }

    #[inline]
    pub(super) fn add_reader(&mut self, a: &Access, clocks: &Clocks) {
        let r = self.read;
        let new = Stamp::from_access(a);
        if !r.is(VALID) || r.segment < clocks.floor {
            self.read = new;
            return;
        }
        let passed = r.passed(a.thread, clocks);
        // An atomic reader must not hide a plain one, which races with atomic writes.
        if passed && r.strength() >= a.strength {
            self.read = new;
        } else if !passed {
            self.read = r.merge_with(&new);
        }
    }

    /// Records an atomic write where everything before it is atomic or ordered.
    pub(super) fn add_atomic(&mut self, a: &Access, clocks: &Clocks) {
        let w = self.write;
        let new = Stamp::from_access(a);
        let hides = w.strength() < a.strength;
        let follows = !w.is(VALID) || hides || a.observes || w.passed(a.thread, clocks);
        self.write = if follows { new } else { w.merge_with(&new) };
        // Readers since the floor stay: this write need not happen after them.
        if self.read.segment < clocks.floor {
            self.read = Stamp::default();
        }
    }

    /// Marks the thread's asynchronous copy as waited for: it counts as the thread's write from now
    /// on.
    pub(crate) fn complete_copy(&mut self, thread: usize, segment: u32) {
        if self.write.flies() && usize::from(self.write.thread) == thread {
            self.write.flags &= !ASYNC;
            self.write.segment = segment;
        }
    }

    /// Makes the thread's asynchronous copy, or with `plain` its ordinary write, one of an agent at
    /// a segment.
    pub(crate) fn give_to_agent(&mut self, thread: usize, by: (usize, u32), plain: bool) {
        let w = &mut self.write;
        let own = usize::from(w.thread) == thread;
        if own && (w.flies() || plain && w.flags == VALID) {
            w.flags = VALID | ASYNC | NARROW;
            (w.thread, w.segment) = (by.0 as u16, by.1);
        }
    }
}
