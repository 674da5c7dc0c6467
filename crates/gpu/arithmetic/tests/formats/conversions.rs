//! Conversions: small formats exhaustively against tables, integers against 128-bit arithmetic.

use super::model::{MODES, Table, any_f32, any_f64};
use gpu_arithmetic::convert::{self, IntType};
use gpu_arithmetic::small::{self, Small};
use gpu_arithmetic::soft::{self, E2M1, E2M3, E3M2, E4M3, E5M2, F16, F32, F64, Format};
use gpu_arithmetic::{Overflow, Round, half, single};
use proptest::prelude::*;

const INTS: [IntType; 8] = [
    IntType {
        bits: 8,
        signed: false,
    },
    IntType {
        bits: 8,
        signed: true,
    },
    IntType {
        bits: 16,
        signed: false,
    },
    IntType {
        bits: 16,
        signed: true,
    },
    IntType {
        bits: 32,
        signed: false,
    },
    IntType {
        bits: 32,
        signed: true,
    },
    IntType {
        bits: 64,
        signed: false,
    },
    IntType {
        bits: 64,
        signed: true,
    },
];

const SMALL: [(Small, Format, f32); 5] = [
    (Small::E4m3, E4M3, 448.0),
    (Small::E5m2, E5M2, 57344.0),
    (Small::E2m3, E2M3, 7.5),
    (Small::E3m2, E3M2, 28.0),
    (Small::E2m1, E2M1, 6.0),
];

#[test]
fn every_small_code_has_its_value_and_converts_back() {
    for (kind, format, largest) in SMALL {
        let table = Table::new(format, 40);
        let sign = 1_u16 << (format.exponent + format.fraction);
        for code in 0..sign {
            let value = small::to_f32(kind, code as u8);
            if u64::from(code) > format.max_finite() {
                assert!(value.is_nan() || value.is_infinite(), "{kind:?} {code:02x}");
                continue;
            }
            assert_eq!(table.fixed_from_f64(value.into()), table.fixed(code.into()));
            assert!(value <= largest);
            assert_eq!(u16::from(small::from_f32(kind, value, false)), code);
            let negative = small::to_f32(kind, (code | sign) as u8);
            assert_eq!(negative.to_bits(), value.to_bits() | 0x8000_0000);
            assert_eq!(u16::from(small::from_f32(kind, negative, true)), 0);
        }
        assert_eq!(
            small::from_f32(kind, f32::INFINITY, false),
            format.max_finite() as u8
        );
        assert_eq!(small::from_f32(kind, f32::NAN, true), format.nan() as u8);
        assert_eq!(small::to_f32(kind, format.max_finite() as u8), largest);
    }
}

#[test]
fn every_f16_converts_to_small_formats_rounded_to_nearest() {
    for (kind, format, largest) in SMALL {
        let table = Table::new(format, 40);
        for code in (0..=u16::MAX).filter(|c| c & 0x7c00 != 0x7c00) {
            let x = half::f16_to_f32(code);
            let saturated = x.clamp(-largest, largest);
            let exact = table.fixed_from_f64(saturated.into());
            let expected = table.round(exact, Round::Rn, x.is_sign_negative());
            assert_eq!(
                u64::from(small::from_f32(kind, x, false)),
                expected,
                "{kind:?} {x}"
            );
        }
    }
}

#[test]
fn tf32_keeps_ten_fraction_bits() {
    let rna = |x: f32| small::to_tf32(x, Round::Rna, Overflow::Infinite);
    assert_eq!(rna(f32::from_bits(0x3f80_1000)), 0x3f80_2000);
    assert_eq!(
        small::to_tf32(f32::from_bits(0x3f80_1000), Round::Rn, Overflow::Infinite),
        0x3f80_0000
    );
    assert_eq!(
        small::to_tf32(f32::from_bits(0x3f80_3000), Round::Rn, Overflow::Infinite),
        0x3f80_4000
    );
    assert_eq!(
        small::to_tf32(f32::from_bits(0xbf80_3fff), Round::Rz, Overflow::Infinite),
        0xbf80_2000
    );
    assert_eq!(rna(f32::MAX), 0x7f80_0000);
    assert_eq!(
        small::to_tf32(f32::MAX, Round::Rna, Overflow::Finite),
        0x7f7f_e000
    );
    assert_eq!(rna(f32::NAN), single::NAN_BITS);
    assert_eq!(rna(-0.0), 0x8000_0000);
}

#[test]
fn ue8m0_is_the_power_of_two() {
    let to = |x, round| small::to_ue8m0(x, round, Overflow::Finite);
    for code in 0..=254 {
        let value = small::ue8m0_to_f32(code);
        assert_eq!(to(value, Round::Rp), code);
        assert_eq!(to(value, Round::Rz), code);
        if code > 0 && code < 254 {
            assert_eq!(to(value * 1.5, Round::Rz), code);
            assert_eq!(to(value * 1.5, Round::Rp), code + 1);
        }
    }
    assert_eq!(to(f32::NAN, Round::Rz), 255);
    assert_eq!(to(f32::INFINITY, Round::Rz), 254);
}

/// The integral value in a direction as an integer, by truncation of the magnitude.
fn integral(x: f64, round: Round) -> i128 {
    let truncated = x as i128;
    let rest = x - truncated as f64;
    let up = match round {
        Round::Rz => false,
        Round::Rm => rest < 0.0,
        Round::Rp => rest > 0.0,
        _ => rest.abs() > 0.5 || (rest.abs() == 0.5 && truncated % 2 != 0),
    };
    let outward = if rest < 0.0 { -1 } else { 1 };
    if up {
        truncated.saturating_add(outward)
    } else {
        truncated
    }
}

fn edge_f64() -> impl Strategy<Value = f64> {
    // Integers and halves around the borders of the integer types.
    (0_u32..66, -4_i64..5, any::<bool>()).prop_map(|(power, step, negative)| {
        let x = 2.0_f64.powi(power as i32) + step as f64 / 2.0;
        if negative { -x } else { x }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn floats_become_clamped_integers(x in prop_oneof![any_f64(), edge_f64()]) {
        prop_assume!(!x.is_nan());
        for to in INTS {
            for mode in MODES {
                let (low, high) = to.range();
                let expected = integral(x, mode).clamp(low, high);
                let got = convert::float_to_int(x, true, to, mode);
                prop_assert_eq!(to.value(got), expected, "{} {:?} {:?}", x, to, mode);
                prop_assert_eq!(got, expected as u64);
            }
        }
    }

    #[test]
    fn integers_become_rounded_floats(register: u64, shift in 0_u32..64) {
        let register = register >> shift;
        for from in INTS {
            let exact = from.value(register);
            prop_assert_eq!(convert::int_to_f32(register, from, Round::Rn), exact as f32);
            prop_assert_eq!(convert::int_to_f64(register, from, Round::Rn), exact as f64);
            for mode in MODES {
                let f = convert::int_to_f32(register, from, mode);
                prop_assert_eq!(f, super::model::fixed_to_f32(exact, 0, mode));
                let d = convert::int_to_f64(register, from, mode);
                prop_assert_eq!(d, super::model::fixed_to_f64(exact, 0, mode));
            }
            let expected = convert::f64_to_f32(exact as f64, Round::Rn);
            if exact.unsigned_abs() < 1 << 24 {
                let half = convert::int_to_f16(register, from, Round::Rn);
                prop_assert_eq!(half, half::f32_to_f16(expected));
            }
        }
    }

    #[test]
    fn doubles_narrow_to_singles_in_every_mode(x in any_f64()) {
        let near = convert::f64_to_f32(x, Round::Rn);
        prop_assert_eq!(near.to_bits(), single::canonical(x as f32).to_bits());
        prop_assume!(!x.is_nan());
        let (down, up) = (convert::f64_to_f32(x, Round::Rm), convert::f64_to_f32(x, Round::Rp));
        prop_assert!(f64::from(down) <= x && x <= f64::from(up));
        prop_assert!(down.to_bits() == up.to_bits() || down.next_up() == up);
        let zero = if x.is_sign_negative() { up } else { down };
        prop_assert_eq!(convert::f64_to_f32(x, Round::Rz).to_bits(), zero.to_bits());
    }

    #[test]
    fn integral_rounding_keeps_the_sign_of_zero(x in any_f32()) {
        for mode in MODES {
            let r = convert::integral_f32(x, mode);
            if x.is_nan() {
                prop_assert_eq!(r.to_bits(), single::NAN_BITS);
            } else {
                prop_assert_eq!(r.is_sign_negative(), x.is_sign_negative());
                if x.abs() < 1e30 {
                    prop_assert_eq!(f64::from(r), integral(x.into(), mode) as f64);
                } else {
                    prop_assert_eq!(r, x);
                }
            }
        }
    }

    #[test]
    fn integers_narrow_by_truncation_or_clamping(register: u64) {
        for from in INTS {
            for to in INTS {
                let value = from.value(register);
                let (low, high) = to.range();
                let clamped = convert::int_to_int(register, from, to, true);
                prop_assert_eq!(to.value(clamped), value.clamp(low, high));
                let cut = convert::int_to_int(register, from, to, false);
                prop_assert_eq!((to.value(cut) - value).rem_euclid(1 << to.bits), 0);
            }
        }
    }

    #[test]
    fn halves_narrow_from_doubles_as_from_tables(x in -70000.0_f64..70000.0) {
        // Truncate to multiples of 2^-30 so that the fixed point is exact.
        let x = (x * 2.0_f64.powi(30)).trunc() * 2.0_f64.powi(-30);
        let table = Table::new(F16, 48);
        for mode in MODES {
            let code = soft::convert(F64, F16, x.to_bits(), mode, Overflow::Finite);
            let exact = table.fixed_from_f64(x.clamp(-65504.0, 65504.0));
            prop_assert_eq!(code, table.round(exact, mode, x.is_sign_negative()));
        }
    }
}

#[test]
fn nan_becomes_the_documented_integer() {
    let int = |bits, signed| IntType { bits, signed };
    let rz = Round::Rz;
    for to in INTS.into_iter().filter(|t| t.bits < 64) {
        assert_eq!(convert::float_to_int(f64::NAN, false, to, rz), 0);
    }
    let top = 1 << 63;
    assert_eq!(
        convert::float_to_int(f64::NAN, false, int(64, true), rz),
        top
    );
    assert_eq!(
        convert::float_to_int(f64::NAN, false, int(64, false), rz),
        top
    );
    assert_eq!(
        convert::float_to_int(f64::NAN, true, int(32, true), rz) as u32,
        0x8000_0000
    );
    assert_eq!(
        convert::float_to_int(f64::NAN, true, int(32, false), rz),
        0x8000_0000
    );
    assert_eq!(convert::f32_to_s32_rz(f32::NAN), 0);
    assert_eq!(convert::f32_to_s32_rz(-3e9), i32::MIN);
    assert_eq!(
        soft::convert(F32, F64, 0x7f80_0001, rz, Overflow::Infinite),
        0x7fff_ffff_ffff_ffff
    );
}
