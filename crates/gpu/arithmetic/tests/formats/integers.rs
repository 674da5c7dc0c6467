//! Integer helpers against bit-by-bit models in the words of the ISA.

use gpu_arithmetic::integer::{self, Permute};
use gpu_arithmetic::video::{Simd, Video};
use proptest::prelude::*;

fn bit(x: u64, i: u32) -> bool {
    i < 64 && x >> i & 1 == 1
}

/// `bfe` as the ISA's pseudo code states it.
fn bfe_model(a: u64, position: u32, length: u32, width: u32, signed: bool) -> u64 {
    let (pos, len, msb) = (position & 0xff, length & 0xff, width - 1);
    let sbit = signed && len != 0 && bit(a, (pos + len - 1).min(msb));
    (0..width)
        .filter(|&i| {
            if i < len && pos + i <= msb {
                bit(a, pos + i)
            } else {
                sbit
            }
        })
        .fold(0, |d, i| d | 1 << i)
}

/// `bfi` as the ISA's pseudo code states it.
fn bfi_model(a: u64, b: u64, position: u32, length: u32, width: u32) -> u64 {
    let (pos, len, msb) = (position & 0xff, length & 0xff, width - 1);
    let mut f = b;
    let mut i = 0;
    while i < len && pos + i <= msb {
        f = f & !(1 << (pos + i)) | u64::from(bit(a, i)) << (pos + i);
        i += 1;
    }
    f
}

/// `bfind` as the ISA's pseudo code states it.
fn bfind_model(a: u64, width: u32, signed: bool, shift_amount: bool) -> u32 {
    let msb = width - 1;
    let a = if signed && bit(a, msb) { !a } else { a };
    match (0..width).rev().find(|&i| bit(a, i)) {
        Some(i) => {
            if shift_amount {
                msb - i
            } else {
                i
            }
        }
        None => u32::MAX,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn lop3_looks_every_bit_up(a: u32, b: u32, c: u32, table: u8) {
        let d = integer::lop3(a, b, c, table);
        for i in 0..32 {
            let index = (a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1);
            prop_assert_eq!(d >> i & 1, u32::from(table) >> index & 1);
        }
    }

    #[test]
    fn bit_fields_follow_the_pseudo_code(
        a: u64, b: u64, p in 0_u32..300, l in 0_u32..300, near_p in 0_u32..70, near_l in 0_u32..70,
    ) {
        for (p, l) in [(p, l), (near_p, near_l), (near_p, l)] {
            for signed in [false, true] {
                let low = a & 0xffff_ffff;
                prop_assert_eq!(integer::bfe(low, p, l, 32, signed), bfe_model(low, p, l, 32, signed));
                prop_assert_eq!(integer::bfe(a, p, l, 64, signed), bfe_model(a, p, l, 64, signed));
            }
            let (x, y) = (a & 0xffff_ffff, b & 0xffff_ffff);
            prop_assert_eq!(integer::bfi(x, y, p, l, 32), bfi_model(x, y, p, l, 32));
            prop_assert_eq!(integer::bfi(a, b, p, l, 64), bfi_model(a, b, p, l, 64));
        }
    }

    #[test]
    fn the_highest_bit_is_found(a: u64, shift in 0_u32..64, negate: bool) {
        let a = if negate { !(a >> shift) } else { a >> shift };
        for signed in [false, true] {
            for amount in [false, true] {
                let low = a & 0xffff_ffff;
                prop_assert_eq!(
                    integer::bfind(low, 32, signed, amount), bfind_model(low, 32, signed, amount));
                prop_assert_eq!(
                    integer::bfind(a, 64, signed, amount), bfind_model(a, 64, signed, amount));
            }
        }
    }

    #[test]
    fn dot_products_add_up(a: u32, b: u32, c: u32) {
        let byte = |x: u32, i: usize, signed: bool| {
            let v = x.to_le_bytes()[i];
            if signed { i64::from(v as i8) } else { i64::from(v) }
        };
        let half = |x: u32, i: u32, signed: bool| {
            let v = (x >> (16 * i)) as u16;
            if signed { i64::from(v as i16) } else { i64::from(v) }
        };
        for (s, t) in [(false, false), (false, true), (true, false), (true, true)] {
            let sum: i64 = (0..4).map(|i| byte(a, i, s) * byte(b, i, t)).sum();
            prop_assert_eq!(integer::dp4a(a, b, c, s, t), (i64::from(c) + sum) as u32);
            for high in [false, true] {
                let at = if high { 2 } else { 0 };
                let sum: i64 = (0..2).map(|i| half(a, i as u32, s) * byte(b, i + at, t)).sum();
                prop_assert_eq!(integer::dp2a(a, b, c, s, t, high), (i64::from(c) + sum) as u32);
            }
        }
    }

    #[test]
    fn funnel_shifts_move_the_pair(low: u32, high: u32, n in 0_u32..70) {
        let pair = u128::from(u64::from(high) << 32 | u64::from(low));
        for wrap in [false, true] {
            let k = if wrap { n % 32 } else { n.min(32) };
            prop_assert_eq!(integer::shf(low, high, n, true, wrap), ((pair << k) >> 32) as u32);
            prop_assert_eq!(integer::shf(low, high, n, false, wrap), (pair >> k) as u32);
        }
    }

    #[test]
    fn saturating_and_24_bit_arithmetic_is_exact(a: u32, b: u32, c: u32) {
        let [x, y, z] = [a, b, c].map(|v| i64::from(v as i32));
        let clamp = |v: i64| v.clamp(i32::MIN.into(), i32::MAX.into()) as u32;
        prop_assert_eq!(integer::add_sat(a, b), clamp(x + y));
        prop_assert_eq!(integer::sub_sat(a, b), clamp(x - y));
        prop_assert_eq!(integer::mad_hi_sat(a, b, c), clamp(((x * y) >> 32) + z));
        prop_assert_eq!(integer::sad(a, b, c, true), (z + (x - y).abs()) as u32);
        let narrow = |v: u32| i64::from(v & 0xff_ffff) - if v & 0x80_0000 != 0 { 1 << 24 } else { 0 };
        let product = narrow(a) * narrow(b);
        prop_assert_eq!(integer::mul24(a, b, true, false), product as u32);
        prop_assert_eq!(integer::mul24(a, b, true, true), (product >> 16) as u32);
        prop_assert_eq!(integer::mad24_hi_sat(a, b, c), clamp((product >> 16) + z));
        let product = u64::from(a & 0xff_ffff) * u64::from(b & 0xff_ffff);
        prop_assert_eq!(integer::mul24(a, b, false, true), (product >> 16) as u32);
    }

    #[test]
    fn masks_and_extensions_count_bits(a: u32, p in 0_u32..40, n in 0_u32..40) {
        let ones = |p: u32, n: u32| (0..32).filter(|i| (p..p + n).contains(i)).fold(0, |m, i| m | 1 << i);
        prop_assert_eq!(integer::bmsk(p, n, false), ones(p, n.min(32)));
        prop_assert_eq!(integer::bmsk(p, n, true), ones(p % 32, n % 32));
        let model = |n: u32, signed: bool| {
            let sign = signed && n > 0 && a >> (n - 1) & 1 == 1;
            (0..32).filter(|&i| if i < n { a >> i & 1 == 1 } else { sign }).fold(0, |m, i| m | 1_u32 << i)
        };
        for signed in [false, true] {
            prop_assert_eq!(integer::szext(a, n, signed, false), model(n.min(32), signed));
            prop_assert_eq!(integer::szext(a, n, signed, true), model(n % 32, signed));
        }
    }

    #[test]
    fn fns_counts_set_bits_from_the_base(mask: u32, base in 0_u32..32, offset in -34_i32..35) {
        let set: Vec<u32> = match offset.signum() {
            1 => (base..32).filter(|i| mask >> i & 1 == 1).collect(),
            -1 => (0..=base).rev().filter(|i| mask >> i & 1 == 1).collect(),
            _ => [base].into_iter().filter(|i| mask >> i & 1 == 1).collect(),
        };
        let index = offset.unsigned_abs().max(1) as usize - 1;
        prop_assert_eq!(integer::fns(mask, base, offset), set.get(index).copied().unwrap_or(u32::MAX));
    }
}

#[test]
fn prmt_follows_the_tables_of_the_isa() {
    let (a, b) = (0x3322_1100, 0x7766_5544);
    let go = |s, mode| integer::prmt(a, b, s, mode);
    assert_eq!(go(0x7531, Permute::Default), 0x7755_3311);
    assert_eq!(
        integer::prmt(0x80, 0, 0x0008, Permute::Default),
        0x8080_80ff
    );
    assert_eq!(go(0, Permute::Forward4), 0x3322_1100);
    assert_eq!(go(3, Permute::Forward4), 0x6655_4433);
    assert_eq!(go(0, Permute::Backward4), 0x5566_7700);
    assert_eq!(go(1, Permute::Backward4), 0x6677_0011);
    assert_eq!(go(2, Permute::Backward4), 0x7700_1122);
    assert_eq!(go(3, Permute::Backward4), 0x0011_2233);
    assert_eq!(go(2, Permute::Replicate8), 0x2222_2222);
    assert_eq!(
        [0, 1, 2, 3].map(|s| go(s, Permute::EdgeLeft)),
        [0x3322_1100, 0x3322_1111, 0x3322_2222, 0x3333_3333]
    );
    assert_eq!(
        [0, 1, 2, 3].map(|s| go(s, Permute::EdgeRight)),
        [0, 0x1111_1100, 0x2222_1100, 0x3322_1100]
    );
    assert_eq!(
        [0, 1, 2, 3].map(|s| go(s, Permute::Replicate16)),
        [0x1100_1100, 0x3322_3322, 0x1100_1100, 0x3322_3322]
    );
}

#[test]
fn video_instructions_work_element_by_element() {
    let form = |op, elements, signed, sat, accumulate| Video {
        op,
        elements,
        a_signed: signed,
        b_signed: signed,
        d_signed: signed,
        sat,
        accumulate,
        mask: (1 << elements) - 1,
    };
    let (a, b) = (0x80ff_017f, 0x7f01_ff80);
    assert_eq!(
        form(Simd::AbsDiff, 4, false, false, false).run(a, b, 9),
        0x01fe_fe01
    );
    assert_eq!(
        form(Simd::AbsDiff, 4, false, false, true).run(a, b, 9),
        9 + 1 + 254 + 254 + 1
    );
    assert_eq!(
        form(Simd::Add, 4, true, true, false).run(a, b, 0),
        0xff00_00ff
    );
    assert_eq!(
        form(Simd::Sub, 4, true, true, false).run(a, b, 0),
        0x80fe_027f
    );
    assert_eq!(
        form(Simd::Sub, 4, true, false, false).run(a, b, 0),
        0x01fe_02ff
    );
    assert_eq!(
        form(Simd::Min, 2, true, false, false).run(a, b, 0),
        0x80ff_ff80
    );
    assert_eq!(
        form(Simd::Max, 2, false, false, false).run(a, b, 0),
        0x80ff_ff80
    );
    assert_eq!(
        form(Simd::Average, 4, false, false, false).run(a, b, 0),
        0x8080_8080
    );
    assert_eq!(
        form(Simd::Average, 4, true, false, false).run(0xfe01_0203, 0xfd02_0303, 0),
        0xfd02_0303
    );
}

#[test]
fn a_search_for_more_bits_than_there_are_finds_none_in_either_direction() {
    for offset in [i32::MIN, i32::MAX] {
        assert_eq!(integer::fns(u32::MAX, 31, offset), u32::MAX);
    }
}
