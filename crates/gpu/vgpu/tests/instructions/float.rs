//! `.f32` arithmetic; minimum and maximum of `.f64` too.

use crate::harness::{Kind, Q, R, accept, check};
use crate::models::{d, f, finish, flush, operands, sum_error, to_single};

const S: (crate::harness::W, Kind) = (R, Kind::F32);
const D: (crate::harness::W, Kind) = (Q, Kind::F64);

/// Lists `.ftz` and `.sat` in all combinations, with the operand flush.
fn forms() -> impl Iterator<Item = (&'static str, String, bool, bool)> {
    ["", "rn", "rz", "rm", "rp"].into_iter().flat_map(|mode| {
        [(false, false), (true, false), (false, true), (true, true)].map(|(ftz, sat)| {
            let dot = if mode.is_empty() { "" } else { "." };
            let words = format!(
                "{dot}{mode}{}{}",
                if ftz { ".ftz" } else { "" },
                if sat { ".sat" } else { "" }
            );
            (mode, words, ftz, sat)
        })
    })
}

/// Checks a result that is exact in double precision (rows with an error are checked only for
/// nearest, by `nearest`).
fn judge(exact: f64, error: f64, mode: &str, ftz: bool, sat: bool, got: u64) -> Result<(), String> {
    if error != 0.0 && !error.is_nan() {
        return Ok(());
    }
    let expected = finish(to_single(exact, mode), ftz, sat);
    if expected == got {
        Ok(())
    } else {
        Err(format!("expected {expected:#x}"))
    }
}

/// Returns the sign of a sum that is exactly zero.
fn zero_sum(a: f64, b: f64, mode: &str) -> f64 {
    if a + b == 0.0 && mode == "rm" && a.is_sign_negative() != b.is_sign_negative() {
        -0.0
    } else {
        a + b
    }
}

#[test]
fn single_add_sub_and_mul_round_once() {
    for (mode, words, ftz, sat) in forms() {
        for (name, sign) in [("add", 1.0), ("sub", -1.0)] {
            accept(
                &format!("{name}{words}.f32 {{d}}, {{a}}, {{b}};"),
                R,
                &[S, S],
                |x, got| {
                    let v = operands(x, ftz);
                    let b = sign * v[1];
                    judge(
                        zero_sum(v[0], b, mode),
                        sum_error(v[0], b).1,
                        mode,
                        ftz,
                        sat,
                        got,
                    )
                },
            );
        }
        accept(
            &format!("mul{words}.f32 {{d}}, {{a}}, {{b}};"),
            R,
            &[S, S],
            |x, got| {
                let v = operands(x, ftz);
                judge(v[0] * v[1], 0.0, mode, ftz, sat, got)
            },
        );
        if !mode.is_empty() {
            accept(
                &format!("fma{words}.f32 {{d}}, {{a}}, {{b}}, {{c}};"),
                R,
                &[S, S, S],
                |x, got| {
                    let v = operands(x, ftz);
                    let p = v[0] * v[1];
                    judge(
                        zero_sum(p, v[2], mode),
                        sum_error(p, v[2]).1,
                        mode,
                        ftz,
                        sat,
                        got,
                    )
                },
            );
        }
    }
}

#[test]
fn single_to_nearest_is_the_hosts_arithmetic() {
    check("add.f32 {d}, {a}, {b};", R, &[S, S], |x| {
        finish(f(x[0]) + f(x[1]), false, false)
    });
    check("sub.rn.f32 {d}, {a}, {b};", R, &[S, S], |x| {
        finish(f(x[0]) - f(x[1]), false, false)
    });
    check("fma.rn.f32 {d}, {a}, {b}, {c};", R, &[S, S, S], |x| {
        finish(f(x[0]).mul_add(f(x[1]), f(x[2])), false, false)
    });
    check("fma.rn.ftz.f32 {d}, {a}, {b}, {c};", R, &[S, S, S], |x| {
        finish(
            flush(f(x[0])).mul_add(flush(f(x[1])), flush(f(x[2]))),
            true,
            false,
        )
    });
    check("mad.rn.f32 {d}, {a}, {b}, {c};", R, &[S, S, S], |x| {
        finish(f(x[0]).mul_add(f(x[1]), f(x[2])), false, false)
    });
    check("fma.rn.sat.f32 {d}, {a}, {b}, {c};", R, &[S, S, S], |x| {
        finish(f(x[0]).mul_add(f(x[1]), f(x[2])), false, true)
    });
}

#[test]
fn single_quotients_and_roots_round_once() {
    for mode in ["rn", "rz", "rm", "rp"] {
        for ftz in [false, true] {
            let words = if ftz {
                format!("{mode}.ftz")
            } else {
                mode.to_owned()
            };
            // The double quotient or root of singles is never so close to a rounding boundary that
            // its own rounding matters.
            accept(
                &format!("div.{words}.f32 {{d}}, {{a}}, {{b}};"),
                R,
                &[S, S],
                |x, got| {
                    let v = operands(x, ftz);
                    judge(v[0] / v[1], 0.0, mode, ftz, false, got)
                },
            );
            accept(
                &format!("rcp.{words}.f32 {{d}}, {{a}};"),
                R,
                &[S],
                |x, got| judge(1.0 / operands(x, ftz)[0], 0.0, mode, ftz, false, got),
            );
            accept(
                &format!("sqrt.{words}.f32 {{d}}, {{a}};"),
                R,
                &[S],
                |x, got| {
                    let v = operands(x, ftz)[0];
                    judge(
                        if v < 0.0 { f64::NAN } else { v.sqrt() },
                        0.0,
                        mode,
                        ftz,
                        false,
                        got,
                    )
                },
            );
        }
    }
}

#[test]
fn single_minimum_maximum_sign_and_magnitude() {
    let pick = |a: f32, b: f32, max: bool| match (a.is_nan(), b.is_nan()) {
        (true, _) => b,
        (_, true) => a,
        _ => {
            if a.total_cmp(&b).is_lt() == max {
                b
            } else {
                a
            }
        }
    };
    for (name, max) in [("min", false), ("max", true)] {
        for ftz in [false, true] {
            let dot = if ftz { ".ftz" } else { "" };
            let load = |b: u64| if ftz { flush(f(b)) } else { f(b) };
            check(
                &format!("{name}{dot}.f32 {{d}}, {{a}}, {{b}};"),
                R,
                &[S, S],
                |x| finish(pick(load(x[0]), load(x[1]), max), ftz, false),
            );
            check(
                &format!("{name}{dot}.NaN.f32 {{d}}, {{a}}, {{b}};"),
                R,
                &[S, S],
                |x| {
                    let (a, b) = (load(x[0]), load(x[1]));
                    finish(
                        if a.is_nan() {
                            a
                        } else if b.is_nan() {
                            b
                        } else {
                            pick(a, b, max)
                        },
                        ftz,
                        false,
                    )
                },
            );
            accept(
                &format!("{name}{dot}.xorsign.abs.f32 {{d}}, {{a}}, {{b}};"),
                R,
                &[S, S],
                |x, got| {
                    let (a, b) = (load(x[0]), load(x[1]));
                    let r = pick(a.abs(), b.abs(), max);
                    let sign = (x[0] ^ x[1]) & 0x8000_0000;
                    let expected = u64::from(r.to_bits() & 0x7fff_ffff) | sign;
                    if r.is_nan() && f(got).is_nan() || expected == got {
                        Ok(())
                    } else {
                        Err(String::new())
                    }
                },
            );
        }
        check(
            &format!("{name}.f64 {{d}}, {{a}}, {{b}};"),
            Q,
            &[D, D],
            |x| {
                let (a, b) = (d(x[0]), d(x[1]));
                match (a.is_nan(), b.is_nan()) {
                    (true, true) => 0x7fff_ffff_ffff_ffff,
                    (true, _) => x[1],
                    (_, true) => x[0],
                    _ => {
                        if a.total_cmp(&b).is_lt() == max {
                            x[1]
                        } else {
                            x[0]
                        }
                    }
                }
            },
        );
    }
    check("copysign.f32 {d}, {a}, {b};", R, &[S, S], |x| {
        x[0] & 0x8000_0000 | x[1] & 0x7fff_ffff
    });
    check("copysign.f64 {d}, {a}, {b};", Q, &[D, D], |x| {
        x[0] & 1 << 63 | x[1] & !(1 << 63)
    });
    let number = |x: &[u64], got: u64, expected: u64| {
        if f(x[0]).is_nan() && f(got).is_nan() || got == expected {
            Ok(())
        } else {
            Err(format!("{expected:#x}"))
        }
    };
    accept("neg.f32 {d}, {a};", R, &[S], |x, got| {
        number(x, got, x[0] ^ 0x8000_0000)
    });
    accept("abs.f32 {d}, {a};", R, &[S], |x, got| {
        number(x, got, x[0] & 0x7fff_ffff)
    });
    accept("neg.ftz.f32 {d}, {a};", R, &[S], |x, got| {
        number(x, got, (-flush(f(x[0]))).to_bits().into())
    });
    accept("abs.ftz.f32 {d}, {a};", R, &[S], |x, got| {
        number(x, got, flush(f(x[0])).abs().to_bits().into())
    });
}
