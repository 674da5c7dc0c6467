//! A kernel's SASS, lowered to executable operations.

use std::ops::Range;

use sass::{Instruction, Operand, Unit, Unknown};

use super::lower;
use super::op::{Control, Op, Unavailable};
use super::registers::Pred;

/// Address of system functions without effect here.
pub(super) const SYSTEM_NOTHING: u64 = 0x7f02 << 32;
/// Address of system functions that stop the launch.
pub(super) const SYSTEM_STOPS: u64 = 0x7f03 << 32;

/// One executable instruction.
pub(super) struct Step {
    pub(super) guard: Pred,
    pub(super) op: Op,
}

/// The instructions of a kernel.
pub(super) struct Program {
    /// Step at which threads begin.
    pub(super) start: u32,
    pub(super) steps: Vec<Step>,
    pub(super) opcodes: Vec<&'static str>,
    /// Flag per instruction: part of a loop that only polls.
    polls: Vec<bool>,
    parts: Vec<(PollingRole, [(u8, u8); 2])>,
}

/// Role of an instruction in a possible polling loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PollingRole {
    /// Polls the progress of others.
    Polls,
    /// Loads from the address in this register, or from a fixed one: a poll if the address is
    /// constant.
    Loads(Option<u8>),
    /// Loads from local memory at the address in this register, or at a fixed one. Its value is constant if the
    /// address is: a spilled register.
    Reloads(Option<u8>),
    /// Has an effect.
    Works,
    /// Neither polls nor has an effect.
    Neither,
}

fn polling_role(instruction: &Instruction) -> PollingRole {
    if instruction.has("PHASECHK") {
        return PollingRole::Polls;
    }
    // Arrivals, bulk copies and clears, unlike other instructions of their unit.
    let signals = [
        "SYNCS",
        "ARRIVES",
        "UBLKCP",
        "UTMALDG",
        "UTMASTG",
        "UTMAREDG",
        "UTMACMDFLUSH",
        "UTCBAR",
        "UTCCP",
        "UTCSHIFT",
        "UMEMSETS",
        "UGETNEXTWORKID",
        "LDTM",
        "STTM",
    ];
    if signals.contains(&instruction.opcode) {
        return PollingRole::Works;
    }
    // Acquire loops invalidate the L1 cache between polls.
    if instruction.opcode == "CCTL" {
        return PollingRole::Neither;
    }
    if matches!(instruction.opcode, "LD" | "LDG" | "LDS" | "LDL") {
        let base = instruction
            .operands
            .iter()
            .find_map(|operand| match operand {
                Operand::Address(address) => address.base.filter(|r| !r.is_zero() && !r.uniform),
                _ => None,
            });
        let base = base.map(|r| r.index);
        return match instruction.opcode {
            "LDL" => PollingRole::Reloads(base),
            // A strong load exists to observe writes of other threads.
            _ if instruction.has("STRONG") => PollingRole::Polls,
            _ => PollingRole::Loads(base),
        };
    }
    // Their unit also executes `IMAD`, with which loops move registers and compute addresses.
    let arithmetic = matches!(instruction.opcode, "FFMA" | "FADD" | "FMUL");
    match instruction.unit {
        _ if arithmetic => PollingRole::Works,
        Unit::Double | Unit::Tensor | Unit::Special | Unit::Shuffle | Unit::Barrier => {
            PollingRole::Works
        }
        Unit::Global | Unit::CopyAsync | Unit::Shared | Unit::Local | Unit::Texture => {
            PollingRole::Works
        }
        Unit::Atomic | Unit::SharedAtomic => PollingRole::Works,
        _ => PollingRole::Neither,
    }
}

/// Returns the lane registers that an instruction writes, as the first and the number of up to two groups.
fn written_registers(instruction: &Instruction) -> [(u8, u8); 2] {
    let long = instruction.has("256");
    let count = match () {
        () if instruction.has("128") || long => 4,
        () if instruction.has("64") || instruction.has("WIDE") => 2,
        () => 1,
    };
    let mut registers = instruction
        .operands
        .iter()
        .filter_map(|operand| match operand {
            Operand::Register(r) if !r.uniform && !r.is_zero() => Some((r.index, count)),
            _ => None,
        });
    let first = registers.next().unwrap_or_default();
    let second = registers.next().filter(|_| long).unwrap_or_default();
    [first, second]
}

impl Program {
    /// Lowers a kernel. An unknown instruction is an error only if it is executed.
    pub(super) fn new(code: &[Result<Instruction, Unknown>]) -> Program {
        let mut steps = Vec::with_capacity(code.len());
        let mut opcodes = Vec::with_capacity(code.len());
        for decoded in code {
            let (opcode, step) = match decoded {
                Ok(instruction) => (instruction.opcode, step(instruction)),
                Err(unknown) => {
                    let name = unknown.opcode.unwrap_or("of unknown name").to_owned();
                    let step = Step {
                        guard: Pred::ALWAYS,
                        op: unavailable(name, unknown.address),
                    };
                    ("unknown", step)
                }
            };
            opcodes.push(opcode);
            steps.push(step);
        }
        let parts = code.iter().map(|decoded| match decoded {
            Ok(instruction) => (polling_role(instruction), written_registers(instruction)),
            Err(_) => (PollingRole::Works, [(0, 0); 2]),
        });
        let mut program = Program {
            start: 0,
            steps,
            opcodes,
            polls: Vec::new(),
            parts: parts.collect(),
        };
        let mut polls = vec![false; program.steps.len()];
        // A loop is a backward branch with the instructions that it encloses.
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

    /// Returns true if the instruction is part of a loop that only polls.
    pub(super) fn polls(&self, pc: u32) -> bool {
        self.polls.get(pc as usize).is_some_and(|polls| *polls)
    }

    /// Returns true if a warp that repeats these instructions only waits for others: it polls, if
    /// only by loading from a constant address, and has no effect.
    pub(super) fn waits(&self, run: Range<u32>) -> bool {
        let Some(parts) = self.parts.get(run.start as usize..run.end as usize) else {
            return false;
        };
        let writes = |written: &[(u8, u8); 2], base: u8| {
            // Some addresses are register pairs.
            (base..=base.saturating_add(1)).any(|r| {
                let within = |(first, count): &(u8, u8)| r >= *first && r - first < *count;
                written.iter().any(within)
            })
        };
        // Reloads from an address that no instruction of the loop writes.
        let constant = |part: &PollingRole| match part {
            PollingRole::Reloads(None) => true,
            PollingRole::Reloads(Some(base)) => {
                !parts.iter().any(|(_, written)| writes(written, *base))
            }
            _ => false,
        };
        let moves = |base: u8| {
            let mut computed = parts.iter().filter(|(part, _)| !constant(part));
            computed.any(|(_, written)| writes(written, base))
        };
        let mut asks = false;
        for (part, _) in parts {
            match part {
                PollingRole::Works => return false,
                PollingRole::Loads(Some(base)) if moves(*base) => return false,
                PollingRole::Reloads(_) if !constant(part) => return false,
                PollingRole::Reloads(_) => {}
                PollingRole::Polls | PollingRole::Loads(_) => asks = true,
                PollingRole::Neither => {}
            }
        }
        asks
    }
}

fn unavailable(name: String, address: u32) -> Op {
    Op::Unavailable(Box::new(Unavailable { name, address }))
}

fn step(instruction: &Instruction) -> Step {
    let guard = instruction.guard.map_or(Pred::ALWAYS, |guard| {
        Pred::predicate(&sass::Predicate {
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

    /// Counts the unknown instructions of a folder's cubins by name.
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
