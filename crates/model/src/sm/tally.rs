//! What a replay counts.

use crate::units::PIPES;

/// Why a scheduler had nothing to issue; the names are those of `ncu`'s warp states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stall {
    /// Fixed cycles after an instruction.
    Wait,
    /// Global or local memory.
    LongScoreboard,
    /// Shared memory, shuffles, approximations.
    ShortScoreboard,
    /// A unit is busy.
    MathPipe,
    /// The memory input queue is full.
    Mio,
    /// The last instruction's sources cannot be read yet.
    Dispatch,
    /// The next instruction is not there yet.
    NoInstruction,
    /// A constant that is an operand is not there yet.
    ImcMiss,
    /// Other warps of the block have not come to the barrier.
    Barrier,
    /// No warp is left.
    Idle,
}

/// Number of [`Stall`] values.
const STALLS: usize = 10;

/// What the replay counted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    /// Instructions issued.
    pub(crate) issued: u64,
    /// By unit, in the order of [`sass::Unit`].
    pub(crate) by_unit: [u64; 24],
    /// Scheduler cycles without an issue, by cause.
    pub(crate) stalled: [u64; STALLS],
    /// Sectors asked of the L1 cache, and those it had.
    pub(crate) l1_sectors: u64,
    pub(crate) l1_hits: u64,
    /// Sectors written.
    pub(crate) stored_sectors: u64,
    /// Sectors of local memory.
    pub(crate) local_sectors: u64,
    pub(crate) shared_wavefronts: u64,
    pub(crate) shared_conflicts: u64,
    /// Cycles for which each pipe of the schedulers was taken.
    pub(crate) pipe_cycles: [u64; PIPES],
    /// Cycles of the load and store unit, of the share of the L2 cache, of that of
    /// memory.
    pub(crate) lsu_cycles: u64,
    pub(crate) l2_cycles: f64,
    pub(crate) dram_cycles: f64,
    /// Cycles of the word that atomics change most, by all multiprocessors.
    pub(crate) atomic_cycles: f64,
    /// Sectors asked of the L2 cache and of memory.
    pub(crate) l2_sectors: f64,
    pub(crate) dram_sectors: f64,
    /// Barriers passed by warps.
    pub(crate) barriers: u64,
}
