//! Comparisons, selections, logic with three inputs, class tests.

use crate::counters::Class;
use crate::exec::regs::{Alu, alu};
use crate::lower::{Mods, Picked};
use gpu_arithmetic::half::{self, Bfloat16, Fp16, Half};
use gpu_arithmetic::{integer, single as s};
use ptx::ast::Type;

/// Expands a comparison by name for one lane type.
macro_rules! compare_int {
    ($cmp:expr, $t:ident) => {
        match $cmp {
            "eq" => alu!(|a: $t, b: $t| -> P a == b),
            "ne" => alu!(|a: $t, b: $t| -> P a != b),
            "lt" | "lo" => alu!(|a: $t, b: $t| -> P a < b),
            "le" | "ls" => alu!(|a: $t, b: $t| -> P a <= b),
            "gt" | "hi" => alu!(|a: $t, b: $t| -> P a > b),
            "ge" | "hs" => alu!(|a: $t, b: $t| -> P a >= b),
            _ => return None,
        }
    };
}

/// Expands comparisons of floats, ordered and unordered; `$load` converts a lane to a comparable
/// float.
macro_rules! compare_float {
    ($cmp:expr, $t:ident, |$x:ident, $k:ident| $load:expr) => {{
        match $cmp {
            "eq" => compare_float!(@ $t, $x, $k, $load, |a, b| a == b),
            "ne" => compare_float!(@ $t, $x, $k, $load, |a, b| a < b || a > b),
            "lt" => compare_float!(@ $t, $x, $k, $load, |a, b| a < b),
            "le" => compare_float!(@ $t, $x, $k, $load, |a, b| a <= b),
            "gt" => compare_float!(@ $t, $x, $k, $load, |a, b| a > b),
            "ge" => compare_float!(@ $t, $x, $k, $load, |a, b| a >= b),
            "equ" => compare_float!(@ $t, $x, $k, $load, |a, b| !(a < b || a > b)),
            "neu" => compare_float!(@ $t, $x, $k, $load, |a, b| a != b),
            "ltu" => compare_float!(@ $t, $x, $k, $load, |a, b| !(a >= b)),
            "leu" => compare_float!(@ $t, $x, $k, $load, |a, b| !(a > b)),
            "gtu" => compare_float!(@ $t, $x, $k, $load, |a, b| !(a <= b)),
            "geu" => compare_float!(@ $t, $x, $k, $load, |a, b| !(a < b)),
            "num" => compare_float!(@ $t, $x, $k, $load, |a, b| !a.is_nan() && !b.is_nan()),
            "nan" => compare_float!(@ $t, $x, $k, $load, |a, b| a.is_nan() || b.is_nan()),
            _ => return None,
        }
    }};
    (@ $t:ident, $x:ident, $k:ident, $load:expr, |$a:ident, $b:ident| $e:expr) => {
        alu!($k; |$a: $t, $b: $t| -> P {
            let $a = { let $x = $a; $load };
            let $b = { let $x = $b; $load };
            $e
        })
    };
}

/// Names of comparisons.
const COMPARISONS: &[&str] = &[
    "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu", "gtu",
    "geu", "num", "nan",
];

/// Returns the comparison named among the modifiers.
pub(super) fn comparison<'a>(m: &Mods<'a>) -> Option<&'a str> {
    m.0.iter().copied().find(|w| COMPARISONS.contains(w))
}

/// Selects the comparison of `setp` or `set` for a source type.
#[expect(
    clippy::double_comparisons,
    clippy::neg_cmp_op_on_partial_ord,
    reason = "NaN decides"
)]
pub(super) fn compare(cmp: &str, ty: Type, ftz: bool) -> Option<Picked> {
    let alu = match ty {
        Type::S16 => compare_int!(cmp, S16),
        Type::U16 | Type::B16 => compare_int!(cmp, U16),
        Type::S32 => compare_int!(cmp, S32),
        Type::U32 | Type::B32 => compare_int!(cmp, U32),
        Type::S64 => compare_int!(cmp, S64),
        Type::U64 | Type::B64 => compare_int!(cmp, U64),
        Type::F32 if ftz => compare_float!(cmp, F32, |x, k| s::ftz(x)),
        Type::F32 => compare_float!(cmp, F32, |x, k| x),
        Type::F64 => compare_float!(cmp, F64, |x, k| x),
        Type::F16 => compare_float!(cmp, U16, |x, k| Fp16::widen(flush::<Fp16>(x, k))),
        Type::Bf16 => compare_float!(cmp, U16, |x, k| Bfloat16::widen(flush::<Bfloat16>(x, k))),
        _ => return None,
    };
    let class = if ty.float() { Class::Fp32 } else { Class::Int };
    Some(Picked {
        alu,
        imm: ftz.into(),
        class,
        flops: 0,
    })
}

#[inline(always)]
fn flush<H: Half>(x: u16, k: u32) -> u16 {
    if k & 1 == 1 { H::flush(x) } else { x }
}

/// Selects `selp`, `slct`, `testp`.
pub(super) fn pick(opcode: &str, m: &Mods<'_>) -> Option<Picked> {
    let ty = m.ty();
    let alu = match opcode {
        "selp" => match ty?.bytes() {
            1 | 2 => alu!(|a: U16, b: U16, p: P| -> U16 if p { a } else { b }),
            4 => alu!(|a: U32, b: U32, p: P| -> U32 if p { a } else { b }),
            8 => alu!(|a: U64, b: U64, p: P| -> U64 if p { a } else { b }),
            _ => return None,
        },
        "slct" => slct(m)?,
        "testp" => testp(m)?,
        _ => return None,
    };
    Some(Picked {
        alu,
        imm: m.has("ftz").into(),
        class: Class::Move,
        flops: 0,
    })
}

fn slct(m: &Mods<'_>) -> Option<Alu> {
    let types: Vec<Type> = m.types().collect();
    let &[data, test] = types.as_slice() else {
        return None;
    };
    Some(match (data.bytes(), test) {
        (2, Type::S32) => alu!(|a: U16, b: U16, c: S32| -> U16 if c >= 0 { a } else { b }),
        (4, Type::S32) => alu!(|a: U32, b: U32, c: S32| -> U32 if c >= 0 { a } else { b }),
        (8, Type::S32) => alu!(|a: U64, b: U64, c: S32| -> U64 if c >= 0 { a } else { b }),
        // A NaN is not at least zero, and so it selects `b` (PTX ISA, `slct`).
        (2, Type::F32) => {
            alu!(k; |a: U16, b: U16, c: F32| -> U16 if flush_single(c, k) >= 0.0 { a } else { b })
        }
        (4, Type::F32) => {
            alu!(k; |a: U32, b: U32, c: F32| -> U32 if flush_single(c, k) >= 0.0 { a } else { b })
        }
        (8, Type::F32) => {
            alu!(k; |a: U64, b: U64, c: F32| -> U64 if flush_single(c, k) >= 0.0 { a } else { b })
        }
        _ => return None,
    })
}

#[inline(always)]
fn flush_single(x: f32, k: u32) -> f32 {
    if k & 1 == 1 { s::ftz(x) } else { x }
}

fn testp(m: &Mods<'_>) -> Option<Alu> {
    let wide = m.ty()? == Type::F64;
    Some(match (m.0.first().copied()?, wide) {
        ("finite", false) => alu!(|a: F32| -> P a.is_finite()),
        ("infinite", false) => alu!(|a: F32| -> P a.is_infinite()),
        ("number", false) => alu!(|a: F32| -> P !a.is_nan()),
        ("notanumber", false) => alu!(|a: F32| -> P a.is_nan()),
        // Zeros count as normal (PTX ISA, `testp`).
        ("normal", false) => alu!(|a: F32| -> P a.is_normal() || a == 0.0),
        ("subnormal", false) => alu!(|a: F32| -> P a.is_subnormal()),
        ("finite", true) => alu!(|a: F64| -> P a.is_finite()),
        ("infinite", true) => alu!(|a: F64| -> P a.is_infinite()),
        ("number", true) => alu!(|a: F64| -> P !a.is_nan()),
        ("notanumber", true) => alu!(|a: F64| -> P a.is_nan()),
        ("normal", true) => alu!(|a: F64| -> P a.is_normal() || a == 0.0),
        ("subnormal", true) => alu!(|a: F64| -> P a.is_subnormal()),
        _ => return None,
    })
}

/// Selects `lop3.b32` by its table; the most common tables have separate loops.
pub(super) fn lop3(table: u32) -> Picked {
    let alu = match table {
        0x80 => alu!(|a: U32, b: U32, c: U32| -> U32 a & b & c),
        0xfe => alu!(|a: U32, b: U32, c: U32| -> U32 a | b | c),
        0x96 => alu!(|a: U32, b: U32, c: U32| -> U32 a ^ b ^ c),
        0xea => alu!(|a: U32, b: U32, c: U32| -> U32 (a & b) | c),
        _ => alu!(k; |a: U32, b: U32, c: U32| -> U32 integer::lop3(a, b, c, k as u8)),
    };
    Picked {
        alu,
        imm: table,
        class: Class::Int,
        flops: 0,
    }
}

/// Selects the result of `set`: all ones, or 1.0, where a comparison holds.
pub(super) fn set_result(dest: Type) -> Option<Alu> {
    Some(match dest {
        Type::F32 => alu!(|p: P| -> U32 if p { 0x3f80_0000 } else { 0 }),
        Type::U32 | Type::S32 | Type::B32 => alu!(|p: P| -> U32 if p { !0 } else { 0 }),
        Type::U16 | Type::S16 => alu!(|p: P| -> U16 if p { !0 } else { 0 }),
        Type::F16 => alu!(|p: P| -> U16 if p { 0x3c00 } else { 0 }),
        Type::Bf16 => alu!(|p: P| -> U16 if p { 0x3f80 } else { 0 }),
        _ => return None,
    })
}

/// Selects `set.CMP.{f16x2,u32}.f16x2` and bfloat16, which compare both halves. Bits 0–3 of the
/// constant are the comparison's index, 4 flush, 5 bfloat16, 6 integer result.
pub(super) fn set_packed(cmp: &str, ty: Type, dest: Type, ftz: bool) -> Option<Picked> {
    // The unsigned names `lo` to `hs`, at 6 to 9, do not apply to floats: the indices close the
    // gap.
    let index = match COMPARISONS.iter().position(|c| *c == cmp)? {
        i @ 0..=5 => i,
        i @ 10.. => i - 4,
        _ => return None,
    } as u32;
    let bf = ty == Type::Bf16x2;
    let mask = !matches!(dest, Type::F16x2 | Type::Bf16x2);
    let imm = index | u32::from(ftz) << 4 | u32::from(bf) << 5 | u32::from(mask) << 6;
    let alu = alu!(k; |a: U32, b: U32| -> U32 half::map2(a, b, |x, y| {
        match (holds(k, x, y), k & 64 != 0, k & 32 != 0) {
            (false, _, _) => 0,
            (true, true, _) => 0xffff,
            (true, false, true) => 0x3f80,
            (true, false, false) => 0x3c00,
        }
    }));
    Some(Picked {
        alu,
        imm,
        class: Class::Fp16,
        flops: 0,
    })
}

/// Selects the comparison of the low or the high halves of packed registers, for `setp` with two
/// destinations.
pub(super) fn compare_packed(cmp: &str, ty: Type, high: bool, ftz: bool) -> Option<Picked> {
    let mut picked = set_packed(cmp, ty, Type::U32, ftz)?;
    picked.alu = if high {
        alu!(k; |a: U32, b: U32| -> P holds(k, (a >> 16) as u16, (b >> 16) as u16))
    } else {
        alu!(k; |a: U32, b: U32| -> P holds(k, a as u16, b as u16))
    };
    Some(picked)
}

fn holds(k: u32, x: u16, y: u16) -> bool {
    let load = |h: u16| match (k & 32 != 0, k & 16 != 0) {
        (true, ftz) => Bfloat16::widen(if ftz { Bfloat16::flush(h) } else { h }),
        (false, ftz) => Fp16::widen(if ftz { Fp16::flush(h) } else { h }),
    };
    let (a, b) = (load(x), load(y));
    let unordered = a.is_nan() || b.is_nan();
    match k & 15 {
        0 => a == b,
        1 => !unordered && a != b,
        2 => a < b,
        3 => a <= b,
        4 => a > b,
        5 => a >= b,
        6 => unordered || a == b,
        7 => a != b,
        8 => unordered || a < b,
        9 => unordered || a <= b,
        10 => unordered || a > b,
        11 => unordered || a >= b,
        12 => !unordered,
        _ => unordered,
    }
}
