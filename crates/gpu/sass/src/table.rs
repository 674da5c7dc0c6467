//! Encoding table with one operation form per line, parsed once from `encodings.txt`, which
//! documents the syntax.

use crate::Unit;
use std::sync::LazyLock;

/// Bits of an instruction, least significant first, as runs of position and length.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bits(pub(crate) Vec<(u8, u8)>);

/// A condition for a line to apply.
#[derive(Debug)]
pub(crate) struct Condition {
    pub(crate) bits: Bits,
    pub(crate) value: u64,
    pub(crate) equal: bool,
}

/// A part of an operation's name.
#[derive(Debug)]
pub(crate) enum Modifier {
    /// Constant text.
    Fixed(&'static str),
    /// Text selected by a field.
    Field(Choice),
}

/// Texts by the value of a field; `None` for an unknown value.
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) bits: Bits,
    pub(crate) texts: Vec<Option<&'static str>>,
}

/// Position of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    /// A register field at a fixed position.
    At(u8),
    /// Second source: register, immediate, constant or uniform register, depending on the form.
    B,
    /// Third source.
    C,
    /// Operand at bit 32, the second or third source.
    Either,
}

/// Format of an immediate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number {
    Signed,
    Unsigned,
    /// Signed if the bit is set.
    SignedIf(u8),
    Single,
    Double,
    Halves,
    Brains,
}

/// A source operand whose kind depends on the form.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) slot: Slot,
    pub(crate) uniform: bool,
    pub(crate) wide: bool,
    pub(crate) number: Number,
    pub(crate) negate: Option<Sign>,
    pub(crate) absolute: Option<Sign>,
    pub(crate) invert: Option<Sign>,
    /// True if it has the selector of packed halves.
    pub(crate) halves: bool,
    /// True if a constant is printed with a space between its brackets.
    pub(crate) spaced: bool,
    pub(crate) selector: Option<Choice>,
    pub(crate) suffix: &'static str,
    pub(crate) optional: bool,
}

/// Bit of a sign: the slot's default, or another.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sign {
    Slot,
    Bit(u8),
}

/// An address or a descriptor in a uniform register: `[UR4]`, `gdesc[UR4].tnspB`, `tmem[UR4+0x8]`.
#[derive(Debug)]
pub(crate) struct UniformAddress {
    pub(crate) at: u8,
    /// The register after the one of the field.
    pub(crate) next: bool,
    /// With an offset of 32 bits.
    pub(crate) offset: bool,
    pub(crate) kind: &'static str,
    pub(crate) suffix: Option<Choice>,
}

/// An operand field.
#[derive(Debug)]
pub(crate) enum Field {
    Source(Source),
    Predicate {
        at: u8,
        uniform: bool,
        /// The field holds seven minus the index.
        reversed: bool,
        invert: Option<u8>,
        optional: bool,
    },
    /// An immediate; `optional`: not printed if zero.
    Immediate {
        bits: Bits,
        signed: bool,
        scale: u8,
        optional: bool,
    },
    /// An address relative to the next instruction, in the long field of branches.
    Target {
        relative: bool,
        optional: bool,
    },
    /// A target in 32 bits.
    NearTarget,
    Special(u8),
    Barrier(u8),
    Scoreboard(u8),
    Text(Choice),
    Fixed(&'static str),
    /// An address in a register, with an offset at bit 40.
    Base(u8),
    /// An address or a descriptor in a uniform register.
    Uniform(UniformAddress),
    /// An address relative to the next instruction, in bytes, of 58 bits.
    FarTarget,
    /// A 64-bit number.
    Wide(Bits),
    /// An address or a constant with a named layout.
    Place(&'static str),
}

/// One line of the table.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) opcode: u16,
    pub(crate) forms: u8,
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) unit: Unit,
    pub(crate) name: &'static str,
    pub(crate) uniform_guard: bool,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) modifiers: Vec<Modifier>,
    pub(crate) fields: Vec<Field>,
}

/// The parsed table.
#[derive(Debug, Default)]
pub(crate) struct Table {
    lines: Vec<Vec<Line>>,
    /// Special registers: number, first and last architecture, name.
    special: Vec<(u8, u32, u32, &'static str)>,
}

impl Table {
    /// Returns the lines of an operation.
    pub(crate) fn lines(&self, opcode: u16) -> &[Line] {
        self.lines
            .get(usize::from(opcode))
            .map_or(&[], Vec::as_slice)
    }

    /// Returns the name of a special register.
    pub(crate) fn special(&self, number: u8, sm: u32) -> Option<&'static str> {
        self.special
            .iter()
            .find(|(n, from, to, _)| *n == number && (*from..=*to).contains(&sm))
            .map(|(_, _, _, name)| *name)
    }
}

/// The table. Unreadable lines are left out; a test checks that there are none.
pub(crate) static TABLE: LazyLock<Table> = LazyLock::new(|| read(include_str!("encodings.txt")).0);

/// Parses the table; returns the unreadable lines as well.
pub(crate) fn read(text: &'static str) -> (Table, Vec<&'static str>) {
    let mut table = Table {
        lines: (0..512).map(|_| Vec::new()).collect(),
        special: Vec::new(),
    };
    let mut bad = Vec::new();
    for line in text.lines() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(rest) = line.strip_prefix("SR ") {
            match special(rest) {
                Some(entry) => table.special.push(entry),
                None => bad.push(line),
            }
            continue;
        }
        match row(line) {
            Some(row) => match table.lines.get_mut(usize::from(row.opcode)) {
                Some(rows) => rows.push(row),
                None => bad.push(line),
            },
            None => bad.push(line),
        }
    }
    (table, bad)
}

fn special(rest: &'static str) -> Option<(u8, u32, u32, &'static str)> {
    let mut words = rest.split_whitespace();
    let number = words.next()?.parse().ok()?;
    let (from, to) = range(words.next()?)?;
    Some((number, from, to, words.next()?))
}

/// Parses a range of architectures: `*`, `90`, `80-90`, `80-`, `-90`.
fn range(text: &str) -> Option<(u32, u32)> {
    if text == "*" {
        return Some((0, u32::MAX));
    }
    match text.split_once('-') {
        None => text.parse().ok().map(|n| (n, n)),
        Some((from, to)) => {
            let from = if from.is_empty() {
                0
            } else {
                from.parse().ok()?
            };
            let to = if to.is_empty() {
                u32::MAX
            } else {
                to.parse().ok()?
            };
            Some((from, to))
        }
    }
}

fn row(line: &'static str) -> Option<Line> {
    let (head, tail) = line.split_once(';')?;
    let mut words = head.split_whitespace();
    let (opcode, forms) = words.next()?.split_once('/')?;
    let (from, to) = range(words.next()?)?;
    let unit = Unit::from_name(words.next()?)?;
    let (name, uniform_guard) = match words.next()? {
        name if name.starts_with('@') => (&name[1..], true),
        name => (name, false),
    };
    let mut conditions = Vec::new();
    let mut modifiers = Vec::new();
    for word in words {
        if let Some(rest) = word.strip_prefix('?') {
            let (bits, value) = rest.split_once('=')?;
            let (bits, equal) = match bits.strip_suffix('!') {
                Some(bits) => (bits, false),
                None => (bits, true),
            };
            let value = value.parse().ok()?;
            conditions.push(Condition {
                bits: self::bits(bits)?,
                value,
                equal,
            });
        } else if word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('=') {
            modifiers.push(Modifier::Field(choice(word)?));
        } else {
            modifiers.push(Modifier::Fixed(word.strip_prefix('.').unwrap_or(word)));
        }
    }
    let mut mask = 0;
    for form in forms.chars() {
        mask |= 1u8.checked_shl(form.to_digit(8)?)?;
    }
    Some(Line {
        opcode: u16::from_str_radix(opcode, 16).ok()?,
        forms: mask,
        from,
        to,
        unit,
        name,
        uniform_guard,
        conditions,
        modifiers,
        fields: tail.split_whitespace().map(field).collect::<Option<_>>()?,
    })
}

/// Parses bit runs: `72`, `72-75` or a sum of these, least significant first.
fn bits(text: &str) -> Option<Bits> {
    let mut out = Vec::new();
    for part in text.split('+') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to): (u8, u8) = (from.parse().ok()?, to.parse().ok()?);
        let length = to.checked_sub(from)?.checked_add(1)?;
        if to > 127 {
            return None;
        }
        out.push((from, length));
    }
    Some(Bits(out))
}

/// Parses `72-73=A|B||!`: `!` for an unknown value.
fn choice(text: &'static str) -> Option<Choice> {
    let (bits, texts) = text.split_once('=')?;
    let texts = texts.split('|');
    let texts = texts.map(|text| (text != "!").then_some(text)).collect();
    Some(Choice {
        bits: self::bits(bits)?,
        texts,
    })
}

fn field(token: &'static str) -> Option<Field> {
    let first = token.chars().next()?;
    let rest = token.get(1..)?;
    let optional = rest.ends_with('?');
    let plain = rest.strip_suffix('?').unwrap_or(rest);
    Some(match first {
        '@' => Field::Place(rest),
        '=' => Field::Fixed(rest),
        '[' => Field::Base(rest.parse().ok()?),
        '<' => Field::Uniform(uniform_address(rest)?),
        'L' => Field::FarTarget,
        'I' => Field::Wide(bits(rest)?),
        '0'..='9' => Field::Text(choice(token)?),
        'P' | 'Q' | 'V' => {
            let (at, invert) = match plain.split_once('!') {
                Some((at, bit)) => (at, Some(bit.parse().ok()?)),
                None => (plain, None),
            };
            Field::Predicate {
                at: at.parse().ok()?,
                uniform: first != 'P',
                reversed: first == 'V',
                invert,
                optional,
            }
        }
        'i' | 's' => {
            let (at, scale) = plain.split_once('*').unwrap_or((plain, "1"));
            let scale = scale.parse().ok()?;
            Field::Immediate {
                bits: bits(at)?,
                signed: first == 's',
                scale,
                optional,
            }
        }
        'T' => Field::Target {
            relative: false,
            optional,
        },
        'J' => Field::Target {
            relative: true,
            optional,
        },
        'N' => Field::NearTarget,
        'S' => Field::Special(plain.parse().ok()?),
        'B' => Field::Barrier(plain.parse().ok()?),
        'K' => Field::Scoreboard(plain.parse().ok()?),
        _ => Field::Source(source(token)?),
    })
}

/// Parses `24`, `40/1:idesc`, `32+:tmem`, `24:gdesc:61=|.tnspA`.
fn uniform_address(text: &'static str) -> Option<UniformAddress> {
    let (place, marks) = text.split_once(':').unwrap_or((text, ""));
    let (kind, suffix) = match marks.split_once(':') {
        Some((kind, suffix)) => (kind, Some(choice(suffix)?)),
        None => (marks, None),
    };
    let (place, offset) = match place.strip_suffix('+') {
        Some(place) => (place, true),
        None => (place, false),
    };
    let (place, next) = match place.strip_suffix("/1") {
        Some(place) => (place, true),
        None => (place, false),
    };
    Some(UniformAddress {
        at: place.parse().ok()?,
        next,
        offset,
        kind,
        suffix,
    })
}

fn source(token: &'static str) -> Option<Source> {
    let (token, optional) = match token.strip_suffix('?') {
        Some(token) => (token, true),
        None => (token, false),
    };
    let (token, uniform) = match token.strip_prefix('u') {
        Some(rest) => (rest, true),
        None => (token, false),
    };
    let mut rest = token.get(1..)?;
    let slot = match token.chars().next()? {
        'd' => Slot::At(16),
        'a' => Slot::At(24),
        'b' => Slot::B,
        'c' => Slot::C,
        'e' => Slot::At(64),
        'f' => Slot::Either,
        'R' => Slot::At(number(&mut rest)?),
        _ => return None,
    };
    let mut out = Source {
        slot,
        uniform,
        wide: false,
        number: Number::Unsigned,
        negate: None,
        absolute: None,
        invert: None,
        halves: false,
        spaced: false,
        selector: None,
        suffix: "",
        optional,
    };
    while let Some(mark) = rest.chars().next() {
        rest = rest.get(1..)?;
        let mut sign = || Some(number(&mut rest).map_or(Sign::Slot, Sign::Bit));
        match mark {
            '-' => out.negate = sign(),
            '|' => out.absolute = sign(),
            '~' => out.invert = sign(),
            '*' => out.wide = true,
            '_' => out.spaced = true,
            'h' => (out.halves, out.spaced) = (true, true),
            'g' => out.halves = true,
            '#' => {
                let kind = rest.chars().next()?;
                rest = rest.get(1..)?;
                out.number = match kind {
                    's' => Number::Signed,
                    'u' => Number::Unsigned,
                    'x' => Number::SignedIf(number(&mut rest)?),
                    'f' => Number::Single,
                    'd' => Number::Double,
                    'h' => Number::Halves,
                    'b' => Number::Brains,
                    _ => return None,
                };
            }
            ':' => (out.suffix, rest) = (rest, ""),
            '.' => (out.selector, rest) = (Some(choice(rest)?), ""),
            _ => return None,
        }
    }
    Some(out)
}

/// Parses a number at the front and removes it.
fn number(rest: &mut &'static str) -> Option<u8> {
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    let value = rest[..end].parse().ok()?;
    *rest = &rest[end..];
    Some(value)
}

#[cfg(test)]
mod tests;
