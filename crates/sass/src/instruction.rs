//! One instruction with its operands.

mod text;

use crate::Unit;

/// Index of the register that reads as zero, in both register files.
pub const ZERO: u8 = 255;

/// One 128-bit instruction.
#[derive(Debug, Clone, PartialEq)]
pub struct Instruction {
    /// Byte address within its kernel's code.
    pub address: u32,
    /// The predicate it runs under; none where it always runs.
    pub guard: Option<Guard>,
    /// Its name, for example `IMAD`.
    pub opcode: &'static str,
    /// The name's endings in their written order, without dots, for example `WIDE`, `U32`.
    pub modifiers: Vec<&'static str>,
    /// In their written order: destinations first.
    pub operands: Vec<Operand>,
    /// How it is scheduled.
    pub control: Control,
    /// What executes it.
    pub unit: Unit,
    /// Its 128 bits.
    pub word: u128,
}

/// An encoding that is not known, or bytes that are no instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unknown {
    /// Byte address within its kernel's code.
    pub address: u32,
    /// Its 128 bits.
    pub word: u128,
    /// The operation's name, where at least this is known.
    pub opcode: Option<&'static str>,
}

/// The predicate that an instruction runs under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guard {
    /// 0 to 6, or 7 for the one that is always true.
    pub index: u8,
    /// From the uniform register file.
    pub uniform: bool,
    /// Runs where the predicate is false.
    pub invert: bool,
}

/// How the assembler schedules an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Control {
    /// Cycles until the warp's next instruction.
    pub stall: u8,
    /// The yield bit as encoded.
    pub yield_: bool,
    /// Scoreboard (0 to 5) set until the result is there.
    pub write_barrier: Option<u8>,
    /// Scoreboard set until the sources were read.
    pub read_barrier: Option<u8>,
    /// Scoreboards waited for, a bit each.
    pub wait_mask: u8,
    /// Operand slots kept in the reuse cache, a bit each.
    pub reuse: u8,
}

/// One operand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Operand {
    /// A register of a lane, or of the warp where [`Register::uniform`] says so.
    Register(Register),
    /// A predicate of a lane or of the warp.
    Predicate(Predicate),
    /// A convergence barrier, `B0` to `B15`.
    Barrier(u8),
    /// A scoreboard, `SB0` to `SB5`.
    Scoreboard(u8),
    /// An integer as it is written: where it is written signed, negative; its low 32 bits are what
    /// a 32-bit operation reads.
    Immediate(i64),
    /// An integer of 64 bits.
    Immediate64(u64),
    /// A floating-point number.
    Float(Float),
    /// A value of a constant bank.
    Constant(Constant),
    /// An address in memory.
    Address(Address),
    /// A special register, for example `SR_TID.X`.
    Special(&'static str),
    /// The byte address of an instruction of the same code.
    Target(u64),
    /// Anything else, as it is written.
    Text(&'static str),
}

/// A register as an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Register {
    /// 0 to 254, or [`ZERO`].
    pub index: u8,
    /// From the uniform register file: `UR`.
    pub uniform: bool,
    /// `-R`.
    pub negate: bool,
    /// `|R|`.
    pub absolute: bool,
    /// `~R`.
    pub invert: bool,
    /// Kept in the reuse cache for the next instruction.
    pub reuse: bool,
    /// `.64`: with its successor, a 64-bit number.
    pub wide: bool,
    /// The part or interpretation that is read, without its dot (`H0_H0`, `B1`, `U32`, `X4`);
    /// empty where there is none.
    pub selector: &'static str,
}

/// A predicate as an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Predicate {
    /// 0 to 6, or 7 for the one that is always true.
    pub index: u8,
    /// From the uniform register file: `UP`.
    pub uniform: bool,
    /// `!P`.
    pub invert: bool,
}

/// How a floating-point number is encoded.
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

/// A floating-point number as an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Float {
    /// Its bits, in the format's width.
    pub bits: u64,
    /// How they are read.
    pub format: FloatFormat,
}

/// A bank of constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bank {
    /// By its number: `c[0x0]`.
    Number(u8),
    /// By a descriptor in uniform registers: `cx[UR4]`.
    Descriptor(Register),
}

/// A value of a constant bank as an operand: `c[0x0][0x168]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Constant {
    /// The bank.
    pub bank: Bank,
    /// Register that is added to the offset.
    pub base: Option<Register>,
    /// Bytes.
    pub offset: i64,
    /// `-c`.
    pub negate: bool,
    /// `|c|`.
    pub absolute: bool,
    /// `~c`.
    pub invert: bool,
    /// `.64`: eight bytes.
    pub wide: bool,
    /// Written with a space between the brackets; says nothing about the value.
    pub spaced: bool,
    /// As of a register.
    pub selector: &'static str,
}

/// An address in memory: `desc[UR4][R2.64+UR6+0x10]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// What stands before the bracket, for example `gdesc`; empty where nothing does.
    pub kind: &'static str,
    /// The memory descriptor `desc[UR4]`; it decides nothing about the address.
    pub descriptor: Option<Register>,
    /// Register part. With [`Register::wide`] 64 bits; selector `X4`, `X8`, `X16`: scaled;
    /// `U32`: 32 bits, zero-extended.
    pub base: Option<Register>,
    /// Uniform part.
    pub uniform: Option<Register>,
    /// Bytes.
    pub offset: i64,
}

impl Control {
    /// The scheduling bits of an instruction; every encoding has them at the same place.
    pub fn of(word: u128) -> Control {
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
    /// Whether one of the name's endings is `modifier`.
    pub fn has(&self, modifier: &str) -> bool {
        self.modifiers.contains(&modifier)
    }

    /// The name with all its endings, for example `IMAD.WIDE.U32`.
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
    /// A register read as it is.
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

    /// Whether it is `RZ` or `URZ`.
    pub fn is_zero(&self) -> bool {
        self.index == ZERO
    }
}
