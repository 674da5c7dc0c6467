//! Blocks on all cores, and the report of what they did.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use super::block::{Block, Progress};
use super::cta::{Context, Spare};
use super::launch::{BlockOrder, BlockSet, End, Launch, LaunchReport};
use super::listed::list;
use super::printed::Output;
use super::stop::{Assertion, Halt, Stop};
use super::trace::BlockTrace;
use super::watch::BlockAccesses;
use crate::arch::Arch;
use crate::counters::Counters;
use crate::hazard::report::{Collector, Found};
use crate::hazard::{HazardKind, Space};
use crate::lower::program::{NONE, Program};

/// Instructions after which a block lets the next one run: it may wait for that one.
const SLICE: u64 = 1 << 20;
/// The same where blocks run one after the other: what waits costs less.
const SLICE_TOGETHER: u64 = 1 << 16;
/// The same where they are to alternate.
const SHORT_SLICE: u64 = 256;
/// Blocks a worker keeps unfinished, unless all it has wait for others.
const RESIDENT: usize = 64;

/// Failed assertions that a launch reports.
const ASSERTIONS_MAX: usize = 1024;

#[derive(Default)]
struct Total {
    counters: Counters,
    found: Collector,
    warned: Collector,
    /// Lowest block that stopped, and why.
    stopped: Option<(u32, Halt)>,
    printed: Output,
    assertions: Vec<(u32, Assertion)>,
    traces: Vec<BlockTrace>,
    accesses: Vec<BlockAccesses>,
}

/// Runs the chosen blocks.
pub(super) fn run_blocks(context: &Context<'_>, launch: &Launch) -> LaunchReport {
    let all: u64 = context.grid.iter().map(|d| u64::from(*d)).product();
    let chosen = launch.chosen();
    let block = |i: u64| match &launch.blocks {
        BlockSet::All => Some(i as u32),
        BlockSet::List(list) => Some(list[i as usize])
            .filter(|b| *b < all)
            .map(|b| b as u32),
    };
    let threads = if context.together {
        1
    } else {
        launch.workers()
    };
    {
        let mut waits = context.waits();
        waits.unfinished = chosen;
        waits.capacity = context.blocks_each * u64::from(context.arch.sm_count);
    }
    let place = Places::of(context.order, chosen);
    let next = AtomicUsize::new(0);
    let take = || {
        let i = next.fetch_add(1, Relaxed) as u64;
        (i < chosen).then(|| block(place.of_turn(i)))
    };
    let total = Mutex::new(Total::default());
    if threads == 1 {
        work(context, &take, &total);
    } else {
        std::thread::scope(|scope| {
            // Where the system gives no more threads, those that are there do all the work.
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

/// Blocks that a multiprocessor holds at once, by threads and shared memory: a block that waits for one
/// beyond them waits for ever. (Registers are not counted: they are known after the assembler only.)
pub(super) fn blocks_each(arch: &Arch, program: &Program, launch: &Launch) -> u64 {
    let warps = launch.block.iter().product::<u32>().div_ceil(32);
    let shared = program.shared.iter().map(|e| e.bytes).sum::<u32>();
    // The driver keeps 1 KiB of each block's shared memory.
    let shared = shared.saturating_add(launch.dynamic_shared_bytes) + 1024;
    let each = (arch.max_threads_per_sm / (warps * 32))
        .min(arch.max_blocks_per_sm)
        .min(arch.shared_bytes_per_sm / shared);
    each.max(1).into()
}

/// The order of blocks: a number for each turn.
#[derive(Debug)]
pub(super) struct Places {
    order: BlockOrder,
    count: u64,
    /// Turns are this many blocks apart (no divisor of the count), from this one on.
    step: u64,
    start: u64,
}

impl Places {
    pub(super) fn of(order: BlockOrder, count: u64) -> Places {
        let (mut step, mut start) = (1, 0);
        if let BlockOrder::Shuffled { seed } = order
            && count > 2
        {
            // Two rounds of a multiplicative hash: seeds that are close give places that are not.
            let mixed = (seed ^ seed >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mixed = (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
            start = mixed % count;
            step = 1 + (mixed >> 17) % (count - 1);
            while greatest_common_divisor(step, count) != 1 {
                step = step % (count - 1) + 1;
            }
        }
        Places {
            order,
            count,
            step,
            start,
        }
    }

    pub(super) fn of_turn(&self, turn: u64) -> u64 {
        match self.order {
            BlockOrder::Ascending | BlockOrder::Interleaved => turn,
            BlockOrder::Descending => self.count - 1 - turn,
            BlockOrder::LastFirst if turn == 0 => self.count - 1,
            BlockOrder::LastFirst => turn - 1,
            BlockOrder::Shuffled { .. } => {
                // Blocks are fewer than 2^32: no overflow.
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

/// The blocks that a worker has started and not finished, the one that ran least lately first.
#[derive(Default)]
struct Started<'a> {
    queue: VecDeque<(u64, Block<'a>)>,
    count: u64,
    old: bool,
}

impl<'a> Started<'a> {
    /// The next block to run. Every second one is the one that was started first, of those that do
    /// not wait: a block that does not end uses up its budget before others have used up much.
    fn next(&mut self) -> Option<(u64, Block<'a>)> {
        self.old = !self.old;
        if !self.old {
            let running = self.queue.iter().enumerate();
            let running = running.filter(|(_, (_, block))| !block.waits());
            if let Some((at, _)) = running.min_by_key(|(_, (number, _))| *number) {
                return self.queue.remove(at);
            }
        }
        self.queue.pop_front()
    }

    fn start(&mut self, block: Block<'a>) {
        self.count += 1;
        self.queue.push_front((self.count, block));
    }

    /// Whether it is the turn of a new block, and one more may be started.
    fn has_room(&self) -> bool {
        let waits = |(_, block): &(u64, Block<'_>)| block.waits();
        (self.queue.is_empty() || !self.old)
            && (self.queue.len() < RESIDENT || self.queue.iter().all(waits))
    }
}

fn work(context: &Context<'_>, take: &impl Fn() -> Option<Option<u32>>, total: &Mutex<Total>) {
    let mut started = Started::default();
    let mut mine = Total::default();
    let mut spare = Spare::default();
    let mut more = true;
    let slice = match context.order {
        BlockOrder::Interleaved if context.together => SHORT_SLICE,
        _ if context.together => SLICE_TOGETHER,
        _ => SLICE,
    };
    loop {
        if more && started.has_room() && context.enter() {
            let taken = take();
            if let (Some(Some(b)), Some(stop)) = (taken, context.expired()) {
                mine.expire(context, b, stop);
            }
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
        let Some((number, mut block)) = started.next() else {
            if !more {
                break;
            }
            // Others hold all places of the GPU.
            std::thread::yield_now();
            continue;
        };
        if let Progress::More = block.run(slice) {
            started.queue.push_back((number, block));
            continue;
        }
        block.finish();
        mine.add(&mut block);
        spare = block.spare();
    }
    let mut all = total.lock().unwrap_or_else(PoisonError::into_inner);
    all.merge(mine);
}

impl Total {
    /// Adds what a block that ended did.
    fn add(&mut self, block: &mut Block<'_>) {
        let team = &mut block.team;
        self.merge(Total {
            counters: team.counters,
            found: std::mem::take(&mut team.found),
            warned: std::mem::take(&mut team.warned),
            stopped: team.halted.map(|why| (team.block, why)),
            printed: Output::of_block(team.block, std::mem::take(&mut team.printed)),
            assertions: std::mem::take(&mut team.assertions)
                .into_iter()
                .map(|failed| (team.block, failed))
                .collect(),
            traces: team.trace.take().map(|trace| *trace).into_iter().collect(),
            accesses: team.accesses.take().into_iter().collect(),
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
        if self.assertions.len() > 2 * ASSERTIONS_MAX {
            self.cut_assertions();
        }
        // A block that another one stopped says nothing about the cause.
        let rank = |(block, halt): (u32, Halt)| (halt.0 == Stop::Cancelled, block);
        let both = self.stopped.into_iter().chain(other.stopped);
        self.stopped = both.min_by_key(|stopped| rank(*stopped));
    }

    /// Stops the launch before a block is started.
    fn expire(&mut self, context: &Context<'_>, block: u32, stop: Stop) {
        if context.stop.swap(true, Relaxed) {
            return;
        }
        let found = Found::at(block, 0, Space::Generic, 0);
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
    hazards.truncate(launch.checks.max_hazards);
    let mut warnings = list(context, total.warned);
    warnings.truncate(launch.checks.max_hazards);
    let mut traces = total.traces;
    traces.sort_unstable_by_key(|trace| trace.block);
    let mut accesses = total.accesses;
    accesses.sort_unstable_by_key(|of_block| of_block.block);
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
        counters: total.counters,
        traces,
        accesses,
    }
}
