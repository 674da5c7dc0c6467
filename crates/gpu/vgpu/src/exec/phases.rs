//! State of `mbarrier` objects: phases, pending arrivals, transaction bytes, copies in flight.

use super::bulk_stores::BulkSource;
use super::unchanged::BulkRange;
use crate::hazard::clock::{Clock, join};
use crate::lower::program::Synchronizes;

/// An `mbarrier` object.
#[derive(Debug, Clone, Default)]
pub(super) struct Mbarrier {
    pub(super) expected: u32,
    pub(super) pending: i64,
    pub(super) bytes: i64,
    pub(super) phase: u64,
    /// The phase that the last successful wait found.
    pub(super) observed: u64,
    /// Clock joined from the arrivals of the current phase, and that of all finished phases.
    pub(super) current: Option<Clock>,
    pub(super) finished: Option<Clock>,
    /// The same of arrivals by the block of the object only, in a cluster of several: what an
    /// acquire of block scope orders.
    pub(super) own: [Option<Clock>; 2],
    /// Bulk copies in flight.
    pub(super) in_flight: Vec<Flight>,
}

/// A bulk copy or `tcgen05.commit` that signals an `mbarrier`.
#[derive(Debug, Clone)]
pub(super) struct Flight {
    /// Phase in which its bytes were counted, once they are.
    pub(super) delivered: Option<u64>,
    pub(super) bytes: u32,
    pub(super) thread: usize,
    pub(super) words: Vec<u32>,
    /// Instruction of the copy, if its thread is of another block.
    pub(super) foreign: Option<u32>,
    /// Ranges of global memory that it reads.
    pub(super) ranges: Vec<BulkRange>,
    /// Words of shared memory that it reads, if it does.
    pub(super) sources: Vec<BulkSource>,
    /// For `tcgen05.commit`, which arrives: the products of the thread until then.
    pub(super) commits: Option<u32>,
}

/// A finished copy that signals an `mbarrier`.
#[derive(Debug, Default)]
pub(super) struct Delivery {
    pub(super) thread: usize,
    pub(super) bytes: u32,
    pub(super) ranges: Vec<BulkRange>,
    /// Words that it wrote, and their last writes that it read.
    pub(super) words: Vec<u32>,
    pub(super) sources: Vec<BulkSource>,
    /// As in [`Flight`].
    pub(super) commits: Option<u32>,
}

/// A poll that found a phase under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct FailedPoll {
    /// Address of the object.
    pub(super) mbarrier: u32,
    pub(super) phase: u64,
    /// The instruction.
    pub(super) pc: u32,
}

/// The objects of a block in ascending order of address: few, and searched at every poll.
#[derive(Debug, Default)]
pub(super) struct Mbarriers(pub(super) Vec<(u32, Mbarrier)>);

impl Mbarriers {
    pub(super) fn find_slot(&self, at: u32) -> Result<usize, usize> {
        self.0.binary_search_by_key(&at, |(address, _)| *address)
    }

    pub(super) fn get_mut(&mut self, at: u32) -> Option<&mut Mbarrier> {
        let place = self.find_slot(at).ok()?;
        Some(&mut self.0[place].1)
    }

    /// Reports whether a repeated poll would find the phase unchanged, and no copy in flight that it would complete.
    pub(super) fn would_fail(&self, poll: FailedPoll) -> bool {
        self.find_slot(poll.mbarrier).is_ok_and(|place| {
            let m = &self.0[place].1;
            m.phase == poll.phase && m.in_flight.iter().all(|f| f.delivered.is_some())
        })
    }

    pub(super) fn insert(&mut self, at: u32, fresh: Mbarrier) {
        match self.find_slot(at) {
            Ok(place) => self.0[place].1 = fresh,
            Err(place) => self.0.insert(place, (at, fresh)),
        }
    }

    pub(super) fn remove(&mut self, at: u32) {
        if let Ok(place) = self.find_slot(at) {
            self.0.remove(place);
        }
    }
}

/// Operands of an arrival.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    pub(super) count: u32,
    pub(super) bytes: i64,
    pub(super) drop: bool,
    pub(super) release: Synchronizes,
}

impl Arrival {
    /// One arrival that publishes to all.
    pub(super) const ONE: Arrival = Arrival {
        count: 1,
        bytes: 0,
        drop: false,
        release: Synchronizes::Cluster,
    };
}

impl Mbarrier {
    /// Creates an object that expects a number of arrivals in each phase.
    pub(super) fn new(expected: u32) -> Mbarrier {
        Mbarrier {
            expected,
            pending: expected.into(),
            ..Mbarrier::default()
        }
    }

    pub(super) fn complete_if_done(&mut self) {
        if self.pending > 0 || self.bytes != 0 {
            return;
        }
        self.phase += 1;
        self.pending = self.expected.into();
        // A thread that observes the end of a phase has observed the ends of earlier ones.
        if let Some(clock) = self.current.take() {
            join(&mut self.finished, clock);
        }
        let [current, finished] = &mut self.own;
        if let Some(clock) = current.take() {
            join(finished, clock);
        }
    }
}
