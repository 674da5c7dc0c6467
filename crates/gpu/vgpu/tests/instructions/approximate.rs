//! Approximations, within the documented error.

use crate::harness::{Kind, Q, R, accept};
use crate::models::{d, f, operands};

const S: (crate::harness::W, Kind) = (R, Kind::F32);
const D: (crate::harness::W, Kind) = (Q, Kind::F64);

/// Accepts a result within `relative` of the exact value, or `absolute`; special values exactly.
fn near(got: f32, exact: f64, relative: f64, absolute: f64) -> Result<(), String> {
    let ok = if exact.is_nan() {
        got.to_bits() == crate::models::NAN32
    } else if exact.abs() > 3.402_823_567e38 {
        f64::from(got) == exact.signum() * f64::INFINITY || got == f32::MAX
    } else {
        (f64::from(got) - exact).abs() <= relative * exact.abs() + absolute
    };
    if ok {
        Ok(())
    } else {
        Err(format!("expected about {exact:e}, got {got:e}"))
    }
}

#[test]
fn approximations_are_within_the_documented_error() {
    let ulp = 2.0_f64.powi(-23);
    type Row<'a> = (&'a str, fn(f64) -> f64, f64, f64);
    // Subnormal results have an absolute error of an ulp of theirs.
    let tiny = 2.0_f64.powi(-148);
    let table: [Row<'_>; 6] = [
        ("ex2", f64::exp2, 2.0 * ulp, tiny),
        (
            "lg2",
            |x| if x < 0.0 { f64::NAN } else { x.log2() },
            ulp * 2.0,
            2.0_f64.powi(-22),
        ),
        ("rcp", |x| 1.0 / x, ulp, tiny),
        (
            "rsqrt",
            |x| if x < 0.0 { f64::NAN } else { 1.0 / x.sqrt() },
            ulp,
            0.0,
        ),
        (
            "sqrt",
            |x| if x < 0.0 { f64::NAN } else { x.sqrt() },
            ulp,
            0.0,
        ),
        ("tanh", f64::tanh, 2.0_f64.powi(-11), tiny),
    ];
    for (name, exact, relative, absolute) in table {
        for ftz in [false, true] {
            if name == "tanh" && ftz {
                continue;
            }
            let dot = if ftz { ".ftz" } else { "" };
            accept(
                &format!("{name}.approx{dot}.f32 {{d}}, {{a}};"),
                R,
                &[S],
                |x, got| {
                    let exact = exact(operands(x, ftz)[0]);
                    if ftz && exact.abs() < f64::from(f32::MIN_POSITIVE) {
                        let zero = got & 0x7fff_ffff == 0 || f(got).abs() == f32::MIN_POSITIVE;
                        return if zero {
                            Ok(())
                        } else {
                            Err("not flushed".to_owned())
                        };
                    }
                    near(f(got), exact, relative, absolute)
                },
            );
        }
    }
}

/// Returns the angle whose sine the hardware computes. Beyond π it differs from the given one: ptxas divides
/// by 2π with `FMUL.RZ` by a constant of 24 bits, before `MUFU.SIN` and `MUFU.COS` (machine code of sm_80 and
/// sm_90).
fn reduced(angle: f64) -> f64 {
    let inverse = f64::from(f32::from_bits(0x3e22_f983));
    let exact = angle * inverse;
    let nearest = exact as f32;
    let turns = match f64::from(nearest).abs() > exact.abs() {
        true => f32::from_bits(nearest.to_bits() - 1),
        false => nearest,
    };
    f64::from(turns) * std::f64::consts::TAU
}

#[test]
fn approximate_division_sine_and_cosine() {
    let ulp = 2.0_f64.powi(-23);
    accept("div.full.f32 {d}, {a}, {b};", R, &[S, S], |x, got| {
        let v = operands(x, false);
        near(f(got), v[0] / v[1], 2.0 * ulp, 2.0_f64.powi(-148))
    });
    for ftz in [false, true] {
        let dot = if ftz { ".ftz" } else { "" };
        accept(
            &format!("div.approx{dot}.f32 {{d}}, {{a}}, {{b}};"),
            R,
            &[S, S],
            |x, got| {
                let v = operands(x, ftz);
                let huge = v[1].abs() > 2.0_f64.powi(126) && v[1].is_finite();
                if huge {
                    let expected = if v[0].is_infinite() || v[0].is_nan() {
                        f64::NAN
                    } else {
                        0.0
                    };
                    return near(f(got), expected, 0.0, 0.0);
                }
                let tolerance = if ftz { 1.2e-38 } else { 2.0_f64.powi(-148) };
                near(f(got), v[0] / v[1], 2.0 * ulp, tolerance)
            },
        );
        for (name, exact) in [("sin", f64::sin as fn(f64) -> f64), ("cos", f64::cos)] {
            accept(
                &format!("{name}.approx{dot}.f32 {{d}}, {{a}};"),
                R,
                &[S],
                |x, got| {
                    let v = operands(x, ftz)[0];
                    if v.abs() > 1e4 && v.is_finite() {
                        return if f(got).abs() <= 1.0 {
                            Ok(())
                        } else {
                            Err("above 1".to_owned())
                        };
                    }
                    let angle = match v.abs() <= std::f64::consts::PI {
                        true => v,
                        false => reduced(v),
                    };
                    near(f(got), exact(angle), 0.0, 2.0_f64.powf(-20.5))
                },
            );
        }
    }
    for (text, exact) in [
        (
            "rcp.approx.ftz.f64 {d}, {a};",
            (|x| 1.0 / x) as fn(f64) -> f64,
        ),
        ("rsqrt.approx.ftz.f64 {d}, {a};", |x| 1.0 / x.sqrt()),
    ] {
        accept(text, Q, &[D], |x, got| {
            let v = d(x[0]);
            let v = if v.is_subnormal() { 0.0 * v } else { v };
            let exact = exact(v);
            let ok = if exact.is_nan() {
                d(got).is_nan()
            } else if exact.is_infinite() {
                d(got) == exact
            } else {
                got & 0xffff_ffff == 0
                    && ((d(got) - exact).abs() <= exact.abs() * 1e-6 || exact.is_subnormal())
            };
            if ok {
                Ok(())
            } else {
                Err(format!("expected about {exact:e}"))
            }
        });
    }
}
