//! Video instructions with parts of registers, against models of the PTX ISA's pseudocode.

use crate::harness::{Kind, R, W, check};
use crate::models::{cut, number};

const I: (W, Kind) = (R, Kind::Int);

fn operation(name: &str, x: i128, y: i128) -> i128 {
    match name {
        "vadd" => x + y,
        "vsub" => x - y,
        "vabsdiff" => (x - y).abs(),
        "vmin" => x.min(y),
        "vmax" => x.max(y),
        // Halves are rounded away from zero.
        "vavrg" => (x + y + i128::from(x + y >= 0)).div_euclid(2),
        "lt" => (x < y).into(),
        _ => (x == y).into(),
    }
}

fn range(bits: u32, sign: bool) -> (i128, i128) {
    match sign {
        true => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        false => (0, (1 << bits) - 1),
    }
}

/// Signs of the destination, a and b as types.
const SIGNS: [(&str, [bool; 3]); 3] = [
    ("u32.u32.u32", [false; 3]),
    ("s32.s32.s32", [true; 3]),
    ("s32.u32.s32", [true, false, true]),
];
const NAMES: [&str; 5] = ["vadd", "vsub", "vabsdiff", "vmin", "vmax"];

/// Bits of a part and its position.
fn part(name: &str) -> (u32, u32) {
    match name.split_at(name.len().min(1)) {
        ("b", n) => (8, 8 * n.parse::<u32>().unwrap()),
        ("h", n) => (16, 16 * n.parse::<u32>().unwrap()),
        _ => (32, 0),
    }
}

#[test]
fn scalar_forms_select_saturate_and_merge() {
    let dotted = |part: &str| match part {
        "" => String::new(),
        part => format!(".{part}"),
    };
    for name in NAMES {
        for (types, [d_sign, a_sign, b_sign]) in SIGNS {
            for [to, of_a, of_b] in [
                ["", "", ""],
                ["", "b1", "h1"],
                ["b2", "h0", "b3"],
                ["h1", "", "b0"],
            ] {
                for sat in ["", ".sat"] {
                    for second in ["", ".add", ".min", ".max"] {
                        // A merged part leaves no room for a second operation.
                        if !to.is_empty() && !second.is_empty() {
                            continue;
                        }
                        if !d_sign && matches!(second, ".min" | ".max") {
                            continue;
                        }
                        let third = if to.is_empty() && second.is_empty() {
                            ""
                        } else {
                            ", {c}"
                        };
                        let text = format!(
                            "{name}.{types}{sat}{second} {{d}}{}, {{a}}{}, {{b}}{}{third};",
                            dotted(to),
                            dotted(of_a),
                            dotted(of_b)
                        );
                        check(&text, R, &[I, I, I], |x| {
                            let of = |value: u64, name, sign| {
                                let (bits, at) = part(name);
                                number(value >> at, bits, sign)
                            };
                            let mut value =
                                operation(name, of(x[0], of_a, a_sign), of(x[1], of_b, b_sign));
                            let (bits, at) = part(to);
                            if !sat.is_empty() {
                                let (least, most) = range(bits, d_sign);
                                value = value.clamp(least, most);
                            }
                            let c = number(x[2], 32, d_sign);
                            match second {
                                ".add" => cut(value + c, 32),
                                ".min" => cut(value.min(c), 32),
                                ".max" => cut(value.max(c), 32),
                                _ if to.is_empty() => cut(value, 32),
                                _ => x[2] & !(cut(-1, bits) << at) | cut(value, bits) << at,
                            }
                        });
                    }
                }
            }
        }
    }
}

#[test]
fn shifts_clamp_or_wrap_their_distance() {
    for (name, left) in [("vshl", true), ("vshr", false)] {
        for (types, [d_sign, a_sign]) in [
            ("u32.u32.u32", [false; 2]),
            ("s32.s32.u32", [true; 2]),
            ("s32.u32.u32", [true, false]),
            ("u32.s32.u32", [false, true]),
        ] {
            for (mode, sat, [of_a, of_b]) in [
                ("clamp", "", ["", ""]),
                ("wrap", "", ["", "b0"]),
                ("clamp", ".sat", ["h1", "b3"]),
                ("wrap", ".sat", ["b2", "h0"]),
                ("clamp", ".sat", ["", "b1"]),
            ] {
                let dotted = |part: &str| match part {
                    "" => String::new(),
                    part => format!(".{part}"),
                };
                let text = format!(
                    "{name}.{types}{sat}.{mode}.add {{d}}, {{a}}{}, {{b}}{}, {{c}};",
                    dotted(of_a),
                    dotted(of_b)
                );
                // Distances of all sizes in each byte.
                check(&text, R, &[I, I, I], |x| {
                    let of = |value: u64, name, sign| {
                        let (bits, at) = part(name);
                        number(value >> at, bits, sign)
                    };
                    let distance = of(x[1], of_b, false);
                    let distance = match mode {
                        "clamp" => distance.min(32),
                        _ => distance.rem_euclid(32),
                    };
                    let value = of(x[0], of_a, a_sign);
                    let mut value = match left {
                        true => value * (1 << distance),
                        false => value.div_euclid(1 << distance),
                    };
                    // The intermediate result has 34 bits.
                    value = (value + (1 << 33)).rem_euclid(1 << 34) - (1 << 33);
                    if !sat.is_empty() {
                        let (least, most) = range(32, d_sign);
                        value = value.clamp(least, most);
                    }
                    cut(value + number(x[2], 32, d_sign), 32)
                });
            }
        }
    }
}

#[test]
fn elements_are_selected_from_both_registers_and_masked() {
    // Elements of a pair of registers from the highest on, and those that the result keeps.
    let selections = [
        (4_u32, ["b3210", "b7654"], "b20", 0b0101_u64),
        (4, ["b0747", "b1526"], "b321", 0b1110),
        (2, ["h30", "h12"], "h1", 0b10),
        (2, ["h10", "h32"], "h10", 0b11),
    ];
    for (elements, [of_a, of_b], kept, mask) in selections {
        let bits = 32 / elements;
        for name in NAMES.into_iter().chain(["vavrg", "lt", "eq"]) {
            for (types, [_, a_sign, b_sign]) in SIGNS {
                let compares = matches!(name, "lt" | "eq");
                let stem = match compares {
                    true => format!("vset{elements}.{}.{name}", &types[4..]),
                    false => format!("{name}{elements}.{types}"),
                };
                for add in ["", ".add"] {
                    let text =
                        format!("{stem}{add} {{d}}.{kept}, {{a}}.{of_a}, {{b}}.{of_b}, {{c}};");
                    check(&text, R, &[I, I, I], |x| {
                        let pair = x[0] | x[1] << 32;
                        let of = |named: &str, i: u32, sign| {
                            let digit = named.as_bytes()[(elements - i) as usize] - b'0';
                            number(pair >> (u32::from(digit) * bits), bits, sign)
                        };
                        let (mut packed, mut sum) = (0, i128::from(x[2]));
                        for i in 0..elements {
                            if mask >> i & 1 == 0 {
                                packed |= x[2] & cut(-1, bits) << (bits * i);
                                continue;
                            }
                            let value = operation(name, of(of_a, i, a_sign), of(of_b, i, b_sign));
                            packed |= cut(value, bits) << (bits * i);
                            sum += value;
                        }
                        if add.is_empty() { packed } else { cut(sum, 32) }
                    });
                }
            }
        }
    }
}

#[test]
fn multiply_add_negates_scales_and_saturates() {
    let dotted = |part: &str| match part {
        "" => String::new(),
        part => format!(".{part}"),
    };
    let minus = |set: bool| if set { "-" } else { "" };
    for (types, [_, a_sign, b_sign]) in SIGNS {
        for [of_a, of_b] in [["", ""], ["b1", "h1"], ["h0", "b3"], ["", "h0"]] {
            for (negated, po) in [
                ([false; 3], ""),
                ([false; 3], ".po"),
                ([true, false, false], ""),
                ([false, true, false], ""),
                ([true, true, false], ""),
                ([false, false, true], ""),
            ] {
                for sat in ["", ".sat"] {
                    for (scale, shift) in [("", 0), (".shr7", 7), (".shr15", 15)] {
                        let product = negated[0] ^ negated[1];
                        let signed = a_sign || b_sign || product || negated[2];
                        let is_word = |part: &str, sign: bool| part.is_empty() && !sign;
                        let words = is_word(of_a, a_sign) || is_word(of_b, b_sign);
                        if (words || !signed) && (shift > 0 || !sat.is_empty()) {
                            continue;
                        }
                        let text = format!(
                            "vmad.{types}{po}{sat}{scale} {{d}}, {}{{a}}{}, {}{{b}}{}, {}{{c}};",
                            minus(negated[0]),
                            dotted(of_a),
                            minus(negated[1]),
                            dotted(of_b),
                            minus(negated[2])
                        );
                        check(&text, R, &[I, I, I], |x| {
                            let of = |value: u64, name, sign| {
                                let (bits, at) = part(name);
                                number(value >> at, bits, sign)
                            };
                            let mut all = of(x[0], of_a, a_sign) * of(x[1], of_b, b_sign);
                            let c = number(x[2], 32, signed);
                            all = if product { -all } else { all };
                            all += if negated[2] { -c } else { c };
                            all = (all + i128::from(!po.is_empty())).div_euclid(1 << shift);
                            if !sat.is_empty() {
                                let (least, most) = range(32, signed);
                                all = all.clamp(least, most);
                            }
                            cut(all, 32)
                        });
                    }
                }
            }
        }
    }
}
