//! Independent models: fixed-point exact values and formats as sorted tables.

use gpu_arithmetic::Round;
use gpu_arithmetic::soft::{Format, Specials};
use proptest::prelude::*;

/// All rounding modes of arithmetic.
pub(super) const MODES: [Round; 4] = [Round::Rn, Round::Rz, Round::Rm, Round::Rp];

/// Singles with every bit pattern, the awkward ones often.
pub(super) fn any_f32() -> impl Strategy<Value = f32> {
    let special = [
        0,
        1,
        2,
        0x007f_ffff,
        0x0080_0000,
        0x0080_0001,
        0x3f7f_ffff,
        0x3f80_0000,
        0x3f80_0001,
        0x4b80_0000,
        0x7f7f_ffff,
        0x7f80_0000,
        0x7fc0_0000,
        0x7f80_0001,
    ];
    prop_oneof![
        6 => any::<u32>(),
        2 => proptest::sample::select(special.to_vec()),
        2 => (0_u32..40, any::<u32>()).prop_map(|(e, f)| ((107 + e) << 23) | (f & 0x007f_f000)),
    ]
    .prop_flat_map(|bits| {
        any::<bool>().prop_map(move |s| f32::from_bits(bits ^ (u32::from(s) << 31)))
    })
}

/// Doubles with every bit pattern, the awkward ones often.
pub(super) fn any_f64() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => any::<u64>().prop_map(f64::from_bits),
        2 => any_f32().prop_map(f64::from),
        1 => proptest::sample::select(vec![0.0, -0.0, 5e-324, -5e-324, f64::MIN_POSITIVE, f64::MAX,
            f64::MIN, f64::INFINITY, f64::NEG_INFINITY, 1.0, 1.0 + f64::EPSILON]),
        2 => (983_u64..1063, any::<u64>(), any::<bool>()).prop_map(|(e, f, s)| {
            f64::from_bits(u64::from(s) << 63 | e << 52 | f & 0x000f_ffff_ff00_0000)
        }),
    ]
}

/// Equal bits, any NaN equal to any other.
pub(super) fn same64(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

/// A format as the table of its non-negative finite values in units of `2^-unit`.
pub(super) struct Table {
    pub(super) format: Format,
    values: Vec<i128>,
    unit: i32,
}

impl Table {
    /// Values up to `2^limit` only, so that they fit.
    pub(super) fn new(format: Format, unit: i32) -> Table {
        let bias = (1 << (format.exponent - 1)) - 1;
        let mut values = Vec::new();
        for code in 0..=format.max_finite() {
            let field = (code >> format.fraction) as i32;
            let fraction = i128::from(code & ((1 << format.fraction) - 1));
            let hidden = if field > 0 {
                1_i128 << format.fraction
            } else {
                0
            };
            let power = field.max(1) - bias - format.fraction as i32 + unit;
            if !(0..=110).contains(&power) {
                break;
            }
            values.push((fraction + hidden) << power);
        }
        Table {
            format,
            values,
            unit,
        }
    }

    /// The value of a finite code in fixed point.
    pub(super) fn fixed(&self, code: u64) -> i128 {
        let sign = 1 << (self.format.exponent + self.format.fraction);
        let value = self.values[(code & (sign - 1)) as usize];
        if code & sign != 0 { -value } else { value }
    }

    /// `x`, an exact multiple of the unit, in fixed point.
    pub(super) fn fixed_from_f64(&self, x: f64) -> i128 {
        let scaled = x * 2.0_f64.powi(self.unit);
        assert_eq!(scaled, scaled.trunc(), "{x} is no multiple of the unit");
        scaled as i128
    }

    /// The rounded code of an exact value below overflow, found by search; zero keeps `negative`.
    pub(super) fn round(&self, exact: i128, round: Round, negative_zero: bool) -> u64 {
        let sign = 1 << (self.format.exponent + self.format.fraction);
        let negative = exact < 0 || (exact == 0 && negative_zero);
        let magnitude = exact.abs();
        let above = self.values.partition_point(|&v| v < magnitude);
        let code = if above < self.values.len() && self.values[above] == magnitude {
            above
        } else {
            self.between(above, magnitude, round, negative)
        };
        let code = code as u64;
        (if negative { sign } else { 0 }) | code
    }

    /// Chooses between `above - 1` and `above`; beyond the table is the next power of two.
    fn between(&self, above: usize, magnitude: i128, round: Round, negative: bool) -> usize {
        let low = self.values[above - 1];
        let last = self.values.len() - 1;
        let high = *self
            .values
            .get(above)
            .unwrap_or(&(2 * self.values[last] - self.values[last - 1]));
        let (to_low, to_high) = (magnitude - low, high - magnitude);
        let nearest = |tie: bool| match to_low.cmp(&to_high) {
            std::cmp::Ordering::Less => above - 1,
            std::cmp::Ordering::Greater => above,
            std::cmp::Ordering::Equal => {
                if tie {
                    above
                } else {
                    above - 1
                }
            }
        };
        let code = match round {
            Round::Rn => nearest(above.is_multiple_of(2)),
            Round::Rna => nearest(true),
            Round::Rz => above - 1,
            Round::Rm => {
                if negative {
                    above
                } else {
                    above - 1
                }
            }
            Round::Rp => {
                if negative {
                    above - 1
                } else {
                    above
                }
            }
        };
        // One past the largest finite code is infinity for the IEEE formats.
        if code > last && self.format.specials != Specials::Ieee {
            last
        } else {
            code.min(last + 1)
        }
    }
}

/// An exact fixed-point value rounded to single.
pub(super) fn fixed_to_f32(exact: i128, unit: i32, round: Round) -> f32 {
    // The cast is correctly rounded to nearest even and the scaling exact.
    let near = exact as f32;
    let back = near as i128;
    let r = directed_step(exact, back, round, near.next_down(), near, near.next_up());
    r * 2.0_f32.powi(-unit / 2) * 2.0_f32.powi(-(unit - unit / 2))
}

/// An exact fixed-point value rounded to double.
pub(super) fn fixed_to_f64(exact: i128, unit: i32, round: Round) -> f64 {
    let near = exact as f64;
    let back = near as i128;
    let r = directed_step(exact, back, round, near.next_down(), near, near.next_up());
    r * 2.0_f64.powi(-unit)
}

fn directed_step<T>(exact: i128, near: i128, round: Round, down: T, at: T, up: T) -> T {
    match round {
        Round::Rm if near > exact => down,
        Round::Rp if near < exact => up,
        Round::Rz if exact > 0 && near > exact => down,
        Round::Rz if exact < 0 && near < exact => up,
        _ => at,
    }
}
