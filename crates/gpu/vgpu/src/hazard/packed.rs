//! Cells of global words in few bytes.
//!
//! Neighbouring words are touched by threads of few blocks at few instructions. So a chunk has a table
//! of what stamps have in common, and a word its thread and a place in that table: 4 bytes a
//! write and 4 a read, which are there only where there are such.

use super::shadow::{Cell, Stamp};
use super::word::GlobalCell;

/// A stamp without its thread, and its block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Shared {
    block: u32,
    segment: u32,
    pc: u32,
    flags: u8,
    commutes: u8,
}

/// A stamp and its block: place in the table, thread.
type Half = [u16; 2];

/// The same of the last write and of the reads since.
type Packed = [Half; 2];

/// Entries of the table that are looked at before another one is made.
const RECENT: usize = 8;
/// Entries of the table before those that nothing uses are dropped.
const ENTRIES: usize = 4096;

/// Cells of the words of a chunk.
#[derive(Debug)]
pub(super) struct PackedCells {
    words: usize,
    writes: Vec<Half>,
    reads: Vec<Half>,
    /// Bytes of the words that are kept byte by byte.
    byte_writes: Vec<[Half; 4]>,
    byte_reads: Vec<[Half; 4]>,
    /// The first one is that of no access.
    table: Vec<Shared>,
    /// Entries used last: of a write, of a read.
    last: [u16; 2],
    limit: usize,
}

impl PackedCells {
    pub(super) fn new(words: usize) -> PackedCells {
        PackedCells {
            words,
            writes: Vec::new(),
            reads: Vec::new(),
            byte_writes: Vec::new(),
            byte_reads: Vec::new(),
            table: vec![Shared::default()],
            last: [0; 2],
            limit: ENTRIES,
        }
    }

    /// Forgets all accesses.
    pub(super) fn clear(&mut self) {
        self.writes.clear();
        self.reads.clear();
        self.byte_writes.clear();
        self.byte_reads.clear();
        self.table.truncate(1);
        self.last = [0; 2];
        self.limit = ENTRIES;
    }

    #[inline(always)]
    fn unpacked(&self, [entry, thread]: Half) -> (Stamp, u32) {
        let s = self.table[usize::from(entry)];
        let stamp = Stamp {
            segment: s.segment,
            pc: s.pc,
            thread,
            flags: s.flags,
            commutes: s.commutes,
        };
        (stamp, s.block)
    }

    #[inline(always)]
    fn cell(&self, [write, read]: Packed) -> GlobalCell {
        let ((write, write_block), (read, read_block)) =
            (self.unpacked(write), self.unpacked(read));
        GlobalCell {
            write_block,
            read_block,
            cell: Cell { write, read },
        }
    }

    #[inline(always)]
    fn pack(&mut self, stamp: &Stamp, block: u32, kind: usize) -> Half {
        // Zero is the first entry, so that fresh vectors of zeros hold no accesses.
        if stamp.flags == 0 {
            return [0; 2];
        }
        let shared = Shared {
            block,
            segment: stamp.segment,
            pc: stamp.pc,
            flags: stamp.flags,
            commutes: stamp.commutes,
        };
        // The lanes of one instruction differ in their threads only.
        let last = self.last[kind];
        if self.table[usize::from(last)] == shared {
            return [last, stamp.thread];
        }
        [self.find(shared, kind), stamp.thread]
    }

    fn find(&mut self, shared: Shared, kind: usize) -> u16 {
        // A duplicate entry further back costs a few bytes; a search of the table would cost time at
        // every new instruction.
        let recent = self.table.len().saturating_sub(RECENT);
        let found = self.table[recent..].iter().position(|s| *s == shared);
        let entry = match found {
            Some(at) => recent + at,
            None => {
                self.table.push(shared);
                self.table.len() - 1
            }
        };
        self.last[kind] = entry as u16;
        entry as u16
    }

    #[inline(always)]
    pub(super) fn load(&self, at: usize) -> GlobalCell {
        let half = |all: &[Half]| all.get(at).copied().unwrap_or_default();
        self.cell([half(&self.writes), half(&self.reads)])
    }

    #[inline(always)]
    pub(super) fn store(&mut self, at: usize, cell: &GlobalCell) {
        let write = self.pack(&cell.cell.write, cell.write_block, 0);
        let read = self.pack(&cell.cell.read, cell.read_block, 1);
        let words = self.words;
        for (all, half) in [(&mut self.writes, write), (&mut self.reads, read)] {
            if let Some(slot) = all.get_mut(at) {
                *slot = half;
            } else if half != [0; 2] {
                // Allocated at the first access of its kind: a chunk may be only read or only written.
                all.resize(words, [0; 2]);
                all[at] = half;
            }
        }
        self.drop_unused();
    }

    /// Reports whether a read of any byte of a word is recorded.
    pub(super) fn has_read(&self, at: usize) -> bool {
        let whole = self.reads.get(at).is_some_and(|half| *half != [0; 2]);
        let of_bytes = self.byte_reads.get(at);
        whole || of_bytes.is_some_and(|bytes| *bytes != [[0; 2]; 4])
    }

    /// The cell of a byte of a word that is kept byte by byte.
    #[inline]
    pub(super) fn load_byte(&self, at: usize, byte: usize) -> GlobalCell {
        let half = |all: &[[Half; 4]]| all.get(at).map_or([0; 2], |bytes| bytes[byte]);
        self.cell([half(&self.byte_writes), half(&self.byte_reads)])
    }

    #[inline]
    pub(super) fn store_byte(&mut self, at: usize, byte: usize, cell: &GlobalCell) {
        let write = self.pack(&cell.cell.write, cell.write_block, 0);
        let read = self.pack(&cell.cell.read, cell.read_block, 1);
        let words = self.words;
        for (all, half) in [(&mut self.byte_writes, write), (&mut self.byte_reads, read)] {
            if let Some(bytes) = all.get_mut(at) {
                bytes[byte] = half;
            } else if half != [0; 2] {
                all.resize(words, [[0; 2]; 4]);
                all[at][byte] = half;
            }
        }
        self.drop_unused();
    }

    /// Drops the entries that no cell uses, where there are many.
    #[inline(always)]
    fn drop_unused(&mut self) {
        if self.table.len() >= self.limit {
            self.collect();
        }
    }

    #[cold]
    fn collect(&mut self) {
        let old = std::mem::replace(&mut self.table, vec![Shared::default()]);
        let mut places = vec![0u16; old.len()];
        let table = &mut self.table;
        let mut renew = |half: &mut Half| {
            let place = &mut places[usize::from(half[0])];
            if *place == 0 && half[0] != 0 {
                table.push(old[usize::from(half[0])]);
                *place = (table.len() - 1) as u16;
            }
            half[0] = *place;
        };
        self.writes.iter_mut().for_each(&mut renew);
        self.reads.iter_mut().for_each(&mut renew);
        let bytes = [&mut self.byte_writes, &mut self.byte_reads];
        bytes.into_iter().flatten().flatten().for_each(&mut renew);
        self.last = [0; 2];
        // A chunk has two stamps a word and eight where it is split: fewer than there are numbers.
        self.limit = ENTRIES.max(2 * self.table.len());
    }
}
