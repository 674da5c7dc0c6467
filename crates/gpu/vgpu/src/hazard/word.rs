//! A word of global memory: its accesses by the blocks of a launch.
//!
//! Blocks run *isolated* (each on any core, at any time) or *serialized* (one after the other, in
//! an order that the launch alone decides). If two isolated blocks access a word, one of them
//! writing, the attempt ends: nothing found before depends on another block. Serialized accesses
//! are checked.

use super::clock::Clocks;
use super::history::{AccessBlocks, Lists};
use super::shadow::{
    Access, Cell, Conflict, Epoch, LISTED, NARROW, STRONG, Stamp, Strength, VALID,
};

/// Several blocks read, or several threads wrote atomically: not all of them are known.
pub(super) const SEVERAL_BLOCKS: u32 = u32::MAX;

/// A global word: its cell, and which blocks filled it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct GlobalCell {
    pub(super) write_block: u32,
    pub(super) read_block: u32,
    pub(super) cell: Cell,
}

/// Launch and block of an access.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockOfLaunch {
    pub(crate) launch: u32,
    pub(crate) block: u32,
}

/// Context of a block for checks of global memory.
pub(crate) struct GlobalView<'a> {
    pub(crate) launch: u32,
    pub(crate) block: u32,
    pub(crate) clocks: &'a Clocks,
    /// The block's own histories, where blocks are isolated.
    pub(crate) lists: &'a mut Lists,
    /// Start of the allocation, which distinguishes the words of different ones.
    pub(crate) base: u64,
    /// Blocks are serialized.
    pub(crate) serialized: bool,
    /// Full histories can be requested (see `needs_history`).
    pub(crate) can_record: bool,
    /// Set: another block accessed the word, so that blocks must be serialized.
    pub(crate) conflict: bool,
    /// Set: a decision needs every access to this word.
    pub(crate) needs_history: bool,
}

impl GlobalCell {
    /// See [`super::global::OpenChunk::plain`].
    #[inline(always)]
    pub(super) fn plain(&mut self, s: &Stamp, write: bool, block: u32, e: Epoch) -> bool {
        let unwritten = self.cell.write.flags == 0;
        let unread = self.cell.read.flags == 0;
        if unwritten && unread {
            let none = Stamp::default();
            let (write, read) = if write { (*s, none) } else { (none, *s) };
            *self = GlobalCell {
                write_block: block,
                read_block: block,
                cell: Cell { write, read },
            };
            return true;
        }
        if (unwritten || self.write_block == block) && (unread || self.read_block == block) {
            let right = self.cell.plain(s, write, e);
            if right {
                *(if write {
                    &mut self.write_block
                } else {
                    &mut self.read_block
                }) = block;
            }
            return right;
        }
        if !write && unwritten && self.cell.read.strength() == Strength::Plain {
            // Another block read before. Inputs that all blocks read take this path: it must not end
            // the attempt, nor keep a list of readers.
            self.read_block = SEVERAL_BLOCKS;
            return true;
        }
        false
    }

    /// Checks an access of an isolated block.
    pub(super) fn check_isolated(
        &mut self,
        a: &Access,
        view: &mut GlobalView<'_>,
        key: u64,
    ) -> Option<Conflict> {
        let (w, r) = (self.cell.write, self.cell.read);
        let foreign_write = w.is(VALID) && self.write_block != view.block;
        let foreign_read = r.is(VALID) && self.read_block != view.block;
        let alike = !w.is(VALID) || w.commutes == a.commutes;
        let commutes = a.commutes != 0 && alike && !r.is(VALID);
        if foreign_write && commutes {
            // Commuting reductions: the final value is the same in any order, and no thread has
            // read it.
            self.cell.write = Stamp {
                commutes: a.commutes,
                ..Stamp::from_access(a)
            };
            self.write_block = SEVERAL_BLOCKS;
            return None;
        }
        // Nothing is recorded: the attempt is undone, and the serialized one decides.
        if foreign_write || foreign_read && a.write {
            view.conflict = true;
            return None;
        }
        if foreign_read {
            self.cell.write = Stamp::default();
            self.also_reads(a);
            return None;
        }
        let found = self.cell.access(a, view.clocks, key, view.lists);
        if a.write || self.cell.write.is(LISTED) {
            self.cell.write.commutes = if commutes { a.commutes } else { 0 };
            self.write_block = view.block;
        }
        if !a.write || self.cell.write.is(LISTED) {
            self.read_block = view.block;
        }
        found
    }

    /// Records one more reader than a stamp can name.
    fn also_reads(&mut self, a: &Access) {
        self.read_block = SEVERAL_BLOCKS;
        let r = &mut self.cell.read;
        // A plain, volatile or block-scoped reader is kept: it races with more writes of other blocks.
        let new = Stamp::from_access(a);
        let weaker = r.weaker(&new);
        if weaker != r.flags & (STRONG | NARROW) {
            *r = Stamp {
                flags: VALID | weaker,
                ..new
            };
        }
    }

    /// Checks an access of serialized blocks. `watched`: all accesses to the word are recorded.
    pub(super) fn check_serialized(
        &mut self,
        a: &Access,
        view: &mut GlobalView<'_>,
        key: u64,
        lists: &mut Lists,
        watched: bool,
    ) -> Option<Conflict> {
        let (w, r) = (self.cell.write, self.cell.read);
        // An atomic write must not hide a plain one.
        let hides = a.write && w.is(VALID) && w.strength() < a.strength;
        let readers_known = !r.is(VALID) || self.read_block != SEVERAL_BLOCKS;
        let hides = hides && self.write_block != SEVERAL_BLOCKS;
        if w.is(LISTED) || watched || hides && readers_known {
            return self.listed(a, view, key, lists);
        }
        view.needs_history |= hides && view.can_record;
        let mut found = self.against_write(a, view);
        if a.write && found.is_none() {
            found = self.against_reads(a, view);
        }
        if !a.write {
            self.record_read(a, view);
        } else if a.strength != Strength::Plain {
            self.record_atomic(a, view);
        } else {
            self.record_write(a, view.block);
        }
        found
    }

    fn listed(
        &mut self,
        a: &Access,
        view: &GlobalView<'_>,
        key: u64,
        lists: &mut Lists,
    ) -> Option<Conflict> {
        let listed = self.cell.write.is(LISTED);
        if !listed || lists.find_history(self.cell.write.segment, key).is_none() {
            // A dropped history held nothing relevant any more.
            let held = if listed { Cell::default() } else { self.cell };
            let blocks = AccessBlocks {
                write: self.write_block,
                read: self.read_block,
            };
            self.cell.write.segment = lists.begin(key, &held, blocks);
        }
        let number = self.cell.write.segment;
        let list = lists.find_history(number, key)?;
        let found = list.access(a, view.block, |block, stamp| {
            view.is_ordered(a.thread, block, stamp)
        });
        if a.write && a.strength == Strength::Plain {
            lists.end(number);
            self.record_write(a, view.block);
        } else {
            self.cell = list.marker(number);
        }
        found
    }

    fn against_write(&mut self, a: &Access, view: &mut GlobalView<'_>) -> Option<Conflict> {
        let (w, block) = (self.cell.write, self.write_block);
        let own = block == view.block;
        let both = w.is_atomic_with(a, true, !own);
        if !w.is(VALID) || both || a.write && a.same_value {
            return None;
        }
        if own {
            return self.cell.after_write(a, view.clocks);
        }
        let (r, reader) = (self.cell.read, self.read_block);
        let seen = w.strength() != Strength::Plain && r.is(STRONG) && reader != SEVERAL_BLOCKS;
        if seen && view.is_ordered(a.thread, reader, &r) {
            return None;
        }
        view.foreign(a, &w, block, true)
    }

    fn against_reads(&self, a: &Access, view: &mut GlobalView<'_>) -> Option<Conflict> {
        let (r, block) = (self.cell.read, self.read_block);
        let own = block == view.block;
        if !r.is(VALID) || r.is_atomic_with(a, false, !own) {
            return None;
        }
        if own {
            return self.cell.after_reads(a, view.clocks);
        }
        view.foreign(a, &r, block, false)
    }

    fn record_write(&mut self, a: &Access, block: u32) {
        self.cell = Cell {
            write: Stamp::from_access(a),
            read: Stamp::default(),
        };
        self.write_block = block;
    }

    fn record_read(&mut self, a: &Access, view: &GlobalView<'_>) {
        let r = self.cell.read;
        if !r.is(VALID) {
            self.cell.read = Stamp::from_access(a);
            self.read_block = view.block;
            return;
        }
        let own = self.read_block == view.block;
        let replaced = r.strength() >= a.strength && r.passed(a.thread, view.clocks);
        if own && (replaced || !view.clocks.exact_readers) {
            self.cell.add_reader(a, view.clocks);
        } else {
            self.also_reads(a);
        }
    }

    fn record_atomic(&mut self, a: &Access, view: &GlobalView<'_>) {
        let w = self.cell.write;
        let seen = a.observes && w.is(STRONG);
        let own = seen || !w.is(VALID) || self.write_block == view.block;
        let replaced = seen || !w.is(VALID) || w.passed(a.thread, view.clocks);
        if own && (replaced || !view.clocks.exact_readers) {
            let read = self.cell.read;
            self.cell.add_atomic(a, view.clocks);
            // Other blocks may not be ordered after the barrier that follows this block's readers.
            self.cell.read = read;
            self.write_block = view.block;
            return;
        }
        let weaker = w.weaker(&Stamp::from_access(a));
        self.cell.write.flags = w.flags & !(STRONG | NARROW) | weaker;
        self.write_block = SEVERAL_BLOCKS;
    }
}

impl GlobalView<'_> {
    /// Reports whether an earlier access, of any block, happens before the current point of the
    /// thread.
    fn is_ordered(&self, thread: usize, block: u32, stamp: &Stamp) -> bool {
        let earlier = usize::from(stamp.thread);
        if block == self.block {
            return stamp.passed(thread, self.clocks);
        }
        let access = super::sync::ForeignAccess {
            block,
            thread: earlier,
            segment: stamp.segment,
        };
        super::sync::covers_foreign_access(&self.clocks.foreign[thread], access)
    }

    /// Returns the race of an access with an earlier one by another block, or by several.
    fn foreign(&mut self, a: &Access, s: &Stamp, block: u32, write: bool) -> Option<Conflict> {
        let race = if block != SEVERAL_BLOCKS {
            !self.is_ordered(a.thread, block, s)
        } else if !self.clocks.exact_readers {
            // Nothing orders blocks here.
            true
        } else if self.can_record {
            self.needs_history = true;
            false
        } else {
            // The blocks are not known: any acquire gives the kernel the benefit of the doubt.
            self.clocks.foreign[a.thread].is_none()
        };
        race.then(|| Conflict {
            block: Some(block),
            ..s.conflict(write)
        })
    }
}
