//! State shared by the warps of a block: memory, barriers, clocks, collected hazards.

use crate::table::Table;
use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::barrier::{Barrier, ReductionResult};
use super::cluster::{Cluster, MAX_BLOCKS};
use super::cluster_barrier::ClusterBarrier;
use super::device_runtime::DeviceRuntime;
use super::flights::Flights;
use super::launch::{BlockOrder, Checks};
use super::order::Thread;
use super::others::Others;
use super::phases::{FailedPoll, Mbarriers};
use super::placement::Placement;
use super::printed::Printed;
use super::registers::WarpRegisters;
use super::remote::Remotes;
use super::rounding::Rounding;
use super::shadow_values::ShadowWord;
use super::stop::{Assertion, Halt, Stop};
use super::tensor_memory::TensorMemory;
use super::tensor_reads::TensorReads;
use super::trace::BlockTrace;
use super::undefined_words::{DeferredReads, UndefinedRead};
use super::warp::{Warp, filled};
use super::watch::{AccessRecorder, BlockAccesses, Watch};
use crate::arch::Arch;
use crate::counters::Counters;
use crate::hazard::HazardKind;
use crate::hazard::clock::{AGENTS, Clocks};
use crate::hazard::global::OpenChunk;
use crate::hazard::history::Lists;
use crate::hazard::report::{Collector, InstructionPair, Location};
use crate::hazard::shadow::BlockShadow;
use crate::hazard::sync::Variable;
use crate::lower::program::Program;
use crate::memory::{Allocation, GlobalMemory};
use crate::tensor_core::CELLS;

/// State shared by all blocks of a launch.
pub(super) struct Context<'a> {
    pub(super) program: &'a Program,
    pub(super) memory: &'a GlobalMemory,
    pub(super) arch: &'a Arch,
    pub(super) checks: &'a Checks,
    /// Blocks record traces.
    pub(super) traced: bool,
    /// Number of the attempt, stored in its shadow marks, and of the launch.
    pub(super) launch: u32,
    pub(super) launch_number: u32,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    /// Address of the workspace that a cooperative grid synchronises on; 0 otherwise.
    pub(super) workspace: u64,
    /// Those that do not run, where one block runs alone.
    pub(super) others: Others,
    pub(super) threads: usize,
    /// Clusters of the launch; without them, each block is one.
    pub(super) cluster: Cluster,
    pub(super) dynamic_shared: u32,
    /// Registers of a thread; 0 if unknown.
    pub(super) registers: u32,
    /// Initial state of the shared memory of a cluster.
    pub(super) fresh_state: Vec<u8>,
    pub(super) shared_fill: u32,
    /// Limit of [`Warp::frames`].
    pub(super) stack_bytes: u32,
    /// Launches of kernels by kernels that led to this one.
    pub(super) nesting: u32,
    /// Offset added to the initial clock of each block.
    pub(super) clock: u64,
    /// Blocks that a multiprocessor holds at once.
    pub(super) blocks_each: u64,
    pub(super) placement: Placement,
    pub(super) params: Vec<u8>,
    /// Addresses of the module's variables.
    pub(super) globals: Vec<u64>,
    pub(super) variables: Mutex<Table<u64, Arc<Variable>>>,
    pub(super) waits: Mutex<Waits>,
    /// Held while an atomic changes two words.
    pub(super) wide: Mutex<()>,
    pub(super) stop: AtomicBool,
    /// Blocks run serialized, in an order that the launch decides; else on any core.
    pub(super) serialized: bool,
    /// The isolated attempt is void: blocks interacted, or some did not finish.
    pub(super) conflict: AtomicBool,
    /// Full histories of words can be requested, for another attempt.
    pub(super) can_record: bool,
    /// Addresses of those words.
    pub(super) requested: Mutex<BTreeSet<u64>>,
    /// Overwritten memory is saved, for another attempt.
    pub(super) saves: bool,
    pub(super) order: BlockOrder,
    /// Warps and blocks give way to others before each atomic or volatile access.
    pub(super) switches: bool,
    pub(super) budget: u64,
    /// Slice of the program that is executed; zero executes everything.
    pub(super) skip_unless: u8,
    pub(super) deadline: Option<Instant>,
    /// Number of the allocation that is the heap of `malloc`; no number where there is none.
    pub(super) heap: usize,
    /// Lane instructions of all blocks, and how many the launch may execute.
    pub(super) lanes: AtomicU64,
    pub(super) lane_budget: Option<u64>,
    pub(super) seed: Option<u64>,
    pub(super) watch: Option<&'a Watch>,
    pub(super) rounding: Option<Rounding>,
}

/// Count of the blocks that wait in loops. Blocks report in rounds, because a change of memory by
/// another block invalidates earlier reports. A deadlock is a round in which all remaining blocks
/// repeat themselves and none has changed memory since its report in the round before.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// Unfinished blocks, including those not started.
    pub(super) unfinished: u64,
    /// Those of them that have started, and the number that the GPU holds at once.
    pub(super) resident: u64,
    pub(super) capacity: u64,
    /// Those of them that repeat themselves, as of this round.
    pub(super) stalled: u64,
    pub(super) round: u64,
    /// Some block changed memory since its report in the round before.
    pub(super) changed: bool,
}

impl Waits {
    /// Reports whether another block may start: a waiting block keeps its slot.
    pub(super) fn admits(&self) -> bool {
        self.resident < self.capacity
    }

    /// Reports whether all blocks that can run repeat themselves.
    pub(super) fn all_stalled(&self) -> bool {
        // A block that can still start may write what the others wait for.
        let more = self.resident < self.unfinished && self.admits();
        self.stalled >= self.resident && !more
    }
}

impl Context<'_> {
    pub(super) fn waits(&self) -> MutexGuard<'_, Waits> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Voids the isolated attempt: blocks depend on each other.
    pub(super) fn report_conflict(&self) {
        self.conflict.store(true, Relaxed);
        self.stop.store(true, Relaxed);
    }

    /// Requests that every access to a word is recorded in another attempt.
    pub(super) fn request_history(&self, address: u64) {
        let mut requested = self
            .requested
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if requested.len() < MAX_REQUESTED_WORDS {
            requested.insert(address);
        }
    }

    /// Saves the contents of a chunk before the launch's first write to it.
    #[inline(always)]
    pub(super) fn save(&self, chunk: &mut OpenChunk<'_>, allocation: &Allocation) {
        if self.saves {
            chunk.save(self.launch, &allocation.words, &allocation.init);
        }
    }

    /// Adds lane instructions to those of the launch.
    pub(super) fn count_lanes(&self, executed: u64) {
        if self.lane_budget.is_some() {
            self.lanes.fetch_add(executed, Relaxed);
        }
    }

    /// Returns the limit of the whole launch that is reached.
    pub(super) fn expired(&self) -> Option<Stop> {
        if self.deadline.is_some_and(|d| Instant::now() >= d) {
            return Some(Stop::Deadline);
        }
        let spent = |budget| self.lanes.load(Relaxed) >= budget;
        self.lane_budget
            .is_some_and(spent)
            .then_some(Stop::LaneBudget)
    }

    /// Takes a slot for one more block, if the GPU has one.
    pub(super) fn enter(&self) -> bool {
        let mut waits = self.waits();
        let admitted = waits.admits();
        waits.resident += u64::from(admitted);
        admitted
    }

    /// Returns the thread index of a linear thread.
    pub(super) fn tid(&self, thread: usize) -> [u32; 3] {
        let t = self.cluster.thread_in_block(thread) as u32;
        let [x, y, _] = self.block;
        [t % x, t / x % y, t / (x * y)]
    }

    /// Returns the block index of a linear block.
    pub(super) fn ctaid(&self, block: u64) -> [u32; 3] {
        let (x, y) = (u64::from(self.grid[0]), u64::from(self.grid[1]));
        [
            (block % x) as u32,
            (block / x % y) as u32,
            (block / (x * y)) as u32,
        ]
    }
}

/// Words whose accesses are all recorded in one launch. A kernel that leaves more words undecided
/// is judged by whether the thread has acquired anything at all.
const MAX_REQUESTED_WORDS: usize = 1 << 16;

/// Shift of the high four bits of a shared word's state, the existing bytes; the low four are the
/// written bytes.
pub(super) const EXISTS_SHIFT: u32 = 4;

/// Buffers that the blocks of one worker reuse.
#[derive(Default)]
pub(super) struct SpareBuffers {
    shared: Vec<u32>,
    shared_state: Vec<u8>,
    shadow: BlockShadow,
    /// Time of the last mark in the shadow.
    time: u32,
    threads: Vec<Thread>,
    pub(super) warps: Vec<Warp>,
}

/// Barriers of a block (PTX ISA, `barrier`).
pub(super) const BARRIERS: usize = 16;

/// Returns the state of unwritten shared memory of a block: its existing bytes.
pub(super) fn fresh_state(p: &Program, dynamic_shared: u32) -> Vec<u8> {
    let fixed = p.shared.last().map_or(0, |e| e.start + e.bytes);
    let end = if dynamic_shared > 0 {
        p.dynamic_at + dynamic_shared
    } else {
        fixed
    };
    let mut state = vec![0u8; end.div_ceil(4) as usize];
    let dynamic = (p.dynamic_at, dynamic_shared);
    for (start, bytes) in p.shared.iter().map(|e| (e.start, e.bytes)).chain([dynamic]) {
        for byte in start..start + bytes {
            state[byte as usize / 4] |= 1 << (EXISTS_SHIFT + byte % 4);
        }
    }
    state
}

/// State shared by the warps of one block, or of the blocks of one cluster.
///
/// The blocks of a cluster run as one: their threads and their shared memory are numbered
/// consecutively (see [`Cluster`]), so that happens-before and shadow memory cover accesses to the
/// memory of each other.
pub(super) struct Cta<'a> {
    pub(super) context: &'a Context<'a>,
    /// Linear index of the cluster among those of the grid; without clusters, of the block.
    pub(super) block: u32,
    pub(super) shared: Vec<u32>,
    /// Shadow values of shared memory, from the first store of one on.
    pub(super) shared_shadows: Vec<ShadowWord>,
    pub(super) shared_state: Vec<u8>,
    pub(super) shadow: BlockShadow,
    /// Histories of global words, where blocks are isolated.
    pub(super) lists: Lists,
    pub(super) clocks: Clocks,
    pub(super) threads: Vec<Thread>,
    /// Sixteen of each block.
    pub(super) barriers: Vec<Barrier>,
    pub(super) cluster_barrier: ClusterBarrier,
    /// Accesses to shared memory of other blocks of the cluster.
    pub(super) remotes: Remotes,
    pub(super) mbarriers: Mbarriers,
    /// Products of warp-groups.
    pub(super) flights: Flights,
    /// Tensor memory of each block, if the program uses it.
    pub(super) tensor: Vec<TensorMemory>,
    pub(super) tensor_reads: TensorReads,
    /// Changes of the warps' registers; empty before the first.
    pub(super) registers: Vec<WarpRegisters>,
    /// Synchronisation variables in shared memory.
    pub(super) variables: Table<u64, Arc<Variable>>,
    pub(super) counters: Counters,
    pub(super) found: Collector,
    /// Findings that are only warnings.
    pub(super) warned: Collector,
    /// Reads of unwritten bytes that count where their values decide something.
    pub(super) deferred: DeferredReads,
    /// Words of shared memory to which undefined values were stored.
    pub(super) undefined_words: HashSet<u64>,
    /// Undefined words that the current load reads.
    pub(super) undefined_reads: Vec<UndefinedRead>,
    /// Program counter of the current instruction.
    pub(super) pc: u32,
    /// Number of stores that changed a value.
    pub(super) version: u64,
    /// Allocation of the last global access.
    pub(super) last: usize,
    /// Reason why the block stopped.
    pub(super) halted: Option<Halt>,
    /// Threads that have not exited, by block of the cluster.
    pub(super) live: [usize; MAX_BLOCKS],
    /// Lanes released by a barrier: warp and mask.
    pub(super) released: Vec<(usize, u32)>,
    /// Results of barrier reductions.
    pub(super) reduced: Vec<ReductionResult>,
    /// Traces of the warps by block, if requested.
    pub(super) trace: Option<Vec<BlockTrace>>,
    /// Index of the running warp.
    pub(super) running: usize,
    /// The running warp polled in vain with all its lanes: other warps run next.
    pub(super) polled: bool,
    /// Its last poll of an `mbarrier` in vain with all its lanes.
    pub(super) failed_poll: Option<FailedPoll>,
    /// By agent: the thread that issued its last copy, for messages.
    pub(super) issuers: [usize; AGENTS],
    /// The running warp gave way to others before an access that they may also make.
    pub(super) gave_way: bool,
    /// Clock of the block, in cycles.
    pub(super) clock: u64,
    /// Number of its reads.
    pub(super) clock_reads: u32,
    /// Watched accesses, by block; empty where none are watched.
    pub(super) accesses: Vec<AccessRecorder>,
    /// Text that it printed.
    pub(super) printed: Printed,
    /// Assertions of it that failed.
    pub(super) assertions: Vec<Assertion>,
    pub(super) runtime: DeviceRuntime,
}

impl<'a> Cta<'a> {
    pub(super) fn new(context: &'a Context<'a>, block: u32, spare: SpareBuffers) -> Cta<'a> {
        let words = context.fresh_state.len();
        let mut shared_state = spare.shared_state;
        shared_state.clone_from(&context.fresh_state);
        let mut shadow = spare.shadow;
        let tensor_blocks = usize::from(context.program.tensor_memory) * context.cluster.blocks;
        let tensor_words = tensor_blocks * CELLS;
        shadow.renew(if context.checks.races {
            words + tensor_words
        } else {
            0
        });
        let exact_readers = context.exact_readers();
        let (blocks, slots) = (context.cluster.blocks, context.slots());
        let mut threads = spare.threads;
        threads.iter_mut().for_each(Thread::reset);
        threads.resize_with(slots, Thread::default);
        // The marks of the previous block are in the shadow still: starting later makes them ordered.
        let clocks = Clocks::new(slots, exact_readers, spare.time + 1);
        Cta {
            context,
            block,
            shared: filled(spare.shared, words, context.shared_fill),
            shared_shadows: Vec::new(),
            shared_state,
            shadow,
            lists: Lists::default(),
            clocks: clocks.keeping_execution(context.program.tensor_memory),
            threads,
            barriers: vec![Barrier::default(); BARRIERS * blocks],
            cluster_barrier: ClusterBarrier::new(context),
            remotes: Remotes::new(blocks),
            mbarriers: Mbarriers::default(),
            flights: Flights::default(),
            tensor: (0..tensor_blocks)
                .map(|_| TensorMemory::default())
                .collect(),
            tensor_reads: TensorReads::default(),
            registers: Vec::new(),
            variables: Table::default(),
            counters: Counters {
                blocks: blocks as u64,
                ..Counters::default()
            },
            found: Collector::default(),
            warned: Collector::default(),
            deferred: DeferredReads::default(),
            undefined_words: HashSet::new(),
            undefined_reads: Vec::new(),
            pc: 0,
            // Starts at 1: version 0 means that no state was reported.
            version: 1,
            last: 0,
            halted: None,
            live: std::array::from_fn(|rank| if rank < blocks { context.threads } else { 0 }),
            released: Vec::new(),
            reduced: Vec::new(),
            trace: context.traced.then(|| context.begin_traces(block)),
            running: 0,
            polled: false,
            failed_poll: None,
            issuers: [0; AGENTS],
            gave_way: false,
            clock: context.clock.wrapping_mul(16) + context.placement.clock(block),
            clock_reads: 0,
            accesses: match context.watch {
                Some(_) => (0..blocks).map(|_| AccessRecorder::default()).collect(),
                None => Vec::new(),
            },
            printed: Printed::default(),
            assertions: Vec::new(),
            runtime: DeviceRuntime::default(),
        }
    }

    /// Returns the watched accesses of each block.
    pub(super) fn take_accesses(&mut self) -> Vec<BlockAccesses> {
        let (context, unit) = (self.context, self.block);
        let all = self.accesses.iter_mut().enumerate();
        all.filter_map(|(rank, accesses)| accesses.take(context.block_of(unit, rank)))
            .collect()
    }

    /// Returns the buffers of a finished block. Its shadow marks are older than everything of the
    /// next block, as if a barrier lay between, unless the block left copies open.
    pub(super) fn spare(self) -> SpareBuffers {
        let time = self.clocks.now();
        let copies = self.threads.iter().flat_map(|t| &t.copies);
        let open = copies.into_iter().any(|group| !group.is_empty());
        // A floor orders all marks but those of copies in flight and of vector clocks. The time must
        // not overflow.
        let plain = !open && !self.context.exact_readers() && time < u32::MAX / 2;
        SpareBuffers {
            shared: self.shared,
            shared_state: self.shared_state,
            shadow: if plain {
                self.shadow
            } else {
                self.shadow.emptied()
            },
            time: if plain { time } else { 0 },
            threads: self.threads,
            warps: Vec::new(),
        }
    }

    /// Records a hazard of the current instruction.
    #[cold]
    pub(super) fn hazard(
        &mut self,
        kind: HazardKind,
        thread: usize,
        at: Location,
        other: u32,
        detail: impl FnOnce() -> String,
    ) {
        let found = self.occurrence(thread, at);
        self.found.add((kind, self.pc, other), found, detail);
    }

    /// Records a warning about barriers that work but are not valid CUDA C++.
    #[cold]
    pub(super) fn warn(
        &mut self,
        thread: usize,
        at: InstructionPair,
        detail: impl FnOnce() -> String,
    ) {
        let found = self.occurrence(thread, Location::NONE);
        let key = (HazardKind::BarrierDivergence, at.pc, at.other);
        self.warned.add(key, found, detail);
    }
}
