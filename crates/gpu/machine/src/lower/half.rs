//! Packed half precision.

use sass::Instruction;

use super::float::{finished, only};
use super::{Combine, Form, Relations, Run, compared, lanes_where};
use crate::registers::{Part, Pred, Registers, Source};
use gpu_arithmetic::half::{self, Bfloat16, Fp16, Half};
use gpu_arithmetic::{Lanes, single};

pub(super) fn lower(i: &Instruction) -> Option<Run> {
    if i.modifiers.iter().any(|m| matches!(*m, "BF16_V2" | "BF16")) {
        return of_type::<Bfloat16>(i);
    }
    of_type::<Fp16>(i)
}

fn of_type<H: Half + 'static>(i: &Instruction) -> Option<Run> {
    match i.opcode {
        "HADD2" if i.has("F32") => single_sum::<H>(i),
        "HADD2" => arithmetic(i, |v: [Lanes; 3]| half::add_lanes::<H>(&v[0], &v[1]), 2),
        "HMUL2" => arithmetic(i, |v: [Lanes; 3]| half::mul_lanes::<H>(&v[0], &v[1]), 2),
        "HFMA2" => {
            let relu = i.has("RELU");
            arithmetic(
                i,
                move |v: [Lanes; 3]| {
                    let out = half::fma_lanes::<H>(&v[0], &v[1], &v[2]);
                    match relu {
                        true => out.map(|x| half::map1(x, half::relu::<H>)),
                        false => out,
                    }
                },
                3,
            )
        }
        "HMNMX2" | "VHMNMX" => minimum::<H>(i),
        "HSETP2" => compare::<H>(i),
        "HSET2" => compare_to_number::<H>(i),
        _ => None,
    }
}

const SUPPORTED_MODIFIERS: [&str; 6] = ["BF16_V2", "BF16", "MMA", "SAT", "RELU", "FTZ"];

fn arithmetic(
    i: &Instruction,
    f: impl Fn([Lanes; 3]) -> Lanes + Send + Sync + 'static,
    count: usize,
) -> Option<Run> {
    let form = Form::new(i, true)?;
    if !i.modifiers.iter().all(|m| SUPPORTED_MODIFIERS.contains(m)) {
        return None;
    }
    let d = form.dest?;
    let sources = form.sources;
    if sources.len() != count {
        return None;
    }
    let (sat, brain) = (i.has("SAT"), i.has("BF16_V2") || i.has("BF16"));
    let flush = flush(i);
    Some(Box::new(move |r, mask| {
        let mut values = [[0; 32]; 3];
        for (value, source) in values.iter_mut().zip(&sources) {
            *value = r.halves(source).map(flush);
        }
        let mut out = f(values).map(flush);
        if sat {
            out = out.map(|x| match brain {
                true => half::map1(x, half::sat::<Bfloat16>),
                false => half::map1(x, half::sat::<Fp16>),
            });
        }
        r.set(d, mask, &out);
    }))
}

/// Returns a function that flushes subnormal halves if the instruction says so.
fn flush(i: &Instruction) -> fn(u32) -> u32 {
    fn zeroed(exponent: u16) -> impl Fn(u16) -> u16 {
        move |x| if x & exponent == 0 { x & 0x8000 } else { x }
    }
    match (i.has("FTZ"), i.has("BF16_V2") || i.has("BF16")) {
        (false, _) => |x| x,
        (true, false) => |x| half::map1(x, zeroed(0x7c00)),
        (true, true) => |x| half::map1(x, zeroed(0x7f80)),
    }
}

/// Lowers the sum of two halves as a single: the instruction form that widens a half.
fn single_sum<H: Half + 'static>(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, true)?;
    let d = form.dest?;
    let (a, b) = (form.source(0)?, form.source(1)?);
    if !only(i, &["F32", "BF16_V2", "BF16", "SAT", "FTZ"]) {
        return None;
    }
    let (sat, ftz) = (i.has("SAT"), i.has("FTZ"));
    Some(Box::new(move |r, mask| {
        let read = |s: &Source| -> [f32; 32] {
            if s.part == Part::Single {
                return r.float(s).map(f32::from_bits);
            }
            // The selected half is in both parts of the word.
            r.halves(s).map(|v| H::widen(v as u16))
        };
        let (a, b) = (read(&a), read(&b));
        let out = std::array::from_fn(|l| finished(single::add_rn(a[l], b[l]), ftz, sat));
        r.set(d, mask, &out);
    }))
}

fn minimum<H: Half + 'static>(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, true)?;
    let d = form.dest?;
    let (a, b, third) = (form.source(0)?, form.source(1)?, form.source(2));
    let smaller = *form.ins.last()?;
    if !i
        .modifiers
        .iter()
        .all(|m| SUPPORTED_MODIFIERS.contains(m) || matches!(*m, "NAN" | "XORSIGN"))
    {
        return None;
    }
    let (nan, sign, flush) = (i.has("NAN"), i.has("XORSIGN"), flush(i));
    let (a, b) = if sign {
        (a.signed(), b.signed())
    } else {
        (a, b)
    };
    Some(Box::new(move |r, mask| {
        let (a, b) = (r.halves(&a).map(flush), r.halves(&b).map(flush));
        let third = third.map(|c| r.halves(&c).map(flush));
        let smaller = r.truth(smaller);
        let out = std::array::from_fn(|l| {
            let pick = |x, y| match (smaller >> l & 1 == 1, nan) {
                (true, false) => half::min::<H>(x, y),
                (false, false) => half::max::<H>(x, y),
                (true, true) => half::min_nan::<H>(x, y),
                (false, true) => half::max_nan::<H>(x, y),
            };
            let first = half::map2(a[l], b[l], |x, y| match sign {
                true => half::xorsign_abs::<H>(x, y, pick),
                false => pick(x, y),
            });
            third.map_or(first, |c| half::map2(first, c[l], pick))
        });
        r.set(d, mask, &out);
    }))
}

/// Returns the lanes in which the relation holds for the lower halves, and for the upper halves.
fn held<H: Half>(
    r: &Registers,
    [a, b]: [&Source; 2],
    relations: Relations,
    flush: fn(u32) -> u32,
) -> [u32; 2] {
    let (a, b) = (r.halves(a).map(flush), r.halves(b).map(flush));
    [0, 16].map(|shift| {
        lanes_where(|l| {
            let value = |v: u32| H::widen((v >> shift) as u16);
            relations.holds(value(a[l]), value(b[l]))
        })
    })
}

fn compare<H: Half + 'static>(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, false)?;
    if i.modifiers.iter().any(|m| m.starts_with('H')) {
        return None;
    }
    let (relations, combine) = (
        Relations::from_modifiers(&i.modifiers)?,
        Combine::from_instruction(i),
    );
    let (low, high) = (form.out(0), form.out(1));
    let (a, b) = (form.source(0)?, form.source(1)?);
    let with = form.ins.first().copied().unwrap_or(Pred::ALWAYS);
    let flush = flush(i);
    Some(Box::new(move |r, mask| {
        let [lower, upper] = held::<H>(r, [&a, &b], relations, flush);
        let with = r.truth(with);
        compared(r, [low, Pred::ALWAYS], combine, with, lower, mask);
        compared(r, [high, Pred::ALWAYS], combine, with, upper, mask);
    }))
}

fn compare_to_number<H: Half + 'static>(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, true)?;
    let (relations, combine) = (
        Relations::from_modifiers(&i.modifiers)?,
        Combine::from_instruction(i),
    );
    let d = form.dest?;
    let (a, b) = (form.source(0)?, form.source(1)?);
    let with = form.ins.first().copied().unwrap_or(Pred::ALWAYS);
    let yes = match i.has("BF") {
        true => u32::from(H::narrow(1.0)),
        false => 0xffff,
    };
    let flush = flush(i);
    Some(Box::new(move |r, mask| {
        let halves = held::<H>(r, [&a, &b], relations, flush);
        let [low, high] = halves.map(|lanes| combine.combine_lanes(lanes, r.truth(with)));
        let out = std::array::from_fn(|l| {
            let pick = |lanes: u32| if lanes >> l & 1 == 1 { yes } else { 0 };
            pick(high) << 16 | pick(low)
        });
        r.set(d, mask, &out);
    }))
}
