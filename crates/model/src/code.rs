//! What time depends on, of a kernel's instructions: unit, control bits, register banks, sizes.
//!
//! The control bits are those by which the assembler tells the hardware when a warp may go on: stall
//! cycles, and six barriers that long operations set and later ones wait for. NVIDIA does not
//! document them; they are public knowledge (Jia et al., "Dissecting the NVIDIA Volta GPU
//! architecture via microbenchmarking", 2018, section 2; Yan et al., "Demystifying Tensor Cores",
//! TuringAs, 2020).

use sass::{Bank, Control, Instruction, Operand, Unit, Unknown};
use std::collections::BTreeMap;
use vgpu::exec::trace::BlockTrace;

/// Types of matrix instructions that go at rates of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Matrix {
    /// Half precision, either kind.
    #[default]
    F16,
    Tf32,
    /// Integers of 8 bits and fewer.
    Int,
    /// Floats of 8 bits.
    F8,
    F64,
}

/// A source register of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Read {
    /// Its number; [`sass::ZERO`] where nothing is read.
    pub(super) register: u8,
    /// Place among the sources, from 0.
    pub(super) slot: u8,
    /// Kept for the next instruction that reads it in the same place.
    pub(super) reuse: bool,
}

/// Source registers of a fixed-latency instruction: three, of which one may be a pair.
pub(super) const READS: usize = 4;

/// No register.
const NOTHING: Read = Read {
    register: sass::ZERO,
    slot: 0,
    reuse: false,
};

/// One instruction, as far as time depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Instr {
    pub(super) unit: Unit,
    /// Cycles until the warp's next instruction.
    pub(super) stall: u8,
    /// Barrier set until the result is there.
    pub(super) write_barrier: Option<u8>,
    /// Barrier set until the sources were read.
    pub(super) read_barrier: Option<u8>,
    /// Barriers waited for, a bit each.
    pub(super) wait: u8,
    /// Bytes a lane of a memory instruction.
    pub(super) bytes: u8,
    pub(super) write: bool,
    /// The 64 bytes of a constant bank that one of its operands lies in, counted through all banks.
    pub(super) operand: Option<u32>,
    /// The same of a load of constants whose address is known.
    pub(super) constant: Option<u32>,
    /// Groups of asynchronous copies that may be under way behind a wait for them.
    pub(super) left: u8,
    /// Ends a group of asynchronous copies.
    pub(super) commits: bool,
    /// Bytes of the thread's frame up to the end of this access to local memory.
    pub(super) frame: u32,
    /// Source registers that it reads through the ports of the register file in its first cycles.
    pub(super) reads: [Read; READS],
    /// The warp must let others go first in the next cycle.
    pub(super) yields: bool,
    /// Single-precision arithmetic, which a second multiply-add pipe takes too where there is one.
    pub(super) single: bool,
    /// Multiply-adds of a matrix instruction, and their type.
    pub(super) tensor: (u32, Matrix),
}

/// Number of [`Unit`] values, and some to spare.
pub(crate) const UNITS: usize = 24;

/// Instructions that the warps of a block executed, by opcode and by unit.
pub(super) fn executed(
    kernel: &[Result<Instruction, Unknown>],
    trace: &BlockTrace,
) -> (BTreeMap<&'static str, u64>, [u64; UNITS]) {
    // How many more executions each instruction has than the one before it.
    let mut rises = vec![0i64; kernel.len() + 1];
    for run in trace.warps.iter().flat_map(|warp| &warp.runs) {
        rises[run.start as usize] += 1;
        rises[run.end as usize] -= 1;
    }
    let (mut by_opcode, mut by_unit) = (BTreeMap::new(), [0; UNITS]);
    let mut count = 0;
    for (decoded, rise) in kernel.iter().zip(&rises) {
        count += rise;
        if let (Ok(known), 1..) = (decoded, count) {
            *by_opcode.entry(known.opcode).or_default() += count as u64;
            by_unit[known.unit as usize % UNITS] += count as u64;
        }
    }
    (by_opcode, by_unit)
}

/// What time depends on, of a kernel's instructions, in order of address.
pub(super) fn code(kernel: &[Result<Instruction, Unknown>]) -> Vec<Instr> {
    kernel.iter().map(instruction).collect()
}

fn instruction(decoded: &Result<Instruction, Unknown>) -> Instr {
    let word = match decoded {
        Ok(known) => known.word,
        Err(unknown) => unknown.word,
    };
    let control = Control::of(word);
    let bare = Instr {
        unit: Unit::Unknown,
        stall: control.stall,
        write_barrier: control.write_barrier.filter(|b| *b < 6),
        read_barrier: control.read_barrier.filter(|b| *b < 6),
        wait: control.wait_mask,
        bytes: 4,
        write: false,
        operand: None,
        constant: None,
        left: 0,
        commits: false,
        frame: 0,
        reads: [NOTHING; READS],
        // The bit is clear where the warp is to yield.
        yields: !control.yield_,
        single: false,
        tensor: (0, Matrix::F16),
    };
    let Ok(known) = decoded else {
        return bare;
    };
    Instr {
        unit: known.unit,
        bytes: bytes(known),
        write: matches!(known.opcode, "ST" | "STG" | "STL" | "STS" | "STSM"),
        operand: constant(known).filter(|_| known.unit != Unit::Constant),
        constant: constant(known).filter(|_| known.unit == Unit::Constant),
        left: left(known),
        commits: known.opcode == "LDGDEPBAR",
        frame: frame(known),
        reads: reads(known),
        single: matches!(known.opcode, "FFMA" | "FADD" | "FMUL"),
        tensor: product(known).unwrap_or_default(),
        ..bare
    }
}

/// Bytes a lane of a memory instruction.
fn bytes(known: &Instruction) -> u8 {
    // Each lane gives the address of a row of 16 bytes; 1, 2 or 4 matrices.
    let matrices = matches!(known.opcode, "LDSM" | "STSM");
    let sized = matches!(
        known.unit,
        Unit::Global | Unit::Shared | Unit::Local | Unit::Constant | Unit::CopyAsync
    );
    if !sized {
        return 4;
    }
    let size = known.modifiers.iter().find_map(|m| match *m {
        "2" if matrices => Some(8),
        "4" if matrices => Some(16),
        "U8" | "S8" => Some(1),
        "U16" | "S16" => Some(2),
        "64" => Some(8),
        "128" => Some(16),
        _ => None,
    });
    size.unwrap_or(4)
}

/// Where a constant lies that the instruction names.
fn constant(known: &Instruction) -> Option<u32> {
    known.operands.iter().find_map(|operand| match operand {
        Operand::Constant(c) if c.base.is_none_or(|base| base.is_zero()) => match c.bank {
            Bank::Number(bank) => Some(constant_line(u64::from(bank) << 16 | c.offset as u64)),
            Bank::Descriptor(_) => None,
        },
        _ => None,
    })
}

/// The 64 bytes that a place in the constant banks lies in, which are 64 KiB apart.
pub(super) fn constant_line(place: u64) -> u32 {
    (place / 64) as u32
}

/// Groups that may be left of those waited for.
fn left(known: &Instruction) -> u8 {
    let count = known.operands.iter().find_map(|operand| match operand {
        Operand::Immediate(count) if known.unit == Unit::Depbar => Some(*count),
        _ => None,
    });
    u8::try_from(count.unwrap_or(0)).unwrap_or(u8::MAX)
}

fn frame(known: &Instruction) -> u32 {
    if known.unit != Unit::Local {
        return 0;
    }
    let offset = known.operands.iter().find_map(|operand| match operand {
        Operand::Address(address) => u32::try_from(address.offset).ok(),
        _ => None,
    });
    offset.unwrap_or(0).saturating_add(bytes(known).into())
}

/// The registers that an instruction of fixed latency reads. (Those that wait in a queue, such as
/// loads, read when the ports are free.)
fn reads(known: &Instruction) -> [Read; READS] {
    let mut found = [NOTHING; READS];
    if !matches!(known.unit, Unit::Fma | Unit::Alu | Unit::Half) {
        return found;
    }
    let sources = known
        .operands
        .iter()
        .enumerate()
        .filter(|(index, operand)| {
            let result = *index == 0 && matches!(operand, Operand::Register(_));
            !result && !matches!(operand, Operand::Predicate(_))
        });
    let mut room = found.iter_mut();
    for (slot, (_, operand)) in sources.enumerate() {
        let Operand::Register(register) = operand else {
            continue;
        };
        if register.is_zero() || register.uniform {
            continue;
        }
        // The addend of a wide product has 64 bits.
        let pair = known.opcode == "IMAD" && known.has("WIDE") && slot == 2;
        for index in register.index..=register.index.saturating_add(u8::from(pair)) {
            if let Some(read) = room.next() {
                *read = Read {
                    register: index,
                    slot: slot as u8,
                    reuse: register.reuse,
                };
            }
        }
    }
    found
}

/// Multiply-adds of a matrix instruction and their type, by its name: rows, columns and depth are
/// written without a separator.
fn product(known: &Instruction) -> Option<(u32, Matrix)> {
    if known.unit != Unit::Tensor {
        return None;
    }
    let shape = known.modifiers.iter().find_map(|m| {
        Some(match *m {
            "884" | "8x8x4" => 8 * 8 * 4,
            "1684" | "16x8x4" => 16 * 8 * 4,
            "1688" | "16x8x8" => 16 * 8 * 8,
            "16816" | "16x8x16" => 16 * 8 * 16,
            "16832" => 16 * 8 * 32,
            "16864" => 16 * 8 * 64,
            "8816" => 8 * 8 * 16,
            "8832" => 8 * 8 * 32,
            "88128" => 8 * 8 * 128,
            "168128" => 16 * 8 * 128,
            "168256" => 16 * 8 * 256,
            _ => return None,
        })
    });
    let matrix = match known.opcode {
        "IMMA" | "BMMA" => Matrix::Int,
        "DMMA" => Matrix::F64,
        "QMMA" => Matrix::F8,
        _ if known.has("TF32") => Matrix::Tf32,
        _ => Matrix::F16,
    };
    // Half of what a sparse product's shape says is zero and left out.
    let sparse = if known.has("SP") { 2 } else { 1 };
    Some((shape? / sparse, matrix))
}
