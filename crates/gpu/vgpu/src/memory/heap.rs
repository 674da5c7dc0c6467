//! The heap of `malloc` and `free` in kernels: blocks inside one allocation.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::buffer_id::BufferId;

/// Size of the heap where the host does not set one, as in CUDA.
pub(crate) const HEAP_BYTES: u64 = 8 << 20;
/// Alignment of blocks.
const ALIGNMENT_BYTES: u64 = 16;
/// Bytes after each block that belong to none.
const GAP_BYTES: u64 = 16;

/// Blocks by offset.
#[derive(Debug, Clone, Default)]
pub(crate) struct Blocks {
    /// Sizes of those in use, as they were requested.
    live: BTreeMap<u64, u64>,
    /// Lengths of free ranges.
    free: BTreeMap<u64, u64>,
    /// Sizes of those that were given back, where nothing was given out since.
    freed: BTreeMap<u64, u64>,
}

/// Why a block cannot be given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadFree {
    /// It was given back before.
    Twice,
    /// No block begins there.
    Foreign,
}

impl Blocks {
    fn new(bytes: u64) -> Blocks {
        Blocks {
            free: BTreeMap::from([(0, bytes)]),
            ..Blocks::default()
        }
    }

    /// Takes a block of this size out of the first range that holds it; `None` where none does.
    pub(crate) fn take(&mut self, bytes: u64, align: u64) -> Option<u64> {
        let align = align.max(ALIGNMENT_BYTES);
        let length = bytes
            .checked_next_multiple_of(ALIGNMENT_BYTES)?
            .checked_add(GAP_BYTES)?;
        let fits = |(start, free): (&u64, &u64)| {
            let at = start.checked_next_multiple_of(align)?;
            let end = at.checked_add(length)?;
            (end <= start + free).then_some((*start, *free, at))
        };
        let (start, free, at) = self.free.iter().find_map(fits)?;
        self.free.remove(&start);
        if at > start {
            self.free.insert(start, at - start);
        }
        let end = start + free;
        if end > at + length {
            self.free.insert(at + length, end - at - length);
        }
        self.live.insert(at, bytes);
        let end = at + length;
        // Freed blocks explain invalid accesses: from now on this range belongs to a block again.
        while let Some((old, _)) = self
            .freed
            .range(..end)
            .next_back()
            .filter(|(old, size)| *old + *size > at || **old >= at)
        {
            let old = *old;
            self.freed.remove(&old);
        }
        Some(at)
    }

    /// Gives a block back.
    pub(crate) fn give_back(&mut self, at: u64) -> Result<(), BadFree> {
        let Some(bytes) = self.live.remove(&at) else {
            return Err(match self.freed.contains_key(&at) {
                true => BadFree::Twice,
                false => BadFree::Foreign,
            });
        };
        self.freed.insert(at, bytes);
        let (mut start, mut end) = (at, at + bytes.next_multiple_of(ALIGNMENT_BYTES) + GAP_BYTES);
        if let Some(length) = self.free.remove(&end) {
            end += length;
        }
        if let Some((before, length)) = self.free.range(..start).next_back()
            && before + length == start
        {
            start = *before;
        }
        self.free.insert(start, end - start);
        Ok(())
    }

    /// The block that begins at or before an offset, and its size.
    pub(crate) fn before(&self, offset: u64) -> Option<(u64, u64)> {
        let (at, bytes) = self.live.range(..=offset).next_back()?;
        Some((*at, *bytes))
    }

    /// The size of the block that an offset was in before it was given back.
    pub(crate) fn freed_at(&self, offset: u64) -> Option<u64> {
        let (at, bytes) = self.freed.range(..=offset).next_back()?;
        (offset < at + bytes).then_some(*bytes)
    }

    /// Reports whether a range is inside a block in use.
    pub(crate) fn holds(&self, offset: u64, bytes: u64) -> bool {
        self.before(offset)
            .is_some_and(|(at, size)| offset + bytes <= at + size)
    }
}

/// The heap of a memory.
#[derive(Debug)]
pub(crate) struct Heap {
    pub(crate) buffer: BufferId,
    blocks: Mutex<Blocks>,
}

impl Heap {
    pub(crate) fn new(buffer: BufferId, bytes: u64) -> Heap {
        Heap {
            buffer,
            blocks: Mutex::new(Blocks::new(bytes)),
        }
    }

    pub(crate) fn blocks(&self) -> MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
