//! Comparisons and selections.

use crate::harness::{H, Kind, P, Q, R, W, check};
use crate::models::{BF16, F16, d, f, flush, signed, unsigned};

const FLOAT: [&str; 14] = [
    "eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan",
];

fn holds(op: &str, a: f64, b: f64) -> bool {
    let nan = a.is_nan() || b.is_nan();
    match op {
        "num" => !nan,
        "nan" => nan,
        _ if nan => op.ends_with('u'),
        _ => match &op[..2] {
            "eq" => a == b,
            "ne" => a != b,
            "lt" => a < b,
            "le" => a <= b,
            "gt" => a > b,
            _ => a >= b,
        },
    }
}

#[test]
fn floats_compare_ordered_and_unordered() {
    for op in FLOAT {
        let s = [(R, Kind::F32); 2];
        check(&format!("setp.{op}.f32 {{d}}, {{a}}, {{b}};"), P, &s, |x| {
            holds(op, f(x[0]).into(), f(x[1]).into()).into()
        });
        check(
            &format!("setp.{op}.ftz.f32 {{d}}, {{a}}, {{b}};"),
            P,
            &s,
            |x| holds(op, flush(f(x[0])).into(), flush(f(x[1])).into()).into(),
        );
        check(
            &format!("setp.{op}.f64 {{d}}, {{a}}, {{b}};"),
            P,
            &[(Q, Kind::F64); 2],
            |x| holds(op, d(x[0]), d(x[1])).into(),
        );
        for (half, kind) in [(F16, Kind::F16), (BF16, Kind::Bf16)] {
            let name = half.name;
            check(
                &format!("setp.{op}.{name} {{d}}, {{a}}, {{b}};"),
                P,
                &[(H, kind); 2],
                |x| holds(op, half.value(x[0]), half.value(x[1])).into(),
            );
            let one = half.code(1.0, "rn");
            let pair = |x: &[u64], on: u64| {
                [0, 16].into_iter().fold(0, |r, i| {
                    let part = |v: u64| half.value(v >> i & 0xffff);
                    r | if holds(op, part(x[0]), part(x[1])) {
                        on << i
                    } else {
                        0
                    }
                })
            };
            check(
                &format!("set.{op}.{name}x2.{name}x2 {{d}}, {{a}}, {{b}};"),
                R,
                &[(R, kind); 2],
                |x| pair(x, one.into()),
            );
            check(
                &format!("set.{op}.u32.{name}x2 {{d}}, {{a}}, {{b}};"),
                R,
                &[(R, kind); 2],
                |x| pair(x, 0xffff),
            );
            check(
                &format!("set.{op}.{name}.{name} {{d}}, {{a}}, {{b}};"),
                H,
                &[(H, kind); 2],
                |x| {
                    if holds(op, half.value(x[0]), half.value(x[1])) {
                        one.into()
                    } else {
                        0
                    }
                },
            );
        }
        check(
            &format!("set.{op}.f32.f32 {{d}}, {{a}}, {{b}};"),
            R,
            &s,
            |x| {
                if holds(op, f(x[0]).into(), f(x[1]).into()) {
                    0x3f80_0000
                } else {
                    0
                }
            },
        );
        check(
            &format!("set.{op}.u32.f32 {{d}}, {{a}}, {{b}};"),
            R,
            &s,
            |x| {
                if holds(op, f(x[0]).into(), f(x[1]).into()) {
                    0xffff_ffff
                } else {
                    0
                }
            },
        );
    }
}

fn integer(op: &str, a: i128, b: i128) -> bool {
    match op {
        "eq" => a == b,
        "ne" => a != b,
        "lt" | "lo" => a < b,
        "le" | "ls" => a <= b,
        "gt" | "hi" => a > b,
        _ => a >= b,
    }
}

#[test]
fn integers_compare_signed_and_unsigned() {
    for (bits, w) in [(16, H), (32, R), (64, Q)] {
        let two = [(w, Kind::Int); 2];
        for op in ["eq", "ne", "lt", "le", "gt", "ge"] {
            check(
                &format!("setp.{op}.s{bits} {{d}}, {{a}}, {{b}};"),
                P,
                &two,
                |x| integer(op, signed(x[0], bits), signed(x[1], bits)).into(),
            );
            check(
                &format!("setp.{op}.u{bits} {{d}}, {{a}}, {{b}};"),
                P,
                &two,
                |x| integer(op, unsigned(x[0], bits), unsigned(x[1], bits)).into(),
            );
        }
        for op in ["lo", "ls", "hi", "hs"] {
            check(
                &format!("setp.{op}.u{bits} {{d}}, {{a}}, {{b}};"),
                P,
                &two,
                |x| integer(op, unsigned(x[0], bits), unsigned(x[1], bits)).into(),
            );
        }
        check(
            &format!("setp.eq.b{bits} {{d}}, {{a}}, {{b}};"),
            P,
            &two,
            |x| u64::from(x[0] == x[1]),
        );
    }
    check(
        "set.lt.u32.s32 {d}, {a}, {b};",
        R,
        &[(R, Kind::Int); 2],
        |x| {
            if signed(x[0], 32) < signed(x[1], 32) {
                0xffff_ffff
            } else {
                0
            }
        },
    );
}

#[test]
fn comparisons_combine_with_a_predicate_and_give_the_complement() {
    let sources = [(R, Kind::Int), (R, Kind::Int), (P, Kind::Int)];
    let less = |x: &[u64]| u64::from(signed(x[0], 32) < signed(x[1], 32));
    type Model = fn(u64, u64) -> u64;
    let table: [(&str, Model); 3] = [
        ("and", |p, c| p & c),
        ("or", |p, c| p | c),
        ("xor", |p, c| p ^ c),
    ];
    for (how, model) in table {
        check(
            &format!("setp.lt.{how}.s32 {{d}}, {{a}}, {{b}}, {{c}};"),
            P,
            &sources,
            |x| model(less(x), x[2]),
        );
        check(
            &format!("setp.lt.{how}.s32 {{d}}, {{a}}, {{b}}, !{{c}};"),
            P,
            &sources,
            |x| model(less(x), 1 - x[2]),
        );
        // The second destination holds the complement of the comparison, combined in the same way.
        check(
            &format!("{{{{ .reg .pred %t; setp.lt.{how}.s32 %t|{{d}}, {{a}}, {{b}}, {{c}}; }}}}")
                .replace("{{", "{")
                .replace("}}", "}"),
            P,
            &sources,
            |x| model(1 - less(x), x[2]),
        );
    }
    check(
        "{ .reg .pred %t; setp.lt.s32 %t|{d}, {a}, {b}; }",
        P,
        &sources[..2],
        |x| 1 - less(x),
    );
}

#[test]
fn packed_comparisons_and_sets_combine_with_a_predicate() {
    type Model = fn(u64, u64) -> u64;
    let table: [(&str, Model); 3] = [
        ("and", |p, c| p & c),
        ("or", |p, c| p | c),
        ("xor", |p, c| p ^ c),
    ];
    let halves = [(R, Kind::F16), (R, Kind::F16), (P, Kind::Int)];
    let part = |x: u64, shift: u32| F16.value(x >> shift & 0xffff);
    let less = |x: &[u64], shift| u64::from(part(x[0], shift) < part(x[1], shift));
    for (how, model) in table {
        let setp = format!("setp.lt.{how}.f16x2");
        check(
            &format!("{{ .reg .pred %t; {setp} {{d}}|%t, {{a}}, {{b}}, {{c}}; }}"),
            P,
            &halves,
            |x| model(less(x, 0), x[2]),
        );
        check(
            &format!("{{ .reg .pred %t; {setp} %t|{{d}}, {{a}}, {{b}}, !{{c}}; }}"),
            P,
            &halves,
            |x| model(less(x, 16), 1 - x[2]),
        );
        // The first destination is the combined predicate.
        check(
            &format!("{{ .reg .pred %t; mov.pred %t, {{c}}; {setp} %t|{{d}}, {{a}}, {{b}}, %t; }}"),
            P,
            &halves,
            |x| model(less(x, 16), x[2]),
        );
        check(
            &format!("set.lt.{how}.u32.s32 {{d}}, {{a}}, {{b}}, !{{c}};"),
            R,
            &[(R, Kind::Int), (R, Kind::Int), (P, Kind::Int)],
            |x| {
                let less = u64::from(signed(x[0], 32) < signed(x[1], 32));
                model(less, 1 - x[2]) * 0xffff_ffff
            },
        );
    }
}

#[test]
fn selections_follow_predicates_and_signs() {
    for (w, types) in [
        (H, &["b16", "u16", "s16"][..]),
        (R, &["b32", "s32", "f32"]),
        (Q, &["b64", "u64", "f64"]),
    ] {
        let sources: [(W, Kind); 3] = [(w, Kind::Int), (w, Kind::Int), (P, Kind::Int)];
        for ty in types {
            check(
                &format!("selp.{ty} {{d}}, {{a}}, {{b}}, {{c}};"),
                w,
                &sources,
                |x| x[if x[2] == 1 { 0 } else { 1 }],
            );
        }
        let bits = if w == H {
            16
        } else if w == R {
            32
        } else {
            64
        };
        let sources = [(w, Kind::Int), (w, Kind::Int), (R, Kind::Int)];
        check(
            &format!("slct.b{bits}.s32 {{d}}, {{a}}, {{b}}, {{c}};"),
            w,
            &sources,
            |x| x[if signed(x[2], 32) >= 0 { 0 } else { 1 }],
        );
        let sources = [(w, Kind::Int), (w, Kind::Int), (R, Kind::F32)];
        check(
            &format!("slct.b{bits}.f32 {{d}}, {{a}}, {{b}}, {{c}};"),
            w,
            &sources,
            |x| x[if f(x[2]) >= 0.0 { 0 } else { 1 }],
        );
        check(
            &format!("slct.ftz.b{bits}.f32 {{d}}, {{a}}, {{b}}, {{c}};"),
            w,
            &sources,
            |x| x[if flush(f(x[2])) >= 0.0 { 0 } else { 1 }],
        );
    }
}

#[test]
fn classes_of_floats_are_told() {
    type Test = fn(f64, bool) -> bool;
    // The second argument is true if the operand is subnormal in its format.
    let table: [(&str, Test); 6] = [
        ("finite", |x, _| x.is_finite()),
        ("infinite", |x, _| x.is_infinite()),
        ("number", |x, _| !x.is_nan()),
        ("notanumber", |x, _| x.is_nan()),
        // Zeros count as normal.
        ("normal", |x, s| x.is_finite() && !s),
        ("subnormal", |_, s| s),
    ];
    for (name, test) in table {
        check(
            &format!("testp.{name}.f32 {{d}}, {{a}};"),
            P,
            &[(R, Kind::F32)],
            |x| test(f(x[0]).into(), f(x[0]).is_subnormal()).into(),
        );
        check(
            &format!("testp.{name}.f64 {{d}}, {{a}};"),
            P,
            &[(Q, Kind::F64)],
            |x| test(d(x[0]), d(x[0]).is_subnormal()).into(),
        );
    }
}

#[test]
fn predicated_instructions_leave_other_lanes_alone() {
    let sources = [(R, Kind::Int), (R, Kind::Int), (P, Kind::Int)];
    check(
        "mov.u32 {d}, {a}; @{c} mov.u32 {d}, {b};",
        R,
        &sources,
        |x| x[if x[2] == 1 { 1 } else { 0 }],
    );
    check(
        "mov.u32 {d}, {a}; @!{c} add.u32 {d}, {d}, 5;",
        R,
        &sources,
        |x| {
            if x[2] == 1 {
                x[0]
            } else {
                (x[0] + 5) & 0xffff_ffff
            }
        },
    );
    check(
        "mov.u32 {d}, {a}; @{c} setp.eq.u32 {c}, {a}, {b}; @{c} mov.u32 {d}, 7;",
        R,
        &sources,
        |x| {
            if x[2] == 1 && x[0] == x[1] { 7 } else { x[0] }
        },
    );
}

#[test]
fn packed_comparisons_are_combined_with_a_predicate() {
    for (combine, with) in [
        ("and", (|a, b| a && b) as fn(bool, bool) -> bool),
        ("or", |a, b| a || b),
        ("xor", |a, b| a != b),
    ] {
        for (to, code) in [("f16x2", 0x3c00_u64), ("u32", 0xffff)] {
            let text = format!("set.lt.{combine}.{to}.f16x2 {{d}}, {{a}}, {{b}}, !{{c}};");
            let types = [(R, Kind::F16), (R, Kind::F16), (P, Kind::Int)];
            check(&text, R, &types, |x| {
                let half = |word: u64, high: u32| F16.value(word >> (16 * high) & 0xffff);
                [0, 1].into_iter().fold(0, |all, high| {
                    let less = half(x[0], high) < half(x[1], high);
                    let holds = with(less, x[2] == 0);
                    all | if holds { code << (16 * high) } else { 0 }
                })
            });
        }
    }
}
