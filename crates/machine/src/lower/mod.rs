//! From an instruction's text to what it does: one line an operation.

mod convert;
mod float;
mod half;
mod integer;
mod logic;
mod matrix;
mod memory;
mod moves;
mod warp;

use sass::{FloatFormat, Instruction, Operand};

use super::program::Op;
use super::registers::{Dest, Registers, Source, Truth, each};
use gpu_arithmetic::Lanes as Row;

/// What an instruction that touches registers alone does, for the lanes of a mask.
pub(super) type Run = Box<dyn Fn(&mut Registers, u32) + Send + Sync>;

/// How an operand is read.
type Read = fn(&Registers, &Source) -> Row;

/// An instruction's operands, by what they are for.
#[derive(Debug, Default)]
pub(super) struct Form {
    pub(super) dest: Option<Dest>,
    /// Predicates written: those before the first source.
    pub(super) outs: Vec<Truth>,
    pub(super) sources: Vec<Source>,
    /// Predicates read: those behind it.
    pub(super) ins: Vec<Truth>,
}

impl Form {
    /// `with_dest`: whether the first register is written. `None` where an operand is of a kind
    /// that arithmetic has not.
    pub(super) fn of(instruction: &Instruction, with_dest: bool) -> Option<Form> {
        let mut form = Form::default();
        let mut operands = instruction.operands.iter().peekable();
        while let Some(operand) = operands.next() {
            match operand {
                Operand::Predicate(_) if form.sources.is_empty() => {
                    form.outs.push(Truth::of(operand)?);
                }
                Operand::Predicate(_) => form.ins.push(Truth::of(operand)?),
                Operand::Register(_) if with_dest && form.dest.is_none() => {
                    form.dest = Dest::of(operand);
                }
                Operand::Float(high) => {
                    let mut source = Source::of(operand)?;
                    // Two halves are written side by side, the upper one first.
                    if matches!(high.format, FloatFormat::Half | FloatFormat::Brain)
                        && let Some(Operand::Float(low)) = operands.peek()
                    {
                        source = Source::value(high.bits << 16 | low.bits & 0xffff);
                        operands.next();
                    }
                    form.sources.push(source);
                }
                _ => form.sources.push(Source::of(operand)?),
            }
        }
        Some(form)
    }

    pub(super) fn source(&self, index: usize) -> Option<Source> {
        self.sources.get(index).copied()
    }

    /// The first three sources.
    pub(super) fn three(&self) -> Option<[Source; 3]> {
        Some([self.source(0)?, self.source(1)?, self.source(2)?])
    }

    /// A written predicate, or the one that nothing is written to.
    pub(super) fn out(&self, index: usize) -> Truth {
        self.outs.get(index).copied().unwrap_or(Truth::ALWAYS)
    }
}

/// `d = f(a)`, lane by lane.
fn one(form: &Form, read: Read, f: impl Fn(u32) -> u32 + Send + Sync + 'static) -> Option<Run> {
    let (d, a) = (form.dest?, form.source(0)?);
    Some(Box::new(move |r, mask| {
        let a = read(r, &a);
        let out = each(
            #[inline(always)]
            |i| f(a[i]),
        );
        r.set(d, mask, &out);
    }))
}

/// `d = f(a, b)`, lane by lane.
fn two(
    form: &Form,
    read: Read,
    f: impl Fn(u32, u32) -> u32 + Send + Sync + 'static,
) -> Option<Run> {
    let (d, a, b) = (form.dest?, form.source(0)?, form.source(1)?);
    Some(Box::new(move |r, mask| {
        let (a, b) = (read(r, &a), read(r, &b));
        let out = each(
            #[inline(always)]
            |i| f(a[i], b[i]),
        );
        r.set(d, mask, &out);
    }))
}

/// `d = f(a, b, c)`, lane by lane.
fn three(
    form: &Form,
    read: Read,
    f: impl Fn(u32, u32, u32) -> u32 + Send + Sync + 'static,
) -> Option<Run> {
    let (d, a, b, c) = (
        form.dest?,
        form.source(0)?,
        form.source(1)?,
        form.source(2)?,
    );
    Some(Box::new(move |r, mask| {
        let (a, b, c) = (read(r, &a), read(r, &b), read(r, &c));
        let out = each(
            #[inline(always)]
            |i| f(a[i], b[i], c[i]),
        );
        r.set(d, mask, &out);
    }))
}

/// Relations between two numbers, a bit each: less, equal, greater, unordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Relations(u8);

impl Relations {
    fn of(modifiers: &[&str]) -> Option<Relations> {
        modifiers.iter().find_map(|name| {
            let (base, unordered) = match *name {
                "NAN" => return Some(Relations(8)),
                "NUM" => return Some(Relations(7)),
                name => match name.strip_suffix('U') {
                    Some(base) => (base, 8),
                    None => (name, 0),
                },
            };
            let ordered = match base {
                "F" => 0,
                "LT" => 1,
                "EQ" => 2,
                "LE" => 3,
                "GT" => 4,
                "NE" => 5,
                "GE" => 6,
                "T" => 15,
                _ => return None,
            };
            Some(Relations(ordered | unordered))
        })
    }

    #[inline(always)]
    fn hold<T: PartialOrd>(self, a: T, b: T) -> bool {
        let which = match a.partial_cmp(&b) {
            Some(std::cmp::Ordering::Less) => 1,
            Some(std::cmp::Ordering::Equal) => 2,
            Some(std::cmp::Ordering::Greater) => 4,
            None => 8,
        };
        self.0 & which != 0
    }
}

/// How a comparison is combined with a predicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Combine {
    And,
    Or,
    Xor,
}

impl Combine {
    fn of(instruction: &Instruction) -> Combine {
        if instruction.has("OR") {
            Combine::Or
        } else if instruction.has("XOR") {
            Combine::Xor
        } else {
            Combine::And
        }
    }

    fn of_lanes(self, a: u32, b: u32) -> u32 {
        match self {
            Combine::And => a & b,
            Combine::Or => a | b,
            Combine::Xor => a ^ b,
        }
    }
}

/// Lanes in which `f` holds.
#[inline(always)]
fn lanes_where(f: impl Fn(usize) -> bool) -> u32 {
    gpu_arithmetic::host::vectorised(
        #[inline(always)]
        || (0..32).fold(0, |all, lane| all | u32::from(f(lane)) << lane),
    )
}

/// Writes the two predicates of a comparison: what holds, and what does not, each combined with a
/// third one.
fn compared(
    r: &mut Registers,
    form: (Truth, Truth),
    combine: (Combine, u32),
    holds: u32,
    mask: u32,
) {
    let (combine, with) = combine;
    r.set_truth(form.0, mask, combine.of_lanes(holds, with));
    r.set_truth(form.1, mask, combine.of_lanes(!holds, with));
}

/// What an instruction does; `None` where it is not known, which the caller tells by its name.
pub(super) fn lower(i: &Instruction) -> Option<Op> {
    if let Some(op) = memory::lower(i).or_else(|| warp::control(i)) {
        return Some(op);
    }
    let run = integer::lower(i)
        .or_else(|| logic::lower(i))
        .or_else(|| moves::lower(i))
        .or_else(|| float::lower(i))
        .or_else(|| half::lower(i))
        .or_else(|| convert::lower(i))
        .or_else(|| matrix::lower(i))
        .or_else(|| warp::lower(i));
    run.map(|run| match moves::indexed(i) {
        Some(from) => Op::Constants(run, from),
        None => Op::Registers(run),
    })
}
