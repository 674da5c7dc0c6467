//! `.f64` arithmetic.

use crate::harness::{Kind, Q, R, accept, run, run_contracted};
use crate::models::{d, sum_error};

const D: (crate::harness::W, Kind) = (Q, Kind::F64);

/// Compares as numbers: the same bits, or both NaN.
fn same64(expected: f64, got: u64) -> Result<(), String> {
    let ok = expected.to_bits() == got || expected.is_nan() && d(got).is_nan();
    if ok {
        Ok(())
    } else {
        Err(format!("expected {:#x}", expected.to_bits()))
    }
}

#[test]
fn double_to_nearest_is_the_hosts_arithmetic() {
    for words in ["", ".rn"] {
        accept(
            &format!("add{words}.f64 {{d}}, {{a}}, {{b}};"),
            Q,
            &[D, D],
            |x, g| same64(d(x[0]) + d(x[1]), g),
        );
        accept(
            &format!("sub{words}.f64 {{d}}, {{a}}, {{b}};"),
            Q,
            &[D, D],
            |x, g| same64(d(x[0]) - d(x[1]), g),
        );
        accept(
            &format!("mul{words}.f64 {{d}}, {{a}}, {{b}};"),
            Q,
            &[D, D],
            |x, g| same64(d(x[0]) * d(x[1]), g),
        );
    }
    for name in ["fma", "mad"] {
        accept(
            &format!("{name}.rn.f64 {{d}}, {{a}}, {{b}}, {{c}};"),
            Q,
            &[D, D, D],
            |x, g| same64(d(x[0]).mul_add(d(x[1]), d(x[2])), g),
        );
    }
    accept("div.rn.f64 {d}, {a}, {b};", Q, &[D, D], |x, g| {
        same64(d(x[0]) / d(x[1]), g)
    });
    accept("rcp.rn.f64 {d}, {a};", Q, &[D], |x, g| {
        same64(1.0 / d(x[0]), g)
    });
    accept("sqrt.rn.f64 {d}, {a};", Q, &[D], |x, g| {
        same64(d(x[0]).sqrt(), g)
    });
    accept("neg.f64 {d}, {a};", Q, &[D], |x, g| same64(-d(x[0]), g));
    accept("abs.f64 {d}, {a};", Q, &[D], |x, g| {
        same64(d(x[0]).abs(), g)
    });
}

#[test]
fn double_directed_sums_and_products_bracket_the_exact_ones() {
    for mode in ["rz", "rm", "rp"] {
        let step = |near: f64, error: f64| match mode {
            "rm" if error < 0.0 => near.next_down(),
            "rp" if error > 0.0 => near.next_up(),
            "rz" if near > 0.0 && error < 0.0 => near.next_down(),
            "rz" if near < 0.0 && error > 0.0 => near.next_up(),
            _ => near,
        };
        // Far from overflow and underflow, where the error terms are exact.
        let plain = |x: f64| x.abs() > 1e-140 && x.abs() < 1e140;
        accept(
            &format!("add.{mode}.f64 {{d}}, {{a}}, {{b}};"),
            Q,
            &[D, D],
            |x, got| {
                let (s, e) = sum_error(d(x[0]), d(x[1]));
                if plain(s) {
                    same64(step(s, e), got)
                } else {
                    Ok(())
                }
            },
        );
        accept(
            &format!("mul.{mode}.f64 {{d}}, {{a}}, {{b}};"),
            Q,
            &[D, D],
            |x, got| {
                let (a, b) = (d(x[0]), d(x[1]));
                let p = a * b;
                if plain(p) {
                    same64(step(p, a.mul_add(b, -p)), got)
                } else {
                    Ok(())
                }
            },
        );
        accept(
            &format!("fma.{mode}.f64 {{d}}, {{a}}, {{b}}, {{c}};"),
            Q,
            &[D, D, D],
            |x, got| {
                // With a power of two the product is exact, and the error of the sum has the
                // direction.
                let (a, b) = (d(x[0]), d(x[1]));
                let p = a * b;
                if !plain(p) || a.mul_add(b, -p) != 0.0 {
                    return Ok(());
                }
                let (s, e) = sum_error(p, d(x[2]));
                if plain(s) {
                    same64(step(s, e), got)
                } else {
                    Ok(())
                }
            },
        );
        accept(
            &format!("div.{mode}.f64 {{d}}, {{a}}, {{b}};"),
            Q,
            &[D, D],
            |x, got| {
                let (a, b) = (d(x[0]), d(x[1]));
                let q = a / b;
                if !plain(q) || !plain(a) {
                    return Ok(());
                }
                same64(step(q, (-q).mul_add(b, a) * b.signum()), got)
            },
        );
        accept(
            &format!("sqrt.{mode}.f64 {{d}}, {{a}};"),
            Q,
            &[D],
            |x, got| {
                let a = d(x[0]);
                let r = a.sqrt();
                if !plain(r) {
                    return Ok(());
                }
                same64(step(r, (-r).mul_add(r, a)), got)
            },
        );
    }
}

#[test]
fn contracted_products_are_rounded_once_with_what_is_added_or_subtracted() {
    // (1 + e)^2 is 1 + 2e + e^2: the last term is lost where the product is rounded.
    let single = 1.0f32 + 2f32.powi(-20);
    let bits = |x: f32| u64::from(x.to_bits());
    let wide = 1.0f64 + 2f64.powi(-40);
    let product = single.mul_add(single, 0.0);
    let rest = single.mul_add(single, -product);
    let (wide_product, wide_rest) = (wide * wide, wide.mul_add(wide, -(wide * wide)));
    assert!(rest != 0.0 && wide_rest != 0.0);
    for (sum, sign) in [
        ("sub.f32 {d}, %r5, {c};", 1.0),
        ("sub.f32 {d}, {c}, %r5;", -1.0),
    ] {
        let snippet = format!("mul.f32 %r5, {{a}}, {{b}}; {sum}");
        let rows = [vec![bits(single), bits(single), bits(product)]];
        let plain = run(&snippet, R, &[R, R, R], &rows)[0];
        let once = run_contracted(&snippet, R, &[R, R, R], &rows)[0];
        assert_eq!(
            [plain, once],
            [bits(0.0), bits(sign as f32 * rest)],
            "{sum}"
        );
        let snippet = snippet.replace("f32", "f64").replace("%r5", "%q5");
        let rows = [vec![wide.to_bits(), wide.to_bits(), wide_product.to_bits()]];
        let plain = run(&snippet, Q, &[Q, Q, Q], &rows)[0];
        let once = run_contracted(&snippet, Q, &[Q, Q, Q], &rows)[0];
        assert_eq!([plain, once], [0, (sign * wide_rest).to_bits()], "{sum}");
    }
}
