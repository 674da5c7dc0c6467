//! f16 and bf16: exhaustive conversions, arithmetic against exact fixed-point integers.

use super::model::{MODES, Table};
use gpu_arithmetic::half::{self, Bfloat16, Fp16, Half};
use gpu_arithmetic::soft::{BF16, F16};
use gpu_arithmetic::{Overflow, Round};
use proptest::prelude::*;
use std::sync::LazyLock;

/// Units of 2^-48 hold every product of two halves.
const UNIT: i32 = 48;

static HALVES: LazyLock<Table> = LazyLock::new(|| Table::new(F16, UNIT));

fn finite_code() -> impl Strategy<Value = u16> {
    (0..0x7c00_u16, any::<bool>()).prop_map(|(code, negative)| code | u16::from(negative) << 15)
}

fn finite(bits: u16) -> bool {
    bits & 0x7c00 != 0x7c00
}

#[test]
fn every_f16_widens_to_its_value_and_narrows_back() {
    let table = Table::new(F16, UNIT);
    for code in 0..=u16::MAX {
        let wide = half::f16_to_f32(code);
        if finite(code) {
            assert_eq!(table.fixed_from_f64(wide.into()), table.fixed(code.into()));
            assert_eq!(half::f32_to_f16(wide), code);
        } else if code & 0x3ff == 0 {
            assert!(wide.is_infinite() && wide.is_sign_negative() == (code >> 15 == 1));
            assert_eq!(half::f32_to_f16(wide), code);
        } else {
            assert_eq!(wide.to_bits(), 0x7fff_ffff);
            assert_eq!(half::f32_to_f16(wide), 0x7fff);
        }
    }
}

#[test]
fn singles_around_every_f16_and_every_midpoint_narrow_right_in_every_mode() {
    let table = Table::new(F16, UNIT);
    let near = |x: f32| {
        let bits = x.to_bits();
        [
            bits.saturating_sub(2),
            bits.saturating_sub(1),
            bits,
            bits + 1,
            bits + 2,
        ]
    };
    for code in 0..0x7bff_u16 {
        let (low, high) = (half::f16_to_f32(code), half::f16_to_f32(code + 1));
        for bits in near(low).into_iter().chain(near((low + high) / 2.0)) {
            for sign in [0, 0x8000_0000] {
                check_narrow(&table, f32::from_bits(bits | sign));
            }
        }
    }
    for bits in near(65504.0)
        .into_iter()
        .chain(near(65520.0))
        .chain(near(65536.0))
    {
        check_narrow(&table, f32::from_bits(bits));
        check_narrow(&table, f32::from_bits(bits | 0x8000_0000));
    }
}

fn check_narrow(table: &Table, x: f32) {
    for mode in MODES.into_iter().chain([Round::Rna]) {
        // What is below 2^-48 only matters as "not zero": stand in by one unit.
        let scaled = f64::from(x) * 2.0_f64.powi(UNIT);
        let exact = if scaled != 0.0 && scaled.abs() < 1.0 {
            scaled.signum()
        } else {
            scaled
        };
        let expected = table.round(exact as i128, mode, x.is_sign_negative());
        let got = half::from_f32::<Fp16>(x, mode, Overflow::Infinite);
        assert_eq!(u64::from(got), expected, "{x:e} {mode:?}");
    }
    assert_eq!(
        half::f32_to_f16(x),
        half::from_f32::<Fp16>(x, Round::Rn, Overflow::Infinite)
    );
}

#[test]
fn every_bf16_narrows_and_its_neighbours_round_right() {
    for code in 0..=u16::MAX {
        let wide = half::bf16_to_f32(code);
        if code & 0x7fff > 0x7f80 {
            assert_eq!(wide.to_bits(), 0x7fff_ffff);
            assert_eq!(half::f32_to_bf16(wide), 0x7fff);
            continue;
        }
        assert_eq!(wide.to_bits(), u32::from(code) << 16);
        for low in [0, 1, 0x7fff, 0x8000, 0x8001, 0xffff_u32] {
            let x = f32::from_bits(wide.to_bits() | low);
            if x.is_nan() {
                continue;
            }
            let up = low > 0x8000 || (low == 0x8000 && code & 1 == 1);
            assert_eq!(half::f32_to_bf16(x), code.wrapping_add(up.into()), "{x:e}");
            let toward_zero = half::from_f32::<Bfloat16>(x, Round::Rz, Overflow::Infinite);
            assert_eq!(toward_zero, code, "{x:e}");
        }
    }
}

#[test]
fn satfinite_and_relu_narrow_as_the_isa_says() {
    let f16 = |x, o| half::from_f32::<Fp16>(x, Round::Rn, o);
    assert_eq!(f16(1e9, Overflow::Infinite), 0x7c00);
    assert_eq!(f16(1e9, Overflow::Finite), 0x7bff);
    assert_eq!(f16(f32::NEG_INFINITY, Overflow::Finite), 0xfbff);
    assert_eq!(f16(f32::NAN, Overflow::Finite), 0x7fff);
    assert_eq!(half::relu::<Fp16>(0x8000), 0);
    assert_eq!(half::relu::<Fp16>(0xbc00), 0);
    assert_eq!(half::relu::<Fp16>(0xfe00), 0x7fff);
    assert_eq!(half::sat::<Fp16>(0xfe00), 0);
    assert_eq!(half::sat::<Fp16>(0x4000), 0x3c00);
    assert_eq!(half::sat::<Bfloat16>(0x8000), 0);
}

/// The operands of interest: every code against this sample.
fn sample() -> Vec<u16> {
    let mut codes = vec![
        0, 1, 2, 3, 0x3ff, 0x400, 0x401, 0x3bff, 0x3c00, 0x3c01, 0x7bff, 0x6bff,
    ];
    codes.extend((0..40_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 17) as u16 % 0x7c00));
    let negative: Vec<u16> = codes.iter().map(|c| c | 0x8000).collect();
    codes.extend(negative);
    codes
}

#[test]
fn f16_sums_and_products_of_every_code_are_exactly_rounded() {
    let table = Table::new(F16, UNIT);
    for a in (0..=u16::MAX).filter(|c| finite(*c)) {
        for b in sample() {
            let (x, y) = (table.fixed(a.into()), table.fixed(b.into()));
            // An exact zero of opposite signs is +0.
            let both_negative = a & b & 0x8000 != 0;
            let sum = table.round(x + y, Round::Rn, both_negative);
            assert_eq!(u64::from(half::add::<Fp16>(a, b)), sum, "{a:04x} + {b:04x}");
            // A product below the unit cannot occur: both are multiples of 2^-24.
            let product = (x >> (UNIT - 24)) * (y >> (UNIT - 24));
            let product = table.round(product, Round::Rn, (a ^ b) & 0x8000 != 0);
            assert_eq!(
                u64::from(half::mul::<Fp16>(a, b)),
                product,
                "{a:04x} * {b:04x}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50_000))]

    #[test]
    fn f16_fma_is_exactly_rounded(
        a in finite_code(), b in finite_code(), c in finite_code(),
    ) {
        let table = &*HALVES;
        let narrow = |code: u16| table.fixed(code.into()) >> (UNIT - 24);
        let exact = narrow(a) * narrow(b) + table.fixed(c.into());
        let negative_zero = (a ^ b) & c & 0x8000 != 0;
        let expected = table.round(exact, Round::Rn, negative_zero);
        prop_assert_eq!(u64::from(half::fma::<Fp16>(a, b, c)), expected);
    }

    #[test]
    fn bf16_fma_is_exactly_rounded(
        a in 0x3380_u16..0x4b80, b in 0x3380_u16..0x4b80, c in 0x3100_u16..0x4c00, signs in 0_u16..8,
    ) {
        // Magnitudes of 2^-24 to 2^24 are multiples of 2^-31; the addend's of 2^-36.
        let (a, b, c) = (a | signs << 15, b | (signs >> 1) << 15, c | (signs >> 2) << 15);
        let exact = |x: u16, unit: i32| {
            (f64::from(f32::from_bits(u32::from(x) << 16)) * 2.0_f64.powi(unit)) as i128
        };
        let sum = exact(a, 31) * exact(b, 31) + exact(c, 62);
        let expected = round_bf16(sum, 62);
        prop_assert_eq!(half::fma::<Bfloat16>(a, b, c), expected);
        if sum != 0 {
            let product = exact(a, 31) * exact(b, 31);
            prop_assert_eq!(half::mul::<Bfloat16>(a, b), round_bf16(product, 62));
        }
    }

    #[test]
    fn bf16_operations_agree_with_doubles_rounded_to_odd(a: u16, b: u16, c: u16) {
        // Over the whole range, subnormals and infinities included: a double of the exact sum is
        // rounded to odd with a fused multiply-add giving the error's sign.
        let [x, y, z] = [a, b, c].map(|v| f64::from(half::bf16_to_f32(v)));
        let expected = |value: f64, error: f64| {
            let odd = if error == 0.0 || !value.is_finite() || value.to_bits() & 1 == 1 {
                value
            } else if (error > 0.0) == (value > 0.0) {
                f64::from_bits(value.to_bits() + 1)
            } else {
                f64::from_bits(value.to_bits() - 1)
            };
            gpu_arithmetic::soft::convert(
                gpu_arithmetic::soft::F64, BF16, odd.to_bits(), Round::Rn, Overflow::Infinite) as u16
        };
        let product = x * y;
        let fused = product + z;
        let part = fused - product;
        let error = (product - (fused - part)) + (z - part);
        let error = if error.is_nan() { 0.0 } else { error };
        prop_assert_eq!(half::fma::<Bfloat16>(a, b, c), expected(fused, error));
        prop_assert_eq!(half::mul::<Bfloat16>(a, b), expected(product, 0.0));
        let sum = x + z;
        let part = sum - x;
        let error = (x - (sum - part)) + (z - part);
        let error = if error.is_nan() { 0.0 } else { error };
        prop_assert_eq!(half::add::<Bfloat16>(a, c), expected(sum, error));
    }

    #[test]
    fn half_minimum_and_maximum_order_zeros_and_skip_nan(a: u16, b: u16) {
        let wide = |c: u16| half::f16_to_f32(c);
        let (low, high) = (half::min::<Fp16>(a, b), half::max::<Fp16>(a, b));
        if Fp16::is_nan(a) || Fp16::is_nan(b) {
            let other = if Fp16::is_nan(a) { b } else { a };
            let other = if Fp16::is_nan(other) { half::NAN } else { other };
            prop_assert_eq!((low, high), (other, other));
            prop_assert_eq!(half::min_nan::<Fp16>(a, b), half::NAN);
            prop_assert_eq!(half::max_nan::<Fp16>(a, b), half::NAN);
        } else if wide(a).total_cmp(&wide(b)).is_le() {
            prop_assert_eq!((low, high), (a, b));
        } else {
            prop_assert_eq!((low, high), (b, a));
        }
    }
}

/// Rounds a fixed-point value well inside the range of bf16 by the host's integer cast.
fn round_bf16(exact: i128, unit: i32) -> u16 {
    // To double, to odd; then half-to-even on the double's fraction.
    let mut near = exact as f64;
    let back = near as i128;
    if back != exact && near.to_bits() & 1 == 0 {
        near = if back < exact {
            near.next_up()
        } else {
            near.next_down()
        };
    }
    let bits = (near * 2.0_f64.powi(-unit)).to_bits();
    let odd = (bits >> 45) & 1;
    let rounded = (bits + ((1 << 44) - 1) + odd) >> 45;
    let sign = (rounded >> 18) as u16 & 1;
    let exponent = ((rounded >> 7) & 0x7ff) as i32 - 1023 + 127;
    if exact == 0 {
        0
    } else {
        sign << 15 | (exponent as u16) << 7 | (rounded & 0x7f) as u16
    }
}

#[test]
fn packed_operations_work_on_both_halves() {
    let a = half::pack(0x3c00, 0xc000);
    assert_eq!(
        half::map2(a, a, half::add::<Fp16>),
        half::pack(0x4000, 0xc400)
    );
    assert_eq!(
        half::map3(a, a, a, half::fma::<Fp16>),
        half::pack(0x4000, 0x4000)
    );
    assert_eq!(half::map1(a, half::relu::<Fp16>), half::pack(0x3c00, 0));
    assert_eq!(Fp16::flush(0x83ff), 0x8000);
    assert_eq!(Bfloat16::flush(0x007f), 0);
}
