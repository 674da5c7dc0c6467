//! The few things the gate asks of a device, so that a real GPU, the virtual one and the test
//! fakes are judged by the same code.

use std::ops::Range;
use tuner_core::judgement::Judgement;
use tuner_core::plan::{Code, Plan, PlanLaunch};
use tuner_core::record::Hazard;

/// A buffer of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot(pub usize);

/// Which blocks of a launch to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blocks {
    /// All of them.
    All,
    /// These, by linear index. Only a device that can leave blocks out takes this.
    Some(Vec<u64>),
}

/// The order in which warps and blocks get their turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The device's own.
    Natural,
    /// The `number`th that differs from it (from 1), where the device can: warps in a random order,
    /// blocks in one that differs most from those before.
    Other {
        /// From 1.
        number: u32,
        /// Same seed, same order.
        seed: u64,
    },
}

/// Work counted during a run, for the prediction of its time. All zero on devices that do not count.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Work {
    /// The virtual GPU's counters.
    pub counters: vgpu::Counters,
    /// Blocks that ran; `counters` are theirs.
    pub blocks: u64,
    /// Blocks of the whole grid.
    pub grid_blocks: u64,
}

/// What a run left behind.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunReport {
    /// Everything the checks found, in a deterministic order.
    pub hazards: Vec<Hazard>,
    /// What is worth a warning and no reason to refuse the kernel.
    pub warnings: Vec<Hazard>,
    /// Work done.
    pub work: Work,
    /// The run was cut short by one of the hazards, or by its budget.
    pub stopped: bool,
    /// A block used up the budget of the run, which is no hazard.
    pub budget_exhausted: bool,
}

impl RunReport {
    /// Adds what further blocks of the same launch left behind.
    pub fn merge(&mut self, more: RunReport) {
        self.hazards.extend(more.hazards);
        self.warnings.extend(more.warnings);
        self.work.counters += more.work.counters;
        self.work.blocks += more.work.blocks;
        self.stopped |= more.stopped;
        self.budget_exhausted |= more.budget_exhausted;
    }
}

/// One launch with its arguments resolved.
#[derive(Debug, Clone)]
pub struct Run<'a> {
    /// The code to run from.
    pub code: &'a Code,
    /// The launch.
    pub launch: &'a PlanLaunch,
    /// The plan whose arguments the launch names.
    pub plan: &'a Plan,
    /// Buffer of each plan argument; `None` for scalars.
    pub slots: &'a [Option<Slot>],
    /// Blocks to run.
    pub blocks: Blocks,
    /// Order of warps.
    pub order: Order,
    /// Warp instructions after which a block is left where it is, where the device counts them;
    /// `None`: a block that does not end within the device's own limit has hung.
    pub budget: Option<u64>,
}

/// A device as the gate sees it.
pub trait Session {
    /// Frees every buffer.
    fn reset(&mut self);

    /// Allocates a buffer with guard regions around it, nobody having written it.
    ///
    /// # Errors
    /// `out_of_memory`.
    fn alloc(&mut self, name: &str, bytes: u64) -> Result<Slot, Judgement>;

    /// Writes a whole buffer from the host.
    ///
    /// # Errors
    /// The device's own faults.
    fn upload(&mut self, slot: Slot, bytes: &[u8]) -> Result<(), Judgement>;

    /// Fills a buffer with repeats of `pattern` and marks it as written by nobody.
    ///
    /// # Errors
    /// The device's own faults.
    fn poison(&mut self, slot: Slot, pattern: &[u8]) -> Result<(), Judgement>;

    /// Reads a whole buffer.
    ///
    /// # Errors
    /// The device's own faults.
    fn download(&mut self, slot: Slot) -> Result<Vec<u8>, Judgement>;

    /// Byte ranges, ascending and apart, that nobody wrote since the last poison; `None` where the device cannot tell
    /// (the gate then goes by the poison pattern).
    fn unwritten(&self, slot: Slot) -> Option<Vec<Range<u64>>>;

    /// Whether a kernel stored to a buffer since the last upload, where the device can tell: what it
    /// wrote may be what was there before.
    fn is_overwritten(&self, _slot: Slot) -> bool {
        false
    }

    /// Whether blocks can be left out of a launch.
    fn can_sample(&self) -> bool;

    /// Variables of modules (`__device__`) are again as their code gives them, for all runs that
    /// follow: a candidate finds what one that was just loaded finds.
    fn forget_variables(&mut self) {}

    /// What the runs since the last reset left in the variables of this code's module is what runs
    /// after the next reset find there, as it is where nothing but buffers is freed. Whether that
    /// differs from what these runs found.
    ///
    /// # Errors
    /// The device's own faults.
    fn keep_variables(&mut self, _code: &Code) -> Result<bool, Judgement> {
        Ok(false)
    }

    /// The address of a buffer, as a kernel takes it.
    fn address(&self, _slot: Slot) -> Option<u64> {
        None
    }

    /// Sets a `__constant__` or `__device__` variable of the code. Gives whether the code has one of
    /// that name: the compiler leaves out what no kernel uses.
    ///
    /// # Errors
    /// The variable has another size, or the device's own faults.
    fn set_variable(
        &mut self,
        _code: &Code,
        _name: &str,
        _bytes: &[u8],
    ) -> Result<bool, Judgement> {
        Ok(false)
    }

    /// Runs one launch to its end.
    ///
    /// # Errors
    /// The launch was refused, or the device failed in a way that has no hazard.
    fn run(&mut self, run: &Run<'_>) -> Result<RunReport, Judgement>;
}
