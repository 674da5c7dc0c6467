//! Memory instruction queues between the schedulers and the load and store unit.
//!
//! After Huerta et al., "Dissecting and Modeling the Architecture of Modern GPU Cores" (MICRO 2025;
//! arXiv 2503.20481), section 5.4 and tables 1 and 2, measured on an RTX A6000. Each scheduler has
//! five queue slots for memory instructions and computes the addresses of one every four cycles. It
//! dispatches an instruction to the shared structures eleven cycles after its issue at the
//! earliest. The slot is free from then on.

use crate::code::Instr;
use sass::Unit;
use std::collections::VecDeque;

/// Queue slots of a scheduler for issued memory instructions that are not dispatched.
const QUEUE_SLOTS: usize = 5;
/// Cycles between the dispatches of one scheduler, for the address computation.
const DISPATCH_INTERVAL: u64 = 4;
/// Smallest number of cycles from issue to dispatch.
pub(super) const MIN_DISPATCH_CYCLES: u64 = 11;

/// Queue of the memory instructions that a scheduler issued.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Dispatch cycles of the last instructions.
    dispatched: VecDeque<u64>,
}

impl Queue {
    /// Returns the first cycle with a free slot.
    pub(super) fn first_free(&self) -> u64 {
        match self.dispatched.len() {
            QUEUE_SLOTS.. => self.dispatched.front().copied().unwrap_or(0),
            _ => 0,
        }
    }

    /// Returns the first cycle at which an instruction issued at `now` can be dispatched.
    pub(super) fn first_dispatch(&self, now: u64) -> u64 {
        let after = self
            .dispatched
            .back()
            .map_or(0, |last| last + DISPATCH_INTERVAL);
        after.max(now + MIN_DISPATCH_CYCLES)
    }

    /// Records the dispatch cycle of the last issued instruction.
    pub(super) fn record_dispatch(&mut self, cycle: u64) {
        if self.dispatched.len() == QUEUE_SLOTS {
            self.dispatched.pop_front();
        }
        self.dispatched.push_back(cycle);
    }
}

/// A resource that serves one instruction at a time, in order of arrival.
#[derive(Debug, Default)]
pub(super) struct SerialResource {
    /// Occupied cycle ranges in order, ends excluded.
    taken: VecDeque<(u64, u64)>,
    /// End of the last occupied range.
    pub(super) end: u64,
}

impl SerialResource {
    /// Occupies the resource for `cycles` at the first gap from `soonest` on and returns its first
    /// cycle. Ranges before `now` are discarded.
    pub(super) fn take(&mut self, now: u64, soonest: u64, cycles: u64) -> u64 {
        while self.taken.front().is_some_and(|(_, end)| *end <= now) {
            self.taken.pop_front();
        }
        let mut start = soonest;
        // Each scheduler has its own delay, so that an instruction may come before one taken
        // earlier.
        let mut place = self.taken.len();
        for (index, (from, to)) in self.taken.iter().enumerate() {
            if start + cycles <= *from {
                place = index;
                break;
            }
            start = start.max(*to);
        }
        self.taken.insert(place, (start, start + cycles));
        self.end = self.end.max(start + cycles);
        start
    }
}

/// Returns the cycle at which the sources of an instruction dispatched at `dispatched` are read.
/// The value is that of table 2 of the paper for a 32-bit access, plus two cycles per further
/// stored register.
pub(super) fn sources_read(instr: &Instr, dispatched: u64) -> u64 {
    let registers = u64::from(instr.bytes.div_ceil(4));
    match instr.unit {
        Unit::Shared if instr.write => dispatched + 2 * registers - 1,
        Unit::Shared => dispatched - 2,
        Unit::CopyAsync => dispatched + 2,
        _ if instr.write => dispatched + 2 * registers + 1,
        _ => dispatched,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the issue cycles of eight loads per scheduler, from cycle 2 on as in table 1.
    fn issued(schedulers: usize) -> Vec<Vec<u64>> {
        let mut queues: Vec<Queue> = (0..schedulers).map(|_| Queue::default()).collect();
        let mut unit = SerialResource::default();
        let mut found = vec![Vec::new(); schedulers];
        for now in 2..200 {
            for (queue, found) in queues.iter_mut().zip(&mut found) {
                if queue.first_free() <= now {
                    queue.record_dispatch(unit.take(now, queue.first_dispatch(now), 2));
                    found.push(now);
                }
            }
        }
        found
    }

    #[test]
    fn loads_are_issued_when_the_published_table_says() {
        assert_eq!(issued(1)[0][..8], [2, 3, 4, 5, 6, 13, 17, 21]);
        let two = issued(2);
        assert_eq!(two[0][5..8], [13, 17, 21]);
        assert_eq!(two[1][5..8], [15, 19, 23]);
        let four = issued(4);
        let sixth: Vec<u64> = four.iter().map(|list| list[5]).collect();
        assert_eq!(sixth, [13, 15, 17, 19]);
        for list in &four {
            assert_eq!(list[9] - list[8], 8);
        }
    }
}
