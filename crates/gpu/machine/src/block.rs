//! Execution of one block: its warps take turns until all have exited.

mod cluster;
mod flow;

use std::sync::Arc;

use cluster::barriers;
use flow::jump;

use super::memory::Memory;
use super::op::{Barrier, Control, Op, Unavailable};
use super::program::Program;
use super::registers::{Banks, Registers, ThreadPosition};
use super::warp::{State, Warp};
use super::warpgroup::WARPS;
use vgpu::exec::others::Others;
use vgpu::exec::trace::{BlockTrace, Run, SignalKind};

/// Instructions per turn of a path.
const MAX_TURN_INSTRUCTIONS: u64 = 2048;

/// Reason why a block was stopped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Invalid access for a GPU, or no next instruction.
    #[error("the SASS stopped at {address:#x}: {what}")]
    Stopped {
        /// Byte address of the instruction.
        address: u32,
        /// Description of the error.
        what: String,
    },
    /// Deadlock: all warps wait.
    #[error("the SASS stopped: all warps wait, the first at {0:#x}")]
    Stuck(u32),
    /// An instruction that the machine does not implement.
    #[error(transparent)]
    Unavailable(Unavailable),
}

/// Barriers of a block.
const BARRIERS: usize = 16;

/// State of a barrier of a block, or of that of the cluster.
#[derive(Debug, Clone, Default)]
struct BlockBarrier {
    /// First of the warps that take part.
    first: usize,
    /// Arrived lanes of each of these warps.
    arrived: Vec<u32>,
    /// Threads of arrivals that another one of the same lanes followed in the phase.
    repeated: u32,
    /// Number of participating threads, if an instruction states it.
    threads: Option<u32>,
    phases: u64,
    count: u32,
    all: bool,
    result: u32,
    kind: u8,
}

/// Inputs of a block's execution.
#[derive(Clone)]
pub(super) struct BlockInputs<'a> {
    pub(super) program: &'a Program,
    pub(super) banks: Arc<Banks>,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    /// Blocks of a cluster; 1 in each dimension without clusters.
    pub(super) cluster: [u32; 3],
    pub(super) local_bytes: usize,
    pub(super) traced: bool,
    /// Barrier layout, as in [`Memory`].
    pub(super) barriers_count_bytes: bool,
    pub(super) has_tensor_memory: bool,
    pub(super) others: Others,
}

/// Execution counts per instruction.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts {
    /// Counts by warp.
    pub(super) warps: Vec<u64>,
    /// Counts by thread, regardless of predicates.
    pub(super) threads: Vec<u64>,
}

/// Result of a block's time slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slice {
    /// All warps of the block have exited.
    Ended,
    /// The block continues or waits; holds the number of executed instructions.
    Unfinished(u64),
}

/// A block in execution, or the blocks of a cluster.
pub(super) struct Block<'a> {
    inputs: BlockInputs<'a>,
    /// Linear index of each block.
    indices: Vec<u32>,
    pub(super) memory: Memory<'a>,
    warps: Vec<Warp>,
    /// Sixteen of each block, then that of the cluster.
    barriers: Vec<BlockBarrier>,
    /// True if some path did more than poll since the last reset.
    works: bool,
}

impl<'a> Block<'a> {
    pub(super) fn new(inputs: BlockInputs<'a>, index: u64, memory: Memory<'a>) -> Block<'a> {
        let places = inputs.places(index);
        let [x, y, _] = inputs.grid;
        let indices = places.iter().map(|at| at[0] + x * (at[1] + y * at[2]));
        let indices = indices.collect();
        let threads: u32 = inputs.block.iter().product();
        let count = threads.div_ceil(32);
        let ranks = places.len() as u32;
        let warps = (0..ranks * count).map(|number| {
            let (rank, warp) = (number / count, number % count);
            let place = ThreadPosition {
                grid: inputs.grid,
                block: inputs.block,
                block_at: places[rank as usize],
                warp,
                rank,
            };
            let registers = Registers::new(place, Arc::clone(&inputs.banks));
            let (lanes, start) = ((threads - warp * 32).min(32), inputs.program.start);
            let traced = inputs.traced.then_some(count as usize);
            Warp::new(registers, lanes, start, inputs.local_bytes, traced)
        });
        Block {
            warps: warps.collect(),
            indices,
            barriers: barriers(ranks as usize, count as usize),
            inputs,
            memory,
            works: false,
        }
    }

    /// Runs until all warps have exited, all of them only wait for other blocks, or `budget`
    /// instructions were executed.
    pub(super) fn run(&mut self, budget: u64, counts: &mut Counts) -> Result<Slice, Fault> {
        let mut spent = 0;
        loop {
            let mut moved = 0;
            // Set by any path that does more than poll. Without one, the block only waits for other
            // blocks.
            self.works = false;
            for w in 0..self.warps.len() {
                moved += self.run_turn(w, counts)?;
            }
            if self.warps.iter().all(|w| w.alive == 0) {
                return Ok(Slice::Ended);
            }
            // No path is ready in any warp. Other blocks cannot release one: barriers are private
            // to the block.
            if moved == 0 {
                let waiting = self.warps.iter().find_map(|w| w.paths.first());
                return Err(Fault::Stuck(waiting.map_or(0, |path| path.pc * 16)));
            }
            spent += moved;
            if !self.works || spent >= budget {
                return Ok(Slice::Unfinished(spent));
            }
        }
    }

    /// Returns the number of warps of a block.
    fn warps_each(&self) -> usize {
        self.warps.len() / self.indices.len().max(1)
    }

    /// Returns the traces of the warps of each block without the repetitions of polling loops.
    pub(super) fn traces(&mut self) -> Vec<BlockTrace> {
        let waits = |run: &Run| self.inputs.program.waits(run.start..run.end);
        let each = self.warps.len() / self.indices.len().max(1);
        let traces = self.warps.chunks_mut(each.max(1)).map(|warps| {
            let of_warp = |w: &mut Warp| {
                let mut trace = w.trace.take().unwrap_or_default();
                trace.without_waits(waits);
                trace
            };
            warps.iter_mut().map(of_warp).collect()
        });
        let blocks = self.indices.iter().zip(traces);
        blocks
            .map(|(block, warps)| BlockTrace {
                block: *block,
                warps,
            })
            .collect()
    }

    /// Runs a turn of each ready path of a warp and returns the number of executed instructions.
    fn run_turn(&mut self, w: usize, counts: &mut Counts) -> Result<u64, Fault> {
        let mut moved = 0;
        // Each path gets a turn: one may wait for a value that another path of the warp writes.
        for _ in 0..self.warps[w].paths.len().max(1) {
            self.resume_paths(w);
            let warp = &mut self.warps[w];
            let ready = warp
                .paths
                .iter()
                .position(|path| path.state == State::Ready);
            let Some(ready) = ready else {
                break;
            };
            warp.current = ready;
            moved += self.run_path(w, counts)?;
            // Rotate the paths, so that the others come first in the next turn.
            let warp = &mut self.warps[w];
            if warp.current + 1 < warp.paths.len() {
                let path = warp.paths.remove(warp.current);
                warp.paths.push(path);
            }
        }
        Ok(moved)
    }

    /// Resumes the paths whose block-wide barrier is complete.
    fn resume_paths(&mut self, w: usize) {
        let issued = self.issued_products(w);
        let warp = &mut self.warps[w];
        for path in &mut warp.paths {
            if let State::Products(groups) = path.state
                && issued >= groups
            {
                path.state = State::Ready;
                path.pc += 1;
            }
            if let State::Barrier(index, phase) = path.state
                && let Some(barrier) = self.barriers.get(usize::from(index))
                && barrier.phases > phase
            {
                path.state = State::Ready;
                // The path stopped at the barrier instruction itself.
                path.pc += 1;
                warp.registers.reduced = barrier.result;
            }
        }
    }

    /// Returns the number of groups of products that all warps of a warp's warp-group have issued.
    fn issued_products(&self, w: usize) -> u32 {
        let each = self.warps_each();
        let block = w / each * each;
        let first = block + w % each / WARPS * WARPS;
        let group = self.warps.iter().take(block + each);
        let group = group.skip(first).take(WARPS);
        let issued = group
            // Warps that have exited issue no more products.
            .filter(|warp| warp.alive != 0)
            .map(|warp| warp.committed);
        issued.min().unwrap_or_default()
    }

    /// Runs the current path of a warp until it waits, exits or its turn ends.
    fn run_path(&mut self, w: usize, counts: &mut Counts) -> Result<u64, Fault> {
        let program = self.inputs.program;
        let warp = &mut self.warps[w];
        let mut done = 0;
        let mut pc = warp.paths[warp.current].pc;
        let mut mask = warp.paths[warp.current].mask;
        warp.registers.active = mask;
        if let Some(trace) = &mut warp.trace {
            trace.open(pc);
        }
        loop {
            let Some(step) = program.steps.get(pc as usize) else {
                return Err(fault_at(pc, "no instruction at this address".to_owned()));
            };
            // Instructions with a false guard count, as in `smsp__inst_executed`.
            counts.warps[pc as usize] += 1;
            counts.threads[pc as usize] += u64::from(mask.count_ones());
            done += 1;
            warp.registers.clock += 1;
            let on = mask & warp.registers.truth(step.guard);
            warp.pc = pc;
            let outcome = match &step.op {
                Op::Registers(run) => {
                    if on != 0 {
                        run(&mut warp.registers, on);
                    }
                    Ok(())
                }
                Op::Nothing => Ok(()),
                Op::Control(control) => {
                    match execute_control(warp, program, control, on, mask, pc, done)? {
                        Continuation::Next(to) => {
                            pc = to;
                            mask = warp.paths[warp.current].mask;
                            warp.registers.active = mask;
                            continue;
                        }
                        Continuation::Yield { works } => {
                            self.works |= works;
                            return Ok(done);
                        }
                        Continuation::Blocked => {
                            // A yield inside a polling loop is part of the polling.
                            self.works |= !matches!(control, Control::Yield) || !program.polls(pc);
                            self.block_current(w, control, on);
                            return Ok(done);
                        }
                    }
                }
                // Control instructions handle an empty mask themselves.
                _ if on == 0 => Ok(()),
                Op::Constants(run, from) => {
                    warp.note_constants(*from, on);
                    run(&mut warp.registers, on);
                    Ok(())
                }
                Op::Unavailable(what) => return Err(Fault::Unavailable((**what).clone())),
                Op::Memory(access) => self.memory.access(warp, access, on),
                Op::Atomic(atomic) => self.memory.atomic(warp, atomic, on),
                Op::Copy(copy) => self.memory.copy(warp, copy, on),
                Op::Sync(sync) => self.memory.sync(warp, sync, on),
                Op::Product(product) => self.memory.product(warp, product),
                Op::Tensor(copy) => self.memory.tensor(warp, copy),
                Op::Image(op) => self.memory.image(warp, op, on),
                Op::TensorCore(op) => self.memory.tensor_core(warp, op),
                Op::Space(at, out, space) => {
                    self.memory.space(warp, at, *out, *space, on);
                    Ok(())
                }
            };
            outcome.map_err(|what| fault_at(pc, what))?;
            pc += 1;
        }
    }

    /// Updates the block when the current path waits or has exited.
    fn block_current(&mut self, w: usize, control: &Control, on: u32) {
        match control {
            Control::Exit => {
                // Exited threads are no longer waited for: barriers may be complete without them.
                for index in 0..self.barriers.len() {
                    if self.barriers[index].arrived.iter().any(|a| *a != 0) {
                        self.complete(index);
                    }
                }
            }
            Control::Barrier(barrier) => self.arrive(w, barrier, on),
            Control::ClusterArrive => self.arrive_at_cluster(w, on),
            Control::ClusterWait => self.wait_for_cluster(w),
            Control::Products(left) => {
                let warp = &mut self.warps[w];
                let groups = warp.committed.saturating_sub(*left);
                warp.wait(State::Products(groups));
            }
            _ => {}
        }
    }

    fn arrive(&mut self, w: usize, operands: &Barrier, on: u32) {
        let warp = &mut self.warps[w];
        let first = on.trailing_zeros() as usize & 31;
        let number = |s: &super::registers::Source| warp.registers.raw(s.from)[first];
        let own = warp.registers.place.rank * BARRIERS as u32;
        let index = own + (number(&operands.index) & 15);
        let threads = operands.threads.as_ref().map(number);
        let threads = threads.map(|word| if operands.packed { word >> 16 } else { word });
        let barrier = &mut self.barriers[index as usize];
        barrier.threads = threads.or(barrier.threads);
        let arrived = &mut barrier.arrived[w - barrier.first];
        // Each execution counts: a warp may start the first phase for itself by `bar.arrive` and then
        // wait for it with others (PTX ISA, `barrier`).
        if *arrived & on != 0 {
            barrier.repeated += count_arrived(*arrived, warp.alive);
            *arrived = 0;
        }
        *arrived |= on;
        if let Some((kind, asked)) = operands.reduction {
            let truth = warp.registers.truth(asked) & on;
            barrier.kind = kind;
            barrier.count += truth.count_ones();
            barrier.all &= truth == on;
        }
        // Read before `complete`, which may end this phase.
        let phase = barrier.phases;
        if let Some(trace) = &mut warp.trace {
            let number = self.memory.phases.of_block_barrier(index, phase);
            trace.signal_of_last(number, SignalKind::Arrives);
            if operands.waits {
                trace.signal_of_last(number, SignalKind::Waits);
            }
        }
        let current = warp.current;
        if operands.waits {
            warp.paths[current].state = State::Barrier(index as u16, phase);
        } else {
            warp.paths[current].pc += 1;
        }
        self.complete(index as usize);
    }

    /// Ends a barrier's phase if all participants have arrived.
    fn complete(&mut self, index: usize) {
        let barrier = &mut self.barriers[index];
        let warps = self.warps.iter().skip(barrier.first);
        let alive = warps.take(barrier.arrived.len()).map(|w| w.alive);
        let alive: Vec<u32> = alive.collect();
        let warps = || barrier.arrived.iter().zip(&alive);
        let over = match barrier.threads {
            None => warps().all(|(arrived, alive)| alive & !arrived == 0),
            Some(threads) => {
                let count = warps().map(|(arrived, alive)| count_arrived(*arrived, *alive));
                barrier.repeated + count.sum::<u32>() >= threads
            }
        };
        if !over {
            return;
        }
        // True is all ones, the value that `B2R.RESULT` copies to a register.
        barrier.result = match barrier.kind {
            0 => barrier.count,
            1 => 0u32.wrapping_sub(u32::from(barrier.all)),
            _ => 0u32.wrapping_sub(u32::from(barrier.count != 0)),
        };
        barrier.phases += 1;
        barrier.arrived.fill(0);
        (barrier.count, barrier.all, barrier.threads) = (0, true, None);
        barrier.repeated = 0;
    }
}

/// Counts the threads of a warp's arrival as a barrier does: a fully arrived warp as 32, even if it has
/// fewer.
fn count_arrived(arrived: u32, alive: u32) -> u32 {
    match alive & !arrived {
        0 if arrived != 0 => 32,
        _ => arrived.count_ones(),
    }
}

fn fault_at(pc: u32, what: String) -> Fault {
    Fault::Stopped {
        address: pc * 16,
        what,
    }
}

/// Continuation of a path after a control instruction.
enum Continuation {
    /// Continues at that instruction.
    Next(u32),
    /// Continues in the next turn; `works` is false for a path that only polls.
    Yield { works: bool },
    /// The path waits or has exited.
    Blocked,
}

/// Executes a control instruction of the current path at `pc` for the lanes `on` of `mask`, as the
/// last of `done` instructions in this turn.
#[inline]
fn execute_control(
    warp: &mut Warp,
    program: &Program,
    control: &Control,
    on: u32,
    mask: u32,
    pc: u32,
    done: u64,
) -> Result<Continuation, Fault> {
    warp.paths[warp.current].pc = pc;
    let Some(to) = jump(warp, control, on, mask, pc)? else {
        if let Some(trace) = &mut warp.trace {
            trace.close(pc + 1);
        }
        return Ok(Continuation::Blocked);
    };
    let polls = to <= pc && program.polls(pc);
    let length = u64::from(pc + 1 - to.min(pc));
    if to != pc + 1
        && let Some(trace) = &mut warp.trace
    {
        trace.close(pc + 1);
        trace.open(to);
    }
    // A polling path yields after each poll, so that the awaited warps can run.
    let more =
        // A single path has no other path to yield to, so its turns are longer.
        done < MAX_TURN_INSTRUCTIONS || warp.paths.len() == 1 && done < 16 * MAX_TURN_INSTRUCTIONS;
    if more && !polls {
        return Ok(Continuation::Next(to));
    }
    warp.paths[warp.current].pc = to;
    if let Some(trace) = &mut warp.trace {
        trace.close(to);
    }
    Ok(Continuation::Yield {
        // A turn longer than one pass of the loop did other work before the loop.
        works: !polls || done > length,
    })
}
