//! Shadow of global memory: cells shared by the blocks of a launch, and the previous contents of
//! written words, so that a launch can be repeated.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::history::Lists;
use super::shadow::{Access, Cell, Conflict, Epoch, LISTED, SPLIT, STRONG, Stamp, VALID};
pub(crate) use super::word::{BlockOfLaunch, GlobalView};
use super::word::{GlobalCell, SEVERAL_BLOCKS};
use crate::memory::init::InitMap;
use crate::table::{Numbers, Table};

/// Words that a chunk of global shadow covers.
const CHUNK_WORDS: usize = 1024;

#[derive(Debug, Default)]
pub(crate) struct ChunkCells {
    words: Vec<GlobalCell>,
    split: Table<u32, [GlobalCell; 4]>,
    /// Histories, where blocks are serialized.
    lists: Lists,
    /// Words whose accesses are all recorded.
    watched: Numbers<u32>,
    saved: Saved,
}

/// Contents of a chunk and its written bytes, before a launch wrote to it.
#[derive(Debug, Default)]
struct Saved {
    launch: u32,
    words: Vec<u32>,
    written: Vec<u32>,
}

#[derive(Debug)]
struct Chunk {
    /// Per word: the launch (one byte of it) in which many blocks read and none wrote.
    quiet: Vec<AtomicU8>,
    cells: Mutex<ChunkCells>,
}

impl Chunk {
    fn open(&self) -> MutexGuard<'_, ChunkCells> {
        self.cells.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Shadow of one global allocation, allocated on first access.
#[derive(Debug)]
pub(crate) struct GlobalShadow {
    chunks: Vec<OnceLock<Chunk>>,
}

impl GlobalShadow {
    pub(crate) fn new(words: usize) -> GlobalShadow {
        GlobalShadow {
            chunks: (0..words.div_ceil(CHUNK_WORDS))
                .map(|_| OnceLock::new())
                .collect(),
        }
    }

    fn chunk(&self, word: usize) -> &Chunk {
        self.chunks[word / CHUNK_WORDS].get_or_init(|| Chunk {
            quiet: (0..CHUNK_WORDS).map(|_| AtomicU8::new(0)).collect(),
            cells: Mutex::new(ChunkCells {
                words: vec![GlobalCell::default(); CHUNK_WORDS],
                ..ChunkCells::default()
            }),
        })
    }

    /// Reports whether many blocks of this launch read the words and none wrote them: one more
    /// reader then changes nothing. The words are in one chunk.
    #[inline]
    pub(crate) fn is_quiet(&self, first: usize, words: usize, launch: u32) -> bool {
        let at = first % CHUNK_WORDS;
        let quiet = &self.chunk(first).quiet[at..at + words];
        quiet.iter().all(|q| q.load(Relaxed) == tag(launch))
    }

    /// Locks the chunk of a word for several accesses.
    #[inline]
    pub(crate) fn open(&self, word: usize) -> OpenChunk<'_> {
        let chunk = self.chunk(word);
        OpenChunk {
            number: word / CHUNK_WORDS,
            quiet: &chunk.quiet,
            cells: chunk.open(),
        }
    }

    /// Records every access to a word from now on, until [`forget`](Self::forget).
    pub(crate) fn watch(&self, word: usize) {
        let at = (word % CHUNK_WORDS) as u32;
        self.chunk(word).open().watched.insert(at);
    }

    /// Stops watching words, and drops histories.
    pub(crate) fn forget(&self) {
        for chunk in self.chunks.iter().filter_map(OnceLock::get) {
            let mut cells = chunk.open();
            cells.watched = Numbers::default();
            cells.lists = Lists::default();
        }
    }

    /// Restores the words that a launch wrote to.
    pub(crate) fn restore(&self, launch: u32, words: &[AtomicU32], init: &InitMap) {
        let chunks = self.chunks.iter().enumerate();
        for (number, chunk) in chunks.filter_map(|(n, chunk)| Some((n, chunk.get()?))) {
            let cells = chunk.open();
            if cells.saved.launch != launch {
                continue;
                // The attempt to undo wrote nothing in this chunk.
            }
            let first = number * CHUNK_WORDS;
            for (word, old) in words[first..].iter().zip(&cells.saved.words) {
                word.store(*old, Relaxed);
            }
            init.set_cells(first / 8, &cells.saved.written);
        }
    }
}

fn tag(launch: u32) -> u8 {
    (launch % 255 + 1) as u8
}

/// A chunk locked by this worker.
pub(crate) struct OpenChunk<'a> {
    number: usize,
    quiet: &'a [AtomicU8],
    cells: MutexGuard<'a, ChunkCells>,
}

impl OpenChunk<'_> {
    /// Reports whether a word is in this chunk.
    #[inline(always)]
    pub(crate) fn holds(&self, word: usize) -> bool {
        word / CHUNK_WORDS == self.number
    }

    /// Forgets all accesses to words of this chunk.
    pub(crate) fn forget_words(&mut self, words: std::ops::Range<usize>) {
        for at in words.map(|word| word % CHUNK_WORDS) {
            self.cells.words[at] = GlobalCell::default();
            self.cells.split.remove(&(at as u32));
            self.quiet[at].store(0, Relaxed);
        }
    }

    /// Saves the contents of the chunk before the launch's first write to it.
    #[inline(always)]
    pub(crate) fn save(&mut self, launch: u32, words: &[AtomicU32], init: &InitMap) {
        if self.cells.saved.launch != launch {
            self.save_now(launch, words, init);
        }
    }

    #[cold]
    fn save_now(&mut self, launch: u32, words: &[AtomicU32], init: &InitMap) {
        let first = self.number * CHUNK_WORDS;
        let end = words.len().min(first + CHUNK_WORDS);
        let saved = &mut self.cells.saved;
        saved.launch = launch;
        saved.words.clear();
        let held = words[first..end].iter().map(|word| word.load(Relaxed));
        saved.words.extend(held);
        init.cells_into(first / 8..end.div_ceil(8), &mut saved.written);
    }

    /// Records a plain access of a whole word where the epoch shows that it is ordered. Otherwise
    /// returns `false` and changes nothing.
    #[inline(always)]
    pub(crate) fn plain(
        &mut self,
        word: usize,
        s: &Stamp,
        write: bool,
        here: BlockOfLaunch,
        e: Epoch,
    ) -> bool {
        let at = word % CHUNK_WORDS;
        if !self.cells.watched.is_empty() && self.cells.watched.contains(&(at as u32)) {
            return false;
        }
        let cell = &mut self.cells.words[at];
        let right = cell.plain(s, write, here, e);
        if right {
            if write {
                self.quiet[at].store(0, Relaxed);
            } else if cell.read_block == SEVERAL_BLOCKS && cell.cell.write.flags == 0 {
                self.quiet[at].store(tag(here.launch), Relaxed);
            }
        }
        right
    }

    /// Returns the last write of a launch to bytes of a word (its number and their mask), and the
    /// block of that write. `own` are the histories of the requesting block, where blocks are
    /// isolated.
    pub(crate) fn last_write(
        &self,
        word: usize,
        mask: u32,
        launch: u32,
        key: u64,
        own: &Lists,
    ) -> Option<(Stamp, u32)> {
        let at = word % CHUNK_WORDS;
        let whole = self.cells.words.get(at)?;
        if whole.launch != launch {
            return None;
        }
        let of = |cell: &GlobalCell, key: u64| {
            let mut w = cell.cell.write;
            if w.is(LISTED) && w.is(VALID) {
                let lists = [&self.cells.lists, own].into_iter();
                let mut known = lists.filter_map(|lists| lists.last_write(w.segment, key));
                w = known.next()?;
            }
            w.is(VALID).then_some((w, cell.write_block))
        };
        if !whole.cell.write.is(SPLIT) {
            return of(whole, key);
        }
        let bytes = self.cells.split.get(&(at as u32))?.iter().enumerate();
        let mut read = bytes.filter(|(byte, _)| mask >> byte & 1 == 1);
        read.find_map(|(byte, cell)| of(cell, key + byte as u64))
    }

    /// Checks the bytes `mask` of a word.
    pub(crate) fn access(
        &mut self,
        word: usize,
        mask: u32,
        a: &Access,
        view: &mut GlobalView<'_>,
    ) -> Option<Conflict> {
        let at = word % CHUNK_WORDS;
        let cells = &mut *self.cells;
        let cell = &mut cells.words[at];
        // Marks of earlier launches are ordered by the end of their launch.
        if cell.launch != view.launch {
            *cell = GlobalCell {
                launch: view.launch,
                ..GlobalCell::default()
            };
        }
        if a.write {
            self.quiet[at].store(0, Relaxed);
        }
        // A split word stays split for the rest of the launch: its bytes have different owners.
        if mask != 15 || cell.cell.write.is(SPLIT) {
            return split_access(cells, word, mask, a, view);
        }
        let key = view.base + word as u64 * 4;
        let found = if view.serialized {
            let watched = !cells.watched.is_empty() && cells.watched.contains(&(at as u32));
            cell.check_serialized(a, view, key, &mut cells.lists, watched)
        } else {
            cell.check_isolated(a, view, key)
        };
        let (w, r) = (cell.cell.write, cell.cell.read);
        let plain_readers = r.is(VALID) && !r.is(STRONG);
        if cell.read_block == SEVERAL_BLOCKS && !w.is(VALID | LISTED) && plain_readers {
            self.quiet[at].store(tag(view.launch), Relaxed);
        }
        found
    }
}

fn split_access(
    cells: &mut ChunkCells,
    word: usize,
    mask: u32,
    a: &Access,
    view: &mut GlobalView<'_>,
) -> Option<Conflict> {
    let at = word % CHUNK_WORDS;
    let key = view.base + word as u64 * 4;
    let whole = &mut cells.words[at];
    if !whole.cell.write.is(SPLIT) {
        let lists = match view.serialized {
            true => &mut cells.lists,
            false => &mut *view.lists,
        };
        let bytes = lists.split(key, whole.cell);
        let each = bytes.map(|cell| GlobalCell { cell, ..*whole });
        cells.split.insert(at as u32, each);
        whole.cell = Cell {
            write: Stamp {
                flags: SPLIT,
                ..Stamp::default()
            },
            ..Cell::default()
        };
    }
    let watched = !cells.watched.is_empty() && cells.watched.contains(&(at as u32));
    let bytes = cells.split.get_mut(&(at as u32))?;
    let mut found = None;
    for (byte, cell) in bytes.iter_mut().enumerate() {
        if mask >> byte & 1 == 0 {
            continue;
        }
        let key = key + byte as u64;
        let hit = if view.serialized {
            cell.check_serialized(a, view, key, &mut cells.lists, watched)
        } else {
            cell.check_isolated(a, view, key)
        };
        found = hit.or(found);
    }
    found
}
