//! Shadow memory: who touched each word last, and the rule that makes two accesses a race.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::clock::Clocks;

/// The stamp holds an access.
const VALID: u8 = 1;
/// The access was atomic (or as good as: relaxed, acquire, release).
const STRONG: u8 = 2;
/// Several lanes of one warp read.
const LANES: u8 = 4;
/// Several warps read.
const WARPS: u8 = 8;
/// A `cp.async` that was not waited for.
const ASYNC: u8 = 16;
/// The word is kept byte by byte elsewhere.
const SPLIT: u8 = 32;
/// Atomic towards its own block only.
const NARROW: u8 = 64;

/// Who, when and where in the program.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Stamp {
    pub(crate) segment: u32,
    pub(crate) pc: u32,
    pub(crate) thread: u16,
    flags: u8,
}

/// Last write and the reads since.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cell {
    write: Stamp,
    read: Stamp,
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
    fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    fn atomic_to_all(&self) -> bool {
        self.is(STRONG) && !self.is(NARROW)
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

    fn conflict(&self, was_write: bool) -> Conflict {
        Conflict {
            pc: self.pc,
            thread: usize::from(self.thread),
            block: None,
            was_write,
            in_flight: self.is(ASYNC),
        }
    }
}

impl Cell {
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
    pub(crate) fn new(words: usize) -> BlockShadow {
        BlockShadow {
            cells: vec![Cell::default(); words],
            ..BlockShadow::default()
        }
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
    #[inline]
    pub(crate) fn access(
        &self,
        word: usize,
        mask: u32,
        a: &Access,
        view: &mut GlobalView<'_>,
    ) -> Option<Conflict> {
        let chunk = self.chunk(word);
        let at = word % CHUNK;
        let tag = (view.launch % 255 + 1) as u8;
        if !a.write && chunk.quiet[at].load(Relaxed) == tag {
            return None;
        }
        let mut cells: MutexGuard<'_, ChunkCells> =
            chunk.cells.lock().unwrap_or_else(PoisonError::into_inner);
        let cell = &mut cells.words[at];
        if cell.launch != view.launch {
            *cell = GlobalCell {
                launch: view.launch,
                ..GlobalCell::default()
            };
        }
        if a.write {
            chunk.quiet[at].store(0, Relaxed);
        }
        if mask != 15 || cell.cell.write.is(SPLIT) {
            return split_access(&mut cells, word, mask, a, view);
        }
        let hit = cell.access(a, view, view.base + word as u64 * 4);
        if cell.read_block == MANY && !cell.cell.write.is(VALID) && cell.cell.read.is(VALID) {
            chunk.quiet[at].store(tag, Relaxed);
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
