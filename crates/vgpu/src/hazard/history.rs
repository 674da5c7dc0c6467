//! Words for which the last write and the reads since are not enough: every access that a later one
//! may race with, one a thread and kind.

use std::collections::VecDeque;

use super::shadow::{Access, Cell, Conflict, LISTED, NARROW, STRONG, Stamp, VALID};

/// Accesses of one kind that a word remembers. A thread has one, so this is reached only by grids
/// of more threads than that on one word; the lowest blocks are then forgotten.
const MAX_PAST: usize = 1 << 16;

/// Histories of words, or of bytes where a word is kept byte by byte. The cell of a word that has one
/// holds its number; one that ends is used again for another word.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    histories: Vec<History>,
    /// Numbers of those that have ended.
    ended: Vec<u32>,
}

impl Lists {
    /// Begins a history with what the cell of `key` holds, of these blocks (that of the write, that of the
    /// read); its number.
    pub(super) fn begin(&mut self, key: u64, cell: &Cell, blocks: (u32, u32)) -> u32 {
        let number = self.ended.pop().unwrap_or_else(|| {
            self.histories.push(History::default());
            (self.histories.len() - 1) as u32
        });
        let history = &mut self.histories[number as usize];
        history.clear();
        history.key = key;
        history.add(blocks.0, cell.write, true);
        history.add(blocks.1, cell.read, false);
        number
    }

    /// The history of that number, if it is still that of `key`: a cell may be older than the block.
    pub(super) fn of(&mut self, number: u32, key: u64) -> Option<&mut History> {
        let history = self.histories.get_mut(number as usize);
        history.filter(|history| history.key == key)
    }

    /// A history ends.
    pub(super) fn end(&mut self, number: u32) {
        if let Some(history) = self.histories.get_mut(number as usize) {
            history.key = NOBODY;
            self.ended.push(number);
        }
    }

    /// The latest write in the history of that number.
    pub(super) fn last_write(&self, number: u32, key: u64) -> Option<Stamp> {
        let history = self.histories.get(number as usize);
        history.filter(|history| history.key == key)?.last_write()
    }

    /// All histories end.
    pub(super) fn clear(&mut self) {
        self.ended.clear();
        for (number, history) in self.histories.iter_mut().enumerate() {
            history.key = NOBODY;
            self.ended.push(number as u32);
        }
    }

    /// The cells of the bytes of a word that is from now on kept byte by byte.
    pub(super) fn split(&mut self, key: u64, cell: Cell) -> [Cell; 4] {
        let number = cell.write.segment;
        let known = cell.write.is(LISTED) && self.of(number, key).is_some();
        if !known {
            return [cell; 4];
        }
        let whole = self.histories[number as usize].clone();
        self.end(number);
        [0, 1, 2, 3].map(|byte| {
            let number = self.begin(key + byte, &Cell::default(), (0, 0));
            let mut history = whole.clone();
            history.key = key + byte;
            self.histories[number as usize] = history;
            let mut cell = cell;
            cell.write.segment = number;
            cell
        })
    }
}

/// The key of a history that nobody has.
const NOBODY: u64 = u64::MAX;

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
    /// Whose it is: the word's address, or the byte's.
    key: u64,
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

    /// The cell of a word that has this history, which has that number: whether there are writes and
    /// reads in it.
    pub(super) fn marker(&self, number: u32) -> Cell {
        let any = |kinds: &[VecDeque<Past>]| kinds.iter().any(|past| !past.is_empty());
        let valid = |is: bool| if is { VALID } else { 0 };
        Cell {
            write: Stamp {
                flags: LISTED | valid(any(&self.past[..2])),
                segment: number,
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
