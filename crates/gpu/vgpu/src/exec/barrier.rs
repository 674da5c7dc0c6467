//! Block-wide and named barriers.

use super::cta::{BARRIERS, Cta};
use super::stop::{Halt, Stop};
use super::transfer::lanes;
use super::warp::Warp;
use crate::hazard::HazardKind;
use crate::hazard::report::{InstructionPair, Location};
use crate::lower::program::{Bar, NONE};

/// Lanes of a path that wait at a barrier.
#[derive(Debug, Clone, Copy)]
struct Waiter {
    warp: usize,
    mask: u32,
    pc: u32,
    aligned: bool,
    /// All lanes of the warp that have not exited.
    whole: bool,
    /// Kind and destination row of the reduction, for `barrier.red`.
    red: Option<(u8, u32)>,
}

impl Waiter {
    /// Returns its first thread.
    fn thread(&self) -> usize {
        self.warp * 32 + self.mask.trailing_zeros() as usize
    }
}

/// One of the sixteen barriers of a block.
#[derive(Debug, Clone, Default)]
pub(super) struct Barrier {
    waiting: Vec<Waiter>,
    /// Threads that arrived without waiting (`barrier.arrive`).
    given: Vec<usize>,
    /// Threads counted so far.
    count: u32,
    /// Required number of threads; `None` means every live thread.
    wanted: Option<u32>,
    /// Votes of a reduction.
    yes: u32,
    votes: u32,
}

/// Result of a barrier reduction for lanes of a warp.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReductionResult {
    pub(super) warp: usize,
    pub(super) mask: u32,
    /// 0 is `and`, 1 is `or`, 2 is `popc`.
    pub(super) kind: u8,
    /// Destination row.
    pub(super) row: u32,
    /// Votes for, of all votes.
    pub(super) yes: u32,
    pub(super) votes: u32,
}

impl Cta<'_> {
    /// Records the arrival of a path. Returns whether it has to wait.
    pub(super) fn arrive_at(&mut self, w: &Warp, bar: &Bar, mask: u32) -> bool {
        let first = mask.trailing_zeros() as usize & 31;
        let thread = w.index * 32 + first;
        let id = w.regs.r32[bar.id as usize][first];
        let wanted = (bar.count != NONE).then(|| w.regs.r32[bar.count as usize][first]);
        // PTX ISA, `barrier`: 16 barriers, and a thread count that is a multiple of the warp size.
        if id > 15 || wanted.is_some_and(|n| n == 0 || n % 32 != 0 || n > 1024) {
            self.hazard(HazardKind::Crashed, thread, Location::NONE, NONE, || {
                format!(
                    "barrier {id} with {wanted:?} threads: ids are 0 to 15, counts multiples of 32"
                )
            });
            self.halted = Some(Halt(Stop::IllegalOperand, "an illegal barrier operand"));
            return true;
        }
        let rank = self.context.cluster.rank(thread);
        let id = id as usize + rank * BARRIERS;
        let full_warp = mask == w.alive && bar.aligned;
        // An aligned barrier counts warps: exited lanes of an incomplete warp count as arrived.
        let b = &mut self.barriers[id];
        b.count += if full_warp { 32 } else { mask.count_ones() };
        b.wanted = wanted;
        let mut red = None;
        if let Some((kind, dest, source, negated)) = bar.red {
            let p = w.regs.preds[source as usize];
            b.yes += ((if negated { !p } else { p }) & mask).count_ones();
            b.votes += mask.count_ones();
            red = Some((kind, dest));
        }
        if bar.arrive {
            b.given.extend(lanes(mask).map(|l| w.index * 32 + l));
        } else {
            b.waiting.push(Waiter {
                warp: w.index,
                mask,
                pc: self.pc,
                aligned: bar.aligned,
                whole: mask == w.alive,
                red,
            });
        }
        self.complete(id);
        !bar.arrive
    }

    /// Releases a barrier once all required threads have arrived.
    fn complete(&mut self, id: usize) {
        let b = &self.barriers[id];
        let here: usize = b.waiting.iter().map(|x| x.mask.count_ones() as usize).sum();
        let live = self.live[id / BARRIERS];
        let all = here == live;
        let done = match b.wanted {
            None => here + b.given.len() >= live,
            Some(n) => b.count >= n,
        };
        if !done || b.count == 0 {
            return;
        }
        let b = std::mem::take(&mut self.barriers[id]);
        // A barrier with a thread count is a named one: producers and consumers use different
        // instructions.
        if b.wanted.is_none() {
            self.same_instruction(&b, live);
        }
        let threads: Vec<usize> = b
            .waiting
            .iter()
            .flat_map(|x| lanes(x.mask).map(|l| x.warp * 32 + l))
            .collect();
        // Pending acquires apply before the clocks advance, so that the barrier passes them on to
        // all threads.
        threads.iter().for_each(|t| self.apply_pending(*t, false));
        // The block floor is valid only if every live thread took part; other sets need vector
        // clocks.
        self.counters.barriers += u64::from(all);
        if all && self.context.cluster.blocks == 1 {
            self.clocks.full_barrier();
        } else {
            self.clocks.subset(&b.given, &threads);
        }
        self.spread_fences(&threads);
        for x in b.waiting {
            if let Some((kind, row)) = x.red {
                self.reduced.push(ReductionResult {
                    warp: x.warp,
                    mask: x.mask,
                    kind,
                    row,
                    yes: b.yes,
                    votes: b.votes,
                });
            }
            self.released.push((x.warp, x.mask));
        }
    }

    /// Checks that all threads of a block-wide barrier are at one instruction. PTX requires that
    /// only within a warp, for `.aligned` barriers; CUDA C++ requires it of the whole block.
    fn same_instruction(&mut self, b: &Barrier, live: usize) {
        let Some(first) = b.waiting.first() else {
            return;
        };
        // A GPU waits only for threads that have not exited (CUDA C++ guide, "Independent Thread
        // Scheduling"), so that the barrier completes: a warning, not a hazard.
        if live < self.context.threads {
            let all = self.context.threads;
            let left = all - live;
            let at = InstructionPair {
                pc: first.pc,
                other: NONE,
            };
            self.warn(first.thread(), at, || {
                format!("`__syncthreads()` reached by {live} of {all} threads; {left} have exited")
            });
        }
        let Some(other) = b.waiting.iter().find(|x| x.pc != first.pc) else {
            return;
        };
        // Ordered by address, so that the report does not depend on which warp arrived first.
        let (low, high) = if first.pc < other.pc {
            (first, other)
        } else {
            (other, first)
        };
        let what = "threads of one block wait at different barriers of one phase";
        if b.waiting.iter().all(|x| x.whole || !x.aligned) {
            let at = InstructionPair {
                pc: high.pc,
                other: low.pc,
            };
            self.warn(high.thread(), at, || {
                format!("{what}: whole warps may in PTX, in CUDA C++ all threads want the same one")
            });
            return;
        }
        self.pc = high.pc;
        self.hazard(
            HazardKind::BarrierDivergence,
            high.thread(),
            Location::NONE,
            low.pc,
            || what.to_owned(),
        );
    }

    /// Records the exit of threads: block-wide barriers may be complete without them.
    pub(super) fn leave(&mut self, w: &Warp, mask: u32) {
        // Bulk copies need no wait before the exit, but their sources are checked up to here.
        self.wait_bulk(w, NONE, false, mask);
        let rank = self.context.cluster.rank(w.index * 32);
        self.live[rank] -= mask.count_ones() as usize;
        if self.live[rank] == 0 {
            self.check_tensor_memory_at_exit(rank, w.index * 32);
        }
        self.leave_cluster(w, mask);
        self.leave_cluster_barrier(w, mask);
        for id in rank * BARRIERS..(rank + 1) * BARRIERS {
            let b = &self.barriers[id];
            let stranded = b
                .waiting
                .iter()
                .find(|x| x.warp == w.index && x.aligned)
                .copied();
            if let Some(x) = stranded {
                let at = InstructionPair {
                    pc: x.pc,
                    other: self.pc,
                };
                self.warn(x.thread(), at, || {
                    "threads of a warp exit while others of it wait at a barrier, which CUDA C++ \
                     does not allow"
                        .to_owned()
                });
            }
            if !self.barriers[id].waiting.is_empty() && self.barriers[id].wanted.is_none() {
                self.complete(id);
            }
        }
    }

    /// Lists the waiting paths: barrier, thread, instruction, and whether the barrier counts
    /// threads.
    pub(super) fn waiters(&self) -> Vec<(usize, usize, u32, bool)> {
        let mut out = Vec::new();
        for (id, b) in self.barriers.iter().enumerate() {
            for x in &b.waiting {
                out.push((id % BARRIERS, x.thread(), x.pc, b.wanted.is_some()));
            }
        }
        out
    }
}
