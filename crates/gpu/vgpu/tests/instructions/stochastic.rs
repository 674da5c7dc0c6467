//! `cvt.rs`: roundings decided by given random bits.

use crate::harness::{H, Kind, Q, R, Random, run};
use crate::models::f;

/// A format: its name, exponent bits, fraction bits, largest value, code of NaN, and code of infinity if it has one.
struct Format {
    name: &'static str,
    exponent: i32,
    fraction: i32,
    largest: f64,
    nan: u64,
    infinity: Option<u64>,
}

const fn format(name: &'static str, exponent: i32, fraction: i32, largest: f64) -> Format {
    let nan = (1 << (exponent + fraction)) - 1;
    Format {
        name,
        exponent,
        fraction,
        largest,
        nan,
        infinity: None,
    }
}

const FOURS: [Format; 5] = [
    format("e4m3x4", 4, 3, 448.0),
    format("e5m2x4", 5, 2, 57344.0),
    format("e2m3x4", 2, 3, 7.5),
    format("e3m2x4", 3, 2, 28.0),
    format("e2m1x4", 2, 1, 6.0),
];

const HALVES: [Format; 2] = [
    Format {
        infinity: Some(0x7c00),
        ..format("f16x2", 5, 10, 65504.0)
    },
    Format {
        infinity: Some(0x7f80),
        ..format("bf16x2", 8, 7, 3.389_531_389_251_535_5e38)
    },
];

impl Format {
    fn bits(&self) -> i32 {
        1 + self.exponent + self.fraction
    }

    /// The code of a number with `count` random bits: away from zero where the fraction of its last place and they make one.
    fn code(&self, x: f32, random: u64, count: i32, finite: bool, relu: bool) -> u64 {
        let largest = self.code_below(self.largest);
        let sign = u64::from(x.is_sign_negative()) << (self.bits() - 1);
        if x.is_nan() {
            return self.nan;
        }
        if relu && sign != 0 {
            return 0;
        }
        let size = f64::from(x.abs());
        let beyond = match self.infinity {
            Some(code) if !finite => code,
            _ => largest,
        };
        if size.is_infinite() || size > self.largest && finite {
            return sign | beyond;
        }
        let place = self.last_place(size);
        let fraction = (size / place).fract();
        let up = fraction + random as f64 / f64::from(1 << count) >= 1.0;
        let code = self.code_below(size) + u64::from(up);
        sign | if code > largest { beyond } else { code }
    }

    fn least(&self) -> i32 {
        2 - (1 << (self.exponent - 1))
    }

    fn last_place(&self, size: f64) -> f64 {
        let exponent = match size {
            0.0 => self.least(),
            _ => size.log2().floor() as i32,
        };
        // The logarithm may be rounded up.
        let exponent = exponent - i32::from(2.0_f64.powi(exponent) > size);
        2.0_f64.powi(exponent.max(self.least()) - self.fraction)
    }

    fn code_below(&self, size: f64) -> u64 {
        let place = self.last_place(size);
        let steps = (size / place).floor() as u64;
        let binade = place.log2() as i32 + self.fraction - self.least();
        ((binade as u64) << self.fraction) + steps
    }
}

fn rows(count: usize) -> Vec<Vec<u64>> {
    let mut random = Random(7);
    let mut row = || {
        let number = |random: &mut Random| match random.next() % 3 {
            0 => random.operand(Kind::F32, R),
            // Near the ranges of all formats.
            _ => {
                let exponent = 127 - 26 + random.next() % 46;
                exponent << 23 | random.next() & 0x807f_ffff
            }
        };
        let mut all = vec![0; 3];
        all[0] = number(&mut random) | number(&mut random) << 32;
        all[1] = number(&mut random) | number(&mut random) << 32;
        all[2] = random.next() & 0xffff_ffff;
        all
    };
    (0..count).map(|_| row()).collect()
}

#[test]
fn two_halves_take_as_many_random_bits_as_they_discard() {
    for format in HALVES {
        for relu in ["", ".relu"] {
            for finite in ["", ".satfinite"] {
                let name = format.name;
                let text = format!(
                    "mov.b64 {{%r10, %r11}}, {{a}}; cvt.rs{relu}{finite}.{name}.f32 {{d}}, %r11, %r10, {{c}};"
                );
                let rows = rows(4096);
                let got = run(&text, R, &[Q, Q, R], &rows);
                let count = 23 - format.fraction;
                for (row, got) in rows.iter().zip(got) {
                    let code = |x: u64, random: u64| {
                        let random = random & ((1 << count) - 1);
                        format.code(f(x), random, count, !finite.is_empty(), !relu.is_empty())
                    };
                    let want = code(row[0] >> 32, row[2] >> 16) << 16 | code(row[0], row[2]);
                    assert_eq!(got, want, "{text} of {row:x?}");
                }
            }
        }
    }
}

#[test]
fn four_numbers_share_their_random_bits_in_pairs() {
    let reverse = |bits: u64| u64::from((bits as u16).reverse_bits());
    for format in FOURS {
        for relu in ["", ".relu"] {
            let (name, e2m1) = (format.name, format.name == "e2m1x4");
            let text = format!(
                "mov.b64 {{%r10, %r11}}, {{a}}; mov.b64 {{%r12, %r13}}, {{b}};\n\
                 cvt.rs{relu}.satfinite.{name}.f32 {{d}}, {{%r13, %r12, %r11, %r10}}, {{c}};"
            );
            let rows = rows(4096);
            let got = run(&text, if e2m1 { H } else { R }, &[Q, Q, R], &rows);
            for (row, got) in rows.iter().zip(got) {
                let r = row[2];
                let [low, high] = match e2m1 {
                    true => [r & 0xff | r >> 8 & 0xff00, r >> 8 & 0xff | r >> 16 & 0xff00],
                    false => [r & 0xffff, r >> 16],
                };
                let random = [low, reverse(low), high, reverse(high)];
                let numbers = [row[0], row[0] >> 32, row[1], row[1] >> 32];
                let width = if e2m1 { 4 } else { 8 };
                let want = (0..4).fold(0, |all, n| {
                    let code = format.code(f(numbers[n]), random[n], 16, true, !relu.is_empty());
                    all | code << (width * n)
                });
                assert_eq!(got, want, "{text} of {row:x?}");
            }
        }
    }
}
