//! Floating-point instructions of compute capability 10 and later: pairs of single-precision numbers, halves
//! with single-precision numbers, minima and maxima of three.

use super::float::{FTZ, fin, fl, flags, round};
use super::{Mods, Picked};
use crate::counters::Class;
use crate::exec::regs::alu;
use gpu_arithmetic::half::{Bfloat16, Fp16, Half as _};
use gpu_arithmetic::single as s;
use ptx::ast::Type;

/// Further bits of an instruction's constant: bfloat16 operands, and the forms of minima and maxima.
const BRAIN: u32 = 32;
const NAN: u32 = 64;
const ABS: u32 = 128;
const MAX: u32 = 256;

/// Selects an instruction by its number of sources.
pub(super) fn pick(opcode: &str, m: &Mods<'_>, sources: usize) -> Option<Picked> {
    let mut types = m.types();
    let each = if opcode == "fma" { 2 } else { 1 };
    let (alu, imm, flops) = match (types.next()?, types.next()) {
        (Type::F32x2, None) => (of_pairs(opcode)?, flags(m), 2 * each),
        (Type::F32, Some(half @ (Type::F16 | Type::Bf16))) => {
            let brain = if half == Type::Bf16 { BRAIN } else { 0 };
            (of_halves(opcode)?, flags(m) | brain, each)
        }
        (Type::F32, None) if sources == 3 && matches!(opcode, "min" | "max") => {
            let bit = |set: bool, bit: u32| if set { bit } else { 0 };
            let form = bit(m.has("NaN"), NAN) | bit(m.has("abs"), ABS) | bit(opcode == "max", MAX);
            let alu = alu!(k; |a: F32, b: F32, c: F32| -> F32 extreme(extreme(a, b, k), c, k));
            (alu, form | flags(m) & FTZ, 0)
        }
        _ => return None,
    };
    Some(Picked {
        alu,
        imm,
        class: Class::Fp32,
        flops,
    })
}

#[inline(always)]
fn extreme(a: f32, b: f32, k: u32) -> f32 {
    let [a, b] = [a, b].map(|x| {
        if k & ABS != 0 {
            fl(x, k).abs()
        } else {
            fl(x, k)
        }
    });
    s::extreme(a, b, k & MAX != 0, k & NAN != 0)
}

/// Applies an operation to both numbers of pairs.
#[inline(always)]
fn both<const N: usize>(pairs: [u64; N], k: u32, f: impl Fn([f32; N]) -> f32) -> u64 {
    let finished = |operands: [u32; N]| {
        let operands = operands.map(|bits| fl(f32::from_bits(bits), k));
        u64::from(fin(f(operands), k).to_bits())
    };
    let (low, high) = (
        pairs.map(|pair| pair as u32),
        pairs.map(|pair| (pair >> 32) as u32),
    );
    finished(high) << 32 | finished(low)
}

fn of_pairs(opcode: &str) -> Option<crate::exec::regs::Alu> {
    Some(match opcode {
        "add" => {
            alu!(k = [0, FTZ]; |a: U64, b: U64| -> U64 both([a, b], k, |[a, b]| s::add(a, b, round(k))))
        }
        "sub" => {
            alu!(k = [0, FTZ]; |a: U64, b: U64| -> U64 both([a, b], k, |[a, b]| s::sub(a, b, round(k))))
        }
        "mul" => {
            alu!(k = [0, FTZ]; |a: U64, b: U64| -> U64 both([a, b], k, |[a, b]| s::mul(a, b, round(k))))
        }
        "fma" => alu!(k = [0, FTZ]; |a: U64, b: U64, c: U64| -> U64
            both([a, b, c], k, |[a, b, c]| s::fma(a, b, c, round(k)))),
        _ => return None,
    })
}

#[inline(always)]
fn wide(half: u16, k: u32) -> f32 {
    if k & BRAIN != 0 {
        Bfloat16::widen(half)
    } else {
        Fp16::widen(half)
    }
}

fn of_halves(opcode: &str) -> Option<crate::exec::regs::Alu> {
    Some(match opcode {
        "add" => alu!(k; |a: U16, c: F32| -> F32 fin(s::add(wide(a, k), c, round(k)), k)),
        "sub" => alu!(k; |a: U16, c: F32| -> F32 fin(s::sub(wide(a, k), c, round(k)), k)),
        "fma" => alu!(k; |a: U16, b: U16, c: F32| -> F32
            fin(s::fma(wide(a, k), wide(b, k), c, round(k)), k)),
        _ => return None,
    })
}
