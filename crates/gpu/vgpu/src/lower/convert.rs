//! `cvt`: every pair of types, rounding mode and saturation.

use crate::counters::Class;
use crate::exec::regs::{Alu, alu};
use crate::lower::convert_mode::{FINITE, FTZ, RELU, SAT, flags, overflow, round};
use crate::lower::{Mods, Picked, small};
use gpu_arithmetic::convert::{self as c, IntType};
use gpu_arithmetic::half::{self as h, Bfloat16, Fp16, Half};
use gpu_arithmetic::{double, single as s};
use ptx::ast::Type;

/// The source is f64 (float to integer) or signed (integer to float).
const FLAG: u32 = 128;

/// Packs an integer type into the constant, from bit `shift` on: bytes in 4 bits, then the sign.
fn pack_int(ty: Type, shift: u32) -> u32 {
    (ty.bytes() | u32::from(ty.signed()) << 4) << shift
}

#[inline(always)]
fn int(k: u32, shift: u32) -> IntType {
    IntType {
        bits: (k >> shift & 15) * 8,
        signed: k >> (shift + 4) & 1 == 1,
    }
}

/// Selects `cvt.D.S` and the packed forms.
pub(super) fn pick(m: &Mods<'_>) -> Option<Picked> {
    let types: Vec<Type> = m.types().collect();
    let k = flags(m);
    let (alu, imm) = match types.as_slice() {
        _ if m.has("pack") => pack_integers(m)?,
        &[to, from] => pair(m, to, from, k)?,
        _ => return None,
    };
    Some(Picked {
        alu,
        imm,
        class: Class::Convert,
        flops: 0,
    })
}

/// Selects `cvt.pack`: saturated integers side by side, with a third operand shifted to above them
/// (PTX ISA, `cvt.pack`).
fn pack_integers(m: &Mods<'_>) -> Option<(Alu, u32)> {
    let form = m.0.iter().find_map(|word| match *word {
        "u16" => Some((16, false)),
        "s16" => Some((16, true)),
        "u8" => Some((8, false)),
        "s8" => Some((8, true)),
        "u4" => Some((4, false)),
        "s4" => Some((4, true)),
        "u2" => Some((2, false)),
        "s2" => Some((2, true)),
        _ => None,
    });
    let (bits, signed) = form?;
    let k = bits | u32::from(signed) << 8;
    let alu = match bits {
        16 => alu!(k; |a: S32, b: S32| -> U32 packed(a, b, 0, k)),
        _ => alu!(k; |a: S32, b: S32, c: U32| -> U32 packed(a, b, c, k)),
    };
    Some((alu, k))
}

/// Returns `c`, `a` and `b` from the highest bits on, the last two saturated to the type of `k`.
#[inline(always)]
fn packed(a: i32, b: i32, c: u32, k: u32) -> u32 {
    let (bits, signed) = (k & 31, k >> 8 == 1);
    let (least, most) = match signed {
        true => (-(1_i32 << (bits - 1)), (1_i32 << (bits - 1)) - 1),
        false => (0, (1_i32 << bits) - 1),
    };
    let mask = (1_u32 << bits) - 1;
    let part = |value: i32| value.clamp(least, most) as u32 & mask;
    // Two parts of 16 bits leave no room for `c`: the shift by 32 must not wrap to one by 0.
    let above = c.checked_shl(2 * bits).unwrap_or(0);
    above | part(a) << bits | part(b)
}

fn pair(m: &Mods<'_>, to: Type, from: Type, k: u32) -> Option<(Alu, u32)> {
    if let Some(picked) = small::pick(to, from, k) {
        return Some(picked);
    }
    let (to_float, from_float) = (to.float(), from.float());
    match (to, from) {
        (Type::F16x2 | Type::Bf16x2, Type::F32) => Some((pack_halves(to), k)),
        (Type::Tf32, Type::F32) => Some((
            alu!(k; |a: F32| -> U32 {
                // NaN stays NaN.
                let a = if k & RELU != 0 && a <= 0.0 { 0.0 } else { a };
                gpu_arithmetic::small::to_tf32(a, round(k), overflow(k))
            }),
            k,
        )),
        _ if to_float && from_float => float_to_float(m, to, from).map(|a| (a, k)),
        _ if from_float => float_to_int(to, from, k),
        _ if to_float => int_to_float(to, from, k),
        _ => int_to_int(to, from, k),
    }
}

fn int_to_int(to: Type, from: Type, k: u32) -> Option<(Alu, u32)> {
    let k = k | pack_int(from, 8) | pack_int(to, 16);
    if to.bytes() > 8 || from.bytes() > 8 || to.bytes() == 0 || from.bytes() == 0 {
        return None;
    }
    let sat = k & SAT != 0;
    // The common conversions have loops without run-time parameters, which vectorise.
    let alu = match (to.bytes(), from.bytes(), from.signed()) {
        (8, 4, true) if !sat => alu!(|a: S32| -> S64 i64::from(a)),
        (8, 4, false) if !sat => alu!(|a: U32| -> U64 u64::from(a)),
        (4, 8, _) if !sat => alu!(|a: U64| -> U32 a as u32),
        (4, 4, _) if !sat => alu!(|a: U32| -> U32 a),
        (4, 2, true) if !sat => alu!(|a: S16| -> S32 i32::from(a)),
        (4, 2, false) if !sat => alu!(|a: U16| -> U32 u32::from(a)),
        (2, 4, _) if !sat => alu!(|a: U32| -> U16 a as u16),
        // Results narrower than their register are extended by the sign of their type.
        (8, 8, _) => alu!(k; |a: U64| -> U64 c::int_to_int(a, int(k, 8), int(k, 16), k & SAT != 0)),
        (8, _, _) => alu!(k; |a: U32| -> U64
            c::int_to_int(a.into(), int(k, 8), int(k, 16), k & SAT != 0)),
        (4, 8, _) => alu!(k; |a: U64| -> U32
            c::int_to_int(a, int(k, 8), int(k, 16), k & SAT != 0) as u32),
        (4, _, _) => alu!(k; |a: U32| -> U32
            c::int_to_int(a.into(), int(k, 8), int(k, 16), k & SAT != 0) as u32),
        // Bytes are extended to the width of their register.
        (1, 8, _) => alu!(k; |a: U64| -> U32
            c::int_to_int(a, int(k, 8), int(k, 16), k & SAT != 0) as u32),
        (1, _, _) => alu!(k; |a: U32| -> U32
            c::int_to_int(a.into(), int(k, 8), int(k, 16), k & SAT != 0) as u32),
        (_, 8, _) => alu!(k; |a: U64| -> U16
            c::int_to_int(a, int(k, 8), int(k, 16), k & SAT != 0) as u16),
        _ => alu!(k; |a: U32| -> U16
            c::int_to_int(a.into(), int(k, 8), int(k, 16), k & SAT != 0) as u16),
    };
    Some((alu, k))
}

fn float_to_int(to: Type, from: Type, k: u32) -> Option<(Alu, u32)> {
    let k = k | pack_int(to, 16);
    // See `int_to_int`: the frequent form has a loop without parameters.
    let alu = match (from, to.bytes()) {
        (Type::F32, 4) if to == Type::S32 && k & 15 == 1 => {
            alu!(|a: F32| -> S32 c::f32_to_s32_rz(a))
        }
        (Type::F32, 8) => alu!(k; |a: F32| -> U64 from_single(a, k)),
        (Type::F32, 1 | 4) => alu!(k; |a: F32| -> U32 from_single(a, k) as u32),
        (Type::F32, _) => alu!(k; |a: F32| -> U16 from_single(a, k) as u16),
        (Type::F64, 8) => alu!(k; |a: F64| -> U64 c::float_to_int(a, true, int(k, 16), round(k))),
        (Type::F64, 1 | 4) => {
            alu!(k; |a: F64| -> U32 c::float_to_int(a, true, int(k, 16), round(k)) as u32)
        }
        (Type::F64, _) => {
            alu!(k; |a: F64| -> U16 c::float_to_int(a, true, int(k, 16), round(k)) as u16)
        }
        (Type::F16, 8) => alu!(k; |a: U16| -> U64 from_single(Fp16::widen(a), k)),
        (Type::F16, 1 | 4) => alu!(k; |a: U16| -> U32 from_single(Fp16::widen(a), k) as u32),
        (Type::F16, _) => alu!(k; |a: U16| -> U16 from_single(Fp16::widen(a), k) as u16),
        (Type::Bf16, 8) => alu!(k; |a: U16| -> U64 from_single(Bfloat16::widen(a), k)),
        (Type::Bf16, 1 | 4) => alu!(k; |a: U16| -> U32 from_single(Bfloat16::widen(a), k) as u32),
        (Type::Bf16, _) => alu!(k; |a: U16| -> U16 from_single(Bfloat16::widen(a), k) as u16),
        _ => return None,
    };
    Some((alu, k))
}

#[inline(always)]
fn from_single(a: f32, k: u32) -> u64 {
    let a = if k & FTZ != 0 { s::ftz(a) } else { a };
    c::float_to_int(c::f32_to_f64(a), false, int(k, 16), round(k))
}

fn int_to_float(to: Type, from: Type, k: u32) -> Option<(Alu, u32)> {
    let k = k | pack_int(from, 8) | if from.signed() { FLAG } else { 0 };
    let wide = from.bytes() == 8;
    // See `int_to_int`: the frequent forms have loops without parameters.
    let alu = match (to, wide) {
        (Type::F32, false) if from == Type::S32 && k & 31 == 0 => {
            alu!(|a: S32| -> F32 a as f32)
        }
        (Type::F32, false) if from == Type::U32 && k & 31 == 0 => {
            alu!(|a: U32| -> F32 a as f32)
        }
        (Type::F32, false) => {
            alu!(k; |a: U32| -> F32 sat32(c::int_to_f32(a.into(), int(k, 8), round(k)), k))
        }
        (Type::F32, true) => {
            alu!(k; |a: U64| -> F32 sat32(c::int_to_f32(a, int(k, 8), round(k)), k))
        }
        (Type::F64, false) => {
            alu!(k; |a: U32| -> F64 sat64(c::int_to_f64(a.into(), int(k, 8), round(k)), k))
        }
        (Type::F64, true) => {
            alu!(k; |a: U64| -> F64 sat64(c::int_to_f64(a, int(k, 8), round(k)), k))
        }
        (Type::F16, false) => alu!(k; |a: U32| -> U16 half_of_int::<Fp16>(a.into(), k)),
        (Type::F16, true) => alu!(k; |a: U64| -> U16 half_of_int::<Fp16>(a, k)),
        (Type::Bf16, false) => alu!(k; |a: U32| -> U16 half_of_int::<Bfloat16>(a.into(), k)),
        (Type::Bf16, true) => alu!(k; |a: U64| -> U16 half_of_int::<Bfloat16>(a, k)),
        _ => return None,
    };
    Some((alu, k))
}

fn half_of_int<H: Half>(a: u64, k: u32) -> u16 {
    sat_half::<H>(c::int_to_float(a, int(k, 8), H::FORMAT, round(k)) as u16, k)
}

#[inline(always)]
fn sat_half<H: Half>(x: u16, k: u32) -> u16 {
    if k & SAT != 0 { h::sat::<H>(x) } else { x }
}

#[inline(always)]
fn sat32(x: f32, k: u32) -> f32 {
    if k & SAT != 0 { s::sat(x) } else { x }
}

#[inline(always)]
fn sat64(x: f64, k: u32) -> f64 {
    if k & SAT != 0 { double::sat(x) } else { x }
}

#[inline(always)]
fn fin32(x: f32, k: u32) -> f32 {
    sat32(if k & FTZ != 0 { s::ftz(x) } else { x }, k)
}

#[inline(always)]
fn narrow<H: Half>(x: f32, k: u32) -> u16 {
    let x = if k & FTZ != 0 { s::ftz(x) } else { x };
    let mut out = if k & (7 | FINITE) == 0 {
        H::narrow(x)
    } else {
        h::from_f32::<H>(x, round(k), overflow(k))
    };
    if k & RELU != 0 {
        out = h::relu::<H>(out);
    }
    sat_half::<H>(out, k)
}

fn float_to_float(m: &Mods<'_>, to: Type, from: Type) -> Option<Alu> {
    let integral = ["rni", "rzi", "rmi", "rpi"].iter().any(|w| m.has(w));
    Some(match (to, from) {
        (Type::F32, Type::F32) if integral => alu!(k = [0]; |a: F32| -> F32 {
            let a = if k & FTZ != 0 { s::ftz(a) } else { a };
            fin32(c::integral_f32(a, round(k)), k)
        }),
        (Type::F32, Type::F32) => alu!(k = [0]; |a: F32| -> F32 fin32(a, k)),
        (Type::F64, Type::F64) if integral => {
            alu!(k = [0]; |a: F64| -> F64 sat64(c::integral_f64(a, round(k)), k))
        }
        (Type::F64, Type::F64) => alu!(k = [0]; |a: F64| -> F64 sat64(a, k)),
        (Type::F32, Type::F64) => {
            alu!(k = [0]; |a: F64| -> F32 fin32(c::f64_to_f32(a, round(k)), k))
        }
        (Type::F64, Type::F32) => {
            alu!(k = [0]; |a: F32| -> F64
                sat64(c::f32_to_f64(if k & FTZ != 0 { s::ftz(a) } else { a }), k))
        }
        (Type::F32, Type::F16) => alu!(k = [0]; |a: U16| -> F32 fin32(Fp16::widen(a), k)),
        // The assembler shifts, which keeps the bits of NaN.
        (Type::F32, Type::Bf16) if flags(m) == 0 => alu!(|a: U16| -> U32 u32::from(a) << 16),
        (Type::F32, Type::Bf16) => alu!(k; |a: U16| -> F32 fin32(Bfloat16::widen(a), k)),
        (Type::F64, Type::F16) => {
            alu!(k = [0]; |a: U16| -> F64 sat64(c::f32_to_f64(Fp16::widen(a)), k))
        }
        (Type::F64, Type::Bf16) => {
            alu!(k = [0]; |a: U16| -> F64 sat64(c::f32_to_f64(Bfloat16::widen(a)), k))
        }
        (Type::F16, Type::F32) => alu!(k = [0]; |a: F32| -> U16 narrow::<Fp16>(a, k)),
        (Type::Bf16, Type::F32) => alu!(k = [0]; |a: F32| -> U16 narrow::<Bfloat16>(a, k)),
        (Type::F16, Type::F64) => alu!(k = [0]; |a: F64| -> U16 from_double::<Fp16>(a, k)),
        (Type::Bf16, Type::F64) => alu!(k = [0]; |a: F64| -> U16 from_double::<Bfloat16>(a, k)),
        (Type::F16, Type::F16) if integral => alu!(k = [0]; |a: U16| -> U16
            Fp16::narrow(sat32(c::integral_f32(Fp16::widen(a), round(k)), k))),
        (Type::Bf16, Type::Bf16) if integral => alu!(k = [0]; |a: U16| -> U16
            Bfloat16::narrow(sat32(c::integral_f32(Bfloat16::widen(a), round(k)), k))),
        (Type::F16, Type::F16) => {
            alu!(k = [0]; |a: U16| -> U16 sat_half::<Fp16>(a, k))
        }
        (Type::Bf16, Type::Bf16) => {
            alu!(k = [0]; |a: U16| -> U16 sat_half::<Bfloat16>(a, k))
        }
        (Type::Bf16, Type::F16) => {
            alu!(k = [0]; |a: U16| -> U16 narrow::<Bfloat16>(Fp16::widen(a), k))
        }
        (Type::F16, Type::Bf16) => {
            alu!(k = [0]; |a: U16| -> U16 narrow::<Fp16>(Bfloat16::widen(a), k))
        }
        _ => return None,
    })
}

fn from_double<H: Half>(a: f64, k: u32) -> u16 {
    use gpu_arithmetic::soft;
    let bits = soft::convert(soft::F64, H::FORMAT, a.to_bits(), round(k), overflow(k)) as u16;
    sat_half::<H>(bits, k)
}

/// Selects `cvt.rn.f16x2.f32 d, a, b`: `a` goes to the upper half.
fn pack_halves(to: Type) -> Alu {
    if to == Type::F16x2 {
        alu!(k = [0]; |a: F32, b: F32| -> U32 h::pack(narrow::<Fp16>(b, k), narrow::<Fp16>(a, k)))
    } else {
        alu!(k = [0]; |a: F32, b: F32| -> U32 h::pack(narrow::<Bfloat16>(b, k), narrow::<Bfloat16>(a, k)))
    }
}
