//! Accesses to shared memory of other blocks of a cluster: the block must have started, and must not
//! have exited (CUDA C++ programming guide, "Distributed Shared Memory").
//!
//! A block exits with its last thread. An access therefore is safe if it happens before the exit of
//! some thread of that block, or if a thread of it has waited for a phase of the barrier of the
//! cluster at which the accessing thread arrived afterwards. An arrival at an `mbarrier` is also safe if
//! a thread of that block has waited for its phase, in whatever order that puts other accesses.

use std::collections::BTreeMap;

use super::access::Touch;
use super::cta::Cta;
use super::transfer::lanes;
use super::warp::Warp;
use crate::hazard::clock::Clock;
use crate::hazard::report::Location;
use crate::hazard::shadow::Strength;
use crate::hazard::{HazardKind, Space};
use crate::lower::program::{MbarOp, NONE, Op};

/// The last access of a thread to the shared memory of another block.
#[derive(Debug, Clone, Copy, Default)]
struct Remote {
    /// Segment of the thread; 0 if there is none.
    segment: u32,
    /// Arrivals of the thread at the barrier of the cluster before it.
    arrivals: u32,
    pc: u32,
    address: u32,
}

/// An arrival at an `mbarrier` of another block.
#[derive(Debug, Clone, Copy)]
struct Signal {
    access: Remote,
    /// The phase that it is in.
    phase: u64,
}

/// Exits of the threads of a block.
#[derive(Debug, Clone, Default)]
struct Exits {
    /// Clock of the events before the exit of some thread.
    clock: Option<Clock>,
    /// Phases of the barrier of the cluster that some thread had waited for.
    waits: u32,
    /// The last instruction by which a thread exits.
    pc: u32,
}

/// Accesses of the threads of a cluster to other blocks, and the exits of the blocks.
#[derive(Debug, Default)]
pub(super) struct Remotes {
    /// By thread and block; made at the first access.
    last: Vec<Remote>,
    /// By thread and object: the last arrival.
    signals: BTreeMap<(usize, u32), Signal>,
    /// By block.
    exits: Vec<Exits>,
    /// Blocks of which a thread has waited for the cluster.
    started: Vec<bool>,
}

impl Remotes {
    pub(super) fn new(blocks: usize) -> Remotes {
        // A block that is alone has no others: nothing is allocated for it.
        let others = if blocks > 1 { blocks } else { 0 };
        Remotes {
            last: Vec::new(),
            signals: BTreeMap::new(),
            exits: vec![Exits::default(); others],
            started: vec![false; others],
        }
    }

    /// Records that a block has waited for all blocks of the cluster.
    pub(super) fn note_started(&mut self, rank: usize) {
        if let Some(started) = self.started.get_mut(rank) {
            *started = true;
        }
    }
}

impl Cta<'_> {
    /// Checks an access to shared memory of another block; returns whether it can be executed.
    /// An asynchronous one ends with its `mbarrier`, not with its instruction.
    #[cold]
    pub(super) fn access_remote(&mut self, thread: usize, at: u64, t: &Touch) -> bool {
        let cluster = self.context.cluster;
        let (own, rank) = (cluster.rank(thread), cluster.rank_of_address(at));
        let place = Location::new(Space::Shared, at);
        if self.live.get(rank) == Some(&0) {
            let exit = self.remotes.exits.get(rank).map_or(NONE, |exits| exits.pc);
            let block = self.block_name(rank);
            self.hazard(HazardKind::Race, thread, place, exit, || {
                format!("an access to shared memory of {block}, which has exited")
            });
            return false;
        }
        if !self.context.checks.races {
            return true;
        }
        let slots = self.context.slots();
        let first = rank * cluster.warps * 32;
        if self.remotes.last.is_empty() {
            self.remotes.last = vec![Remote::default(); slots * cluster.blocks];
        }
        let known = self.remotes.last.get(thread * cluster.blocks + rank);
        let known = known.copied().unwrap_or_default();
        let waited = self.remotes.started.get(own) == Some(&true);
        let threads = first..first + self.context.threads;
        // Only the first access can come too early: a block that has started stays started.
        if known.segment == 0 && !waited && !self.clocks.has_observed(thread, threads) {
            let block = self.block_name(rank);
            // The other side is the first instruction of that block.
            self.hazard(HazardKind::Race, thread, place, 0, || {
                format!(
                    "an access to shared memory of {block}, which may not have started: the threads \
                     of the cluster must meet at its barrier before"
                )
            });
        }
        if t.in_flight {
            return true;
        }
        let last = Remote {
            segment: match t.strength {
                Strength::Plain => self.clocks.segment[thread],
                _ => self.clocks.segment_of_strong(thread),
            },
            arrivals: self.cluster_barrier.arrivals(thread),
            pc: self.pc,
            address: at as u32,
        };
        let inst = self.context.program.code.get(self.pc as usize);
        if let Some(Op::Mbar(_, op)) = inst.map(|inst| &inst.op)
            && matches!(**op, MbarOp::Arrive { .. })
        {
            let phase = self.mbarriers.get_mut(last.address).map_or(0, |m| m.phase);
            let signal = Signal {
                access: last,
                phase,
            };
            self.remotes.signals.insert((thread, last.address), signal);
            return true;
        }
        if let Some(place) = self.remotes.last.get_mut(thread * cluster.blocks + rank)
            && (place.segment, place.arrivals) != (last.segment, last.arrivals)
        {
            *place = last;
        }
        true
    }

    /// Records what happens before the exits of threads.
    pub(super) fn leave_cluster(&mut self, w: &Warp, mask: u32) {
        let cluster = self.context.cluster;
        if cluster.blocks == 1 || !self.context.checks.races {
            return;
        }
        let pc = self.pc;
        for lane in lanes(mask) {
            let thread = w.index * 32 + lane;
            let waits = self.cluster_barrier.waits(thread);
            let Some(exits) = self.remotes.exits.get_mut(cluster.rank(thread)) else {
                continue;
            };
            self.clocks.release_to(thread, &mut exits.clock);
            exits.waits = exits.waits.max(waits);
            exits.pc = pc;
        }
    }

    /// Reports accesses to blocks that may have exited before. Called at the end of the cluster.
    pub(super) fn check_exits(&mut self) {
        let blocks = self.context.cluster.blocks;
        if blocks == 1 || !self.context.checks.races {
            return;
        }
        let last = std::mem::take(&mut self.remotes.last);
        let last = last.into_iter().enumerate().filter(|(_, r)| r.segment > 0);
        let last = last.map(|(number, remote)| (number / blocks, number % blocks, remote));
        for (thread, rank, remote) in last.chain(self.unobserved_signals()) {
            let Some(exits) = self.remotes.exits.get(rank) else {
                continue;
            };
            let clock = exits.clock.as_ref().and_then(|clock| clock.get(thread));
            let before = clock.is_some_and(|until| remote.segment < *until);
            if before || remote.arrivals < exits.waits {
                continue;
            }
            let (exit, block) = (exits.pc, self.block_name(rank));
            self.pc = remote.pc;
            let place = Location::new(Space::Shared, remote.address.into());
            self.hazard(HazardKind::Race, thread, place, exit, || {
                format!(
                    "an access to shared memory of {block}, which may have exited before: the threads \
                     of the cluster must meet at its barrier after the access"
                )
            });
        }
        self.check_copies_at_exit();
    }

    /// Returns the arrivals at objects of other blocks whose phase those did not wait for: thread, block and
    /// access.
    fn unobserved_signals(&mut self) -> Vec<(usize, usize, Remote)> {
        let mut unobserved = Vec::new();
        for ((thread, at), signal) in std::mem::take(&mut self.remotes.signals) {
            let object = self.mbarriers.get_mut(at);
            if object.is_none_or(|m| m.observed <= signal.phase) {
                let rank = self.context.cluster.rank_of_address(at.into());
                unobserved.push((thread, rank, signal.access));
            }
        }
        unobserved
    }

    /// Reports copies into a block by others for which it did not wait before its exit.
    pub(super) fn check_copies_at_exit(&mut self) {
        let mut late = Vec::new();
        for (at, m) in std::mem::take(&mut self.mbarriers).0 {
            let flights = m.in_flight.iter().filter(|f| !self.has_arrived(at, f));
            late.extend(flights.filter_map(|f| Some((at, f.thread, f.foreign?))));
        }
        for (at, thread, pc) in late {
            let rank = self.context.cluster.rank_of_address(at.into());
            let (exit, block) = (self.exit_of(rank), self.block_name(rank));
            self.pc = pc;
            let place = Location::new(Space::Shared, at.into());
            self.hazard(HazardKind::Race, thread, place, exit, || {
                format!(
                    "an asynchronous copy into shared memory of {block}, which exits without a wait \
                     for it"
                )
            });
        }
    }

    /// Returns the instruction by which the last thread of a block exited.
    pub(super) fn exit_of(&self, rank: usize) -> u32 {
        self.remotes.exits.get(rank).map_or(NONE, |exits| exits.pc)
    }
}
