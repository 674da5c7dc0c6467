//! Shadow of global memory: cells shared by the blocks of a launch, and the previous contents of
//! written words, so that a launch can be repeated.

use std::ops::Range;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU8, AtomicU32};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::history::Lists;
use super::packed::PackedCells;
use super::shadow::{Access, Cell, Conflict, Epoch, LISTED, SPLIT, Stamp, Strength, VALID};
pub(crate) use super::word::{BlockOfLaunch, GlobalView};
use super::word::{GlobalCell, SEVERAL_BLOCKS};
use crate::memory::init::InitMap;
use crate::table::Numbers;

/// Words that a chunk of global shadow covers.
const CHUNK_WORDS: usize = 1024;

#[derive(Debug)]
pub(crate) struct ChunkCells {
    /// The launch of the accesses in it.
    launch: u32,
    words: PackedCells,
    /// Histories, where blocks are serialized.
    lists: Lists,
    /// Words whose accesses are all recorded.
    watched: Numbers<u32>,
    saved: SavedChunk,
}

/// Contents of a chunk and its written bytes, before a launch wrote to it.
#[derive(Debug, Default)]
struct SavedChunk {
    launch: u32,
    words: Vec<u32>,
    written: Vec<u32>,
}

/// Launches that the tags of quiet words tell apart.
const TAGS: u32 = 255;

/// Tags of the quiet words of a chunk.
#[derive(Debug)]
struct Quiet {
    /// The tags are those of the launches from this number times [`TAGS`] on.
    epoch: AtomicU32,
    tags: Box<[AtomicU8; CHUNK_WORDS]>,
}

impl Quiet {
    fn new(launch: u32) -> Quiet {
        Quiet {
            epoch: AtomicU32::new(launch / TAGS),
            tags: Box::new([const { AtomicU8::new(0) }; CHUNK_WORDS]),
        }
    }

    /// Returns the tags if they are of the epoch of a launch.
    #[inline]
    fn tags(&self, launch: u32) -> Option<&[AtomicU8; CHUNK_WORDS]> {
        (self.epoch.load(Acquire) == launch / TAGS).then_some(&*self.tags)
    }

    /// Forgets tags of earlier epochs. The caller holds the chunk's lock.
    fn begin(&self, launch: u32) {
        if self.epoch.load(Relaxed) != launch / TAGS {
            self.tags.iter().for_each(|tag| tag.store(0, Relaxed));
            // A reader that sees the epoch sees the tags as they were cleared.
            self.epoch.store(launch / TAGS, Release);
        }
    }
}

#[derive(Debug)]
struct Chunk {
    /// Per word: the launch (a byte of it) in which many blocks read and none wrote; made when there
    /// is such a word.
    quiet: OnceLock<Quiet>,
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
    words: usize,
    chunks: Vec<OnceLock<Box<Chunk>>>,
}

impl GlobalShadow {
    pub(crate) fn new(words: usize) -> GlobalShadow {
        GlobalShadow {
            words,
            chunks: (0..words.div_ceil(CHUNK_WORDS))
                .map(|_| OnceLock::new())
                .collect(),
        }
    }

    fn chunk(&self, word: usize) -> &Chunk {
        self.chunks[word / CHUNK_WORDS].get_or_init(|| {
            let words = CHUNK_WORDS.min(self.words - word / CHUNK_WORDS * CHUNK_WORDS);
            Box::new(Chunk {
                quiet: OnceLock::new(),
                cells: Mutex::new(ChunkCells {
                    launch: 0,
                    words: PackedCells::new(words),
                    lists: Lists::default(),
                    watched: Numbers::default(),
                    saved: SavedChunk::default(),
                }),
            })
        })
    }

    /// Reports whether many blocks of this launch read the words and none wrote them: one more
    /// reader then changes nothing. `words` from each of `firsts` on are in one chunk.
    #[inline]
    pub(crate) fn are_quiet(
        &self,
        firsts: impl IntoIterator<Item = usize>,
        words: usize,
        launch: u32,
    ) -> bool {
        let tag = tag(launch);
        // Neighbouring lanes share a chunk, or even the word.
        let mut last: Option<(usize, &[AtomicU8; CHUNK_WORDS])> = None;
        let mut previous = usize::MAX;
        for first in firsts {
            if first == previous {
                continue;
            }
            previous = first;
            let number = first / CHUNK_WORDS;
            let quiet = match last {
                Some((same, quiet)) if same == number => quiet,
                _ => match self.chunk(first).quiet.get().and_then(|q| q.tags(launch)) {
                    Some(quiet) => quiet,
                    None => return false,
                },
            };
            last = Some((number, quiet));
            let at = first % CHUNK_WORDS;
            if quiet[at..at + words].iter().any(|q| q.load(Relaxed) != tag) {
                return false;
            }
        }
        true
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

    /// Returns the words that no thread of a launch is known to have read; of a word that was written,
    /// reads before the write are not known.
    pub(crate) fn unread(&self, launch: u32) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        let mut add = |words: Range<usize>| match found.last_mut() {
            Some(last) if last.end == words.start => last.end = words.end,
            _ => found.push(words),
        };
        for (number, chunk) in self.chunks.iter().enumerate() {
            let first = number * CHUNK_WORDS;
            let end = self.words.min(first + CHUNK_WORDS);
            let cells = chunk.get().map(|chunk| chunk.open());
            match cells.filter(|cells| cells.launch == launch) {
                None => add(first..end),
                Some(cells) => (first..end)
                    .filter(|word| !cells.words.has_read(word - first))
                    .for_each(|word| add(word..word + 1)),
            }
        }
        found
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
    (launch % TAGS + 1) as u8
}

/// A chunk locked by this worker.
pub(crate) struct OpenChunk<'a> {
    number: usize,
    quiet: &'a OnceLock<Quiet>,
    cells: MutexGuard<'a, ChunkCells>,
}

impl ChunkCells {
    /// Forgets the accesses of another launch.
    #[inline(always)]
    fn begin(&mut self, launch: u32) {
        if self.launch != launch {
            self.words.clear();
            self.launch = launch;
        }
    }
}

impl OpenChunk<'_> {
    #[inline(always)]
    fn set_quiet(&self, at: usize, tag: u8) {
        if tag != 0 {
            let launch = self.cells.launch;
            let quiet = self.quiet.get_or_init(|| Quiet::new(launch));
            quiet.begin(launch);
            quiet.tags[at].store(tag, Relaxed);
        } else if let Some(quiet) = self.quiet.get() {
            quiet.tags[at].store(0, Relaxed);
        }
    }

    /// Reports whether a word is in this chunk.
    #[inline(always)]
    pub(crate) fn holds(&self, word: usize) -> bool {
        word / CHUNK_WORDS == self.number
    }

    /// Forgets all accesses to words of this chunk.
    pub(crate) fn forget_words(&mut self, words: Range<usize>) {
        for at in words.map(|word| word % CHUNK_WORDS) {
            self.cells.words.store(at, &GlobalCell::default());
            self.set_quiet(at, 0);
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
        self.cells.begin(here.launch);
        // Of a watched word every access is recorded, which this path does not do.
        if !self.cells.watched.is_empty() && self.cells.watched.contains(&(at as u32)) {
            return false;
        }
        let mut cell = self.cells.words.load(at);
        let right = cell.plain(s, write, here.block, e);
        if right {
            self.cells.words.store(at, &cell);
            if write {
                self.set_quiet(at, 0);
            } else if cell.read_block == SEVERAL_BLOCKS && cell.cell.write.flags == 0 {
                self.set_quiet(at, tag(here.launch));
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
        if self.cells.launch != launch {
            return None;
        }
        let whole = self.cells.words.load(at);
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
            return of(&whole, key);
        }
        let mut read = (0..4).filter(|byte| mask >> byte & 1 == 1);
        read.find_map(|byte| {
            let cell = self.cells.words.load_byte(at, byte);
            of(&cell, key + byte as u64)
        })
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
        // Marks of earlier launches are ordered by the end of their launch.
        self.cells.begin(view.launch);
        if a.write {
            self.set_quiet(at, 0);
        }
        let cells = &mut *self.cells;
        let mut cell = cells.words.load(at);
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
        cells.words.store(at, &cell);
        let (w, r) = (cell.cell.write, cell.cell.read);
        let plain_readers = r.is(VALID) && r.strength() == Strength::Plain;
        if cell.read_block == SEVERAL_BLOCKS && !w.is(VALID | LISTED) && plain_readers {
            self.set_quiet(at, tag(view.launch));
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
    let mut whole = cells.words.load(at);
    if !whole.cell.write.is(SPLIT) {
        let lists = match view.serialized {
            true => &mut cells.lists,
            false => &mut *view.lists,
        };
        let bytes = lists.split(key, whole.cell);
        for (byte, cell) in bytes.into_iter().enumerate() {
            cells
                .words
                .store_byte(at, byte, &GlobalCell { cell, ..whole });
        }
        whole.cell = Cell {
            write: Stamp {
                flags: SPLIT,
                ..Stamp::default()
            },
            ..Cell::default()
        };
        cells.words.store(at, &whole);
    }
    let watched = !cells.watched.is_empty() && cells.watched.contains(&(at as u32));
    let mut found = None;
    for byte in (0..4).filter(|byte| mask >> byte & 1 == 1) {
        let mut cell = cells.words.load_byte(at, byte);
        let key = key + byte as u64;
        let hit = if view.serialized {
            cell.check_serialized(a, view, key, &mut cells.lists, watched)
        } else {
            cell.check_isolated(a, view, key)
        };
        cells.words.store_byte(at, byte, &cell);
        found = hit.or(found);
    }
    found
}
