//! The encodings, one line an operation form, read once from `encodings.txt`, which says how a
//! line is written.

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
    /// Always there.
    Fixed(&'static str),
    /// By the value of a field.
    Field(Choice),
}

/// Texts by the value of a field; none where a value is not known.
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) bits: Bits,
    pub(crate) texts: Vec<Option<&'static str>>,
}

/// Where an operand stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    /// A register field at a fixed position.
    At(u8),
    /// The second source: register, immediate, constant or uniform register, by the form.
    B,
    /// The third source.
    C,
    /// What stands at bit 32, second or third.
    Either,
}

/// How an immediate is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number {
    Signed,
    Unsigned,
    /// Signed where the bit is set.
    SignedIf(u8),
    Single,
    Double,
    Halves,
    Brains,
}

/// A register, or what the form puts in its place.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) slot: Slot,
    pub(crate) uniform: bool,
    pub(crate) wide: bool,
    pub(crate) number: Number,
    pub(crate) negate: Option<Sign>,
    pub(crate) absolute: Option<Sign>,
    pub(crate) invert: Option<Sign>,
    /// Has the selector of packed halves.
    pub(crate) halves: bool,
    /// A constant is written with a space between its brackets.
    pub(crate) spaced: bool,
    pub(crate) selector: Option<Choice>,
    pub(crate) suffix: &'static str,
    pub(crate) optional: bool,
}

/// The bit of a sign: the slot's own, or another.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sign {
    Slot,
    Bit(u8),
}

/// What an operand is.
#[derive(Debug)]
pub(crate) enum Field {
    Source(Source),
    Predicate {
        at: u8,
        uniform: bool,
        invert: Option<u8>,
        optional: bool,
    },
    /// `optional`: not written where it is zero.
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
    /// The same in 32 bits.
    NearTarget,
    Special(u8),
    Barrier(u8),
    Scoreboard(u8),
    Text(Choice),
    Fixed(&'static str),
    /// An address in a register, with an offset at bit 40.
    Base(u8),
    /// An address in a uniform register.
    Uniform(u8),
    /// An address relative to the next instruction, in bytes, of 58 bits.
    FarTarget,
    /// A number of 64 bits.
    Wide(Bits),
    /// An address or a constant, by the name of its layout.
    Place(&'static str),
}

/// One line.
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

/// The whole table.
#[derive(Debug, Default)]
pub(crate) struct Table {
    lines: Vec<Vec<Line>>,
    /// Special registers: number, first and last architecture, name.
    special: Vec<(u8, u32, u32, &'static str)>,
}

impl Table {
    /// The lines of an operation.
    pub(crate) fn lines(&self, opcode: u16) -> &[Line] {
        self.lines
            .get(usize::from(opcode))
            .map_or(&[], Vec::as_slice)
    }

    /// The name of a special register.
    pub(crate) fn special(&self, number: u8, sm: u32) -> Option<&'static str> {
        self.special
            .iter()
            .find(|(n, from, to, _)| *n == number && (*from..=*to).contains(&sm))
            .map(|(_, _, _, name)| *name)
    }
}

/// The table; a line that cannot be read is left out, and a test finds it.
pub(crate) static TABLE: LazyLock<Table> = LazyLock::new(|| read(include_str!("encodings.txt")).0);

/// Reads the table, with the lines that cannot be read.
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

/// Architectures: `*`, `90`, `80-90`, `80-`, `-90`.
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
    let unit = Unit::named(words.next()?)?;
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

/// `72`, `72-75` or a sum of these, least significant first.
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

/// `72-73=A|B||!`: `!` for a value that is not known.
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
        '<' => Field::Uniform(rest.parse().ok()?),
        'L' => Field::FarTarget,
        'I' => Field::Wide(bits(rest)?),
        '0'..='9' => Field::Text(choice(token)?),
        'P' | 'Q' => {
            let (at, invert) = match plain.split_once('!') {
                Some((at, bit)) => (at, Some(bit.parse().ok()?)),
                None => (plain, None),
            };
            Field::Predicate {
                at: at.parse().ok()?,
                uniform: first == 'Q',
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

/// Takes a number from the front.
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
