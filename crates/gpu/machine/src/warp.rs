//! A warp with divergence and reconvergence by convergence barriers.

use super::CONSTANT;
use super::operand::Origin;
use super::registers::Registers;
use vgpu::exec::trace::{Access, Target, WarpTrace};

/// Execution state of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Ready,
    /// Waits at a convergence barrier for the other lanes.
    Reconvergence(u8),
    /// Waits for the lanes of this mask to wait as well.
    Members(u32),
    /// Waits at a barrier, by its number among those of the cluster, until this many of its phases
    /// are over.
    Barrier(u16, u64),
    /// Waits until the warps of its warp-group have issued this many groups of products.
    Products(u32),
}

/// Lanes that execute the same instruction together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Path {
    pub(super) pc: u32,
    pub(super) mask: u32,
    pub(super) state: State,
}

/// State of one warp.
pub(super) struct Warp {
    pub(super) registers: Registers,
    pub(super) alive: u32,
    pub(super) paths: Vec<Path>,
    /// Index of the running path.
    pub(super) current: usize,
    /// Index of the running instruction.
    pub(super) pc: u32,
    local: Vec<u8>,
    local_bytes: usize,
    pub(super) trace: Option<WarpTrace>,
    /// Groups of products that the warp has issued.
    pub(super) committed: u32,
    /// Phases of the barrier of the cluster before that of its last arrival.
    pub(super) cluster_phase: u64,
}

impl Warp {
    /// Records the addresses of a load of constants and the number of distinct ones.
    pub(super) fn note_constants(&mut self, from: Origin, mask: u32) {
        let Some(trace) = self.trace.as_mut() else {
            return;
        };
        let mut at = [0; 32];
        for lane in super::memory::lanes(mask) {
            let (bank, place) = self.registers.constant_address(from, lane);
            // Constant banks are 64 KiB apart in a trace.
            at[lane] = u64::from(bank) << 16 | place.unwrap_or(0) as u64 & 0xffff;
        }
        let apart = |lane: &usize| {
            super::memory::lanes(mask & ((1 << lane) - 1)).all(|other| at[other] != at[*lane])
        };
        let different = super::memory::lanes(mask).filter(apart).count();
        let kept = trace.accesses.len();
        trace.global(self.pc, &at, CONSTANT * 32, mask, 4, false);
        if let Some(Access {
            target: Target::Global { lookups, .. },
            ..
        }) = trace.accesses.get_mut(kept)
        {
            // A request to constant memory is split into one per distinct address (CUDA C++ guide).
            *lookups = different as u8;
        }
    }
}

impl Warp {
    /// Creates a warp with lanes `0..lanes` at the first instruction; with `traced`, the number of
    /// warps in the block sizes its trace.
    pub(super) fn new(
        registers: Registers,
        lanes: u32,
        start: u32,
        local_bytes: usize,
        traced: Option<usize>,
    ) -> Warp {
        let alive = u32::MAX >> (32 - lanes.clamp(1, 32));
        Warp {
            registers,
            alive,
            paths: vec![Path {
                pc: start,
                mask: alive,
                state: State::Ready,
            }],
            current: 0,
            pc: start,
            local: vec![0; local_bytes * 32],
            local_bytes,
            trace: traced.map(WarpTrace::with_warps),
            committed: 0,
            cluster_phase: 0,
        }
    }

    pub(super) fn local_of(&self, lane: usize) -> &[u8] {
        &self.local[lane * self.local_bytes..][..self.local_bytes]
    }

    pub(super) fn local_of_mut(&mut self, lane: usize) -> &mut [u8] {
        &mut self.local[lane * self.local_bytes..][..self.local_bytes]
    }

    /// Moves the lanes of `mask` from the current path to a new path at `pc`.
    pub(super) fn diverge(&mut self, mask: u32, pc: u32) {
        self.paths[self.current].mask &= !mask;
        self.paths.push(Path {
            pc,
            mask,
            state: State::Ready,
        });
    }

    /// Ends the lanes of the current path that are in `mask`.
    pub(super) fn exit(&mut self, mask: u32) {
        self.alive &= !mask;
        self.paths[self.current].mask &= !mask;
        if self.paths[self.current].mask == 0 {
            self.paths.swap_remove(self.current);
        }
        // Other paths may have waited for these lanes only.
        self.resume_complete();
    }

    /// Returns the lanes that a convergence barrier waits for.
    fn needed(&self, barrier: u8, mask: u32) -> u32 {
        // The lanes of a waiting path have equal masks, which `wait_reconvergence` ensures.
        let first = mask.trailing_zeros() as usize & 31;
        self.registers.barriers[usize::from(barrier)][first] & self.alive
    }

    /// Returns true if the current path has all lanes that a convergence barrier waits for.
    pub(super) fn all_here(&self, barrier: u8) -> bool {
        let mask = self.paths[self.current].mask;
        let known = &self.registers.barriers[usize::from(barrier)];
        let lanes = self.needed(barrier, mask);
        // Lanes of one path may wait for different others.
        let alike = |l: usize| known[l] & self.alive == lanes;
        lanes & !mask == 0 && super::memory::lanes(mask).all(alike)
    }

    /// Blocks the current path at a convergence barrier, split by the lanes' participation masks.
    pub(super) fn wait_reconvergence(&mut self, barrier: u8) {
        let Path { pc, mut mask, .. } = self.paths[self.current];
        let known = self.registers.barriers[usize::from(barrier)];
        self.paths.swap_remove(self.current);
        while mask != 0 {
            // Lanes with other participants wait for other lanes: they form a separate path.
            let partners = known[mask.trailing_zeros() as usize];
            let group: u32 = (0..32)
                .filter(|l| mask >> l & 1 == 1 && known[*l as usize] == partners)
                .map(|l| 1 << l)
                .sum();
            self.paths.push(Path {
                pc,
                mask: group,
                state: State::Reconvergence(barrier),
            });
            mask &= !group;
        }
        self.resume_complete();
    }

    /// Blocks the current path.
    pub(super) fn wait(&mut self, state: State) {
        self.paths[self.current].state = state;
        self.resume_complete();
    }

    /// Removes lanes from a convergence barrier.
    pub(super) fn leave(&mut self, barrier: u8, mask: u32) {
        if mask == 0 {
            return;
        }
        let lanes = self.registers.barriers[usize::from(barrier)][mask.trailing_zeros() as usize];
        // Each participant has its own copy of the mask.
        for lane in super::memory::lanes(lanes | mask) {
            self.registers.barriers[usize::from(barrier)][lane] &= !mask;
        }
        self.resume_complete();
    }

    /// Resumes paths whose awaited lanes have all arrived.
    fn resume_complete(&mut self) {
        loop {
            // Several groups may be complete at once.
            let complete = self.paths.iter().find_map(|path| {
                let (need, alike): (u32, fn(State, State) -> bool) = match path.state {
                    State::Reconvergence(b) => (self.needed(b, path.mask), |a, b| a == b),
                    State::Members(mask) => {
                        (mask & self.alive, |a, _| matches!(a, State::Members(_)))
                    }
                    _ => return None,
                };
                let partner = |other: &&Path| {
                    alike(other.state, path.state) && other.mask & (need | path.mask) != 0
                };
                let there = self
                    .paths
                    .iter()
                    .filter(partner)
                    .fold(0, |all, p| all | p.mask);
                (need & !there == 0).then_some((path.state, need | path.mask))
            });
            let Some((state, lanes)) = complete else {
                return;
            };
            self.release(state, lanes);
        }
    }

    /// Resumes paths in `state` (or waiting for members) with lanes of `lanes` after their
    /// instruction. Paths at the same instruction merge.
    fn release(&mut self, state: State, lanes: u32) {
        let mut freed: Vec<Path> = Vec::new();
        self.paths.retain(|path| {
            let same = match state {
                State::Members(_) => matches!(path.state, State::Members(_)),
                other => path.state == other,
            };
            let goes = same && path.mask & lanes != 0;
            if goes {
                freed.push(*path);
            }
            !goes
        });
        for path in freed {
            // Paths stop at the instruction at which they wait.
            let pc = path.pc + 1;
            // Paths at the same instruction merge: otherwise the warp would issue it once for each.
            let here = |p: &&mut Path| p.state == State::Ready && p.pc == pc && p.mask & lanes != 0;
            if let Some(other) = self.paths.iter_mut().find(here) {
                other.mask |= path.mask;
            } else {
                self.paths.push(Path {
                    pc,
                    mask: path.mask,
                    state: State::Ready,
                });
            }
        }
    }
}
