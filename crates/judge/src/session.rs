//! The few things the gate asks of a device, so that a real GPU, the virtual one and the test
//! fakes are judged by the same code.

use std::ops::Range;
use std::sync::Arc;
use tuner_core::element::Element;
use tuner_core::judgement::Judgement;
use tuner_core::plan::{Code, Plan, PlanLaunch};
use tuner_core::record::{Hazard, Verdict};
use tuner_core::units::ContentHash;

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

/// Contents of a buffer that stay on the device while the gate looks at them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kept(pub usize);

/// What a run left in an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contents {
    /// Its bytes.
    Host(Vec<u8>),
    /// It, on the device.
    Device(Kept),
}

/// What elements of an output are expected to be, in the form in which a device compares them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wanted {
    /// Value and tolerance of each element that is compared.
    pub values: Vec<[f64; 2]>,
    /// Which elements these are, in runs.
    pub units: Vec<Unit>,
}

/// A run of elements that are compared one after the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unit {
    /// The first one's index in the output.
    pub start: u64,
    /// Its index in [`Wanted::values`].
    pub at: u64,
    /// How many.
    pub count: u64,
    /// Largest sum of their squared errors; 0 where they are not judged by their norm.
    pub bound: f64,
}

/// What a device's comparison came to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tally {
    /// Elements outside their tolerance.
    pub wrong: u64,
    /// Largest error over its tolerance, or norm of a run over its bound.
    pub max_error: f64,
    /// The first wrong element.
    pub first_wrong: Option<u64>,
}

/// Bytes of a buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotRange {
    /// The buffer.
    pub slot: Slot,
    /// Its bytes.
    pub bytes: Range<u64>,
}

/// Accesses that a trace reports: stores to the watched bytes and, where asked for, all loads.
#[derive(Debug, Clone, Copy, Default)]
pub struct TraceRequest<'a> {
    /// Watched bytes.
    pub watched: &'a [SlotRange],
    /// Loads are reported too.
    pub reads: bool,
}

/// Traced accesses of one block.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BlockTrace {
    /// The block, by linear index.
    pub block: u64,
    /// Stores that hit watched bytes, sorted and merged.
    pub writes: Vec<SlotRange>,
    /// Loads, sorted and merged.
    pub reads: Vec<SlotRange>,
}

/// The accesses of a launch of which only addresses and control flow were executed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AccessTrace {
    /// Blocks with a reported access.
    pub blocks: Vec<BlockTrace>,
    /// Out-of-bounds and misaligned accesses.
    pub hazards: Vec<Hazard>,
    /// Lane instructions executed.
    pub lane_instructions: u64,
    /// Buffers whose contents decide addresses or control flow.
    pub deciding: Vec<Slot>,
    /// Buffers written.
    pub written: Vec<Slot>,
}

/// Result of tracing the accesses of a launch.
#[derive(Debug, Clone, PartialEq)]
pub enum Traced {
    /// The accesses.
    Done(AccessTrace),
    /// There is no trace, with the reason.
    Refused(String),
}

fn nothing_kept() -> Judgement {
    Judgement::new(Verdict::Crashed, "the device keeps no contents")
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

    /// Writes an input, which many candidates get: a device may have kept it.
    ///
    /// # Errors
    /// The device's own faults.
    fn upload_input(&mut self, slot: Slot, bytes: &Arc<[u8]>) -> Result<(), Judgement> {
        self.upload(slot, bytes)
    }

    /// Whether an input still holds what [`Session::upload_input`] wrote.
    ///
    /// # Errors
    /// The device's own faults.
    fn is_unchanged(&mut self, slot: Slot, bytes: &Arc<[u8]>) -> Result<bool, Judgement> {
        Ok(self.download(slot)?.as_slice() == bytes.as_ref())
    }

    /// Keeps a buffer's contents on the device when all buffers are freed; `None` where it does not
    /// do so, and the host reads them.
    fn keep(&mut self, _slot: Slot) -> Option<Kept> {
        None
    }

    /// Frees what was kept.
    fn release(&mut self, _kept: Kept) {}

    /// Frees everything that was kept.
    fn release_all(&mut self) {}

    /// Reads what was kept.
    ///
    /// # Errors
    /// The device's own faults.
    fn fetch(&mut self, _kept: Kept) -> Result<Vec<u8>, Judgement> {
        Err(nothing_kept())
    }

    /// Whether two kept contents are the same bits.
    ///
    /// # Errors
    /// The device's own faults.
    fn equal(&mut self, _one: Kept, _two: Kept) -> Result<bool, Judgement> {
        Err(nothing_kept())
    }

    /// The first element of a run of so many that hold this pattern.
    ///
    /// # Errors
    /// The device's own faults.
    fn first_run(
        &mut self,
        _kept: Kept,
        _pattern: &[u8],
        _run: u64,
    ) -> Result<Option<u64>, Judgement> {
        Err(nothing_kept())
    }

    /// Compares what was kept with what is wanted, as [`crate::gate::compare`] does, bit for bit.
    /// `key` identifies what is wanted, which `make` gives where the device has not kept it. `None`
    /// where the host must compare.
    ///
    /// # Errors
    /// The device's own faults.
    fn tally(
        &mut self,
        _kept: Kept,
        _element: Element,
        _key: &ContentHash,
        _make: &mut dyn FnMut() -> Wanted,
    ) -> Result<Option<Tally>, Judgement> {
        Ok(None)
    }

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

    /// Traces the accesses of a launch without computing what it stores: buffers that it writes
    /// hold meaningless values afterwards, and their written bytes count as written.
    ///
    /// # Errors
    /// The launch was refused, or the device failed.
    fn trace(&mut self, _run: &Run<'_>, _request: TraceRequest<'_>) -> Result<Traced, Judgement> {
        Ok(Traced::Refused("the device runs everything".to_owned()))
    }

    /// Sets the rounding of the runs that follow, variables set from now on included: at random, or
    /// as the code says (`None`). Returns whether the device can round at random.
    fn set_rounding(&mut self, _rounding: Option<vgpu::Rounding>) -> bool {
        false
    }

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
