//! What time depends on, of a kernel's instructions: unit, control bits, register banks, sizes.
//!
//! The control bits are those by which the assembler tells the hardware when a warp may go on: stall
//! cycles, and six barriers that long operations set and later ones wait for. NVIDIA does not
//! document them; they are public knowledge (Jia et al., "Dissecting the NVIDIA Volta GPU
//! architecture via microbenchmarking", 2018, section 2; Yan et al., "Demystifying Tensor Cores",
//! TuringAs, 2020).

use sass::{Control, Instruction, Operand, Unit, Unknown};
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
    /// Groups of asynchronous copies that may be under way behind a wait for them.
    pub(super) left: u8,
    /// Ends a group of asynchronous copies.
    pub(super) commits: bool,
    /// Bytes of the thread's frame up to the end of this access to local memory.
    pub(super) frame: u32,
    /// Source registers beyond what the banks give in one cycle.
    pub(super) bank_conflicts: u8,
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
        left: 0,
        commits: false,
        frame: 0,
        bank_conflicts: 0,
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
        left: left(known),
        commits: known.opcode == "LDGDEPBAR",
        frame: frame(known),
        bank_conflicts: bank_conflicts(known),
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

/// Sources in the same of the two banks beyond two, where the reuse cache does not hold them.
fn bank_conflicts(known: &Instruction) -> u8 {
    // Only three-source arithmetic can ask one bank for three registers.
    let three = match known.opcode {
        "FFMA" | "DFMA" => true,
        "HFMA2" => !known.has("MMA"),
        "IMAD" => !known.has("WIDE") && !known.has("HI"),
        _ => false,
    };
    // Form 1 has three registers; the others take one source from elsewhere.
    if !three || known.word >> 9 & 7 != 1 {
        return 0;
    }
    let mut banks = [0u8; 2];
    for operand in known.operands.iter().skip(1) {
        if let Operand::Register(r) = operand
            && !r.is_zero()
            && !r.reuse
        {
            banks[usize::from(r.index & 1)] += 1;
        }
    }
    banks.into_iter().max().unwrap_or(0).saturating_sub(2)
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
