//! Attempts at a launch: its blocks apart on all cores, and where that could make a difference, one
//! after the other.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use super::cta::{Context, fresh_state};
use super::launch::{Depth, Launch, LaunchReport, Schedule};
use super::placement::Placement;
use super::workers::{blocks_each, run_blocks};
use crate::arch::Arch;
use crate::lower::program::Program;
use crate::memory::GlobalMemory;
use ptx::skeleton;

/// A launch that was found legal.
pub(super) struct Work<'a> {
    pub(super) program: &'a Program,
    pub(super) arch: &'a Arch,
    pub(super) launch: &'a Launch,
    pub(super) params: Vec<u8>,
    pub(super) globals: Vec<u64>,
    /// Address of what a cooperative launch is given, or 0.
    pub(super) workspace: u64,
    /// [`Launch::meets_alone`].
    pub(super) meets_alone: Option<u64>,
}

/// How blocks run in one attempt.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// On all cores, as if each were alone.
    Apart,
    /// One after the other, asking for words about which too little is remembered.
    Together,
    /// The same once more, with every access to those words remembered.
    Exactly,
}

/// What came of an attempt.
struct Outcome {
    report: LaunchReport,
    met: bool,
    asked: BTreeSet<u64>,
}

impl Work<'_> {
    /// Runs the blocks on all cores where that can make no difference: each as if it were alone, and
    /// all to their ends. Else what was done is undone, and they run together.
    pub(super) fn run(&self, memory: &mut GlobalMemory) -> LaunchReport {
        let races = self.launch.checks.races;
        let before = memory.snapshot();
        // What `malloc` returns depends on the order of blocks.
        if self.launch.workers() > 1 && !self.program.allocates {
            let apart = self.attempt(memory, Way::Apart);
            if !apart.met || !races {
                return apart.report;
            }
            memory.undo(memory.attempts, &before);
        }
        let together = self.attempt(memory, Way::Together);
        if together.asked.is_empty() {
            self.forget(memory);
            return together.report;
        }
        memory.undo(memory.attempts, &before);
        for address in &together.asked {
            if let Some(found) = memory.find(*address) {
                let word = (found.offset / 4) as usize;
                memory.allocations[found.index].shadow.watch(word);
            }
        }
        let exact = self.attempt(memory, Way::Exactly);
        self.forget(memory);
        exact.report
    }

    fn forget(&self, memory: &GlobalMemory) {
        if self.launch.checks.races {
            memory.live().for_each(|a| a.shadow.forget());
        }
    }

    fn attempt(&self, memory: &mut GlobalMemory, way: Way) -> Outcome {
        memory.attempts += 1;
        let launch = self.launch;
        // Where fences or the like order threads, two accesses a word may be too few to decide.
        let can_ask = way == Way::Together && self.program.partial_sync;
        let dynamic_shared = launch.dynamic_shared_bytes.max(self.program.dynamic_least);
        let seed = match launch.schedule {
            Schedule::RoundRobin => None,
            Schedule::Random { seed } => Some(seed),
        };
        let each = blocks_each(self.arch, self.program, launch);
        let context = Context {
            program: self.program,
            memory,
            arch: self.arch,
            checks: &launch.checks,
            traced: launch.trace,
            launch: memory.attempts,
            grid_id: memory.launches,
            grid: launch.grid,
            block: launch.block,
            workspace: self.workspace,
            meets_alone: self.meets_alone,
            threads: launch.block.iter().product::<u32>() as usize,
            dynamic_shared,
            fresh_state: fresh_state(self.program, dynamic_shared),
            shared_fill: launch.shared_fill,
            clock: launch.clock,
            blocks_each: each,
            placement: Placement::new(
                seed.unwrap_or_default(),
                self.arch.sm_count,
                each,
                self.arch.max_threads_per_sm / 32,
            ),
            params: self.params.clone(),
            globals: self.globals.clone(),
            variables: Mutex::default(),
            waits: Mutex::default(),
            wide: Mutex::new(()),
            stop: AtomicBool::new(false),
            together: way != Way::Apart,
            met: AtomicBool::new(false),
            can_ask,
            asked: Mutex::default(),
            saves: way == Way::Apart || can_ask,
            order: launch.block_order,
            budget: launch.instruction_budget,
            skip_unless: match launch.depth {
                Depth::Whole => 0,
                Depth::Control => skeleton::CONTROL,
                Depth::Addresses => skeleton::ADDRESSES,
            },
            deadline: launch.wall_deadline,
            lanes: AtomicU64::new(0),
            heap: memory
                .heap
                .as_ref()
                .map_or(usize::MAX, |heap| heap.buffer.0),
            lane_budget: launch.lane_budget,
            seed,
            watch: launch.watch.as_deref(),
            rounding: launch.rounding,
        };
        let report = run_blocks(&context, launch);
        Outcome {
            report,
            met: context.met.load(Relaxed),
            asked: context
                .asked
                .into_inner()
                .unwrap_or_else(PoisonError::into_inner),
        }
    }
}
