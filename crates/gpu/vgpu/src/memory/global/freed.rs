//! The end of buffers, and the buffers that addresses mean; the heap of kernels.

use std::sync::Arc;

use super::{Allocation, BufferId, GlobalMemory, MemoryError};
use crate::memory::heap::Heap;

/// Maximum number of freed buffers that are remembered by name.
const FREED_MAX: usize = 1024;

/// Distance from which an address does not refer to an allocation: 32-bit indices of wide elements stay below.
const FAR_BYTES: u64 = 1 << 40;

/// The allocation that an address meant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Near<'a> {
    pub(crate) buffer: BufferId,
    pub(crate) name: &'a str,
    pub(crate) base: u64,
    /// Size; that before it was freed.
    pub(crate) bytes: u64,
    pub(crate) freed: bool,
}

/// A buffer that was freed.
#[derive(Debug)]
pub(super) struct Freed {
    index: usize,
    base: u64,
    bytes: u64,
}

impl GlobalMemory {
    /// Sets the size of the heap of `malloc` in kernels; `false`, and nothing is changed, where a
    /// launch has used it.
    pub fn set_heap_bytes(&mut self, bytes: u64) -> bool {
        let unused = self.heap.is_none();
        if unused {
            self.heap_bytes = bytes;
        }
        unused
    }

    /// Size of the heap of `malloc` in kernels.
    #[must_use]
    pub fn heap_bytes(&self) -> u64 {
        self.heap_bytes
    }

    /// Makes the heap, if there is none.
    pub(crate) fn place_heap(&mut self) -> Result<(), MemoryError> {
        if self.heap.is_none() {
            let buffer = self.alloc(self.heap_bytes, "the heap of malloc")?;
            self.heap = Some(Heap::new(buffer, self.heap_bytes));
        }
        Ok(())
    }

    /// Frees the buffer's storage. Its address is never reused, and every access to it is out of
    /// bounds.
    pub fn free(&mut self, buffer: BufferId) {
        let (base, bytes) = (self.address(buffer), self.len(buffer));
        let all = &self.allocations;
        // A buffer that was freed before is no longer among the live ones.
        let Ok(at) = self.live.binary_search_by_key(&base, |n| all[*n].base) else {
            return;
        };
        if self.live[at] != buffer.0 {
            return;
        }
        self.live.remove(at);
        self.used -= bytes;
        if let Some(module) = self.allocations[buffer.0].module {
            self.modules
                .entry(module)
                .or_default()
                .retain(|id| *id != buffer);
        }
        let name = self.allocations[buffer.0].name.clone();
        self.allocations[buffer.0] = Arc::new(Allocation::nothing(base, name));
        self.freed.push_back(Freed {
            index: buffer.0,
            base,
            bytes,
        });
        if self.freed.len() > FREED_MAX
            && let Some(oldest) = self.freed.pop_front()
        {
            self.allocations[oldest.index] = self.nothing.clone();
        }
    }

    /// A buffer that is not freed.
    fn near(&self, index: usize) -> Option<Near<'_>> {
        let a = self.allocations.get(index)?;
        Some(Near {
            buffer: BufferId(index),
            name: &a.name,
            base: a.base,
            bytes: a.bytes,
            freed: false,
        })
    }

    /// The allocation that holds an address, or one of those freed last that did.
    pub(crate) fn holder(&self, address: u64) -> Option<Near<'_>> {
        if let Some(found) = self.find(address) {
            return self.near(found.index);
        }
        let holds = |f: &&Freed| address.wrapping_sub(f.base) < f.bytes;
        self.freed.iter().find(holds).map(|f| self.gone(f))
    }

    fn gone(&self, freed: &Freed) -> Near<'_> {
        Near {
            buffer: BufferId(freed.index),
            name: self.name(freed.index),
            base: freed.base,
            bytes: freed.bytes,
            freed: true,
        }
    }

    /// Returns the allocation that an invalid `address` most likely refers to: the nearest one at
    /// or below that is not a module variable, else the nearest variable. An address far from all is a host
    /// pointer or none.
    pub(crate) fn nearest(&self, address: u64) -> Option<Near<'_>> {
        let all = &self.allocations;
        let place = self.live.partition_point(|n| all[*n].base <= address);
        let below = self.live.get(..place)?;
        let buffer = below.iter().rev().find(|n| all[**n].module.is_none());
        let freed = self.freed.iter().filter(|f| f.base <= address);
        let freed = freed.max_by_key(|f| f.base);
        let nearest = match (buffer, freed) {
            (Some(n), Some(f)) if all[*n].base < f.base => Some(self.gone(f)),
            (Some(n), _) => self.near(*n),
            (None, Some(f)) => Some(self.gone(f)),
            (None, None) => self.near(*below.last()?),
        };
        nearest.filter(|near| address - near.base < FAR_BYTES)
    }
}
