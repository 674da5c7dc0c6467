//! Device interface of the gate, so that a real GPU, the virtual GPU and the test fakes are judged by the
//! same code.

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

/// Blocks of a launch to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blocks {
    /// All blocks.
    All,
    /// These, by linear index. Only a device that can omit blocks accepts this.
    Some(Vec<u64>),
}

/// Execution order of warps and blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The device's own.
    Natural,
    /// Order number `number` (from 1) that differs from the default, if the device supports it: warps in
    /// random order, blocks in an order that differs most from the earlier ones.
    Other {
        /// From 1.
        number: u32,
        /// Equal seeds produce equal orders.
        seed: u64,
    },
}

/// Random rounding of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rounding {
    /// The same seed produces the same results.
    pub seed: u64,
    /// Inverts every decision of the seed: a result that rounds down in one of the two runs rounds
    /// up in the other.
    pub inverted: bool,
    /// Maximum number of significand bits of a result, including the leading one: 24 rounds doubles
    /// like singles, 53 rounds every format at its own last place.
    pub precision: u32,
}

/// Work counted during a run. All zero on devices that do not count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    /// Instructions executed by lanes; if tensor cores do most of the work, the instructions of `mma.sync`
    /// for the same products.
    pub lane_instructions: u64,
    /// Warp instructions that are atomic.
    pub atomics: u64,
    /// Blocks that ran; the counts cover these.
    pub blocks: u64,
    /// Blocks of the whole grid.
    pub grid_blocks: u64,
}

/// Result of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunReport {
    /// Findings of all checks, in a deterministic order.
    pub hazards: Vec<Hazard>,
    /// Warnings that do not reject the kernel.
    pub warnings: Vec<Hazard>,
    /// Work done.
    pub work: Work,
    /// The run was cut short by one of the hazards, or by its budget.
    pub stopped: bool,
    /// A block used up the budget of the run, which is not a hazard.
    pub budget_exhausted: bool,
}

impl RunReport {
    /// Merges the result of further blocks of the same launch.
    pub fn merge(&mut self, more: RunReport) {
        self.hazards.extend(more.hazards);
        self.warnings.extend(more.warnings);
        self.work.lane_instructions += more.work.lane_instructions;
        self.work.atomics += more.work.atomics;
        self.work.blocks += more.work.blocks;
        self.stopped |= more.stopped;
        self.budget_exhausted |= more.budget_exhausted;
    }
}

/// One launch with its arguments resolved.
#[derive(Debug, Clone)]
pub struct Run<'a> {
    /// Code to run.
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
    /// Warp instructions after which a block is abandoned, if the device counts them; `None`: a
    /// block that does not end within the device's own limit has hung.
    pub budget: Option<u64>,
}

/// Handle of buffer contents that stay on the device while the gate compares them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RetainedBuffer(pub usize);

/// Contents of an output after a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contents {
    /// Bytes on the host.
    Host(Vec<u8>),
    /// Contents on the device.
    Device(RetainedBuffer),
}

/// Expected values of output elements in the form in which a device compares them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExpectedOutput {
    /// Value and tolerance of each compared element.
    pub values: Vec<[f64; 2]>,
    /// Runs of the compared elements.
    pub units: Vec<Unit>,
}

/// A run of consecutive compared elements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unit {
    /// Index of the first element in the output.
    pub start: u64,
    /// Its index in [`ExpectedOutput::values`].
    pub at: u64,
    /// Number of elements.
    pub count: u64,
    /// Largest sum of their squared errors; 0 if they are not judged by their norm.
    pub bound: f64,
}

/// Result of a comparison on the device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tally {
    /// Elements outside their tolerance.
    pub wrong: u64,
    /// Largest error over tolerance, or norm of a run over its bound.
    pub max_error: f64,
    /// The first wrong element.
    pub first_wrong: Option<u64>,
}

/// Byte range of a buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotRange {
    /// The buffer.
    pub slot: Slot,
    /// Its bytes.
    pub bytes: Range<u64>,
}

/// Equal byte ranges of a buffer at equal distances, as the rows of a tile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StridedRange {
    /// The first range.
    pub first: SlotRange,
    /// Bytes from the start of one to the start of the next.
    pub stride: u64,
    /// Number of ranges.
    pub count: u64,
}

impl StridedRange {
    /// Returns the first of the ranges that ends after byte `at`.
    #[must_use]
    pub fn ending_after(&self, at: u64) -> Option<Range<u64>> {
        let Range { start, end } = self.first.bytes;
        let index = match at.checked_sub(end) {
            None => 0,
            Some(beyond) => beyond / self.stride.max(1) + 1,
        };
        let offset = index * self.stride;
        (index < self.count).then(|| start + offset..end + offset)
    }

    /// Reports whether any of the ranges overlaps one of `sorted`, which are disjoint.
    #[must_use]
    pub fn overlaps(&self, sorted: &[Range<u64>]) -> bool {
        let mut at = self.first.bytes.start;
        loop {
            // Both sides skip to the first range that ends after the start of the other's.
            let Some(other) = sorted.get(sorted.partition_point(|range| range.end <= at)) else {
                return false;
            };
            match self.ending_after(other.start) {
                None => return false,
                Some(own) if own.start < other.end => return true,
                Some(own) => at = own.start,
            }
        }
    }
}

/// Accesses that a trace reports.
#[derive(Debug, Clone, Copy)]
pub enum TraceRequest<'a> {
    /// Stores that hit these bytes.
    Stores(&'a [SlotRange]),
    /// All stores; refused if there are too many to list.
    AllStores,
    /// All loads from these buffers.
    Loads(&'a [Slot]),
}

/// Traced accesses of one block.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BlockTrace {
    /// The block, by linear index.
    pub block: u64,
    /// Requested stores, sorted and merged.
    pub writes: Vec<StridedRange>,
    /// Requested loads, sorted and merged.
    pub reads: Vec<SlotRange>,
}

impl BlockTrace {
    /// Returns the memory that it takes, bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.writes.len() * size_of::<StridedRange>()
            + self.reads.len() * size_of::<SlotRange>()
    }
}

/// Accesses of a launch of which only addresses and control flow were executed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AccessTrace {
    /// Blocks with a reported access.
    pub blocks: Vec<BlockTrace>,
    /// Out-of-bounds and misaligned accesses.
    pub hazards: Vec<Hazard>,
    /// Lane instructions executed.
    pub lane_instructions: u64,
    /// Buffers whose contents determine addresses or control flow.
    pub deciding: Vec<Slot>,
    /// Buffers written.
    pub written: Vec<Slot>,
}

/// Result of tracing the accesses of a launch.
#[derive(Debug, Clone, PartialEq)]
pub enum TraceResult {
    /// The accesses.
    Done(AccessTrace),
    /// No trace, with the reason.
    Refused(String),
}

fn nothing_kept() -> Judgement {
    Judgement::new(Verdict::Crashed, "the device keeps no contents")
}

/// Device interface of the gate.
pub trait Session {
    /// Frees every buffer.
    fn reset(&mut self);

    /// Allocates an unwritten buffer with guard regions around it.
    ///
    /// # Errors
    /// `out_of_memory`.
    fn alloc(&mut self, name: &str, bytes: u64) -> Result<Slot, Judgement>;

    /// Writes a whole buffer from the host.
    ///
    /// # Errors
    /// A fault of the device.
    fn upload(&mut self, slot: Slot, bytes: &[u8]) -> Result<(), Judgement>;

    /// Writes an input, which many candidates share: a device may cache it.
    ///
    /// # Errors
    /// A fault of the device.
    fn upload_input(&mut self, slot: Slot, bytes: &Arc<[u8]>) -> Result<(), Judgement> {
        self.upload(slot, bytes)
    }

    /// Reports whether an input is as [`Session::upload_input`] wrote it.
    ///
    /// # Errors
    /// A fault of the device.
    fn is_unchanged(&mut self, slot: Slot, bytes: &Arc<[u8]>) -> Result<bool, Judgement> {
        Ok(self.download(slot)?.as_slice() == bytes.as_ref())
    }

    /// Retains a buffer's contents on the device when all buffers are freed; `None` if the device
    /// cannot, and the host reads them.
    fn keep(&mut self, _slot: Slot) -> Option<RetainedBuffer> {
        None
    }

    /// Frees retained contents.
    fn release(&mut self, _kept: RetainedBuffer) {}

    /// Frees all retained contents.
    fn release_all(&mut self) {}

    /// Reads retained contents.
    ///
    /// # Errors
    /// A fault of the device.
    fn fetch(&mut self, _kept: RetainedBuffer) -> Result<Vec<u8>, Judgement> {
        Err(nothing_kept())
    }

    /// Reports whether two retained contents have the same bits.
    ///
    /// # Errors
    /// A fault of the device.
    fn equal(&mut self, _one: RetainedBuffer, _two: RetainedBuffer) -> Result<bool, Judgement> {
        Err(nothing_kept())
    }

    /// Returns the first element of a run of `count` elements with this pattern.
    ///
    /// # Errors
    /// A fault of the device.
    fn first_run(
        &mut self,
        _kept: RetainedBuffer,
        _pattern: &[u8],
        _run: u64,
    ) -> Result<Option<u64>, Judgement> {
        Err(nothing_kept())
    }

    /// Compares retained contents with expected values, with exactly the result of
    /// [`crate::gate::compare`]. `key` identifies the expected values, which `make` computes if the
    /// device has not cached them. `None` if the host must compare.
    ///
    /// # Errors
    /// A fault of the device.
    fn tally(
        &mut self,
        _kept: RetainedBuffer,
        _element: Element,
        _key: &ContentHash,
        _make: &mut dyn FnMut() -> ExpectedOutput,
    ) -> Result<Option<Tally>, Judgement> {
        Ok(None)
    }

    /// Fills a buffer with repeats of `pattern` and marks it as unwritten.
    ///
    /// # Errors
    /// A fault of the device.
    fn poison(&mut self, slot: Slot, pattern: &[u8]) -> Result<(), Judgement>;

    /// Reads a whole buffer.
    ///
    /// # Errors
    /// A fault of the device.
    fn download(&mut self, slot: Slot) -> Result<Vec<u8>, Judgement>;

    /// Returns the byte ranges, ascending and disjoint, that were not written since the last poison; `None`
    /// if the device cannot report them (the gate then checks the poison pattern).
    fn unwritten(&self, slot: Slot) -> Option<Vec<Range<u64>>>;

    /// Returns byte ranges, ascending and disjoint, that cover all bytes that the last run did not read;
    /// `None` if the device cannot report them. Bytes that were read may be included.
    fn unread(&self, _slot: Slot) -> Option<Vec<Range<u64>>> {
        None
    }

    /// Reports whether a kernel stored to a buffer since the last upload, if the device can report it: a
    /// store may leave the value unchanged.
    fn is_overwritten(&self, _slot: Slot) -> bool {
        false
    }

    /// Reports whether blocks can be omitted from a launch.
    fn can_sample(&self) -> bool;

    /// Traces the accesses of a launch without computing the stored values. Afterwards the contents of
    /// buffers that it writes are undefined, and their written bytes count as written.
    ///
    /// # Errors
    /// The launch was refused, or the device failed.
    fn trace(
        &mut self,
        _run: &Run<'_>,
        _request: TraceRequest<'_>,
    ) -> Result<TraceResult, Judgement> {
        Ok(TraceResult::Refused(
            "the device runs everything".to_owned(),
        ))
    }

    /// Sets the rounding of later runs, including variables set from now on: at random, or as the
    /// code specifies (`None`). Returns whether the device can round at random.
    fn set_rounding(&mut self, _rounding: Option<Rounding>) -> bool {
        false
    }

    /// Enables or disables shadow values in later runs: each floating-point value is also computed in
    /// double precision from exact inputs. Returns whether the device supports them.
    fn set_shadow_values(&mut self, _shadow_values: bool) -> bool {
        false
    }

    /// Returns shadow value − value of each number of a buffer that the last run stored with shadow values,
    /// and 0 for the others. Their type is the [`shadow_error_type`] of the buffer's. `None` if there are
    /// none.
    ///
    /// [`shadow_error_type`]: crate::gate::spread::shadow_error_type
    fn shadow_errors(&self, _slot: Slot, _element: Element) -> Option<Vec<u8>> {
        None
    }

    /// Resets the variables of modules (`__device__`) to their initializers for all later runs: a candidate
    /// then starts with the state of a newly loaded module.
    fn forget_variables(&mut self) {}

    /// Restores the module's variables to their values before the first run since the last reset.
    ///
    /// # Errors
    /// A fault of the device.
    fn restore_variables(&mut self, _code: &Code) -> Result<(), Judgement> {
        Ok(())
    }

    /// Keeps the current values of the module's variables for the runs after the next reset, as if
    /// only buffers were freed. Returns whether they differ from the values at the start of these
    /// runs.
    ///
    /// # Errors
    /// A fault of the device.
    fn keep_variables(&mut self, _code: &Code) -> Result<bool, Judgement> {
        Ok(false)
    }

    /// Returns the address of a buffer, as passed to a kernel.
    fn address(&self, _slot: Slot) -> Option<u64> {
        None
    }

    /// Sets a `__constant__` or `__device__` variable of the code. Returns whether the code has a
    /// variable of that name: the compiler removes unused ones.
    ///
    /// # Errors
    /// The variable has another size, or a fault of the device.
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
    /// The launch was refused, or the device failed without a corresponding hazard.
    fn run(&mut self, run: &Run<'_>) -> Result<RunReport, Judgement>;
}

#[cfg(test)]
mod tests;
