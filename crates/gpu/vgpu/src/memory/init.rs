//! Written bytes of an allocation: one bit each, shared by all worker threads.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// Bits, one per byte; a flag avoids the lookup for buffers that were written as a whole.
#[derive(Debug)]
pub(crate) struct InitMap {
    bits: Vec<AtomicU32>,
    all: AtomicBool,
    /// A kernel stored to the buffer after the host had written all of it.
    overwritten: AtomicBool,
    bytes: u64,
}

impl InitMap {
    pub(crate) fn new(bytes: u64) -> InitMap {
        let words = bytes.div_ceil(32) as usize;
        InitMap {
            bits: bytemuck::zeroed_vec(words),
            all: AtomicBool::new(false),
            overwritten: AtomicBool::new(false),
            bytes,
        }
    }

    /// Marks `range` written (by the host).
    pub(crate) fn mark(&self, range: Range<u64>) {
        if range.start == 0 && range.end >= self.bytes {
            self.all.store(true, Relaxed);
            self.overwritten.store(false, Relaxed);
        }
        // One cell at a time: whole buffers are written this way.
        let mut at = range.start;
        while at < range.end {
            let from = at % 32;
            let count = (32 - from).min(range.end - at);
            let bits = (u32::MAX >> (32 - count)) << from;
            self.bits[(at / 32) as usize].fetch_or(bits, Relaxed);
            at += count;
        }
    }

    /// Marks the bytes that satisfy `unwritten` as unwritten, in a buffer that the host wrote as a
    /// whole.
    pub(crate) fn unmark(&self, unwritten: impl Fn(u64) -> bool) {
        for byte in (0..self.bytes).filter(|byte| unwritten(*byte)) {
            self.all.store(false, Relaxed);
            self.bits[(byte / 32) as usize].fetch_and(!(1 << (byte % 32)), Relaxed);
        }
    }

    /// The bits of a range, 32 bytes an element; `None` where all of it is written.
    pub(crate) fn bits(&self, range: Range<u64>) -> Option<Vec<u32>> {
        if self.has(range.clone()) {
            return None;
        }
        let elements = range.clone().step_by(32);
        Some(elements.map(|at| self.bits_at(at)).collect())
    }

    /// The bits of 32 bytes from any byte on; those behind the end are clear.
    fn bits_at(&self, at: u64) -> u32 {
        let cell = |index: u64| {
            let cell = self.bits.get(index as usize);
            u64::from(cell.map_or(0, |cell| cell.load(Relaxed)))
        };
        let both = cell(at / 32) | cell(at / 32 + 1) << 32;
        (both >> (at % 32)) as u32
    }

    /// Reports whether every byte of a range is written.
    pub(crate) fn has(&self, range: Range<u64>) -> bool {
        self.all.load(Relaxed)
            || range.clone().step_by(32).all(|at| {
                let count = (range.end - at).min(32) as u32;
                let wanted = u32::MAX >> (32 - count);
                self.bits_at(at) & wanted == wanted
            })
    }

    /// Sets the bits of a range (by the host), 32 bytes an element.
    pub(crate) fn set_bits(&self, range: Range<u64>, bits: &[u32]) {
        // The bits are valid without the flag, too: `mark` sets both.
        self.all.store(false, Relaxed);
        for (at, bits) in range.clone().step_by(32).zip(bits) {
            let count = (range.end - at).min(32) as u32;
            let mask = u64::from(u32::MAX >> (32 - count)) << (at % 32);
            let bits = u64::from(*bits) << (at % 32) & mask;
            for (half, index) in [(0, at / 32), (32, at / 32 + 1)] {
                let (mask, bits) = ((mask >> half) as u32, (bits >> half) as u32);
                if let Some(cell) = self.bits.get(index as usize).filter(|_| mask != 0) {
                    cell.store(cell.load(Relaxed) & !mask | bits, Relaxed);
                }
            }
        }
    }

    /// Marks a range unwritten.
    pub(crate) fn clear_range(&self, range: Range<u64>) {
        let elements = range.end.saturating_sub(range.start).div_ceil(32);
        self.set_bits(range, &vec![0; elements as usize]);
    }

    /// Marks every byte unwritten.
    pub(crate) fn clear(&self) {
        self.all.store(false, Relaxed);
        for word in &self.bits {
            word.store(0, Relaxed);
        }
    }

    /// Marks the bytes `mask` (4 bits) of a 4-byte word written.
    #[inline]
    pub(crate) fn mark_word(&self, word: usize, mask: u32) {
        if self.all.load(Relaxed) {
            self.note_overwritten();
            return;
        }
        let cell = &self.bits[word / 8];
        let bits = mask << (word % 8 * 4);
        if cell.load(Relaxed) & bits != bits {
            cell.fetch_or(bits, Relaxed);
        }
    }

    #[inline]
    fn note_overwritten(&self) {
        // A load first: an unconditional store would move the cache line between cores.
        if !self.overwritten.load(Relaxed) {
            self.overwritten.store(true, Relaxed);
        }
    }

    /// Reports whether a kernel stored to the buffer after the host had written all of it.
    pub(crate) fn is_overwritten(&self) -> bool {
        self.overwritten.load(Relaxed)
    }

    /// Reports whether the host wrote all of the buffer and no kernel stored to it since.
    #[inline]
    pub(crate) fn is_as_uploaded(&self) -> bool {
        self.all.load(Relaxed) && !self.overwritten.load(Relaxed)
    }

    /// Returns a marker that combines the marks of neighbouring words.
    pub(crate) fn marker(&self) -> Marker<'_> {
        Marker {
            map: self,
            cell: 0,
            bits: 0,
        }
    }

    fn mark_cell(&self, cell: usize, bits: u32) {
        if let Some(cell) = self.bits.get(cell)
            && cell.load(Relaxed) & bits != bits
        {
            cell.fetch_or(bits, Relaxed);
        }
    }

    /// Reports whether the host wrote all of the buffer.
    #[inline]
    pub(crate) fn is_complete(&self) -> bool {
        self.all.load(Relaxed)
    }

    /// Reports whether all bytes `mask` of a 4-byte word were written.
    #[inline]
    pub(crate) fn has_word(&self, word: usize, mask: u32) -> bool {
        if self.all.load(Relaxed) {
            return true;
        }
        let bits = mask << (word % 8 * 4);
        self.bits[word / 8].load(Relaxed) & bits == bits
    }

    /// Copies the bits of a range of cells (32 bytes each).
    pub(crate) fn cells_into(&self, cells: Range<usize>, to: &mut Vec<u32>) {
        to.clear();
        to.extend(self.bits[cells].iter().map(|cell| cell.load(Relaxed)));
    }

    /// Restores copied bits.
    pub(crate) fn set_cells(&self, first: usize, bits: &[u32]) {
        for (cell, bits) in self.bits[first..].iter().zip(bits) {
            cell.store(*bits, Relaxed);
        }
    }

    /// Sets or clears the flag that a kernel stored to the buffer.
    pub(crate) fn set_overwritten(&self, overwritten: bool) {
        self.overwritten.store(overwritten, Relaxed);
    }

    /// Returns the ranges of bytes that were never written.
    pub(crate) fn unwritten(&self) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        if self.all.load(Relaxed) {
            return ranges;
        }
        for (cell, bits) in (0u64..).zip(&self.bits) {
            let bits = bits.load(Relaxed);
            let end = (cell * 32 + 32).min(self.bytes);
            if bits == u32::MAX {
                continue;
            }
            let mut byte = cell * 32;
            while byte < end {
                if bits >> (byte % 32) & 1 == 0 {
                    let free = ((!(bits >> (byte % 32))).trailing_ones() as u64).min(end - byte);
                    match ranges.last_mut() {
                        Some(last) if last.end == byte => last.end = byte + free,
                        _ => ranges.push(byte..byte + free),
                    }
                    byte += free;
                } else {
                    byte += 1;
                }
            }
        }
        ranges
    }
}

/// Collects marks of neighbouring words; dropping it writes the remaining ones.
pub(crate) struct Marker<'a> {
    map: &'a InitMap,
    cell: usize,
    bits: u32,
}

impl Marker<'_> {
    /// Marks the bytes `mask` of a 4-byte word.
    #[inline(always)]
    pub(crate) fn word(&mut self, word: usize, mask: u32) {
        if word / 8 != self.cell {
            self.flush();
            self.cell = word / 8;
        }
        self.bits |= mask << (word % 8 * 4);
    }

    fn flush(&mut self) {
        if self.bits != 0 {
            if self.map.all.load(Relaxed) {
                self.map.note_overwritten();
            } else {
                self.map.mark_cell(self.cell, self.bits);
            }
        }
        self.bits = 0;
    }
}

impl Drop for Marker<'_> {
    fn drop(&mut self) {
        self.flush();
    }
}
