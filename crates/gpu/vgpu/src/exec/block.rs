//! One block: its warps take turns until all have exited or none can continue.

use std::sync::atomic::Ordering::Relaxed;

use super::barrier::ReductionResult;
use super::cta::{Context, Cta, SpareBuffers};
use super::step;
use super::stop::{Halt, Stop};
use super::stuck;
use super::transfer::lanes;
use super::warp::{Path, State, Warp};
use crate::counters::Class;
use crate::hazard::HazardKind;
use crate::hazard::report::Location;
use crate::lower::program::{NONE, Op};
use ptx::skeleton::ADDRESSES;

/// Warp instructions of a turn.
const TURN_INSTRUCTIONS: u64 = 4096;
/// Successive turns that a warp is left out of while another poll of its `mbarrier` can only fail.
const MAX_SKIPPED_TURNS: u32 = 64;
/// Exhausted turns in a row after which lanes that wait for convergence continue alone.
const MAX_LONG_TURNS: u32 = 16;

/// State of a block after a time slice.
pub(super) enum Progress {
    Done,
    /// The time slice is used up; run it again.
    More,
}

/// A block that runs in time slices.
pub(super) struct Block<'a> {
    pub(super) cta: Cta<'a>,
    warps: Vec<Warp>,
    spent: u64,
    random: Option<u64>,
    /// Counted among the stalled blocks, which repeat the same states.
    stalled: bool,
    /// The round it counts in, and its version of memory at its last report.
    round: u64,
    reported: u64,
    /// Lane instructions that count among those of the launch already.
    lanes_counted: u64,
}

impl<'a> Block<'a> {
    /// Creates a block at its first instruction, reusing the buffers of a finished one.
    pub(super) fn new(context: &'a Context<'a>, block: u32, mut spare: SpareBuffers) -> Block<'a> {
        let mut old = std::mem::take(&mut spare.warps).into_iter();
        let warps = (0..context.cluster.blocks * context.cluster.warps)
            .map(|i| Warp::renew(old.next().unwrap_or_default(), context, i, block))
            .collect();
        // The seed of the schedule is mixed with the block's number, so that blocks differ;
        // xorshift needs a state that is not zero.
        let random = context
            .seed
            .map(|s| (s ^ u64::from(block).wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1);
        Block {
            cta: Cta::new(context, block, spare),
            warps,
            spent: 0,
            random,
            stalled: false,
            round: 0,
            reported: 0,
            lanes_counted: 0,
        }
    }

    /// Returns the buffers of a finished block for reuse.
    pub(super) fn spare(self) -> SpareBuffers {
        let mut spare = self.cta.spare();
        spare.warps = self.warps;
        spare
    }

    /// Runs until the block is done or `slice` instructions are spent.
    pub(super) fn run(&mut self, slice: u64) -> Progress {
        self.join_round();
        let (before, version) = (self.spent, self.cta.version);
        let until = before + slice;
        loop {
            // Taken before the turns: a warp that becomes ready in them is not stuck.
            let any_ready = self.warps.iter().any(|w| w.ready().is_some());
            let mut gave_way = false;
            let others_run = self.random.is_none() && self.any_progress();
            for turn in 0..self.warps.len() {
                let (index, length) = self.choose(turn);
                if others_run && self.poll_would_fail(index) {
                    self.warps[index].skipped_turns += 1;
                    continue;
                }
                self.turn(index, length);
                gave_way |= self.cta.gave_way;
                if self.cta.halted.is_some() {
                    return Progress::Done;
                }
                // Drawn turns may be the same warp's again.
                if gave_way && self.random.is_some() {
                    break;
                }
            }
            if self.warps.iter().all(Warp::finished) {
                self.cta.check_registers();
                self.cta.check_exits();
                return Progress::Done;
            }
            if !any_ready {
                stuck::resolve(&mut self.cta, &mut self.warps);
                if self.cta.halted.is_some() {
                    return Progress::Done;
                }
                continue;
            }
            if self.over_limits() || self.deadlocked() {
                return Progress::Done;
            }
            if self.stalled && version == self.cta.version {
                // Waiting for another block does not use up the budget.
                self.spent = before;
            }
            if self.stalled || self.spent >= until || gave_way {
                return Progress::More;
            }
        }
    }

    /// Returns the warp whose turn it is and the length of the turn.
    fn choose(&mut self, turn: usize) -> (usize, u64) {
        let Some(state) = &mut self.random else {
            return (turn, TURN_INSTRUCTIONS);
        };
        // xorshift64*: any order is valid; it only has to be reproducible.
        *state ^= *state >> 12;
        *state ^= *state << 25;
        *state ^= *state >> 27;
        let bits = state.wrapping_mul(0x2545_f491_4f6c_dd1d);
        ((bits >> 33) as usize % self.warps.len(), 1 + (bits & 0xff))
    }

    /// Reports whether a warp may do something new in its turn: beside warps that repeat themselves, those that poll
    /// take part in each round, so that a deadlock is found as soon as without them.
    fn any_progress(&self) -> bool {
        let version = self.cta.version;
        (0..self.warps.len()).any(|index| {
            let w = &self.warps[index];
            w.ready().is_some() && w.repeats_at != Some(version) && !self.poll_would_fail(index)
        })
    }

    /// Reports whether a warp would poll an `mbarrier` in vain again. Its loop may read something else as
    /// well, so that it gets a turn now and then.
    fn poll_would_fail(&self, index: usize) -> bool {
        let w = &self.warps[index];
        let ready = |path: &&Path| matches!(path.state, State::Ready);
        w.skipped_turns < MAX_SKIPPED_TURNS
            && w.failed_poll
                .is_some_and(|poll| self.cta.mbarriers.would_fail(poll))
            && w.paths.iter().filter(ready).count() == 1
    }

    /// Runs one warp for a turn.
    fn turn(&mut self, index: usize, length: u64) {
        let w = &mut self.warps[index];
        let mut left = length;
        (self.cta.polled, self.cta.gave_way) = (false, false);
        while left > 0 {
            let Some(path) = w.ready() else { break };
            let used = step::run(&mut self.cta, w, path, left);
            // Only a path that is before its poll again repeats it.
            let at = w.paths.get(path).map_or(u32::MAX, |path| path.pc);
            w.failed_poll = self.cta.failed_poll.take().filter(|poll| at <= poll.pc);
            self.spent += used + self.cta.printed.take_cost();
            left = left.saturating_sub(used.max(1));
            // The turn ends, because `release` resumes the paths that a barrier let through.
            if !self.cta.released.is_empty() {
                break;
            }
            if self.cta.halted.is_some() {
                return;
            }
            let ends = left == 0 || self.cta.polled || self.cta.gave_way;
            if ends && w.ready() == Some(path) && w.paths.len() > 1 {
                // The path may spin on a value that another path of the warp will write: run that
                // one next.
                w.paths[..=path].rotate_right(1);
            }
            if ends {
                break;
            }
        }
        let version = self.cta.version;
        let w = &mut self.warps[index];
        // Each poll ends a turn early. The instructions of short turns are summed up, so that a
        // polling warp is checked for a deadlock as often as another one.
        let short = self.cta.polled || self.cta.gave_way;
        w.skipped_turns = 0;
        if short {
            w.polling += length - left;
        }
        if left == 0 || w.polling >= TURN_INSTRUCTIONS {
            (w.long_turns, w.polling) = (w.long_turns + 1, 0);
            w.note_state(version);
        } else if !short {
            w.polling = 0;
            w.end_long_turns();
        }
        // Independent thread scheduling guarantees progress without convergence (CUDA C++ guide,
        // "SIMT architecture"): a spinning path may wait for lanes parked at a reconvergence point.
        // How long the lanes wait decides, not how long the warp runs: a loop that reconverges in
        // each iteration makes progress. Drawn turns are a sixteenth as long.
        let patience = match self.random {
            None => MAX_LONG_TURNS,
            Some(_) => MAX_LONG_TURNS * 16,
        };
        if w.long_turns >= patience {
            w.break_reconvergence(patience);
        }
        self.release();
    }

    /// Resumes the paths that a barrier released.
    fn release(&mut self) {
        for result in std::mem::take(&mut self.cta.reduced) {
            let ReductionResult {
                warp,
                mask,
                kind,
                row,
                yes,
                votes,
            } = result;
            let regs = &mut self.warps[warp].regs;
            // Reduction kinds: 0 is `and`, 1 is `or`, 2 is `popc`.
            if kind == 2 {
                lanes(mask).for_each(|l| regs.r32[row as usize][l] = yes);
                continue;
            }
            let truth = if kind == 0 { yes == votes } else { yes > 0 };
            let p = &mut regs.preds[row as usize];
            *p = if truth { *p | mask } else { *p & !mask };
        }
        for (warp, mask) in std::mem::take(&mut self.cta.released) {
            let paths = &mut self.warps[warp].paths;
            let waiting = |s| matches!(s, State::Barrier);
            if let Some(p) = paths
                .iter_mut()
                .find(|p| waiting(p.state) && p.mask == mask)
            {
                // Only now past the barrier: until here the path's `pc` names the instruction it
                // waits at.
                p.pc += 1;
                p.state = State::Ready;
            }
        }
    }

    /// Reports whether the block repeats itself until memory changes.
    pub(super) fn waits(&self) -> bool {
        self.stalled
    }

    /// Enters a new round, which discards states seen before.
    fn join_round(&mut self) {
        let round = self.cta.context.waits().round;
        if round != self.round {
            self.round = round;
            self.stalled = false;
            self.warps.iter_mut().for_each(Warp::forget);
        }
    }

    /// Reports a deadlock: every remaining thread of the launch repeats its states while memory
    /// stays unchanged, so that the values they wait for are never written.
    fn deadlocked(&mut self) -> bool {
        let version = self.cta.version;
        let repeats = |w: &Warp| w.ready().is_none() || w.repeats_at == Some(version);
        let stalled = self.warps.iter().all(repeats);
        if !stalled && !self.stalled {
            return false;
        }
        let mut waits = self.cta.context.waits();
        // Another block has begun a new round: this report belongs to the old one.
        if waits.round != self.round {
            return false;
        }
        match (self.stalled, stalled) {
            (false, true) => {
                waits.stalled += 1;
                waits.changed |= self.reported != version;
                self.reported = version;
            }
            (true, false) => waits.stalled -= 1,
            _ => {}
        }
        self.stalled = stalled;
        if !waits.all_stalled() {
            return false;
        }
        // A block that stalled earlier may not have seen the change: every block reports again.
        if waits.changed {
            waits.round += 1;
            waits.stalled = 0;
            waits.changed = false;
            return false;
        }
        // `report_deadlock` does not need the lock, and other workers wait for it.
        drop(waits);
        self.report_deadlock()
    }

    fn report_deadlock(&mut self) -> bool {
        let Some((thread, pc)) = self.running() else {
            return false;
        };
        if self.abandons_isolated() {
            return true;
        }
        // Before the verdict: no other block may reach one meanwhile.
        self.cta.context.stop.store(true, Relaxed);
        let awaited = self.warps.get(thread / 32).and_then(|warp| warp.awaits);
        let awaited = awaited.and_then(|at| self.cta.describe_wait(at));
        let detail = match awaited {
            Some(detail) => detail,
            None if self.cta.allocates_columns(pc) => {
                "a tcgen05.alloc waits for columns of tensor memory that no warp frees".to_owned()
            }
            None if self.reads_while_it_repeats(thread / 32) => {
                "threads wait in a loop for a value that no thread will write".to_owned()
            }
            None => "endless loop: the registers repeat their values, and it reads nothing that \
                     could change"
                .to_owned(),
        };
        self.cta.pc = pc;
        self.cta
            .hazard(HazardKind::Deadlock, thread, Location::NONE, NONE, || {
                detail
            });
        self.cta.halted = Some(Halt(Stop::Deadlock, "no thread can make progress"));
        true
    }

    /// Runs a warp that repeats its states a little further, and reports whether it reads memory or
    /// synchronises: a store alone waits for nothing.
    fn reads_while_it_repeats(&mut self, index: usize) -> bool {
        let before = self.cta.counters;
        let reads = (0..4 * TURN_INSTRUCTIONS).any(|_| {
            let warp = &self.warps[index];
            let path = warp.ready().and_then(|path| warp.paths.get(path));
            let reads = path.is_some_and(|path| self.reads_or_synchronises(path.pc));
            if !reads {
                self.turn(index, 1);
            }
            reads
        });
        self.cta.counters = before;
        reads
    }

    /// Reports whether an instruction may wait for another thread's.
    fn reads_or_synchronises(&self, pc: u32) -> bool {
        let inst = self.cta.context.program.code.get(pc as usize);
        inst.is_some_and(|inst| match inst.class {
            Class::Global | Class::Shared => !matches!(inst.op, Op::Store(_)),
            class => matches!(class, Class::Atomic | Class::Sync),
        })
    }

    /// Abandons an isolated attempt that ends early: how far its blocks got depends on the host.
    /// The launch is repeated with serialized blocks.
    fn abandons_isolated(&mut self) -> bool {
        let context = self.cta.context;
        let leaves = !context.serialized && context.checks.races;
        if leaves {
            context.report_conflict();
            self.cta.halted = Some(Halt::CANCELLED);
        }
        leaves
    }

    /// Returns a thread that could run, and its instruction.
    fn running(&self) -> Option<(usize, u32)> {
        self.warps.iter().find_map(|w| {
            let p = w.paths.iter().rfind(|p| p.state == State::Ready)?;
            Some((w.index * 32 + p.mask.trailing_zeros() as usize, p.pc))
        })
    }

    /// Adds the lane instructions since the last time to those of the launch.
    fn count_lanes(&mut self) {
        let executed = self.cta.counters.lane_instructions;
        self.cta.context.count_lanes(executed - self.lanes_counted);
        self.lanes_counted = executed;
    }

    /// Removes the block from the count of unfinished ones.
    pub(super) fn finish(&mut self) {
        self.count_lanes();
        let mut waits = self.cta.context.waits();
        waits.unfinished -= 1;
        waits.resident -= 1;
        // Another block may wait for a store since the last report of this one.
        waits.changed |= self.reported != self.cta.version;
        // A report of an earlier round is no longer in the count, which each round begins at zero.
        if self.stalled && self.round == waits.round {
            waits.stalled -= 1;
        }
    }

    fn over_limits(&mut self) -> bool {
        let context = self.cta.context;
        self.count_lanes();
        if context.stop.load(Relaxed) {
            self.cta.halted = Some(Halt::CANCELLED);
            return true;
        }
        let expired = context.expired();
        if expired.is_none() && self.spent < context.budget {
            return false;
        }
        let Some((thread, pc)) = self.running() else {
            return false;
        };
        let late = expired.is_some();
        // An address trace ends blocks one by one at their budget, which depends on no other block.
        if !late && context.skip_unless != ADDRESSES && self.abandons_isolated() {
            return true;
        }
        let stop = expired.unwrap_or(Stop::InstructionBudget);
        self.cta.pc = pc;
        let spent = self.spent;
        let kind = HazardKind::Timeout;
        self.cta.hazard(kind, thread, Location::NONE, NONE, || {
            let why = match stop {
                Stop::Deadline => "the deadline passed",
                Stop::LaneBudget => "the instruction budget of the launch ran out",
                _ => "the instruction budget ran out",
            };
            format!("{why} after {spent} warp instructions of one block")
        });
        self.cta.halted = Some(Halt(stop, "a limit of the launch was reached"));
        if late || context.skip_unless != ADDRESSES {
            context.stop.store(true, Relaxed);
        }
        true
    }
}
