//! The shadow of a block's shared memory.

use crate::table::Table;

use super::{Access, Cell, Conflict, Epoch, LISTED, LastWrite, SPLIT, Stamp, VALID};
use crate::hazard::clock::Clocks;
use crate::hazard::history::Lists;

/// Words of a lane's widest access: 16 bytes.
pub(crate) const WIDE_WORDS: usize = 4;

/// Marks the key of a history shared by the words of 16 aligned bytes. Addresses of shared memory
/// have 32 bits.
const SHARED_BY_WIDE: u64 = 1 << 40;

/// Returns the key of the history shared by the four words that include `word`.
fn wide_key(word: usize) -> u64 {
    SHARED_BY_WIDE + (word / WIDE_WORDS * WIDE_WORDS) as u64 * 4
}

/// Shadow of shared memory: one cell per word, split into bytes for narrower accesses.
///
/// Where vector clocks decide, tiles are mostly copied and read 16 bytes at a time, and all four
/// words have the same accesses. They share one history until a narrower access separates them.
#[derive(Debug, Default)]
pub(crate) struct BlockShadow {
    cells: Vec<Cell>,
    split: Table<u32, [Cell; 4]>,
    lists: Lists,
}

impl BlockShadow {
    /// Resizes it for a block. Its contents must be older than the block's clocks.
    pub(crate) fn renew(&mut self, words: usize) {
        // Cells of the block before stay: their stamps are below the floor of the new clocks, and so
        // count as ordered. Clearing them would cost a pass over the memory for each block.
        self.cells.resize(words, Cell::default());
        self.lists.clear();
    }

    /// Returns an empty shadow in the same memory.
    pub(crate) fn emptied(mut self) -> BlockShadow {
        self.cells.clear();
        self.split.clear();
        self.lists.clear();
        self
    }

    /// Returns the cells of some words, for their plain accesses.
    #[inline(always)]
    pub(crate) fn cells(&mut self, first: usize, words: usize) -> &mut [Cell] {
        &mut self.cells[first..first + words]
    }

    /// Checks a plain access of 16 aligned bytes as one if all four words have the same accesses;
    /// otherwise returns `Err` and changes nothing. The conflict is that of each word.
    pub(crate) fn access_wide(
        &mut self,
        first: usize,
        a: &Access,
        clocks: &Clocks,
    ) -> Result<Option<Conflict>, ()> {
        let Some((cell, others)) = self.cells[first..first + WIDE_WORDS].split_first_mut() else {
            return Err(());
        };
        // Cells with a history hold its number, so that equal cells also share it.
        if cell.write.is(SPLIT) || others.iter().any(|other| other != cell) {
            return Err(());
        }
        let (stamp, epoch) = (Stamp::from_access(a), Epoch::from_clocks(clocks));
        let found = if cell.plain(&stamp, a.write, epoch) {
            None
        } else {
            cell.access(a, clocks, wide_key(first), &mut self.lists)
        };
        others.fill(*cell);
        Ok(found)
    }

    /// Gives each of the words that share a history with this one a separate copy.
    fn separate_words(&mut self, word: usize) {
        let number = self.cells[word].write.segment;
        if let Some(numbers) = self.lists.separate_words(number, wide_key(word)) {
            let first = word / WIDE_WORDS * WIDE_WORDS;
            for (cell, number) in self.cells[first..].iter_mut().zip(numbers) {
                cell.write.segment = number;
            }
        }
    }

    /// Records the last of several atomic writes by lanes of one warp that each return the old
    /// value, to a word and the next. Returns `false` if they must be checked one by one.
    pub(crate) fn observed(&mut self, word: usize, last: &Access) -> bool {
        let cells = &mut self.cells[word..word + 2];
        let right = cells.iter().all(Cell::only_atomic);
        if right {
            for cell in cells {
                *cell = Cell {
                    write: Stamp::from_access(last),
                    read: Stamp::default(),
                };
            }
        }
        right
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
        // In a shared history this access would count as one to all four words.
        if self.cells[word].write.is(LISTED) {
            self.separate_words(word);
        }
        let cell = &mut self.cells[word];
        if mask == 15 && !cell.write.is(SPLIT) {
            return cell.access(a, clocks, word as u64 * 4, &mut self.lists);
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
            let bytes = self.lists.split(word as u64 * 4, *cell);
            self.split.insert(word as u32, bytes);
            *cell = Cell {
                write: Stamp {
                    flags: SPLIT,
                    ..Stamp::default()
                },
                ..Cell::default()
            };
        }
        let bytes = self.split.get_mut(&(word as u32))?;
        access_split(bytes, word, mask, a, clocks, &mut self.lists)
    }

    /// Records a write that follows the thread's own asynchronous ones in order, whoever has waited for
    /// them: only reads can conflict with it.
    pub(crate) fn overwrite_own(
        &mut self,
        word: usize,
        a: &Access,
        clocks: &Clocks,
    ) -> Option<Conflict> {
        let cell = &mut self.cells[word];
        if cell.write.is(SPLIT) || cell.write.is(LISTED) {
            return self.access(word, 15, a, clocks);
        }
        let found = cell.after_reads(a, clocks);
        *cell = Cell {
            write: Stamp::from_access(a),
            read: Stamp::default(),
        };
        found
    }

    /// Checks a read of a word whose end is recorded elsewhere.
    pub(crate) fn check_read(
        &mut self,
        word: usize,
        a: &Access,
        clocks: &Clocks,
    ) -> Option<Conflict> {
        let cell = &mut self.cells[word];
        if cell.write.is(SPLIT) {
            let bytes = self.split.get_mut(&(word as u32))?;
            return bytes.iter_mut().find_map(|cell| {
                cell.settle(clocks);
                cell.after_write(a, clocks)
            });
        }
        cell.settle(clocks);
        if !cell.write.is(LISTED) {
            return cell.after_write(a, clocks);
        }
        let write = self.last_writes(word)[0]?;
        (!clocks.ordered(a.thread, write.thread, write.segment)).then_some(Conflict {
            pc: write.pc,
            thread: write.thread,
            block: None,
            was_write: true,
            in_flight: false,
        })
    }

    /// Returns the last write to each byte of a word, where one is known.
    pub(crate) fn last_writes(&self, word: usize) -> [Option<LastWrite>; 4] {
        let Some(cell) = self.cells.get(word) else {
            return [None; 4];
        };
        let first = word as u64 * 4;
        if !cell.write.is(SPLIT) {
            // The number does not tell whether the word has the history alone or with three others.
            return [self.last_of(cell, &[first, wide_key(word)]); 4];
        }
        let Some(bytes) = self.split.get(&(word as u32)) else {
            return [None; 4];
        };
        std::array::from_fn(|byte| self.last_of(&bytes[byte], &[first + byte as u64]))
    }

    /// Returns the last write of a cell, whose history has one of some keys.
    fn last_of(&self, cell: &Cell, keys: &[u64]) -> Option<LastWrite> {
        let mut w = cell.write;
        if w.is(LISTED) {
            w = keys
                .iter()
                .find_map(|key| self.lists.last_write(w.segment, *key))?;
        }
        w.is(VALID).then(|| LastWrite {
            segment: w.segment,
            pc: w.pc,
            thread: usize::from(w.thread),
        })
    }

    /// Makes a thread's write of a word one of an agent: see [`Cell::give_to_agent`].
    pub(crate) fn give_to_agent(
        &mut self,
        word: usize,
        thread: usize,
        by: (usize, u32),
        plain: bool,
    ) {
        let cell = &mut self.cells[word];
        if !cell.write.is(SPLIT) {
            cell.give_to_agent(thread, by, plain);
        } else if let Some(bytes) = self.split.get_mut(&(word as u32)) {
            for byte in bytes {
                byte.give_to_agent(thread, by, plain);
            }
        }
    }

    /// Marks a word's asynchronous copy as completed.
    pub(crate) fn complete_copy(&mut self, word: usize, thread: usize, segment: u32) {
        let cell = &mut self.cells[word];
        if !cell.write.is(SPLIT) {
            cell.complete_copy(thread, segment);
        } else if let Some(bytes) = self.split.get_mut(&(word as u32)) {
            bytes
                .iter_mut()
                .for_each(|b| b.complete_copy(thread, segment));
        }
    }
}

fn access_split(
    bytes: &mut [Cell; 4],
    word: usize,
    mask: u32,
    a: &Access,
    clocks: &Clocks,
    lists: &mut Lists,
) -> Option<Conflict> {
    let mut found = None;
    for (byte, cell) in bytes.iter_mut().enumerate() {
        if mask >> byte & 1 == 1 {
            let key = word as u64 * 4 + byte as u64;
            found = cell.access(a, clocks, key, lists).or(found);
        }
    }
    found
}

#[cfg(test)]
mod tests;
