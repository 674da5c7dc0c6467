//! `cvt` to and from numbers of six and four bits, and powers of two.

use crate::harness::{H, Kind, R, check};
use crate::models::{BF16, F16, f};

/// A format without infinities and NaN: a sign, exponent bits and fraction bits.
#[derive(Clone, Copy)]
struct Format {
    name: &'static str,
    exponent: i32,
    fraction: i32,
}

const FORMATS: [Format; 3] = [
    Format {
        name: "e2m3x2",
        exponent: 2,
        fraction: 3,
    },
    Format {
        name: "e3m2x2",
        exponent: 3,
        fraction: 2,
    },
    Format {
        name: "e2m1x2",
        exponent: 2,
        fraction: 1,
    },
];

impl Format {
    fn bits(self) -> i32 {
        self.exponent + self.fraction
    }

    fn value(self, code: u64) -> f64 {
        let magnitude = code as i32 & ((1 << self.bits()) - 1);
        let (field, fraction) = (
            magnitude >> self.fraction,
            magnitude & ((1 << self.fraction) - 1),
        );
        let least = 2 - (1 << (self.exponent - 1)) - self.fraction;
        let value = match field {
            0 => f64::from(fraction) * 2.0_f64.powi(least),
            _ => f64::from(fraction | 1 << self.fraction) * 2.0_f64.powi(least + field - 1),
        };
        if code >> self.bits() & 1 == 1 {
            -value
        } else {
            value
        }
    }

    /// The nearest code, the even one of two; the largest for NaN and beyond.
    fn code(self, x: f64, relu: bool) -> u64 {
        let largest = (1_u64 << self.bits()) - 1;
        if x.is_nan() {
            return largest;
        }
        let sign = u64::from(x.is_sign_negative());
        if relu && sign == 1 {
            return 0;
        }
        let near = (0..=largest).min_by(|a, b| {
            let apart = |code: u64| (self.value(code) - x.abs().min(1e9)).abs();
            let order = apart(*a).total_cmp(&apart(*b));
            order.then((a & 1).cmp(&(b & 1)))
        });
        sign << self.bits() | near.unwrap()
    }

    /// Bits between the elements of a pair.
    fn apart(self) -> i32 {
        if self.bits() == 3 { 4 } else { 8 }
    }
}

#[test]
fn the_values_of_the_formats_are_those_of_the_standard() {
    let [six, other, four] = FORMATS;
    let values: Vec<f64> = (0..8).map(|code| four.value(code)).collect();
    assert_eq!(values, [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]);
    assert_eq!(
        [six.value(31), six.value(1), six.value(8)],
        [7.5, 0.125, 1.0]
    );
    assert_eq!(
        [other.value(31), other.value(1), other.value(4)],
        [28.0, 0.0625, 0.25]
    );
}

#[test]
fn floats_become_numbers_of_six_and_four_bits() {
    for format in FORMATS {
        for relu in [false, true] {
            let dot = if relu { ".relu" } else { "" };
            let form = format!("cvt.rn.satfinite{dot}.{}.f32", format.name);
            // Four bits are in a register of one byte.
            let text = match format.bits() {
                3 => {
                    format!("{{ .reg .b8 %b; {form} %b, {{a}}, {{b}}; mov.b16 {{d}}, {{%b, 0}}; }}")
                }
                _ => format!("{form} {{d}}, {{a}}, {{b}};"),
            };
            check(&text, H, &[(R, Kind::F32), (R, Kind::F32)], |x| {
                let one = |v: u64| format.code(f(v).into(), relu);
                one(x[0]) << format.apart() | one(x[1])
            });
        }
    }
}

#[test]
fn numbers_of_six_and_four_bits_become_halves() {
    for format in FORMATS {
        for relu in [false, true] {
            let dot = if relu { ".relu" } else { "" };
            let form = format!("cvt.rn{dot}.f16x2.{}", format.name);
            let text = match format.bits() {
                3 => format!("{{ .reg .b8 %b, %c; mov.b16 {{%b, %c}}, {{a}}; {form} {{d}}, %b; }}"),
                _ => format!("and.b16 %h6, {{a}}, 0x3f3f; {form} {{d}}, %h6;"),
            };
            check(&text, R, &[(H, Kind::Int)], |x| {
                let one = |v: u64| {
                    let code = v & ((2 << format.bits()) - 1);
                    let value = format.value(code);
                    match relu && value.is_sign_negative() {
                        true => 0,
                        false => u64::from(F16.code(value, "rn")),
                    }
                };
                one(x[0] >> format.apart()) << 16 | one(x[0])
            });
        }
    }
}

/// The power of two of a magnitude, as its biased exponent.
fn power(x: f64, up: bool, finite: bool) -> u64 {
    if x.is_nan() {
        return 255;
    }
    let x = x.abs();
    let mut code = 0;
    while code < 255 && 2.0_f64.powi(code + 1 - 127) <= x {
        code += 1;
    }
    if up && code < 255 && 2.0_f64.powi(code - 127) < x {
        code += 1;
    }
    let largest = if finite { 254 } else { 255 };
    code.min(largest) as u64
}

#[test]
fn magnitudes_become_powers_of_two() {
    for (mode, up) in [("rz", false), ("rp", true)] {
        for (dot, finite) in [("", false), (".satfinite", true)] {
            let text = format!("cvt.{mode}{dot}.ue8m0x2.f32 {{d}}, {{a}}, {{b}};");
            check(&text, H, &[(R, Kind::F32), (R, Kind::F32)], |x| {
                let one = |v: u64| power(f(v).into(), up, finite);
                one(x[0]) << 8 | one(x[1])
            });
            let text = format!("cvt.{mode}{dot}.ue8m0x2.bf16x2 {{d}}, {{a}};");
            check(&text, H, &[(R, Kind::Bf16)], |x| {
                let one = |v: u64| power(BF16.value(v & 0xffff), up, finite);
                one(x[0] >> 16) << 8 | one(x[0])
            });
        }
    }
    check(
        "cvt.rn.bf16x2.ue8m0x2 {d}, {a};",
        R,
        &[(H, Kind::Int)],
        |x| {
            let one = |code: u64| match code & 255 {
                255 => 0x7fff,
                code => u64::from(BF16.code(2.0_f64.powi(code as i32 - 127), "rn")),
            };
            one(x[0] >> 8) << 16 | one(x[0])
        },
    );
}
