//! Buffers that grow in a reserved range of addresses.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::{
    ALIGNMENT_BYTES, Allocation, BufferId, GAP_BYTES, GlobalMemory, MAX_ALLOCATION_BYTES,
    MemoryError,
};
use crate::hazard::global::GlobalShadow;
use crate::memory::init::InitMap;

impl GlobalMemory {
    /// Reserves addresses for a buffer that has no bytes yet; the first is a multiple of `alignment`.
    pub fn reserve(
        &mut self,
        bytes: u64,
        alignment: u64,
        name: &str,
    ) -> Result<BufferId, MemoryError> {
        if bytes > MAX_ALLOCATION_BYTES {
            return Err(self.exhausted(bytes, name));
        }
        self.next = self.next.next_multiple_of(alignment.max(ALIGNMENT_BYTES));
        let end = self.next + bytes + GAP_BYTES;
        let buffer = self.alloc(0, name)?;
        self.next = end.next_multiple_of(ALIGNMENT_BYTES);
        Ok(buffer)
    }

    /// Sets the size of a buffer, at most that of its reserved range. New bytes are unwritten.
    pub fn resize(&mut self, buffer: BufferId, bytes: u64) -> Result<(), MemoryError> {
        let old = self.allocations[buffer.0].clone();
        let others = self.used - old.bytes;
        if bytes > self.limit.saturating_sub(others) {
            return Err(self.exhausted(bytes, &old.name));
        }
        let count = bytes.div_ceil(4) as usize;
        let Ok(words) = bytemuck::try_zeroed_vec::<std::sync::atomic::AtomicU32>(count) else {
            return Err(self.exhausted(bytes, &old.name));
        };
        for (to, from) in words.iter().zip(&old.words) {
            to.store(from.load(Relaxed), Relaxed);
        }
        let init = InitMap::new(bytes);
        let kept = 0..bytes.min(old.bytes);
        match old.init.bits(kept.clone()) {
            Some(bits) => init.set_bits(kept, &bits),
            None => init.mark(kept),
        }
        self.used = others + bytes;
        self.allocations[buffer.0] = Arc::new(Allocation {
            base: old.base,
            bytes,
            name: old.name.clone(),
            words,
            init,
            shadow: GlobalShadow::new(count),
            module: old.module,
            unset: old.unset,
        });
        Ok(())
    }

    /// Marks a range of a buffer as unwritten.
    pub fn forget(&mut self, buffer: BufferId, range: Range<u64>) {
        self.allocations[buffer.0].init.clear_range(range);
    }

    pub(super) fn exhausted(&self, bytes: u64, name: &str) -> MemoryError {
        MemoryError::OutOfMemory {
            name: name.to_owned(),
            wanted: bytes,
            used: self.used,
            limit: self.limit,
        }
    }
}
