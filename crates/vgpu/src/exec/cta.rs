//! What the warps of a block share: memory, barriers, clocks, hazards found.

use crate::table::Table;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::barrier::{Barrier, Reduced};
use super::launch::{BlockOrder, Checks};
use super::mbarrier::Mbarriers;
use super::order::Thread;
use super::placement::Placement;
use super::printed::Printed;
use super::rounding::Rounding;
use super::stop::{Assertion, Halt, Stop};
use super::trace::{self, BlockTrace};
use super::warp::{Warp, filled};
use super::watch::{BlockAccesses, Watch};
use crate::arch::Arch;
use crate::counters::Counters;
use crate::hazard::clock::Clocks;
use crate::hazard::global::OpenChunk;
use crate::hazard::history::Lists;
use crate::hazard::report::{Collector, Found};
use crate::hazard::shadow::{BlockShadow, Conflict};
use crate::hazard::sync::Variable;
use crate::hazard::{HazardKind, Space};
use crate::lower::program::{NONE, Program};
use crate::memory::{Allocation, GlobalMemory};

/// What all blocks of a launch share.
pub(super) struct Context<'a> {
    pub(super) program: &'a Program,
    pub(super) memory: &'a GlobalMemory,
    pub(super) arch: &'a Arch,
    pub(super) checks: &'a Checks,
    /// Whether blocks leave traces.
    pub(super) traced: bool,
    /// Number of the attempt, which its marks in the shadow bear, and of the launch (`%gridid`).
    pub(super) launch: u32,
    pub(super) grid_id: u32,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    /// Address of what a cooperative grid meets at; 0 where the launch is not cooperative.
    pub(super) workspace: u64,
    /// The word of it at which one block counts as all.
    pub(super) meets_alone: Option<u64>,
    pub(super) threads: usize,
    pub(super) dynamic_shared: u32,
    /// State of a block's shared memory at its beginning.
    pub(super) fresh_state: Vec<u8>,
    pub(super) shared_fill: u32,
    /// Added to where the clock of each block begins.
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
    /// Blocks run one after the other, in an order that the launch decides; else on any core.
    pub(super) together: bool,
    /// What was found apart counts for nothing: blocks met, or not all came to their end.
    pub(super) met: AtomicBool,
    /// Words can be asked for, to be remembered better in another attempt.
    pub(super) can_ask: bool,
    /// Addresses of those words.
    pub(super) asked: Mutex<BTreeSet<u64>>,
    /// Memory is kept as it was, for another attempt.
    pub(super) saves: bool,
    pub(super) order: BlockOrder,
    pub(super) budget: u64,
    /// The slice that instructions must be in to be executed; zero executes all.
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

/// Which blocks of a launch wait in loops. Blocks report in rounds: what one saw before another
/// changed memory counts for nothing, so a deadlock is a round in which all that are left repeat
/// themselves and none had changed memory since its report in the round before.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// Blocks not done, those not started included.
    pub(super) unfinished: u64,
    /// Those of them that were started, and how many at once the GPU holds.
    pub(super) resident: u64,
    pub(super) capacity: u64,
    /// Those of them that repeat themselves, as of this round.
    pub(super) stalled: u64,
    pub(super) round: u64,
    /// Some block changed memory since its report in the round before.
    pub(super) changed: bool,
}

impl Waits {
    /// Whether another block may start: a block that waits leaves its place to nobody.
    pub(super) fn admits(&self) -> bool {
        self.resident < self.capacity
    }

    /// Whether all blocks that can run repeat themselves.
    pub(super) fn all_stalled(&self) -> bool {
        let more = self.resident < self.unfinished && self.admits();
        self.stalled >= self.resident && !more
    }
}

impl Context<'_> {
    pub(super) fn waits(&self) -> MutexGuard<'_, Waits> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What blocks do depends on one another: nothing more is worth doing apart.
    pub(super) fn meet(&self) {
        self.met.store(true, Relaxed);
        self.stop.store(true, Relaxed);
    }

    /// Asks for every access to a word to be remembered in another attempt.
    pub(super) fn ask(&self, address: u64) {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.len() < MAX_ASKED {
            asked.insert(address);
        }
    }

    /// Keeps what a chunk holds, before the launch's first write to it.
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

    /// Takes a place for one more block, if the GPU has one.
    pub(super) fn enter(&self) -> bool {
        let mut waits = self.waits();
        let admitted = waits.admits();
        waits.resident += u64::from(admitted);
        admitted
    }

    /// Thread index of a linear thread.
    pub(super) fn tid(&self, thread: usize) -> [u32; 3] {
        let t = thread as u32;
        let [x, y, _] = self.block;
        [t % x, t / x % y, t / (x * y)]
    }

    /// Block index of a linear block.
    pub(super) fn ctaid(&self, block: u64) -> [u32; 3] {
        let (x, y) = (u64::from(self.grid[0]), u64::from(self.grid[1]));
        [
            (block % x) as u32,
            (block / x % y) as u32,
            (block / (x * y)) as u32,
        ]
    }
}

/// Words whose accesses are all remembered in one launch. A kernel that leaves more undecided is
/// judged by whether the thread has acquired anything at all.
const MAX_ASKED: usize = 1 << 16;

/// Bits of a shared word: low four, bytes written; high four, bytes that exist.
pub(super) const EXISTS: u32 = 4;

/// Buffers that the blocks of one worker use one after the other.
#[derive(Default)]
pub(super) struct Spare {
    shared: Vec<u32>,
    shared_state: Vec<u8>,
    shadow: BlockShadow,
    /// Time of the last mark in the shadow.
    time: u32,
    pub(super) warps: Vec<Warp>,
}

/// The state of shared memory that nobody wrote: which bytes exist.
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
            state[byte as usize / 4] |= 1 << (EXISTS + byte % 4);
        }
    }
    state
}

/// State shared by the warps of one block.
pub(super) struct Cta<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) block: u32,
    pub(super) shared: Vec<u32>,
    pub(super) shared_state: Vec<u8>,
    pub(super) shadow: BlockShadow,
    /// Histories of global words, where blocks run apart.
    pub(super) lists: Lists,
    pub(super) clocks: Clocks,
    pub(super) threads: Vec<Thread>,
    pub(super) barriers: Vec<Barrier>,
    pub(super) mbarriers: Mbarriers,
    /// Synchronisation variables in shared memory.
    pub(super) variables: Table<u64, Arc<Variable>>,
    pub(super) counters: Counters,
    pub(super) found: Collector,
    /// What is worth a warning only.
    pub(super) warned: Collector,
    /// Program counter of the instruction in hand.
    pub(super) pc: u32,
    /// Stores so far that changed a value.
    pub(super) version: u64,
    /// Allocation of the last global access.
    pub(super) last: usize,
    /// Why the block cannot go on.
    pub(super) halted: Option<Halt>,
    /// Threads that have not exited.
    pub(super) live: usize,
    /// Lanes released by a barrier: warp and mask.
    pub(super) released: Vec<(usize, u32)>,
    /// Results of barrier reductions.
    pub(super) reduced: Vec<Reduced>,
    /// What the warps did, where the launch asks for it.
    pub(super) trace: Option<Box<BlockTrace>>,
    /// The warp that runs.
    pub(super) running: usize,
    /// The last wait of the running warp was in vain for all its lanes: the others are next.
    pub(super) polled: bool,
    /// What its clock shows, cycles.
    pub(super) clock: u64,
    /// Watched accesses of the block.
    pub(super) accesses: BlockAccesses,
    /// Text that it printed.
    pub(super) printed: Printed,
    /// Assertions of it that failed.
    pub(super) assertions: Vec<Assertion>,
}

impl<'a> Cta<'a> {
    pub(super) fn new(context: &'a Context<'a>, block: u32, spare: Spare) -> Cta<'a> {
        let words = context.fresh_state.len();
        let mut shared_state = spare.shared_state;
        shared_state.clone_from(&context.fresh_state);
        let mut shadow = spare.shadow;
        shadow.renew(if context.checks.races { words } else { 0 });
        let exact_readers = context.program.partial_sync;
        Cta {
            context,
            block,
            shared: filled(spare.shared, words, context.shared_fill),
            shared_state,
            shadow,
            lists: Lists::default(),
            clocks: Clocks::new(context.threads, exact_readers, spare.time + 1),
            threads: vec![Thread::default(); context.threads],
            barriers: vec![Barrier::default(); 16],
            mbarriers: Mbarriers::default(),
            variables: Table::default(),
            counters: Counters {
                blocks: 1,
                ..Counters::default()
            },
            found: Collector::default(),
            warned: Collector::default(),
            pc: 0,
            version: 1,
            last: 0,
            halted: None,
            live: context.threads,
            released: Vec::new(),
            reduced: Vec::new(),
            trace: trace::begin(context.traced, block, context.threads.div_ceil(32)),
            running: 0,
            polled: false,
            clock: context.clock.wrapping_mul(16) + context.placement.clock(block),
            accesses: BlockAccesses::new(block),
            printed: Printed::default(),
            assertions: Vec::new(),
        }
    }

    /// The buffers of a block that ended. Its marks in the shadow are older than all that another
    /// block does, as if behind a barrier, unless the block left something open.
    pub(super) fn spare(self) -> Spare {
        let time = self.clocks.now();
        let copies = self.threads.iter().flat_map(|t| &t.copies);
        let open = copies.into_iter().any(|group| !group.is_empty());
        let plain = !open && !self.context.program.partial_sync && time < u32::MAX / 2;
        Spare {
            shared: self.shared,
            shared_state: self.shared_state,
            shadow: if plain {
                self.shadow
            } else {
                self.shadow.emptied()
            },
            time: if plain { time } else { 0 },
            warps: Vec::new(),
        }
    }

    /// Notes a hazard of the instruction in hand.
    #[cold]
    pub(super) fn hazard(
        &mut self,
        kind: HazardKind,
        thread: usize,
        (space, address): (Space, u64),
        other: u32,
        detail: impl FnOnce() -> String,
    ) {
        let found = Found::at(self.block, thread, space, address);
        self.found.add((kind, self.pc, other), found, detail);
    }

    /// Notes what is worth a warning: barriers that work, but are not CUDA C++.
    #[cold]
    pub(super) fn warn(
        &mut self,
        thread: usize,
        (pc, other): (u32, u32),
        detail: impl FnOnce() -> String,
    ) {
        let found = Found::at(self.block, thread, Space::Generic, 0);
        let key = (HazardKind::BarrierDivergence, pc, other);
        self.warned.add(key, found, detail);
    }

    /// Notes a race.
    #[cold]
    pub(super) fn race(
        &mut self,
        thread: usize,
        place: (Space, u64),
        writes: bool,
        conflict: Conflict,
    ) {
        let context = self.context;
        let act = if writes { "a write" } else { "a read" };
        let was = match (conflict.was_write, conflict.in_flight) {
            (_, true) => "an asynchronous copy that was not waited for",
            (true, false) => "a write",
            (false, false) => "a read",
        };
        let block = self.block;
        let mut found = Found::at(block, thread, place.0, place.1);
        found.conflict = Some(conflict);
        let key = (HazardKind::Race, self.pc, conflict.pc);
        self.found.add(key, found, || {
            let who = match conflict.block {
                Some(NONE) => "several other blocks".to_owned(),
                Some(b) if b != block => {
                    let [x, y, z] = context.ctaid(b.into());
                    format!("block ({x}, {y}, {z})")
                }
                _ => {
                    let [x, y, z] = context.tid(conflict.thread);
                    format!("thread ({x}, {y}, {z}) of the same block")
                }
            };
            format!(
                "{act} of {} memory is not ordered with {was} by {who}",
                place.0
            )
        });
    }
}
