//! Logic, shifts, permutations, selections and predicates.

use sass::{Instruction, Operand};

use super::{Form, Run, lanes_where};
use crate::registers::{Dest, Part, Pred, Registers, Source, map_lanes};
use gpu_arithmetic::integer::{self, Permute};

pub(super) fn lower(i: &Instruction) -> Option<Run> {
    match i.opcode {
        "LOP3" | "ULOP3" => logic(i),
        "SHF" | "USHF" => shift(i),
        "PRMT" | "UPRMT" => permute(i),
        "SEL" | "USEL" | "FSEL" | "UFSEL" => select(i),
        "PLOP3" | "UPLOP3" => predicates(i),
        "P2R" | "UP2UR" => predicates_to_register(i),
        "R2P" | "UR2UP" => register_to_predicates(i),
        _ => None,
    }
}

fn logic(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, true)?;
    let d = form.dest?;
    let (a, b, c) = (form.source(0)?, form.source(1)?, form.source(2)?);
    let table = form.source(3)?;
    let out = form.outs.first().copied();
    let with = form.ins.first().copied();
    let both = i.has("PAND");
    Some(Box::new(move |r, mask| {
        let (a, b, c) = (r.int(&a), r.int(&b), r.int(&c));
        // The table is an immediate number, the same in all lanes.
        let table = r.raw(table.from)[0] as u8;
        // The most frequent tables have direct loops.
        let value = match table {
            0xc0 => map_lanes(
                #[inline(always)]
                |l| a[l] & b[l],
            ),
            0xfc => map_lanes(
                #[inline(always)]
                |l| a[l] | b[l],
            ),
            0x3c => map_lanes(
                #[inline(always)]
                |l| a[l] ^ b[l],
            ),
            0xf8 => map_lanes(
                #[inline(always)]
                |l| a[l] | b[l] & c[l],
            ),
            _ => map_lanes(
                #[inline(always)]
                |l| integer::lop3(a[l], b[l], c[l], table),
            ),
        };
        r.set(d, mask, &value);
        if let Some(out) = out {
            let any = lanes_where(|l| value[l] != 0);
            let with = with.map_or(0, |p| r.truth(p));
            r.set_truth(out, mask, if both { any & with } else { any | with });
        }
    }))
}

fn shift(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, true)?;
    let d = form.dest?;
    let (low, n, high) = (form.source(0)?, form.source(1)?, form.source(2)?);
    let (left, wrap, upper) = (i.has("L"), i.has("W"), i.has("HI"));
    let wide = i.has("U64") || i.has("S64");
    let signed = i.has("S32") || i.has("S64");
    let most = if wide { 64 } else { 32 };
    Some(Box::new(move |r, mask| {
        let (low, n, high) = (r.int(&low), r.int(&n), r.int(&high));
        let out = map_lanes(
            #[inline(always)]
            |l| {
                let pair = u64::from(high[l]) << 32 | u64::from(low[l]);
                let n = if wrap {
                    n[l] & (most - 1)
                } else {
                    n[l].min(most)
                };
                // The clamp allows 64, but a 64-bit shift by more than 63 overflows: shift twice.
                let (n, rest) = (n.min(63), n.saturating_sub(63));
                let shifted = if left {
                    pair << n << rest
                } else if signed {
                    (pair as i64 >> n >> rest) as u64
                } else {
                    pair >> n >> rest
                };
                if upper {
                    (shifted >> 32) as u32
                } else {
                    shifted as u32
                }
            },
        );
        r.set(d, mask, &out);
    }))
}

fn permute(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, true)?;
    let d = form.dest?;
    let (a, selector, b) = (form.source(0)?, form.source(1)?, form.source(2)?);
    let mode = match i.modifiers.first().copied() {
        None => Permute::Default,
        Some("F4E") => Permute::Forward4,
        Some("B4E") => Permute::Backward4,
        Some("RC8") => Permute::Replicate8,
        Some("ECL") => Permute::EdgeLeft,
        Some("ECR") => Permute::EdgeRight,
        Some("RC16") => Permute::Replicate16,
        _ => return None,
    };
    Some(Box::new(move |r, mask| {
        let (a, selector, b) = (r.int(&a), r.int(&selector), r.int(&b));
        let out = std::array::from_fn(|l| integer::prmt(a[l], b[l], selector[l], mode));
        r.set(d, mask, &out);
    }))
}

fn select(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, true)?;
    let d = form.dest?;
    let (a, b) = (form.source(0)?, form.source(1)?);
    let which = *form.ins.first()?;
    let float = i.opcode.contains("FSEL");
    if i.has("64") {
        return Some(Box::new(move |r, mask| {
            let (a, b, which) = (r.wide(&a), r.wide(&b), r.truth(which));
            let out = std::array::from_fn(|l| if which >> l & 1 == 1 { a[l] } else { b[l] });
            r.set_wide(d, mask, &out);
        }));
    }
    Some(Box::new(move |r, mask| {
        let read = |s: &Source| if float { r.float(s) } else { r.int(s) };
        let (a, b, which) = (read(&a), read(&b), r.truth(which));
        let out = map_lanes(|l| if which >> l & 1 == 1 { a[l] } else { b[l] });
        r.set(d, mask, &out);
    }))
}

/// A source of a predicate function.
#[derive(Clone, Copy)]
enum Lanes {
    Pred(Pred),
    /// Sign bit of a register.
    Sign(Source),
}

impl Lanes {
    fn read(self, r: &Registers) -> u32 {
        match self {
            Lanes::Pred(truth) => r.truth(truth),
            Lanes::Sign(source) => {
                let row = r.raw(source.from);
                lanes_where(|l| row[l] >> 31 == 1)
            }
        }
    }
}

/// Lowers two functions of three predicates or signs, given as truth tables.
fn predicates(i: &Instruction) -> Option<Run> {
    let (outs, sources) = i.operands.split_at_checked(2)?;
    let &[d, e] = outs
        .iter()
        .map(Pred::from_operand)
        .collect::<Option<Vec<_>>>()?
        .as_slice()
    else {
        return None;
    };
    let (sources, tables) = sources.split_at_checked(3)?;
    let source = |operand| match Pred::from_operand(operand) {
        Some(truth) => Some(Lanes::Pred(truth)),
        None => Source::from_operand(operand).map(Lanes::Sign),
    };
    let sources: Vec<Lanes> = sources.iter().map(source).collect::<Option<_>>()?;
    let (&[a, b, c], &[Operand::Immediate(first), Operand::Immediate(second)]) =
        (sources.as_slice(), tables)
    else {
        return None;
    };
    let (first, second) = (first as u8, second as u8);
    Some(Box::new(move |r, mask| {
        let (a, b, c) = (a.read(r), b.read(r), c.read(r));
        r.set_truth(d, mask, integer::lop3(a, b, c, first));
        r.set_truth(e, mask, integer::lop3(a, b, c, second));
    }))
}

/// Returns the sources of a move between a register and all predicates, without the placeholder for
/// the predicates.
fn beside_predicates(i: &Instruction) -> Option<Vec<Source>> {
    i.operands
        .iter()
        .filter(|operand| !matches!(operand, Operand::Text(_) | Operand::Special(_)))
        .map(Source::from_operand)
        .collect()
}

fn predicates_to_register(i: &Instruction) -> Option<Run> {
    // Byte of the result that receives the predicates.
    let shift = match i.modifiers.as_slice() {
        [] => 0,
        ["B1"] => 8,
        ["B2"] => 16,
        ["B3"] => 24,
        _ => return None,
    };
    let d = Dest::from_operand(i.operands.first()?)?;
    let uniform = i.opcode == "UP2UR";
    let sources = beside_predicates(i)?;
    let &[_, kept, which] = sources.as_slice() else {
        return None;
    };
    Some(Box::new(move |r, mask| {
        let (kept, which) = (r.int(&kept), r.int(&which));
        let file = if uniform {
            &r.uniform_predicates
        } else {
            &r.predicates
        };
        let out = std::array::from_fn(|l| {
            let packed = (0..7).fold(0, |all, n| all | (file[n] >> l & 1) << n);
            (packed & which[l]) << shift | kept[l] & !(which[l] << shift)
        });
        r.set(d, mask, &out);
    }))
}

fn register_to_predicates(i: &Instruction) -> Option<Run> {
    if !i.modifiers.is_empty() {
        return None;
    }
    let sources = beside_predicates(i)?;
    if i.opcode == "UR2UP" {
        let &[value] = sources.as_slice() else {
            return None;
        };
        let shift = match value.part {
            Part::Byte(n) => 8 * u32::from(n),
            _ => 0,
        };
        return Some(Box::new(move |r: &mut Registers, _| {
            let value = r.raw(value.from)[0] >> shift;
            for (n, truth) in r.uniform_predicates.iter_mut().take(7).enumerate() {
                *truth = 0u32.wrapping_sub(value >> n & 1);
            }
        }));
    }
    let &[value, which] = sources.as_slice() else {
        return None;
    };
    Some(Box::new(move |r: &mut Registers, mask| {
        let (value, which) = (r.int(&value), r.int(&which));
        for n in 0..7 {
            let written = lanes_where(|l| which[l] >> n & 1 == 1) & mask;
            let lanes = lanes_where(|l| value[l] >> n & 1 == 1);
            let old = r.predicates[n];
            r.predicates[n] = old & !written | lanes & written;
        }
    }))
}
