//! Ranges of buffers for a host program: copies and fills that carry which bytes were never
//! written, and that return an error where a range is outside.

use std::ops::Range;

use super::buffer_id::BufferId;
use super::global::{GlobalMemory, MemoryError};

/// Bytes that are copied or filled at once.
const PIECE: usize = 1 << 20;

impl GlobalMemory {
    /// Checks that a range is inside a buffer.
    fn range(&self, buffer: BufferId, offset: u64, bytes: u64) -> Result<Range<u64>, MemoryError> {
        let size = self.len(buffer);
        match offset.checked_add(bytes).filter(|end| *end <= size) {
            Some(end) => Ok(offset..end),
            None => Err(MemoryError::OutOfRange {
                name: self.name(buffer.0).to_owned(),
                offset,
                bytes,
                size,
            }),
        }
    }

    /// Fills a range with repeats of `pattern` (the last one cut) and marks it written. An empty
    /// pattern changes nothing.
    ///
    /// # Errors
    /// The range is outside the buffer.
    pub fn fill_range(
        &mut self,
        buffer: BufferId,
        offset: u64,
        bytes: u64,
        pattern: &[u8],
    ) -> Result<(), MemoryError> {
        let range = self.range(buffer, offset, bytes)?;
        if pattern.is_empty() {
            return Ok(());
        }
        // A whole number of repeats: every piece then begins with the pattern.
        let piece = PIECE.next_multiple_of(pattern.len());
        let data: Vec<u8> = pattern.iter().copied().cycle().take(piece).collect();
        for at in range.clone().step_by(piece) {
            let part = (range.end - at).min(piece as u64) as usize;
            self.allocations[buffer.0].store_bytes(at, &data[..part]);
        }
        self.allocations[buffer.0].init.mark(range);
        Ok(())
    }

    /// Copies a range to another buffer, or within one, with which of its bytes were never written.
    /// The ranges may overlap.
    ///
    /// # Errors
    /// A range is outside its buffer.
    pub fn copy_range(
        &mut self,
        from: BufferId,
        from_offset: u64,
        to: BufferId,
        to_offset: u64,
        bytes: u64,
    ) -> Result<(), MemoryError> {
        let source = self.range(from, from_offset, bytes)?;
        let target = self.range(to, to_offset, bytes)?;
        let written = self.allocations[from.0].init.bits(source.clone());
        let count = bytes.div_ceil(PIECE as u64);
        let pieces = (0..count).map(|n| n * PIECE as u64);
        // Backwards where the front of the source would be overwritten first.
        let backwards = from == to && source.start < target.start;
        let order: Vec<u64> = match backwards {
            true => pieces.rev().collect(),
            false => pieces.collect(),
        };
        let mut piece = vec![0; PIECE.min(bytes as usize)];
        for at in order {
            let part = &mut piece[..(bytes - at).min(PIECE as u64) as usize];
            self.read_at(from, source.start + at, part);
            self.allocations[to.0].store_bytes(target.start + at, part);
        }
        match written {
            None => self.allocations[to.0].init.mark(target),
            Some(bits) => self.allocations[to.0].init.set_bits(target, &bits),
        }
        Ok(())
    }
}
