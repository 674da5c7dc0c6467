//! Attempts at a launch: first with isolated blocks on all cores, then serialized where blocks
//! interact.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use super::cluster::Cluster;
use super::cta::{Context, fresh_state};
use super::launch::{Depth, Launch, LaunchReport, Schedule};
use super::others::Others;
use super::placement::Placement;
use super::shadow_values::GlobalShadows;
use super::workers::{blocks_each, run_blocks};
use crate::arch::Arch;
use crate::lower::program::Program;
use crate::memory::GlobalMemory;
use ptx::skeleton;

/// A validated launch, ready to run.
pub(super) struct Work<'a> {
    pub(super) program: &'a Program,
    pub(super) arch: &'a Arch,
    pub(super) launch: &'a Launch,
    pub(super) params: Vec<u8>,
    pub(super) globals: Vec<u64>,
    /// Address of the workspace of a cooperative launch, or 0.
    pub(super) workspace: u64,
    /// [`Launch::others`].
    pub(super) others: Others,
}

/// Execution mode of the blocks in one attempt.
#[derive(Clone, Copy, PartialEq)]
enum Attempt {
    /// Isolated: on all cores, each block as if it were alone.
    Isolated,
    /// Serialized; requests full histories of words whose order stays undecided.
    Serialized,
    /// Serialized again, with every access to the requested words recorded.
    SerializedWithHistory,
}

/// Result of an attempt.
struct Outcome {
    report: LaunchReport,
    conflict: bool,
    requested: BTreeSet<u64>,
}

impl Work<'_> {
    /// Runs the blocks on all cores, each isolated from the others. If blocks interacted or did not
    /// finish, undoes the attempt and runs them serialized.
    pub(super) fn run(&self, memory: &mut GlobalMemory) -> LaunchReport {
        let races = self.launch.checks.races;
        let before = memory.snapshot();
        // What `malloc` returns depends on the order of blocks.
        if self.launch.workers() > 1 && !self.program.allocates {
            let isolated = self.run_attempt(memory, Attempt::Isolated);
            // Without race checks nothing tells whether blocks interacted: the first attempt is
            // final.
            if !isolated.conflict || !races {
                return isolated.report;
            }
            memory.undo(memory.attempts, &before);
        }
        let serialized = self.run_attempt(memory, Attempt::Serialized);
        if serialized.requested.is_empty() {
            self.forget(memory);
            return serialized.report;
        }
        memory.undo(memory.attempts, &before);
        // Blocks and schedule are the same in the next attempt, so that the same words come up
        // again.
        for address in &serialized.requested {
            if let Some(found) = memory.find(*address) {
                let word = (found.offset / 4) as usize;
                memory.allocations[found.index].shadow.watch(word);
            }
        }
        let exact = self.run_attempt(memory, Attempt::SerializedWithHistory);
        self.forget(memory);
        exact.report
    }

    fn forget(&self, memory: &GlobalMemory) {
        if self.launch.checks.races {
            memory.live().for_each(|a| a.shadow.forget());
        }
    }

    fn run_attempt(&self, memory: &mut GlobalMemory, mode: Attempt) -> Outcome {
        // Shadow marks carry the attempt's number, so the shadow is never cleared.
        memory.attempts += 1;
        let launch = self.launch;
        // Those of an attempt that was undone are void.
        memory.shadows = launch.shadow_values.then(GlobalShadows::default);
        // With partial synchronisation, one write and one read per word may be too few to decide an
        // order.
        let dynamic_shared = launch.dynamic_shared_bytes.max(self.program.dynamic_least);
        let shared_of_block = fresh_state(self.program, dynamic_shared);
        let cluster = Cluster::new(launch, self.program, shared_of_block.len());
        let partial_sync = self.program.partial_sync || cluster.blocks > 1;
        let can_record = mode == Attempt::Serialized && partial_sync;
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
            launch_number: memory.launches,
            grid: launch.grid,
            block: launch.block,
            workspace: self.workspace,
            others: self.others,
            threads: launch.block.iter().product::<u32>() as usize,
            cluster,
            dynamic_shared,
            fresh_state: cluster.shared_state(shared_of_block),
            registers: launch.registers,
            shared_fill: launch.shared_fill,
            stack_bytes: launch.stack_bytes,
            nesting: launch.nesting,
            clock: launch.clock,
            blocks_each: each,
            placement: Placement::new(
                seed.unwrap_or_default(),
                self.arch.sm_count,
                each,
                self.arch.max_threads_per_sm / 32,
            )
            .with_plain_numbers(launch.plain_numbers),
            params: self.params.clone(),
            globals: self.globals.clone(),
            variables: Mutex::default(),
            waits: Mutex::default(),
            wide: Mutex::new(()),
            stop: AtomicBool::new(false),
            serialized: mode != Attempt::Isolated,
            conflict: AtomicBool::new(false),
            can_record,
            requested: Mutex::default(),
            saves: mode == Attempt::Isolated || can_record,
            order: launch.block_order,
            switches: launch.block_order.switches(),
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
            conflict: context.conflict.load(Relaxed),
            requested: context
                .requested
                .into_inner()
                .unwrap_or_else(PoisonError::into_inner),
        }
    }
}
