//! Instructions and their operands.

mod text;

use crate::Unit;

/// Index of the register that reads as zero, in both register files.
pub const ZERO: u8 = 255;

/// One 128-bit instruction.
#[derive(Debug, Clone, PartialEq)]
pub struct Instruction {
    /// Byte address within its kernel's code.
    pub address: u32,
    /// Guard predicate; `None` for an unconditional instruction.
    pub guard: Option<Guard>,
    /// Opcode name, for example `IMAD`.
    pub opcode: &'static str,
    /// Modifiers of the name in printed order, without dots, for example `WIDE`, `U32`.
    pub modifiers: Vec<&'static str>,
    /// Operands in printed order: destinations first.
    pub operands: Vec<Operand>,
    /// Scheduling bits.
    pub control: Control,
    /// Execution unit.
    pub unit: Unit,
    /// Encoded bits.
    pub word: u128,
}

/// An unknown encoding, or bytes that are not an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unknown {
    /// Byte address within its kernel's code.
    pub address: u32,
    /// Encoded bits.
    pub word: u128,
    /// Opcode name, if known.
    pub opcode: Option<&'static str>,
}

/// Guard predicate of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guard {
    /// Index 0 to 6, or 7 for the predicate that is always true.
    pub index: u8,
    /// True for the uniform register file.
    pub uniform: bool,
    /// True if the instruction runs where the predicate is false.
    pub invert: bool,
}

/// Scheduling bits of an instruction, set by the assembler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Control {
    /// Cycles until the warp's next instruction.
    pub stall: u8,
    /// The yield bit as encoded.
    pub yield_: bool,
    /// Scoreboard (0 to 5) that is set until the result is available.
    pub write_barrier: Option<u8>,
    /// Scoreboard that is set until the sources were read.
    pub read_barrier: Option<u8>,
    /// Bit mask of the scoreboards to wait for.
    pub wait_mask: u8,
    /// Bit mask of the operand slots kept in the reuse cache.
    pub reuse: u8,
}

/// One operand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Operand {
    /// A register of a lane, or of the warp if [`Register::uniform`] is set.
    Register(Register),
    /// A predicate of a lane or of the warp.
    Predicate(Predicate),
    /// A convergence barrier, `B0` to `B15`.
    Barrier(u8),
    /// A scoreboard, `SB0` to `SB5`.
    Scoreboard(u8),
    /// An integer as printed, negative if printed signed; a 32-bit operation reads its low 32 bits.
    Immediate(i64),
    /// A 64-bit integer.
    Immediate64(u64),
    /// A floating-point number.
    Float(Float),
    /// A value in a constant bank.
    Constant(Constant),
    /// An address in memory.
    Address(Address),
    /// A special register, for example `SR_TID.X`.
    Special(&'static str),
    /// Byte address of an instruction of the same code.
    Target(u64),
    /// Any other operand, as printed.
    Text(&'static str),
}

/// A register operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Register {
    /// Index 0 to 254, or [`ZERO`].
    pub index: u8,
    /// True for the uniform register file: `UR`.
    pub uniform: bool,
    /// `-R`.
    pub negate: bool,
    /// `|R|`.
    pub absolute: bool,
    /// `~R`.
    pub invert: bool,
    /// True if the reuse cache keeps it for the next instruction.
    pub reuse: bool,
    /// `.64`: a 64-bit number together with the next register.
    pub wide: bool,
    /// Selected part or interpretation without its dot (`H0_H0`, `B1`, `U32`, `X4`); empty without
    /// one.
    pub selector: &'static str,
}

/// A predicate operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Predicate {
    /// Index 0 to 6, or 7 for the predicate that is always true.
    pub index: u8,
    /// True for the uniform register file: `UP`.
    pub uniform: bool,
    /// `!P`.
    pub invert: bool,
}

/// Encoding of a floating-point number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FloatFormat {
    /// IEEE half precision.
    Half,
    /// `bfloat16`.
    Brain,
    /// IEEE single precision.
    Single,
    /// IEEE double precision.
    Double,
}

/// A floating-point operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Float {
    /// Encoded bits, in the format's width.
    pub bits: u64,
    /// Encoding of the bits.
    pub format: FloatFormat,
}

/// A constant bank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bank {
    /// Bank number: `c[0x0]`.
    Number(u8),
    /// Descriptor in uniform registers: `cx[UR4]`.
    Descriptor(Register),
}

/// An operand in a constant bank: `c[0x0][0x168]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Constant {
    /// Constant bank.
    pub bank: Bank,
    /// Register added to the offset.
    pub base: Option<Register>,
    /// Offset in bytes.
    pub offset: i64,
    /// `-c`.
    pub negate: bool,
    /// `|c|`.
    pub absolute: bool,
    /// `~c`.
    pub invert: bool,
    /// `.64`: eight bytes.
    pub wide: bool,
    /// True if printed with a space between the brackets; the value is not affected.
    pub spaced: bool,
    /// Selected part, as for a register.
    pub selector: &'static str,
}

/// A memory address: `desc[UR4][R2.64+UR6+0x10]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// Prefix of the bracket, for example `gdesc`; empty without one.
    pub kind: &'static str,
    /// Memory descriptor `desc[UR4]`; it does not affect the address.
    pub descriptor: Option<Register>,
    /// Base register: 64 bits with [`Register::wide`], scaled with selector `X4`, `X8` or `X16`, 32
    /// bits zero-extended with `U32`.
    pub base: Option<Register>,
    /// Uniform register added to the base.
    pub uniform: Option<Register>,
    /// Offset in bytes; in tensor memory of the lane (upper half) and the column.
    pub offset: i64,
    /// Marks behind the bracket, such as `.tnspB`; empty without any.
    pub suffix: &'static str,
}

impl Control {
    /// Extracts the scheduling bits of an instruction, which have a fixed position.
    pub fn from_word(word: u128) -> Control {
        let bits = (word >> 105) as u32;
        let barrier = |at: u32| Some((bits >> at & 7) as u8).filter(|index| *index != 7);
        Control {
            stall: (bits & 0xf) as u8,
            yield_: bits >> 4 & 1 == 1,
            write_barrier: barrier(5),
            read_barrier: barrier(8),
            wait_mask: (bits >> 11 & 0x3f) as u8,
            reuse: (bits >> 17 & 0xf) as u8,
        }
    }
}

impl Instruction {
    /// Returns the bytes a lane of a load or a store by its modifiers: 4 where none names a width.
    pub fn access_bytes(&self) -> u8 {
        let named = self.modifiers.iter().find_map(|m| match *m {
            "U8" | "S8" => Some(1),
            "U16" | "S16" => Some(2),
            "64" => Some(8),
            "128" => Some(16),
            "256" => Some(32),
            _ => None,
        });
        named.unwrap_or(4)
    }

    /// Returns true if the instruction has this modifier.
    pub fn has(&self, modifier: &str) -> bool {
        self.modifiers.contains(&modifier)
    }

    /// Returns the name with all modifiers, for example `IMAD.WIDE.U32`.
    pub fn name(&self) -> String {
        let mut name = self.opcode.to_owned();
        for modifier in &self.modifiers {
            name.push('.');
            name.push_str(modifier);
        }
        name
    }
}

impl Register {
    /// Creates a register operand without signs or selector.
    pub fn new(index: u8, uniform: bool) -> Register {
        Register {
            index,
            uniform,
            negate: false,
            absolute: false,
            invert: false,
            reuse: false,
            wide: false,
            selector: "",
        }
    }

    /// Returns true for `RZ` and `URZ`.
    pub fn is_zero(&self) -> bool {
        self.index == ZERO
    }
}
