//! One instruction and its text, as `nvdisasm` writes it.

use crate::Unit;
use std::fmt::{self, Display, Formatter};

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

impl Display for Instruction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(guard) = self.guard {
            let predicate = Predicate {
                index: guard.index,
                uniform: guard.uniform,
                invert: guard.invert,
            };
            write!(f, "@{predicate} ")?;
        }
        f.write_str(self.opcode)?;
        for modifier in &self.modifiers {
            write!(f, ".{modifier}")?;
        }
        for (index, operand) in self.operands.iter().enumerate() {
            // An indirect branch writes register and offset as one operand.
            let before = index
                .checked_sub(1)
                .and_then(|before| self.operands.get(before));
            let joined = matches!(self.opcode, "BRX" | "JMX" | "RET" | "CALL")
                && matches!(before, Some(Operand::Register(_)));
            let between = if index == 0 || joined { " " } else { ", " };
            write!(f, "{between}{operand}")?;
        }
        Ok(())
    }
}

impl Display for Unknown {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let name = self.opcode.unwrap_or("unknown");
        write!(f, "{name} at {:#x} ({:#034x})", self.address, self.word)
    }
}

impl Display for Operand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Operand::Register(register) => register.fmt(f),
            Operand::Predicate(predicate) => predicate.fmt(f),
            Operand::Barrier(index) => write!(f, "B{index}"),
            Operand::Scoreboard(index) => write!(f, "SB{index}"),
            Operand::Immediate(value) => f.write_str(&signed(*value)),
            Operand::Immediate64(value) => write!(f, "{value:#x}"),
            Operand::Float(float) => float.fmt(f),
            Operand::Constant(constant) => constant.fmt(f),
            Operand::Address(address) => address.fmt(f),
            Operand::Special(text) | Operand::Text(text) => f.write_str(text),
            Operand::Target(address) => f.write_str(&signed(*address as i64)),
        }
    }
}

/// `0x10` or `-0x10`.
fn signed(value: i64) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{:#x}", value.unsigned_abs())
}

/// Writes what stands around an operand that has signs.
fn within(
    f: &mut Formatter<'_>,
    (negate, invert, absolute): (bool, bool, bool),
    text: &dyn Display,
) -> fmt::Result {
    if negate {
        f.write_str("-")?;
    }
    if invert {
        f.write_str("~")?;
    }
    if absolute {
        write!(f, "|{text}|")
    } else {
        text.fmt(f)
    }
}

impl Display for Register {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let file = if self.uniform { "UR" } else { "R" };
        let name = match self.index {
            ZERO => format!("{file}Z"),
            index => format!("{file}{index}"),
        };
        let mut parts = String::new();
        if self.reuse {
            parts.push_str(".reuse");
        }
        if self.wide {
            parts.push_str(".64");
        }
        if !self.selector.is_empty() {
            parts.push('.');
            parts.push_str(self.selector);
        }
        let signs = (self.negate, self.invert, self.absolute);
        // Only a uniform register has its part within the bars.
        if self.uniform {
            within(f, signs, &format!("{name}{parts}"))
        } else {
            within(f, signs, &name)?;
            f.write_str(&parts)
        }
    }
}

impl Display for Predicate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let sign = if self.invert { "!" } else { "" };
        let file = if self.uniform { "UP" } else { "P" };
        match self.index {
            7 => write!(f, "{sign}{file}T"),
            index => write!(f, "{sign}{file}{index}"),
        }
    }
}

impl Display for Constant {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let bank = match self.bank {
            Bank::Number(number) => format!("c[{number:#x}]"),
            Bank::Descriptor(register) => format!("cx[{register}]"),
        };
        let place = match (self.base, self.offset) {
            (None, offset) => signed(offset),
            (Some(base), 0) => base.to_string(),
            (Some(base), offset) => format!("{base}{}", plus(offset)),
        };
        let space = if self.spaced { " " } else { "" };
        let text = format!("{bank}{space}[{place}]");
        let mut text = text;
        if self.wide {
            text.push_str(".64");
        }
        if !self.selector.is_empty() {
            text.push('.');
            text.push_str(self.selector);
        }
        within(f, (self.negate, self.invert, self.absolute), &text)
    }
}

/// `+0x10` or `+-0x10`.
fn plus(offset: i64) -> String {
    format!("+{}", signed(offset))
}

impl Display for Address {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind)?;
        if let Some(descriptor) = self.descriptor {
            write!(f, "desc[{descriptor}]")?;
        }
        let mut parts: Vec<String> = [self.base, self.uniform]
            .into_iter()
            .flatten()
            .map(|register| register.to_string())
            .collect();
        if self.offset != 0 || parts.is_empty() {
            parts.push(signed(self.offset));
        }
        write!(f, "[{}]", parts.join("+"))
    }
}

impl Display for Float {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let value = self.value();
        let sign = if value.is_sign_negative() { '-' } else { '+' };
        if value.is_infinite() {
            return write!(f, "{sign}INF ");
        }
        if value.is_nan() {
            let quiet = match self.format {
                FloatFormat::Half => self.bits >> 9,
                FloatFormat::Brain => self.bits >> 6,
                FloatFormat::Single => self.bits >> 22,
                FloatFormat::Double => self.bits >> 51,
            };
            let sign = if self.negative() { '-' } else { '+' };
            let kind = if quiet & 1 == 1 { "QNAN" } else { "SNAN" };
            return write!(f, "{sign}{kind} ");
        }
        if value == 0.0 && value.is_sign_negative() {
            return f.write_str("-0.0 ");
        }
        f.write_str(&decimal(value))
    }
}

impl Float {
    /// The number; a NaN's sign and payload may be lost.
    pub fn value(&self) -> f64 {
        match self.format {
            FloatFormat::Half => half(self.bits as u16),
            FloatFormat::Brain => f64::from(f32::from_bits((self.bits as u32) << 16)),
            FloatFormat::Single => f64::from(f32::from_bits(self.bits as u32)),
            FloatFormat::Double => f64::from_bits(self.bits),
        }
    }

    fn negative(&self) -> bool {
        let top = match self.format {
            FloatFormat::Half | FloatFormat::Brain => 15,
            FloatFormat::Single => 31,
            FloatFormat::Double => 63,
        };
        self.bits >> top & 1 == 1
    }
}

/// Twenty significant digits as C's `%.20g`, and numbers from 1e9 on as `%.20e`.
fn decimal(value: f64) -> String {
    if value.abs() >= 1e9 {
        return exponent(&format!("{value:.20e}"));
    }
    let text = format!("{value:.19e}");
    let (mantissa, power) = text.split_once('e').unwrap_or((&text, "0"));
    let power: i32 = power.parse().unwrap_or(0);
    if power < -4 {
        let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
        return exponent(&format!("{mantissa}e{power}"));
    }
    let digits = usize::try_from(19 - power).unwrap_or(0);
    let text = format!("{value:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// Writes an exponent with its sign and at least two digits.
fn exponent(text: &str) -> String {
    let (mantissa, power) = text.split_once('e').unwrap_or((text, "0"));
    let power: i32 = power.parse().unwrap_or(0);
    let sign = if power < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", power.unsigned_abs())
}

/// A half-precision number's value.
fn half(bits: u16) -> f64 {
    let fraction = f64::from(bits & 0x3ff);
    let exponent = i32::from(bits >> 10 & 0x1f);
    let value = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    };
    if bits >> 15 == 1 { -value } else { value }
}
