//! `cvt` between all kinds of types.

use crate::harness::{H, Kind, Q, R, W, accept, check};
use crate::models::{BF16, F16, Half, cut, d, f, finish, flush, number, to_single};

/// Integer types of `cvt`, with a register to hold them.
pub(crate) const INTS: [(&str, W, u32, bool); 8] = [
    ("u8", H, 8, false),
    ("s8", H, 8, true),
    ("u16", H, 16, false),
    ("s16", H, 16, true),
    ("u32", R, 32, false),
    ("s32", R, 32, true),
    ("u64", Q, 64, false),
    ("s64", Q, 64, true),
];

fn width(w: W) -> u32 {
    match w {
        H => 16,
        R => 32,
        _ => 64,
    }
}

fn range(bits: u32, sign: bool) -> (i128, i128) {
    if sign {
        (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    } else {
        (0, (1 << bits) - 1)
    }
}

#[test]
fn integers_are_cut_extended_and_clamped() {
    for (to, dest, to_bits, to_sign) in INTS {
        for (from, source, from_bits, from_sign) in INTS {
            for sat in [false, true] {
                let dot = if sat { ".sat" } else { "" };
                let text = format!("cvt{dot}.{to}.{from} {{d}}, {{a}};");
                check(&text, dest, &[(source, Kind::Int)], |x| {
                    let v = number(x[0], from_bits, from_sign);
                    let (low, high) = range(to_bits, to_sign);
                    let v = if sat { v.clamp(low, high) } else { v };
                    // The result is extended to the register by the destination's sign.
                    cut(number(v as u64, to_bits, to_sign), width(dest))
                });
            }
        }
    }
}

fn integral(x: f64, mode: &str) -> f64 {
    match mode {
        "rni" => x.round_ties_even(),
        "rzi" => x.trunc(),
        "rmi" => x.floor(),
        _ => x.ceil(),
    }
}

const INTEGRAL: [&str; 4] = ["rni", "rzi", "rmi", "rpi"];

#[test]
fn floats_become_clamped_integers() {
    for (to, dest, bits, sign) in INTS {
        for mode in INTEGRAL {
            let model = |x: f64, double: bool| {
                let nan = if double || bits == 64 {
                    1_i128 << (bits - 1)
                } else {
                    0
                };
                let (low, high) = range(bits, sign);
                let v = if x.is_nan() {
                    nan
                } else {
                    (integral(x, mode) as i128).clamp(low, high)
                };
                cut(number(v as u64, bits, sign), width(dest))
            };
            check(
                &format!("cvt.{mode}.{to}.f32 {{d}}, {{a}};"),
                dest,
                &[(R, Kind::F32)],
                |x| model(f(x[0]).into(), false),
            );
            check(
                &format!("cvt.{mode}.ftz.{to}.f32 {{d}}, {{a}};"),
                dest,
                &[(R, Kind::F32)],
                |x| model(flush(f(x[0])).into(), false),
            );
            check(
                &format!("cvt.{mode}.{to}.f64 {{d}}, {{a}};"),
                dest,
                &[(Q, Kind::F64)],
                |x| model(d(x[0]), true),
            );
            check(
                &format!("cvt.{mode}.{to}.f16 {{d}}, {{a}};"),
                dest,
                &[(H, Kind::F16)],
                |x| model(F16.value(x[0]), false),
            );
        }
    }
    check("cvt.rni.u32.bf16 {d}, {a};", R, &[(H, Kind::Bf16)], |x| {
        let v = BF16.value(x[0]);
        if v.is_nan() {
            0
        } else {
            u64::from(v.round_ties_even() as u32)
        }
    });
}

/// Rounds an integer to single or double in a mode, by comparison with the exact value.
fn rounded<T: Copy>(exact: i128, near: T, back: i128, steps: (T, T), mode: &str) -> T {
    let (down, up) = steps;
    match mode {
        "rm" if back > exact => down,
        "rp" if back < exact => up,
        "rz" if exact > 0 && back > exact => down,
        "rz" if exact < 0 && back < exact => up,
        _ => near,
    }
}

#[test]
fn integers_become_saturated_floats() {
    for (from, source, bits, sign) in INTS {
        for (to, dest, one) in [
            ("f16", H, 0x3c00),
            ("bf16", H, 0x3f80),
            ("f32", R, 0x3f80_0000),
            ("f64", Q, 0x3ff0_0000_0000_0000),
        ] {
            check(
                &format!("cvt.rn.sat.{to}.{from} {{d}}, {{a}};"),
                dest,
                &[(source, Kind::Int)],
                |x| if number(x[0], bits, sign) > 0 { one } else { 0 },
            );
        }
    }
}

#[test]
fn integers_become_rounded_floats() {
    for (from, source, bits, sign) in INTS {
        for mode in ["rn", "rz", "rm", "rp"] {
            let operands = [(source, Kind::Int)];
            check(
                &format!("cvt.{mode}.f32.{from} {{d}}, {{a}};"),
                R,
                &operands,
                |x| {
                    let exact = number(x[0], bits, sign);
                    let near = exact as f32;
                    let steps = (near.next_down(), near.next_up());
                    rounded(exact, near, near as i128, steps, mode)
                        .to_bits()
                        .into()
                },
            );
            check(
                &format!("cvt.{mode}.f64.{from} {{d}}, {{a}};"),
                Q,
                &operands,
                |x| {
                    let exact = number(x[0], bits, sign);
                    let near = exact as f64;
                    let steps = (near.next_down(), near.next_up());
                    rounded(exact, near, near as i128, steps, mode).to_bits()
                },
            );
            for half in [F16, BF16] {
                let text = format!("cvt.{mode}.{}.{from} {{d}}, {{a}};", half.name);
                accept(&text, H, &operands, |x, got| {
                    let exact = number(x[0], bits, sign);
                    // Through a double only where that is exact.
                    let wide = exact as f64;
                    let expected = u64::from(half.code(wide, mode));
                    if wide as i128 != exact || got == expected {
                        Ok(())
                    } else {
                        Err(format!("expected {expected:#x}"))
                    }
                });
            }
        }
    }
}

#[test]
fn singles_doubles_and_halves_convert_into_each_other() {
    for mode in ["rn", "rz", "rm", "rp"] {
        for (ftz, sat) in [(false, false), (true, false), (false, true)] {
            let dots = format!(
                "{}{}",
                if ftz { ".ftz" } else { "" },
                if sat { ".sat" } else { "" }
            );
            check(
                &format!("cvt.{mode}{dots}.f32.f64 {{d}}, {{a}};"),
                R,
                &[(Q, Kind::F64)],
                |x| finish(to_single(d(x[0]), mode), ftz, sat),
            );
        }
        for half in [F16, BF16] {
            let name = half.name;
            check(
                &format!("cvt.{mode}.{name}.f64 {{d}}, {{a}};"),
                H,
                &[(Q, Kind::F64)],
                |x| half.code(d(x[0]), mode).into(),
            );
            if matches!(mode, "rn" | "rz") || name == "f16" {
                check(
                    &format!("cvt.{mode}.{name}.f32 {{d}}, {{a}};"),
                    H,
                    &[(R, Kind::F32)],
                    |x| half.code(f(x[0]).into(), mode).into(),
                );
            }
        }
    }
    let nan = |x: f32| {
        if x.is_nan() {
            0x7fff_ffff
        } else {
            u64::from(x.to_bits())
        }
    };
    check("cvt.f32.f16 {d}, {a};", R, &[(H, Kind::F16)], |x| {
        nan(F16.value(x[0]) as f32)
    });
    // Also the bits of NaN, as the assembler's shift.
    check("cvt.f32.bf16 {d}, {a};", R, &[(H, Kind::Bf16)], |x| {
        x[0] << 16
    });
    check("cvt.bf16.bf16 {d}, {a};", H, &[(H, Kind::Bf16)], |x| x[0]);
    let same = |expected: f64, got: u64| {
        if expected.to_bits() == got || expected.is_nan() && d(got).is_nan() {
            Ok(())
        } else {
            Err(format!("{expected}"))
        }
    };
    accept("cvt.f64.f32 {d}, {a};", Q, &[(R, Kind::F32)], |x, got| {
        same(f(x[0]).into(), got)
    });
    accept(
        "cvt.ftz.f64.f32 {d}, {a};",
        Q,
        &[(R, Kind::F32)],
        |x, got| same(flush(f(x[0])).into(), got),
    );
    accept("cvt.f64.f16 {d}, {a};", Q, &[(H, Kind::F16)], |x, got| {
        same(F16.value(x[0]), got)
    });
    check("cvt.sat.f32.f32 {d}, {a};", R, &[(R, Kind::F32)], |x| {
        finish(f(x[0]), false, true)
    });
    check("cvt.ftz.sat.f32.f32 {d}, {a};", R, &[(R, Kind::F32)], |x| {
        finish(flush(f(x[0])), true, true)
    });
    check("cvt.sat.f64.f64 {d}, {a};", Q, &[(Q, Kind::F64)], |x| {
        let v = d(x[0]);
        if v.is_nan() {
            0
        } else {
            (v.clamp(0.0, 1.0) + 0.0).to_bits()
        }
    });
}

#[test]
fn integral_rounding_keeps_the_type_and_the_sign_of_zero() {
    for mode in INTEGRAL {
        check(
            &format!("cvt.{mode}.f32.f32 {{d}}, {{a}};"),
            R,
            &[(R, Kind::F32)],
            |x| finish(integral(f(x[0]).into(), mode) as f32, false, false),
        );
        check(
            &format!("cvt.{mode}.ftz.f32.f32 {{d}}, {{a}};"),
            R,
            &[(R, Kind::F32)],
            |x| finish(integral(flush(f(x[0])).into(), mode) as f32, false, false),
        );
        accept(
            &format!("cvt.{mode}.f64.f64 {{d}}, {{a}};"),
            Q,
            &[(Q, Kind::F64)],
            |x, got| {
                let expected = integral(d(x[0]), mode);
                let ok = expected.to_bits() == got || expected.is_nan() && d(got).is_nan();
                if ok {
                    Ok(())
                } else {
                    Err(format!("expected {expected}"))
                }
            },
        );
        for (half, kind) in [(F16, Kind::F16), (BF16, Kind::Bf16)] {
            let text = format!("cvt.{mode}.{0}.{0} {{d}}, {{a}};", half.name);
            check(&text, H, &[(H, kind)], |x| {
                half.code(integral(half.value(x[0]), mode), "rn").into()
            });
        }
    }
}

/// Models `.relu` and `.satfinite` of a narrowing conversion.
fn narrowed(half: Half, x: f32, mode: &str, relu: bool, finite: bool) -> u64 {
    let code = half.code(x.into(), mode);
    if x.is_nan() {
        return 0x7fff;
    }
    if relu && x.is_sign_negative() {
        return 0;
    }
    let infinite = code & 0x7fff == half.infinity();
    (if finite && infinite { code - 1 } else { code }).into()
}

#[test]
fn pairs_of_singles_are_packed_first_operand_high() {
    for half in [F16, BF16] {
        for mode in ["rn", "rz"] {
            for (relu, finite) in [(false, false), (true, false), (false, true), (true, true)] {
                let dots = format!(
                    "{mode}{}{}",
                    if relu { ".relu" } else { "" },
                    if finite { ".satfinite" } else { "" }
                );
                let one = |x: u64| narrowed(half, f(x), mode, relu, finite);
                let text = format!("cvt.{dots}.{}x2.f32 {{d}}, {{a}}, {{b}};", half.name);
                check(&text, R, &[(R, Kind::F32); 2], |x| {
                    one(x[0]) << 16 | one(x[1])
                });
                let text = format!("cvt.{dots}.{}.f32 {{d}}, {{a}};", half.name);
                check(&text, H, &[(R, Kind::F32)], |x| one(x[0]));
            }
        }
    }
}

/// Returns the value of an FP8 code with `fraction` bits of fraction.
fn byte_value(code: u64, fraction: i32) -> f64 {
    let (exponent_bits, bias) = if fraction == 3 { (4, 7) } else { (5, 15) };
    let magnitude = (code & 0x7f) as i32;
    let sign = if code & 0x80 != 0 { -1.0 } else { 1.0 };
    let field = magnitude >> fraction;
    let part = magnitude & ((1 << fraction) - 1);
    if fraction == 3 && magnitude == 0x7f {
        return f64::NAN;
    }
    if fraction == 2 && field == (1 << exponent_bits) - 1 {
        return if part == 0 {
            sign * f64::INFINITY
        } else {
            f64::NAN
        };
    }
    let hidden = if field > 0 { 1 << fraction } else { 0 };
    sign * f64::from(part + hidden) * 2.0_f64.powi(field.max(1) - bias - fraction)
}

/// Returns the nearest code, ties to even, saturating.
fn byte_code(x: f64, fraction: i32, relu: bool) -> u64 {
    if x.is_nan() {
        return 0x7f;
    }
    if relu && x.is_sign_negative() {
        return 0;
    }
    // Far above every code, but where the distances still differ.
    let x = x.clamp(-1e6, 1e6);
    let largest = if fraction == 3 { 0x7e } else { 0x7b };
    let sign = if x.is_sign_negative() { 0x80 } else { 0 };
    let best = (0..=largest)
        .min_by(|&a, &b| {
            let away = |c: u64| (byte_value(c, fraction) - x.abs()).abs();
            away(a).total_cmp(&away(b)).then((a & 1).cmp(&(b & 1)))
        })
        .unwrap_or(0);
    sign | best
}

#[test]
fn bytes_of_fp8_pack_and_unpack() {
    for (name, fraction) in [("e4m3x2", 3), ("e5m2x2", 2)] {
        for relu in [false, true] {
            let dot = if relu { ".relu" } else { "" };
            let text = format!("cvt.rn.satfinite{dot}.{name}.f32 {{d}}, {{a}}, {{b}};");
            check(&text, H, &[(R, Kind::F32); 2], |x| {
                let one = |v: u64| byte_code(f(v).into(), fraction, relu);
                one(x[0]) << 8 | one(x[1])
            });
            let text = format!("cvt.rn.satfinite{dot}.{name}.f16x2 {{d}}, {{a}};");
            check(&text, H, &[(R, Kind::F16)], |x| {
                let one = |v: u64| byte_code(F16.value(v & 0xffff), fraction, relu);
                one(x[0] >> 16) << 8 | one(x[0])
            });
            let text = format!("cvt.rn{dot}.f16x2.{name} {{d}}, {{a}};");
            check(&text, R, &[(H, Kind::Int)], |x| {
                let one = |v: u64| {
                    let value = byte_value(v & 255, fraction);
                    let code = u64::from(F16.code(value, "rn"));
                    if relu && value.is_sign_negative() && !value.is_nan() {
                        0
                    } else {
                        code
                    }
                };
                one(x[0] >> 8) << 16 | one(x[0])
            });
        }
    }
}

#[test]
fn tf32_keeps_ten_bits_of_fraction() {
    check("cvt.rna.tf32.f32 {d}, {a};", R, &[(R, Kind::F32)], |x| {
        if f(x[0]).is_nan() {
            0x7fff_ffff
        } else {
            (x[0] + 0x1000) & 0xffff_e000
        }
    });
    check("cvt.rn.tf32.f32 {d}, {a};", R, &[(R, Kind::F32)], |x| {
        if f(x[0]).is_nan() {
            0x7fff_ffff
        } else {
            (x[0] + 0xfff + (x[0] >> 13 & 1)) & 0xffff_e000
        }
    });
    check(
        "cvt.rz.relu.tf32.f32 {d}, {a};",
        R,
        &[(R, Kind::F32)],
        |x| match f(x[0]) {
            value if value.is_nan() => 0x7fff_ffff,
            value if value <= 0.0 => 0,
            _ => x[0] & 0xffff_e000,
        },
    );
    check("cvt.rz.tf32.f32 {d}, {a};", R, &[(R, Kind::F32)], |x| {
        if f(x[0]).is_nan() {
            0x7fff_ffff
        } else {
            x[0] & 0xffff_e000
        }
    });
}

#[test]
fn bytes_are_extended_to_the_width_of_their_register() {
    check("cvt.rzi.s8.f32 {d}, {a};", R, &[(R, Kind::F32)], |x| {
        let byte = match f32::from_bits(x[0] as u32) {
            v if v.is_nan() => 0,
            v => v as i8,
        };
        u64::from(i32::from(byte) as u32)
    });
    check("cvt.s8.s32 {d}, {a};", R, &[(R, Kind::Int)], |x| {
        u64::from(i32::from(x[0] as i8) as u32)
    });
}

#[test]
fn doubles_saturate() {
    check("cvt.sat.f64.f32 {d}, {a};", Q, &[(R, Kind::F32)], |x| {
        let v = f64::from(f32::from_bits(x[0] as u32));
        let clamped = if v.is_nan() {
            0.0
        } else {
            v.clamp(0.0, 1.0) + 0.0
        };
        clamped.to_bits()
    });
}
