//! SIMD video instructions with the default selection of elements: `vabsdiff4`, `vadd2`, ….

use crate::counters::Class;
use crate::exec::regs::alu;
use crate::lower::{Mods, Picked};
use gpu_arithmetic::video::{Simd, Video};
use ptx::ast::Type;

const A: u32 = 1 << 4;
const B: u32 = 1 << 5;
const D: u32 = 1 << 6;
const SAT: u32 = 1 << 7;
const ADD: u32 = 1 << 8;
const HALVES: u32 = 1 << 9;

const NAMES: [(&str, Simd); 6] = [
    ("vadd", Simd::Add),
    ("vsub", Simd::Sub),
    ("vavrg", Simd::Average),
    ("vabsdiff", Simd::AbsDiff),
    ("vmin", Simd::Min),
    ("vmax", Simd::Max),
];

/// Selects a video instruction; returns `None` for any other.
pub(super) fn pick(opcode: &str, m: &Mods<'_>) -> Option<Picked> {
    let (stem, halves) = match (opcode.strip_suffix('4'), opcode.strip_suffix('2')) {
        (Some(stem), _) => (stem, false),
        (_, Some(stem)) => (stem, true),
        _ => return None,
    };
    let index = NAMES.iter().position(|(name, _)| *name == stem)?;
    let types: Vec<Type> = m.types().collect();
    let &[d, a, b] = types.as_slice() else {
        return None;
    };
    let mut imm = index as u32;
    for (on, bit) in [
        (a.signed(), A),
        (b.signed(), B),
        (d.signed(), D),
        (m.has("sat"), SAT),
        (m.has("add"), ADD),
        (halves, HALVES),
    ] {
        imm |= if on { bit } else { 0 };
    }
    let alu = alu!(k; |a: U32, b: U32, c: U32| -> U32 form(k).run(a, b, c));
    Some(Picked {
        alu,
        imm,
        class: Class::Int,
        flops: 0,
    })
}

fn form(k: u32) -> Video {
    Video {
        op: NAMES[(k & 15) as usize % NAMES.len()].1,
        elements: if k & HALVES != 0 { 2 } else { 4 },
        a_signed: k & A != 0,
        b_signed: k & B != 0,
        d_signed: k & D != 0,
        sat: k & SAT != 0,
        accumulate: k & ADD != 0,
    }
}
