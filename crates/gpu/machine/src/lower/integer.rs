//! Integer arithmetic.

use sass::Instruction;

use super::{
    Combine, Form, Relations, Run, compared, lanes_where, lower_binary, lower_ternary, lower_unary,
};
use crate::registers::{Pred, Registers, Source, map_lanes};
use gpu_arithmetic::integer;
use gpu_arithmetic::video::{Simd, Video};

pub(super) fn lower(i: &Instruction) -> Option<Run> {
    match i.opcode {
        "IADD3" | "UIADD3" | "VIADD" | "UVIADD" | "IADD" | "UIADD" => add(i),
        "IMAD" | "UIMAD" => multiply_add(i),
        "LEA" | "ULEA" => scaled_add(i),
        "ISETP" | "UISETP" => compare(i),
        "IMNMX" | "UIMNMX" | "VIMNMX" | "UVIMNMX" => minimum(i),
        "VIADDMNMX" => add_minimum(i),
        "VIMNMX3" => minimum3(i),
        "IABS" => lower_unary(&Form::new(i, true)?, Registers::int, |a| {
            (a as i32).wrapping_abs() as u32
        }),
        "POPC" | "UPOPC" => lower_unary(&Form::new(i, true)?, Registers::int, u32::count_ones),
        "BREV" | "UBREV" => lower_unary(&Form::new(i, true)?, Registers::int, u32::reverse_bits),
        "FLO" | "UFLO" => leading(i),
        "IDP" => dot(i),
        "VABSDIFF" | "VABSDIFF4" => difference(i),
        "SGXT" | "USGXT" => extend(i),
        "BMSK" | "UBMSK" => {
            let wrap = i.has("W");
            lower_binary(&Form::new(i, true)?, Registers::int, move |a, b| {
                integer::bmsk(a, b, wrap)
            })
        }
        _ => None,
    }
}

/// Lowers the sum of up to three operands and carries; predicates receive the carries out.
fn add(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, true)?;
    let d = form.dest?;
    if let Some(packed) = Packed::from_instruction(i) {
        // Which parts saturate at which bounds is not known.
        if i.has("ISAT") {
            return None;
        }
        let (a, b) = (form.source(0)?, form.source(1)?);
        return Some(Box::new(move |r, mask| {
            let (a, b) = (packed.read(r, &a), packed.read(r, &b));
            let out = map_lanes(|l| packed.map_parts(a[l], b[l], |x, y| x.wrapping_add(y)));
            r.set(d, mask, &out);
        }));
    }
    if i.has("ISAT") {
        return lower_binary(&form, Registers::int, integer::add_sat);
    }
    if i.has("64") {
        return add_wide(&form, i.has("X"));
    }
    let (a, b) = (form.source(0)?, form.source(1)?);
    let c = form.source(2);
    // Without carries, the loop over lanes vectorises.
    if form.outs.iter().all(|out| out.is_always()) && form.ins.is_empty() {
        let Some(c) = c else {
            return lower_binary(&form, Registers::int, |a, b| a.wrapping_add(b));
        };
        return Some(Box::new(move |r, mask| {
            let (a, b, c) = (r.int(&a), r.int(&b), r.int(&c));
            let out = map_lanes(
                #[inline(always)]
                |l| a[l].wrapping_add(b[l]).wrapping_add(c[l]),
            );
            r.set(d, mask, &out);
        }));
    }
    let outs = [form.out(0), form.out(1)];
    let ins = form.ins;
    let extended = i.has("X");
    Some(Box::new(move |r, mask| {
        let (a, more_a) = r.addend(&a);
        let (b, more_b) = r.addend(&b);
        let (c, more_c) = c.as_ref().map_or(([0; 32], 0), |c| r.addend(c));
        let carry =
            |lane: usize| -> u64 { ins.iter().map(|p| u64::from(r.truth(*p) >> lane & 1)).sum() };
        // A carry replaces the 1 of a two's complement.
        let more = if extended {
            0
        } else {
            more_a + more_b + more_c
        };
        let sums: [u64; 32] = std::array::from_fn(|l| {
            u64::from(a[l]) + u64::from(b[l]) + u64::from(c[l]) + more + carry(l)
        });
        r.set(d, mask, &sums.map(|s| s as u32));
        // Three operands carry up to two: the second predicate reports a carry of two.
        for (n, out) in outs.into_iter().enumerate() {
            r.set_truth(out, mask, lanes_where(|l| sums[l] >> 32 > n as u64));
        }
    }))
}

/// Lowers the sum of up to three operands of 64 bits and carries.
fn add_wide(form: &Form, extended: bool) -> Option<Run> {
    let d = form.dest?;
    let (a, b, c) = (form.source(0)?, form.source(1)?, form.source(2));
    let outs = [form.out(0), form.out(1)];
    let ins = form.ins.clone();
    if !extended && ins.is_empty() && outs.iter().all(|out| out.is_always()) {
        // Most are sums of addresses.
        return Some(Box::new(move |r, mask| {
            let (a, b) = (r.wide(&a), r.wide(&b));
            let c = c.map_or([0; 32], |c| r.wide(&c));
            let sum = std::array::from_fn(|l| a[l].wrapping_add(b[l]).wrapping_add(c[l]));
            r.set_wide(d, mask, &sum);
        }));
    }
    Some(Box::new(move |r, mask| {
        let mut sums = [0u128; 32];
        for s in [Some(&a), Some(&b), c.as_ref()].into_iter().flatten() {
            let complement = if s.negate || s.invert { u64::MAX } else { 0 };
            // A carry replaces the 1 of a two's complement.
            let more = u128::from(s.negate && !extended);
            let row = r.raw_wide(s.from);
            for (sum, v) in sums.iter_mut().zip(row) {
                *sum += u128::from(v ^ complement) + more;
            }
        }
        for p in &ins {
            let carries = r.truth(*p);
            for (l, sum) in sums.iter_mut().enumerate() {
                *sum += u128::from(carries >> l & 1);
            }
        }
        r.set_wide(d, mask, &sums.map(|s| s as u64));
        for (n, out) in outs.into_iter().enumerate() {
            r.set_truth(out, mask, lanes_where(|l| sums[l] >> 64 > n as u128));
        }
    }))
}

fn multiply_add(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, true)?;
    let d = form.dest?;
    let (a, b, c) = (form.source(0)?, form.source(1)?, form.source(2)?);
    let signed = !i.has("U32");
    let carry_in = form.ins.first().copied();
    let carry_out = form.out(0);
    if i.has("WIDE") || i.has("HI") {
        let high = i.has("HI");
        return Some(Box::new(move |r, mask| {
            // The addend has 64 bits even if only the upper half of the sum is kept.
            let (a, b, c) = (r.int(&a), r.int(&b), r.wide(&c));
            let carry = carry_in.map_or(0, |p| r.truth(p));
            let mut over = 0u32;
            let out: [u64; 32] = std::array::from_fn(|l| {
                let product = if signed {
                    (i64::from(a[l] as i32) * i64::from(b[l] as i32)) as u64
                } else {
                    u64::from(a[l]) * u64::from(b[l])
                };
                let (sum, one) = product.overflowing_add(c[l]);
                let (sum, two) = sum.overflowing_add(u64::from(carry >> l & 1));
                over |= u32::from(one || two) << l;
                sum
            });
            if high {
                r.set(d, mask, &out.map(|v| (v >> 32) as u32));
            } else {
                r.set_wide(d, mask, &out);
            }
            r.set_truth(carry_out, mask, over);
        }));
    }
    if i.has("X") || carry_in.is_some() || !carry_out.is_always() {
        let extended = i.has("X");
        return Some(Box::new(move |r, mask| {
            let (a, b, (c, one)) = (r.int(&a), r.int(&b), r.addend(&c));
            let carry = carry_in.map_or(0, |p| r.truth(p));
            let one = if extended { 0 } else { one };
            let sums: [u64; 32] = std::array::from_fn(|l| {
                let product = u64::from(a[l].wrapping_mul(b[l]));
                product + u64::from(c[l]) + one + u64::from(carry >> l & 1)
            });
            r.set(d, mask, &sums.map(|s| s as u32));
            r.set_truth(carry_out, mask, lanes_where(|l| sums[l] >> 32 != 0));
        }));
    }
    lower_ternary(&form, Registers::int, |a, b, c| {
        a.wrapping_mul(b).wrapping_add(c)
    })
}

/// Lowers `(a << n) + b`, or its upper half.
fn scaled_add(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, true)?;
    let d = form.dest?;
    let (high, signed) = (i.has("HI"), i.has("SX32"));
    let (a, b) = (form.source(0)?, form.source(1)?);
    let with_upper = high && !signed;
    let upper = match with_upper {
        true => Some(form.source(2)?),
        false => None,
    };
    let shift = form.source(if with_upper { 3 } else { 2 })?;
    let extended = i.has("X");
    let carry_in = form.ins.first().copied().filter(|_| extended);
    let carry_out = form.out(0);
    Some(Box::new(move |r, mask| {
        let (low, n) = (r.int(&a), r.int(&shift));
        let upper = upper.as_ref().map(|c| r.int(c));
        let (b, one) = r.addend(&b);
        // A carry replaces the 1 of a two's complement.
        let one = if extended { 0 } else { one };
        let carry = carry_in.map_or(0, |p| r.truth(p));
        let sums: [u64; 32] = std::array::from_fn(|l| {
            let hi = match &upper {
                Some(c) => c[l],
                None if signed => ((low[l] as i32) >> 31) as u32,
                None => 0,
            };
            let wide = (u64::from(hi) << 32 | u64::from(low[l])) << (n[l] & 31);
            let scaled = if high {
                (wide >> 32) as u32
            } else {
                wide as u32
            };
            u64::from(scaled) + u64::from(b[l]) + one + u64::from(carry >> l & 1)
        });
        r.set(d, mask, &sums.map(|s| s as u32));
        r.set_truth(carry_out, mask, lanes_where(|l| sums[l] >> 32 != 0));
    }))
}

fn compare(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, false)?;
    let relations = Relations::from_modifiers(&i.modifiers)?;
    let combine = Combine::from_instruction(i);
    let outs = [form.out(0), form.out(1)];
    let (a, b) = (form.source(0)?, form.source(1)?);
    let with = form.ins.first().copied().unwrap_or(Pred::ALWAYS);
    let low = match i.has("EX") {
        true => Some(*form.ins.get(1)?),
        false => None,
    };
    if i.has("U64") || i.has("S64") || i.has("64") {
        let signed = !i.has("U64");
        return Some(Box::new(move |r, mask| {
            let (a, b) = (r.wide(&a), r.wide(&b));
            let holds = lanes_where(|l| match signed {
                true => relations.holds(a[l] as i64, b[l] as i64),
                false => relations.holds(a[l], b[l]),
            });
            let with = r.truth(with);
            compared(r, outs, combine, with, holds, mask);
        }));
    }
    let signed = !i.has("U32");
    Some(Box::new(move |r, mask| {
        let (a, b) = (r.int(&a), r.int(&b));
        let mut holds = match signed {
            true => lanes_where(
                #[inline(always)]
                |l| relations.holds(a[l] as i32, b[l] as i32),
            ),
            false => lanes_where(
                #[inline(always)]
                |l| relations.holds(a[l], b[l]),
            ),
        };
        if let Some(low) = low {
            // Equal upper halves leave the result to the lower halves.
            let equal = lanes_where(|l| a[l] == b[l]);
            holds = holds & !equal | r.truth(low) & equal;
        }
        let with = r.truth(with);
        compared(r, outs, combine, with, holds, mask);
    }))
}

/// Layout of packed integers in a register.
#[derive(Debug, Clone, Copy)]
struct Packed {
    bits: u32,
    signed: bool,
}

impl Packed {
    fn from_instruction(i: &Instruction) -> Option<Packed> {
        let (bits, signed) = i.modifiers.iter().find_map(|m| match *m {
            "16x2" | "U16x2" => Some((16, false)),
            "S16x2" => Some((16, true)),
            "U8x4" => Some((8, false)),
            "S8x4" => Some((8, true)),
            _ => None,
        })?;
        Some(Packed { bits, signed })
    }

    /// Reads an operand whose sign is that of each part.
    fn read(self, r: &Registers, s: &Source) -> gpu_arithmetic::Lanes {
        let plain = Source {
            negate: false,
            ..*s
        };
        let row = r.int(&plain);
        match s.negate {
            true => row.map(|v| self.map_parts(v, 0, |x, _| x.wrapping_neg())),
            false => row,
        }
    }

    /// Extends the part of a word from bit `at` on to 32 bits.
    #[inline(always)]
    fn part(self, word: u32, at: u32) -> u32 {
        let up = word >> at << (32 - self.bits);
        match self.signed {
            true => (up as i32 >> (32 - self.bits)) as u32,
            false => up >> (32 - self.bits),
        }
    }

    /// Applies `f` to each part, extended to 32 bits, and truncates the results.
    #[inline(always)]
    fn map_parts(self, a: u32, b: u32, f: impl Fn(u32, u32) -> u32) -> u32 {
        let cut = u32::MAX >> (32 - self.bits);
        let of = |at| (f(self.part(a, at), self.part(b, at)) & cut) << at;
        (0..32)
            .step_by(self.bits as usize)
            .fold(0, |all, at| all | of(at))
    }
}

/// Lowers the minimum or maximum, selected by a predicate; packed parts are separate.
fn minimum(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, true)?;
    let d = form.dest?;
    let (a, b) = (form.source(0)?, form.source(1)?);
    let smaller = *form.ins.first()?;
    // A predicate that says which operand was taken has no known meaning for equal ones.
    if form.outs.iter().any(|out| *out != Pred::ALWAYS) {
        return None;
    }
    let relu = i.has("RELU");
    if i.has("U64") || i.has("S64") {
        let signed = i.has("S64");
        return Some(Box::new(move |r, mask| {
            let (a, b, smaller) = (r.wide(&a), r.wide(&b), r.truth(smaller));
            let out = std::array::from_fn(|l| {
                let less = match signed {
                    true => (a[l] as i64) < b[l] as i64,
                    false => a[l] < b[l],
                };
                if less == (smaller >> l & 1 == 1) {
                    a[l]
                } else {
                    b[l]
                }
            });
            r.set_wide(d, mask, &out);
        }));
    }
    let packed = Packed::from_instruction(i).unwrap_or(Packed {
        bits: 32,
        signed: !i.has("U32"),
    });
    Some(Box::new(move |r, mask| {
        let (a, b, smaller) = (r.int(&a), r.int(&b), r.truth(smaller));
        let pick = |x, y, smaller| match extreme(x, y, smaller, packed.signed) {
            v if relu && packed.signed && (v as i32) < 0 => 0,
            v => v,
        };
        let out = map_lanes(|l| {
            let smaller = smaller >> l & 1 == 1;
            match packed.bits {
                32 => pick(a[l], b[l], smaller),
                _ => packed.map_parts(a[l], b[l], |x, y| pick(x, y, smaller)),
            }
        });
        r.set(d, mask, &out);
    }))
}

#[inline(always)]
fn extreme(a: u32, b: u32, smaller: bool, signed: bool) -> u32 {
    let less = if signed { (a as i32) < b as i32 } else { a < b };
    if less == smaller { a } else { b }
}

fn add_minimum(i: &Instruction) -> Option<Run> {
    extreme_with_third(i, |a, b, _, _| a.wrapping_add(b))
}

fn minimum3(i: &Instruction) -> Option<Run> {
    extreme_with_third(i, extreme)
}

/// Lowers the minimum or maximum of the third operand and of what `first` makes of the other two.
fn extreme_with_third(
    i: &Instruction,
    first: impl Fn(u32, u32, bool, bool) -> u32 + Send + Sync + 'static,
) -> Option<Run> {
    let form = Form::new(i, true)?;
    let d = form.dest?;
    let (a, b, c) = (form.source(0)?, form.source(1)?, form.source(2)?);
    let smaller = *form.ins.last()?;
    let relu = i.has("RELU");
    let packed = Packed::from_instruction(i).unwrap_or(Packed {
        bits: 32,
        signed: !i.has("U32"),
    });
    let signed = packed.signed;
    Some(Box::new(move |r, mask| {
        let [a, b, c] = [&a, &b, &c].map(|source| packed.read(r, source));
        let smaller = r.truth(smaller);
        let out = map_lanes(|l| {
            let smaller = smaller >> l & 1 == 1;
            let pick = |x, y| match extreme(x, y, smaller, signed) {
                v if relu && (v as i32) < 0 => 0,
                v => v,
            };
            match packed.bits {
                32 => pick(first(a[l], b[l], smaller, signed), c[l]),
                // The first result has the width of a part.
                _ => {
                    let both = packed.map_parts(a[l], b[l], |x, y| first(x, y, smaller, signed));
                    packed.map_parts(both, c[l], pick)
                }
            }
        });
        r.set(d, mask, &out);
    }))
}

fn leading(i: &Instruction) -> Option<Run> {
    let (signed, amount) = (!i.has("U32"), i.has("SH"));
    lower_unary(&Form::new(i, true)?, Registers::int, move |a| {
        integer::bfind(a.into(), 32, signed, amount)
    })
}

fn dot(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, true)?;
    let halves = i.modifiers.iter().any(|m| m.starts_with('2'));
    let types: Vec<&str> = i
        .modifiers
        .iter()
        .filter(|m| m.starts_with(['S', 'U']))
        .copied()
        .collect();
    let signed = |n: usize| types.get(n).is_some_and(|t| t.starts_with('S'));
    let (a_signed, b_signed) = (signed(0), signed(1));
    match halves {
        true => {
            let high = i.has("HI");
            lower_ternary(&form, Registers::int, move |a, b, c| {
                integer::dp2a(a, b, c, a_signed, b_signed, high)
            })
        }
        false => lower_ternary(&form, Registers::int, move |a, b, c| {
            integer::dp4a(a, b, c, a_signed, b_signed)
        }),
    }
}

fn difference(i: &Instruction) -> Option<Run> {
    let form = Form::new(i, true)?;
    let signed = i.has("S8") || i.has("S16") || i.has("S32");
    if i.opcode == "VABSDIFF" {
        let signed = !i.has("U32");
        return lower_ternary(&form, Registers::int, move |a, b, c| {
            let difference = if signed {
                (a as i32).abs_diff(b as i32)
            } else {
                a.abs_diff(b)
            };
            difference.wrapping_add(c)
        });
    }
    let video = Video {
        op: Simd::AbsDiff,
        elements: 4,
        a_signed: signed,
        b_signed: signed,
        d_signed: false,
        sat: false,
        accumulate: i.has("ACC"),
        mask: 15,
    };
    lower_ternary(&form, Registers::int, move |a, b, c| video.run(a, b, c))
}

fn extend(i: &Instruction) -> Option<Run> {
    let (signed, wrap) = (!i.has("U32"), i.has("W"));
    lower_binary(&Form::new(i, true)?, Registers::int, move |a, bits| {
        integer::szext(a, bits, signed, wrap)
    })
}
