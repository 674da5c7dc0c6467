//! One 128-bit instruction.
//!
//! Bits 0-8 name the operation, 9-11 the form of its operands, 12-15 the guard predicate, 16-23
//! the destination, 24-31, 32-39 and 64-71 the sources; 105-108 stall cycles, 109 yield, 110-112
//! the barrier set when a result is there, 113-115 the barrier set when sources were read, 116-121
//! barriers to wait for, 122-125 operands kept in the reuse cache.
#![expect(clippy::indexing_slicing, reason = "one bit numbers one of two banks")]

/// What executes an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Unit {
    /// Single-precision multiply-add and 32-bit integer multiply-add.
    Fma,
    /// Integer, logic, compare, select, minimum.
    Alu,
    /// Packed half precision.
    Half,
    /// Double precision.
    Double,
    /// Approximations and conversions.
    Special,
    /// Matrix instructions; how many multiply-adds a warp makes depends on the form.
    Tensor,
    /// The uniform datapath.
    Uniform,
    /// Branches and what belongs to them.
    Branch,
    /// Block-wide barriers.
    Barrier,
    /// Waits for a number of outstanding operations.
    Depbar,
    /// Loads and stores of global memory.
    Global,
    /// Asynchronous copies from global to shared memory.
    CopyAsync,
    /// Loads and stores of shared memory, and matrices from it.
    Shared,
    /// Loads and stores of local memory: spills, and arrays that are indexed.
    Local,
    /// Loads of constants by the load path.
    Constant,
    /// Atomics on global memory.
    Atomic,
    /// Atomics on shared memory.
    SharedAtomic,
    /// Exchanges between lanes.
    Shuffle,
    /// Reads of special registers, and other small requests to the memory input queue.
    Misc,
    /// Textures.
    Texture,
    /// Takes an issue slot and nothing else.
    Nop,
    /// Not known: taken for [`Unit::Alu`].
    Unknown,
}

/// Where control goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Jump {
    /// To the next instruction.
    None,
    /// To an instruction, if the guard holds.
    To(u32),
    /// To an instruction of a function that comes back.
    Call(u32),
    /// Back from a function.
    Return,
    /// Ends the warp, if the guard holds.
    Exit,
    /// To a place known at run time.
    Indirect,
    /// Notes where lanes of a coming split meet.
    Split(u32),
    /// Where they meet.
    Meet,
}

/// No barrier.
pub(crate) const NO_BARRIER: u8 = 7;

/// One instruction, as far as time depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Instr {
    /// Operation, nine bits.
    pub(crate) opcode: u16,
    pub(crate) unit: Unit,
    pub(crate) jump: Jump,
    /// Runs under a predicate that is not always true.
    pub(crate) guarded: bool,
    /// PTX line, or zero.
    pub(crate) line: u32,
    /// Cycles until the warp's next instruction.
    pub(crate) stall: u8,
    /// Barrier set until the result is there, or [`NO_BARRIER`].
    pub(crate) write_barrier: u8,
    /// Barrier set until the sources were read.
    pub(crate) read_barrier: u8,
    /// Barriers waited for, a bit each.
    pub(crate) wait: u8,
    /// Bytes a lane of a memory instruction.
    pub(crate) bytes: u8,
    pub(crate) write: bool,
    /// Immediate offset of a local access; count of a wait.
    pub(crate) immediate: i32,
    /// A local access at an address that is computed: an array that is indexed at run time.
    pub(crate) indexed: bool,
    /// Source registers beyond what the banks give in one cycle.
    pub(crate) bank_conflicts: u8,
    /// Raw bits of the second half, for the forms of matrix instructions.
    pub(crate) form: u64,
}

/// Decodes a kernel.
pub(super) fn code(data: &[u8], lines: Option<&Vec<(u32, u32)>>, sm: u32) -> Vec<Instr> {
    let words = data.as_chunks::<16>().0;
    let mut code: Vec<Instr> = words
        .iter()
        .enumerate()
        .map(|(index, bytes)| {
            let bits = u128::from_le_bytes(*bytes);
            instruction(bits as u64, (bits >> 64) as u64, index as u32, sm)
        })
        .collect();
    let mut line = 0;
    let mut rows = lines
        .map(Vec::as_slice)
        .unwrap_or_default()
        .iter()
        .peekable();
    for (index, instr) in code.iter_mut().enumerate() {
        while let Some((_, at)) = rows.next_if(|(address, _)| *address <= index as u32 * 16) {
            line = *at;
        }
        instr.line = line;
    }
    code
}

fn unit(op: u16) -> Unit {
    use Unit::*;
    match op {
        0x020..=0x025 | 0x027 => Fma,
        0x026 => Alu,
        // Packed dot products of small integers run beside integer multiply-add.
        0x042 => Fma,
        0x002..=0x004 | 0x007..=0x00d | 0x010..=0x01f | 0x036 | 0x038 | 0x039 | 0x03e => Alu,
        0x045..=0x04f | 0x072..=0x079 | 0x07b..=0x07f => Alu,
        0x005 => Misc,
        0x006 => Alu,
        0x028..=0x02b => Double,
        0x030..=0x035 | 0x040 | 0x041 => Half,
        0x037 | 0x03a | 0x03c | 0x03d | 0x03f | 0x07a | 0x1f0..=0x1f7 => Tensor,
        0x03b | 0x044 => Shared,
        0x100..=0x102 | 0x104..=0x109 | 0x110..=0x113 => Special,
        0x080..=0x0bf => Uniform,
        0x11a => Depbar,
        0x11d => Barrier,
        0x118 | 0x11e | 0x12f => Nop,
        0x119 | 0x11b | 0x11c | 0x1c0..=0x1c7 | 0x1a1 | 0x1a7 => Misc,
        0x140..=0x15f => Branch,
        0x160..=0x17f => Texture,
        0x180 | 0x181 | 0x185 | 0x186 => Global,
        0x182 => Constant,
        0x183 | 0x187 => Local,
        0x184 | 0x188 => Shared,
        0x189 => Shuffle,
        0x18a | 0x18b | 0x18e | 0x1a3 | 0x1a8 | 0x1a9 | 0x1a6 => Atomic,
        0x18c | 0x18d => SharedAtomic,
        0x18f..=0x19f | 0x1ab..=0x1ad | 0x1b0..=0x1bf => Misc,
        0x1ae => CopyAsync,
        0x1af => Misc,
        _ => Unknown,
    }
}

fn jump(op: u16, lo: u64, index: u32, sm: u32) -> Jump {
    let target = || {
        // In units of four bytes from bit 34; since compute capability 9.0 their low eight bits
        // stand in bits 16-23.
        let high = (lo as i64) >> 34;
        let words = if sm >= 90 {
            high << 8 | (lo >> 16 & 0xff) as i64
        } else {
            high
        };
        index
            .wrapping_add(1)
            .wrapping_add_signed((words / 4) as i32)
    };
    match op {
        0x147 | 0x14a => Jump::To(target()),
        0x143 | 0x144 | 0x146 => Jump::Call(target()),
        0x150 => Jump::Return,
        0x14d => Jump::Exit,
        0x149 | 0x14c => Jump::Indirect,
        0x145 => Jump::Split(target()),
        0x141 => Jump::Meet,
        _ => Jump::None,
    }
}

fn bytes(code: u64) -> u8 {
    match code & 7 {
        0 | 1 => 1,
        2 | 3 => 2,
        5 => 8,
        6 => 16,
        _ => 4,
    }
}

/// Sources in the same of the two banks beyond two, where the reuse cache does not hold them.
fn bank_conflicts(lo: u64, hi: u64, op: u16) -> u8 {
    // Only three-source arithmetic can ask one bank for three registers.
    if !matches!(op, 0x023 | 0x024 | 0x02b | 0x031) {
        return 0;
    }
    let form = lo >> 9 & 7;
    let reuse = hi >> 58 & 0xf;
    let a = lo >> 24 & 0xff;
    let c = hi & 0xff;
    let b = lo >> 32 & 0xff;
    // Form 1 has three registers; the others take one source from elsewhere.
    if form != 1 {
        return 0;
    }
    let mut banks = [0u8; 2];
    for (register, slot) in [(a, 0), (b, 1), (c, 2)] {
        if register != 0xff && reuse >> slot & 1 == 0 {
            banks[(register & 1) as usize] += 1;
        }
    }
    banks.into_iter().max().unwrap_or(0).saturating_sub(2)
}

fn instruction(lo: u64, hi: u64, index: u32, sm: u32) -> Instr {
    let opcode = (lo & 0x1ff) as u16;
    let unit = unit(opcode);
    let write = matches!(opcode, 0x185..=0x188 | 0x044);
    let size = match (opcode, unit) {
        // Each lane gives the address of a row of 16 bytes; 1, 2 or 4 matrices.
        (0x03b | 0x044, _) => 4 << (hi >> 8 & 3).min(2),
        (_, Unit::Global | Unit::Shared | Unit::Local | Unit::Constant | Unit::CopyAsync) => {
            bytes(hi >> 9)
        }
        _ => 4,
    };
    let immediate = match unit {
        Unit::Local => (lo >> 40) as i32,
        Unit::Depbar => (lo >> 38 & 0x3f) as i32,
        _ => 0,
    };
    Instr {
        opcode,
        unit,
        jump: jump(opcode, lo, index, sm),
        guarded: lo >> 12 & 7 != 7 || lo >> 15 & 1 == 1,
        line: 0,
        stall: (hi >> 41 & 0xf) as u8,
        write_barrier: (hi >> 46 & 7) as u8,
        read_barrier: (hi >> 49 & 7) as u8,
        wait: (hi >> 52 & 0x3f) as u8,
        bytes: size,
        write,
        immediate,
        // Spills and fixed places are addressed by the stack pointer, R1.
        indexed: unit == Unit::Local && !matches!(lo >> 24 & 0xff, 1 | 0xff),
        bank_conflicts: bank_conflicts(lo, hi, opcode),
        form: hi,
    }
}
