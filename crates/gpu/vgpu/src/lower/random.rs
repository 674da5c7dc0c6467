//! Instructions with randomly rounded results.
//!
//! Unchanged are: directed roundings, which kernels use on purpose, conversions to integers,
//! approximations of 16-bit functions, and sums in matrix instructions of types other than single
//! precision.

use super::float::{FTZ, fin, fl, flags, hfin, hfl};
use super::{Lower, Mods, Picked};
use crate::counters::Class;
use crate::exec::regs::{Alu, Slots, random};
use crate::lower::program::Op;
use gpu_arithmetic::half::{self as h, Bfloat16, Fp16, Half};
use gpu_arithmetic::random::{SINGLE_BITS, Toss, product_error, sum_error};
use gpu_arithmetic::{Round, approx, double as d, single as s};
use ptx::ast::Type;

/// Bit in the constant of every instruction here, which distinguishes it from a plain one.
const RANDOM: u32 = 32;

/// Magnitude from which adding a double rounds to an integer: 2^51.
const WHOLE_DOUBLES: f64 = 2_251_799_813_685_248.0;

/// Returns the instruction with a randomly rounded result; `None` if it stays unchanged.
pub(super) fn pick(opcode: &str, m: &Mods<'_>, plain: Picked) -> Option<Picked> {
    let directed = ["rz", "rm", "rp", "rna"].iter().any(|word| m.has(word));
    if directed || m.has("relu") {
        return None;
    }
    let alu = if opcode == "cvt" {
        conversion(m)?
    } else {
        match m.ty()? {
            Type::F32 if m.types().count() == 1 => single(opcode, m)?,
            Type::F64 => double(opcode, m)?,
            Type::F16 => halves::<Fp16>(opcode)?,
            Type::Bf16 => halves::<Bfloat16>(opcode)?,
            Type::F16x2 => pairs::<Fp16>(opcode)?,
            Type::Bf16x2 => pairs::<Bfloat16>(opcode)?,
            _ => return None,
        }
    };
    Some(Picked {
        alu,
        imm: flags(m) | RANDOM,
        ..plain
    })
}

fn single(opcode: &str, m: &Mods<'_>) -> Option<Alu> {
    let approximate = m.has("approx");
    Some(match opcode {
        "add" => {
            random!(toss, k; |a: F32, b: F32| -> F32 fin(toss.single_sum(fl(a, k), fl(b, k)), k))
        }
        "sub" => {
            random!(toss, k; |a: F32, b: F32| -> F32 fin(toss.single_sum(fl(a, k), -fl(b, k)), k))
        }
        "mul" => random!(toss, k; |a: F32, b: F32| -> F32 {
            let (a, b) = (fl(a, k), fl(b, k));
            fin(toss.single(s::mul_rn(a, b), f64::from(a) * f64::from(b)), k)
        }),
        "fma" | "mad" => random!(toss, k; |a: F32, b: F32, c: F32| -> F32
            fin(toss.single_fused(fl(a, k), fl(b, k), fl(c, k)), k)),
        "div" if approximate => random!(toss, k; |a: F32, b: F32| -> F32 {
            let (a, b) = (fl(a, k), fl(b, k));
            fin(toss.single(approx::div(a, b), f64::from(a) / f64::from(b)), k)
        }),
        "div" => random!(toss, k; |a: F32, b: F32| -> F32 {
            let (a, b) = (fl(a, k), fl(b, k));
            fin(toss.single(s::div(a, b, Round::Rn), f64::from(a) / f64::from(b)), k)
        }),
        "rcp" => random!(toss, k; |a: F32| -> F32 {
            let a = fl(a, k);
            fin(toss.single(s::rcp(a, Round::Rn), 1.0 / f64::from(a)), k)
        }),
        "sqrt" => random!(toss, k; |a: F32| -> F32 {
            let a = fl(a, k);
            fin(toss.single(s::sqrt_rn(a), f64::from(a).sqrt()), k)
        }),
        "rsqrt" => random!(toss, k; |a: F32| -> F32 {
            let a = fl(a, k);
            fin(toss.single(approx::rsqrt(a), 1.0 / f64::from(a).sqrt()), k)
        }),
        "ex2" => random!(toss, k; |a: F32| -> F32 fin(toss.approximate(approx::ex2(fl(a, k))), k)),
        "lg2" => random!(toss, k; |a: F32| -> F32 fin(toss.approximate(approx::lg2(fl(a, k))), k)),
        "sin" => random!(toss, k; |a: F32| -> F32 fin(toss.approximate(approx::sin(fl(a, k))), k)),
        "cos" => random!(toss, k; |a: F32| -> F32 fin(toss.approximate(approx::cos(fl(a, k))), k)),
        "tanh" => random!(toss, k; |a: F32| -> F32 toss.approximate(approx::tanh(a))),
        _ => return None,
    })
}

fn wide_sum(toss: Toss, a: f64, b: f64) -> f64 {
    let nearest = d::add(a, b, Round::Rn);
    // Such a sum rounds to an integer on purpose: a random direction would change the integer, not
    // its error.
    if a.abs() >= WHOLE_DOUBLES || b.abs() >= WHOLE_DOUBLES {
        return nearest;
    }
    toss.double(nearest, sum_error(a, b))
}

fn wide_fused(toss: Toss, a: f64, b: f64, c: f64) -> f64 {
    if c.abs() >= WHOLE_DOUBLES {
        return d::fma(a, b, c, Round::Rn);
    }
    let product = toss.other().double(a * b, product_error(a, b));
    wide_sum(toss, product, c)
}

fn double(opcode: &str, m: &Mods<'_>) -> Option<Alu> {
    Some(match opcode {
        "add" => random!(toss, k; |a: F64, b: F64| -> F64 wide_sum(toss, a, b)),
        "sub" => random!(toss, k; |a: F64, b: F64| -> F64 wide_sum(toss, a, -b)),
        "mul" => random!(toss, k; |a: F64, b: F64| -> F64
            toss.double(d::mul(a, b, Round::Rn), product_error(a, b))),
        "fma" | "mad" => random!(toss, k; |a: F64, b: F64, c: F64| -> F64
            wide_fused(toss, a, b, c)),
        "div" => random!(toss, k; |a: F64, b: F64| -> F64 {
            let quotient = d::div(a, b, Round::Rn);
            // The remainder has the sign of the quotient's error, except for the sign of `b`.
            toss.double(quotient, (-quotient).mul_add(b, a) * b.signum())
        }),
        "sqrt" => random!(toss, k; |a: F64| -> F64 {
            let root = d::sqrt(a, Round::Rn);
            toss.double(root, (-root).mul_add(root, a))
        }),
        "rcp" if !m.has("approx") => random!(toss, k; |a: F64| -> F64 {
            let quotient = d::rcp(a, Round::Rn);
            toss.double(quotient, (-quotient).mul_add(a, 1.0) * a.signum())
        }),
        _ => return None,
    })
}

/// Computes the sum, difference, product or fused product of 16-bit numbers.
fn half<H: Half>(toss: Toss, k: u32, operands: [u16; 3], op: HalfOp) -> u16 {
    let [a, b, c] = operands.map(|x| hfl::<H>(x, k));
    let [x, y, z] = [a, b, c].map(|x| f64::from(H::widen(x)));
    let (nearest, exact) = match op {
        HalfOp::Add => (h::add::<H>(a, b), x + y),
        HalfOp::Sub => (h::sub::<H>(a, b), x - y),
        HalfOp::Mul => (h::mul::<H>(a, b), x * y),
        HalfOp::Fma => (h::fma::<H>(a, b, c), x * y + z),
    };
    hfin::<H>(toss.half::<H>(nearest, exact), k)
}

#[derive(Clone, Copy)]
enum HalfOp {
    Add,
    Sub,
    Mul,
    Fma,
}

/// Computes both halves of a pair, each with its own coin.
fn pair<H: Half>(toss: Toss, k: u32, operands: [u32; 3], op: HalfOp) -> u32 {
    let [a, b, c] = operands.map(h::unpack);
    let upper = toss.other();
    h::pack(
        half::<H>(toss, k, [a.0, b.0, c.0], op),
        half::<H>(upper, k, [a.1, b.1, c.1], op),
    )
}

/// Randomly rounded operations of one format: lane functions cannot be generic over a type of the
/// enclosing function.
trait RandomHalf: Half {
    fn scalar(opcode: &str) -> Option<Alu>;
    fn packed(opcode: &str) -> Option<Alu>;
    fn narrowed(from: Type, packed: bool) -> Option<Alu>;
}

fn halves<H: RandomHalf>(opcode: &str) -> Option<Alu> {
    H::scalar(opcode)
}

fn pairs<H: RandomHalf>(opcode: &str) -> Option<Alu> {
    H::packed(opcode)
}

macro_rules! random_half {
    ($format:ident) => {
        impl RandomHalf for $format {
            fn scalar(opcode: &str) -> Option<Alu> {
                type H = $format;
                Some(match opcode {
                    "add" => random!(toss, k; |a: U16, b: U16| -> U16
                        half::<H>(toss, k, [a, b, 0], HalfOp::Add)),
                    "sub" => random!(toss, k; |a: U16, b: U16| -> U16
                        half::<H>(toss, k, [a, b, 0], HalfOp::Sub)),
                    "mul" => random!(toss, k; |a: U16, b: U16| -> U16
                        half::<H>(toss, k, [a, b, 0], HalfOp::Mul)),
                    "fma" => random!(toss, k; |a: U16, b: U16, c: U16| -> U16
                        half::<H>(toss, k, [a, b, c], HalfOp::Fma)),
                    _ => return None,
                })
            }

            fn packed(opcode: &str) -> Option<Alu> {
                type H = $format;
                Some(match opcode {
                    "add" => random!(toss, k; |a: U32, b: U32| -> U32
                        pair::<H>(toss, k, [a, b, 0], HalfOp::Add)),
                    "sub" => random!(toss, k; |a: U32, b: U32| -> U32
                        pair::<H>(toss, k, [a, b, 0], HalfOp::Sub)),
                    "mul" => random!(toss, k; |a: U32, b: U32| -> U32
                        pair::<H>(toss, k, [a, b, 0], HalfOp::Mul)),
                    "fma" => random!(toss, k; |a: U32, b: U32, c: U32| -> U32
                        pair::<H>(toss, k, [a, b, c], HalfOp::Fma)),
                    _ => return None,
                })
            }

            fn narrowed(from: Type, packed: bool) -> Option<Alu> {
                type H = $format;
                Some(match (from, packed) {
                    (Type::F32, false) => random!(toss, k; |a: F32| -> U16 {
                        let a = fl(a, k);
                        toss.half::<H>(H::narrow(a), a.into())
                    }),
                    (Type::F64, false) => random!(toss, k; |a: F64| -> U16
                        toss.half::<H>(H::narrow(a as f32), a)),
                    (Type::F32, true) => random!(toss, k; |a: F32, b: F32| -> U32 {
                        let (a, b) = (fl(a, k), fl(b, k));
                        let upper = toss.other();
                        h::pack(
                            toss.half::<H>(H::narrow(b), b.into()),
                            upper.half::<H>(H::narrow(a), a.into()),
                        )
                    }),
                    _ => return None,
                })
            }
        }
    };
}
random_half!(Fp16);
random_half!(Bfloat16);

/// Converts an integer to a single, inexact from 2^24 on, at the precision of the type whatever the
/// launch requests: indices and positions are not measurements.
fn whole_number(toss: Toss, value: f64) -> f32 {
    let toss = Toss {
        precision: SINGLE_BITS,
        ..toss
    };
    toss.single(value as f32, value)
}

fn conversion(m: &Mods<'_>) -> Option<Alu> {
    let types: Vec<Type> = m.types().collect();
    let whole = ["rni", "rzi", "rmi", "rpi", "sat", "satfinite"];
    let &[to, from] = types.as_slice() else {
        return None;
    };
    if whole.iter().any(|word| m.has(word)) {
        return None;
    }
    Some(match (to, from) {
        (Type::F32, Type::F64) => random!(toss, k; |a: F64| -> F32
            if k & FTZ != 0 { s::ftz(toss.single(a as f32, a)) } else { toss.single(a as f32, a) }),
        (Type::F32, Type::S32) => random!(toss, k; |a: S32| -> F32 whole_number(toss, a.into())),
        (Type::F32, Type::U32) => random!(toss, k; |a: U32| -> F32 whole_number(toss, a.into())),
        (Type::F32, Type::S64) => random!(toss, k; |a: S64| -> F32 whole_number(toss, a as f64)),
        (Type::F32, Type::U64) => random!(toss, k; |a: U64| -> F32 whole_number(toss, a as f64)),
        (Type::F16, from) => Fp16::narrowed(from, false)?,
        (Type::Bf16, from) => Bfloat16::narrowed(from, false)?,
        (Type::F16x2, from) => Fp16::narrowed(from, true)?,
        (Type::Bf16x2, from) => Bfloat16::narrowed(from, true)?,
        _ => return None,
    })
}

impl Lower<'_> {
    /// Randomly rounds rows of singles that an instruction has just computed.
    pub(super) fn round_singles(&mut self, rows: &[u32]) {
        if self.form != super::Form::RandomlyRounded {
            return;
        }
        for row in rows {
            let alu = random!(toss, k; |a: F32| -> F32 toss.approximate(a));
            let slots = Slots {
                d: *row,
                s: [*row, 0, 0, 0],
                imm: RANDOM,
            };
            self.push(Op::Alu(alu.run, slots), Class::Move);
        }
    }
}
