//! Launches: what to run, what is refused before running, what comes back.

mod limits;

use std::sync::Arc;
use std::time::Instant;

use limits::{check_dimensions, check_local, check_shared};

use super::attempts::Work;
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

/// Which blocks run. Blocks left out are as if they had not been in the grid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockSet {
    /// The whole grid.
    All,
    /// These linear indices (`x + grid.x * (y + grid.y * z)`).
    List(Vec<u64>),
}

/// Order in which the warps of a block take turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schedule {
    /// Warp 0, 1, 2, … each until it waits.
    RoundRobin,
    /// A random order with random turns.
    Random {
        /// Same seed, same order.
        seed: u64,
    },
}

/// Order in which blocks start, where it can make a difference: blocks that touch the same words,
/// one of them writing, run one after the other in this order, and give way where they wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockOrder {
    /// Block 0, 1, 2, …
    Ascending,
    /// The last block, the one before it, …
    Descending,
    /// The last block, then 0, 1, 2, …
    LastFirst,
    /// Block 0, 1, 2, …, many at a time, each for a short while.
    Interleaved,
    /// A random order.
    Shuffled {
        /// Same seed, same order.
        seed: u64,
    },
}

impl BlockOrder {
    /// The order of the `n`th of several runs that should differ: the most different ones first.
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

/// What is checked. All on by default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checks {
    /// Data races. Without, nothing tells whether blocks exchange data: if they do, what they find
    /// depends on the machine unless [`Launch::threads`] is 1.
    pub races: bool,
    /// Reads of bytes nobody wrote.
    pub uninitialized: bool,
    /// Unordered plain stores of the same value are no race.
    pub same_value_writes_allowed: bool,
    /// Distinct hazards kept; more are only counted.
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

/// One launch.
#[derive(Debug, Clone)]
pub struct Launch {
    /// Entry name.
    pub entry: String,
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Dynamic shared memory, bytes.
    pub dynamic_shared_bytes: u32,
    /// Arguments.
    pub args: Vec<Arg>,
    /// Which blocks run.
    pub blocks: BlockSet,
    /// Order of the warps.
    pub schedule: Schedule,
    /// Order of the blocks.
    pub block_order: BlockOrder,
    /// Warp instructions a block may execute before it is stopped as endless.
    pub instruction_budget: u64,
    /// Time at which the launch is stopped.
    pub wall_deadline: Option<Instant>,
    /// Lane instructions that all blocks together may execute before the launch is stopped, soon
    /// after; `None` for any number.
    pub lane_budget: Option<u64>,
    /// Worker threads; 0 is one a core. They change nothing of what comes back: blocks that exchange
    /// data run on one.
    pub threads: usize,
    /// Checks.
    pub checks: Checks,
    /// Whether the blocks leave a trace for the timing model.
    pub trace: bool,
    /// How much of the kernel is executed.
    pub depth: Depth,
    /// What shared memory holds that nobody wrote.
    pub shared_fill: u32,
    /// Where the clocks that kernels read begin.
    pub clock: u64,
    /// All blocks are there at once and may wait for each other (`grid.sync()`).
    pub cooperative: bool,
    /// Accesses to global memory that are reported block by block.
    pub watch: Option<Arc<Watch>>,
    /// Random rounding, of a module that was loaded for it
    /// ([`Module::load_randomly_rounded`]).
    pub rounding: Option<Rounding>,
}

/// How much of a kernel is executed: what it computes need not be known to know its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Everything.
    Whole,
    /// What decides where warps go.
    Control,
    /// That, and loads from global memory; a block that has used up its budget ends alone.
    Addresses,
}

impl Launch {
    /// A launch of all blocks with every check on.
    pub fn new(entry: &str, grid: [u32; 3], block: [u32; 3], args: Vec<Arg>) -> Launch {
        Launch {
            entry: entry.to_owned(),
            grid,
            block,
            dynamic_shared_bytes: 0,
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
            clock: 0,
            cooperative: false,
            watch: None,
            rounding: None,
        }
    }
}

/// How a launch ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Every chosen block ran to its end.
    Completed,
    /// Some did not; the hazards say why in full.
    Stopped(String),
}

/// What a launch left behind, apart from memory.
#[derive(Debug, Clone)]
pub struct LaunchReport {
    /// Distinct hazards, most severe kind first.
    pub hazards: Vec<Hazard>,
    /// What is legal PTX and worked, but is not CUDA C++: no reason to refuse the kernel.
    pub warnings: Vec<Hazard>,
    /// How it ended.
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
    /// What was executed.
    pub counters: Counters,
    /// Traces of the blocks, by index, where the launch asked for them.
    pub traces: Vec<BlockTrace>,
    /// Watched accesses of the blocks that had any, by block.
    pub accesses: Vec<BlockAccesses>,
}

/// A launch that was refused before it ran.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    /// No such entry.
    #[error("the module has no entry `{name}`; it has {known}")]
    UnknownEntry {
        /// Name asked for.
        name: String,
        /// Names that exist.
        known: String,
    },
    /// The entry, or a function it calls, has an instruction that is not supported.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// A grid or block dimension is zero or over the device's limit.
    #[error("{what} {dims:?} is refused: {why}")]
    Dimensions {
        /// `grid` or `block`.
        what: &'static str,
        /// The dimensions.
        dims: [u32; 3],
        /// The limit broken.
        why: String,
    },
    /// Too much shared memory.
    #[error(
        "a block wants {wanted} bytes of shared memory ({statics} static), {arch} has {limit}; use smaller tiles or fewer stages"
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
        "`{entry}` wants {wanted} bytes of local memory a thread, a GPU has {LOCAL_BYTES}; use smaller local arrays"
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
    /// The message with the names that the caller has for the arguments, in order.
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

/// Runs `launch` on an imitated `arch`. Memory holds the results afterwards; the end of a launch
/// orders everything before it.
pub fn launch(
    module: &Module,
    memory: &mut GlobalMemory,
    arch: &Arch,
    launch: &Launch,
) -> Result<LaunchReport, LaunchError> {
    let (entry, program) = module.program(&launch.entry)?;
    check_dimensions(launch, entry)?;
    let program = program?;
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
    memory.launches += 1;
    let address = workspace.map_or(0, |buffer| memory.address(buffer));
    let work = Work {
        program,
        arch,
        launch,
        workspace: address,
        meets_alone: launch.meets_alone(address),
        params,
        globals,
    };
    let report = work.run(memory);
    if let Some(buffer) = workspace {
        memory.free(buffer);
    }
    Ok(report)
}

/// Size of [`workspace`].
const WORKSPACE_BYTES: u32 = 8;

/// What the driver gives a cooperative launch, and the kernel finds by `%envreg1` and `%envreg2`:
/// its size, and the word that the blocks of the grid meet at.
///
/// # Errors
/// [`MemoryError`] where it does not fit.
pub fn workspace(memory: &mut GlobalMemory) -> Result<BufferId, MemoryError> {
    let buffer = memory.alloc(WORKSPACE_BYTES.into(), "the grid's workspace")?;
    let [a, b, c, d] = WORKSPACE_BYTES.to_le_bytes();
    memory.write(buffer, 0, &[a, b, c, d, 0, 0, 0, 0]);
    Ok(buffer)
}

/// What the last block of a grid that comes to a meeting adds to the word: the bit by which the others
/// know that all are there (`sync_grids` of cooperative groups).
pub const ALL_MET: u32 = 1 << 31;

impl Launch {
    /// Address of the word at which the grid meets, where one block of several runs and all are to
    /// meet: the others count as there already, whatever the one adds.
    pub fn meets_alone(&self, workspace: u64) -> Option<u64> {
        let one_of_many = matches!(&self.blocks, BlockSet::List(list) if list.len() == 1)
            && self.grid.iter().any(|extent| *extent > 1);
        (self.cooperative && one_of_many).then_some(workspace + 4)
    }

    /// Blocks to run.
    pub(super) fn chosen(&self) -> u64 {
        match &self.blocks {
            BlockSet::All => self.grid.iter().map(|d| u64::from(*d)).product(),
            BlockSet::List(list) => list.len() as u64,
        }
    }

    /// Worker threads that have something to do.
    pub(super) fn workers(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, |n| n.get());
        let threads = match self.threads {
            0 => cores(),
            threads => threads,
        };
        threads.min(self.chosen().max(1) as usize)
    }
}

/// The parameter block of a launch.
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
