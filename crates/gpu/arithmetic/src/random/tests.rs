use super::{Toss, product_error, sum_error};
use crate::half::{Fp16, Half};

fn tosses(precision: u32) -> [Toss; 2] {
    [false, true].map(|away| Toss {
        precision,
        away,
        second: away,
    })
}

#[test]
fn an_inexact_single_moves_to_either_neighbour_and_an_exact_one_stays() {
    let (a, b) = (1.0_f32, 1e-9_f32);
    let exact = f64::from(a) + f64::from(b);
    let [low, high] = tosses(24).map(|toss| toss.single(a + b, exact));
    assert_eq!((low, high), (1.0, 1.0 + f32::EPSILON));
    for toss in tosses(24) {
        assert_eq!(toss.single(3.0, 3.0), 3.0);
        assert_eq!(toss.single(f32::INFINITY, 1e39), f32::INFINITY);
        assert_eq!(toss.single(1e-40, 1.000_000_1e-40), 1e-40);
    }
    let [low, high] = tosses(24).map(|toss| toss.single(-(a + b), -exact));
    assert_eq!((low, high), (-1.0, -1.0 - f32::EPSILON));
}

#[test]
fn a_lower_precision_keeps_fewer_bits() {
    let value = 1.0 + 2_f64.powi(-20);
    let [low, high] = tosses(11).map(|toss| toss.single(value as f32, value));
    assert_eq!((low, high), (1.0, 1.0 + 2_f32.powi(-10)));
    let [low, high] = tosses(24).map(|toss| toss.double(1.0 + 2_f64.powi(-30), 0.0));
    assert_eq!((low, high), (1.0, 1.0 + 2_f64.powi(-23)));
}

#[test]
fn a_double_moves_to_the_neighbour_on_the_side_of_its_error() {
    let (a, b) = (1.0_f64, 1e-20_f64);
    let [low, high] = tosses(53).map(|toss| toss.double(a + b, sum_error(a, b)));
    assert_eq!((low, high), (1.0, 1.0 + f64::EPSILON));
    let [low, high] = tosses(53).map(|toss| toss.double(a - b, sum_error(a, -b)));
    assert_eq!((low, high), (1.0 - f64::EPSILON / 2.0, 1.0));
    assert_eq!(product_error(2.0, 3.0), 0.0);
}

#[test]
fn a_half_moves_within_its_own_format() {
    let exact = 1.0 + 2_f64.powi(-12);
    let [low, high] = tosses(24).map(|toss| Fp16::widen(toss.half::<Fp16>(0x3c00, exact)));
    assert_eq!((low, high), (1.0, 1.0 + 2_f32.powi(-10)));
}

#[test]
fn an_approximate_result_moves_by_a_last_place_at_most_unless_it_is_whole() {
    let value = 1.3_f32;
    for away in [false, true] {
        for second in [false, true] {
            let toss = Toss {
                precision: 24,
                away,
                second,
            };
            assert!((toss.approximate(value) - value).abs() <= f32::EPSILON);
            assert_eq!(toss.approximate(0.25), 0.25);
            assert_eq!(toss.approximate(3.0), 3.0);
        }
    }
}

/// The definition of [`Toss::single_fused`] with branches.
fn fused_by_branches(toss: Toss, a: f32, b: f32, c: f32) -> f32 {
    let code = c.to_bits() & 0x7fff_ffff;
    if code == 0x4b00_0000 || code.abs_diff(0x4b40_0000) <= 1 << 10 {
        return crate::single::fma_rn(a, b, c);
    }
    let product = f64::from(a) * f64::from(b);
    let rounded = toss.other().single(product as f32, product);
    if !rounded.is_normal() {
        return crate::single::fma_rn(a, b, c);
    }
    let exact = f64::from(rounded) + f64::from(c);
    toss.single(exact as f32, exact)
}

#[test]
fn a_fused_product_equals_its_definition_for_special_values_too() {
    let special = [
        0.0,
        -0.0,
        1.0,
        1.000_000_1,
        -3.3,
        1e-40,
        1e-30,
        1e30,
        f32::MAX,
        f32::MIN_POSITIVE,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        8_388_608.0,
        12_582_912.0,
        12_582_913.0,
        -12_583_936.0,
        12_583_937.0,
        0.1,
        1234.567,
    ];
    for toss in tosses(24).into_iter().chain(tosses(11)) {
        for a in special {
            for b in special {
                for c in special {
                    let expected = fused_by_branches(toss, a, b, c);
                    let actual = toss.single_fused(a, b, c);
                    assert_eq!(actual.to_bits(), expected.to_bits(), "{a} · {b} + {c}");
                }
            }
        }
    }
}
