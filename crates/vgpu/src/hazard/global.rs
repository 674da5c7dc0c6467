//! Shadow of global memory: cells that the blocks of a launch share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::clock::Clocks;
use super::shadow::{Access, Cell, Conflict, Epoch, Readers, SPLIT, STRONG, Stamp, VALID};

/// Words a chunk of global shadow covers.
const CHUNK: usize = 1024;
/// Several blocks read the word.
const MANY: u32 = u32::MAX;

/// A global word: its cell, and which blocks of which launch filled it.
#[derive(Debug, Clone, Copy, Default)]
struct GlobalCell {
    launch: u32,
    write_block: u32,
    read_block: u32,
    cell: Cell,
}

#[derive(Debug, Default)]
pub(crate) struct ChunkCells {
    words: Vec<GlobalCell>,
    split: HashMap<u32, [GlobalCell; 4]>,
}

#[derive(Debug)]
struct Chunk {
    /// Per word: the launch (a byte of it) in which many blocks read and none wrote.
    quiet: Vec<AtomicU8>,
    cells: Mutex<ChunkCells>,
}

/// Shadow of one global allocation, filled as it is touched.
#[derive(Debug)]
pub(crate) struct GlobalShadow {
    chunks: Vec<OnceLock<Chunk>>,
}

/// What a block brings to a check of global memory.
pub(crate) struct GlobalView<'a> {
    pub(crate) launch: u32,
    pub(crate) block: u32,
    pub(crate) clocks: &'a Clocks,
    pub(crate) readers: &'a mut Readers,
    /// Start of the allocation, to tell the words of different ones apart.
    pub(crate) base: u64,
}

impl GlobalShadow {
    pub(crate) fn new(words: usize) -> GlobalShadow {
        GlobalShadow {
            chunks: (0..words.div_ceil(CHUNK))
                .map(|_| OnceLock::new())
                .collect(),
        }
    }

    fn chunk(&self, word: usize) -> &Chunk {
        self.chunks[word / CHUNK].get_or_init(|| Chunk {
            quiet: (0..CHUNK).map(|_| AtomicU8::new(0)).collect(),
            cells: Mutex::new(ChunkCells {
                words: vec![GlobalCell::default(); CHUNK],
                split: HashMap::new(),
            }),
        })
    }

    /// Checks the bytes `mask` of a word.
    pub(crate) fn access(
        &self,
        word: usize,
        mask: u32,
        a: &Access,
        view: &mut GlobalView<'_>,
    ) -> Option<Conflict> {
        if !a.write && self.is_quiet(word, 1, view.launch) {
            return None;
        }
        self.open(word).access(word, mask, a, view)
    }

    /// Whether many blocks of this launch read the words and none wrote them: one more reader is
    /// no news. The words are of one chunk.
    #[inline]
    pub(crate) fn is_quiet(&self, first: usize, words: usize, launch: u32) -> bool {
        let at = first % CHUNK;
        let quiet = &self.chunk(first).quiet[at..at + words];
        quiet.iter().all(|q| q.load(Relaxed) == tag(launch))
    }

    /// Takes the chunk of a word for several accesses.
    #[inline]
    pub(crate) fn open(&self, word: usize) -> OpenChunk<'_> {
        let chunk = self.chunk(word);
        OpenChunk {
            number: word / CHUNK,
            quiet: &chunk.quiet,
            cells: chunk.cells.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }
}

fn tag(launch: u32) -> u8 {
    (launch % 255 + 1) as u8
}

/// A chunk that no other worker can touch.
pub(crate) struct OpenChunk<'a> {
    number: usize,
    quiet: &'a [AtomicU8],
    cells: MutexGuard<'a, ChunkCells>,
}

impl OpenChunk<'_> {
    /// Whether a word is in this chunk.
    #[inline(always)]
    pub(crate) fn holds(&self, word: usize) -> bool {
        word / CHUNK == self.number
    }

    /// Records a plain access of a whole word where the epoch shows that it is right. Else `false`,
    /// and nothing is changed.
    #[inline(always)]
    pub(crate) fn plain(
        &mut self,
        word: usize,
        s: &Stamp,
        write: bool,
        (launch, block): (u32, u32),
        e: Epoch,
    ) -> bool {
        let at = word % CHUNK;
        let cell = &mut self.cells.words[at];
        let right = cell.plain(s, write, (launch, block), e);
        if right {
            if write {
                self.quiet[at].store(0, Relaxed);
            } else if cell.read_block == MANY && cell.cell.write.flags == 0 {
                self.quiet[at].store(tag(launch), Relaxed);
            }
        }
        right
    }

    /// Checks the bytes `mask` of a word.
    pub(crate) fn access(
        &mut self,
        word: usize,
        mask: u32,
        a: &Access,
        view: &mut GlobalView<'_>,
    ) -> Option<Conflict> {
        let at = word % CHUNK;
        let cells = &mut *self.cells;
        let cell = &mut cells.words[at];
        if cell.launch != view.launch {
            *cell = GlobalCell {
                launch: view.launch,
                ..GlobalCell::default()
            };
        }
        if a.write {
            self.quiet[at].store(0, Relaxed);
        }
        if mask != 15 || cell.cell.write.is(SPLIT) {
            return split_access(cells, word, mask, a, view);
        }
        let hit = cell.access(a, view, view.base + word as u64 * 4);
        if cell.read_block == MANY && !cell.cell.write.is(VALID) && cell.cell.read.is(VALID) {
            self.quiet[at].store(tag(view.launch), Relaxed);
        }
        hit
    }
}

fn split_access(
    cells: &mut ChunkCells,
    word: usize,
    mask: u32,
    a: &Access,
    view: &mut GlobalView<'_>,
) -> Option<Conflict> {
    let at = word % CHUNK;
    let whole = &mut cells.words[at];
    if !whole.cell.write.is(SPLIT) {
        let key = view.base + word as u64 * 4;
        if let Some(list) = view.readers.remove(&key) {
            for byte in 0..4 {
                view.readers.insert(key + byte, list.clone());
            }
        }
        cells.split.insert(at as u32, [*whole; 4]);
        whole.cell = Cell {
            write: Stamp {
                flags: SPLIT,
                ..Stamp::default()
            },
            ..Cell::default()
        };
    }
    let bytes = cells.split.get_mut(&(at as u32))?;
    let mut found = None;
    for (byte, cell) in bytes.iter_mut().enumerate() {
        if mask >> byte & 1 == 1 {
            let key = view.base + word as u64 * 4 + byte as u64;
            found = cell.access(a, view, key).or(found);
        }
    }
    found
}

impl GlobalCell {
    /// See [`OpenChunk::plain`].
    #[inline(always)]
    fn plain(&mut self, s: &Stamp, write: bool, (launch, block): (u32, u32), e: Epoch) -> bool {
        if self.launch != launch {
            let none = Stamp::default();
            let (write, read) = if write { (*s, none) } else { (none, *s) };
            *self = GlobalCell {
                launch,
                write_block: block,
                read_block: block,
                cell: Cell { write, read },
            };
            return true;
        }
        let unwritten = self.cell.write.flags == 0;
        let unread = self.cell.read.flags == 0;
        if (unwritten || self.write_block == block) && (unread || self.read_block == block) {
            let right = if write {
                self.cell.plain_write(s, e)
            } else {
                self.cell.plain_read(s, e)
            };
            if right {
                *(if write {
                    &mut self.write_block
                } else {
                    &mut self.read_block
                }) = block;
            }
            return right;
        }
        if !write && unwritten && !self.cell.read.is(STRONG) {
            // Another block read before.
            self.read_block = MANY;
            return true;
        }
        false
    }

    fn access(&mut self, a: &Access, view: &mut GlobalView<'_>, key: u64) -> Option<Conflict> {
        let mut found = None;
        let w = self.cell.write;
        if w.is(VALID) && self.write_block != view.block {
            let both = w.atomic_to_all() && a.strong && !a.narrow;
            let excused = both || (a.write && a.same_value);
            if !excused && !self.known(a, view, w, self.write_block) {
                found = Some(Conflict {
                    block: Some(self.write_block),
                    ..w.conflict(true)
                });
            }
            if a.write {
                self.cell.write = Stamp::default();
            }
        }
        let r = self.cell.read;
        if r.is(VALID) && self.read_block != view.block {
            if a.write {
                let both = r.atomic_to_all() && a.strong && !a.narrow;
                if found.is_none() && !both && !self.known(a, view, r, self.read_block) {
                    let block = (self.read_block != MANY).then_some(self.read_block);
                    found = Some(Conflict {
                        block: block.or(Some(MANY)),
                        ..r.conflict(false)
                    });
                }
            } else {
                // A second block reads: keep the first reader's stamp as the witness.
                self.read_block = MANY;
                if !a.strong {
                    self.cell.read.flags &= !STRONG;
                }
                return found;
            }
            self.cell.read = Stamp::default();
        }
        // What is left belongs to this block (a foreign write stays only under reads).
        let kept = self.cell.write;
        let foreign_write = kept.is(VALID) && self.write_block != view.block;
        if foreign_write {
            self.cell.write = Stamp::default();
        }
        found = self
            .cell
            .access(a, view.clocks, key, view.readers)
            .or(found);
        if a.write {
            self.write_block = view.block;
        } else {
            self.read_block = view.block;
            if foreign_write {
                self.cell.write = kept;
            }
        }
        found
    }

    /// Whether the acting thread acquired what the other block released after that access.
    fn known(&self, a: &Access, view: &GlobalView<'_>, stamp: Stamp, block: u32) -> bool {
        let foreign = &view.clocks.foreign[a.thread];
        if block == MANY {
            // The readers are not all known: a race is certain only without any acquire.
            return foreign.is_some();
        }
        super::sync::knows(foreign, block, usize::from(stamp.thread), stamp.segment)
    }
}
