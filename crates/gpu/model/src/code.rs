//! Timing-relevant properties of a kernel's instructions: unit, control bits, register banks,
//! sizes.
//!
//! With the control bits the assembler controls when a warp may continue: stall cycles, and six
//! barriers that long operations set and later ones wait for. NVIDIA does not document them; they
//! are public through research (Jia et al., "Dissecting the NVIDIA Volta GPU architecture via
//! microbenchmarking", 2018, section 2; Yan et al., "Demystifying Tensor Cores", TuringAs, 2020).

use sass::{Bank, Control, Instruction, Operand, Unit, Unknown};
use std::collections::BTreeMap;
use vgpu::exec::trace::BlockTrace;

/// Types of matrix instructions with different rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Matrix {
    /// Half precision, `f16` or `bf16`.
    #[default]
    F16,
    Tf32,
    /// Integers of at most 8 bits.
    Int,
    /// Floats of 8 bits.
    F8,
    F64,
}

/// A source register of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Read {
    /// Register number; [`sass::ZERO`] if nothing is read.
    pub(super) register: u8,
    /// Position among the sources, from 0.
    pub(super) slot: u8,
    /// True if the register stays cached for the next instruction that reads it at this position.
    pub(super) reuse: bool,
}

/// Largest number of source registers of a fixed-latency instruction: three, of which one may be a
/// pair.
pub(super) const READS: usize = 4;

/// Absent source register.
const NO_READ: Read = Read {
    register: sass::ZERO,
    slot: 0,
    reuse: false,
};

/// Timing-relevant properties of one instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Instr {
    pub(super) unit: Unit,
    /// Numbers of a lane that the unit works on: two where an instruction has pairs of floats.
    pub(super) numbers: u64,
    /// Cycles until the warp's next instruction.
    pub(super) stall: u8,
    /// Barrier that is set until the result is available.
    pub(super) write_barrier: Option<u8>,
    /// Barrier that is set until the sources were read.
    pub(super) read_barrier: Option<u8>,
    /// Bit mask of the barriers to wait for.
    pub(super) wait: u8,
    /// Bytes per lane of a memory instruction.
    pub(super) bytes: u8,
    pub(super) write: bool,
    /// The 64-byte line of an operand in the constant banks, numbered through all banks.
    pub(super) operand: Option<u32>,
    /// The same line of a load of constants with a known address.
    pub(super) constant: Option<u32>,
    /// Groups of asynchronous copies that may still be pending after a wait.
    pub(super) left: u8,
    /// True for a copy to shared memory that leaves out the L1 cache.
    pub(super) bypasses: bool,
    /// True if the instruction ends a group of asynchronous copies.
    pub(super) commits: bool,
    /// End of this local-memory access in the thread's frame, bytes.
    pub(super) frame: u32,
    /// Source registers read through the ports of the register file in the first cycles.
    pub(super) reads: [Read; READS],
    /// True if the warp must yield to others in the next cycle.
    pub(super) yields: bool,
    /// True for single-precision arithmetic, which a second multiply-add pipe also executes.
    pub(super) single: bool,
    /// Number and type of a matrix instruction's multiply-adds.
    pub(super) tensor: (u32, Matrix),
    /// A product of a warp-group.
    pub(super) group: Option<GroupProduct>,
    /// Groups of products that may still be pending after a wait.
    pub(super) products_left: Option<u8>,
    /// A bulk copy.
    pub(super) bulk: Option<Bulk>,
    /// An operation of tensor memory.
    pub(super) tensor_core: Option<TensorCore>,
}

/// Operation of tensor memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TensorCore {
    /// A product of this many elements along K, whose rows and columns the trace has.
    Product { matrix: Matrix, depth: u32 },
    /// A copy from shared memory.
    Copy,
    /// An allocation of columns, which the trace has.
    Allocate,
    /// A load or store of registers.
    Transfer { registers: u32, stores: bool },
}

/// Direction of a bulk copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bulk {
    Load,
    Store,
}

/// A product of a warp-group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GroupProduct {
    /// Multiply-adds of one warp.
    pub(super) multiply_adds: u32,
    pub(super) matrix: Matrix,
    /// Bytes of the operands in shared memory, of all four warps.
    pub(super) operand_bytes: u32,
    /// First accumulator register.
    pub(super) accumulators: u8,
    /// The product ends a group.
    pub(super) commits: bool,
}

/// Upper bound of the number of [`Unit`] values.
pub(crate) const UNITS: usize = 24;

/// Counts the instructions that the warps of a block executed, by opcode and by unit.
pub(super) fn executed(
    kernel: &[Result<Instruction, Unknown>],
    trace: &BlockTrace,
) -> (BTreeMap<&'static str, u64>, [u64; UNITS]) {
    // Changes of the execution count from one instruction to the next, summed up below.
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

/// Extracts the timing-relevant properties of a kernel's instructions, in order of address.
pub(super) fn code(kernel: &[Result<Instruction, Unknown>]) -> Vec<Instr> {
    kernel.iter().map(instruction).collect()
}

fn instruction(decoded: &Result<Instruction, Unknown>) -> Instr {
    let word = match decoded {
        Ok(known) => known.word,
        Err(unknown) => unknown.word,
    };
    let control = Control::from_word(word);
    let bare = Instr {
        unit: Unit::Unknown,
        stall: control.stall,
        // The field has room for eight numbers, but there are six barriers.
        write_barrier: control.write_barrier.filter(|b| *b < 6),
        read_barrier: control.read_barrier.filter(|b| *b < 6),
        wait: control.wait_mask,
        bytes: 4,
        write: false,
        operand: None,
        constant: None,
        left: 0,
        bypasses: false,
        commits: false,
        frame: 0,
        reads: [NO_READ; READS],
        // The hardware bit is inverted: clear means yield.
        yields: !control.yield_,
        single: false,
        tensor: (0, Matrix::F16),
        numbers: 1,
        group: None,
        products_left: None,
        bulk: None,
        tensor_core: None,
    };
    let Ok(known) = decoded else {
        return bare;
    };
    Instr {
        unit: known.unit,
        bytes: bytes(known),
        write: matches!(known.opcode, "ST" | "STG" | "STL" | "STS" | "STSM" | "SUST"),
        operand: constant(known).filter(|_| known.unit != Unit::Constant),
        constant: constant(known).filter(|_| known.unit == Unit::Constant),
        left: left(known),
        bypasses: known.has("BYPASS"),
        commits: matches!(known.opcode, "LDGDEPBAR" | "UTMACMDFLUSH"),
        frame: frame(known),
        reads: reads(known),
        single: matches!(known.opcode, "FFMA" | "FADD" | "FMUL"),
        tensor: product(known).unwrap_or_default(),
        numbers: if matches!(known.opcode, "FADD2" | "FMUL2" | "FFMA2") {
            2
        } else {
            1
        },
        group: group_product(known),
        products_left: products_left(known),
        bulk: bulk(known),
        tensor_core: tensor_core(known),
        ..bare
    }
}

/// Returns the bytes per lane of a memory instruction.
fn bytes(known: &Instruction) -> u8 {
    // Each lane addresses a row of 16 bytes; the instruction loads 1, 2 or 4 matrices.
    let matrices = matches!(known.opcode, "LDSM" | "STSM");
    let sized = matches!(
        known.unit,
        Unit::Global | Unit::Shared | Unit::Local | Unit::Constant | Unit::CopyAsync
    );
    if !sized {
        return 4;
    }
    match () {
        () if matrices && known.has("2") => 8,
        () if matrices && known.has("4") => 16,
        () => known.access_bytes(),
    }
}

/// Returns the position of a constant with an immediate address.
fn constant(known: &Instruction) -> Option<u32> {
    known.operands.iter().find_map(|operand| match operand {
        Operand::Constant(c) if c.base.is_none_or(|base| base.is_zero()) => match c.bank {
            Bank::Number(bank) => Some(constant_line(u64::from(bank) << 16 | c.offset as u64)),
            Bank::Descriptor(_) => None,
        },
        _ => None,
    })
}

/// Returns the 64-byte line of a position in the constant banks, which are 64 KiB apart.
pub(super) fn constant_line(place: u64) -> u32 {
    (place / 64) as u32
}

/// Returns the number of groups that may still be pending after the wait.
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

/// Returns the registers that a fixed-latency instruction reads. Queued instructions, such as
/// loads, read when the ports are free.
fn reads(known: &Instruction) -> [Read; READS] {
    let mut found = [NO_READ; READS];
    if !matches!(known.unit, Unit::Fma | Unit::Alu | Unit::Half) {
        return found;
    }
    let sources = known
        .operands
        .iter()
        .enumerate()
        .filter(|(index, operand)| {
            // The result is the first operand, unless that is a predicate.
            let result = *index == 0 && matches!(operand, Operand::Register(_));
            !result && !matches!(operand, Operand::Predicate(_))
        });
    let mut room = found.iter_mut();
    for (slot, (_, operand)) in sources.enumerate() {
        let Operand::Register(register) = operand else {
            continue;
        };
        // Uniform registers are in a register file of their own.
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

/// Returns the direction of a bulk copy.
fn bulk(known: &Instruction) -> Option<Bulk> {
    match known.opcode {
        "UTMALDG" => Some(Bulk::Load),
        "UTMASTG" | "UTMAREDG" => Some(Bulk::Store),
        // The first modifier is the destination: shared memory, or global memory.
        "UBLKCP" if known.modifiers.first() == Some(&"S") => Some(Bulk::Load),
        "UBLKCP" => Some(Bulk::Store),
        _ => None,
    }
}

/// Returns the operation of tensor memory. A row of every type has 32 bytes in one step.
fn tensor_core(known: &Instruction) -> Option<TensorCore> {
    let product = |matrix, depth| Some(TensorCore::Product { matrix, depth });
    match known.opcode {
        // `tf32` has half of the elements, at half of the rate.
        "UTCHMMA" => product(Matrix::F16, 16),
        "UTCIMMA" => product(Matrix::Int, 32),
        // Elements of 4 bits are twice as many, at twice the rate.
        "UTCQMMA" | "UTCOMMA" => product(Matrix::F8, 32),
        "UTCCP" => Some(TensorCore::Copy),
        "UTCATOMSWS" if known.has("FIND_AND_SET") => Some(TensorCore::Allocate),
        "LDTM" | "STTM" => {
            let number = |m: &&str| m.strip_prefix('x')?.parse().ok();
            let repeats: u32 = known.modifiers.iter().find_map(number).unwrap_or(1);
            // A repetition of `.16x128b` has two registers of a lane, one of `.16x256b` four.
            let each = match () {
                () if known.has("16dp128bit") => 2,
                () if known.has("16dp256bit") => 4,
                () => 1,
            };
            Some(TensorCore::Transfer {
                registers: repeats * each,
                stores: known.opcode == "STTM",
            })
        }
        _ => None,
    }
}

/// Reports whether pairs of blocks multiply together.
pub(super) fn has_pairs(kernel: &[Result<Instruction, Unknown>]) -> bool {
    let mut known = kernel.iter().flatten();
    known.any(|i| i.unit == Unit::Tensor && i.has("2CTA"))
}

/// Returns the product of a warp-group, by its shape such as `64x128x16`.
fn group_product(known: &Instruction) -> Option<GroupProduct> {
    if !matches!(known.opcode, "HGMMA" | "QGMMA" | "IGMMA" | "BGMMA") {
        return None;
    }
    let mut numbers = known.modifiers.first()?.split('x').map(str::parse::<u32>);
    let mut next = || numbers.next()?.ok();
    let (rows, columns, depth) = (next()?, next()?, next()?);
    let registers = known
        .operands
        .iter()
        .take_while(|o| matches!(o, Operand::Register(_)));
    // A row of every type has 32 bytes; A may lie in registers.
    let rows_in_memory = if registers.count() == 1 { rows } else { 0 };
    Some(GroupProduct {
        // Each of the four warps has a quarter of the rows.
        multiply_adds: rows / 4 * columns * depth,
        matrix: matrix_type(known),
        operand_bytes: 32 * (rows_in_memory + columns),
        accumulators: match known.operands.first()? {
            Operand::Register(register) => register.index,
            _ => return None,
        },
        commits: known.operands.contains(&Operand::Text("gsb0")),
    })
}

/// Counts the products of warp-groups, and those of them for which the next product waits because the assembler
/// put a wait for all groups between them.
pub fn serialized_products(kernel: &[Result<Instruction, Unknown>]) -> (usize, usize) {
    let (mut products, mut serialized) = (0, 0);
    // Whether a product was issued, and a wait for it came after it.
    let (mut issued, mut waited) = (false, false);
    for known in kernel.iter().flatten() {
        if group_product(known).is_some() {
            products += 1;
            serialized += usize::from(issued && waited);
            (issued, waited) = (true, false);
        } else if products_left(known) == Some(0) {
            waited = true;
        } else if known.unit == Unit::Branch {
            // Behind a jump, a wait may be the kernel's own at the end of its step.
            issued = false;
        }
    }
    (products, serialized)
}

/// Returns the number of groups of products that may be pending after a wait.
fn products_left(known: &Instruction) -> Option<u8> {
    if known.opcode != "WARPGROUP" || !known.has("DEPBAR") {
        return None;
    }
    known.operands.iter().find_map(|operand| match operand {
        Operand::Immediate(left) => u8::try_from(*left).ok(),
        _ => None,
    })
}

fn matrix_type(known: &Instruction) -> Matrix {
    match known.opcode {
        "IMMA" | "BMMA" | "IGMMA" | "BGMMA" => Matrix::Int,
        "DMMA" => Matrix::F64,
        "QMMA" | "QGMMA" => Matrix::F8,
        _ if known.has("TF32") => Matrix::Tf32,
        _ => Matrix::F16,
    }
}

/// Returns the number and type of a matrix instruction's multiply-adds, by its name, which has
/// rows, columns and depth without separators.
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
    // A sparse product skips half of the multiply-adds of its shape.
    let sparse = if known.has("SP") { 2 } else { 1 };
    Some((shape? / sparse, matrix_type(known)))
}
