//! Numbers of the phases of barriers.

use std::collections::HashMap;

/// Phases of the barriers of a block, for traces.
#[derive(Debug, Default)]
pub(super) struct Phases {
    /// Number of complete phases, by address.
    complete: HashMap<u64, u32>,
    /// Numbers among the phases of all barriers, by address and number at that address.
    numbers: HashMap<(u64, u32), u32>,
}

impl Phases {
    fn number(&mut self, at: u64, phase: u32) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry((at, phase)).or_insert(next)
    }

    fn complete_of(&self, at: u64) -> u32 {
        self.complete.get(&at).copied().unwrap_or_default()
    }

    /// Returns the present phase of a barrier.
    pub(super) fn present(&mut self, at: u64) -> u32 {
        self.number(at, self.complete_of(at))
    }

    /// Returns the phase that ended last; `None` before the first end.
    pub(super) fn last(&mut self, at: u64) -> Option<u32> {
        let last = self.complete_of(at).checked_sub(1)?;
        Some(self.number(at, last))
    }

    /// Returns the number of a phase of a block-wide barrier (`BAR`).
    pub(super) fn of_block_barrier(&mut self, index: u32, phase: u64) -> u32 {
        // Beyond all addresses of shared memory.
        self.number(1 << 32 | u64::from(index), phase as u32)
    }

    pub(super) fn end(&mut self, at: u64) {
        *self.complete.entry(at).or_default() += 1;
    }

    /// A new barrier begins with an even phase.
    pub(super) fn begin(&mut self, at: u64) {
        let complete = self.complete_of(at);
        self.complete.insert(at, complete.next_multiple_of(2));
    }
}
