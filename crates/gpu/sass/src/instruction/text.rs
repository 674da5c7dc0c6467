//! Text of instructions and operands in the syntax of `nvdisasm`.

use super::*;
use std::fmt::{self, Display, Formatter};

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
            // An indirect branch prints register and offset as one operand.
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

/// Formats a signed number: `0x10` or `-0x10`.
fn signed(value: i64) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{:#x}", value.unsigned_abs())
}

/// Writes the signs and bars around an operand.
fn within(
    f: &mut Formatter<'_>,
    [negate, invert, absolute]: [bool; 3],
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
        let signs = [self.negate, self.invert, self.absolute];
        // Only a uniform register has its selector within the bars.
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
        within(f, [self.negate, self.invert, self.absolute], &text)
    }
}

/// Formats an offset: `+0x10` or `+-0x10`.
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
        write!(f, "[{}]{}", parts.join("+"), self.suffix)
    }
}

impl Display for Float {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let value = self.value();
        let sign = if value.is_sign_negative() { '-' } else { '+' };
        if value.is_infinite() {
            // `nvdisasm` has a space after this text and the next two.
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
    /// Converts the number to a double; a NaN's sign and payload may be lost.
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

/// Formats twenty significant digits like C's `%.20g`, and numbers from 1e9 on like `%.20e`.
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

/// Formats an exponent with its sign and at least two digits.
fn exponent(text: &str) -> String {
    let (mantissa, power) = text.split_once('e').unwrap_or((text, "0"));
    let power: i32 = power.parse().unwrap_or(0);
    let sign = if power < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", power.unsigned_abs())
}

/// Converts a half-precision number.
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
