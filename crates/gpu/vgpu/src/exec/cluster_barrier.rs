//! The barrier of a cluster: `barrier.cluster.arrive` and `barrier.cluster.wait` (PTX ISA, 9.7.13.4).

use super::cta::{Context, Cta};
use super::transfer::lanes;
use super::warp::Warp;
use crate::hazard::HazardKind;
use crate::hazard::clock::Clock;
use crate::hazard::report::Location;
use crate::lower::program::NONE;

/// Lanes of a path that wait.
#[derive(Debug, Clone, Copy)]
struct Waiter {
    warp: usize,
    mask: u32,
    pc: u32,
}

/// The barrier of one cluster.
#[derive(Debug)]
pub(super) struct ClusterBarrier {
    /// Finished phases.
    phase: u32,
    /// Live threads that have not arrived in this phase.
    pending: usize,
    /// Releases of this phase, and of the last finished one.
    current: Option<Clock>,
    finished: Option<Clock>,
    /// Exits of threads that had arrived in this phase: they come before the end of the next.
    next: Option<Clock>,
    /// By thread: arrivals, and waits that came to their end. Made at the first arrival.
    arrivals: Vec<u32>,
    waits: Vec<u32>,
    /// By thread: instruction of the last arrival.
    arrived_at: Vec<u32>,
    waiting: Vec<Waiter>,
}

impl ClusterBarrier {
    pub(super) fn new(context: &Context<'_>) -> ClusterBarrier {
        ClusterBarrier {
            phase: 0,
            pending: context.threads * context.cluster.blocks,
            current: None,
            finished: None,
            next: None,
            arrivals: Vec::new(),
            waits: Vec::new(),
            arrived_at: Vec::new(),
            waiting: Vec::new(),
        }
    }

    /// Returns the number of arrivals of a thread.
    pub(super) fn arrivals(&self, thread: usize) -> u32 {
        self.arrivals.get(thread).copied().unwrap_or_default()
    }

    /// Returns the number of phases that a thread has waited for.
    pub(super) fn waits(&self, thread: usize) -> u32 {
        self.waits.get(thread).copied().unwrap_or_default()
    }

    /// Returns the waiting paths: first thread, instruction.
    fn waiters(&self) -> impl Iterator<Item = (usize, u32)> {
        let first = |w: &Waiter| w.warp * 32 + w.mask.trailing_zeros() as usize;
        self.waiting.iter().map(move |w| (first(w), w.pc))
    }
}

impl Cta<'_> {
    /// Executes `barrier.cluster.arrive`.
    pub(super) fn cluster_arrive(&mut self, w: &Warp, mask: u32, release: bool, aligned: bool) {
        self.check_cluster_warp(w, mask, aligned, "arrive");
        let slots = self.context.slots();
        let b = &mut self.cluster_barrier;
        for list in [&mut b.arrivals, &mut b.waits, &mut b.arrived_at] {
            list.resize(slots, 0);
        }
        // The arrival may end the waits of other threads: states that were seen before prove no
        // deadlock.
        self.version += 1;
        for lane in lanes(mask) {
            let thread = w.index * 32 + lane;
            let pc = self.pc;
            let b = &mut self.cluster_barrier;
            if b.arrivals[thread] > b.waits[thread] {
                let before = b.arrived_at[thread];
                self.hazard(
                    HazardKind::BarrierDivergence,
                    thread,
                    Location::NONE,
                    before,
                    || {
                        "a thread arrives twice at the barrier of the cluster without \
                     `barrier.cluster.wait` between"
                            .to_owned()
                    },
                );
                continue;
            }
            b.arrivals[thread] += 1;
            b.arrived_at[thread] = pc;
            // A relaxed arrival publishes only fenced `mbarrier.init` (PTX ISA,
            // `fence.mbarrier_init`), and that it was executed.
            if release {
                self.clocks.release_to(thread, &mut b.current);
            } else {
                self.clocks.release_inits_to(thread, &mut b.current);
                self.clocks.release_execution_to(thread, &mut b.current);
            }
            b.pending = b.pending.saturating_sub(1);
        }
        self.complete_cluster_barrier();
    }

    /// Executes `barrier.cluster.wait`; returns whether the path has to wait.
    pub(super) fn cluster_wait(&mut self, w: &Warp, mask: u32, aligned: bool) -> bool {
        self.check_cluster_warp(w, mask, aligned, "wait");
        let b = &self.cluster_barrier;
        let first = w.index * 32;
        let missing = lanes(mask).find(|l| b.arrivals(first + l) == b.waits(first + l));
        if let Some(lane) = missing {
            self.hazard(
                HazardKind::BarrierDivergence,
                first + lane,
                Location::NONE,
                NONE,
                || "`barrier.cluster.wait` of a thread that has not arrived".to_owned(),
            );
            return false;
        }
        if lanes(mask).any(|lane| b.waits(first + lane) >= b.phase) {
            let (warp, pc) = (w.index, self.pc);
            self.cluster_barrier.waiting.push(Waiter { warp, mask, pc });
            return true;
        }
        self.end_cluster_wait(w.index, mask);
        false
    }

    /// Orders lanes after the arrivals of the phase that they have waited for.
    fn end_cluster_wait(&mut self, warp: usize, mask: u32) {
        let finished = self.cluster_barrier.finished.clone();
        for lane in lanes(mask) {
            let thread = warp * 32 + lane;
            self.cluster_barrier.waits[thread] += 1;
            if let Some(clock) = &finished
                && self.context.checks.races
            {
                self.clocks.acquire(thread, clock);
            }
        }
        // All blocks have arrived, so all have started: accesses to their shared memory are valid
        // from now on.
        self.remotes
            .note_started(self.context.cluster.rank(warp * 32));
    }

    /// Ends the phase once every live thread has arrived.
    fn complete_cluster_barrier(&mut self) {
        let b = &mut self.cluster_barrier;
        if b.pending > 0 {
            return;
        }
        b.phase += 1;
        b.pending = self.live.iter().sum();
        b.finished = b.current.take();
        b.current = b.next.take();
        self.counters.barriers += 1;
        for waiter in std::mem::take(&mut self.cluster_barrier.waiting) {
            self.end_cluster_wait(waiter.warp, waiter.mask);
            self.released.push((waiter.warp, waiter.mask));
        }
    }

    /// Records the exit of threads, which count as arrived. Called after `live` was reduced.
    pub(super) fn leave_cluster_barrier(&mut self, w: &Warp, mask: u32) {
        let b = &mut self.cluster_barrier;
        for lane in lanes(mask) {
            let thread = w.index * 32 + lane;
            // The barrier waits for threads that have not exited: it ends after the exit. A thread that
            // has arrived may exit after the end of this phase.
            let ended = match b.arrivals(thread) <= b.phase {
                true => &mut b.current,
                false => &mut b.next,
            };
            self.clocks.release_execution_to(thread, ended);
        }
        if b.arrivals.is_empty() {
            b.pending = b.pending.saturating_sub(mask.count_ones() as usize);
            return;
        }
        for lane in lanes(mask) {
            let thread = w.index * 32 + lane;
            // One that has arrived and not waited is counted already.
            if b.arrivals(thread) <= b.phase {
                b.pending = b.pending.saturating_sub(1);
            }
        }
        if self.live.iter().sum::<usize>() > 0 {
            self.complete_cluster_barrier();
        }
    }

    /// Reports an aligned instruction that not all threads of a warp execute together.
    fn check_cluster_warp(&mut self, w: &Warp, mask: u32, aligned: bool, what: &str) {
        if !aligned || mask == w.alive {
            return;
        }
        let thread = w.index * 32 + mask.trailing_zeros() as usize;
        let (here, all) = (mask.count_ones(), w.alive.count_ones());
        self.hazard(HazardKind::BarrierDivergence, thread, Location::NONE, NONE, || {
            format!(
                "`barrier.cluster.{what}.aligned` reached by {here} of the {all} threads of a warp"
            )
        });
    }

    /// Returns the first thread that waits at the barrier of the cluster, its instruction, and a
    /// sentence about the threads that do not arrive.
    pub(super) fn cluster_waiter(&self) -> Option<(usize, u32, String)> {
        let b = &self.cluster_barrier;
        let (thread, pc) = b.waiters().min()?;
        let missing = b.pending;
        let late = (0..self.context.slots()).find(|thread| {
            let live = self.context.cluster.thread_in_block(*thread) < self.context.threads;
            live && b.arrivals(*thread) <= b.phase
        });
        let late = late.map_or_else(String::new, |thread| {
            let [x, y, z] = self.context.tid(thread);
            let block = self.block_name(self.context.cluster.rank(thread));
            format!(", the first of them thread ({x}, {y}, {z}) of {block}")
        });
        let text = format!(
            "no thread can continue: threads wait at the barrier of the cluster for {missing} threads \
             that do not arrive{late}"
        );
        Some((thread, pc, text))
    }
}
