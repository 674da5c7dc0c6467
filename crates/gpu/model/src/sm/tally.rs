//! Counters of a replay.

use crate::units::PIPES;

/// Reason for a scheduler cycle without an issue, named after `ncu`'s warp states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stall {
    /// Fixed cycles after an instruction.
    Wait,
    /// Global or local memory.
    LongScoreboard,
    /// Shared memory, shuffles, special functions.
    ShortScoreboard,
    /// Busy unit.
    MathPipe,
    /// Full memory input queue.
    Mio,
    /// Register file ports occupied by the last instruction.
    Dispatch,
    /// Instruction cache miss.
    NoInstruction,
    /// Constant cache miss of an operand.
    ImcMiss,
    /// Barrier that other warps of the block have not reached.
    Barrier,
    /// No resident warp.
    Idle,
}

/// Number of [`Stall`] values.
const STALLS: usize = 10;

/// Event counts of the replay.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    /// Instructions issued.
    pub(crate) issued: u64,
    /// By unit, in the order of [`sass::Unit`].
    pub(crate) by_unit: [u64; 24],
    /// Scheduler cycles without an issue, by cause.
    pub(crate) stalled: [u64; STALLS],
    /// Sectors requested from the L1 cache; the next field counts its hits.
    pub(crate) l1_sectors: u64,
    pub(crate) l1_hits: u64,
    /// Sectors written.
    pub(crate) stored_sectors: u64,
    /// Sectors of local memory.
    pub(crate) local_sectors: u64,
    pub(crate) shared_wavefronts: u64,
    pub(crate) shared_conflicts: u64,
    /// Busy cycles of each pipe, summed over the schedulers.
    pub(crate) pipe_cycles: [u64; PIPES],
    /// Busy cycles of the load and store unit; the next fields are the same for the shares of the
    /// L2 cache and of memory.
    pub(crate) lsu_cycles: u64,
    pub(crate) l2_cycles: f64,
    pub(crate) dram_cycles: f64,
    /// Cycles of the word that atomics of all multiprocessors update most.
    pub(crate) atomic_cycles: f64,
    /// Sectors requested from the L2 cache; the next field counts those from memory.
    pub(crate) l2_sectors: f64,
    pub(crate) dram_sectors: f64,
    /// Number of barriers passed by warps.
    pub(crate) barriers: u64,
}
