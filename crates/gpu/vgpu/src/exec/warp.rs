//! A warp: its registers, local memory and paths.

use super::calls::Saved;
use super::cluster::Cluster;
use super::cta::Context;
use super::phases::FailedPoll;
use super::regs::Regs;
use super::rounding::Coins;
use super::shadow_values::WarpShadows;
use crate::lower::program::{Constant, NONE, Special};

/// Full turns without a change of memory before the states of a warp are compared: a computing warp
/// has a few, and a state includes all its registers.
const MIN_QUIET_TURNS: u32 = 3;

/// State of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Ready,
    /// Waits at a barrier of the block.
    Barrier,
    /// Waits for the other lanes of a member mask.
    Members,
    /// Its lanes have exited or joined another path.
    Retired,
}

/// Lanes with one program counter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Path {
    pub(super) pc: u32,
    pub(super) mask: u32,
    /// The reconvergence point (or call) it is inside of, or `NONE`.
    pub(super) reconvergence: u32,
    pub(super) state: State,
}

/// Point where paths reconverge, or the return of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReconvergencePoint {
    pub(super) pc: u32,
    pub(super) expected: u32,
    pub(super) arrived: u32,
    pub(super) parent: u32,
    pub(super) call: bool,
    pub(super) in_use: bool,
    /// The call instruction, for the copies of its results, and the function it called.
    pub(super) call_pc: u32,
    pub(super) callee: u32,
    /// Value of the warp's `long_turns` when the first lanes arrived.
    pub(super) since: u32,
}

impl ReconvergencePoint {
    /// Reports whether lanes that may leave it have waited here for `turns` of the warp's `long_turns` or more.
    fn holds_lanes(&self, long_turns: u32, turns: u32) -> bool {
        // A call returns as a whole: its frame is shared.
        self.in_use && self.arrived != 0 && !self.call && long_turns - self.since >= turns
    }
}

/// One warp.
#[derive(Debug, Default)]
pub(super) struct Warp {
    pub(super) regs: Regs,
    /// Shadow values, in launches that have them.
    pub(super) shadows: Option<Box<WarpShadows>>,
    pub(super) index: usize,
    /// Place of the shared memory of its block.
    pub(super) shared_base: u64,
    pub(super) cluster: Cluster,
    pub(super) alive: u32,
    pub(super) paths: Vec<Path>,
    pub(super) reconvergence_points: Vec<ReconvergencePoint>,
    /// Those of them that are not in use.
    free_reconvergence_points: Vec<u32>,
    /// State of the calling function, by reconvergence point, if the call may enter it again.
    pub(super) saved: Vec<Saved>,
    /// Bytes in use of each lane's stack.
    pub(super) stack: [u64; 32],
    /// Bytes that the frames there declare, without registers.
    pub(super) frames: [u32; 32],
    /// Local memory, then call parameters, then the stack: `stride` bytes per lane.
    pub(super) local: Vec<u8>,
    pub(super) local_written: Vec<bool>,
    pub(super) stride: usize,
    /// Lanes in which each watched register is undefined.
    pub(super) undefined: Vec<u32>,
    /// Watched registers that are undefined in some lane.
    pub(super) undefined_registers: u32,
    /// Instruction that first read each watched register undefined, or `NONE`.
    pub(super) origins: Vec<u32>,
    /// Its products of `wgmma`, once there are any.
    pub(super) products: Option<Box<super::wgmma::Products>>,
    /// Address of the `mbarrier` that it last polled in vain; `None` once a poll succeeded.
    pub(super) awaits: Option<u32>,
    /// The poll that ended its last turn.
    pub(super) failed_poll: Option<FailedPoll>,
    /// Turns that it was left out of since then.
    pub(super) skipped_turns: u32,
    /// It gave way before its next atomic access.
    pub(super) gave_way: bool,
    /// It read a value by an atomic or volatile access since it gave way last.
    pub(super) observed: bool,
    /// Turns in a row that ran out.
    pub(super) long_turns: u32,
    /// Instructions since then, in turns that ended at a poll.
    pub(super) polling: u64,
    /// An earlier state (its hash, and the version of memory then), replaced ever more rarely.
    remembered: (u64, u64),
    turns_since: u32,
    patience: u32,
    /// Version of memory at which the warp repeated an earlier state.
    pub(super) repeats_at: Option<u64>,
}

/// A fast hash for states that are not adversarial.
#[derive(Default)]
struct Mixer(u64);

impl Mixer {
    #[inline(always)]
    fn add(&mut self, x: u64) {
        self.0 = (self.0.rotate_left(23) ^ x).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn rows<'a>(&mut self, rows: impl Iterator<Item = &'a [u32]>) {
        for row in rows {
            for pair in row.as_chunks::<2>().0 {
                self.add(u64::from(pair[0]) << 32 | u64::from(pair[1]));
            }
        }
    }
}

impl Warp {
    /// Creates a warp at its first instruction, reusing the buffers of a finished one.
    pub(super) fn renew(old: Warp, context: &Context<'_>, index: usize, unit: u32) -> Warp {
        let p = context.program;
        let cluster = &context.cluster;
        let rank = cluster.rank(index * 32);
        let local = index - rank * cluster.warps;
        // Warps that only fill up a warp-group have no threads.
        let lanes = context.threads.saturating_sub(local * 32).min(32) as u32;
        let alive = u32::MAX.checked_shr(32 - lanes).unwrap_or(0);
        let ctaid = context.ctaid(context.block_of(unit, rank).into());
        let of_warp = WarpPlace {
            ctaid,
            rank,
            warp: local,
        };
        let stride = (p.local_bytes + p.param_bytes).next_multiple_of(16) as usize;
        let mut warp = Warp {
            regs: Regs {
                coins: context
                    .rounding
                    .map_or_else(Coins::default, |r| Coins::new(r, ctaid, local)),
                r32: filled(old.regs.r32, p.rows32 as usize, [0; 32]),
                r64: filled(old.regs.r64, p.rows64 as usize, [0; 32]),
                preds: filled(old.regs.preds, p.preds as usize, 0),
            },
            shadows: (context.memory.shadows.is_some())
                .then(|| Box::new(WarpShadows::new(p.rows32, p.rows64))),
            index,
            shared_base: cluster.address(rank, 0),
            cluster: *cluster,
            alive,
            paths: filled(
                old.paths,
                1,
                Path {
                    pc: 0,
                    mask: alive,
                    reconvergence: NONE,
                    state: match alive {
                        0 => State::Retired,
                        _ => State::Ready,
                    },
                },
            ),
            local: filled(old.local, stride * 32, 0),
            local_written: filled(old.local_written, stride * 32, false),
            undefined: filled(old.undefined, p.watched as usize, 0),
            undefined_registers: p.undefined_at_entry,
            origins: filled(old.origins, p.watched as usize, NONE),
            stride,
            ..Warp::default()
        };
        warp.undefined[..p.undefined_at_entry as usize].fill(alive);
        // The constant predicates false and true are rows 0 and 1.
        warp.regs.preds[1] = u32::MAX;
        for (row, constant) in &p.constants32 {
            let values = context.constants(*constant, of_warp);
            warp.regs.r32[*row as usize] = values.map(|value| value as u32);
        }
        for (row, constant) in &p.constants64 {
            warp.regs.r64[*row as usize] = context.constants(*constant, of_warp);
        }
        warp
    }

    /// Forgets earlier states: memory may have changed since.
    pub(super) fn forget(&mut self) {
        self.remembered = (0, 0);
        self.turns_since = 0;
        self.patience = 1;
        self.repeats_at = None;
    }

    /// Compares the state with an earlier one (Brent's cycle detection).
    pub(super) fn note_state(&mut self, version: u64) {
        if self.remembered.1 != version {
            // Memory changed: no earlier state counts, and this one only if the next turn leaves
            // memory unchanged. Most warps get here once.
            self.remembered = (0, version);
            self.turns_since = 0;
            self.patience = 1;
            return;
        }
        if self.remembered.0 == 0 && self.turns_since < MIN_QUIET_TURNS {
            self.turns_since += 1;
            return;
        }
        let now = (self.state(), version);
        if now == self.remembered {
            // The lanes that another path waits for may be those that wait for it here.
            if !self.holds_lanes() {
                self.repeats_at = Some(version);
            }
            return;
        }
        self.turns_since += 1;
        if self.turns_since >= self.patience {
            self.patience *= 2;
            self.remembered = now;
            self.turns_since = 0;
        }
    }

    /// Hashes everything but memory that the warp's next steps depend on.
    fn state(&self) -> u64 {
        let mut h = Mixer::default();
        h.rows(self.regs.r32.iter().map(|row| row.as_slice()));
        self.regs.r64.iter().flatten().for_each(|x| h.add(*x));
        self.regs.preds.iter().for_each(|x| h.add((*x).into()));
        self.local.iter().for_each(|x| h.add((*x).into()));
        for p in self.paths.iter().filter(|p| p.state != State::Retired) {
            h.add(u64::from(p.pc) << 32 | u64::from(p.mask));
            h.add(p.reconvergence.into());
        }
        // 0 means that no state is recorded.
        h.0 | 1
    }

    pub(super) fn finished(&self) -> bool {
        self.alive == 0
    }

    /// Returns the path to run: the newest one, so that inner branches finish first.
    pub(super) fn ready(&self) -> Option<usize> {
        self.paths.iter().rposition(|p| p.state == State::Ready)
    }

    pub(super) fn add_reconvergence_point(&mut self, point: ReconvergencePoint) -> u32 {
        if let Some(free) = self.free_reconvergence_points.pop() {
            self.reconvergence_points[free as usize] = point;
            return free;
        }
        self.reconvergence_points.push(point);
        self.reconvergence_points.len() as u32 - 1
    }

    /// Records lanes that arrive at a reconvergence point.
    pub(super) fn arrive(&mut self, reconvergence: u32, lanes: u32) {
        let since = self.long_turns;
        let m = &mut self.reconvergence_points[reconvergence as usize];
        if m.arrived == 0 {
            m.since = since;
        }
        m.arrived |= lanes;
        self.complete_if_done(reconvergence);
    }

    /// Completes a reconvergence point when all expected lanes have arrived.
    fn complete_if_done(&mut self, reconvergence: u32) {
        let m = self.reconvergence_points[reconvergence as usize];
        if !m.in_use || m.arrived != m.expected {
            return;
        }
        self.reconvergence_points[reconvergence as usize].in_use = false;
        self.free_reconvergence_points.push(reconvergence);
        // All lanes may have exited or returned instead (`withdraw`): no path continues then.
        if m.arrived != 0 {
            self.add_path(Path {
                pc: m.pc,
                mask: m.arrived,
                reconvergence: m.parent,
                state: State::Ready,
            });
        }
    }

    pub(super) fn add_path(&mut self, path: Path) {
        match self.paths.iter_mut().find(|p| p.state == State::Retired) {
            Some(free) => *free = path,
            None => self.paths.push(path),
        }
    }

    /// Removes lanes from a reconvergence point and its enclosing ones, up to (excluding) `until`.
    pub(super) fn withdraw(&mut self, from: u32, lanes: u32, until: u32) {
        let mut at = from;
        while at != NONE && at != until {
            let m = &mut self.reconvergence_points[at as usize];
            m.expected &= !lanes;
            m.arrived &= !lanes;
            let parent = m.parent;
            self.complete_if_done(at);
            at = parent;
        }
    }

    /// Ends a series of long turns: lanes that wait at a reconvergence point start to wait anew.
    pub(super) fn end_long_turns(&mut self) {
        if self.long_turns > 0 {
            self.long_turns = 0;
            self.reconvergence_points
                .iter_mut()
                .for_each(|m| m.since = 0);
        }
    }

    /// Reports whether lanes have waited for a whole turn at an incomplete reconvergence point that they may leave.
    fn holds_lanes(&self) -> bool {
        let mut points = self.reconvergence_points.iter();
        points.any(|m| m.holds_lanes(self.long_turns, 2))
    }

    /// Lets lanes continue alone that wait at an incomplete reconvergence point for `turns` long turns
    /// or more. Returns whether any did.
    pub(super) fn break_reconvergence(&mut self, turns: u32) -> bool {
        let mut any = false;
        for at in 0..self.reconvergence_points.len() {
            let m = self.reconvergence_points[at];
            if !m.holds_lanes(self.long_turns, turns) {
                continue;
            }
            any = true;
            self.reconvergence_points[at].expected &= !m.arrived;
            self.reconvergence_points[at].arrived = 0;
            self.add_path(Path {
                pc: m.pc,
                mask: m.arrived,
                reconvergence: m.parent,
                state: State::Ready,
            });
        }
        any
    }
}

/// Returns a vector of `length` copies of `value`, reusing the memory of an old one.
pub(super) fn filled<T: Copy>(mut old: Vec<T>, length: usize, value: T) -> Vec<T> {
    old.clear();
    old.resize(length, value);
    old
}

/// Place of a warp: its block by index and by rank in the cluster, and its number in the block.
#[derive(Clone, Copy)]
struct WarpPlace {
    ctaid: [u32; 3],
    rank: usize,
    warp: usize,
}

impl Context<'_> {
    /// Returns the linear index of a block.
    fn linear(&self, ctaid: [u32; 3]) -> u64 {
        let [x, y, z] = ctaid.map(u64::from);
        let [columns, rows, _] = self.grid.map(u64::from);
        x + columns * (y + rows * z)
    }

    /// Returns the values of a launch constant in the lanes of a warp.
    fn constants(&self, constant: Constant, at: WarpPlace) -> [u64; 32] {
        if constant.differs_by_lane() {
            std::array::from_fn(|lane| self.constant(constant, at, lane))
        } else {
            [self.constant(constant, at, 0); 32]
        }
    }

    /// Returns the value of a launch constant in one lane.
    fn constant(&self, constant: Constant, at: WarpPlace, lane: usize) -> u64 {
        let WarpPlace { ctaid, rank, warp } = at;
        let special = match constant {
            Constant::Value(v) => return v,
            Constant::Global(index, offset) => {
                return self.globals[index as usize].wrapping_add(offset);
            }
            Constant::Shared(offset) => return self.cluster.kernel_address(rank, offset),
            Constant::Special(s) => s,
        };
        let lane = lane as u32;
        // `2 << lane` needs 33 bits in the last lane.
        let mask = |m: u64| m & 0xffff_ffff;
        let value = match special {
            Special::Tid(axis) => self.tid(warp * 32 + lane as usize)[usize::from(axis)],
            Special::Ntid(axis) => self.block[usize::from(axis)],
            Special::Ctaid(axis) => ctaid[usize::from(axis)],
            Special::Nctaid(axis) => self.grid[usize::from(axis)],
            Special::Lane => lane,
            Special::Warp => {
                let warps = self.threads.div_ceil(32) as u32;
                self.placement.warp(self.linear(ctaid), warp as u32, warps)
            }
            Special::Nwarps => self.arch.max_threads_per_sm / 32,
            Special::Sm => self.placement.multiprocessor(self.linear(ctaid)),
            Special::Nsm => self.placement.multiprocessor_count(),
            Special::Grid => self.placement.grid(self.launch_number),
            Special::MaskEq => 1 << lane,
            Special::MaskLt => mask((1u64 << lane) - 1) as u32,
            Special::MaskLe => mask((2u64 << lane) - 1) as u32,
            Special::MaskGt => !(mask((2u64 << lane) - 1) as u32),
            Special::MaskGe => !(mask((1u64 << lane) - 1) as u32),
            Special::DynamicShared => self.dynamic_shared,
            Special::TotalShared => {
                self.dynamic_shared + crate::lower::shared_bytes(&self.program.shared)
            }
            Special::WorkspaceHigh => (self.workspace >> 32) as u32,
            Special::WorkspaceLow => self.workspace as u32,
            Special::ClusterCtaid(axis) => self.cluster.index_of_rank(rank)[usize::from(axis)],
            Special::ClusterNctaid(axis) => self.cluster.shape[usize::from(axis)],
            Special::ClusterRank => rank as u32,
            Special::ClusterSize => self.cluster.blocks as u32,
            Special::ClusterId(axis) => {
                let axis = usize::from(axis);
                ctaid[axis] / self.cluster.shape[axis]
            }
            Special::Nclusters(axis) => self.cluster.count(self.grid)[usize::from(axis)],
            Special::ExplicitCluster => self.cluster.explicit.into(),
        };
        value.into()
    }
}
