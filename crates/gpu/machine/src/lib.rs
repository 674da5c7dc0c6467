//! SASS interpreter: executes the instructions of a cubin and leaves their results in memory.
//!
//! ```text
//! cubin ─image─► code, constants ─sass─► instructions ─lower─► program ─block, warp─► memory,
//!                                                                                trace, counts
//! ```
//! Execution is functional and in order, without hazards or time. Lanes diverge at branches and
//! reconverge at convergence barriers (`BSSY`, `BSYNC`), as placed by the assembler. An unknown
//! instruction is an error with its name. [`prove`] executes a launch as PTX and as SASS, and
//! compares their results in global memory.
#![expect(
    clippy::indexing_slicing,
    reason = "the executor: registers, lanes and instructions are numbered by the decoder, which checks them once; addresses of the kernel are checked before they become places"
)]

mod atomics;
mod block;
mod boxes;
mod image;
mod link;
mod images;
mod lower;
mod memory;
mod notes;
mod phases;
mod operand;
mod op;
mod program;
mod proof;
mod registers;
mod rows;
mod sync;
mod system;
mod tensor_cells;
mod tensor_core;
mod warp;
mod warpgroup;
mod wide;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use block::Fault;
pub use op::Unavailable;
pub use proof::{Difference, Proof, SassRun, prove, prove_run};

use sass::{Instruction, Unknown};

use block::{Block, BlockInputs, Counts, Slice};
use image::Image;
use memory::{CONSTANT_WINDOW, LOCAL_WINDOW, SHARED_WINDOW};
use memory::{Memory, Written};
use phases::Phases;
use program::Program;
use registers::Banks;
use vgpu::Module;
use vgpu::exec::launch::{BlockSet, Launch, LaunchError, workspace};
use vgpu::exec::trace::BlockTrace;
use vgpu::memory::{GlobalMemory, MemoryError};

/// Shared memory reserved by the system at the beginning, from compute capability 9.0 on, bytes.
const SYSTEM_SHARED_BYTES: u64 = 1024;
/// Local memory for called functions, in addition to the kernel's frame, bytes.
const CALL_STACK_BYTES: u32 = 512;
/// Largest local memory of a thread, bytes.
const MAX_LOCAL_BYTES: u32 = 512 << 10;
/// Blocks of the largest cluster, and the reason why launches with others are refused.
const MAX_CLUSTER: u32 = 16;
const CLUSTERS: &str = "thread block clusters of this shape are not executed";
/// Largest shared memory of a block, bytes: beyond that of any GPU.
const MAX_SHARED_BYTES: u64 = 1 << 20;

/// Flag in the sector numbers of traces for sectors of constants, as if the constant banks, 64 KiB
/// apart, were memory.
pub const CONSTANT: u64 = 1 << 51;

/// Error in reading SASS.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the SASS cannot be read: {0}")]
pub struct SassError(String);

/// Error in executing SASS.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MachineError {
    /// Unreadable cubin.
    #[error(transparent)]
    Cubin(#[from] SassError),
    /// Execution stopped by a fault.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// Refused launch.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// Variables of the module that do not fit.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

/// A kernel's SASS, ready to run.
pub struct Machine {
    image: Image,
    program: Program,
}

/// Results of an execution apart from memory.
#[derive(Debug, Clone, Default)]
pub struct Execution {
    /// Instructions executed by warps, by opcode: `smsp__inst_executed`.
    pub by_opcode: BTreeMap<&'static str, u64>,
    /// Instructions executed by warps.
    pub warp_instructions: u64,
    /// Instructions executed by threads, including those with a false predicate.
    pub thread_instructions: u64,
    /// True if all blocks ran to their ends; false if the launch's limits stopped them.
    pub complete: bool,
    /// Traces of the blocks, if the launch requested them.
    pub traces: Vec<BlockTrace>,
    /// Stored words with their previous values, in the order of the stores.
    written: Vec<Written>,
}

impl Machine {
    /// Reads the kernel `entry` of a cubin.
    ///
    /// # Errors
    /// Bytes that are not a valid cubin, or a cubin without that kernel.
    pub fn load(cubin: &[u8], entry: &str) -> Result<Machine, MachineError> {
        let image = Image::read(cubin, entry)?;
        let program = Program::new(&image.code);
        Ok(Machine { image, program })
    }

    /// Returns the kernel's instructions in order of address.
    pub fn code(&self) -> &[Result<Instruction, Unknown>] {
        &self.image.code
    }

    /// Executes the blocks of a launch one after the other; blocks that wait for others take turns.
    /// As on a GPU, only accesses outside all buffers are errors. The launch's limits stop code
    /// that does not end.
    ///
    /// # Errors
    /// A refused launch, an invalid access, or an instruction that the machine does not implement.
    pub fn run(
        &self,
        module: &Module,
        memory: &mut GlobalMemory,
        launch: &Launch,
    ) -> Result<Execution, MachineError> {
        let cluster = self.check_cluster(module, launch)?;
        let parameters = module.parameters(launch, memory)?;
        let linked = self.link(module, memory, launch)?;
        let program = linked.as_ref().unwrap_or(&self.program);
        let mut banks = self.create_banks(module, memory, launch, &parameters)?;
        let meeting = match launch.cooperative {
            true => Some(workspace(memory)?),
            false => None,
        };
        if let Some(buffer) = meeting {
            self.write_grid_barrier(&mut banks, memory.address(buffer));
        }
        let banks = Arc::new(banks);
        let inputs = BlockInputs {
            program,
            banks,
            grid: launch.grid,
            block: launch.block,
            cluster: cluster.unwrap_or([1; 3]),
            local_bytes: self.local_bytes() as usize,
            traced: launch.trace,
            barriers_count_bytes: self.image.sm >= 90,
            has_tensor_memory: (100..120).contains(&self.image.sm),
            others: launch.others(meeting.map(|buffer| memory.address(buffer)), cluster),
        };
        let blocks = block_numbers(launch, inputs.cluster);
        let shared =
            self.image.shared_bytes + u64::from(launch.dynamic_shared_bytes) + SYSTEM_SHARED_BYTES;
        if shared > MAX_SHARED_BYTES {
            let what = format!("a block requests {shared} bytes of shared memory");
            return Err(SassError(what).into());
        }
        let mut counts = Counts {
            warps: vec![0; program.steps.len()],
            threads: vec![0; program.steps.len()],
        };
        let mut done = Execution::default();
        let result = run_blocks(
            &inputs,
            memory,
            &blocks,
            shared as usize,
            launch,
            &mut counts,
            &mut done,
        );
        if let Err(fault) = result {
            // A failed execution must leave memory unchanged.
            done.undo(memory);
            return Err(fault.into());
        }
        if let Some(buffer) = meeting {
            // The workspace is not a result of the kernel.
            done.written
                .retain(|w| w.allocation as usize != buffer.index());
            memory.free(buffer);
        }
        for (opcode, count) in program.opcodes.iter().zip(&counts.warps) {
            if *count > 0 {
                *done.by_opcode.entry(opcode).or_default() += count;
            }
        }
        done.warp_instructions = counts.warps.iter().sum();
        done.thread_instructions = counts.threads.iter().sum();
        Ok(done)
    }

    /// Returns the shape of the clusters of a launch.
    fn check_cluster(
        &self,
        module: &Module,
        launch: &Launch,
    ) -> Result<Option<[u32; 3]>, SassError> {
        let cluster = module.cluster_of(launch);
        let refused = |shape: [u32; 3]| {
            let blocks = shape.iter().fold(1u32, |all, n| all.saturating_mul(*n));
            !(1..=MAX_CLUSTER).contains(&blocks)
        };
        match cluster.is_some_and(refused) {
            true => Err(SassError(CLUSTERS.to_owned())),
            false => Ok(cluster),
        }
    }

    fn local_bytes(&self) -> u32 {
        self.image
            .local_bytes
            .min(MAX_LOCAL_BYTES)
            .saturating_add(CALL_STACK_BYTES)
            .next_multiple_of(16)
            .min(MAX_LOCAL_BYTES)
    }

    /// Writes the grid barrier of a cooperative launch to the banks, as `%envreg1` and `%envreg2`.
    fn write_grid_barrier(&self, banks: &mut Banks, address: u64) {
        let (high, low) = match self.image.sm {
            0..=89 => (0x8c, 0x90),
            90..=99 => (0x44, 0x48),
            _ => (0x254, 0x258),
        };
        let words = [(high, (address >> 32) as u32), (low, address as u32)];
        for (offset, word) in words {
            if let Some(place) = banks.0[0].get_mut(offset..offset + 4) {
                place.copy_from_slice(&word.to_le_bytes());
            }
        }
    }

    /// Creates the constant banks of a launch.
    fn create_banks(
        &self,
        module: &Module,
        memory: &mut GlobalMemory,
        launch: &Launch,
        parameters: &[u8],
    ) -> Result<Banks, MemoryError> {
        let image = &self.image;
        let cluster = module.cluster_of(launch);
        let variables = module.named_variables(memory)?;
        let mut bank0 = image.bank0.clone();
        let mut put = |offset: usize, bytes: &[u8]| {
            if bank0.len() < offset + bytes.len() {
                bank0.resize(offset + bytes.len(), 0);
            }
            bank0[offset..offset + bytes.len()].copy_from_slice(bytes);
        };
        // Offsets of the grid shape and other launch data depend on the GPU generation.
        let (block, grid, stack) = match image.sm {
            0..=99 => (0x0, 0xc, 0x28),
            _ => (0x360, 0x370, 0x37c),
        };
        for (n, (extent, count)) in launch.block.iter().zip(launch.grid).enumerate() {
            put(block + 4 * n, &extent.to_le_bytes());
            put(grid + 4 * n, &count.to_le_bytes());
        }
        put(stack, &self.local_bytes().to_le_bytes());
        if let Some(places) = ClusterPlaces::for_target(image.sm) {
            // Without clusters a block is one of its own.
            put(places.explicit, &u32::from(cluster.is_some()).to_le_bytes());
            places.put(&mut put, launch.grid, cluster.unwrap_or([1; 3]));
        }
        if image.sm < 90 {
            put(0x18, &SHARED_WINDOW.to_le_bytes());
            put(0x20, &LOCAL_WINDOW.to_le_bytes());
        } else {
            // Tensor maps among the parameters are named by their generic address.
            let first = CONSTANT_WINDOW + image.parameters as u64;
            let place = if image.sm < 100 { 0x198 } else { 0x348 };
            put(place, &first.to_le_bytes());
        }
        let declared = module.entry(&launch.entry);
        let declared = declared.map_or(&[][..], |entry| &entry.params);
        for (number, parameter) in declared.iter().enumerate() {
            let packed = parameter.offset as usize;
            let place = image.places.get(number).copied().unwrap_or(packed);
            let value = parameters.get(packed..packed + parameter.bytes as usize);
            put(image.parameters + place, value.unwrap_or_default());
        }
        let mut bank3 = image.bank3.clone();
        for (name, offset, bytes) in &image.constants {
            let found = variables.iter().find(|(variable, _)| variable == name);
            let (offset, bytes) = (*offset as usize, *bytes as usize);
            if let (Some((_, id)), Some(slot)) =
                (found, bank3.get_mut(offset..offset.saturating_add(bytes)))
            {
                // The host may have set the variable since the module was loaded.
                let now = memory.read(*id);
                let count = now.len().min(bytes);
                slot[..count].copy_from_slice(&now[..count]);
            }
        }
        let mut bank4 = image.bank4.clone();
        for (offset, name, added) in &image.pointers {
            let found = variables.iter().find(|(variable, _)| variable == name);
            let variable = found.map(|(_, id)| memory.address(*id).wrapping_add_signed(*added));
            let Some(address) = variable.or_else(|| self.function_address(name)) else {
                continue;
            };
            let place = *offset as usize..(*offset as usize).saturating_add(8);
            if let Some(slot) = bank4.get_mut(place) {
                slot.copy_from_slice(&address.to_le_bytes());
            }
        }
        let mut banks = Banks::default();
        banks.0[0] = bank0;
        banks.0[2] = image.bank2.clone();
        banks.0[3] = bank3;
        banks.0[4] = bank4;
        Ok(banks)
    }
}

/// Offsets of the shape of the clusters in constant bank 0.
struct ClusterPlaces {
    /// Flag of a launch that names clusters.
    explicit: usize,
    /// Blocks of a cluster in x, y, z; then of all of it.
    blocks: usize,
    all: usize,
    reciprocals: usize,
    clusters: usize,
}

impl ClusterPlaces {
    fn for_target(sm: u32) -> Option<ClusterPlaces> {
        Some(match sm {
            ..90 => return None,
            90..=99 => ClusterPlaces {
                explicit: 0x140,
                blocks: 0x144,
                all: 0x188,
                reciprocals: 0x150,
                clusters: 0x15c,
            },
            // Of the shape that `SR_CgaSize` selects with 0.
            _ => ClusterPlaces {
                explicit: 0x36c,
                blocks: 0x2a0,
                all: 0x2cc,
                reciprocals: 0x2b0,
                clusters: 0x2c0,
            },
        })
    }

    fn put(&self, put: &mut impl FnMut(usize, &[u8]), grid: [u32; 3], cluster: [u32; 3]) {
        for (n, (blocks, extent)) in cluster.iter().zip(grid).enumerate() {
            put(self.blocks + 4 * n, &blocks.to_le_bytes());
            // The index of a cluster is a product with this, cut off.
            put(
                self.reciprocals + 4 * n,
                &(1.0 / *blocks as f32).to_le_bytes(),
            );
            put(self.clusters + 4 * n, &(extent / blocks).to_le_bytes());
        }
        put(self.all, &cluster.iter().product::<u32>().to_le_bytes());
    }
}

/// Instructions of a block before other blocks have a turn.
const SLICE_INSTRUCTIONS: u64 = 1 << 22;

/// Returns the numbers of the clusters whose blocks a launch requests; without clusters, of the
/// blocks.
fn block_numbers(launch: &Launch, cluster: [u32; 3]) -> Vec<u64> {
    let counts: [u64; 3] = std::array::from_fn(|n| u64::from(launch.grid[n] / cluster[n].max(1)));
    let list = match &launch.blocks {
        BlockSet::All => return (0..counts.iter().product()).collect(),
        BlockSet::List(list) => list.clone(),
    };
    if cluster == [1; 3] {
        return list;
    }
    let [x, y, _] = launch.grid.map(u64::from);
    let [a, b, c] = cluster.map(u64::from);
    let number = |block: &u64| {
        let at = [block % x / a, block / x % y / b, block / x / y / c];
        at[0] + counts[0] * (at[1] + counts[1] * at[2])
    };
    let mut numbers: Vec<u64> = list.iter().map(number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// Runs the blocks; keeps the stored words even if a block is stopped.
fn run_blocks(
    inputs: &BlockInputs<'_>,
    memory: &GlobalMemory,
    blocks: &[u64],
    shared: usize,
    launch: &Launch,
    counts: &mut Counts,
    done: &mut Execution,
) -> Result<(), Fault> {
    let slice = SLICE_INSTRUCTIONS.min(launch.instruction_budget.max(1));
    let turn = |block: &mut Block<'_>, counts: &mut Counts, done: &mut Execution| {
        // The journal moves from block to block, so that stores can be undone in reverse order.
        block.memory.journal = std::mem::take(&mut done.written);
        let ended = block.run(slice, counts);
        done.written = std::mem::take(&mut block.memory.journal);
        let ended = ended?;
        if ended == Slice::Ended && inputs.traced {
            done.traces.extend(block.traces());
        }
        Ok(ended)
    };
    let ranks = inputs.cluster.iter().product::<u32>() as usize;
    // The alignment of shared variables holds in every block.
    let stride = match ranks {
        1 => shared,
        _ => shared.next_multiple_of(1024),
    };
    let mut waiting: Vec<Block<'_>> = Vec::new();
    let mut all_spent = 0;
    for index in blocks {
        let mut own = Memory {
            global: memory,
            shared: vec![0; stride * ranks],
            stride: stride as u64,
            barriers_count_bytes: inputs.barriers_count_bytes,
            others: inputs.others,
            journal: Vec::new(),
            last: 0,
            phases: Phases::default(),
            tensor: Vec::new(),
        };
        if inputs.has_tensor_memory {
            own.tensor.resize_with(ranks, Default::default);
            own.begin_tensor_memory()
                .map_err(|what| Fault::Stopped { address: 0, what })?;
        }
        let mut block = Block::new(inputs.clone(), *index, own);
        if let Slice::Unfinished(spent) = turn(&mut block, counts, done)? {
            all_spent = spent.max(all_spent);
            waiting.push(block);
        }
    }
    // A block that outlasts its slice is long or waits for another block, so the others run first.
    while !waiting.is_empty() {
        let late = launch
            .wall_deadline
            .is_some_and(|at| std::time::Instant::now() > at);
        if all_spent >= launch.instruction_budget || late {
            if inputs.traced {
                done.traces
                    .extend(waiting.iter_mut().flat_map(Block::traces));
            }
            return Ok(());
        }
        let (mut rest, mut longest) = (Vec::new(), 0);
        for mut block in waiting {
            if let Slice::Unfinished(spent) = turn(&mut block, counts, done)? {
                longest = longest.max(spent);
                rest.push(block);
            }
        }
        waiting = rest;
        all_spent += longest;
    }
    done.complete = true;
    Ok(())
}

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
