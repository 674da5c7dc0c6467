//! Source and destination operands.

use sass::{Bank, Constant, Float, FloatFormat, Operand, Predicate, Register, ZERO};

/// Number of the predicate that is always true.
pub(super) const TRUE: u8 = 7;

/// Origin of a source operand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Origin {
    Row(u8),
    Uniform(u8),
    Constant {
        bank: u8,
        offset: u32,
    },
    /// Constant bank at a register's value plus an offset.
    Indexed {
        bank: u8,
        base: u8,
        uniform: bool,
        offset: i64,
    },
    Value(u64),
}

/// Part of a register in packed half arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Part {
    #[default]
    Whole,
    /// Lower half, for both lanes of the pair.
    Low,
    /// Upper half, for both lanes of the pair.
    High,
    /// Single-precision number in place of two halves, or of two single-precision numbers.
    Single,
    /// Two single-precision numbers, that of the upper register first.
    Swapped,
    /// Upper half negated and put below the lower one: a pair times the imaginary unit.
    Turned,
    Byte(u8),
}

/// A source operand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Source {
    pub(super) from: Origin,
    pub(super) negate: bool,
    pub(super) absolute: bool,
    pub(super) invert: bool,
    pub(super) part: Part,
}

/// Destination of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dest {
    Row(u8),
    Uniform(u8),
}

/// A predicate operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pred {
    pub(super) index: u8,
    pub(super) uniform: bool,
    pub(super) invert: bool,
}

fn parse_part(selector: &str) -> Option<Part> {
    Some(match selector {
        // A number says how many bits remain below the shift of a pack.
        "" | "H1_H0" | "U32" | "X4" | "X8" | "X16" | "ROW" | "COL" | "SIGN" | "F32x2.HI_LO"
        | "24" | "28" => Part::Whole,
        "F32x2.LO_HI" => Part::Swapped,
        "H0_H0" | "H0" => Part::Low,
        "H1_H1" | "H1" => Part::High,
        "F32" => Part::Single,
        "H0_NH1" => Part::Turned,
        "B0" => Part::Byte(0),
        "B1" => Part::Byte(1),
        "B2" => Part::Byte(2),
        "B3" => Part::Byte(3),
        _ => return None,
    })
}

impl Origin {
    /// Returns the `n`-th register after this one; only `n` = 0 is valid for zero and immediate
    /// values.
    pub(super) fn nth(self, n: u8) -> Origin {
        match self {
            _ if n == 0 => self,
            Origin::Row(r) => Origin::Row(r.saturating_add(n)),
            Origin::Uniform(r) => Origin::Uniform(r.saturating_add(n)),
            Origin::Value(value) => {
                Origin::Value(value.checked_shr(32 * u32::from(n)).unwrap_or(0))
            }
            other => other,
        }
    }
}

impl Source {
    /// Returns the operand with its sign. `XORSIGN` takes the sign from here, although its operands
    /// are written as magnitudes.
    pub(super) fn signed(self) -> Source {
        Source {
            absolute: false,
            ..self
        }
    }

    pub(super) fn value(value: u64) -> Source {
        Source {
            from: Origin::Value(value),
            negate: false,
            absolute: false,
            invert: false,
            part: Part::Whole,
        }
    }

    /// Converts an operand; `None` if it is not a readable value.
    pub(super) fn from_operand(operand: &Operand) -> Option<Source> {
        match operand {
            Operand::Register(r) => Source::register(r),
            Operand::Constant(c) => Source::constant(c),
            Operand::Immediate(value) => Some(Source::value(*value as u64)),
            Operand::Immediate64(value) | Operand::Target(value) => Some(Source::value(*value)),
            Operand::Float(Float { bits, format }) => Some(Source::value(match format {
                FloatFormat::Half | FloatFormat::Brain => bits & 0xffff,
                FloatFormat::Single | FloatFormat::Double => *bits,
            })),
            _ => None,
        }
    }

    fn register(r: &Register) -> Option<Source> {
        Some(Source {
            from: match (r.index, r.uniform) {
                (ZERO, _) => Origin::Value(0),
                (index, true) => Origin::Uniform(index),
                (index, false) => Origin::Row(index),
            },
            negate: r.negate,
            absolute: r.absolute,
            invert: r.invert,
            part: parse_part(r.selector)?,
        })
    }

    fn constant(c: &Constant) -> Option<Source> {
        let Bank::Number(bank) = c.bank else {
            return None;
        };
        Some(Source {
            from: match c.base {
                Some(base) if !base.is_zero() => Origin::Indexed {
                    bank,
                    base: base.index,
                    uniform: base.uniform,
                    offset: c.offset,
                },
                _ => Origin::Constant {
                    bank,
                    offset: u32::try_from(c.offset).ok()?,
                },
            },
            negate: c.negate,
            absolute: c.absolute,
            invert: c.invert,
            part: parse_part(c.selector)?,
        })
    }
}

impl Dest {
    pub(super) fn from_operand(operand: &Operand) -> Option<Dest> {
        let Operand::Register(r) = operand else {
            return None;
        };
        Some(if r.uniform {
            Dest::Uniform(r.index)
        } else {
            Dest::Row(r.index)
        })
    }

    /// Returns the `n`-th register after this one.
    pub(super) fn next(self, n: u8) -> Dest {
        match self {
            // `RZ` discards every word of a result.
            Dest::Row(ZERO) | Dest::Uniform(ZERO) => self,
            Dest::Row(r) => Dest::Row(r.saturating_add(n)),
            Dest::Uniform(r) => Dest::Uniform(r.saturating_add(n)),
        }
    }
}

impl Pred {
    pub(super) const ALWAYS: Pred = Pred {
        index: TRUE,
        uniform: false,
        invert: false,
    };

    pub(super) fn from_operand(operand: &Operand) -> Option<Pred> {
        let Operand::Predicate(p) = operand else {
            return None;
        };
        Some(Pred::predicate(p))
    }

    pub(super) fn predicate(p: &Predicate) -> Pred {
        Pred {
            index: p.index & 7,
            uniform: p.uniform,
            invert: p.invert,
        }
    }

    pub(super) fn is_always(self) -> bool {
        self.index == TRUE && !self.invert
    }
}
