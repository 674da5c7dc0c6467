//! Floating-point arithmetic: single, double, half and bfloat16, packed or not.

use crate::counters::Class;
use crate::exec::regs::{Alu, alu, rows};
use crate::lower::{Mods, Picked};
use gpu_arithmetic::half::{self as h, Bfloat16, Fp16, Half, map1, map2, map3};
use gpu_arithmetic::{Round, approx, double as d, single as s};
use ptx::ast::Type;
use ptx::contract::{SUBTRACT_ADDEND, SUBTRACT_PRODUCT};

/// Flush bit of an instruction's constant, which holds the rounding mode in bits 0–1, then flushing
/// and saturation.
pub(super) const FTZ: u32 = 4;
const SAT: u32 = 8;
/// The product or the addend is subtracted: a contracted `sub`. The bit distinguishes it from the
/// plain `fma`, whose constant is zero.
const NEGATED: u32 = 16;

/// Returns the rounding mode in the low bits.
#[inline(always)]
pub(super) fn round(k: u32) -> Round {
    match k & 3 {
        0 => Round::Rn,
        1 => Round::Rz,
        2 => Round::Rm,
        _ => Round::Rp,
    }
}

pub(super) fn flags(m: &Mods<'_>) -> u32 {
    let round = match () {
        () if m.has("rz") => 1,
        () if m.has("rm") => 2,
        () if m.has("rp") => 3,
        () => 0,
    };
    let flag = |set: bool, bit: u32| if set { bit } else { 0 };
    let negated = m.has(SUBTRACT_ADDEND) || m.has(SUBTRACT_PRODUCT);
    round | flag(m.has("ftz"), FTZ) | flag(m.has("sat"), SAT) | flag(negated, NEGATED)
}

/// Flushes an operand if the instruction does so.
#[inline(always)]
pub(super) fn fl(x: f32, k: u32) -> f32 {
    if k & FTZ != 0 { s::ftz(x) } else { x }
}

/// Finishes a result: flush, then saturate.
#[inline(always)]
pub(super) fn fin(x: f32, k: u32) -> f32 {
    let x = fl(x, k);
    if k & SAT != 0 { s::sat(x) } else { x }
}

/// Selects a floating-point instruction.
pub(super) fn pick(opcode: &str, m: &Mods<'_>) -> Option<Picked> {
    let ty = m.ty()?;
    let imm = flags(m);
    let (alu, class) = match ty {
        Type::F32 if m.types().count() == 1 => (single(opcode, m, imm)?, Class::Fp32),
        Type::F64 => (double(opcode, m)?, Class::Fp64),
        Type::F16 | Type::F16x2 => (halves::<Fp16>(opcode, m, ty == Type::F16x2)?, Class::Fp16),
        Type::Bf16 | Type::Bf16x2 => (
            halves::<Bfloat16>(opcode, m, ty == Type::Bf16x2)?,
            Class::Fp16,
        ),
        _ => return None,
    };
    let special = matches!(
        opcode,
        "ex2" | "lg2" | "rcp" | "rsqrt" | "sqrt" | "sin" | "cos" | "tanh"
    );
    // Operations per lane: a packed instruction computes two results.
    let each = match opcode {
        "fma" | "mad" => 2,
        "add" | "sub" | "mul" | "div" => 1,
        _ => 0,
    };
    let flops = if matches!(ty, Type::F16x2 | Type::Bf16x2) {
        2 * each
    } else {
        each
    };
    let class = if special { Class::Special } else { class };
    Some(Picked {
        alu,
        imm,
        class,
        flops,
    })
}

fn single(opcode: &str, m: &Mods<'_>, k: u32) -> Option<Alu> {
    let approximate = m.has("approx");
    // The common forms come first: without a run-time mode their loops vectorise.
    Some(match opcode {
        "add" if k == 0 => alu!(|a: F32, b: F32| -> F32 s::add_rn(a, b)),
        "sub" if k == 0 => alu!(|a: F32, b: F32| -> F32 s::sub_rn(a, b)),
        "mul" if k == 0 => alu!(|a: F32, b: F32| -> F32 s::mul_rn(a, b)),
        "add" if k == FTZ => alu!(|a: F32, b: F32| -> F32 s::ftz(s::add_rn(s::ftz(a), s::ftz(b)))),
        "sub" if k == FTZ => alu!(|a: F32, b: F32| -> F32 s::ftz(s::sub_rn(s::ftz(a), s::ftz(b)))),
        "mul" if k == FTZ => alu!(|a: F32, b: F32| -> F32 s::ftz(s::mul_rn(s::ftz(a), s::ftz(b)))),
        "fma" if m.has(SUBTRACT_ADDEND) => alu!(k = [NEGATED]; |a: F32, b: F32, c: F32| -> F32
            fin(s::fma(fl(a, k), fl(b, k), -fl(c, k), Round::Rn), k)),
        "fma" if m.has(SUBTRACT_PRODUCT) => alu!(k = [NEGATED]; |a: F32, b: F32, c: F32| -> F32
            fin(s::fma(-fl(a, k), fl(b, k), fl(c, k), Round::Rn), k)),
        "fma" | "mad" if k == FTZ => rows!(|a, b, c| s::fma_rn_lanes::<true>(a, b, c)),
        "fma" if k == SAT => rows!(|a, b, c| s::sat_lanes(&s::fma_rn_lanes::<false>(a, b, c))),
        "fma" if k == SAT | FTZ => {
            rows!(|a, b, c| s::sat_lanes(&s::fma_rn_lanes::<true>(a, b, c)))
        }
        "add" => alu!(k; |a: F32, b: F32| -> F32 fin(s::add(fl(a, k), fl(b, k), round(k)), k)),
        "sub" => alu!(k; |a: F32, b: F32| -> F32 fin(s::sub(fl(a, k), fl(b, k), round(k)), k)),
        "mul" => alu!(k; |a: F32, b: F32| -> F32 fin(s::mul(fl(a, k), fl(b, k), round(k)), k)),
        "fma" | "mad" => alu!(k = [2, 2 | FTZ]; |a: F32, b: F32, c: F32| -> F32
            fin(s::fma(fl(a, k), fl(b, k), fl(c, k), round(k)), k)),
        "div" if m.has("full") => {
            alu!(k = [0, FTZ]; |a: F32, b: F32| -> F32 fin(approx::div_full(fl(a, k), fl(b, k)), k))
        }
        "div" if approximate => {
            alu!(k = [0, FTZ]; |a: F32, b: F32| -> F32 fin(approx::div(fl(a, k), fl(b, k)), k))
        }
        "div" => {
            alu!(k = [0, FTZ]; |a: F32, b: F32| -> F32 fin(s::div(fl(a, k), fl(b, k), round(k)), k))
        }
        "rcp" if approximate => alu!(k = [0, FTZ]; |a: F32| -> F32 fin(approx::rcp(fl(a, k)), k)),
        "rcp" => alu!(k = [0, FTZ]; |a: F32| -> F32 fin(s::rcp(fl(a, k), round(k)), k)),
        "sqrt" if approximate => alu!(k = [0, FTZ]; |a: F32| -> F32 fin(approx::sqrt(fl(a, k)), k)),
        "sqrt" => alu!(k = [0, FTZ]; |a: F32| -> F32 fin(s::sqrt(fl(a, k), round(k)), k)),
        "rsqrt" => alu!(k = [0, FTZ]; |a: F32| -> F32 fin(approx::rsqrt(fl(a, k)), k)),
        "ex2" => alu!(k = [0, FTZ]; |a: F32| -> F32 fin(approx::ex2(fl(a, k)), k)),
        "lg2" => alu!(k = [0, FTZ]; |a: F32| -> F32 fin(approx::lg2(fl(a, k)), k)),
        "sin" => alu!(k = [0, FTZ]; |a: F32| -> F32 fin(approx::sin(fl(a, k)), k)),
        "cos" => alu!(k = [0, FTZ]; |a: F32| -> F32 fin(approx::cos(fl(a, k)), k)),
        // `tanh` supports subnormals and has no `.ftz` (PTX ISA, `tanh`).
        "tanh" => alu!(|a: F32| -> F32 approx::tanh(a)),
        "neg" => alu!(k = [0, FTZ]; |a: F32| -> F32 -fl(a, k)),
        "abs" => alu!(k = [0, FTZ]; |a: F32| -> F32 fl(a, k).abs()),
        "copysign" => alu!(|a: F32, b: F32| -> F32 b.copysign(a)),
        "min" | "max" => return min_max(opcode, m),
        _ => return None,
    })
}

fn min_max(opcode: &str, m: &Mods<'_>) -> Option<Alu> {
    let max = opcode == "max";
    Some(match (max, m.has("NaN"), m.has("xorsign")) {
        (false, false, false) => {
            alu!(k = [0, FTZ]; |a: F32, b: F32| -> F32 s::min(fl(a, k), fl(b, k)))
        }
        (true, false, false) => {
            alu!(k = [0, FTZ]; |a: F32, b: F32| -> F32 s::max(fl(a, k), fl(b, k)))
        }
        (false, true, false) => {
            alu!(k = [0, FTZ]; |a: F32, b: F32| -> F32 s::min_nan(fl(a, k), fl(b, k)))
        }
        (true, true, false) => {
            alu!(k = [0, FTZ]; |a: F32, b: F32| -> F32 s::max_nan(fl(a, k), fl(b, k)))
        }
        (false, false, true) => {
            alu!(k = [0, FTZ]; |a: F32, b: F32| -> F32 s::xorsign_abs(fl(a, k), fl(b, k), s::min))
        }
        (true, false, true) => {
            alu!(k = [0, FTZ]; |a: F32, b: F32| -> F32 s::xorsign_abs(fl(a, k), fl(b, k), s::max))
        }
        (false, true, true) => {
            alu!(k = [0, FTZ]; |a: F32, b: F32| -> F32 s::xorsign_abs(fl(a, k), fl(b, k), s::min_nan))
        }
        (true, true, true) => {
            alu!(k = [0, FTZ]; |a: F32, b: F32| -> F32 s::xorsign_abs(fl(a, k), fl(b, k), s::max_nan))
        }
    })
}

fn double(opcode: &str, m: &Mods<'_>) -> Option<Alu> {
    Some(match opcode {
        "add" => alu!(k = [0]; |a: F64, b: F64| -> F64 d::add(a, b, round(k))),
        "sub" => alu!(k = [0]; |a: F64, b: F64| -> F64 d::sub(a, b, round(k))),
        "mul" => alu!(k = [0]; |a: F64, b: F64| -> F64 d::mul(a, b, round(k))),
        "fma" if m.has(SUBTRACT_ADDEND) => {
            alu!(|a: F64, b: F64, c: F64| -> F64 d::fma(a, b, -c, Round::Rn))
        }
        "fma" if m.has(SUBTRACT_PRODUCT) => {
            alu!(|a: F64, b: F64, c: F64| -> F64 d::fma(-a, b, c, Round::Rn))
        }
        "fma" | "mad" => alu!(k = [0]; |a: F64, b: F64, c: F64| -> F64 d::fma(a, b, c, round(k))),
        "div" => alu!(k = [0, FTZ]; |a: F64, b: F64| -> F64 d::div(a, b, round(k))),
        "rcp" if m.has("approx") => alu!(|a: F64| -> F64 approx::rcp_f64(a)),
        "rcp" => alu!(k = [0, FTZ]; |a: F64| -> F64 d::rcp(a, round(k))),
        "sqrt" => alu!(k = [0, FTZ]; |a: F64| -> F64 d::sqrt(a, round(k))),
        "rsqrt" => alu!(k = [0, FTZ]; |a: F64| -> F64 approx::rsqrt_f64(a, k & FTZ != 0)),
        "neg" => alu!(|a: F64| -> F64 -a),
        "abs" => alu!(|a: F64| -> F64 a.abs()),
        // PTX takes the sign from the first operand.
        "copysign" => alu!(|a: F64, b: F64| -> F64 b.copysign(a)),
        "min" => alu!(|a: F64, b: F64| -> F64 d::min(a, b)),
        "max" => alu!(|a: F64, b: F64| -> F64 d::max(a, b)),
        _ => return None,
    })
}

#[inline(always)]
pub(super) fn hfl<H: Half>(x: u16, k: u32) -> u16 {
    if k & FTZ != 0 { H::flush(x) } else { x }
}

#[inline(always)]
pub(super) fn hfin<H: Half>(x: u16, k: u32) -> u16 {
    let x = hfl::<H>(x, k);
    if k & SAT != 0 { h::sat::<H>(x) } else { x }
}

/// Expands one expression to the single and the packed form.
macro_rules! half_op {
    ($packed:expr, |$a:ident| $e:expr) => {
        if $packed {
            alu!(k = [0]; |x: U32| -> U32 map1(x, |$a| { let f: fn(u16, u32) -> u16 = $e; f($a, k) }))
        } else {
            alu!(k = [0]; |x: U16| -> U16 { let f: fn(u16, u32) -> u16 = $e; f(x, k) })
        }
    };
    ($packed:expr, |$a:ident, $b:ident| $e:expr) => {
        if $packed {
            alu!(k = [0]; |x: U32, y: U32| -> U32 {
                let f: fn(u16, u16, u32) -> u16 = $e;
                map2(x, y, |$a, $b| f($a, $b, k))
            })
        } else {
            alu!(k = [0]; |x: U16, y: U16| -> U16 { let f: fn(u16, u16, u32) -> u16 = $e; f(x, y, k) })
        }
    };
}

/// Changes the sign of a half. NaN becomes the canonical one, as from the addition that the assembler makes of it; the
/// PTX ISA leaves its bits open.
#[inline(always)]
fn signed<H: Half>(x: u16, change: impl Fn(u16) -> u16) -> u16 {
    if H::is_nan(x) { h::NAN } else { change(x) }
}

fn halves<H: HalfOps>(opcode: &str, m: &Mods<'_>, packed: bool) -> Option<Alu> {
    H::pick(opcode, m, packed)
}

/// Half-precision operations of one format: the macro cannot be generic over a type of the
/// enclosing function.
pub(super) trait HalfOps: Half {
    fn pick(opcode: &str, m: &Mods<'_>, packed: bool) -> Option<Alu>;
    fn fused(m: &Mods<'_>, packed: bool) -> Alu;
    fn extreme(opcode: &str, m: &Mods<'_>, packed: bool) -> Alu;
}

macro_rules! half_ops {
    ($format:ident) => {
        impl HalfOps for $format {
            fn pick(opcode: &str, m: &Mods<'_>, packed: bool) -> Option<Alu> {
                type H = $format;
                // Without flags, a whole row of pairs is computed at once.
                let plain = packed && flags(m) == 0;
                Some(match opcode {
                    "add" if plain => rows!(|a, b| h::add_lanes::<$format>(a, b)),
                    "sub" if plain => rows!(|a, b| h::sub_lanes::<$format>(a, b)),
                    "mul" if plain => rows!(|a, b| h::mul_lanes::<$format>(a, b)),
                    "add" => half_op!(packed, |a, b| |a, b, k| {
                        hfin::<H>(h::add::<H>(hfl::<H>(a, k), hfl::<H>(b, k)), k)
                    }),
                    "sub" => half_op!(packed, |a, b| |a, b, k| {
                        hfin::<H>(h::sub::<H>(hfl::<H>(a, k), hfl::<H>(b, k)), k)
                    }),
                    "mul" => half_op!(packed, |a, b| |a, b, k| {
                        hfin::<H>(h::mul::<H>(hfl::<H>(a, k), hfl::<H>(b, k)), k)
                    }),
                    "neg" => half_op!(packed, |a| |a, k| signed::<H>(hfl::<H>(a, k), |x| x ^ 0x8000)),
                    "abs" => half_op!(packed, |a| |a, k| signed::<H>(hfl::<H>(a, k), |x| x & 0x7fff)),
                    "ex2" => half_op!(packed, |a| |a, k| {
                        hfl::<H>(approx::ex2_half::<H>(hfl::<H>(a, k)), k)
                    }),
                    "tanh" => half_op!(packed, |a| |a, _| approx::tanh_half::<H>(a)),
                    "fma" => return Some($format::fused(m, packed)),
                    "min" | "max" => return Some($format::extreme(opcode, m, packed)),
                    _ => return None,
                })
            }

            fn fused(m: &Mods<'_>, packed: bool) -> Alu {
                type H = $format;
                fn fma_one(a: u16, b: u16, c: u16, k: u32) -> u16 {
                    hfin::<H>(h::fma::<H>(hfl::<H>(a, k), hfl::<H>(b, k), hfl::<H>(c, k)), k)
                }
                match (packed, m.has("relu")) {
                    (true, false) if flags(m) == 0 => {
                        rows!(|a, b, c| h::fma_lanes::<$format>(a, b, c))
                    }
                    (true, false) => alu!(k; |a: U32, b: U32, c: U32| -> U32
                        map3(a, b, c, |x, y, z| fma_one(x, y, z, k))),
                    (true, true) => alu!(k; |a: U32, b: U32, c: U32| -> U32
                        map3(a, b, c, |x, y, z| h::relu::<H>(fma_one(x, y, z, k)))),
                    (false, false) => alu!(k = [0]; |a: U16, b: U16, c: U16| -> U16 fma_one(a, b, c, k)),
                    (false, true) => alu!(k; |a: U16, b: U16, c: U16| -> U16
                        h::relu::<H>(fma_one(a, b, c, k))),
                }
            }

            fn extreme(opcode: &str, m: &Mods<'_>, packed: bool) -> Alu {
                type H = $format;
                let signs = m.has("xorsign");
                match (opcode == "max", m.has("NaN"), signs) {
                    (false, false, false) => half_op!(packed, |a, b| |a, b, k| {
                        h::min::<H>(hfl::<H>(a, k), hfl::<H>(b, k))
                    }),
                    (true, false, false) => half_op!(packed, |a, b| |a, b, k| {
                        h::max::<H>(hfl::<H>(a, k), hfl::<H>(b, k))
                    }),
                    (false, true, false) => half_op!(packed, |a, b| |a, b, k| {
                        h::min_nan::<H>(hfl::<H>(a, k), hfl::<H>(b, k))
                    }),
                    (true, true, false) => half_op!(packed, |a, b| |a, b, k| {
                        h::max_nan::<H>(hfl::<H>(a, k), hfl::<H>(b, k))
                    }),
                    (false, false, true) => half_op!(packed, |a, b| |a, b, k| {
                        h::xorsign_abs::<H>(hfl::<H>(a, k), hfl::<H>(b, k), h::min::<H>)
                    }),
                    (true, false, true) => half_op!(packed, |a, b| |a, b, k| {
                        h::xorsign_abs::<H>(hfl::<H>(a, k), hfl::<H>(b, k), h::max::<H>)
                    }),
                    (false, true, true) => half_op!(packed, |a, b| |a, b, k| {
                        h::xorsign_abs::<H>(hfl::<H>(a, k), hfl::<H>(b, k), h::min_nan::<H>)
                    }),
                    (true, true, true) => half_op!(packed, |a, b| |a, b, k| {
                        h::xorsign_abs::<H>(hfl::<H>(a, k), hfl::<H>(b, k), h::max_nan::<H>)
                    }),
                }
            }
        }
    };
}
half_ops!(Fp16);
half_ops!(Bfloat16);
