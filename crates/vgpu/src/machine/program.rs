//! A kernel's machine code, ready to run.

use sass::{Instruction, Unknown};

use super::atomics::Atomic;
use super::lower::{self, Run};
use super::memory::{Access, Copy, Where};
use super::registers::{Origin, Source, Truth};
use super::sync::Sync;

/// Where generic addresses of shared memory begin.
pub(super) const SHARED_WINDOW: u64 = 0x7f00 << 32;
/// Where those of local memory begin.
pub(super) const LOCAL_WINDOW: u64 = 0x7f01 << 32;

/// An instruction that cannot be executed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("instruction {name} at {address:#x}")]
pub struct Unavailable {
    /// Its name with all endings.
    pub name: String,
    /// Byte address in the kernel's code.
    pub address: u32,
}

/// A block-wide barrier's operands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Barrier {
    pub(super) index: Source,
    /// Threads that take part; all where it is not said.
    pub(super) threads: Option<Source>,
    pub(super) waits: bool,
    /// How a predicate is reduced: 0 counts, 1 is all, 2 is any.
    pub(super) reduction: Option<(u8, Truth)>,
}

/// Where lanes go. Targets are instruction numbers.
pub(super) enum Control {
    Branch(u32, Truth),
    /// All lanes jump where one wants to.
    BranchAny(u32, Truth),
    /// Jumps where lanes of a mask are not here.
    Diverged(u32, Source),
    /// Jumps where all of them are.
    Converged(u32, Source),
    /// To the byte address in a register and the next one, and an offset.
    Indirect(Origin, i64),
    Exit,
    /// The lanes that are here will meet at a `Sync`.
    Join(u8),
    Sync(u8),
    Break(u8, Truth),
    /// Waits for the lanes of a mask, or all.
    Members(Option<Source>),
    Yield,
    Barrier(Box<Barrier>),
}

/// What an instruction does.
pub(super) enum Op {
    Registers(Run),
    Nothing,
    Control(Control),
    Memory(Box<Access>),
    Atomic(Box<Atomic>),
    Copy(Box<Copy>),
    Sync(Box<Sync>),
    /// Whether a generic address is in shared (or else global) memory.
    Space(Where, Truth, bool),
}

/// One instruction.
pub(super) struct Step {
    pub(super) guard: Truth,
    pub(super) op: Op,
}

/// A kernel's instructions.
pub(super) struct Program {
    pub(super) steps: Vec<Step>,
    pub(super) opcodes: Vec<&'static str>,
}

impl Program {
    /// # Errors
    /// The first instruction that is not known.
    pub(super) fn new(code: &[Result<Instruction, Unknown>]) -> Result<Program, Unavailable> {
        let mut steps = Vec::with_capacity(code.len());
        let mut opcodes = Vec::with_capacity(code.len());
        for (n, instruction) in code.iter().enumerate() {
            let instruction = instruction.as_ref().map_err(|unknown| Unavailable {
                name: unknown.opcode.unwrap_or("of unknown name").to_owned(),
                address: unknown.address,
            })?;
            let refused = || Unavailable {
                name: instruction.name(),
                address: instruction.address,
            };
            if instruction.address as usize != n * 16 {
                return Err(refused());
            }
            opcodes.push(instruction.opcode);
            steps.push(Step {
                guard: instruction.guard.map_or(Truth::ALWAYS, |guard| {
                    Truth::predicate(&sass::Predicate {
                        index: guard.index,
                        uniform: guard.uniform,
                        invert: guard.invert,
                    })
                }),
                op: lower::lower(instruction).ok_or_else(refused)?,
            });
        }
        Ok(Program { steps, opcodes })
    }
}
