//! Integer, logic and bit instructions.

use crate::counters::Class;
use crate::exec::regs::alu;
use crate::lower::{Mods, Picked};
use gpu_arithmetic::integer as n;
use ptx::ast::Type;

/// Expands the same expression for every integer type.
macro_rules! by_int {
    ($ty:expr, |$($x:ident),*| $e:expr) => {
        match $ty {
            Type::S16 => Some(alu!(|$($x: S16),*| -> S16 $e)),
            Type::U16 | Type::B16 => Some(alu!(|$($x: U16),*| -> U16 $e)),
            Type::S32 => Some(alu!(|$($x: S32),*| -> S32 $e)),
            Type::U32 | Type::B32 => Some(alu!(|$($x: U32),*| -> U32 $e)),
            Type::S64 => Some(alu!(|$($x: S64),*| -> S64 $e)),
            Type::U64 | Type::B64 => Some(alu!(|$($x: U64),*| -> U64 $e)),
            _ => None,
        }
    };
}

/// Expands expressions that differ by width: 16, 32, 64 bits, unsigned then signed.
macro_rules! by_width {
    ($ty:expr; $u16:expr, $s16:expr, $u32:expr, $s32:expr, $u64:expr, $s64:expr) => {
        match $ty {
            Type::U16 | Type::B16 => Some($u16),
            Type::S16 => Some($s16),
            Type::U32 | Type::B32 => Some($u32),
            Type::S32 => Some($s32),
            Type::U64 | Type::B64 => Some($u64),
            Type::S64 => Some($s64),
            _ => None,
        }
    };
}

/// Selects an integer instruction; returns `None` for any other.
pub(super) fn pick(opcode: &str, m: &Mods<'_>) -> Option<Picked> {
    let ty = m.ty()?;
    let alu = match opcode {
        // PTX defines `.sat` of `add` and `sub` for `.s32` only.
        "add" if m.has("sat") => {
            (ty == Type::S32).then_some(alu!(|a: U32, b: U32| -> U32 n::add_sat(a, b)))
        }
        "sub" if m.has("sat") => {
            (ty == Type::S32).then_some(alu!(|a: U32, b: U32| -> U32 n::sub_sat(a, b)))
        }
        "add" | "sub" | "min" | "max" | "neg" | "abs" | "div" | "rem" => basic(opcode, ty, m),
        "mul" | "mad" => multiply(opcode, m, ty),
        "and" | "or" | "xor" | "not" | "cnot" | "shl" | "shr" => logic(opcode, ty),
        _ => return bits(opcode, m, ty),
    }?;
    Some(Picked {
        alu,
        imm: 0,
        class: Class::Int,
        flops: 0,
    })
}

fn basic(opcode: &str, ty: Type, m: &Mods<'_>) -> Option<crate::exec::regs::Alu> {
    if matches!(ty, Type::U16x2 | Type::S16x2) {
        return packed(opcode, ty, m);
    }
    match opcode {
        "add" => by_int!(ty, |a, b| a.wrapping_add(b)),
        "sub" => by_int!(ty, |a, b| a.wrapping_sub(b)),
        "min" if m.has("relu") => Some(alu!(|a: S32, b: S32| -> S32 a.min(b).max(0))),
        "max" if m.has("relu") => Some(alu!(|a: S32, b: S32| -> S32 a.max(b).max(0))),
        "min" => by_int!(ty, |a, b| a.min(b)),
        "max" => by_int!(ty, |a, b| a.max(b)),
        "neg" => by_int!(ty, |a| a.wrapping_neg()),
        "abs" => match ty {
            Type::S16 => Some(alu!(|a: S16| -> S16 a.wrapping_abs())),
            Type::S32 => Some(alu!(|a: S32| -> S32 a.wrapping_abs())),
            Type::S64 => Some(alu!(|a: S64| -> S64 a.wrapping_abs())),
            _ => None,
        },
        // Division by zero yields all ones, as quotient and as remainder: so does the machine code.
        "div" => by_width!(ty;
            alu!(|a: U16, b: U16| -> U16 a.checked_div(b).unwrap_or(!0)),
            alu!(|a: S16, b: S16| -> S16 if b == 0 { -1 } else { a.wrapping_div(b) }),
            alu!(|a: U32, b: U32| -> U32 a.checked_div(b).unwrap_or(!0)),
            alu!(|a: S32, b: S32| -> S32 if b == 0 { -1 } else { a.wrapping_div(b) }),
            alu!(|a: U64, b: U64| -> U64 a.checked_div(b).unwrap_or(!0)),
            alu!(|a: S64, b: S64| -> S64 if b == 0 { -1 } else { a.wrapping_div(b) })),
        "rem" => by_width!(ty;
            alu!(|a: U16, b: U16| -> U16 a.checked_rem(b).unwrap_or(!0)),
            alu!(|a: S16, b: S16| -> S16 if b == 0 { -1 } else { a.wrapping_rem(b) }),
            alu!(|a: U32, b: U32| -> U32 a.checked_rem(b).unwrap_or(!0)),
            alu!(|a: S32, b: S32| -> S32 if b == 0 { -1 } else { a.wrapping_rem(b) }),
            alu!(|a: U64, b: U64| -> U64 a.checked_rem(b).unwrap_or(!0)),
            alu!(|a: S64, b: S64| -> S64 if b == 0 { -1 } else { a.wrapping_rem(b) })),
        _ => None,
    }
}

fn packed(opcode: &str, ty: Type, m: &Mods<'_>) -> Option<crate::exec::regs::Alu> {
    use gpu_arithmetic::half::map2;
    let signed = ty == Type::S16x2;
    let relu = m.has("relu");
    Some(match (opcode, signed) {
        ("add", _) => alu!(|a: U32, b: U32| -> U32 map2(a, b, u16::wrapping_add)),
        ("sub", _) => alu!(|a: U32, b: U32| -> U32 map2(a, b, u16::wrapping_sub)),
        ("min", false) => alu!(|a: U32, b: U32| -> U32 map2(a, b, u16::min)),
        ("max", false) => alu!(|a: U32, b: U32| -> U32 map2(a, b, u16::max)),
        ("min", true) if relu => alu!(|a: U32, b: U32| -> U32
            map2(a, b, |x, y| (x as i16).min(y as i16).max(0) as u16)),
        ("max", true) if relu => alu!(|a: U32, b: U32| -> U32
            map2(a, b, |x, y| (x as i16).max(y as i16).max(0) as u16)),
        ("min", true) => alu!(|a: U32, b: U32| -> U32
            map2(a, b, |x, y| (x as i16).min(y as i16) as u16)),
        ("max", true) => alu!(|a: U32, b: U32| -> U32
            map2(a, b, |x, y| (x as i16).max(y as i16) as u16)),
        ("neg", _) => alu!(|a: U32| -> U32 map2(a, 0, |x, _| x.wrapping_neg())),
        _ => return None,
    })
}

fn multiply(opcode: &str, m: &Mods<'_>, ty: Type) -> Option<crate::exec::regs::Alu> {
    let mad = opcode == "mad";
    if m.has("wide") {
        return wide(mad, ty);
    }
    if m.has("hi") {
        return high(mad, m.has("sat"), ty);
    }
    if mad {
        by_int!(ty, |a, b, c| a.wrapping_mul(b).wrapping_add(c))
    } else {
        by_int!(ty, |a, b| a.wrapping_mul(b))
    }
}

fn wide(mad: bool, ty: Type) -> Option<crate::exec::regs::Alu> {
    Some(match (ty, mad) {
        (Type::U16, false) => alu!(|a: U16, b: U16| -> U32 u32::from(a) * u32::from(b)),
        (Type::S16, false) => alu!(|a: S16, b: S16| -> S32 i32::from(a) * i32::from(b)),
        (Type::U32, false) => alu!(|a: U32, b: U32| -> U64 u64::from(a) * u64::from(b)),
        (Type::S32, false) => alu!(|a: S32, b: S32| -> S64 i64::from(a) * i64::from(b)),
        (Type::U16, true) => {
            alu!(|a: U16, b: U16, c: U32| -> U32 (u32::from(a) * u32::from(b)).wrapping_add(c))
        }
        (Type::S16, true) => {
            alu!(|a: S16, b: S16, c: S32| -> S32 (i32::from(a) * i32::from(b)).wrapping_add(c))
        }
        (Type::U32, true) => {
            alu!(|a: U32, b: U32, c: U64| -> U64 (u64::from(a) * u64::from(b)).wrapping_add(c))
        }
        (Type::S32, true) => {
            alu!(|a: S32, b: S32, c: S64| -> S64 (i64::from(a) * i64::from(b)).wrapping_add(c))
        }
        _ => return None,
    })
}

fn high(mad: bool, sat: bool, ty: Type) -> Option<crate::exec::regs::Alu> {
    if mad && sat {
        return (ty == Type::S32)
            .then_some(alu!(|a: U32, b: U32, c: U32| -> U32 n::mad_hi_sat(a, b, c)));
    }
    if mad {
        return by_width!(ty;
            alu!(|a: U16, b: U16, c: U16| -> U16
                (((u32::from(a) * u32::from(b)) >> 16) as u16).wrapping_add(c)),
            alu!(|a: S16, b: S16, c: S16| -> S16
                (((i32::from(a) * i32::from(b)) >> 16) as i16).wrapping_add(c)),
            alu!(|a: U32, b: U32, c: U32| -> U32
                (((u64::from(a) * u64::from(b)) >> 32) as u32).wrapping_add(c)),
            alu!(|a: S32, b: S32, c: S32| -> S32
                (((i64::from(a) * i64::from(b)) >> 32) as i32).wrapping_add(c)),
            alu!(|a: U64, b: U64, c: U64| -> U64
                (((u128::from(a) * u128::from(b)) >> 64) as u64).wrapping_add(c)),
            alu!(|a: S64, b: S64, c: S64| -> S64
                (((i128::from(a) * i128::from(b)) >> 64) as i64).wrapping_add(c)));
    }
    by_width!(ty;
        alu!(|a: U16, b: U16| -> U16 ((u32::from(a) * u32::from(b)) >> 16) as u16),
        alu!(|a: S16, b: S16| -> S16 ((i32::from(a) * i32::from(b)) >> 16) as i16),
        alu!(|a: U32, b: U32| -> U32 ((u64::from(a) * u64::from(b)) >> 32) as u32),
        alu!(|a: S32, b: S32| -> S32 ((i64::from(a) * i64::from(b)) >> 32) as i32),
        alu!(|a: U64, b: U64| -> U64 ((u128::from(a) * u128::from(b)) >> 64) as u64),
        alu!(|a: S64, b: S64| -> S64 ((i128::from(a) * i128::from(b)) >> 64) as i64))
}

fn logic(opcode: &str, ty: Type) -> Option<crate::exec::regs::Alu> {
    if ty == Type::Pred {
        return Some(match opcode {
            "and" => alu!(|a: P, b: P| -> P a & b),
            "or" => alu!(|a: P, b: P| -> P a | b),
            "xor" => alu!(|a: P, b: P| -> P a ^ b),
            "not" => alu!(|a: P| -> P !a),
            _ => return None,
        });
    }
    match opcode {
        "and" => by_int!(ty, |a, b| a & b),
        "or" => by_int!(ty, |a, b| a | b),
        "xor" => by_int!(ty, |a, b| a ^ b),
        "not" => by_int!(ty, |a| !a),
        "cnot" => by_width!(ty;
            alu!(|a: U16| -> U16 u16::from(a == 0)), alu!(|a: S16| -> S16 i16::from(a == 0)),
            alu!(|a: U32| -> U32 u32::from(a == 0)), alu!(|a: S32| -> S32 i32::from(a == 0)),
            alu!(|a: U64| -> U64 u64::from(a == 0)), alu!(|a: S64| -> S64 i64::from(a == 0))),
        // Shift amounts are clamped to the width.
        "shl" => match ty.bytes() {
            2 => Some(alu!(|a: U16, b: U32| -> U16 a.checked_shl(b).unwrap_or(0))),
            4 => Some(alu!(|a: U32, b: U32| -> U32 a.checked_shl(b).unwrap_or(0))),
            8 => Some(alu!(|a: U64, b: U32| -> U64 a.checked_shl(b).unwrap_or(0))),
            _ => None,
        },
        "shr" => by_width!(ty;
            alu!(|a: U16, b: U32| -> U16 a.checked_shr(b).unwrap_or(0)),
            alu!(|a: S16, b: U32| -> S16 a >> b.min(15)),
            alu!(|a: U32, b: U32| -> U32 a.checked_shr(b).unwrap_or(0)),
            alu!(|a: S32, b: U32| -> S32 a >> b.min(31)),
            alu!(|a: U64, b: U32| -> U64 a.checked_shr(b).unwrap_or(0)),
            alu!(|a: S64, b: U32| -> S64 a >> b.min(63))),
        _ => None,
    }
}

fn bits(opcode: &str, m: &Mods<'_>, ty: Type) -> Option<Picked> {
    let wide = ty.bytes() == 8;
    let signed = ty.signed();
    let alu = match (opcode, wide) {
        ("popc", false) => alu!(|a: U32| -> U32 a.count_ones()),
        ("popc", true) => alu!(|a: U64| -> U32 a.count_ones()),
        ("clz", false) => alu!(|a: U32| -> U32 a.leading_zeros()),
        ("clz", true) => alu!(|a: U64| -> U32 a.leading_zeros()),
        ("brev", false) => alu!(|a: U32| -> U32 a.reverse_bits()),
        ("brev", true) => alu!(|a: U64| -> U64 a.reverse_bits()),
        ("bfind", _) => return bfind(m, wide, signed),
        ("bfe", false) if signed => {
            alu!(|a: U32, b: U32, c: U32| -> U32 n::bfe(a.into(), b, c, 32, true) as u32)
        }
        ("bfe", false) => {
            alu!(|a: U32, b: U32, c: U32| -> U32 n::bfe(a.into(), b, c, 32, false) as u32)
        }
        ("bfe", true) if signed => {
            alu!(|a: U64, b: U32, c: U32| -> U64 n::bfe(a, b, c, 64, true))
        }
        ("bfe", true) => alu!(|a: U64, b: U32, c: U32| -> U64 n::bfe(a, b, c, 64, false)),
        ("bfi", false) => alu!(|a: U32, b: U32, c: U32, d: U32| -> U32
            n::bfi(a.into(), b.into(), c, d, 32) as u32),
        ("bfi", true) => alu!(|a: U64, b: U64, c: U32, d: U32| -> U64 n::bfi(a, b, c, d, 64)),
        ("fns", _) => alu!(|a: U32, b: U32, c: U32| -> U32 n::fns(a, b, c as i32)),
        ("sad", false) if ty.bytes() == 4 => return sad(signed),
        ("sad", false) if ty == Type::U16 => {
            alu!(|a: U16, b: U16, c: U16| -> U16 c.wrapping_add(a.abs_diff(b)))
        }
        ("sad", false) if ty == Type::S16 => {
            alu!(|a: S16, b: S16, c: S16| -> S16 c.wrapping_add(a.abs_diff(b) as i16))
        }
        ("sad", true) if signed => {
            alu!(|a: U64, b: U64, c: U64| -> U64 n::sad64(a, b, c, true))
        }
        ("sad", true) => alu!(|a: U64, b: U64, c: U64| -> U64 n::sad64(a, b, c, false)),
        ("mul24" | "mad24", _) => return twenty_four(opcode, m, signed),
        ("shf", _) => return funnel(m),
        ("prmt", _) => return permute(m),
        ("dp4a" | "dp2a", _) => return dot(opcode, m),
        ("szext" | "bmsk", _) => return masks(opcode, m, signed),
        _ => return None,
    };
    Some(Picked {
        alu,
        imm: 0,
        class: Class::Int,
        flops: 0,
    })
}

fn picked(alu: crate::exec::regs::Alu, imm: u32) -> Option<Picked> {
    Some(Picked {
        alu,
        imm,
        class: Class::Int,
        flops: 0,
    })
}

fn bfind(m: &Mods<'_>, wide: bool, signed: bool) -> Option<Picked> {
    let imm = u32::from(signed) | u32::from(m.has("shiftamt")) << 1;
    let alu = if wide {
        alu!(k; |a: U64| -> U32 n::bfind(a, 64, k & 1 == 1, k & 2 == 2))
    } else {
        alu!(k; |a: U32| -> U32 n::bfind(a.into(), 32, k & 1 == 1, k & 2 == 2))
    };
    picked(alu, imm)
}

fn sad(signed: bool) -> Option<Picked> {
    picked(
        alu!(k; |a: U32, b: U32, c: U32| -> U32 n::sad(a, b, c, k == 1)),
        signed.into(),
    )
}

fn twenty_four(opcode: &str, m: &Mods<'_>, signed: bool) -> Option<Picked> {
    let imm = u32::from(signed) | u32::from(m.has("hi")) << 1;
    let alu = match (opcode, m.has("sat")) {
        ("mul24", _) => alu!(k; |a: U32, b: U32| -> U32 n::mul24(a, b, k & 1 == 1, k & 2 == 2)),
        (_, true) => alu!(|a: U32, b: U32, c: U32| -> U32 n::mad24_hi_sat(a, b, c)),
        _ => alu!(k; |a: U32, b: U32, c: U32| -> U32
            n::mul24(a, b, k & 1 == 1, k & 2 == 2).wrapping_add(c)),
    };
    picked(alu, imm)
}

fn funnel(m: &Mods<'_>) -> Option<Picked> {
    let imm = u32::from(m.has("l")) | u32::from(m.has("wrap")) << 1;
    picked(
        alu!(k; |a: U32, b: U32, c: U32| -> U32 n::shf(a, b, c, k & 1 == 1, k & 2 == 2)),
        imm,
    )
}

fn permute(m: &Mods<'_>) -> Option<Picked> {
    use n::Permute::{Backward4, Default, EdgeLeft, EdgeRight, Forward4, Replicate8, Replicate16};
    let alu = match () {
        () if m.has("f4e") => alu!(|a: U32, b: U32, c: U32| -> U32 n::prmt(a, b, c, Forward4)),
        () if m.has("b4e") => alu!(|a: U32, b: U32, c: U32| -> U32 n::prmt(a, b, c, Backward4)),
        () if m.has("rc8") => alu!(|a: U32, b: U32, c: U32| -> U32 n::prmt(a, b, c, Replicate8)),
        () if m.has("ecl") => alu!(|a: U32, b: U32, c: U32| -> U32 n::prmt(a, b, c, EdgeLeft)),
        () if m.has("ecr") => alu!(|a: U32, b: U32, c: U32| -> U32 n::prmt(a, b, c, EdgeRight)),
        () if m.has("rc16") => {
            alu!(|a: U32, b: U32, c: U32| -> U32 n::prmt(a, b, c, Replicate16))
        }
        () => alu!(|a: U32, b: U32, c: U32| -> U32 n::prmt(a, b, c, Default)),
    };
    picked(alu, 0)
}

fn dot(opcode: &str, m: &Mods<'_>) -> Option<Picked> {
    let types: Vec<Type> = m.types().collect();
    let &[a, b] = types.as_slice() else {
        return None;
    };
    let imm = u32::from(a.signed()) | u32::from(b.signed()) << 1 | u32::from(m.has("hi")) << 2;
    let alu = if opcode == "dp4a" {
        alu!(k; |a: U32, b: U32, c: U32| -> U32 n::dp4a(a, b, c, k & 1 == 1, k & 2 == 2))
    } else {
        alu!(k; |a: U32, b: U32, c: U32| -> U32
            n::dp2a(a, b, c, k & 1 == 1, k & 2 == 2, k & 4 == 4))
    };
    picked(alu, imm)
}

fn masks(opcode: &str, m: &Mods<'_>, signed: bool) -> Option<Picked> {
    let imm = u32::from(signed) | u32::from(m.has("wrap")) << 1;
    let alu = if opcode == "szext" {
        alu!(k; |a: U32, b: U32| -> U32 n::szext(a, b, k & 1 == 1, k & 2 == 2))
    } else {
        alu!(k; |a: U32, b: U32| -> U32 n::bmsk(a, b, k & 2 == 2))
    };
    picked(alu, imm)
}
