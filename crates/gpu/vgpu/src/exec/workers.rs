//! Worker threads that run blocks, and the report of a launch.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use super::block::{Block, Progress};
use super::cluster::Units;
use super::cta::{Context, SpareBuffers};
use super::device_runtime::DeviceOperation;
use super::launch::{BlockOrder, End, Launch, LaunchReport};
use super::listed::{limit, list};
use super::printed::Output;
use super::stop::{Assertion, Halt, Stop};
use super::trace::BlockTrace;
use super::watch::BlockAccesses;
use crate::arch::Arch;
use crate::counters::Counters;
use crate::hazard::HazardKind;
use crate::hazard::report::{Collector, Location, Occurrence};
use crate::lower::program::{NONE, Program};

/// Warp instructions before a block yields to the next one, which it may wait for.
const SLICE_INSTRUCTIONS: u64 = 1 << 20;
/// The same for serialized blocks: a waiting block wastes less.
const SERIALIZED_SLICE_INSTRUCTIONS: u64 = 1 << 16;
/// The same for interleaved blocks.
const INTERLEAVED_SLICE_INSTRUCTIONS: u64 = 256;
/// Unfinished blocks of a worker, unless all of them wait for others.
const MAX_UNFINISHED_BLOCKS: usize = 64;
/// The same where serialized blocks give way before atomic accesses: as many as a GPU holds, since a
/// look-back that stops too early is right among fewer.
const MAX_SWITCHING_BLOCKS: usize = 1024;

/// Switching blocks for each one that is paused, for the first time after one of its first turns.
const BLOCKS_PER_PAUSE: u64 = 16;
/// Turns after which such a block is paused.
const PAUSED_TURNS: u64 = 4;
/// Most turns between two pauses of such a block: a barrier that lets blocks go too early does so at its second
/// use only, perhaps.
const TURNS_BETWEEN_PAUSES: u64 = 16;
/// Rounds of all blocks that a pause takes: later blocks then walk far over each other's results.
const PAUSE_ROUNDS: u64 = 256;

/// Failed assertions that a launch reports.
const ASSERTIONS_MAX: usize = 1024;

#[derive(Default)]
struct Total {
    counters: Counters,
    found: Collector,
    warned: Collector,
    /// Lowest block that stopped, and the reason.
    stopped: Option<(u32, Halt)>,
    printed: Output,
    assertions: Vec<(u32, Assertion)>,
    operations: Vec<(u32, DeviceOperation)>,
    traces: Vec<BlockTrace>,
    accesses: Vec<BlockAccesses>,
}

/// Runs the chosen blocks.
pub(super) fn run_blocks(context: &Context<'_>, launch: &Launch) -> LaunchReport {
    let all: u64 = context.grid.iter().map(|d| u64::from(*d)).product();
    let blocks = context.cluster.blocks as u64;
    let units = Units::new(launch, &context.cluster);
    let chosen = units.len();
    let threads = if context.serialized {
        1
    } else {
        launch.workers()
    };
    {
        let mut waits = context.waits();
        waits.unfinished = chosen;
        let capacity = context.blocks_each * u64::from(context.arch.sm_count);
        waits.capacity = (capacity / blocks).max(1);
    }
    let place = Permutation::new(context.order, chosen);
    let next = AtomicUsize::new(0);
    let take = || {
        let i = next.fetch_add(1, Relaxed) as u64;
        (i < chosen).then(|| units.get(place.apply(i), all / blocks))
    };
    let total = Mutex::new(Total::default());
    if threads == 1 {
        work(context, &take, &total);
    } else {
        std::thread::scope(|scope| {
            // If the system refuses more threads, the existing ones do all the work.
            for _ in 1..threads {
                let worker = || work(context, &take, &total);
                if std::thread::Builder::new()
                    .spawn_scoped(scope, worker)
                    .is_err()
                {
                    break;
                }
            }
            work(context, &take, &total);
        });
    }
    report(
        context,
        launch,
        total.into_inner().unwrap_or_else(PoisonError::into_inner),
    )
}

/// Returns the number of blocks that a multiprocessor holds at once, by threads and shared memory:
/// a block that waits for one beyond them waits forever. (Registers are not counted: only the
/// assembler knows them.)
pub(super) fn blocks_each(arch: &Arch, program: &Program, launch: &Launch) -> u64 {
    let warps = launch.block.iter().product::<u32>().div_ceil(32);
    let shared = program.shared.iter().map(|e| e.bytes).sum::<u32>();
    // The driver reserves 1 KiB of shared memory per block.
    let shared = shared.saturating_add(launch.dynamic_shared_bytes) + 1024;
    let each = (arch.max_threads_per_sm / (warps * 32))
        .min(arch.max_blocks_per_sm)
        .min(arch.shared_bytes_per_sm / shared);
    each.max(1).into()
}

/// Order of blocks: the block number for each turn.
#[derive(Debug)]
pub(super) struct Permutation {
    order: BlockOrder,
    count: u64,
    /// Turns are this many blocks apart (coprime to the count), starting at `start`.
    step: u64,
    start: u64,
}

impl Permutation {
    pub(super) fn new(order: BlockOrder, count: u64) -> Permutation {
        let (mut step, mut start) = (1, 0);
        if let BlockOrder::Shuffled { seed } = order
            && count > 2
        {
            // Two rounds of a multiplicative hash: close seeds produce unrelated orders.
            let mixed = (seed ^ seed >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mixed = (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
            start = mixed % count;
            step = 1 + (mixed >> 17) % (count - 1);
            while greatest_common_divisor(step, count) != 1 {
                step = step % (count - 1) + 1;
            }
        }
        Permutation {
            order,
            count,
            step,
            start,
        }
    }

    pub(super) fn apply(&self, turn: u64) -> u64 {
        match self.order {
            BlockOrder::Ascending | BlockOrder::Interleaved => turn,
            BlockOrder::Descending => self.count - 1 - turn,
            BlockOrder::LastFirst if turn == 0 => self.count - 1,
            BlockOrder::LastFirst => turn - 1,
            BlockOrder::Shuffled { .. } => {
                // There are fewer than 2^32 blocks: no overflow.
                (self.start + turn * self.step) % self.count
            }
        }
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
    }
}

/// A started block.
struct Started<'a> {
    number: u64,
    block: Block<'a>,
    /// Its turns before its next pause; 0 if it is never paused.
    before_pause: u64,
    /// The turn of the queue until which it is paused.
    wakes: u64,
}

/// Unfinished blocks of a worker, the least recently run first.
#[derive(Default)]
struct BlockQueue<'a> {
    queue: VecDeque<Started<'a>>,
    count: u64,
    old: bool,
    /// Every block gets its turn before any gets a second one: where blocks give way before atomic
    /// accesses, as many as possible are between two of them at once.
    round_robin: bool,
    turns: u64,
    /// State of the generator that chooses the blocks to pause.
    pauses: u64,
}

impl<'a> BlockQueue<'a> {
    /// Returns the next block to run. Every second one is the oldest that does not wait: an endless
    /// block then uses up its budget before others have used up much.
    fn next(&mut self) -> Option<Started<'a>> {
        self.turns += 1;
        if self.round_robin {
            return self.next_awake();
        }
        self.old = !self.old;
        if !self.old {
            let running = self.queue.iter().enumerate();
            let running = running.filter(|(_, one)| !one.block.waits());
            if let Some((at, _)) = running.min_by_key(|(_, one)| one.number) {
                return self.queue.remove(at);
            }
        }
        self.queue.pop_front()
    }

    /// Returns the next block in turn. While it is paused, others go on until all of them wait.
    fn next_awake(&mut self) -> Option<Started<'a>> {
        let turns = self.turns;
        let mut at = 0;
        if self.queue.front()?.wakes > turns {
            let mut all = self.queue.iter();
            let awake = all.position(|one| one.wakes <= turns && !one.block.waits());
            at = awake.unwrap_or(0);
        }
        self.queue.remove(at)
    }

    fn start(&mut self, block: Block<'a>) {
        self.count += 1;
        let before_pause = match self.round_robin {
            true => self.draw_pause(),
            false => 0,
        };
        self.queue.push_front(Started {
            number: self.count,
            block,
            before_pause,
            wakes: 0,
        });
    }

    /// Returns the turns of a new block before its first pause, or 0.
    fn draw_pause(&mut self) -> u64 {
        let drawn = self.draw();
        match drawn.is_multiple_of(BLOCKS_PER_PAUSE) {
            true => 1 + (drawn >> 32) % PAUSED_TURNS,
            false => 0,
        }
    }

    fn draw(&mut self) -> u64 {
        // xorshift64: any choice is valid; it only has to be reproducible.
        self.pauses ^= self.pauses << 13;
        self.pauses ^= self.pauses >> 7;
        self.pauses ^= self.pauses << 17;
        self.pauses
    }

    /// Puts a block to the end of the queue, since it may wait for one that has not run yet. A switching
    /// block may be paused there: a real multiprocessor, too, lets a block wait while others go on.
    fn put_back(&mut self, mut started: Started<'a>) {
        if started.before_pause == 1 {
            started.wakes = self.turns + PAUSE_ROUNDS * self.queue.len() as u64;
            // One more than drawn: the turn that ends here counts.
            started.before_pause = 2 + (self.draw() >> 32) % TURNS_BETWEEN_PAUSES;
        }
        started.before_pause = started.before_pause.saturating_sub(1);
        self.queue.push_back(started);
    }

    /// Reports whether it is the turn of a new block, and one more may be started.
    fn has_room(&self) -> bool {
        let waits = |one: &Started<'_>| one.block.waits();
        let most = match self.round_robin {
            true => MAX_SWITCHING_BLOCKS,
            false => MAX_UNFINISHED_BLOCKS,
        };
        (self.queue.is_empty() || !self.old)
            && (self.queue.len() < most || self.queue.iter().all(waits))
    }
}

fn work(context: &Context<'_>, take: &impl Fn() -> Option<Option<u32>>, total: &Mutex<Total>) {
    let mut started = BlockQueue {
        round_robin: context.switches && context.serialized,
        pauses: context.seed.unwrap_or_default() | 1,
        ..BlockQueue::default()
    };
    let mut mine = Total::default();
    let mut spare = SpareBuffers::default();
    let mut more = true;
    let slice = match context.order {
        BlockOrder::Interleaved if context.serialized => INTERLEAVED_SLICE_INSTRUCTIONS,
        _ if context.serialized => SERIALIZED_SLICE_INSTRUCTIONS,
        _ => SLICE_INSTRUCTIONS,
    };
    loop {
        if more && started.has_room() && context.enter() {
            let taken = take();
            if let (Some(Some(b)), Some(stop)) = (taken, context.expired()) {
                mine.expire(context, b, stop);
            }
            // `Some(None)` is a listed block outside the grid, which is skipped.
            match taken.filter(|_| !context.stop.load(Relaxed)) {
                Some(Some(b)) => {
                    started.start(Block::new(context, b, std::mem::take(&mut spare)));
                }
                none => {
                    let mut waits = context.waits();
                    waits.resident -= 1;
                    waits.unfinished -= u64::from(none.is_some());
                    more = none.is_some();
                }
            }
        }
        let Some(mut turn) = started.next() else {
            if !more {
                break;
            }
            // Other workers hold all block slots of the GPU.
            std::thread::yield_now();
            continue;
        };
        if let Progress::More = turn.block.run(slice) {
            started.put_back(turn);
            continue;
        }
        turn.block.finish();
        mine.add(&mut turn.block);
        spare = turn.block.spare();
    }
    let mut all = total.lock().unwrap_or_else(PoisonError::into_inner);
    all.merge(mine);
}

impl Total {
    /// Adds the results of a finished block.
    fn add(&mut self, block: &mut Block<'_>) {
        let cta = &mut block.cta;
        self.merge(Total {
            counters: cta.counters,
            found: std::mem::take(&mut cta.found),
            warned: std::mem::take(&mut cta.warned),
            stopped: cta.halted.map(|why| (cta.block, why)),
            printed: Output::of_block(cta.block, std::mem::take(&mut cta.printed)),
            assertions: std::mem::take(&mut cta.assertions)
                .into_iter()
                .map(|failed| (cta.block, failed))
                .collect(),
            operations: std::mem::take(&mut cta.runtime.operations)
                .into_iter()
                .map(|operation| (cta.block, operation))
                .collect(),
            traces: cta.trace.take().unwrap_or_default(),
            accesses: cta.take_accesses(),
        });
    }

    fn merge(&mut self, mut other: Total) {
        self.counters += other.counters;
        self.found.merge(other.found);
        self.warned.merge(other.warned);
        self.traces.append(&mut other.traces);
        self.accesses.append(&mut other.accesses);
        self.printed.merge(other.printed);
        self.assertions.append(&mut other.assertions);
        self.operations.append(&mut other.operations);
        if self.assertions.len() > 2 * ASSERTIONS_MAX {
            self.cut_assertions();
        }
        // The lowest block is reported, whichever worker finished first. A block that another one
        // stopped says nothing about the cause.
        let rank = |(block, halt): (u32, Halt)| (halt.0 == Stop::Cancelled, block);
        let both = self.stopped.into_iter().chain(other.stopped);
        self.stopped = both.min_by_key(|stopped| rank(*stopped));
    }

    /// Stops the launch before a block is started.
    fn expire(&mut self, context: &Context<'_>, block: u32, stop: Stop) {
        // The launch ends once: only the worker that stops it reports the limit.
        if context.stop.swap(true, Relaxed) {
            return;
        }
        let block = context.block_of(block, 0);
        let found = Occurrence::new(block, 0, Location::NONE);
        self.found.add((HazardKind::Timeout, 0, NONE), found, || {
            let why = match stop {
                Stop::Deadline => "the deadline passed",
                _ => "the instruction budget of the launch ran out",
            };
            let [x, y, z] = context.ctaid(block.into());
            format!("{why} before block ({x}, {y}, {z}) started")
        });
        self.stopped = Some((block, Halt(stop, "it ran too long")));
    }

    /// Keeps the assertions of the lowest blocks.
    fn cut_assertions(&mut self) {
        // Stable: those of a block stay in the order of execution.
        self.assertions.sort_by_key(|(block, _)| *block);
        self.assertions.truncate(ASSERTIONS_MAX);
    }
}

fn report(context: &Context<'_>, launch: &Launch, mut total: Total) -> LaunchReport {
    total.cut_assertions();
    let (output, output_dropped) = total.printed.join();
    let mut hazards = list(context, total.found);
    // Shortened after sorting by kind and instruction: which ones are kept depends on no order of
    // blocks.
    limit(&mut hazards, launch.checks.max_hazards);
    let mut warnings = list(context, total.warned);
    limit(&mut warnings, launch.checks.max_hazards);
    let mut traces = total.traces;
    // Workers finish in any order.
    traces.sort_unstable_by_key(|trace| trace.block);
    let mut accesses = total.accesses;
    accesses.sort_unstable_by_key(|of_block| of_block.block);
    let mut operations = total.operations;
    // Stable: those of a block stay in the order of its calls.
    operations.sort_by_key(|(block, _)| *block);
    let end = match total.stopped {
        None => End::Completed,
        Some((_, Halt(_, why))) => End::Stopped(why.to_owned()),
    };
    LaunchReport {
        hazards,
        warnings,
        end,
        stop: total.stopped.map(|(_, Halt(stop, _))| stop),
        assertions: total
            .assertions
            .into_iter()
            .map(|(_, failed)| failed)
            .collect(),
        output,
        output_dropped,
        operations: operations
            .into_iter()
            .map(|(_, operation)| operation)
            .collect(),
        counters: total.counters,
        traces,
        accesses,
    }
}
