//! Histories of words for which the last write and the reads since are not enough: every access
//! that a later one may race with, one per thread and kind.

use super::past::{AccessList, PastAccess};
use super::shadow::{Access, Cell, Conflict, LISTED, Stamp, Strength, VALID, WIDE_WORDS};

/// Histories of words, or of bytes of split words. The cell of such a word holds the history's
/// number; the number of an ended history is reused.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    histories: Vec<History>,
    /// Numbers of ended histories.
    ended: Vec<u32>,
}

impl Lists {
    /// Begins a history with the contents of the cell of `key`, whose write and read are of these
    /// blocks. Returns its number.
    pub(super) fn begin(&mut self, key: u64, cell: &Cell, blocks: AccessBlocks) -> u32 {
        let number = self.ended.pop().unwrap_or_else(|| {
            self.histories.push(History::default());
            (self.histories.len() - 1) as u32
        });
        let history = &mut self.histories[number as usize];
        history.clear();
        history.key = key;
        history.add(blocks.write, cell.write, true);
        history.add(blocks.read, cell.read, false);
        number
    }

    /// Returns the history of that number if it still belongs to `key`: a cell may be older than
    /// the block.
    pub(super) fn find_history(&mut self, number: u32, key: u64) -> Option<&mut History> {
        let history = self.histories.get_mut(number as usize);
        history.filter(|history| history.key == key)
    }

    /// Ends a history.
    pub(super) fn end(&mut self, number: u32) {
        if let Some(history) = self.histories.get_mut(number as usize) {
            history.key = ENDED_KEY;
            self.ended.push(number);
        }
    }

    /// Returns the latest write in the history of that number.
    pub(super) fn last_write(&self, number: u32, key: u64) -> Option<Stamp> {
        let history = self.histories.get(number as usize);
        history.filter(|history| history.key == key)?.last_write()
    }

    /// Ends all histories.
    pub(super) fn clear(&mut self) {
        self.ended.clear();
        // The histories stay allocated for the next block. Their keys change, because cells of
        // memory outlive the block and still hold these numbers.
        for (number, history) in self.histories.iter_mut().enumerate() {
            history.key = ENDED_KEY;
            self.ended.push(number as u32);
        }
    }

    /// Returns the cells of the bytes of a word that is split from now on.
    pub(super) fn split(&mut self, key: u64, cell: Cell) -> [Cell; 4] {
        let number = cell.write.segment;
        let known = cell.write.is(LISTED) && self.find_history(number, key).is_some();
        // Two stamps serve each byte as they are; only a history belongs to one key.
        if !known {
            return [cell; 4];
        }
        self.copies(number, [0, 1, 2, 3].map(|byte| key + byte))
            .map(|number| {
                let mut cell = cell;
                cell.write.segment = number;
                cell
            })
    }

    /// Ends the history of that number, if it is `key`'s, which four words share, and copies it for
    /// each of them. Returns their numbers.
    pub(super) fn separate_words(&mut self, number: u32, key: u64) -> Option<[u32; WIDE_WORDS]> {
        self.find_history(number, key)?;
        let first = key & u64::from(u32::MAX);
        Some(self.copies(number, [0, 4, 8, 12].map(|byte| first + byte)))
    }

    /// Ends a history and begins copies of it for these keys. Returns their numbers.
    fn copies<const N: usize>(&mut self, number: u32, keys: [u64; N]) -> [u32; N] {
        // `begin` may reuse the ended number, so the contents are copied first.
        let whole = self.histories[number as usize].clone();
        self.end(number);
        keys.map(|key| {
            let number = self.begin(key, &Cell::default(), AccessBlocks::default());
            let mut history = whole.clone();
            history.key = key;
            self.histories[number as usize] = history;
            number
        })
    }
}

/// Blocks of the write and of the read in a cell.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AccessBlocks {
    pub(super) write: u32,
    pub(super) read: u32,
}

/// Key of an ended history.
const ENDED_KEY: u64 = u64::MAX;

/// The last access of each kind by each thread (block, thread) since the last plain write.
///
/// Tiles of shared memory have one per 16 bytes, and a read of a tile visits all of them. The
/// fields that a plain read needs are in the first cache line, its own entry in the next.
#[derive(Debug, Clone, Default)]
#[repr(C, align(64))]
pub(crate) struct History {
    /// Its owner: the address of the word or byte.
    key: u64,
    writes: AccessList<1>,
    /// Atomic and volatile accesses, which only few words have.
    atomics: Option<Box<Atomics>>,
    /// Number of accesses.
    count: u32,
    /// Highest segment of an access.
    pub(super) latest: u32,
    /// Some atomic access had block scope.
    narrow: bool,
    /// Some write is of an agent.
    pub(super) has_agents: bool,
    /// Most words with several readers are read once by each warp of a block.
    reads: AccessList<8>,
}

/// Atomic and volatile accesses of a history.
#[derive(Debug, Clone, Default)]
struct Atomics {
    strong: Accesses,
    volatile: Accesses,
}

/// Accesses of one strength.
#[derive(Debug, Clone, Default)]
struct Accesses {
    writes: AccessList<1>,
    reads: AccessList<1>,
}

/// Kinds of accesses (write, strength) in the order in which their races are reported.
const KINDS: [(bool, Strength); 6] = [
    (true, Strength::Plain),
    (true, Strength::Volatile),
    (true, Strength::Strong),
    (false, Strength::Plain),
    (false, Strength::Volatile),
    (false, Strength::Strong),
];

/// Accesses in two consecutive parts.
type Parts<'a> = (&'a [PastAccess], &'a [PastAccess]);

impl History {
    fn clear(&mut self) {
        self.writes.clear();
        self.reads.clear();
        if let Some(atomics) = &mut self.atomics {
            **atomics = Atomics::default();
        }
        (self.count, self.latest) = (0, 0);
        (self.narrow, self.has_agents) = (false, false);
    }

    /// Returns the writes or the reads of one strength.
    fn parts(&self, write: bool, strength: Strength) -> Parts<'_> {
        let accesses = match (strength, &self.atomics) {
            (Strength::Plain, _) if write => return self.writes.parts(),
            (Strength::Plain, _) => return self.reads.parts(),
            (_, None) => return (&[], &[]),
            (Strength::Volatile, Some(atomics)) => &atomics.volatile,
            (Strength::Strong, Some(atomics)) => &atomics.strong,
        };
        match write {
            true => accesses.writes.parts(),
            false => accesses.reads.parts(),
        }
    }

    fn add(&mut self, block: u32, stamp: Stamp, write: bool) {
        if !stamp.is(VALID) {
            return;
        }
        self.has_agents |= stamp.is_agents();
        self.narrow |= stamp.is_narrow();
        self.latest = self.latest.max(stamp.segment);
        self.count += 1;
        let new = PastAccess {
            block,
            stamp,
            place: self.count,
        };
        let accesses = match stamp.strength() {
            Strength::Plain if write => return self.writes.add(new),
            Strength::Plain => return self.reads.add(new),
            Strength::Volatile => &mut self.atomics.get_or_insert_default().volatile,
            Strength::Strong => &mut self.atomics.get_or_insert_default().strong,
        };
        match write {
            true => accesses.writes.add(new),
            false => accesses.reads.add(new),
        }
    }

    /// Checks an access against all earlier ones and records it. A plain write is not recorded: it
    /// ends the history. `ordered` reports whether an earlier access (its block, its stamp) happens
    /// before this one.
    pub(super) fn access(
        &mut self,
        a: &Access,
        block: u32,
        ordered: impl Fn(u32, &Stamp) -> bool,
    ) -> Option<Conflict> {
        let found = self.find(a, block, ordered);
        // An observing atomic write orders the atomic writes before it and stands for all of them.
        if let (true, Some(atomics)) = (a.write && a.observes, &mut self.atomics) {
            atomics.strong.writes.clear();
            // It has seen the volatile writes too, and the next one must not hide that.
            if !atomics.volatile.writes.parts().0.is_empty() {
                self.add(block, Stamp::from_access(a), false);
            }
        }
        if !a.write || a.strength != Strength::Plain {
            self.add(block, Stamp::from_access(a), a.write);
        }
        found
    }

    fn find(
        &self,
        a: &Access,
        block: u32,
        ordered: impl Fn(u32, &Stamp) -> bool,
    ) -> Option<Conflict> {
        // In the order in which races are reported.
        let kinds = if a.write { &KINDS[..] } else { &KINDS[..3] };
        // A read races with writes only.
        for &(write, strength) in kinds {
            let (past, rest) = self.parts(write, strength);
            if past.is_empty() || write && a.write && a.same_value {
                continue;
            }
            let atomic = strength == Strength::Strong && a.strength == Strength::Strong;
            if atomic && !self.narrow && !a.narrow {
                continue;
            }
            // Atomic writes up to this place were seen by an atomic read that happens before.
            let seen = || {
                let (readers, more) = self.parts(false, Strength::Strong);
                let readers = readers.iter().chain(more);
                let before = readers.filter(|r| ordered(r.block, &r.stamp));
                before.map(|r| r.place).max().unwrap_or(0)
            };
            let races = |s: &&PastAccess| {
                let both = s.stamp.is_atomic_with(a, write, s.block != block);
                let observed = strength != Strength::Plain && write;
                !(both || ordered(s.block, &s.stamp) || observed && s.place < seen())
            };
            // Not a chain of the two: chaining copies the closure's captures, which takes longer
            // than the few accesses of most words.
            let race = past.iter().find(&races);
            if let Some(s) = race.or_else(|| rest.iter().find(&races)) {
                return Some(Conflict {
                    block: Some(s.block).filter(|other| *other != block),
                    ..s.stamp.conflict(write)
                });
            }
        }
        None
    }

    /// Returns the cell that refers to this history by its number, with flags for its writes and
    /// reads.
    pub(super) fn marker(&self, number: u32) -> Cell {
        let (writes, reads) = KINDS.split_at(3);
        let has =
            |(write, strength): &(bool, Strength)| !self.parts(*write, *strength).0.is_empty();
        let (written, read) = (writes.iter().any(has), reads.iter().any(has));
        let valid = |is: bool| if is { VALID } else { 0 };
        Cell {
            write: Stamp {
                flags: LISTED | valid(written),
                segment: number,
                ..Stamp::default()
            },
            read: Stamp {
                flags: valid(read),
                ..Stamp::default()
            },
        }
    }

    /// Returns the latest write.
    pub(super) fn last_write(&self) -> Option<Stamp> {
        let writes = KINDS[..3]
            .iter()
            .map(|&(write, strength)| self.parts(write, strength))
            .flat_map(|(some, more)| some.iter().chain(more));
        writes.max_by_key(|s| s.place).map(|s| s.stamp)
    }
}

#[cfg(test)]
mod tests;
