//! Arithmetic on pairs of floats, and of halves with floats (compute capability 10 and later).

use super::float::{finished, flushed, only, round};
use super::{Form, Run};
use crate::operand::{Part, Source};
use crate::registers::{Registers, map_lanes};
use gpu_arithmetic::half::{Bfloat16, Fp16, Half as _};
use gpu_arithmetic::{Round, single};
use sass::Instruction;

pub(super) fn lower(i: &Instruction) -> Option<Run> {
    match i.opcode {
        "FADD2" | "FMUL2" | "FFMA2" => of_pairs(i),
        "FHADD" | "FHFMA" => of_halves(i),
        _ => None,
    }
}

/// Returns `a + b`, `a * b` or `a * b + c`.
fn operation(i: &Instruction) -> fn([f32; 3], Round) -> f32 {
    match i.opcode {
        "FADD2" | "FHADD" => |[a, b, _], round| single::add(a, b, round),
        "FMUL2" => |[a, b, _], round| single::mul(a, b, round),
        _ => |[a, b, c], round| single::fma(a, b, c, round),
    }
}

/// Lowers an operation on both floats of register pairs.
fn of_pairs(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, true)?;
    if !only(i, &["FTZ", "RM", "RP", "RZ"]) {
        return None;
    }
    let (d, sources) = (form.dest?, form.sources);
    let (ftz, round, apply) = (i.has("FTZ"), round(i), operation(i));
    Some(Box::new(move |r, mask| {
        let mut values = [[[0; 32]; 2]; 3];
        for (value, source) in values.iter_mut().zip(&sources) {
            *value = r.float_pair(source);
        }
        let [low, high] = [0, 1].map(|half| {
            map_lanes(|l| {
                let operands = values.map(|value| flushed(value[half][l], ftz));
                finished(apply(operands, round), ftz, false)
            })
        });
        r.set(d, mask, &low);
        r.set(d.next(1), mask, &high);
    }))
}

/// Lowers an operation whose last operand is a float and whose others are halves, rounded once.
fn of_halves(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, true)?;
    if !only(i, &["BF16", "SAT", "RM", "RP", "RZ"]) {
        return None;
    }
    let d = form.dest?;
    let (last, halves) = form.sources.split_last()?;
    let (last, halves) = (*last, halves.to_vec());
    let (brain, sat, round, apply) = (i.has("BF16"), i.has("SAT"), round(i), operation(i));
    Some(Box::new(move |r, mask| {
        let mut values = [[0; 32]; 3];
        for (value, half) in values.iter_mut().zip(&halves) {
            *value = widened(r, half, brain);
        }
        values[halves.len().min(2)] = r.float(&last);
        let out = map_lanes(|l| {
            finished(
                apply(values.map(|value| f32::from_bits(value[l])), round),
                false,
                sat,
            )
        });
        r.set(d, mask, &out);
    }))
}

/// Reads the selected half of a register as a float.
fn widened(r: &Registers, source: &Source, brain: bool) -> [u32; 32] {
    let shift = if source.part == Part::High { 16 } else { 0 };
    let signs = |bits: u32| {
        let bits = if source.absolute { bits & 0x7fff } else { bits };
        if source.negate { bits ^ 0x8000 } else { bits }
    };
    r.raw(source.from).map(|bits| {
        let half = signs(bits >> shift) as u16;
        let wide = if brain {
            Bfloat16::widen(half)
        } else {
            Fp16::widen(half)
        };
        wide.to_bits()
    })
}
