//! Integer, logic and bit instructions.

use crate::convert::INTS;
use crate::harness::{H, Kind, P, Q, R, W, check};
use crate::models::{cut, number, signed, unsigned};

const I: (W, Kind) = (R, Kind::Int);
const L: (W, Kind) = (Q, Kind::Int);
const SHORT: (W, Kind) = (H, Kind::Int);
const N: (W, Kind) = (R, Kind::Shift);

/// Lists the integer types of arithmetic, with their register.
fn types() -> impl Iterator<Item = (&'static str, W, u32, bool)> {
    INTS.into_iter().filter(|(_, _, bits, _)| *bits > 8)
}

#[test]
fn addition_multiplication_and_extremes_wrap_at_the_width() {
    for (ty, w, bits, sign) in types() {
        let two = [(w, Kind::Int); 2];
        let three = [(w, Kind::Int); 3];
        let v = |x: u64| number(x, bits, sign);
        type Model = fn(i128, i128) -> i128;
        let table: [(&str, Model); 5] = [
            ("add", |a, b| a + b),
            ("sub", |a, b| a - b),
            ("mul.lo", |a, b| a.wrapping_mul(b)),
            ("min", |a, b| a.min(b)),
            ("max", |a, b| a.max(b)),
        ];
        for (name, model) in table {
            check(&format!("{name}.{ty} {{d}}, {{a}}, {{b}};"), w, &two, |x| {
                cut(model(v(x[0]), v(x[1])), bits)
            });
        }
        let high = |a: u64, b: u64| {
            if bits < 64 {
                cut((v(a) * v(b)) >> bits, bits)
            } else if sign {
                ((i128::from(a as i64) * i128::from(b as i64)) >> 64) as u64
            } else {
                ((u128::from(a) * u128::from(b)) >> 64) as u64
            }
        };
        check(&format!("mul.hi.{ty} {{d}}, {{a}}, {{b}};"), w, &two, |x| {
            high(x[0], x[1])
        });
        check(
            &format!("mad.lo.{ty} {{d}}, {{a}}, {{b}}, {{c}};"),
            w,
            &three,
            |x| cut(v(x[0]).wrapping_mul(v(x[1])).wrapping_add(v(x[2])), bits),
        );
        check(
            &format!("mad.hi.{ty} {{d}}, {{a}}, {{b}}, {{c}};"),
            w,
            &three,
            |x| cut(i128::from(high(x[0], x[1])) + v(x[2]), bits),
        );
        check(&format!("div.{ty} {{d}}, {{a}}, {{b}};"), w, &two, |x| {
            if v(x[1]) == 0 {
                cut(-1, bits)
            } else {
                cut(v(x[0]) / v(x[1]), bits)
            }
        });
        check(&format!("rem.{ty} {{d}}, {{a}}, {{b}};"), w, &two, |x| {
            if v(x[1]) == 0 {
                cut(-1, bits)
            } else {
                cut(v(x[0]) % v(x[1]), bits)
            }
        });
        if sign {
            check(&format!("neg.{ty} {{d}}, {{a}};"), w, &two[..1], |x| {
                cut(-v(x[0]), bits)
            });
            check(&format!("abs.{ty} {{d}}, {{a}};"), w, &two[..1], |x| {
                cut(v(x[0]).abs(), bits)
            });
        }
    }
}

#[test]
fn wide_products_have_twice_the_width() {
    for (ty, w, wide, bits, sign) in [
        ("u16", H, R, 16, false),
        ("s16", H, R, 16, true),
        ("u32", R, Q, 32, false),
        ("s32", R, Q, 32, true),
    ] {
        let two = [(w, Kind::Int); 2];
        let v = |x: u64| number(x, bits, sign);
        check(
            &format!("mul.wide.{ty} {{d}}, {{a}}, {{b}};"),
            wide,
            &two,
            |x| cut(v(x[0]) * v(x[1]), 2 * bits),
        );
        let three = [two[0], two[1], (wide, Kind::Int)];
        check(
            &format!("mad.wide.{ty} {{d}}, {{a}}, {{b}}, {{c}};"),
            wide,
            &three,
            |x| cut(v(x[0]) * v(x[1]) + i128::from(x[2]), 2 * bits),
        );
    }
}

#[test]
fn saturating_and_24_bit_forms() {
    let clamp = |x: i128| cut(x.clamp(i32::MIN.into(), i32::MAX.into()), 32);
    let s = |x: u64| signed(x, 32);
    check("add.sat.s32 {d}, {a}, {b};", R, &[I, I], |x| {
        clamp(s(x[0]) + s(x[1]))
    });
    check("sub.sat.s32 {d}, {a}, {b};", R, &[I, I], |x| {
        clamp(s(x[0]) - s(x[1]))
    });
    check("mad.hi.sat.s32 {d}, {a}, {b}, {c};", R, &[I, I, I], |x| {
        clamp(((s(x[0]) * s(x[1])) >> 32) + s(x[2]))
    });
    check("mul24.lo.u32 {d}, {a}, {b};", R, &[I, I], |x| {
        cut(unsigned(x[0], 24) * unsigned(x[1], 24), 32)
    });
    check("mul24.hi.s32 {d}, {a}, {b};", R, &[I, I], |x| {
        cut((signed(x[0], 24) * signed(x[1], 24)) >> 16, 32)
    });
    check("mad24.lo.s32 {d}, {a}, {b}, {c};", R, &[I, I, I], |x| {
        cut(signed(x[0], 24) * signed(x[1], 24) + s(x[2]), 32)
    });
    check("sad.s32 {d}, {a}, {b}, {c};", R, &[I, I, I], |x| {
        cut(s(x[2]) + (s(x[0]) - s(x[1])).abs(), 32)
    });
    check("sad.u32 {d}, {a}, {b}, {c};", R, &[I, I, I], |x| {
        cut(s(x[2]) + i128::from(x[0].abs_diff(x[1])), 32)
    });
    let halves = [(H, Kind::Int); 3];
    for (ty, sign) in [("s16", true), ("u16", false)] {
        check(
            &format!("sad.{ty} {{d}}, {{a}}, {{b}}, {{c}};"),
            H,
            &halves,
            |x| {
                let [a, b, c] = [x[0], x[1], x[2]].map(|v| number(v, 16, sign));
                cut(c + (a - b).abs(), 16)
            },
        );
    }
}

#[test]
fn logic_works_bit_by_bit() {
    for (ty, w, bits) in [("b16", H, 16), ("b32", R, 32), ("b64", Q, 64)] {
        let two = [(w, Kind::Int); 2];
        check(&format!("and.{ty} {{d}}, {{a}}, {{b}};"), w, &two, |x| {
            x[0] & x[1]
        });
        check(&format!("or.{ty} {{d}}, {{a}}, {{b}};"), w, &two, |x| {
            x[0] | x[1]
        });
        check(&format!("xor.{ty} {{d}}, {{a}}, {{b}};"), w, &two, |x| {
            x[0] ^ x[1]
        });
        check(&format!("not.{ty} {{d}}, {{a}};"), w, &two[..1], |x| {
            cut(!i128::from(x[0]), bits)
        });
        check(&format!("cnot.{ty} {{d}}, {{a}};"), w, &two[..1], |x| {
            u64::from(x[0] == 0)
        });
        let shift = [(w, Kind::Int), N];
        check(&format!("shl.{ty} {{d}}, {{a}}, {{b}};"), w, &shift, |x| {
            if x[1] >= bits.into() {
                0
            } else {
                cut(i128::from(x[0]) << x[1], bits)
            }
        });
        for kind in ["u", "s", "b"] {
            let ty = format!("{kind}{bits}");
            check(&format!("shr.{ty} {{d}}, {{a}}, {{b}};"), w, &shift, |x| {
                let v = number(x[0], bits, kind == "s");
                cut(v >> x[1].min(100), bits)
            });
        }
    }
    let p = [(P, Kind::Int); 2];
    check("and.pred {d}, {a}, {b};", P, &p, |x| x[0] & x[1]);
    check("or.pred {d}, {a}, {b};", P, &p, |x| x[0] | x[1]);
    check("xor.pred {d}, {a}, {b};", P, &p, |x| x[0] ^ x[1]);
    check("not.pred {d}, {a};", P, &p[..1], |x| 1 - x[0]);
    for table in [0x01_u64, 0x96, 0xe8, 0xca, 0x80, 0xfe, 0x6a, 0x2d, 0xf8] {
        let text = format!("lop3.b32 {{d}}, {{a}}, {{b}}, {{c}}, {table};");
        check(&text, R, &[I, I, I], |x| by_table(x, table));
    }
}

/// The result of `lop3`.
fn by_table(x: &[u64], table: u64) -> u64 {
    (0..32).fold(0, |d, i| {
        let index = (x[0] >> i & 1) << 2 | (x[1] >> i & 1) << 1 | (x[2] >> i & 1);
        d | (table >> index & 1) << i
    })
}

#[test]
fn logic_with_three_inputs_has_a_predicate() {
    let operands = [I, I, I, (P, Kind::Int)];
    for table in [0x80_u64, 0xca, 0] {
        for (operation, and) in [("and", true), ("or", false)] {
            let holds = |x: &[u64]| match and {
                true => by_table(x, table) != 0 && x[3] != 0,
                false => by_table(x, table) != 0 || x[3] != 0,
            };
            let form = format!("lop3.{operation}.b32");
            let operation = format!("{{a}}, {{b}}, {{c}}, {table}, {{e}};");
            check(&format!("{form} _|{{d}}, {operation}"), P, &operands, |x| {
                holds(x).into()
            });
            // The destination may be a source, and the predicate the one combined with.
            let both = format!("{form} {{a}}|{{e}}, {operation} selp.b32 {{d}}, {{a}}, -1, {{e}};");
            check(&both, R, &operands, |x| match holds(x) {
                true => by_table(x, table),
                false => u64::from(u32::MAX),
            });
        }
    }
}

#[test]
fn bits_are_counted_found_reversed_and_cut_out() {
    check("popc.b32 {d}, {a};", R, &[I], |x| x[0].count_ones().into());
    check("popc.b64 {d}, {a};", R, &[L], |x| x[0].count_ones().into());
    check("clz.b32 {d}, {a};", R, &[I], |x| {
        u64::from(x[0].leading_zeros()) - 32
    });
    check("clz.b64 {d}, {a};", R, &[L], |x| {
        x[0].leading_zeros().into()
    });
    check("brev.b32 {d}, {a};", R, &[I], |x| x[0].reverse_bits() >> 32);
    check("brev.b64 {d}, {a};", Q, &[L], |x| x[0].reverse_bits());
    for (ty, source, bits, sign) in [
        ("u32", I, 32, false),
        ("s32", I, 32, true),
        ("u64", L, 64, false),
        ("s64", L, 64, true),
    ] {
        let find = |x: u64| {
            let v = number(x, bits, sign);
            let v = if v < 0 { !v } else { v };
            if v == 0 {
                0xffff_ffff
            } else {
                u64::from(127 - v.leading_zeros())
            }
        };
        check(&format!("bfind.{ty} {{d}}, {{a}};"), R, &[source], |x| {
            find(x[0])
        });
        check(
            &format!("bfind.shiftamt.{ty} {{d}}, {{a}};"),
            R,
            &[source],
            |x| match find(x[0]) {
                0xffff_ffff => 0xffff_ffff,
                i => u64::from(bits) - 1 - i,
            },
        );
        check(
            &format!("bfe.{ty} {{d}}, {{a}}, {{b}}, {{c}};"),
            source.0,
            &[source, N, N],
            |x| {
                let (pos, len) = (x[1] as u32, x[2] as u32);
                let top = (pos + len).saturating_sub(1).min(bits - 1);
                let fill = sign && len > 0 && x[0] >> top & 1 == 1;
                (0..bits).fold(0, |d, i| {
                    let bit = if i < len && pos + i < bits {
                        x[0] >> (pos + i) & 1 == 1
                    } else {
                        fill
                    };
                    d | u64::from(bit) << i
                })
            },
        );
    }
    for (ty, source, bits) in [("b32", I, 32_u64), ("b64", L, 64)] {
        check(
            &format!("bfi.{ty} {{d}}, {{a}}, {{b}}, {{c}}, {{e}};"),
            source.0,
            &[source, source, N, N],
            |x| {
                (0..bits).fold(0, |d, i| {
                    let inside = i >= x[2] && i - x[2] < x[3];
                    d | (if inside {
                        x[0] >> (i - x[2])
                    } else {
                        x[1] >> i
                    } & 1)
                        << i
                })
            },
        );
    }
}

#[test]
fn bytes_are_permuted_and_funnels_shifted() {
    check("prmt.b32 {d}, {a}, {b}, {c};", R, &[I, I, I], |x| {
        let bytes = x[1] << 32 | x[0];
        (0..4).fold(0, |d, i| {
            let select = x[2] >> (4 * i) & 15;
            let byte = bytes >> (8 * (select & 7)) & 255;
            let byte = if select & 8 == 0 {
                byte
            } else if byte & 128 != 0 {
                255
            } else {
                0
            };
            d | byte << (8 * i)
        })
    });
    let mode = |name: &str, order: fn(u64, u64) -> u64| {
        check(
            &format!("prmt.b32.{name} {{d}}, {{a}}, {{b}}, {{c}};"),
            R,
            &[I, I, I],
            |x| {
                let bytes = x[1] << 32 | x[0];
                (0..4).fold(0, |d, i| {
                    d | (bytes >> (8 * order(x[2] & 3, i)) & 255) << (8 * i)
                })
            },
        );
    };
    mode("f4e", |s, i| s + i);
    mode("b4e", |s, i| (s + 8 - i) % 8);
    mode("rc8", |s, _| s);
    mode("ecl", |s, i| s.max(i));
    mode("ecr", |s, i| s.min(i));
    mode("rc16", |s, i| 2 * (s & 1) + i % 2);
    for left in [true, false] {
        for wrap in [true, false] {
            let text = format!(
                "shf.{}.{}.b32 {{d}}, {{a}}, {{b}}, {{c}};",
                if left { "l" } else { "r" },
                if wrap { "wrap" } else { "clamp" }
            );
            check(&text, R, &[I, I, N], |x| {
                let pair = u128::from(x[1] << 32 | x[0]);
                let n = if wrap { x[2] % 32 } else { x[2].min(32) };
                (if left { (pair << n) >> 32 } else { pair >> n }) as u64 & 0xffff_ffff
            });
        }
    }
}

#[test]
fn dot_products_and_video_instructions() {
    for (sa, a) in [(true, "s32"), (false, "u32")] {
        for (sb, b) in [(true, "s32"), (false, "u32")] {
            let part = |x: u64, i: u32, bits: u32, s: bool| number(x >> (i * bits), bits, s);
            check(
                &format!("dp4a.{a}.{b} {{d}}, {{a}}, {{b}}, {{c}};"),
                R,
                &[I, I, I],
                |x| {
                    let sum: i128 = (0..4)
                        .map(|i| part(x[0], i, 8, sa) * part(x[1], i, 8, sb))
                        .sum();
                    cut(sum + i128::from(x[2]), 32)
                },
            );
            for (mode, at) in [("lo", 0), ("hi", 2)] {
                check(
                    &format!("dp2a.{mode}.{a}.{b} {{d}}, {{a}}, {{b}}, {{c}};"),
                    R,
                    &[I, I, I],
                    |x| {
                        let sum: i128 = (0..2)
                            .map(|i| part(x[0], i, 16, sa) * part(x[1], i + at, 8, sb))
                            .sum();
                        cut(sum + i128::from(x[2]), 32)
                    },
                );
            }
        }
    }
    check(
        "vabsdiff4.u32.u32.u32 {d}, {a}, {b}, {c};",
        R,
        &[I, I, I],
        |x| {
            (0..4).fold(0, |d, i| {
                let byte = |v: u64| v >> (8 * i) & 255;
                d | byte(x[0]).abs_diff(byte(x[1])) << (8 * i)
            })
        },
    );
}

#[test]
fn carries_link_the_words_of_long_integers() {
    let split = "{ .reg .b32 %x<8>; mov.b64 {%x0, %x1}, {a}; mov.b64 {%x2, %x3}, {b};";
    let join = "mov.b64 {d}, {%x4, %x5}; }";
    let body = |ops: &str| format!("{split} {ops} {join}");
    check(
        &body("add.cc.u32 %x4, %x0, %x2; addc.u32 %x5, %x1, %x3;"),
        Q,
        &[L, L],
        |x| x[0].wrapping_add(x[1]),
    );
    check(
        &body("sub.cc.u32 %x4, %x0, %x2; subc.u32 %x5, %x1, %x3;"),
        Q,
        &[L, L],
        |x| x[0].wrapping_sub(x[1]),
    );
    check(
        &body(
            "mul.lo.u32 %x4, %x0, %x2; mul.hi.u32 %x5, %x0, %x2; \
             mad.lo.cc.u32 %x5, %x0, %x3, %x5; mad.lo.cc.u32 %x5, %x1, %x2, %x5;",
        ),
        Q,
        &[L, L],
        |x| x[0].wrapping_mul(x[1]),
    );
    // The upper half of a 64-bit product, through both kinds of carry.
    check(
        "{ .reg .b32 %x<12>; mov.b64 {%x0, %x1}, {a}; mov.b64 {%x2, %x3}, {b};
           mul.hi.u32 %x5, %x0, %x2;
           mad.lo.cc.u32 %x5, %x0, %x3, %x5; madc.hi.u32 %x6, %x0, %x3, 0;
           mad.lo.cc.u32 %x5, %x1, %x2, %x5; madc.hi.cc.u32 %x6, %x1, %x2, %x6; addc.u32 %x7, 0, 0;
           mad.lo.cc.u32 %x6, %x1, %x3, %x6; madc.hi.u32 %x7, %x1, %x3, %x7;
           mov.b64 {d}, {%x6, %x7}; }",
        Q,
        &[L, L],
        |x| ((u128::from(x[0]) * u128::from(x[1])) >> 64) as u64,
    );
}

#[test]
fn packed_16_bit_integers_work_by_half() {
    let both = |x: &[u64], f: &dyn Fn(i128, i128) -> i128, sign: bool| {
        (0..2).fold(0, |d, i| {
            let part = |v: u64| number(v >> (16 * i), 16, sign);
            d | cut(f(part(x[0]), part(x[1])), 16) << (16 * i)
        })
    };
    for (ty, sign) in [("s16x2", true), ("u16x2", false)] {
        check(&format!("add.{ty} {{d}}, {{a}}, {{b}};"), R, &[I, I], |x| {
            both(x, &|a, b| a + b, sign)
        });
        check(&format!("min.{ty} {{d}}, {{a}}, {{b}};"), R, &[I, I], |x| {
            both(x, &|a, b| a.min(b), sign)
        });
        check(&format!("max.{ty} {{d}}, {{a}}, {{b}};"), R, &[I, I], |x| {
            both(x, &|a, b| a.max(b), sign)
        });
    }
    check("min.relu.s32 {d}, {a}, {b};", R, &[I, I], |x| {
        cut(signed(x[0], 32).min(signed(x[1], 32)).max(0), 32)
    });
    check("max.relu.s16x2 {d}, {a}, {b};", R, &[I, I], |x| {
        both(x, &|a, b| a.max(b).max(0), true)
    });
    check("mov.b32 {d}, {{a}, {b}};", R, &[SHORT, SHORT], |x| {
        x[0] | x[1] << 16
    });
}
