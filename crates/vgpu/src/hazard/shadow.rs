//! Shadow memory: who touched each word last, and the rule that makes two accesses a race.

use std::collections::HashMap;

use super::clock::Clocks;

/// The stamp holds an access.
pub(super) const VALID: u8 = 1;
/// The access was atomic (or as good as: relaxed, acquire, release).
pub(super) const STRONG: u8 = 2;
/// Several lanes of one warp read.
pub(super) const LANES: u8 = 4;
/// Several warps read.
pub(super) const WARPS: u8 = 8;
/// A `cp.async` that was not waited for.
pub(super) const ASYNC: u8 = 16;
/// The word is kept byte by byte elsewhere.
pub(super) const SPLIT: u8 = 32;
/// Atomic towards its own block only.
pub(super) const NARROW: u8 = 64;

/// Who, when and where in the program.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Stamp {
    pub(crate) segment: u32,
    pub(crate) pc: u32,
    pub(crate) thread: u16,
    pub(super) flags: u8,
}

/// Last write and the reads since.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cell {
    pub(super) write: Stamp,
    pub(super) read: Stamp,
}

/// One access to check.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access {
    pub(crate) thread: usize,
    pub(crate) segment: u32,
    pub(crate) pc: u32,
    pub(crate) write: bool,
    /// Atomic, or a read-modify-write.
    pub(crate) strong: bool,
    /// Atomic towards its own block only (`.cta`).
    pub(crate) narrow: bool,
    /// An asynchronous copy: in flight until its wait.
    pub(crate) in_flight: bool,
    /// The bytes already hold the value, and equal stores are allowed.
    pub(crate) same_value: bool,
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

/// Readers of words with several, where vector clocks need each of them.
pub(crate) type Readers = HashMap<u64, Vec<Stamp>>;

impl Stamp {
    pub(super) fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    pub(super) fn atomic_to_all(&self) -> bool {
        self.is(STRONG) && !self.is(NARROW)
    }

    /// The stamp of an access that is neither atomic nor in flight.
    #[inline(always)]
    pub(crate) fn plain(thread: usize, segment: u32, pc: u32) -> Stamp {
        Stamp {
            segment,
            pc,
            thread: thread as u16,
            flags: VALID,
        }
    }

    /// The same of a `cp.async`.
    #[inline(always)]
    pub(crate) fn in_flight(self) -> Stamp {
        Stamp {
            flags: VALID | ASYNC,
            ..self
        }
    }

    fn of(access: &Access) -> Stamp {
        let strong = if access.strong { STRONG } else { 0 };
        let narrow = if access.narrow { NARROW } else { 0 };
        let flight = if access.in_flight { ASYNC } else { 0 };
        Stamp {
            segment: access.segment,
            pc: access.pc,
            thread: access.thread as u16,
            flags: VALID | strong | narrow | flight,
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

/// What settles most accesses without vector clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Epoch {
    floor: u32,
    exact_readers: bool,
    /// Only barriers of the whole block or of whole warps have ordered anything so far.
    whole: bool,
}

impl Epoch {
    pub(crate) fn of(clocks: &Clocks) -> Epoch {
        Epoch {
            floor: clocks.floor,
            exact_readers: clocks.exact_readers,
            whole: !clocks.exact_readers && clocks.is_whole(),
        }
    }
}

impl Cell {
    /// The last write is before the floor, or the thread's own.
    #[inline(always)]
    fn written_before(&self, s: &Stamp, e: Epoch) -> bool {
        let w = &self.write;
        w.flags & (ASYNC | SPLIT) == 0 && (w.segment < e.floor || w.thread == s.thread)
    }

    /// Records a plain read where the epoch shows that it is right. Else `false`, and nothing is
    /// changed: [`Cell::access`] must decide.
    #[inline(always)]
    pub(crate) fn plain_read(&mut self, s: &Stamp, e: Epoch) -> bool {
        if !self.written_before(s, e) {
            return false;
        }
        let r = &mut self.read;
        let several = r.flags & (LANES | WARPS) != 0;
        if r.segment < e.floor && !(several && e.exact_readers) || !several && r.thread == s.thread
        {
            *r = *s;
            return true;
        }
        if !e.whole || r.segment < s.segment {
            return false;
        }
        // One more reader of this epoch. None of them is ordered before another: their segments
        // are not below the new one's, which is not below the floor of its warp.
        let wide = if r.thread / 32 != s.thread / 32 || r.flags & WARPS != 0 {
            WARPS
        } else {
            LANES
        };
        r.flags = (r.flags & !STRONG) | wide;
        true
    }

    /// The same for a plain write, or one of a `cp.async`.
    #[inline(always)]
    pub(crate) fn plain_write(&mut self, s: &Stamp, e: Epoch) -> bool {
        let r = &self.read;
        let several = r.flags & (LANES | WARPS) != 0;
        let read_before = r.segment < e.floor && !(several && e.exact_readers)
            || !several && r.thread == s.thread;
        let right = read_before && self.written_before(s, e);
        if right {
            *self = Cell {
                write: *s,
                read: Stamp::default(),
            };
        }
        right
    }

    /// Checks one access of the block that owns the cell, and records it.
    #[inline]
    pub(crate) fn access(
        &mut self,
        a: &Access,
        clocks: &Clocks,
        key: u64,
        readers: &mut Readers,
    ) -> Option<Conflict> {
        let after_write = self.after_write(a, clocks);
        if a.write {
            let after_reads = match after_write {
                None => self.after_reads(a, clocks, key, readers),
                hit => hit,
            };
            if self.read.is(LANES | WARPS) && clocks.exact_readers {
                readers.remove(&key);
            }
            *self = Cell {
                write: Stamp::of(a),
                read: Stamp::default(),
            };
            after_reads
        } else {
            self.add_reader(a, clocks, key, readers);
            after_write
        }
    }

    #[inline]
    fn after_write(&mut self, a: &Access, clocks: &Clocks) -> Option<Conflict> {
        let w = &mut self.write;
        if !w.is(VALID) || (w.is(STRONG) && a.strong) {
            return None;
        }
        if w.is(ASYNC) {
            // Said once: what follows from it is not news.
            let conflict = w.conflict(true);
            w.flags &= !ASYNC;
            return Some(conflict);
        }
        if clocks.ordered(a.thread, usize::from(w.thread), w.segment) || (a.write && a.same_value) {
            return None;
        }
        Some(w.conflict(true))
    }

    fn after_reads(
        &self,
        a: &Access,
        clocks: &Clocks,
        key: u64,
        readers: &Readers,
    ) -> Option<Conflict> {
        let r = &self.read;
        if !r.is(VALID) || (r.is(STRONG) && a.strong) || r.segment < clocks.floor {
            return None;
        }
        if !r.is(LANES | WARPS) {
            let ordered = clocks.ordered(a.thread, usize::from(r.thread), r.segment);
            return (!ordered).then(|| r.conflict(false));
        }
        if clocks.exact_readers {
            let list = readers.get(&key).map(Vec::as_slice).unwrap_or_default();
            return list
                .iter()
                .find(|s| {
                    let atomic = s.is(STRONG) && a.strong;
                    !atomic && !clocks.ordered(a.thread, usize::from(s.thread), s.segment)
                })
                .map(|s| s.conflict(false));
        }
        let warp = a.thread / 32;
        let own_warp = usize::from(r.thread) / 32 == warp && !r.is(WARPS);
        if own_warp && r.segment < clocks.warp_floor[warp] {
            return None;
        }
        Some(r.conflict(false))
    }

    #[inline]
    fn add_reader(&mut self, a: &Access, clocks: &Clocks, key: u64, readers: &mut Readers) {
        let r = self.read;
        let new = Stamp::of(a);
        if !r.is(VALID) || r.segment < clocks.floor {
            if r.is(LANES | WARPS) && clocks.exact_readers {
                readers.remove(&key);
            }
            self.read = new;
            return;
        }
        let single = !r.is(LANES | WARPS);
        let same_warp = usize::from(r.thread) / 32 == a.thread / 32;
        if single && clocks.ordered(a.thread, usize::from(r.thread), r.segment) {
            self.read = new;
            return;
        }
        if clocks.exact_readers {
            let list = readers.entry(key).or_default();
            if single {
                list.clear();
                list.push(r);
            }
            list.retain(|s| !clocks.ordered(a.thread, usize::from(s.thread), s.segment));
            list.push(new);
        } else if !single
            && !r.is(WARPS)
            && same_warp
            && r.segment < clocks.warp_floor[a.thread / 32]
        {
            self.read = new;
            return;
        }
        let wide = if same_warp && !r.is(WARPS) {
            LANES
        } else {
            WARPS
        };
        // Keep a reader that is not the writer-to-be most often: the earlier one.
        self.read.flags = (r.flags & (new.flags | !STRONG)) | (new.flags & NARROW) | wide;
        self.read.segment = r.segment.max(new.segment);
    }

    /// The thread waited for its asynchronous copies: they count as its writes from now on.
    pub(crate) fn landed(&mut self, thread: usize, segment: u32) {
        if self.write.is(ASYNC) && usize::from(self.write.thread) == thread {
            self.write.flags &= !ASYNC;
            self.write.segment = segment;
        }
    }
}

/// Shadow of shared memory: one cell a word, split into bytes where accesses are narrower.
#[derive(Debug, Default)]
pub(crate) struct BlockShadow {
    cells: Vec<Cell>,
    split: HashMap<u32, [Cell; 4]>,
    readers: Readers,
}

impl BlockShadow {
    /// Makes it large enough for a block. What it holds must be older than the block's clocks.
    pub(crate) fn renew(&mut self, words: usize) {
        self.cells.resize(words, Cell::default());
        self.readers.clear();
    }

    /// The cells of some words, for their plain accesses.
    #[inline(always)]
    pub(crate) fn cells(&mut self, first: usize, words: usize) -> &mut [Cell] {
        &mut self.cells[first..first + words]
    }

    /// Checks the bytes `mask` of a word.
    #[inline]
    pub(crate) fn access(
        &mut self,
        word: usize,
        mask: u32,
        a: &Access,
        clocks: &Clocks,
    ) -> Option<Conflict> {
        let cell = &mut self.cells[word];
        if mask == 15 && !cell.write.is(SPLIT) {
            return cell.access(a, clocks, word as u64 * 4, &mut self.readers);
        }
        self.access_bytes(word, mask, a, clocks)
    }

    #[cold]
    fn access_bytes(
        &mut self,
        word: usize,
        mask: u32,
        a: &Access,
        clocks: &Clocks,
    ) -> Option<Conflict> {
        let cell = &mut self.cells[word];
        if !cell.write.is(SPLIT) {
            if let Some(list) = self.readers.remove(&(word as u64 * 4)) {
                for byte in 0..4 {
                    self.readers.insert(word as u64 * 4 + byte, list.clone());
                }
            }
            self.split.insert(word as u32, [*cell; 4]);
            *cell = Cell {
                write: Stamp {
                    flags: SPLIT,
                    ..Stamp::default()
                },
                ..Cell::default()
            };
        }
        let bytes = self.split.get_mut(&(word as u32))?;
        access_split(bytes, word, mask, a, clocks, &mut self.readers)
    }

    /// Segment, place and thread of the last write to a word, if it is known.
    pub(crate) fn last_write(&self, word: usize) -> Option<(u32, u32, usize)> {
        let w = self.cells.get(word)?.write;
        (w.is(VALID) && !w.is(SPLIT)).then(|| (w.segment, w.pc, usize::from(w.thread)))
    }

    /// Marks a word's asynchronous copy as arrived.
    pub(crate) fn landed(&mut self, word: usize, thread: usize, segment: u32) {
        let cell = &mut self.cells[word];
        if !cell.write.is(SPLIT) {
            cell.landed(thread, segment);
        } else if let Some(bytes) = self.split.get_mut(&(word as u32)) {
            bytes.iter_mut().for_each(|b| b.landed(thread, segment));
        }
    }
}

fn access_split(
    bytes: &mut [Cell; 4],
    word: usize,
    mask: u32,
    a: &Access,
    clocks: &Clocks,
    readers: &mut Readers,
) -> Option<Conflict> {
    let mut found = None;
    for (byte, cell) in bytes.iter_mut().enumerate() {
        if mask >> byte & 1 == 1 {
            let key = word as u64 * 4 + byte as u64;
            found = cell.access(a, clocks, key, readers).or(found);
        }
    }
    found
}
