//! Blocks on all cores, and the report of what they did.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use super::block::{Block, Progress};
use super::cta::{Context, Spare};
use super::launch::{BlockSet, End, Launch, LaunchReport};
use super::trace::BlockTrace;
use crate::counters::Counters;
use crate::hazard::report::Collector;
use crate::hazard::{Hazard, SourceLine};
use crate::lower::program::{NONE, Program};

/// Instructions after which a block lets the next one run: it may wait for that one.
const SLICE: u64 = 1 << 20;
/// Blocks a worker keeps unfinished, unless all it has wait for others.
const RESIDENT: usize = 64;

#[derive(Default)]
struct Total {
    counters: Counters,
    found: Collector,
    /// Lowest block that stopped, and why.
    stopped: Option<(u32, &'static str)>,
    traces: Vec<BlockTrace>,
}

/// Runs the chosen blocks.
pub(super) fn run_blocks(context: &Context<'_>, launch: &Launch) -> LaunchReport {
    let all: u64 = context.grid.iter().map(|d| u64::from(*d)).product();
    let chosen: u64 = match &launch.blocks {
        BlockSet::All => all,
        BlockSet::List(list) => list.len() as u64,
    };
    let block = |i: usize| match &launch.blocks {
        BlockSet::All => Some(i as u32),
        BlockSet::List(list) => Some(list[i]).filter(|b| *b < all).map(|b| b as u32),
    };
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let threads = if launch.threads == 0 {
        cores
    } else {
        launch.threads
    };
    let threads = threads.min(chosen.max(1) as usize);
    {
        let mut waits = context.waits();
        waits.unfinished = chosen;
        waits.capacity = capacity(context);
    }
    let next = AtomicUsize::new(0);
    let take = || {
        let i = next.fetch_add(1, Relaxed);
        ((i as u64) < chosen).then(|| block(i))
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

/// Blocks the GPU holds at once, by threads and shared memory: a block that waits for one beyond
/// them waits for ever. (Registers are not counted: they are known after the assembler only.)
fn capacity(context: &Context<'_>) -> u64 {
    let arch = context.arch;
    let warps = context.threads.div_ceil(32) as u32;
    let shared = context.program.shared.iter().map(|e| e.bytes).sum::<u32>();
    // The driver keeps 1 KiB of each block's shared memory.
    let shared = shared.saturating_add(context.dynamic_shared) + 1024;
    let per_sm = (arch.max_threads_per_sm / (warps * 32))
        .min(arch.max_blocks_per_sm)
        .min(arch.shared_bytes_per_sm / shared);
    u64::from(per_sm.max(1)) * u64::from(arch.sm_count)
}

fn work(context: &Context<'_>, take: &impl Fn() -> Option<Option<u32>>, total: &Mutex<Total>) {
    let mut queue: VecDeque<Block<'_>> = VecDeque::new();
    let mut mine = Total::default();
    let mut spare = Spare::default();
    let mut more = true;
    loop {
        let room = queue.len() < RESIDENT || queue.iter().all(Block::waits);
        if more && room && context.enter() {
            match take().filter(|_| !context.stop.load(Relaxed)) {
                Some(Some(b)) => {
                    queue.push_front(Block::new(context, b, std::mem::take(&mut spare)))
                }
                none => {
                    let mut waits = context.waits();
                    waits.resident -= 1;
                    waits.unfinished -= u64::from(none.is_some());
                    more = none.is_some();
                }
            }
        }
        let Some(mut block) = queue.pop_front() else {
            if !more {
                break;
            }
            // Others hold all places of the GPU.
            std::thread::yield_now();
            continue;
        };
        if let Progress::More = block.run(SLICE) {
            queue.push_back(block);
            continue;
        }
        block.finish();
        mine.counters += block.team.counters;
        if let Some(why) = block.team.halted {
            let this = (block.team.block, why);
            mine.stopped = Some(mine.stopped.map_or(this, |s| s.min(this)));
        }
        mine.found.merge(std::mem::take(&mut block.team.found));
        mine.traces
            .extend(block.team.trace.take().map(|trace| *trace));
        spare = block.spare();
    }
    let mut all = total.lock().unwrap_or_else(PoisonError::into_inner);
    all.counters += mine.counters;
    all.found.merge(mine.found);
    all.traces.append(&mut mine.traces);
    if let Some(this) = mine.stopped {
        all.stopped = Some(all.stopped.map_or(this, |s| s.min(this)));
    }
}

fn source(program: &Program, pc: u32) -> Option<SourceLine> {
    let inst = program.code.get(pc as usize)?;
    program
        .sources
        .get(inst.source.checked_sub(1)? as usize)
        .cloned()
}

fn report(context: &Context<'_>, launch: &Launch, total: Total) -> LaunchReport {
    let program = context.program;
    let mut hazards: Vec<Hazard> = total
        .found
        .found
        .into_iter()
        .map(|((kind, pc, other), f)| Hazard {
            kind,
            detail: f.detail,
            source: source(program, pc),
            other: if other == NONE {
                None
            } else {
                source(program, other)
            },
            ptx_line: program.code.get(pc as usize).map_or(0, |i| i.line),
            block: context.ctaid(f.block.into()),
            thread: context.tid(f.thread as usize),
            address: f.address,
            space: f.space,
            repeated: f.repeated,
        })
        .collect();
    hazards.truncate(launch.checks.max_hazards);
    let mut traces = total.traces;
    traces.sort_unstable_by_key(|trace| trace.block);
    let end = match total.stopped {
        None => End::Completed,
        Some((_, why)) => End::Stopped(why.to_owned()),
    };
    LaunchReport {
        hazards,
        end,
        counters: total.counters,
        traces,
    }
}
