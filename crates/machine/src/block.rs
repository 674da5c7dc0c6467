//! One block: its warps take turns until all have exited.

mod flow;

use std::sync::Arc;

use flow::jump;

use super::memory::Memory;
use super::program::{Barrier, Control, Op, Program, Unavailable};
use super::registers::{Banks, Place, Registers};
use super::warp::{State, Warp};
use vgpu::exec::trace::{BlockTrace, Run};

/// Instructions of a path's turn.
const TURN: u64 = 2048;

/// Why a block was stopped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// An access that a GPU would not have survived, or no instruction to go on with.
    #[error("the machine code stopped at {address:#x}: {what}")]
    Stopped {
        /// Byte address of the instruction.
        address: u32,
        /// What was wrong.
        what: String,
    },
    /// All warps wait.
    #[error("the machine code stopped: all warps wait, the first at {0:#x}")]
    Stuck(u32),
    /// An instruction that cannot be executed.
    #[error(transparent)]
    Unavailable(Unavailable),
}

/// A block-wide barrier.
#[derive(Debug, Clone, Default)]
struct Gate {
    /// Lanes of each warp that have arrived.
    arrived: Vec<u32>,
    /// Threads that take part, where an instruction said it.
    threads: Option<u32>,
    phases: u64,
    count: u32,
    all: bool,
    result: u32,
    kind: u8,
}

/// What a block needs to run.
#[derive(Clone)]
pub(super) struct Setting<'a> {
    pub(super) program: &'a Program,
    pub(super) banks: Arc<Banks>,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) local_bytes: usize,
    pub(super) traced: bool,
    /// As in [`Memory`].
    pub(super) barriers_count_bytes: bool,
    pub(super) meets_alone: Option<u64>,
}

/// How often each instruction was executed.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts {
    /// By warps.
    pub(super) warps: Vec<u64>,
    /// By threads, whatever their predicates.
    pub(super) threads: Vec<u64>,
}

/// How a block's turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slice {
    /// All its warps have exited.
    Ended,
    /// It has more to do, or waits; with the instructions that it executed.
    GoesOn(u64),
}

/// A block under way.
pub(super) struct Block<'a> {
    setting: Setting<'a>,
    index: u32,
    pub(super) memory: Memory<'a>,
    warps: Vec<Warp>,
    gates: Vec<Gate>,
    /// Whether some path did anything but ask once more whether it may go on, since this was reset.
    works: bool,
}

impl<'a> Block<'a> {
    pub(super) fn new(setting: Setting<'a>, index: u64, memory: Memory<'a>) -> Block<'a> {
        let [x, y, _] = setting.grid.map(u64::from);
        let at = [index % x, index / x % y, index / x / y].map(|v| v as u32);
        let threads: u32 = setting.block.iter().product();
        let count = threads.div_ceil(32);
        let warps = (0..count).map(|warp| {
            let place = Place {
                grid: setting.grid,
                block: setting.block,
                block_at: at,
                warp,
            };
            let registers = Registers::new(place, Arc::clone(&setting.banks));
            let lanes = (threads - warp * 32).min(32);
            let traced = setting.traced.then_some(count as usize);
            Warp::new(registers, lanes, setting.local_bytes, traced)
        });
        Block {
            warps: warps.collect(),
            index: index as u32,
            gates: vec![
                Gate {
                    arrived: vec![0; count as usize],
                    all: true,
                    ..Gate::default()
                };
                16
            ],
            setting,
            memory,
            works: false,
        }
    }

    /// Runs until all warps have ended, none does anything but wait for other blocks, or `budget`
    /// instructions were executed.
    pub(super) fn run(&mut self, budget: u64, counts: &mut Counts) -> Result<Slice, Fault> {
        let mut spent = 0;
        loop {
            let mut moved = 0;
            self.works = false;
            for w in 0..self.warps.len() {
                moved += self.turn(w, counts)?;
            }
            if self.warps.iter().all(|w| w.alive == 0) {
                return Ok(Slice::Ended);
            }
            if moved == 0 {
                let waiting = self.warps.iter().find_map(|w| w.paths.first());
                return Err(Fault::Stuck(waiting.map_or(0, |path| path.pc * 16)));
            }
            spent += moved;
            if !self.works || spent >= budget {
                return Ok(Slice::GoesOn(spent));
            }
        }
    }

    /// What the warps did, less what they repeated while they waited for others.
    pub(super) fn trace(&mut self) -> BlockTrace {
        let waits = |run: &Run| self.setting.program.waits(run.start..run.end);
        let traces = self.warps.iter_mut().map(|w| {
            let mut trace = w.trace.take().unwrap_or_default();
            trace.without_waits(waits);
            trace
        });
        BlockTrace {
            block: self.index,
            warps: traces.collect(),
        }
    }

    /// Each path of a warp that can go on has a turn; gives the instructions executed.
    fn turn(&mut self, w: usize, counts: &mut Counts) -> Result<u64, Fault> {
        let mut moved = 0;
        for _ in 0..self.warps[w].paths.len().max(1) {
            self.wake(w);
            let warp = &mut self.warps[w];
            let ready = warp
                .paths
                .iter()
                .position(|path| path.state == State::Ready);
            let Some(ready) = ready else {
                break;
            };
            warp.current = ready;
            moved += self.advance(w, counts)?;
            // The others come first next time.
            let warp = &mut self.warps[w];
            if warp.current + 1 < warp.paths.len() {
                let path = warp.paths.remove(warp.current);
                warp.paths.push(path);
            }
        }
        Ok(moved)
    }

    /// Paths whose block-wide barrier is complete go on.
    fn wake(&mut self, w: usize) {
        let warp = &mut self.warps[w];
        for path in &mut warp.paths {
            if let State::Barrier(gate, phase) = path.state
                && let Some(gate) = self.gates.get(usize::from(gate))
                && gate.phases > phase
            {
                path.state = State::Ready;
                path.pc += 1;
                warp.registers.reduced = gate.result;
            }
        }
    }

    /// Runs the current path of a warp until it waits, ends or its turn is over.
    fn advance(&mut self, w: usize, counts: &mut Counts) -> Result<u64, Fault> {
        let program = self.setting.program;
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
                return Err(stopped(pc, "there is no instruction".to_owned()));
            };
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
                Op::Control(control) => match follow(warp, program, control, (on, mask, pc), done)?
                {
                    Follow::On(to) => {
                        pc = to;
                        mask = warp.paths[warp.current].mask;
                        warp.registers.active = mask;
                        continue;
                    }
                    Follow::Later { works } => {
                        self.works |= works;
                        return Ok(done);
                    }
                    Follow::Waits => {
                        self.works |= !matches!(control, Control::Yield) || !program.polls(pc);
                        self.waits(w, control, on);
                        return Ok(done);
                    }
                },
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
                Op::Space(at, out, shared) => {
                    self.memory.space(warp, at, (*out, *shared), on);
                    Ok(())
                }
            };
            outcome.map_err(|what| stopped(pc, what))?;
            pc += 1;
        }
    }

    /// The current path waits or has ended: what this means for the block.
    fn waits(&mut self, w: usize, control: &Control, on: u32) {
        match control {
            Control::Exit => {
                for gate in 0..self.gates.len() {
                    if self.gates[gate].arrived.iter().any(|a| *a != 0) {
                        self.complete(gate);
                    }
                }
            }
            Control::Barrier(barrier) => self.arrive(w, barrier, on),
            _ => {}
        }
    }

    fn arrive(&mut self, w: usize, barrier: &Barrier, on: u32) {
        let warp = &mut self.warps[w];
        let first = on.trailing_zeros() as usize & 31;
        let number = |s: &super::registers::Source| warp.registers.raw(s.from)[first];
        let index = number(&barrier.index) & 15;
        let threads = barrier.threads.as_ref().map(number);
        let gate = &mut self.gates[index as usize];
        gate.threads = threads.or(gate.threads);
        gate.arrived[w] |= on;
        if let Some((kind, asked)) = barrier.reduction {
            let truth = warp.registers.truth(asked) & on;
            gate.kind = kind;
            gate.count += truth.count_ones();
            gate.all &= truth == on;
        }
        let phase = gate.phases;
        let current = warp.current;
        if barrier.waits {
            warp.paths[current].state = State::Barrier(index as u8, phase);
        } else {
            warp.paths[current].pc += 1;
        }
        self.complete(index as usize);
    }

    /// Ends a barrier's phase if all that take part have arrived.
    fn complete(&mut self, index: usize) {
        let alive: Vec<u32> = self.warps.iter().map(|w| w.alive).collect();
        let gate = &mut self.gates[index];
        let warps = || gate.arrived.iter().zip(&alive);
        let over = match gate.threads {
            None => warps().all(|(arrived, alive)| alive & !arrived == 0),
            Some(threads) => {
                // A warp that is there whole counts for 32 threads, however many it has.
                let count = warps().map(|(arrived, alive)| match alive & !arrived {
                    0 if *arrived != 0 => 32,
                    _ => arrived.count_ones(),
                });
                count.sum::<u32>() >= threads
            }
        };
        if !over {
            return;
        }
        gate.result = match gate.kind {
            0 => gate.count,
            1 => 0u32.wrapping_sub(u32::from(gate.all)),
            _ => 0u32.wrapping_sub(u32::from(gate.count != 0)),
        };
        gate.phases += 1;
        gate.arrived.fill(0);
        (gate.count, gate.all, gate.threads) = (0, true, None);
    }
}

fn stopped(pc: u32, what: String) -> Fault {
    Fault::Stopped {
        address: pc * 16,
        what,
    }
}

/// What a path does after a control instruction.
enum Follow {
    /// Goes on at that instruction.
    On(u32),
    /// Goes on in its next turn; whether it does more than wait for others.
    Later { works: bool },
    /// Waits, or has ended.
    Waits,
}

/// Follows a control instruction of the current path at `pc`, executed by the lanes `on` of `mask`, the
/// last of `done` in this turn.
#[inline]
fn follow(
    warp: &mut Warp,
    program: &Program,
    control: &Control,
    (on, mask, pc): (u32, u32, u32),
    done: u64,
) -> Result<Follow, Fault> {
    warp.paths[warp.current].pc = pc;
    let Some(to) = jump(warp, control, on, mask, pc)? else {
        if let Some(trace) = &mut warp.trace {
            trace.close(pc + 1);
        }
        return Ok(Follow::Waits);
    };
    let polls = to <= pc && program.polls(pc);
    let length = u64::from(pc + 1 - to.min(pc));
    if to != pc + 1
        && let Some(trace) = &mut warp.trace
    {
        trace.close(pc + 1);
        trace.open(to);
    }
    // Who waits for others lets them go on, after each question.
    let more = done < TURN || warp.paths.len() == 1 && done < 16 * TURN;
    if more && !polls {
        return Ok(Follow::On(to));
    }
    warp.paths[warp.current].pc = to;
    if let Some(trace) = &mut warp.trace {
        trace.close(to);
    }
    Ok(Follow::Later {
        works: !polls || done > length,
    })
}
