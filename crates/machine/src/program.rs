//! A kernel's machine code, ready to run.

use std::ops::Range;

use sass::{Instruction, Operand, Unit, Unknown};

use super::atomics::Atomic;
use super::lower::{self, Run};
use super::memory::{Access, Copy, Where};
use super::registers::{Origin, Source, Truth};
use super::sync::Sync;

/// Where generic addresses of shared memory begin.
pub(super) const SHARED_WINDOW: u64 = 0x7f00 << 32;
/// Addresses of functions of the system: of those that do nothing here, and of those that stop the
/// launch.
pub(super) const SYSTEM_NOTHING: u64 = 0x7f02 << 32;
pub(super) const SYSTEM_STOPS: u64 = 0x7f03 << 32;
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
    /// Calls a function of the system, whose address stands there.
    System(Origin),
    /// Stops the launch.
    Trap,
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
    /// Loads constants from where each lane says.
    Constants(Run, Origin),
    Nothing,
    Control(Control),
    Memory(Box<Access>),
    Atomic(Box<Atomic>),
    Copy(Box<Copy>),
    Sync(Box<Sync>),
    /// Whether a generic address is in shared (or else global) memory.
    Space(Where, Truth, bool),
    /// It is not known what.
    Unavailable(Box<Unavailable>),
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
    /// Of each instruction, whether it is in a loop that only waits for others.
    polls: Vec<bool>,
    parts: Vec<(Part, (u8, u8))>,
}

/// An instruction's part in a loop that may only wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// It asks whether others have done something.
    Asks,
    /// It loads from where this register says, or from a fixed place: it asks where that stays the
    /// same.
    Loads(Option<u8>),
    /// It does something itself.
    Works,
    /// None of these.
    Neither,
}

fn part(instruction: &Instruction) -> Part {
    if instruction.has("PHASECHK") {
        return Part::Asks;
    }
    if instruction.opcode == "CCTL" {
        return Part::Neither;
    }
    if matches!(instruction.opcode, "LD" | "LDG" | "LDS") {
        let base = instruction
            .operands
            .iter()
            .find_map(|operand| match operand {
                Operand::Address(address) => address.base.filter(|r| !r.is_zero() && !r.uniform),
                _ => None,
            });
        return match instruction.has("STRONG") {
            true => Part::Asks,
            false => Part::Loads(base.map(|r| r.index)),
        };
    }
    let arithmetic = matches!(instruction.opcode, "FFMA" | "FADD" | "FMUL");
    match instruction.unit {
        _ if arithmetic => Part::Works,
        Unit::Double | Unit::Tensor | Unit::Special | Unit::Shuffle | Unit::Barrier => Part::Works,
        Unit::Global | Unit::CopyAsync | Unit::Shared | Unit::Local | Unit::Texture => Part::Works,
        Unit::Atomic | Unit::SharedAtomic => Part::Works,
        _ => Part::Neither,
    }
}

/// Registers of the lanes that an instruction writes: the first and how many.
fn written(instruction: &Instruction) -> (u8, u8) {
    let count = match () {
        () if instruction.has("128") => 4,
        () if instruction.has("64") || instruction.has("WIDE") => 2,
        () => 1,
    };
    let first = instruction
        .operands
        .iter()
        .find_map(|operand| match operand {
            Operand::Register(r) if !r.uniform && !r.is_zero() => Some(r.index),
            _ => None,
        });
    first.map_or((0, 0), |first| (first, count))
}

impl Program {
    /// Instructions that are not known stop only those who execute them.
    pub(super) fn new(code: &[Result<Instruction, Unknown>]) -> Program {
        let mut steps = Vec::with_capacity(code.len());
        let mut opcodes = Vec::with_capacity(code.len());
        for decoded in code {
            let (opcode, step) = match decoded {
                Ok(instruction) => (instruction.opcode, step(instruction)),
                Err(unknown) => {
                    let name = unknown.opcode.unwrap_or("of unknown name").to_owned();
                    let step = Step {
                        guard: Truth::ALWAYS,
                        op: unavailable(name, unknown.address),
                    };
                    ("unknown", step)
                }
            };
            opcodes.push(opcode);
            steps.push(step);
        }
        let parts = code.iter().map(|decoded| match decoded {
            Ok(instruction) => (part(instruction), written(instruction)),
            Err(_) => (Part::Works, (0, 0)),
        });
        let mut program = Program {
            steps,
            opcodes,
            polls: Vec::new(),
            parts: parts.collect(),
        };
        let mut polls = vec![false; program.steps.len()];
        for (step, pc) in program.steps.iter().zip(0..) {
            if let Op::Control(Control::Branch(to, _) | Control::BranchAny(to, _)) = step.op
                && to <= pc
                && program.waits(to..pc + 1)
            {
                polls[to as usize..=pc as usize].fill(true);
            }
        }
        program.polls = polls;
        program
    }

    /// Whether the instruction is in a loop that only waits for others.
    pub(super) fn polls(&self, pc: u32) -> bool {
        self.polls.get(pc as usize).is_some_and(|polls| *polls)
    }

    /// Whether a warp that executes these instructions again and again waits for others: it asks, also
    /// by loading from one place all the time, and does nothing else.
    pub(super) fn waits(&self, run: Range<u32>) -> bool {
        let Some(parts) = self.parts.get(run.start as usize..run.end as usize) else {
            return false;
        };
        let moves = |base: u8| {
            let mut writes = parts.iter().map(|(_, written)| written);
            // Some addresses are pairs of registers.
            writes.any(|(first, count)| {
                (base..=base.saturating_add(1)).any(|r| r >= *first && r - first < *count)
            })
        };
        let mut asks = false;
        for (part, _) in parts {
            match part {
                Part::Works => return false,
                Part::Loads(Some(base)) if moves(*base) => return false,
                Part::Asks | Part::Loads(_) => asks = true,
                Part::Neither => {}
            }
        }
        asks
    }
}

fn unavailable(name: String, address: u32) -> Op {
    Op::Unavailable(Box::new(Unavailable { name, address }))
}

fn step(instruction: &Instruction) -> Step {
    let guard = instruction.guard.map_or(Truth::ALWAYS, |guard| {
        Truth::predicate(&sass::Predicate {
            index: guard.index,
            uniform: guard.uniform,
            invert: guard.invert,
        })
    });
    let op = lower::lower(instruction);
    Step {
        guard,
        op: op.unwrap_or_else(|| unavailable(instruction.name(), instruction.address)),
    }
}

#[cfg(test)]
mod tests {
    use super::{Op, Program};
    use std::collections::BTreeMap;
    use std::path::Path;

    /// Names of the instructions of a folder's cubins that are not known, with how many there are.
    fn unknown(folder: &Path) -> BTreeMap<String, usize> {
        let mut names = BTreeMap::new();
        for arch in std::fs::read_dir(folder).unwrap().flatten() {
            let Ok(files) = std::fs::read_dir(arch.path()) else {
                continue;
            };
            let files = files.flatten().map(|file| file.path());
            for file in files.filter(|path| path.extension().is_some_and(|e| e == "cubin")) {
                let cubin = sass::Cubin::read(&std::fs::read(&file).unwrap()).unwrap();
                for kernel in cubin.kernels.values() {
                    for step in Program::new(&kernel.code).steps {
                        if let Op::Unavailable(what) = step.op {
                            let arch = arch.file_name().to_string_lossy().into_owned();
                            *names.entry(format!("{} {arch}", what.name)).or_default() += 1;
                        }
                    }
                }
            }
        }
        names
    }

    #[test]
    #[ignore = "needs a folder ARCH/NAME.cubin: set SASS_CUBINS"]
    fn instructions_of_a_folder_are_known_but_for_textures_and_warp_groups() {
        let folder = std::env::var("SASS_CUBINS").expect("SASS_CUBINS: folder of cubins");
        let names = unknown(Path::new(&folder));
        for (name, count) in &names {
            println!("{count:7} {name}");
        }
        let meant = ["TEX", "TLD", "SU", "GMMA", "HMMA.884"];
        let wrong = names
            .keys()
            .filter(|name| !meant.iter().any(|m| name.contains(m)));
        assert_eq!(wrong.collect::<Vec<_>>(), Vec::<&String>::new());
    }
}
