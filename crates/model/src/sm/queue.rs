//! The way of memory instructions from the schedulers to the load and store unit.
//!
//! After Huerta et al., "Dissecting and Modeling the Architecture of Modern GPU Cores" (MICRO 2025;
//! arXiv 2503.20481), section 5.4 and tables 1 and 2, measured on an RTX A6000: each scheduler has
//! five places for memory instructions, works out the addresses of one every four cycles, and hands
//! it to what the schedulers share eleven cycles after its issue at the earliest; its place is free
//! from then on.

use crate::code::Instr;
use sass::Unit;
use std::collections::VecDeque;

/// Memory instructions of a scheduler that have been issued and not handed on.
const PLACES: usize = 5;
/// Cycles from one instruction of a scheduler that is handed on to the next.
const ADDRESSES: u64 = 4;
/// Cycles from issue until an instruction can be handed on.
pub(super) const HANDED: u64 = 11;

/// The memory instructions that a scheduler has issued.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// When each of the last ones was or will be handed on.
    handed: VecDeque<u64>,
}

impl Queue {
    /// The first cycle at which there is a place for another one.
    pub(super) fn free(&self) -> u64 {
        match self.handed.len() {
            PLACES.. => self.handed.front().copied().unwrap_or(0),
            _ => 0,
        }
    }

    /// The first cycle at which one that is issued `now` can be handed on.
    pub(super) fn soonest(&self, now: u64) -> u64 {
        let after = self.handed.back().map_or(0, |last| last + ADDRESSES);
        after.max(now + HANDED)
    }

    /// The last one issued is handed on at `cycle`.
    pub(super) fn hand(&mut self, cycle: u64) {
        if self.handed.len() == PLACES {
            self.handed.pop_front();
        }
        self.handed.push_back(cycle);
    }
}

/// What one instruction after the other has to itself, in the order in which they come.
#[derive(Debug, Default)]
pub(super) struct Unshared {
    /// Cycles that are taken, from first to behind the last, in order.
    taken: VecDeque<(u64, u64)>,
    /// When all of it is over.
    pub(super) end: u64,
}

impl Unshared {
    /// Takes it for so many cycles at the first moment from `soonest` on; gives the first of them.
    /// What comes earlier than `now` is past.
    pub(super) fn take(&mut self, now: u64, soonest: u64, cycles: u64) -> u64 {
        while self.taken.front().is_some_and(|(_, end)| *end <= now) {
            self.taken.pop_front();
        }
        let mut start = soonest;
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

/// When the sources of an instruction that is handed on at `handed` were read (table 2 of the paper:
/// what they are of a 32-bit access, and two cycles more for each further register that is stored).
pub(super) fn sources_read(instr: &Instr, handed: u64) -> u64 {
    let registers = u64::from(instr.bytes.div_ceil(4));
    match instr.unit {
        Unit::Shared if instr.write => handed + 2 * registers - 1,
        Unit::Shared => handed - 2,
        Unit::CopyAsync => handed + 2,
        _ if instr.write => handed + 2 * registers + 1,
        _ => handed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When each scheduler issues each of eight loads, as table 1 counts it: from cycle 2 on.
    fn issued(schedulers: usize) -> Vec<Vec<u64>> {
        let mut queues: Vec<Queue> = (0..schedulers).map(|_| Queue::default()).collect();
        let mut unit = Unshared::default();
        let mut found = vec![Vec::new(); schedulers];
        for now in 2..200 {
            for (queue, found) in queues.iter_mut().zip(&mut found) {
                if queue.free() <= now {
                    queue.hand(unit.take(now, queue.soonest(now), 2));
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
