//! Approximations: dense samples against double-precision references, and the special values.

use gpu_arithmetic::approx;
use gpu_arithmetic::half::{self, Bfloat16, Fp16, Half};

/// Every `step`-th bit pattern, so that all binades of both signs occur.
fn patterns(step: usize) -> impl Iterator<Item = f32> {
    (0..=u32::MAX)
        .step_by(step)
        .map(f32::from_bits)
        .filter(|x| x.is_finite())
}

fn linear(low: f32, high: f32, count: u32) -> impl Iterator<Item = f32> {
    (0..=count).map(move |i| low + (high - low) * (i as f32 / count as f32))
}

fn relative(got: f32, exact: f64) -> f64 {
    (f64::from(got) - exact).abs() / exact.abs()
}

/// Error in units in the last place of the exact value, subnormals included.
fn ulps(got: f32, exact: f64) -> f64 {
    let exponent = exact.abs().log2().floor().max(-126.0) as i32;
    (f64::from(got) - exact).abs() / 2.0_f64.powi(exponent - 23)
}

#[test]
fn ex2_is_within_its_two_documented_ulps_everywhere() {
    let inputs = linear(-150.0, 128.5, 4_000_000).chain(linear(-1.0, 1.0, 1_000_000));
    let mut worst = 0.0_f64;
    for x in inputs.chain(patterns(20_011)) {
        let exact = f64::from(x).exp2();
        let got = approx::ex2(x);
        if exact > 3.402_823_5e38 {
            assert_eq!(got, f32::INFINITY, "{x}");
        } else if exact < 0.6e-45 {
            assert_eq!(got.to_bits(), 0, "{x}");
        } else {
            worst = worst.max(ulps(got, exact));
        }
    }
    assert!(worst <= 1.25, "worst error {worst} ulp");
}

#[test]
fn ex2_of_integers_and_specials_is_exact() {
    for n in -149..128 {
        let exact = 2.0_f64.powi(n) as f32;
        assert_eq!(approx::ex2(n as f32).to_bits(), exact.to_bits());
    }
    assert_eq!(approx::ex2(f32::NEG_INFINITY).to_bits(), 0);
    assert_eq!(approx::ex2(f32::INFINITY), f32::INFINITY);
    assert_eq!(approx::ex2(f32::NAN).to_bits(), 0x7fff_ffff);
    assert_eq!(approx::ex2(-1e-40), 1.0);
}

#[test]
fn lg2_is_within_its_documented_error() {
    let bound = 2.0_f64.powi(-22);
    for x in patterns(5_003)
        .chain(linear(0.4, 2.1, 1_000_000))
        .filter(|x| *x > 0.0)
    {
        let exact = f64::from(x).log2();
        let error = (f64::from(approx::lg2(x)) - exact).abs();
        let limit = if x > 0.5 && x < 2.0 {
            bound
        } else {
            bound * exact.abs()
        };
        assert!(error <= limit, "lg2({x}) off by {error}");
    }
    for n in -149..128 {
        assert_eq!(approx::lg2(2.0_f64.powi(n) as f32), n as f32);
    }
    assert_eq!(approx::lg2(0.0), f32::NEG_INFINITY);
    assert_eq!(approx::lg2(-0.0), f32::NEG_INFINITY);
    assert_eq!(approx::lg2(f32::INFINITY), f32::INFINITY);
    assert_eq!(approx::lg2(-1.0).to_bits(), 0x7fff_ffff);
    assert_eq!(approx::lg2(f32::NEG_INFINITY).to_bits(), 0x7fff_ffff);
    assert_eq!(approx::lg2(-1e-45).to_bits(), 0x7fff_ffff);
}

#[test]
fn reciprocals_and_roots_are_within_half_an_ulp_or_so() {
    for x in patterns(5_003).filter(|x| *x > 0.0) {
        let wide = f64::from(x);
        assert!(ulps(approx::sqrt(x), wide.sqrt()) <= 0.51);
        assert!(ulps(approx::rsqrt(x), 1.0 / wide.sqrt()) <= 0.51);
        if 1.0 / wide < 3.4e38 {
            assert!(ulps(approx::rcp(x), 1.0 / wide) <= 0.51);
            assert!(ulps(approx::rcp(-x), -1.0 / wide) <= 0.51);
        }
    }
    assert_eq!(approx::rsqrt(0.0), f32::INFINITY);
    assert_eq!(approx::rsqrt(-0.0), f32::NEG_INFINITY);
    assert_eq!(approx::rsqrt(f32::INFINITY).to_bits(), 0);
    assert_eq!(approx::rsqrt(-1e-45).to_bits(), 0x7fff_ffff);
    assert_eq!(approx::sqrt(-0.0).to_bits(), 0x8000_0000);
    assert_eq!(approx::sqrt(-1e-45).to_bits(), 0x7fff_ffff);
    assert_eq!(approx::rcp(-0.0), f32::NEG_INFINITY);
    assert_eq!(approx::rcp(f32::NEG_INFINITY).to_bits(), 0x8000_0000);
}

#[test]
fn approximate_division_fails_for_huge_divisors_as_documented() {
    assert_eq!(approx::div(1.0, 3.0), 1.0 / 3.0);
    assert_eq!(approx::div(f32::MAX, 2e38), 0.0);
    assert_eq!(approx::div(-f32::MAX, 2e38).to_bits(), 0x8000_0000);
    assert!(approx::div(f32::INFINITY, 2e38).is_nan());
    assert_eq!(approx::div(1.0, f32::INFINITY), 0.0);
    assert_eq!(approx::div(f32::INFINITY, 2.0_f32.powi(126)), f32::INFINITY);
    assert_eq!(approx::div_full(f32::MAX, 2e38), f32::MAX / 2e38);
}

#[test]
fn sine_and_cosine_are_within_their_documented_error() {
    let bound = 2.0_f64.powf(-20.9);
    let inputs = linear(-std::f32::consts::PI, std::f32::consts::PI, 2_000_000);
    for x in inputs {
        let wide = f64::from(x);
        assert!(
            (f64::from(approx::sin(x)) - wide.sin()).abs() <= bound,
            "sin {x}"
        );
        assert!(
            (f64::from(approx::cos(x)) - wide.cos()).abs() <= bound,
            "cos {x}"
        );
    }
    // Beyond, the quotient by 2π has the precision of a single: an error of half a unit in the last
    // place of the angle at least, and of three units at most.
    let mut worst = 0.0_f64;
    for x in linear(900.0, 1000.0, 100_000) {
        let error = (f64::from(approx::sin(x)) - f64::from(x).sin()).abs();
        assert!(error <= 3.0 * 2.0_f64.powi(-14), "sin {x}");
        worst = worst.max(error);
    }
    assert!(worst >= 2.0_f64.powi(-15), "{worst}");
    for x in patterns(20_011) {
        assert!(
            approx::sin(x).abs() <= 1.0 && approx::cos(x).abs() <= 1.0,
            "{x}"
        );
    }
    assert_eq!(approx::sin(-0.0).to_bits(), 0x8000_0000);
    assert_eq!(approx::sin(1e-40), 1e-40);
    assert_eq!(approx::cos(0.0), 1.0);
    for x in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
        assert_eq!(approx::sin(x).to_bits(), 0x7fff_ffff);
        assert_eq!(approx::cos(x).to_bits(), 0x7fff_ffff);
    }
}

#[test]
fn tanh_is_within_its_documented_error() {
    let mut worst = 0.0_f64;
    for x in linear(-12.0, 12.0, 2_000_000)
        .chain(patterns(20_011))
        .filter(|x| *x != 0.0)
    {
        worst = worst.max(relative(approx::tanh(x), f64::from(x).tanh()));
    }
    assert!(worst <= 2.0_f64.powi(-11), "worst relative error {worst:e}");
    assert_eq!(approx::tanh(-0.0).to_bits(), 0x8000_0000);
    assert_eq!(approx::tanh(f32::INFINITY), 1.0);
    assert_eq!(approx::tanh(f32::NEG_INFINITY), -1.0);
    assert_eq!(approx::tanh(f32::NAN).to_bits(), 0x7fff_ffff);
}

fn check_halves<H: Half>(ex2_bound: f64, tanh_bound: f64) {
    for code in (0..=u16::MAX).filter(|c| !H::is_nan(*c)) {
        let x = f64::from(H::widen(code));
        let exact = x.exp2();
        let got = f64::from(H::widen(approx::ex2_half::<H>(code)));
        if got.is_finite() && exact > 1e-37 && (got > 6.2e-5 || !H::EXACT_PRODUCT) {
            assert!((got - exact).abs() <= ex2_bound * exact, "ex2({x}) = {got}");
        }
        let got = f64::from(H::widen(approx::tanh_half::<H>(code)));
        assert!((got - x.tanh()).abs() <= tanh_bound, "tanh({x}) = {got}");
    }
}

#[test]
fn half_approximations_are_within_their_documented_error() {
    check_halves::<Fp16>(2.0_f64.powf(-9.9), 2.0_f64.powf(-10.987));
    check_halves::<Bfloat16>(2.0_f64.powi(-7), 2.0_f64.powi(-8));
    assert_eq!(approx::ex2_half::<Fp16>(0xfc00), 0);
    assert_eq!(approx::ex2_half::<Fp16>(0x7c00), 0x7c00);
    assert_eq!(approx::ex2_half::<Fp16>(0x7e00), half::NAN);
    assert_eq!(approx::tanh_half::<Bfloat16>(0xff80), 0xbf80);
}

#[test]
fn double_approximations_give_the_upper_word() {
    for x in [1.0, 3.0, -7.5, 1e300, 1e-300, 0.1] {
        let r = approx::rcp_f64(x);
        assert_eq!(r.to_bits() & 0xffff_ffff, 0);
        assert!((r * x - 1.0).abs() < 2.0_f64.powi(-20));
        let r = approx::rsqrt_f64(f64::abs(x), false);
        assert!((r * r * x.abs() - 1.0).abs() < 2.0_f64.powi(-19));
    }
    assert_eq!(approx::rcp_f64(5e-324), f64::INFINITY);
    assert_eq!(approx::rcp_f64(f64::NEG_INFINITY).to_bits(), 1 << 63);
    assert_eq!(approx::rsqrt_f64(5e-324, true), f64::INFINITY);
    assert!(approx::rsqrt_f64(5e-324, false).is_finite());
    assert!(approx::rsqrt_f64(-1.0, false).is_nan());
}
