//! `.f64` arithmetic.

use crate::harness::{Kind, Q, accept};
use crate::models::{d, sum_error};

const D: (crate::harness::W, Kind) = (Q, Kind::F64);

/// Equal as numbers: the same bits, or both NaN.
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
                // With a power of two the product is exact and the sum's error says which way.
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
