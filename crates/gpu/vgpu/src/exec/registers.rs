//! Registers of the warps of a block: `setmaxnreg`.

use super::cta::Cta;
use super::warp::Warp;
use crate::hazard::HazardKind;
use crate::hazard::report::Location;
use crate::lower::program::NONE;

/// Warps of a warpgroup (PTX ISA, "Matrix fragments for `wgmma`": four contiguous warps).
const WARPS_PER_GROUP: usize = 4;
/// Registers of a thread are allocated in steps of this number.
const REGISTER_STEP: u32 = 8;

/// Changes of one warp's number of registers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WarpRegisters {
    changes: u32,
    /// Registers of a thread after the last change.
    last: u32,
    /// Instruction of the last change.
    pc: u32,
}

impl Cta<'_> {
    /// Executes `setmaxnreg`. An increase waits on a GPU until others have released enough; here
    /// the sum is checked at the end of the block, which is independent of the order of warps.
    pub(super) fn set_registers(&mut self, w: &Warp, count: u32, increase: bool, mask: u32) {
        if mask != w.alive {
            let thread = w.index * 32 + mask.trailing_zeros() as usize;
            let (here, all) = (mask.count_ones(), w.alive.count_ones());
            self.hazard(
                HazardKind::BarrierDivergence,
                thread,
                Location::NONE,
                NONE,
                || format!("`setmaxnreg` reached by {here} of the {all} threads of a warp"),
            );
        }
        let pc = self.pc;
        let allocated = self.context.registers.next_multiple_of(REGISTER_STEP);
        if self.registers.is_empty() {
            let cluster = &self.context.cluster;
            self.registers = vec![WarpRegisters::default(); cluster.blocks * cluster.warps];
        }
        if let Some(own) = self.registers.get_mut(w.index) {
            let before = match (own.changes, allocated) {
                (0, 0) => count,
                (0, _) => allocated,
                _ => own.last,
            };
            // A decrease to more than a thread has releases nothing.
            own.last = if increase {
                before.max(count)
            } else {
                before.min(count)
            };
            own.changes += 1;
            own.pc = pc;
        }
    }

    /// Checks the changes of all warps at the end of the block.
    pub(super) fn check_registers(&mut self) {
        let all = std::mem::take(&mut self.registers);
        let each = self.context.cluster.warps.max(1);
        for (rank, block) in all.chunks(each).enumerate() {
            let block = &block[..self.context.threads.div_ceil(32)];
            for (group, warps) in block.chunks(WARPS_PER_GROUP).enumerate() {
                self.check_warpgroup(rank * each + group * WARPS_PER_GROUP, warps);
            }
            self.check_sum(rank * each, block);
        }
    }

    /// Reports a warpgroup of which some warps did not execute the same changes.
    fn check_warpgroup(&mut self, first: usize, warps: &[WarpRegisters]) {
        let key = |warp: &WarpRegisters| (warp.changes, warp.last);
        let most = warps.iter().enumerate().max_by_key(|(_, warp)| key(warp));
        let least = warps.iter().enumerate().min_by_key(|(_, warp)| key(warp));
        let (Some((most, changed)), Some((least, other))) = (most, least) else {
            return;
        };
        if key(changed) == key(other) {
            return;
        }
        self.pc = changed.pc;
        let (most, least, times) = (first + most, first + least, changed.changes);
        let (count, others) = (changed.last, other.changes);
        self.hazard(
            HazardKind::BarrierDivergence,
            most * 32,
            Location::NONE,
            NONE,
            || {
                let rest = match (others == times, others) {
                    (true, _) => format!("warp {least} asked for another number"),
                    (false, 0) => format!("warp {least} did not execute it"),
                    (false, _) => format!("warp {least} executed it {others} of {times} times"),
                };
                format!(
                    "`setmaxnreg` to {count} registers by warp {most}: {rest}, and all four warps \
                     of a warpgroup must execute the same one"
                )
            },
        );
    }

    /// Reports an increase that waits forever: the warps ask for more registers than the launch
    /// allocated.
    fn check_sum(&mut self, first: usize, all: &[WarpRegisters]) {
        let each = self.context.registers.next_multiple_of(REGISTER_STEP);
        // Without a bound of its registers the instruction has no effect (PTX ISA, 9.7.19): ptxas
        // leaves it out.
        if each == 0 || all.is_empty() || !self.context.program.bounds_registers {
            return;
        }
        let held = |warp: &WarpRegisters| match warp.changes {
            0 => u64::from(each),
            _ => u64::from(warp.last),
        };
        let (asked, allocated) = (
            all.iter().map(held).sum::<u64>() * 32,
            all.len() as u64 * u64::from(each) * 32,
        );
        let largest = all.iter().enumerate().max_by_key(|(_, warp)| warp.last);
        let Some((warp, changed)) = largest.filter(|_| asked > allocated) else {
            return;
        };
        self.pc = changed.pc;
        let count = changed.last;
        self.hazard(
            HazardKind::Deadlock,
            (first + warp) * 32,
            Location::NONE,
            NONE,
            || {
                format!(
                    "`setmaxnreg.inc` to {count} registers waits forever: the warps of the block ask \
                     for {asked} registers, and the launch allocated {allocated} ({each} a thread)"
                )
            },
        );
    }
}
