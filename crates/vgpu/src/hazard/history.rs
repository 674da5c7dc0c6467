//! Words for which the last write and the reads since are not enough: every access that a later one
//! may race with, one a thread and kind.

use std::collections::{HashMap, VecDeque};

use foldhash::fast::FixedState;

use super::shadow::{Access, Cell, Conflict, LISTED, NARROW, STRONG, Stamp, VALID};

/// Accesses of one kind that a word remembers. A thread has one, so this is reached only by grids
/// of more threads than that on one word; the lowest blocks are then forgotten.
const MAX_PAST: usize = 1 << 16;

/// Histories by word (its address), or by byte where the word is kept byte by byte. One that ends stays
/// as room for the next: words are written and read in turns.
#[derive(Debug, Default)]
pub(crate) struct Lists(HashMap<u64, History, FixedState>);

impl Lists {
    /// Begins the history of a word with what its cell holds, of these blocks (that of the write, that of
    /// the read).
    pub(super) fn begin(&mut self, key: u64, cell: &Cell, (write_block, read_block): (u32, u32)) {
        let history = self.0.entry(key).or_default();
        history.clear();
        history.add(write_block, cell.write, true);
        history.add(read_block, cell.read, false);
    }

    /// The history of a word, which has begun.
    pub(super) fn of(&mut self, key: u64) -> &mut History {
        self.0.entry(key).or_default()
    }

    /// The latest write in a word's history.
    pub(super) fn last_write(&self, key: u64) -> Option<Stamp> {
        self.0.get(&key)?.last_write()
    }

    /// All histories end.
    pub(super) fn clear(&mut self) {
        self.0.values_mut().for_each(History::clear);
    }

    /// A word is from now on kept byte by byte.
    pub(super) fn split(&mut self, key: u64) {
        if let Some(list) = self.0.remove(&key) {
            for byte in 0..4 {
                self.0.insert(key + byte, list.clone());
            }
        }
    }
}

/// Plain writes, atomic writes, plain reads, atomic reads: the order in which a race is looked for.
const KINDS: usize = 4;

/// Those of atomic reads.
const STRONG_READS: usize = 3;

fn kind(strong: bool, write: bool) -> usize {
    usize::from(!write) * 2 + usize::from(strong)
}

/// An access, its block, and its place among those to the word.
#[derive(Debug, Clone, Copy)]
struct Past {
    block: u32,
    stamp: Stamp,
    place: u32,
}

impl Past {
    /// What there is one of: a thread.
    fn thread(&self) -> (u32, u16) {
        (self.block, self.stamp.thread)
    }
}

/// The last access of each kind by each thread (block, thread) since the last plain write.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    /// In ascending order of threads, which is nearly that in which they come.
    past: [VecDeque<Past>; KINDS],
    /// Accesses so far.
    count: u32,
    /// Some atomic access was so towards its own block only.
    narrow: bool,
    /// Highest segment of an access.
    pub(super) latest: u32,
}

impl History {
    fn clear(&mut self) {
        self.past.iter_mut().for_each(VecDeque::clear);
        (self.count, self.narrow, self.latest) = (0, false, 0);
    }

    fn add(&mut self, block: u32, stamp: Stamp, write: bool) {
        if !stamp.is(VALID) {
            return;
        }
        self.narrow |= stamp.is(NARROW);
        self.latest = self.latest.max(stamp.segment);
        self.count += 1;
        let new = Past {
            block,
            stamp,
            place: self.count,
        };
        let past = &mut self.past[kind(stamp.is(STRONG), write)];
        if past.back().is_none_or(|last| last.thread() < new.thread()) {
            past.push_back(new);
        } else {
            match past.binary_search_by_key(&new.thread(), Past::thread) {
                Ok(at) => past[at] = new,
                Err(at) => past.insert(at, new),
            }
        }
        if past.len() > MAX_PAST {
            past.pop_front();
        }
    }

    /// Checks an access against all that came before, and records it unless it is a plain write:
    /// that leaves nothing of what came before. `ordered` says whether an earlier access (its block,
    /// its stamp) happens before this one.
    pub(super) fn access(
        &mut self,
        a: &Access,
        block: u32,
        ordered: impl Fn(u32, &Stamp) -> bool,
    ) -> Option<Conflict> {
        let found = self.find(a, block, ordered);
        if a.write && a.observes {
            self.past[kind(true, true)].clear();
        }
        if !a.write || a.strong {
            self.add(block, Stamp::of(a), a.write);
        }
        found
    }

    fn find(
        &self,
        a: &Access,
        block: u32,
        ordered: impl Fn(u32, &Stamp) -> bool,
    ) -> Option<Conflict> {
        for (kind, past) in self.past.iter().enumerate() {
            let (strong, write) = (kind & 1 == 1, kind < 2);
            let excused = write && a.write && a.same_value;
            let atomic = strong && a.strong;
            if !write && !a.write || excused || atomic && !self.narrow && !a.narrow {
                continue;
            }
            // Atomic writes up to this place were seen by an atomic read that happens before.
            let seen = || {
                let readers = self.past[STRONG_READS].iter();
                let before = readers.filter(|r| ordered(r.block, &r.stamp));
                before.map(|r| r.place).max().unwrap_or(0)
            };
            let race = past.iter().find(|s| {
                let to_all = !s.stamp.is(NARROW) && !a.narrow;
                let both = atomic && (to_all || s.block == block);
                !(both || ordered(s.block, &s.stamp) || strong && write && s.place < seen())
            });
            if let Some(s) = race {
                return Some(Conflict {
                    block: Some(s.block).filter(|other| *other != block),
                    ..s.stamp.conflict(write)
                });
            }
        }
        None
    }

    /// The cell of a word that has a history: whether there are writes and reads in it.
    pub(super) fn marker(&self) -> Cell {
        let any = |kinds: &[VecDeque<Past>]| kinds.iter().any(|past| !past.is_empty());
        let valid = |is: bool| if is { VALID } else { 0 };
        Cell {
            write: Stamp {
                flags: LISTED | valid(any(&self.past[..2])),
                ..Stamp::default()
            },
            read: Stamp {
                flags: valid(any(&self.past[2..])),
                ..Stamp::default()
            },
        }
    }

    /// The latest write.
    pub(super) fn last_write(&self) -> Option<Stamp> {
        let writes = self.past[..2].iter().flatten();
        writes.max_by_key(|s| s.place).map(|s| s.stamp)
    }
}
