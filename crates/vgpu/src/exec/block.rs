//! One block: its warps take turns until all have exited or none can go on.

use std::sync::atomic::Ordering::Relaxed;

use super::cta::{Context, Cta, Spare};
use super::step;
use super::stop::{Halt, Stop};
use super::stuck;
use super::transfer::lanes;
use super::warp::{State, Warp};
use crate::hazard::{HazardKind, Space};
use crate::lower::program::NONE;
use ptx::skeleton::ADDRESSES;

/// Instructions of a turn.
const TURN: u64 = 4096;
/// Turns that ran out, after which lanes waiting for convergence go on alone.
const LONG_TURNS: u32 = 16;

/// How far a block got.
pub(super) enum Progress {
    Done,
    /// Used up its time slice; run it again.
    More,
}

/// A block that runs in slices.
pub(super) struct Block<'a> {
    pub(super) team: Cta<'a>,
    warps: Vec<Warp>,
    spent: u64,
    random: Option<u64>,
    /// Counted among the blocks that repeat themselves.
    stalled: bool,
    /// The round it counts in, and its version of memory when it last reported.
    round: u64,
    reported: u64,
    /// Lane instructions that count among those of the launch already.
    lanes_counted: u64,
}

impl<'a> Block<'a> {
    /// A block at its beginning, in the buffers of one that ended.
    pub(super) fn new(context: &'a Context<'a>, block: u32, mut spare: Spare) -> Block<'a> {
        let ctaid = context.ctaid(block.into());
        let mut old = std::mem::take(&mut spare.warps).into_iter();
        let warps = (0..context.threads.div_ceil(32))
            .map(|i| Warp::renew(old.next().unwrap_or_default(), context, i, ctaid))
            .collect();
        let random = context
            .seed
            .map(|s| (s ^ u64::from(block).wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1);
        Block {
            team: Cta::new(context, block, spare),
            warps,
            spent: 0,
            random,
            stalled: false,
            round: 0,
            reported: 0,
            lanes_counted: 0,
        }
    }

    /// The buffers of a block that ended, for another.
    pub(super) fn spare(self) -> Spare {
        let mut spare = self.team.spare();
        spare.warps = self.warps;
        spare
    }

    /// Runs until done or `slice` instructions are spent.
    pub(super) fn run(&mut self, slice: u64) -> Progress {
        self.join_round();
        let (before, version) = (self.spent, self.team.version);
        let until = before + slice;
        loop {
            let any_ready = self.warps.iter().any(|w| w.ready().is_some());
            for turn in 0..self.warps.len() {
                let (index, length) = self.choose(turn);
                self.turn(index, length);
                if self.team.halted.is_some() {
                    return Progress::Done;
                }
            }
            if self.warps.iter().all(Warp::finished) {
                return Progress::Done;
            }
            if !any_ready {
                stuck::resolve(&mut self.team, &mut self.warps);
                if self.team.halted.is_some() {
                    return Progress::Done;
                }
                continue;
            }
            if self.over_limits() || self.deadlocked() {
                return Progress::Done;
            }
            if self.stalled && version == self.team.version {
                // Waiting for another block is no use of the budget.
                self.spent = before;
            }
            if self.stalled || self.spent >= until {
                return Progress::More;
            }
        }
    }

    /// The warp whose turn it is and the length of the turn.
    fn choose(&mut self, turn: usize) -> (usize, u64) {
        let Some(state) = &mut self.random else {
            return (turn, TURN);
        };
        // xorshift64*: any order will do, it only has to be the same for the same seed.
        *state ^= *state >> 12;
        *state ^= *state << 25;
        *state ^= *state >> 27;
        let bits = state.wrapping_mul(0x2545_f491_4f6c_dd1d);
        ((bits >> 33) as usize % self.warps.len(), 1 + (bits & 0xff))
    }

    /// Runs one warp for a turn.
    fn turn(&mut self, index: usize, length: u64) {
        let w = &mut self.warps[index];
        let mut left = length;
        self.team.polled = false;
        while left > 0 {
            let Some(path) = w.ready() else { break };
            let used = step::run(&mut self.team, w, path, left);
            self.spent += used;
            left = left.saturating_sub(used.max(1));
            if !self.team.released.is_empty() {
                break;
            }
            if self.team.halted.is_some() {
                return;
            }
            let ends = left == 0 || self.team.polled;
            if ends && w.ready() == Some(path) && w.paths.len() > 1 {
                // It may spin on what another path of the warp will do: that one is next.
                w.paths[..=path].rotate_right(1);
            }
            if ends {
                break;
            }
        }
        let version = self.team.version;
        let w = &mut self.warps[index];
        if self.team.polled {
            w.polling += length - left;
        }
        if left == 0 || w.polling >= TURN {
            (w.long_turns, w.polling) = (w.long_turns + 1, 0);
            w.note_state(version);
        } else if !self.team.polled {
            (w.long_turns, w.polling) = (0, 0);
        }
        if w.long_turns >= LONG_TURNS && self.random.is_none() || w.long_turns >= LONG_TURNS * 16 {
            w.break_meetings();
            w.long_turns = 0;
        }
        self.release();
    }

    /// Lets the paths go on that a barrier released.
    fn release(&mut self) {
        for (warp, mask, kind, row, yes, votes) in std::mem::take(&mut self.team.reduced) {
            let regs = &mut self.warps[warp].regs;
            if kind == 2 {
                lanes(mask).for_each(|l| regs.r32[row as usize][l] = yes);
                continue;
            }
            let truth = if kind == 0 { yes == votes } else { yes > 0 };
            let p = &mut regs.preds[row as usize];
            *p = if truth { *p | mask } else { *p & !mask };
        }
        for (warp, mask) in std::mem::take(&mut self.team.released) {
            let paths = &mut self.warps[warp].paths;
            let waiting = |s| matches!(s, State::Barrier);
            if let Some(p) = paths
                .iter_mut()
                .find(|p| waiting(p.state) && p.mask == mask)
            {
                p.pc += 1;
                p.state = State::Ready;
            }
        }
    }

    /// Whether the block only repeats itself until memory changes.
    pub(super) fn waits(&self) -> bool {
        self.stalled
    }

    /// A new round: what the block saw before counts no more.
    fn join_round(&mut self) {
        let round = self.team.context.waits().round;
        if round != self.round {
            self.round = round;
            self.stalled = false;
            self.warps.iter_mut().for_each(Warp::forget);
        }
    }

    /// Whether every thread of the launch that is left repeats itself while memory stays the same:
    /// nobody will write what they wait for.
    fn deadlocked(&mut self) -> bool {
        let version = self.team.version;
        let repeats = |w: &Warp| w.ready().is_none() || w.repeats_at == Some(version);
        let stalled = self.warps.iter().all(repeats);
        if !stalled && !self.stalled {
            return false;
        }
        let mut waits = self.team.context.waits();
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
        if waits.changed {
            waits.round += 1;
            waits.stalled = 0;
            waits.changed = false;
            return false;
        }
        drop(waits);
        self.report_deadlock()
    }

    fn report_deadlock(&mut self) -> bool {
        let Some((thread, pc)) = self.running() else {
            return false;
        };
        if self.leaves_apart() {
            return true;
        }
        self.team.pc = pc;
        self.team.hazard(
            HazardKind::Deadlock,
            thread,
            (Space::Generic, 0),
            NONE,
            || "threads wait in a loop for a value that no thread will write".to_owned(),
        );
        self.team.halted = Some(Halt(Stop::Deadlock, "no thread can make progress"));
        self.team.context.stop.store(true, Relaxed);
        true
    }

    /// A launch that ends early, ends with as much done as the order of blocks decides, not the
    /// machine: blocks that run apart must run together.
    fn leaves_apart(&mut self) -> bool {
        let context = self.team.context;
        let leaves = !context.together && context.checks.races;
        if leaves {
            context.meet();
            self.team.halted = Some(Halt::CANCELLED);
        }
        leaves
    }

    /// Some thread that could run, and where it is.
    fn running(&self) -> Option<(usize, u32)> {
        self.warps.iter().find_map(|w| {
            let p = w.paths.iter().rfind(|p| p.state == State::Ready)?;
            Some((w.index * 32 + p.mask.trailing_zeros() as usize, p.pc))
        })
    }

    /// Adds the lane instructions since the last time to those of the launch.
    fn count_lanes(&mut self) {
        let executed = self.team.counters.lane_instructions;
        self.team.context.count_lanes(executed - self.lanes_counted);
        self.lanes_counted = executed;
    }

    /// Takes the block out of the count of unfinished ones.
    pub(super) fn finish(&mut self) {
        self.count_lanes();
        let mut waits = self.team.context.waits();
        waits.unfinished -= 1;
        waits.resident -= 1;
        waits.changed |= self.reported != self.team.version;
        if self.stalled && self.round == waits.round {
            waits.stalled -= 1;
        }
    }

    fn over_limits(&mut self) -> bool {
        let context = self.team.context;
        self.count_lanes();
        if context.stop.load(Relaxed) {
            self.team.halted = Some(Halt::CANCELLED);
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
        if !late && context.skip_unless != ADDRESSES && self.leaves_apart() {
            return true;
        }
        let stop = expired.unwrap_or(Stop::InstructionBudget);
        self.team.pc = pc;
        let spent = self.spent;
        let kind = HazardKind::Timeout;
        self.team
            .hazard(kind, thread, (Space::Generic, 0), NONE, || {
                let why = match stop {
                    Stop::Deadline => "the deadline passed",
                    Stop::LaneBudget => "the instruction budget of the launch ran out",
                    _ => "the instruction budget ran out",
                };
                format!("{why} after {spent} warp instructions of one block")
            });
        self.team.halted = Some(Halt(stop, "it ran too long"));
        if late || context.skip_unless != ADDRESSES {
            context.stop.store(true, Relaxed);
        }
        true
    }
}
