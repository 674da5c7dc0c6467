//! Records of the global memory bytes that each block writes and reads.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use crate::memory::{BufferId, GlobalMemory};

const DECIDED: u8 = 1;
const WRITTEN: u8 = 2;
const READ: u8 = 4;

/// Ranges that one block reports at most; a block with more is marked as cut.
const RANGES_MAX: usize = 1 << 16;

/// Recent ranges that an access may continue: the rows of a warp's tile.
const RECENT_RANGES: usize = 16;

/// Selection of accesses to report: stores to the watched bytes and, if requested, loads of them.
#[derive(Debug)]
pub struct Watch {
    /// By allocation: one bit per watched word of 4 bytes; empty where none is watched.
    words: Vec<Vec<u64>>,
    /// By allocation: whether its contents decided addresses or control flow, and whether it was
    /// written.
    touched: Vec<AtomicU8>,
    reads: bool,
    separate_atomics: bool,
}

impl Watch {
    /// Creates an empty selection; with `reads`, loads of the watched bytes are reported too.
    #[must_use]
    pub fn new(memory: &GlobalMemory, reads: bool) -> Watch {
        let count = memory.allocations.len();
        Watch {
            words: vec![Vec::new(); count],
            touched: (0..count).map(|_| AtomicU8::new(0)).collect(),
            reads,
            separate_atomics: false,
        }
    }

    /// Reports atomic accesses of device or system scope apart from the others.
    #[must_use]
    pub fn with_separate_atomics(self) -> Watch {
        Watch {
            separate_atomics: true,
            ..self
        }
    }

    /// Watches bytes of a buffer.
    pub fn add(&mut self, memory: &GlobalMemory, buffer: BufferId, bytes: &Range<u64>) {
        let words = &mut self.words[buffer.0];
        if words.is_empty() {
            words.resize(memory.len(buffer).div_ceil(256) as usize, 0);
        }
        let (start, end) = (bytes.start / 4, bytes.end.div_ceil(4));
        if bytes.is_empty() {
            return;
        }
        for group in start / 64..end.div_ceil(64) {
            let Some(bits) = words.get_mut(group as usize) else {
                break;
            };
            let (first, last) = (start.max(group * 64), end.min(group * 64 + 64));
            *bits |= (u64::MAX >> (64 - (last - first))) << (first % 64);
        }
    }

    /// Reports whether values loaded from a buffer decided addresses or control flow.
    #[must_use]
    pub fn decided(&self, buffer: BufferId) -> bool {
        self.touched[buffer.0].load(Relaxed) & DECIDED != 0
    }

    /// Reports whether the launch stored to a buffer.
    #[must_use]
    pub fn was_written(&self, buffer: BufferId) -> bool {
        self.touched[buffer.0].load(Relaxed) & WRITTEN != 0
    }

    /// Reports whether the launch loaded from a buffer.
    #[must_use]
    pub fn was_read(&self, buffer: BufferId) -> bool {
        self.touched[buffer.0].load(Relaxed) & READ != 0
    }

    fn holds(&self, allocation: usize, bytes: &Range<u64>) -> bool {
        let words = &self.words[allocation];
        !words.is_empty()
            && (bytes.start / 4..bytes.end.div_ceil(4)).any(|word| {
                let bits = words.get((word / 64) as usize);
                bits.is_some_and(|bits| bits >> (word % 64) & 1 == 1)
            })
    }
}

/// Access of one lane.
pub(super) struct Access {
    pub(super) allocation: usize,
    pub(super) bytes: Range<u64>,
    pub(super) write: bool,
    /// The loaded value decides addresses or control flow.
    pub(super) decides: bool,
    /// It is atomic towards every thread of the device.
    pub(super) atomic: bool,
}

/// A byte range of a buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BufferRange {
    /// The buffer.
    pub buffer: BufferId,
    /// Its bytes.
    pub bytes: Range<u64>,
}

/// Ranges of equal length at equal distances, as the rows of a tile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StridedRange {
    /// The first of them.
    pub first: BufferRange,
    /// Bytes from the start of one to the start of the next.
    pub stride: u64,
    /// Number of them.
    pub count: u64,
}

impl StridedRange {
    /// Iterates over the ranges.
    pub fn ranges(&self) -> impl Iterator<Item = BufferRange> {
        let Range { start, end } = self.first.bytes;
        (0..self.count).map(move |index| BufferRange {
            buffer: self.first.buffer,
            bytes: start + index * self.stride..end + index * self.stride,
        })
    }

    /// Appends a range, if the distances stay equal.
    fn append(&mut self, next: &BufferRange) -> bool {
        let Range { start, end } = self.first.bytes;
        let length = next.bytes.end - next.bytes.start;
        if next.buffer != self.first.buffer || length != end - start {
            return false;
        }
        let stride = match self.count {
            1 => next.bytes.start - start,
            _ => self.stride,
        };
        let fits = start + stride * self.count == next.bytes.start;
        if fits {
            (self.stride, self.count) = (stride, self.count + 1);
        }
        fits
    }
}

/// Watched accesses of one block.
#[derive(Debug, Clone)]
pub struct BlockAccesses {
    /// The block, by linear index.
    pub block: u32,
    /// Stores that hit watched bytes, merged.
    pub writes: Vec<StridedRange>,
    /// Loads, merged.
    pub reads: Vec<BufferRange>,
    /// Atomic stores and updates, merged; empty unless the selection separates them.
    pub atomic_writes: Vec<BufferRange>,
    /// Atomic loads, merged; empty unless the selection separates them.
    pub atomic_reads: Vec<BufferRange>,
    /// The lists were full: further accesses are missing.
    pub cut: bool,
}

impl BlockAccesses {
    /// Iterates over the stored or the loaded ranges, atomic ones included.
    pub fn ranges(&self, write: bool) -> impl Iterator<Item = BufferRange> {
        self.plain_ranges(write).chain(self.atomic_ranges(write))
    }

    /// Iterates over the ranges of atomic stores or loads.
    pub fn atomic_ranges(&self, write: bool) -> impl Iterator<Item = BufferRange> {
        let ranges = match write {
            true => &self.atomic_writes,
            false => &self.atomic_reads,
        };
        ranges.iter().cloned()
    }

    /// Iterates over the ranges of the other stores or loads.
    pub fn plain_ranges(&self, write: bool) -> impl Iterator<Item = BufferRange> {
        let (writes, reads) = match write {
            true => (&*self.writes, &[][..]),
            false => (&[][..], &*self.reads),
        };
        let writes = writes.iter().flat_map(StridedRange::ranges);
        writes.chain(reads.iter().cloned())
    }
}

/// Accesses that a running block has made so far.
#[derive(Debug, Default)]
pub(super) struct AccessRecorder {
    writes: Vec<BufferRange>,
    reads: Vec<BufferRange>,
    atomic_writes: Vec<BufferRange>,
    atomic_reads: Vec<BufferRange>,
    cut: bool,
    next: Cursor,
}

/// Index of the range that the next access probably continues.
#[derive(Debug, Default)]
struct Cursor(usize);

impl Cursor {
    /// Extends a recent range by adjoining bytes, if there is one. Consecutive lanes continue the
    /// last range, and the lanes of the next column of a tile continue the ranges of its rows in
    /// turn.
    fn extend(&mut self, list: &mut [BufferRange], buffer: BufferId, bytes: &Range<u64>) -> bool {
        let adjoins = |range: &BufferRange| {
            range.buffer == buffer
                && bytes.start <= range.bytes.end
                && range.bytes.start <= bytes.end
        };
        let fits = |index: usize| list.get(index).is_some_and(adjoins);
        let recent = list.len().saturating_sub(RECENT_RANGES)..list.len();
        let likely = [self.0, self.0 + 1, list.len().wrapping_sub(1)];
        let mut candidates = likely.into_iter().chain(recent);
        let Some(index) = candidates.find(|index| fits(*index)) else {
            // The range that is pushed now.
            self.0 = list.len();
            return false;
        };
        let range = &mut list[index].bytes;
        range.start = range.start.min(bytes.start);
        range.end = range.end.max(bytes.end);
        self.0 = index;
        true
    }
}

impl AccessRecorder {
    /// Records an access to an allocation.
    pub(super) fn record(&mut self, watch: &Watch, access: Access) {
        let Access {
            allocation,
            bytes,
            write,
            decides,
            atomic,
        } = access;
        let Some(touched) = watch.touched.get(allocation) else {
            return;
        };
        let bit = match (write, decides) {
            (true, _) => WRITTEN,
            (false, true) => DECIDED | READ,
            (false, false) => READ,
        };
        // A load first: an unconditional atomic update would move the cache line between cores.
        if touched.load(Relaxed) & bit != bit {
            touched.fetch_or(bit, Relaxed);
        }
        if !watch.holds(allocation, &bytes) || !write && !watch.reads {
            return;
        }
        let list = match (write, atomic && watch.separate_atomics) {
            (true, false) => &mut self.writes,
            (false, false) => &mut self.reads,
            (true, true) => &mut self.atomic_writes,
            (false, true) => &mut self.atomic_reads,
        };
        // A list that is too long once is merged in vain again and again.
        if self.cut {
            return;
        }
        let buffer = BufferId(allocation);
        if self.next.extend(list, buffer, &bytes) {
            return;
        }
        if list.len() >= RANGES_MAX {
            *list = merged(std::mem::take(list));
            // Accesses without neighbors hardly merge: sorting such a list again every few accesses
            // would be quadratic.
            if list.len() > RANGES_MAX / 2 {
                self.cut = true;
                return;
            }
        }
        list.push(BufferRange { buffer, bytes });
    }

    /// Returns the accesses of `block`, if there were any.
    pub(super) fn take(&mut self, block: u32) -> Option<BlockAccesses> {
        let lists = [
            &self.writes,
            &self.reads,
            &self.atomic_writes,
            &self.atomic_reads,
        ];
        if lists.iter().all(|list| list.is_empty()) {
            return None;
        }
        Some(BlockAccesses {
            block,
            writes: strided(merged(std::mem::take(&mut self.writes))),
            reads: merged(std::mem::take(&mut self.reads)),
            atomic_writes: merged(std::mem::take(&mut self.atomic_writes)),
            atomic_reads: merged(std::mem::take(&mut self.atomic_reads)),
            cut: self.cut,
        })
    }
}

fn merged(mut ranges: Vec<BufferRange>) -> Vec<BufferRange> {
    ranges.sort_unstable_by_key(|range| (range.buffer, range.bytes.start));
    let mut out: Vec<BufferRange> = Vec::new();
    for range in ranges {
        match out.last_mut() {
            Some(last) if last.buffer == range.buffer && range.bytes.start <= last.bytes.end => {
                last.bytes.end = last.bytes.end.max(range.bytes.end);
            }
            _ => out.push(range),
        }
    }
    out
}

/// Combines sorted ranges at equal distances: a tile is one entry instead of one for each row.
fn strided(ranges: Vec<BufferRange>) -> Vec<StridedRange> {
    let mut out: Vec<StridedRange> = Vec::new();
    for first in ranges {
        if !out.last_mut().is_some_and(|last| last.append(&first)) {
            out.push(StridedRange {
                first,
                stride: 0,
                count: 1,
            });
        }
    }
    out
}
