//! `.f16`, `.bf16` and their packed forms.

use crate::harness::{H, Kind, R, W, accept};
use crate::models::{BF16, F16, Half, sum_error};

fn formats() -> [(Half, Kind); 2] {
    [(F16, Kind::F16), (BF16, Kind::Bf16)]
}

/// Checks an instruction on single values and on pairs: `model` maps codes to a code, or to `None`
/// where it is undecided.
fn both(
    opcode: &str,
    half: Half,
    kind: Kind,
    sources: usize,
    model: impl Fn(&[u64]) -> Option<u16>,
) {
    let names = ["{a}", "{b}", "{c}"];
    for (suffix, width) in [("", H), ("x2", R)] {
        let text = format!(
            "{opcode}.{}{suffix} {{d}}, {};",
            half.name,
            names[..sources].join(", ")
        );
        let widths: Vec<(W, Kind)> = vec![(width, kind); sources];
        accept(&text, width, &widths, |x, got| {
            for part in 0..if width == R { 2 } else { 1 } {
                let codes: Vec<u64> = x.iter().map(|v| v >> (16 * part) & 0xffff).collect();
                let got = (got >> (16 * part)) as u16;
                if let Some(expected) = model(&codes)
                    && expected != got
                {
                    return Err(format!("{codes:x?}: {got:#x}, expected {expected:#x}"));
                }
            }
            Ok(())
        });
    }
}

fn saturated(half: Half, code: u16) -> u16 {
    let value = half.value(code.into());
    if value.is_nan() || value <= 0.0 {
        0
    } else {
        half.code(value.min(1.0), "rn")
    }
}

fn rectified(code: u16, half: Half) -> u16 {
    if half.value(code.into()).is_nan() {
        0x7fff
    } else if code >> 15 == 1 {
        0
    } else {
        code
    }
}

fn flushed(half: Half, code: u64) -> u64 {
    if half.value(code).abs() < 2.0_f64.powi(half.smallest) {
        code & 0x8000
    } else {
        code
    }
}

#[test]
fn sums_and_products_of_halves_round_once() {
    for (half, kind) in formats() {
        let sum = |a: u64, b: f64| {
            let a = half.value(a);
            let (s, e) = sum_error(a, b);
            (e == 0.0 || e.is_nan()).then(|| half.code(s, "rn"))
        };
        for words in ["", ".rn"] {
            both(&format!("add{words}"), half, kind, 2, |x| {
                sum(x[0], half.value(x[1]))
            });
            both(&format!("sub{words}"), half, kind, 2, |x| {
                sum(x[0], -half.value(x[1]))
            });
            both(&format!("mul{words}"), half, kind, 2, |x| {
                Some(half.code(half.value(x[0]) * half.value(x[1]), "rn"))
            });
        }
    }
    both("add.sat", F16, Kind::F16, 2, |x| {
        Some(saturated(
            F16,
            F16.code(F16.value(x[0]) + F16.value(x[1]), "rn"),
        ))
    });
    both("mul.sat", F16, Kind::F16, 2, |x| {
        Some(saturated(
            F16,
            F16.code(F16.value(x[0]) * F16.value(x[1]), "rn"),
        ))
    });
    both("mul.ftz", F16, Kind::F16, 2, |x| {
        let [a, b] = [x[0], x[1]].map(|v| F16.value(flushed(F16, v)));
        Some(flushed(F16, F16.code(a * b, "rn").into()) as u16)
    });
    both("add.ftz", F16, Kind::F16, 2, |x| {
        let [a, b] = [x[0], x[1]].map(|v| F16.value(flushed(F16, v)));
        Some(flushed(F16, F16.code(a + b, "rn").into()) as u16)
    });
}

#[test]
fn fused_multiply_add_of_halves_rounds_once() {
    for (half, kind) in formats() {
        let fused = |x: &[u64]| {
            let p = half.value(x[0]) * half.value(x[1]);
            let (s, e) = sum_error(p, half.value(x[2]));
            // A sum of halves that is inexact as a double is far from every tie of f16.
            (half.name == "f16" || e == 0.0 || e.is_nan()).then(|| half.code(s, "rn"))
        };
        both("fma.rn", half, kind, 3, fused);
        both("fma.rn.relu", half, kind, 3, |x| {
            fused(x).map(|c| rectified(c, half))
        });
        if half.name == "f16" {
            both("fma.rn.sat", half, kind, 3, |x| {
                fused(x).map(|c| saturated(half, c))
            });
            both("fma.rn.ftz", half, kind, 3, |x| {
                let x: Vec<u64> = x.iter().map(|v| flushed(half, *v)).collect();
                fused(&x).map(|c| flushed(half, c.into()) as u16)
            });
        }
    }
}

#[test]
fn minimum_maximum_and_signs_of_halves() {
    for (half, kind) in formats() {
        for (name, max) in [("min", false), ("max", true)] {
            let pick = move |a: u64, b: u64| {
                let (x, y) = (half.value(a), half.value(b));
                let code = match (x.is_nan(), y.is_nan()) {
                    (true, true) => 0x7fff,
                    (true, _) => b,
                    (_, true) => a,
                    _ => {
                        if x.total_cmp(&y).is_lt() == max {
                            b
                        } else {
                            a
                        }
                    }
                };
                code as u16
            };
            let nan = move |x: &[u64]| half.value(x[0]).is_nan() || half.value(x[1]).is_nan();
            both(name, half, kind, 2, |x| Some(pick(x[0], x[1])));
            both(&format!("{name}.NaN"), half, kind, 2, |x| {
                Some(if nan(x) { 0x7fff } else { pick(x[0], x[1]) })
            });
            both(&format!("{name}.xorsign.abs"), half, kind, 2, |x| {
                let r = pick(x[0] & 0x7fff, x[1] & 0x7fff);
                (!half.value(r.into()).is_nan()).then_some(r | (x[0] ^ x[1]) as u16 & 0x8000)
            });
        }
        let number = move |c: u64| !half.value(c).is_nan();
        both("neg", half, kind, 1, |x| {
            number(x[0]).then_some(x[0] as u16 ^ 0x8000)
        });
        both("abs", half, kind, 1, |x| {
            number(x[0]).then_some(x[0] as u16 & 0x7fff)
        });
    }
}

#[test]
fn approximations_of_halves_are_within_the_documented_error() {
    let table: [(&str, Half, Kind, f64); 4] = [
        ("ex2.approx", F16, Kind::F16, 2.0_f64.powf(-9.9)),
        ("ex2.approx.ftz", BF16, Kind::Bf16, 2.0_f64.powi(-7)),
        ("tanh.approx", F16, Kind::F16, 2.0_f64.powf(-10.987)),
        ("tanh.approx", BF16, Kind::Bf16, 2.0_f64.powi(-8)),
    ];
    for (opcode, half, kind, bound) in table {
        let text = format!("{opcode}.{} {{d}}, {{a}};", half.name);
        accept(&text, H, &[(H, kind)], |x, got| {
            let v = half.value(x[0]);
            let exact = if opcode.starts_with("ex2") {
                v.exp2()
            } else {
                v.tanh()
            };
            let value = half.value(got);
            let largest = half.value(u64::from(half.infinity() - 1));
            let tiny = 2.0_f64.powi(half.smallest);
            let ok = if opcode.ends_with("ftz") && exact < tiny {
                value == 0.0 || value == tiny
            } else if exact.is_nan() {
                got == 0x7fff
            } else if exact > largest {
                value.is_infinite()
            } else {
                (value - exact).abs()
                    <= bound
                        * exact.abs().max(if opcode.starts_with("tanh") {
                            1.0
                        } else {
                            tiny
                        })
            };
            if ok {
                Ok(())
            } else {
                Err(format!("expected about {exact:e}, got {value:e}"))
            }
        });
    }
}
