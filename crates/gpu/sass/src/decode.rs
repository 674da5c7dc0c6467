//! Decoder of 128-bit words into instructions.

use crate::instruction::{
    Bank, Constant, Control, Float, FloatFormat, Guard, Instruction, Operand, Predicate, Register,
    Unknown,
};
use crate::place;
use crate::reader::{Reader, choose_text, extend};
use crate::table::{Bits, Field, Line, Modifier, Number, Sign, Slot, Source, TABLE};

/// Decodes one instruction.
///
/// `address` is its byte address in its kernel's code, `sm` the compute capability times ten.
///
/// # Errors
/// An encoding that the table does not contain, or a field value with unknown meaning.
pub fn decode(word: u128, address: u32, sm: u32) -> Result<Instruction, Unknown> {
    let opcode = (word & 0x1ff) as u16;
    let mut reader = Reader {
        word,
        seen: 0,
        sm,
        form: (word >> 9 & 7) as u8,
    };
    let mut name = None;
    for line in TABLE.lines(opcode) {
        if !(line.from..=line.to).contains(&sm) || line.forms >> reader.form & 1 == 0 {
            continue;
        }
        // For the error, if no line applies.
        name = name.or(Some(line.name));
        // Bits that a line before has tested must not count as read by this one.
        reader.seen = 0;
        if !line
            .conditions
            .iter()
            .all(|c| (reader.bits(&c.bits) == c.value) == c.equal)
        {
            continue;
        }
        name = Some(line.name);
        match read(&mut reader, line, address) {
            Some(instruction) if reader.complete() => return Ok(instruction),
            _ => break,
        }
    }
    Err(Unknown {
        address,
        word,
        opcode: name,
    })
}

fn read(reader: &mut Reader, line: &Line, address: u32) -> Option<Instruction> {
    let guard = Guard {
        index: reader.get(12, 3) as u8,
        uniform: line.uniform_guard,
        invert: reader.bit(15),
    };
    let mut out = Instruction {
        address,
        // `@!PT` stays: such an instruction never executes.
        guard: (guard.index != 7 || guard.invert).then_some(guard),
        opcode: line.name,
        modifiers: Vec::new(),
        operands: Vec::new(),
        control: Control::from_word(reader.word),
        unit: line.unit,
        word: reader.word,
    };
    for modifier in &line.modifiers {
        let text = match modifier {
            Modifier::Fixed(text) => text,
            Modifier::Field(choice) => choose_text(reader, choice)?,
        };
        out.modifiers
            .extend(text.split('.').filter(|part| !part.is_empty()));
    }
    for field in &line.fields {
        operand(reader, field, address, &mut out.operands)?;
    }
    crate::alias::apply(&mut out);
    Some(out)
}

fn operand(reader: &mut Reader, field: &Field, address: u32, out: &mut Vec<Operand>) -> Option<()> {
    let next = i64::from(address) + 16;
    match field {
        Field::Source(source) => source_operand(reader, source, out)?,
        Field::Predicate {
            at,
            uniform,
            reversed,
            invert,
            optional,
        } => {
            let invert = invert.is_some_and(|bit| reader.bit(bit));
            let index = reader.get(*at, 3) as u8;
            let predicate = Predicate {
                index: if *reversed { 7 - index } else { index },
                uniform: *uniform,
                invert,
            };
            if !(*optional && predicate.index == 7 && !predicate.invert) {
                out.push(Operand::Predicate(predicate));
            }
        }
        Field::Immediate {
            bits,
            signed,
            scale,
            optional,
        } => {
            let value = number(reader, bits, *signed);
            if !(*optional && value == 0) {
                out.push(Operand::Immediate(value.wrapping_mul(i64::from(*scale))));
            }
        }
        Field::Target { relative, optional } => {
            let offset = branch_offset(reader);
            if *optional && offset == 0 {
                return Some(());
            }
            out.push(if *relative {
                Operand::Immediate(offset)
            } else {
                Operand::Target(next.wrapping_add(offset) as u64)
            });
        }
        Field::NearTarget => {
            let target = next.wrapping_add(reader.signed(32, 32));
            out.push(Operand::Target(target as u64));
        }
        Field::Special(at) => {
            let number = reader.get(*at, 8) as u8;
            out.push(Operand::Special(TABLE.special(number, reader.sm)?));
        }
        Field::Barrier(at) => out.push(Operand::Barrier(reader.get(*at, 4) as u8)),
        Field::Scoreboard(at) => out.push(Operand::Scoreboard(reader.get(*at, 3) as u8)),
        Field::Text(choice) => {
            let text = choose_text(reader, choice)?;
            if !text.is_empty() {
                out.push(Operand::Text(text));
            }
        }
        Field::Fixed(text) => out.push(Operand::Text(text)),
        Field::Base(at) => out.push(place::base(reader, *at)),
        Field::Uniform(layout) => out.push(place::uniform(reader, layout)?),
        Field::FarTarget => {
            let target = next.wrapping_add(reader.signed(24, 58));
            out.push(Operand::Target(target as u64));
        }
        Field::Wide(bits) => out.push(Operand::Immediate64(reader.bits(bits))),
        Field::Place(name) => out.push(place::read(reader, name)?),
    }
    Some(())
}

/// Reads the distance of a branch, in bytes from the next instruction. Since sm_90 its low byte is
/// a separate field.
fn branch_offset(reader: &mut Reader) -> i64 {
    let high = reader.signed(34, 48);
    let words = if reader.sm >= 90 {
        high << 8 | reader.get(16, 8) as i64
    } else {
        high
    };
    words << 2
}

/// Reads a number field, with sign extension if signed.
fn number(reader: &mut Reader, bits: &Bits, signed: bool) -> i64 {
    let raw = reader.bits(bits);
    if signed {
        extend(raw, bits.0.iter().map(|(_, length)| *length).sum())
    } else {
        raw as i64
    }
}

/// Kind of a source operand as selected by the form.
enum Kind {
    Register(u8),
    Immediate,
    Constant,
    Uniform,
}

fn kind(form: u8, slot: Slot) -> Option<Kind> {
    // Forms 2, 3 and 7 swap the second and the third source.
    Some(match (slot, form) {
        (Slot::At(at), _) => Kind::Register(at),
        (Slot::B, 2 | 3 | 7) => Kind::Register(64),
        (Slot::B, 1) => Kind::Register(32),
        (Slot::Either, 1) => Kind::Register(32),
        (Slot::Either, 2 | 4) => Kind::Immediate,
        (Slot::Either, 3 | 5) => Kind::Constant,
        (Slot::Either, 6 | 7) => Kind::Uniform,
        (Slot::B, 4) | (Slot::C, 2) => Kind::Immediate,
        (Slot::B, 5) | (Slot::C, 3) => Kind::Constant,
        (Slot::B, 6) | (Slot::C, 7) => Kind::Uniform,
        (Slot::C, 1 | 4 | 5 | 6) => Kind::Register(64),
        _ => return None,
    })
}

/// Signs and selector printed around a source.
struct Marks {
    negate: bool,
    absolute: bool,
    invert: bool,
    selector: &'static str,
}

/// Reads the sign bits and the selector of a source; an immediate has none.
#[expect(clippy::indexing_slicing, reason = "two bits number one of four words")]
fn marks(reader: &mut Reader, source: &Source, at: u8) -> Option<Marks> {
    let (negate, absolute, halves) = match (at, source.halves) {
        (24, _) => (72, 73, 74),
        (32, _) => (63, 62, 60),
        (64, true) => (84, 83, 81),
        (64, false) => (75, 74, 0),
        _ => (0, 0, 0),
    };
    let mut sign = |sign: Option<Sign>, own: u8| match sign {
        None => false,
        Some(Sign::Slot) => reader.bit(own),
        Some(Sign::Bit(bit)) => reader.bit(bit),
    };
    let (negate, absolute, invert) = (
        sign(source.negate, negate),
        sign(source.absolute, absolute),
        sign(source.invert, negate),
    );
    let selector = if source.halves {
        ["", "F32", "H0_H0", "H1_H1"][reader.get(halves, 2) as usize & 3]
    } else if let Some(choice) = &source.selector {
        choose_text(reader, choice)?
    } else {
        source.suffix
    };
    Some(Marks {
        negate,
        absolute,
        invert,
        selector,
    })
}

fn source_operand(reader: &mut Reader, source: &Source, out: &mut Vec<Operand>) -> Option<()> {
    match kind(reader.form, source.slot)? {
        Kind::Register(at) => {
            let mut register = reader.register(at, source.uniform);
            if source.slot == Slot::Either {
                register.reuse = reader.bit(124);
            }
            register_operand(reader, source, at, register, out)?;
        }
        Kind::Uniform => {
            let register = reader.register(32, true);
            register_operand(reader, source, 32, register, out)?;
        }
        Kind::Constant => {
            let marks = marks(reader, source, 32)?;
            let by_descriptor = reader.bit(91);
            let constant = Constant {
                bank: if by_descriptor {
                    Bank::Descriptor(reader.register(32, true))
                } else {
                    Bank::Number(reader.get(54, 5) as u8)
                },
                base: None,
                // Constants as operands are words.
                offset: reader.signed(40, 14) * 4,
                negate: marks.negate,
                absolute: marks.absolute,
                invert: marks.invert,
                wide: false,
                spaced: source.spaced,
                selector: marks.selector,
            };
            out.push(Operand::Constant(constant));
        }
        Kind::Immediate => immediate(reader, source.number, out),
    }
    Some(())
}

fn register_operand(
    reader: &mut Reader,
    source: &Source,
    at: u8,
    register: Register,
    out: &mut Vec<Operand>,
) -> Option<()> {
    let marks = marks(reader, source, at)?;
    let register = Register {
        negate: marks.negate,
        absolute: marks.absolute,
        invert: marks.invert,
        selector: marks.selector,
        wide: source.wide,
        ..register
    };
    if !(source.optional && register.is_zero()) {
        out.push(Operand::Register(register));
    }
    Some(())
}

fn immediate(reader: &mut Reader, number: Number, out: &mut Vec<Operand>) {
    let raw = reader.get(32, 32);
    let float = |bits, format| Operand::Float(Float { bits, format });
    match number {
        Number::Signed => out.push(Operand::Immediate(extend(raw, 32))),
        Number::Unsigned => out.push(Operand::Immediate(raw as i64)),
        Number::SignedIf(bit) => {
            let value = if reader.bit(bit) {
                extend(raw, 32)
            } else {
                raw as i64
            };
            out.push(Operand::Immediate(value));
        }
        Number::Single => out.push(float(raw, FloatFormat::Single)),
        // The word is the upper half of a double.
        Number::Double => out.push(float(raw << 32, FloatFormat::Double)),
        Number::Halves | Number::Brains => {
            let format = if number == Number::Halves {
                FloatFormat::Half
            } else {
                FloatFormat::Brain
            };
            out.push(float(raw >> 16, format));
            out.push(float(raw & 0xffff, format));
        }
    }
}
