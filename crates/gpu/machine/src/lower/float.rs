//! Single- and double-precision arithmetic.

use sass::Instruction;

use super::{Combine, Form, Relations, Run, compared, lanes_where, lower_binary, lower_unary};
use crate::registers::{Pred, Registers, map_lanes};
use gpu_arithmetic::half::{Bfloat16, Fp16, Half};
use gpu_arithmetic::{Round, approx, convert, double, single};

pub(super) fn lower(i: &Instruction) -> Option<Run> {
    match i.opcode {
        "FMUL" | "UFMUL" if scale(i).is_some() => scaled(i),
        "FADD" | "FMUL" | "FADD32I" | "FMUL32I" | "UFADD" | "UFMUL" => binary(i),
        "FFMA" | "FFMA32I" | "UFFMA" => multiply_add(i),
        "FMNMX" | "UFMNMX" | "FMNMX3" => minimum(i),
        "FSETP" | "UFSETP" => compare(i),
        "FSET" | "UFSET" => compare_to_number(i),
        "FCHK" => check(i),
        "MUFU" => special(i),
        "DADD" | "DMUL" => double_binary(i),
        "DFMA" => double_multiply_add(i),
        "DSETP" if i.has("MIN") || i.has("MAX") => double_choice(i),
        "DSETP" => double_compare(i),
        _ => None,
    }
}

pub(super) fn round(i: &Instruction) -> Round {
    let named = |name| i.has(name);
    match () {
        () if named("RM") => Round::Rm,
        () if named("RP") => Round::Rp,
        () if named("RZ") => Round::Rz,
        () => Round::Rn,
    }
}

/// Returns true if `known` contains all modifiers.
pub(super) fn only(i: &Instruction, known: &[&str]) -> bool {
    i.modifiers.iter().all(|m| known.contains(m))
}

#[inline(always)]
pub(super) fn flushed(bits: u32, ftz: bool) -> f32 {
    let x = f32::from_bits(bits);
    if ftz { single::ftz(x) } else { x }
}

#[inline(always)]
pub(super) fn finished(x: f32, ftz: bool, sat: bool) -> u32 {
    let x = if ftz { single::ftz(x) } else { x };
    if sat {
        single::sat(x).to_bits()
    } else {
        x.to_bits()
    }
}

fn binary(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, true)?;
    if !only(i, &["FTZ", "SAT", "RM", "RP", "RZ"]) {
        return None;
    }
    let (ftz, sat, round) = (i.has("FTZ"), i.has("SAT"), round(i));
    let add = i.opcode.contains("FADD");
    // The common forms have no run-time mode, so that their loops vectorise.
    if round == Round::Rn && !sat {
        return match (add, ftz) {
            (true, false) => lower_binary(
                &form,
                Registers::float,
                #[inline(always)]
                |a, b| single::add_rn(f32::from_bits(a), f32::from_bits(b)).to_bits(),
            ),
            (false, false) => lower_binary(
                &form,
                Registers::float,
                #[inline(always)]
                |a, b| single::mul_rn(f32::from_bits(a), f32::from_bits(b)).to_bits(),
            ),
            (true, true) => lower_binary(
                &form,
                Registers::float,
                #[inline(always)]
                |a, b| {
                    finished(
                        single::add_rn(flushed(a, true), flushed(b, true)),
                        true,
                        false,
                    )
                },
            ),
            (false, true) => lower_binary(
                &form,
                Registers::float,
                #[inline(always)]
                |a, b| {
                    finished(
                        single::mul_rn(flushed(a, true), flushed(b, true)),
                        true,
                        false,
                    )
                },
            ),
        };
    }
    lower_binary(&form, Registers::float, move |a, b| {
        let (a, b) = (flushed(a, ftz), flushed(b, ftz));
        let x = if add {
            single::add(a, b, round)
        } else {
            single::mul(a, b, round)
        };
        finished(x, ftz, sat)
    })
}

/// Returns the power of two that scales a product.
fn scale(i: &Instruction) -> Option<f64> {
    i.modifiers.iter().find_map(|m| match *m {
        "D8" => Some(0.125),
        "D4" => Some(0.25),
        "D2" => Some(0.5),
        "M2" => Some(2.0),
        "M4" => Some(4.0),
        "M8" => Some(8.0),
        _ => None,
    })
}

/// Lowers a product with a power-of-two scale, rounded once.
fn scaled(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, true)?;
    let (ftz, sat, round, scale) = (i.has("FTZ"), i.has("SAT"), round(i), scale(i)?);
    lower_binary(&form, Registers::float, move |a, b| {
        // The product is exact in double precision, so the result is rounded only once.
        let product = f64::from(flushed(a, ftz)) * f64::from(flushed(b, ftz)) * scale;
        finished(convert::f64_to_f32(product, round), ftz, sat)
    })
}

fn multiply_add(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, true)?;
    if !only(i, &["FTZ", "SAT", "RM", "RP", "RZ"]) {
        return None;
    }
    let d = form.dest?;
    let (a, b, c) = (form.source(0)?, form.source(1)?, form.source(2)?);
    let (ftz, sat, round) = (i.has("FTZ"), i.has("SAT"), round(i));
    Some(Box::new(move |r, mask| {
        let (a, b, c) = (r.float(&a), r.float(&b), r.float(&c));
        let mut out = match round {
            Round::Rn if ftz => single::fma_rn_lanes::<true>(&a, &b, &c),
            Round::Rn => single::fma_rn_lanes::<false>(&a, &b, &c),
            _ => std::array::from_fn(|l| {
                let [a, b, c] = [a[l], b[l], c[l]].map(|x| flushed(x, ftz));
                finished(single::fma(a, b, c, round), ftz, false)
            }),
        };
        if sat {
            out = single::sat_lanes(&out);
        }
        r.set(d, mask, &out);
    }))
}

fn minimum(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, true)?;
    if !only(i, &["FTZ", "NAN", "XORSIGN"]) {
        return None;
    }
    let d = form.dest?;
    let (a, b, third) = (form.source(0)?, form.source(1)?, form.source(2));
    let smaller = *form.ins.last()?;
    let (ftz, nan, sign) = (i.has("FTZ"), i.has("NAN"), i.has("XORSIGN"));
    let (a, b) = if sign {
        (a.signed(), b.signed())
    } else {
        (a, b)
    };
    Some(Box::new(move |r, mask| {
        let (a, b, smaller) = (r.float(&a), r.float(&b), r.truth(smaller));
        let third = third.map(|c| r.float(&c));
        let out = map_lanes(
            #[inline(always)]
            |l| {
                let (x, y) = (flushed(a[l], ftz), flushed(b[l], ftz));
                let max = smaller >> l & 1 == 0;
                let pick = |x, y| single::extreme(x, y, max, nan);
                let first = if sign {
                    single::xorsign_abs(x, y, pick)
                } else {
                    pick(x, y)
                };
                let z = third.map_or(first, |c| pick(first, flushed(c[l], ftz)));
                z.to_bits()
            },
        );
        r.set(d, mask, &out);
    }))
}

fn compare(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, false)?;
    let (relations, combine, ftz) = (
        Relations::from_modifiers(&i.modifiers)?,
        Combine::from_instruction(i),
        i.has("FTZ"),
    );
    let outs = [form.out(0), form.out(1)];
    let (a, b) = (form.source(0)?, form.source(1)?);
    let with = form.ins.first().copied().unwrap_or(Pred::ALWAYS);
    Some(Box::new(move |r, mask| {
        let (a, b) = (r.float(&a), r.float(&b));
        let holds = lanes_where(
            #[inline(always)]
            |l| relations.holds(flushed(a[l], ftz), flushed(b[l], ftz)),
        );
        let with = r.truth(with);
        compared(r, outs, combine, with, holds, mask);
    }))
}

fn compare_to_number(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, true)?;
    let (relations, combine, ftz) = (
        Relations::from_modifiers(&i.modifiers)?,
        Combine::from_instruction(i),
        i.has("FTZ"),
    );
    let d = form.dest?;
    let (a, b) = (form.source(0)?, form.source(1)?);
    let with = form.ins.first().copied().unwrap_or(Pred::ALWAYS);
    let yes = if i.has("BF") {
        1f32.to_bits()
    } else {
        u32::MAX
    };
    Some(Box::new(move |r, mask| {
        let (a, b) = (r.float(&a), r.float(&b));
        let holds = lanes_where(|l| relations.holds(flushed(a[l], ftz), flushed(b[l], ftz)));
        let holds = combine.combine_lanes(holds, r.truth(with));
        let out = map_lanes(|l| if holds >> l & 1 == 1 { yes } else { 0 });
        r.set(d, mask, &out);
    }))
}

/// Tests a quotient for exponents at which an intermediate result of the fast path, a reciprocal
/// with two corrections, is not exact.
fn check(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, false)?;
    let out = form.out(0);
    let (a, b) = (form.source(0)?, form.source(1)?);
    Some(Box::new(move |r, mask| {
        let (a, b) = (r.float(&a), r.float(&b));
        let exponent = |bits: u32| (bits >> 23 & 255) as i32;
        let rare = lanes_where(|l| {
            let (x, y) = (exponent(a[l]), exponent(b[l]));
            !(25..255).contains(&x) || !(1..253).contains(&y) || !(-124..126).contains(&(x - y))
        });
        r.set_truth(out, mask, rare);
    }))
}

/// Lowers the approximations; they flush subnormal inputs and results.
fn special(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, true)?;
    let name = *i.modifiers.first()?;
    let halves = i.modifiers.get(1).copied();
    match name {
        "RCP64H" => {
            return lower_unary(&form, Registers::float, |high| upper(approx::rcp_f64, high));
        }
        "RSQ64H" => {
            return lower_unary(&form, Registers::float, |high| {
                upper(|x| approx::rsqrt_f64(x, true), high)
            });
        }
        _ => {}
    }
    let f: fn(f32) -> f32 = match name {
        "RCP" => approx::rcp,
        "RSQ" => approx::rsqrt,
        "SQRT" => approx::sqrt,
        "EX2" => approx::ex2,
        "LG2" => approx::lg2,
        "SIN" => approx::sin_turns,
        "COS" => approx::cos_turns,
        "TANH" => approx::tanh,
        _ => return None,
    };
    match halves {
        Some("F16") => narrow::<Fp16>(&form, f, false),
        // `ex2` of this format has only a form that flushes (PTX ISA, `ex2`).
        Some("BF16") => narrow::<Bfloat16>(&form, f, name == "EX2"),
        Some(_) => None,
        // Only the hyperbolic tangent handles subnormals.
        None if name == "TANH" => lower_unary(&form, Registers::float, move |a| {
            f(f32::from_bits(a)).to_bits()
        }),
        None => lower_unary(&form, Registers::float, move |a| {
            single::ftz(f(flushed(a, true))).to_bits()
        }),
    }
}

/// Lowers a function of the half in a register's selected part; the upper half becomes zero.
fn narrow<H: Half + 'static>(form: &Form, f: fn(f32) -> f32, ftz: bool) -> Option<Run> {
    lower_unary(form, Registers::halves, move |a| {
        let out = H::narrow(f(H::widen(a as u16)));
        u32::from(if ftz { H::flush(out) } else { out })
    })
}

fn upper(f: impl Fn(f64) -> f64, high: u32) -> u32 {
    (f(f64::from_bits(u64::from(high) << 32)).to_bits() >> 32) as u32
}

fn double_binary(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, true)?;
    let d = form.dest?;
    // An addition may have an unused register between its two operands.
    let (a, b) = (form.source(0)?, *form.sources.last()?);
    let (round, add) = (round(i), i.opcode == "DADD");
    Some(Box::new(move |r, mask| {
        let (a, b) = (r.double(&a), r.double(&b));
        let out = std::array::from_fn(|l| {
            let (a, b) = (f64::from_bits(a[l]), f64::from_bits(b[l]));
            let x = if add {
                double::add(a, b, round)
            } else {
                double::mul(a, b, round)
            };
            x.to_bits()
        });
        r.set_wide(d, mask, &out);
    }))
}

fn double_multiply_add(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, true)?;
    let d = form.dest?;
    let (a, b, c) = (form.source(0)?, form.source(1)?, form.source(2)?);
    let round = round(i);
    Some(Box::new(move |r, mask| {
        let (a, b, c) = (r.double(&a), r.double(&b), r.double(&c));
        let out = std::array::from_fn(|l| {
            let [a, b, c] = [a[l], b[l], c[l]].map(f64::from_bits);
            double::fma(a, b, c, round).to_bits()
        });
        r.set_wide(d, mask, &out);
    }))
}

fn double_compare(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, false)?;
    let (relations, combine) = (
        Relations::from_modifiers(&i.modifiers)?,
        Combine::from_instruction(i),
    );
    let outs = [form.out(0), form.out(1)];
    let (a, b) = (form.source(0)?, form.source(1)?);
    let with = form.ins.first().copied().unwrap_or(Pred::ALWAYS);
    Some(Box::new(move |r, mask| {
        let (a, b) = (r.double(&a), r.double(&b));
        let holds = lanes_where(|l| relations.holds(f64::from_bits(a[l]), f64::from_bits(b[l])));
        let with = r.truth(with);
        compared(r, outs, combine, with, holds, mask);
    }))
}

/// Compares two numbers for their minimum or maximum: the first predicate selects the first number,
/// the second reports that both are NaN.
fn double_choice(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, false)?;
    let outs = [form.out(0), form.out(1)];
    let (a, b) = (form.source(0)?, form.source(1)?);
    if form.ins.iter().any(|p| !p.is_always()) || !i.has("AND") {
        return None;
    }
    let smaller = i.has("MIN");
    Some(Box::new(move |r, mask| {
        let (a, b) = (r.double(&a), r.double(&b));
        let pair = |l: usize| (f64::from_bits(a[l]), f64::from_bits(b[l]));
        let first = lanes_where(|l| {
            let (x, y) = pair(l);
            let chosen = if smaller {
                double::min(x, y)
            } else {
                double::max(x, y)
            };
            // Bits, because -0 and +0 are equal and yet different choices.
            chosen.to_bits() == a[l]
        });
        let neither = lanes_where(|l| {
            let (x, y) = pair(l);
            x.is_nan() && y.is_nan()
        });
        r.set_truth(outs[0], mask, first & !neither);
        r.set_truth(outs[1], mask, neither);
    }))
}
