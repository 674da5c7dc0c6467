//! Single and double arithmetic: against the host's own operations (to nearest) and exact
//! fixed-point integers (every mode).

use super::model::{MODES, any_f32, any_f64, fixed_to_f32, fixed_to_f64, same64};
use gpu_arithmetic::soft::{self, F32, F64};
use gpu_arithmetic::{Lanes, Round, double, single};
use proptest::prelude::*;

fn soft32(f: impl Fn(u64, u64) -> u64, a: f32, b: f32) -> f32 {
    f32::from_bits(f(a.to_bits().into(), b.to_bits().into()) as u32)
}

fn soft64(f: impl Fn(u64, u64) -> u64, a: f64, b: f64) -> f64 {
    f64::from_bits(f(a.to_bits(), b.to_bits()))
}

/// A single as a multiple of 2^-59, for magnitudes in [2^-36, 2^2).
fn fixed(x: f32) -> i128 {
    (f64::from(x) * 2.0_f64.powi(59)) as i128
}

fn moderate_f32() -> impl Strategy<Value = f32> {
    (91_u32..129, any::<u32>(), any::<bool>(), 0_u32..24).prop_map(|(e, f, s, z)| {
        f32::from_bits(u32::from(s) << 31 | e << 23 | (f & 0x007f_ffff) >> z << z)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn warp_fma_is_the_lane_wise_one(
        a in prop::collection::vec(any_f32(), 32),
        b in prop::collection::vec(any_f32(), 32),
        c in prop::collection::vec(any_f32(), 32),
    ) {
        let lanes = |v: &[f32]| -> Lanes { std::array::from_fn(|i| v[i].to_bits()) };
        let d = single::fma_rn_lanes::<false>(&lanes(&a), &lanes(&b), &lanes(&c));
        let plain = single::fma_emulated::<false>(&lanes(&a), &lanes(&b), &lanes(&c));
        for i in 0..32 {
            let expected = single::canonical(a[i].mul_add(b[i], c[i]));
            prop_assert_eq!(d[i], expected.to_bits(), "{} {} {}", a[i], b[i], c[i]);
            prop_assert_eq!(plain[i], d[i], "without the instruction: {} {} {}", a[i], b[i], c[i]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn soft_arithmetic_to_nearest_is_the_hosts(a in any_f64(), b in any_f64(), c in any_f64()) {
        let rn = Round::Rn;
        prop_assert!(same64(soft64(|x, y| soft::add(F64, x, y, rn), a, b), a + b));
        prop_assert!(same64(soft64(|x, y| soft::mul(F64, x, y, rn), a, b), a * b));
        prop_assert!(same64(soft64(|x, y| soft::div(F64, x, y, rn), a, b), a / b));
        prop_assert!(same64(soft64(|x, _| soft::sqrt(F64, x, rn), a, b), a.sqrt()));
        let fused = soft::fma(F64, a.to_bits(), b.to_bits(), c.to_bits(), rn);
        prop_assert!(same64(f64::from_bits(fused), a.mul_add(b, c)));
    }

    #[test]
    fn soft_single_arithmetic_to_nearest_is_the_hosts(a in any_f32(), b in any_f32()) {
        let rn = Round::Rn;
        let same = |x: f32, y: f32| x.to_bits() == single::canonical(y).to_bits();
        prop_assert!(same(soft32(|x, y| soft::add(F32, x, y, rn), a, b), a + b));
        prop_assert!(same(soft32(|x, y| soft::mul(F32, x, y, rn), a, b), a * b));
        prop_assert!(same(soft32(|x, y| soft::div(F32, x, y, rn), a, b), a / b));
        let root = if a < 0.0 { f32::NAN } else { a.sqrt() };
        prop_assert!(same(soft32(|x, _| soft::sqrt(F32, x, rn), a, b), root));
    }

    #[test]
    fn single_operations_agree_with_soft_in_every_mode(
        a in any_f32(), b in any_f32(), c in any_f32(),
    ) {
        let [x, y, z] = [a, b, c].map(|v| u64::from(v.to_bits()));
        for mode in MODES {
            let bits = |v: f32| u64::from(v.to_bits());
            prop_assert_eq!(bits(single::add(a, b, mode)), soft::add(F32, x, y, mode));
            prop_assert_eq!(bits(single::sub(a, b, mode)), soft::add(F32, x, y ^ 0x8000_0000, mode));
            prop_assert_eq!(bits(single::mul(a, b, mode)), soft::mul(F32, x, y, mode));
            prop_assert_eq!(bits(single::fma(a, b, c, mode)), soft::fma(F32, x, y, z, mode));
            prop_assert_eq!(bits(single::div(a, b, mode)), soft::div(F32, x, y, mode));
            prop_assert_eq!(bits(single::sqrt(a, mode)), soft::sqrt(F32, x, mode));
        }
    }

    #[test]
    fn single_sums_and_products_are_the_rounded_exact_ones(
        a in moderate_f32(), b in moderate_f32(), c in moderate_f32(),
    ) {
        for mode in MODES {
            let sum = fixed(a) + fixed(b);
            if sum != 0 {
                prop_assert_eq!(single::add(a, b, mode), fixed_to_f32(sum, 59, mode));
            }
            let fused = fixed(a) * fixed(b) + (fixed(c) << 59);
            if fused != 0 {
                prop_assert_eq!(single::fma(a, b, c, mode), fixed_to_f32(fused, 118, mode));
            }
            prop_assert_eq!(single::mul(a, b, mode), fixed_to_f32(fixed(a) * fixed(b), 118, mode));
        }
    }

    #[test]
    fn double_sums_and_products_are_the_rounded_exact_ones(
        a in -(1_i64 << 53)..1 << 53, b in -(1_i64 << 53)..1 << 53, c in any::<i64>(), e in 0_i32..60,
    ) {
        let (x, y) = (a as f64, b as f64);
        let small = x * 2.0_f64.powi(-e);
        let addend = c as f64;
        for mode in MODES {
            let sum = i128::from(a) + (i128::from(b) << e);
            if sum != 0 {
                prop_assert_eq!(double::add(small, y, mode), fixed_to_f64(sum, e, mode));
            }
            let product = i128::from(a) * i128::from(b);
            if product != 0 {
                prop_assert_eq!(double::mul(x, y, mode), fixed_to_f64(product, 0, mode));
            }
            let fused = product + addend as i128;
            if fused != 0 {
                prop_assert_eq!(double::fma(x, y, addend, mode), fixed_to_f64(fused, 0, mode));
            }
        }
    }

    #[test]
    fn quotients_and_roots_bracket_the_exact_ones(a in 1_i64..1 << 53, b in 1_i64..1 << 53) {
        let (x, y) = (a as f64, b as f64);
        let down = double::div(x, y, Round::Rm);
        let up = double::div(x, y, Round::Rp);
        prop_assert!(down == up || down.next_up() == up);
        prop_assert_eq!(double::div(x, y, Round::Rz), down);
        prop_assert_eq!(double::div(-x, y, Round::Rz), -down);
        prop_assert_eq!(down == up, soft::div(F64, x.to_bits(), y.to_bits(), Round::Rn) == down.to_bits()
            && down.mul_add(y, -x) == 0.0);
        prop_assert!(down.mul_add(y, -x) <= 0.0 && up.mul_add(y, -x) >= 0.0);
        let (low, high) = (double::sqrt(x, Round::Rm), double::sqrt(x, Round::Rp));
        prop_assert!(low == high || low.next_up() == high);
        prop_assert!(low.mul_add(low, -x) <= 0.0 && high.mul_add(high, -x) >= 0.0);
    }

    #[test]
    fn minimum_and_maximum_follow_the_nan_and_zero_rules(a in any_f32(), b in any_f32()) {
        let (low, high) = (single::min(a, b), single::max(a, b));
        match (a.is_nan(), b.is_nan()) {
            (true, true) => {
                prop_assert_eq!(low.to_bits(), single::NAN_BITS);
                prop_assert_eq!(high.to_bits(), single::NAN_BITS);
            }
            (true, false) => prop_assert!(low.to_bits() == b.to_bits() && high.to_bits() == b.to_bits()),
            (false, true) => prop_assert!(low.to_bits() == a.to_bits() && high.to_bits() == a.to_bits()),
            _ => {
                let expected = if a.total_cmp(&b).is_le() { (a, b) } else { (b, a) };
                prop_assert_eq!((low.to_bits(), high.to_bits()), (expected.0.to_bits(), expected.1.to_bits()));
            }
        }
        if a.is_nan() || b.is_nan() {
            prop_assert_eq!(single::min_nan(a, b).to_bits(), single::NAN_BITS);
            prop_assert_eq!(single::max_nan(a, b).to_bits(), single::NAN_BITS);
        }
    }

    #[test]
    fn double_minimum_and_maximum_follow_the_nan_and_zero_rules(a in any_f64(), b in any_f64()) {
        let (low, high) = (double::min(a, b), double::max(a, b));
        match (a.is_nan(), b.is_nan()) {
            (true, true) => prop_assert!(low.is_nan() && high.is_nan()),
            (true, false) => prop_assert!(low.to_bits() == b.to_bits() && high.to_bits() == b.to_bits()),
            (false, true) => prop_assert!(low.to_bits() == a.to_bits() && high.to_bits() == a.to_bits()),
            _ => prop_assert!(low.total_cmp(&high).is_le() && (same64(low, a) && same64(high, b)
                || same64(low, b) && same64(high, a))),
        }
    }
}

#[test]
fn ties_and_subnormals_are_fused_right() {
    // 1 + 2^-24 is a tie; a term of 2^-80 must break it either way.
    let tie = 1.0 + f32::EPSILON;
    let small = 2.0_f32.powi(-40);
    assert_eq!(single::fma_rn(small, small, 1.0), 1.0);
    let half_ulp = 2.0_f32.powi(-12);
    for (c, expected) in [(1.0_f32, 1.0_f32), (tie, tie + f32::EPSILON)] {
        assert_eq!(single::fma_rn(half_ulp, half_ulp, c), expected);
    }
    let a = f32::from_bits(0x0080_0001);
    assert_eq!(single::fma_rn(a, 0.5, 0.0), a.mul_add(0.5, 0.0));
    assert_eq!(single::fma_rn(a, 0.5, 1e-45), a.mul_add(0.5, 1e-45));
}

#[test]
fn flush_and_saturation_treat_zeros_and_nan_as_the_isa_says() {
    let bits = |x: f32| x.to_bits();
    assert_eq!(bits(single::ftz(-1e-40)), 0x8000_0000);
    assert_eq!(bits(single::ftz(1e-40)), 0);
    assert_eq!(bits(single::ftz(f32::MIN_POSITIVE)), 0x0080_0000);
    assert!(single::ftz(f32::NAN).is_nan());
    for (x, expected) in [
        (f32::NAN, 0.0),
        (-0.0, 0.0),
        (-3.0, 0.0),
        (0.25, 0.25),
        (7.0, 1.0),
    ] {
        assert_eq!(bits(single::sat(x)), bits(expected));
    }
    assert_eq!(bits(single::sat(f32::INFINITY)), bits(1.0));
    assert_eq!(
        bits(single::add_rn(f32::INFINITY, f32::NEG_INFINITY)),
        0x7fff_ffff
    );
    assert_eq!(
        bits(single::xorsign_abs(-1.0, 2.0, single::min)),
        bits(-1.0)
    );
    assert_eq!(
        bits(single::xorsign_abs(-1.0, -2.0, single::max)),
        bits(2.0)
    );
}
