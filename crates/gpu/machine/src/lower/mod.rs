//! Lowering of decoded instructions to executable operations.

mod convert;
mod small;
mod float;
mod half;
mod image;
mod integer;
mod logic;
mod matrix;
mod memory;
mod moves;
mod pairs;
mod tensor_core;
mod warp;
mod warpgroup;

use sass::{FloatFormat, Instruction, Operand};

use super::memory::lanes_where;
use super::op::{Op, Run};
use super::registers::{Dest, Pred, Registers, Source, map_lanes};
use gpu_arithmetic::Lanes as Row;

/// Function that reads an operand.
type Read = fn(&Registers, &Source) -> Row;

/// Operands of an instruction by purpose.
#[derive(Debug, Default)]
pub(super) struct Form {
    pub(super) dest: Option<Dest>,
    /// Predicate destinations: those before the first source.
    pub(super) outs: Vec<Pred>,
    pub(super) sources: Vec<Source>,
    /// Predicate sources: those after the first source.
    pub(super) ins: Vec<Pred>,
}

impl Form {
    /// Sorts the operands. `with_dest`: the first register is a destination. `None` for an operand
    /// kind that arithmetic instructions do not have.
    pub(super) fn new(instruction: &Instruction, with_dest: bool) -> Option<Form> {
        let mut form = Form::default();
        let mut operands = instruction.operands.iter().peekable();
        while let Some(operand) = operands.next() {
            match operand {
                Operand::Predicate(_) if form.sources.is_empty() => {
                    form.outs.push(Pred::from_operand(operand)?);
                }
                Operand::Predicate(_) => form.ins.push(Pred::from_operand(operand)?),
                Operand::Register(_) if with_dest && form.dest.is_none() => {
                    form.dest = Dest::from_operand(operand);
                }
                Operand::Float(high) => {
                    let mut source = Source::from_operand(operand)?;
                    // Two halves are separate operands, the upper one first.
                    if matches!(high.format, FloatFormat::Half | FloatFormat::Brain)
                        && let Some(Operand::Float(low)) = operands.peek()
                    {
                        source = Source::value(high.bits << 16 | low.bits & 0xffff);
                        operands.next();
                    }
                    form.sources.push(source);
                }
                _ => form.sources.push(Source::from_operand(operand)?),
            }
        }
        Some(form)
    }

    pub(super) fn source(&self, index: usize) -> Option<Source> {
        self.sources.get(index).copied()
    }

    /// Returns the first three sources.
    pub(super) fn first_three(&self) -> Option<[Source; 3]> {
        Some([self.source(0)?, self.source(1)?, self.source(2)?])
    }

    /// Returns a predicate destination, by default the one that discards writes.
    pub(super) fn out(&self, index: usize) -> Pred {
        self.outs.get(index).copied().unwrap_or(Pred::ALWAYS)
    }
}

/// Lowers `d = f(a)`, lane by lane.
fn lower_unary(
    form: &Form,
    read: Read,
    f: impl Fn(u32) -> u32 + Send + Sync + 'static,
) -> Option<Run> {
    let (d, a) = (form.dest?, form.source(0)?);
    Some(Box::new(move |r, mask| {
        let a = read(r, &a);
        let out = map_lanes(
            #[inline(always)]
            |i| f(a[i]),
        );
        r.set(d, mask, &out);
    }))
}

/// Lowers `d = f(a, b)`, lane by lane.
fn lower_binary(
    form: &Form,
    read: Read,
    f: impl Fn(u32, u32) -> u32 + Send + Sync + 'static,
) -> Option<Run> {
    let (d, a, b) = (form.dest?, form.source(0)?, form.source(1)?);
    Some(Box::new(move |r, mask| {
        let (a, b) = (read(r, &a), read(r, &b));
        let out = map_lanes(
            #[inline(always)]
            |i| f(a[i], b[i]),
        );
        r.set(d, mask, &out);
    }))
}

/// Lowers `d = f(a, b, c)`, lane by lane.
fn lower_ternary(
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
        let out = map_lanes(
            #[inline(always)]
            |i| f(a[i], b[i], c[i]),
        );
        r.set(d, mask, &out);
    }))
}

/// Bit set of the relations of two numbers: less, equal, greater, unordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Relations(u8);

impl Relations {
    fn from_modifiers(modifiers: &[&str]) -> Option<Relations> {
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
    fn holds<T: PartialOrd>(self, a: T, b: T) -> bool {
        let which = match a.partial_cmp(&b) {
            Some(std::cmp::Ordering::Less) => 1,
            Some(std::cmp::Ordering::Equal) => 2,
            Some(std::cmp::Ordering::Greater) => 4,
            None => 8,
        };
        self.0 & which != 0
    }
}

/// Combination of a comparison with a predicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Combine {
    And,
    Or,
    Xor,
}

impl Combine {
    fn from_instruction(instruction: &Instruction) -> Combine {
        if instruction.has("OR") {
            Combine::Or
        } else if instruction.has("XOR") {
            Combine::Xor
        } else {
            Combine::And
        }
    }

    fn combine_lanes(self, a: u32, b: u32) -> u32 {
        match self {
            Combine::And => a & b,
            Combine::Or => a | b,
            Combine::Xor => a ^ b,
        }
    }
}

/// Writes the two predicates of a comparison, its result and the negation, each combined with a
/// third one.
fn compared(
    r: &mut Registers,
    outs: [Pred; 2],
    combine: Combine,
    with: u32,
    holds: u32,
    mask: u32,
) {
    let [result, negation] = outs;
    r.set_truth(result, mask, combine.combine_lanes(holds, with));
    r.set_truth(negation, mask, combine.combine_lanes(!holds, with));
}

/// Lowers an instruction; `None` if it is unknown, which the caller reports by name.
pub(super) fn lower(i: &Instruction) -> Option<Op> {
    if let Some(op) = memory::lower(i)
        .or_else(|| warpgroup::lower(i))
        .or_else(|| tensor_core::lower(i))
        .or_else(|| image::lower(i))
        .or_else(|| warp::control(i))
    {
        return Some(op);
    }
    let run = integer::lower(i)
        .or_else(|| logic::lower(i))
        .or_else(|| moves::lower(i))
        .or_else(|| float::lower(i))
        .or_else(|| pairs::lower(i))
        .or_else(|| half::lower(i))
        .or_else(|| convert::lower(i))
        .or_else(|| matrix::lower(i))
        .or_else(|| warp::lower(i));
    run.map(|run| match moves::indexed(i) {
        Some(from) => Op::Constants(run, from),
        None => Op::Registers(run),
    })
}
