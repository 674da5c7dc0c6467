//! Launches: parameters, validation and report.

mod limits;

use std::sync::Arc;
use std::time::Instant;

use limits::{check_cluster, check_dimensions, check_local, check_shared};

use super::attempts::Work;
use super::device_runtime::DeviceOperation;
use super::rounding::Rounding;
use super::stop::{Assertion, Stop};
use super::trace::BlockTrace;
use super::watch::{BlockAccesses, Watch};
use crate::arch::{Arch, LOCAL_BYTES};
use crate::counters::Counters;
use crate::hazard::Hazard;
use crate::memory::{BufferId, GlobalMemory, MemoryError};
use crate::module::{Entry, Module, Unsupported};

/// One kernel argument, in the order of the entry's parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arg {
    /// Address of a buffer.
    Buffer(BufferId),
    /// Address of a byte inside a buffer.
    BufferAt(BufferId, u64),
    /// A value, little endian, exactly as large as the parameter.
    Bytes(Vec<u8>),
}

/// The blocks to run, each with the others of its cluster. Omitted blocks behave as if they were not in the grid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockSet {
    /// The whole grid.
    All,
    /// The blocks with these linear indices (`x + grid.x * (y + grid.y * z)`).
    List(Vec<u64>),
}

/// Order in which the warps of a block take turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schedule {
    /// Warp 0, 1, 2, … each until it waits.
    RoundRobin,
    /// A random order with random turns.
    Random {
        /// The same seed produces the same order.
        seed: u64,
    },
}

/// Order in which interacting blocks start. Blocks that access the same words, one of them writing,
/// run serialized in this order and yield where they wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockOrder {
    /// Block 0, 1, 2, …
    Ascending,
    /// The last block, the one before it, …, each of which gives way to others before every atomic
    /// or volatile access, as its warps do: two such accesses are then not one step by chance.
    Descending,
    /// The last block, then 0, 1, 2, …
    LastFirst,
    /// Block 0, 1, 2, …, many at a time, in short time slices.
    Interleaved,
    /// A random order.
    Shuffled {
        /// The same seed produces the same order.
        seed: u64,
    },
}

impl BlockOrder {
    /// Reports whether warps and blocks give way to others before an access that may interact.
    pub(super) fn switches(self) -> bool {
        matches!(self, BlockOrder::Descending | BlockOrder::Interleaved)
    }

    /// Returns the order of the `n`th of several runs that should differ: the most different orders
    /// first.
    #[must_use]
    pub fn nth(n: u32, seed: u64) -> BlockOrder {
        match n {
            0 => BlockOrder::Ascending,
            1 => BlockOrder::Descending,
            2 => BlockOrder::LastFirst,
            3 => BlockOrder::Interleaved,
            _ => BlockOrder::Shuffled { seed },
        }
    }
}

/// Enabled checks. All on by default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checks {
    /// Data races. Without this check, interacting blocks go undetected: their results depend on
    /// the host unless [`Launch::threads`] is 1.
    pub races: bool,
    /// Reads of bytes that were never written.
    pub uninitialized: bool,
    /// Unordered plain stores of the same value are not a race.
    pub same_value_writes_allowed: bool,
    /// Number of distinct hazards kept; further ones are only counted.
    pub max_hazards: usize,
}

impl Default for Checks {
    fn default() -> Checks {
        Checks {
            races: true,
            uninitialized: true,
            same_value_writes_allowed: false,
            max_hazards: 64,
        }
    }
}

/// Parameters of one launch.
#[derive(Debug, Clone)]
pub struct Launch {
    /// Entry name.
    pub entry: String,
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Blocks of a cluster in x, y, z; `None` for the shape that the kernel requires, if any.
    pub cluster: Option<[u32; 3]>,
    /// Dynamic shared memory, bytes.
    pub dynamic_shared_bytes: u32,
    /// Registers that the launch allocates for a thread, which `setmaxnreg` redistributes; 0 if
    /// unknown.
    pub registers: u32,
    /// Arguments.
    pub args: Vec<Arg>,
    /// Blocks to run.
    pub blocks: BlockSet,
    /// Order of the warps.
    pub schedule: Schedule,
    /// Order of the blocks.
    pub block_order: BlockOrder,
    /// Limit of warp instructions per block, beyond which it is stopped as endless.
    pub instruction_budget: u64,
    /// Time at which the launch is stopped.
    pub wall_deadline: Option<Instant>,
    /// Lane instructions that all blocks together may execute before the launch is stopped, soon
    /// after; `None` for any number.
    pub lane_budget: Option<u64>,
    /// Worker threads; 0 is one per core. The result does not depend on them: blocks that interact
    /// run on one thread.
    pub threads: usize,
    /// Checks.
    pub checks: Checks,
    /// Record a trace of the blocks for the timing model.
    pub trace: bool,
    /// Part of the kernel that is executed.
    pub depth: Depth,
    /// Initial contents of unwritten shared memory.
    pub shared_fill: u32,
    /// Bytes of stack for the frames of functions that may enter themselves, without their registers. The compiler
    /// knows the need of all others.
    pub stack_bytes: u32,
    /// Launches of kernels by kernels that led to this one.
    pub nesting: u32,
    /// Initial value of the clocks that kernels read.
    pub clock: u64,
    /// `%smid` is 0 and `%warpid` is the warp's index in its block, as the executor of SASS has
    /// them: both are compared. Else they are drawn.
    pub plain_numbers: bool,
    /// All blocks are resident at once and may wait for each other (`grid.sync()`).
    pub cooperative: bool,
    /// Rank of a block that runs alone among all blocks, which each take a number from a counter
    /// before it takes another ([`super::others`]). `None` if it takes all numbers itself.
    pub turn: Option<u64>,
    /// Global memory accesses to report, block by block.
    pub watch: Option<Arc<Watch>>,
    /// Random rounding; requires a module from [`Module::load_randomly_rounded`].
    pub rounding: Option<Rounding>,
    /// Compute shadow values, which [`GlobalMemory::shadow_value`] returns afterwards; requires a
    /// module from [`Module::load_with_shadow_values`].
    pub shadow_values: bool,
}

/// Part of a kernel that is executed: control flow can be followed without computing all values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Everything.
    Whole,
    /// Only instructions that decide control flow.
    Control,
    /// Those, and loads from global memory; a block that has used up its budget ends alone.
    Addresses,
}

impl Launch {
    /// Creates a launch of all blocks with every check enabled.
    pub fn new(entry: &str, grid: [u32; 3], block: [u32; 3], args: Vec<Arg>) -> Launch {
        Launch {
            entry: entry.to_owned(),
            grid,
            block,
            cluster: None,
            dynamic_shared_bytes: 0,
            registers: 0,
            args,
            blocks: BlockSet::All,
            schedule: Schedule::RoundRobin,
            block_order: BlockOrder::Ascending,
            instruction_budget: 1 << 28,
            wall_deadline: None,
            lane_budget: None,
            threads: 0,
            checks: Checks::default(),
            trace: false,
            depth: Depth::Whole,
            shared_fill: 0,
            stack_bytes: LOCAL_BYTES,
            nesting: 0,
            clock: 0,
            plain_numbers: false,
            cooperative: false,
            turn: None,
            watch: None,
            rounding: None,
            shadow_values: false,
        }
    }
}

/// Outcome of a launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Every chosen block ran to its end.
    Completed,
    /// Some blocks did not; the hazards have the details.
    Stopped(String),
}

/// Results of a launch other than memory.
#[derive(Debug, Clone)]
pub struct LaunchReport {
    /// Distinct hazards, most severe kind first.
    pub hazards: Vec<Hazard>,
    /// Constructs that are legal PTX and work, but are not valid CUDA C++; not a reason to reject
    /// the kernel.
    pub warnings: Vec<Hazard>,
    /// Outcome.
    pub end: End,
    /// Why it was stopped, where it was.
    pub stop: Option<Stop>,
    /// Assertions that failed, by block; the first 1024.
    pub assertions: Vec<Assertion>,
    /// Text that the kernel printed, by block and in each in the order of execution: the last 1 MiB,
    /// as CUDA keeps it.
    pub output: Vec<u8>,
    /// Bytes of text before that, which are lost.
    pub output_dropped: u64,
    /// Operations that the kernel started, by block and in each in the order of the calls. The caller runs them.
    pub operations: Vec<DeviceOperation>,
    /// Executed work.
    pub counters: Counters,
    /// Traces of the blocks in order of index, if requested.
    pub traces: Vec<BlockTrace>,
    /// Watched accesses by block, for the blocks that had any.
    pub accesses: Vec<BlockAccesses>,
}

/// Reasons to refuse a launch before it runs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    /// No such entry.
    #[error("the module has no entry `{name}`; it has {known}")]
    UnknownEntry {
        /// Requested name.
        name: String,
        /// Existing names.
        known: String,
    },
    /// The entry, or a function it calls, has an instruction that is not supported.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// A grid or block dimension is zero or over the device's limit.
    #[error("{what} {dims:?} is refused: {why}")]
    Dimensions {
        /// `grid`, `block` or `cluster`.
        what: &'static str,
        /// The dimensions.
        dims: [u32; 3],
        /// The limit broken.
        why: String,
    },
    /// Too much shared memory.
    #[error(
        "a block requests {wanted} bytes of shared memory ({statics} static), {arch} has {limit}; use smaller tiles or fewer stages"
    )]
    SharedMemory {
        /// Static and dynamic.
        wanted: u64,
        /// Static part.
        statics: u64,
        /// Device name.
        arch: &'static str,
        /// Opt-in limit.
        limit: u64,
    },
    /// Too much local memory.
    #[error(
        "`{entry}` requests {wanted} bytes of local memory per thread, a GPU has {LOCAL_BYTES}; use smaller local arrays"
    )]
    LocalMemory {
        /// Entry name.
        entry: String,
        /// Bytes a thread.
        wanted: u32,
    },
    /// Wrong number of arguments.
    #[error("entry `{entry}` takes {expected} arguments, {given} were given")]
    ArgumentCount {
        /// Entry name.
        entry: String,
        /// Parameters of the entry.
        expected: usize,
        /// Arguments given.
        given: usize,
    },
    /// An argument of the wrong size.
    #[error("argument {index} of `{entry}` is {given} bytes, the parameter is {expected}")]
    ArgumentSize {
        /// Entry name.
        entry: String,
        /// From 0.
        index: usize,
        /// Parameter size.
        expected: usize,
        /// Argument size.
        given: usize,
    },
    /// The module's variables do not fit.
    #[error(transparent)]
    Memory(#[from] crate::memory::MemoryError),
}

impl LaunchError {
    /// Formats the message with the caller's names of the arguments, in order.
    #[must_use]
    pub fn describe(&self, names: &[&str]) -> String {
        match self {
            Self::ArgumentSize {
                entry,
                index,
                expected,
                given,
            } => {
                let name = names.get(*index).copied().unwrap_or("?");
                format!(
                    "the argument `{name}` has {given} bytes, but parameter {} of `{entry}` has \
                     {expected}; declare it with the type that the kernel takes",
                    index + 1
                )
            }
            Self::ArgumentCount {
                entry, expected, ..
            } => format!(
                "`{entry}` takes {expected} arguments, but gets {}: {}; name in `args` those that \
                 it takes",
                names.len(),
                names.join(", ")
            ),
            other => other.to_string(),
        }
    }
}

/// Runs `launch` on a virtual GPU of type `arch`. Memory holds the results afterwards; the end of a
/// launch orders everything before it.
pub fn launch(
    module: &Module,
    memory: &mut GlobalMemory,
    arch: &Arch,
    launch: &Launch,
) -> Result<LaunchReport, LaunchError> {
    let (entry, program) = module.program(&launch.entry)?;
    check_dimensions(launch, entry)?;
    let program = program?;
    check_cluster(launch, &program.cluster, arch)?;
    check_shared(launch, entry, arch)?;
    check_local(program, entry)?;
    let globals = module.place_globals(memory)?;
    if program.allocates {
        memory.place_heap()?;
    }
    let params = parameters(launch, entry, memory)?;
    let workspace = match launch.cooperative {
        true => Some(workspace(memory)?),
        false => None,
    };
    // Shadow memory is not cleared between launches: this number tells their accesses apart.
    memory.launches += 1;
    let address = workspace.map_or(0, |buffer| memory.address(buffer));
    let work = Work {
        program,
        arch,
        launch,
        workspace: address,
        others: launch.others(workspace.map(|_| address), module.cluster_of(launch)),
        params,
        globals,
    };
    let report = work.run(memory);
    if let Some(buffer) = workspace {
        memory.free(buffer);
    }
    Ok(report)
}

/// Size of the [`workspace`], bytes.
const WORKSPACE_BYTES: u32 = 8;

/// Allocates the workspace of a cooperative launch, which the kernel finds by `%envreg1` and
/// `%envreg2`: its size, and the word that `grid.sync()` synchronises on.
///
/// # Errors
/// [`MemoryError`] where it does not fit.
pub fn workspace(memory: &mut GlobalMemory) -> Result<BufferId, MemoryError> {
    let buffer = memory.alloc(WORKSPACE_BYTES.into(), "the grid's workspace")?;
    let [a, b, c, d] = WORKSPACE_BYTES.to_le_bytes();
    memory.write(buffer, 0, &[a, b, c, d, 0, 0, 0, 0]);
    Ok(buffer)
}

impl Launch {
    /// Returns the number of blocks to run.
    pub(super) fn chosen(&self) -> u64 {
        match &self.blocks {
            BlockSet::All => self.grid.iter().map(|d| u64::from(*d)).product(),
            BlockSet::List(list) => list.len() as u64,
        }
    }

    /// Returns the number of worker threads with something to do.
    pub(super) fn workers(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, |n| n.get());
        let threads = match self.threads {
            0 => cores(),
            threads => threads,
        };
        threads.min(self.chosen().max(1) as usize)
    }
}

/// Builds the parameter buffer of a launch.
pub(crate) fn parameters(
    launch: &Launch,
    entry: &Entry,
    memory: &GlobalMemory,
) -> Result<Vec<u8>, LaunchError> {
    if launch.args.len() != entry.params.len() {
        return Err(LaunchError::ArgumentCount {
            entry: entry.name.clone(),
            expected: entry.params.len(),
            given: launch.args.len(),
        });
    }
    let size = entry
        .params
        .iter()
        .map(|p| p.offset + p.bytes)
        .max()
        .unwrap_or(0);
    let mut out = vec![0; size as usize];
    for (index, (arg, p)) in launch.args.iter().zip(&entry.params).enumerate() {
        let bytes = match arg {
            Arg::Buffer(b) => memory.address(*b).to_le_bytes().to_vec(),
            Arg::BufferAt(b, offset) => memory
                .address(*b)
                .wrapping_add(*offset)
                .to_le_bytes()
                .to_vec(),
            Arg::Bytes(bytes) => bytes.clone(),
        };
        if bytes.len() != p.bytes as usize {
            return Err(LaunchError::ArgumentSize {
                entry: entry.name.clone(),
                index,
                expected: p.bytes as usize,
                given: bytes.len(),
            });
        }
        out[p.offset as usize..][..bytes.len()].copy_from_slice(&bytes);
    }
    Ok(out)
}
