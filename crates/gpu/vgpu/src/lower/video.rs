//! Video instructions: SIMD ones (`vabsdiff4`, `vadd2`, `vset4`, …) and scalar ones (`vadd`, `vset`, …).

use crate::counters::Class;
use crate::exec::regs::{Kind, Slots, alu};
use crate::lower::program::Op;
use crate::lower::{Fail, Lower, Lowered, Mods, Picked};
use gpu_arithmetic::integer::{self, Permute};
use gpu_arithmetic::video::{MultiplyAdd, Part, Scalar, Second, Simd, Video};
use ptx::ast::{Instruction, Type};

const A: u32 = 1 << 4;
const B: u32 = 1 << 5;
const D: u32 = 1 << 6;
const SAT: u32 = 1 << 7;
const ADD: u32 = 1 << 8;
const HALVES: u32 = 1 << 9;
/// Position of the mask of a SIMD form, and of the parts and the second operation of a scalar one.
const MASK: u32 = 10;
const PARTS: u32 = 10;
const SECOND: u32 = 20;

const NAMES: [(&str, Simd); 6] = [
    ("vadd", Simd::Add),
    ("vsub", Simd::Sub),
    ("vavrg", Simd::Average),
    ("vabsdiff", Simd::AbsDiff),
    ("vmin", Simd::Min),
    ("vmax", Simd::Max),
];
const COMPARISONS: [(&str, Simd); 6] = [
    ("eq", Simd::Eq),
    ("ne", Simd::Ne),
    ("lt", Simd::Lt),
    ("le", Simd::Le),
    ("gt", Simd::Gt),
    ("ge", Simd::Ge),
];
/// `vshl` and `vshr`, with `.clamp` and `.wrap`.
const SHIFTS: [(&str, Simd); 4] = [
    ("vshl", Simd::ShlClamp),
    ("vshl", Simd::ShlWrap),
    ("vshr", Simd::ShrClamp),
    ("vshr", Simd::ShrWrap),
];
const SECONDS: [(&str, Second); 4] = [
    ("", Second::Merge),
    ("add", Second::Add),
    ("min", Second::Min),
    ("max", Second::Max),
];
const PART_NAMES: [&str; 7] = ["", "b0", "b1", "b2", "b3", "h0", "h1"];

/// Splits an opcode into its name and number of elements, which is 1 of a scalar one.
fn split(opcode: &str) -> (&str, u32) {
    match (opcode.strip_suffix('4'), opcode.strip_suffix('2')) {
        (Some(stem), _) => (stem, 4),
        (_, Some(stem)) => (stem, 2),
        _ => (opcode, 1),
    }
}

/// Reports whether an instruction is one of these.
pub(super) fn is_video(opcode: &str) -> bool {
    let (stem, _) = split(opcode);
    let mut names = NAMES.iter().chain(&SHIFTS);
    matches!(stem, "vset" | "vmad") || names.any(|(name, _)| *name == stem)
}

fn operation(k: u32) -> Simd {
    let all = NAMES.iter().chain(&COMPARISONS).chain(&SHIFTS);
    all.map(|(_, op)| *op)
        .nth((k & 15) as usize)
        .unwrap_or(Simd::Add)
}

/// Returns operation and flags of the constant.
fn flags(stem: &str, m: &Mods<'_>) -> Option<u32> {
    let types: Vec<Type> = m.types().collect();
    let (index, [d, a, b]) = match (stem, types.as_slice()) {
        ("vset", &[a, b]) => {
            let named = COMPARISONS.iter().position(|(name, _)| m.has(name))?;
            // The result of a comparison has no sign.
            (NAMES.len() + named, [Type::U32, a, b])
        }
        ("vset", _) => return None,
        ("vshl" | "vshr", &[d, a, b]) if !b.signed() && (m.has("clamp") || m.has("wrap")) => {
            let named = SHIFTS.iter().position(|(name, _)| *name == stem)?;
            let place = NAMES.len() + COMPARISONS.len() + named + usize::from(m.has("wrap"));
            (place, [d, a, b])
        }
        (_, &[d, a, b]) => (NAMES.iter().position(|(name, _)| *name == stem)?, [d, a, b]),
        _ => return None,
    };
    let mut k = index as u32;
    for (on, bit) in [
        (a.signed(), A),
        (b.signed(), B),
        (d.signed(), D),
        (m.has("sat"), SAT),
    ] {
        k |= if on { bit } else { 0 };
    }
    Some(k)
}

/// Returns the selector of `prmt` for `.b3210` or `.h10`: elements of two registers, the highest first.
fn permutation(part: &str, elements: u32) -> Option<u32> {
    let (kind, digits) = part.split_at_checked(1)?;
    let digits: Option<Vec<u32>> = digits.chars().map(|c| c.to_digit(8)).collect();
    let digits = digits.filter(|digits| digits.len() == elements as usize)?;
    match (kind, elements) {
        ("b", 4) => Some(digits.iter().fold(0, |all, digit| all << 4 | digit)),
        ("h", 2) if digits.iter().all(|digit| *digit < 4) => {
            let bytes = |half: &u32| ((2 * half + 1) << 4) | (2 * half);
            Some(digits.iter().fold(0, |all, half| all << 8 | bytes(half)))
        }
        _ => None,
    }
}

/// Returns the elements that `.b20` or `.h1` names.
fn mask(part: &str, elements: u32) -> Option<u32> {
    let (kind, digits) = part.split_at_checked(1)?;
    let right = matches!((kind, elements), ("b", 4) | ("h", 2)) && !digits.is_empty();
    let digits = right.then_some(digits)?.chars();
    digits
        .map(|c| c.to_digit(elements))
        .try_fold(0, |all, digit| Some(all | 1 << digit?))
}

impl<'a> Lower<'a> {
    /// Lowers a video instruction.
    pub(super) fn video(&mut self, i: &'a Instruction<'a>, m: &Mods<'_>) -> Lowered<()> {
        let (stem, elements) = split(i.opcode);
        if stem == "vmad" {
            return self.multiply_add(i, m);
        }
        let k = flags(stem, m).ok_or(Fail::Unsupported(""))?;
        let (dest, a, b, c) = match i.operands.as_slice() {
            [dest, a, b, c] => (dest, a, b, Some(c)),
            [dest, a, b] if elements == 1 => (dest, a, b, None),
            _ => return Err(Fail::Operand("operands are missing".to_owned())),
        };
        let part = |operand: usize| i.parts.iter().find(|(n, _)| *n == operand).map(|(_, p)| *p);
        if i.parts.iter().any(|(operand, _)| *operand > 2) {
            return Err(Fail::Unsupported("with this part"));
        }
        let mut s = [self.source(a, Kind::R32)?, self.source(b, Kind::R32)?, 0, 0];
        s[2] = match c {
            Some(c) => self.source(c, Kind::R32)?,
            None => self.number(Kind::R32, 0),
        };
        // The ISA gives c the sign of the destination; the assembler compares signed numbers.
        if elements == 1 && k & D == 0 && (m.has("min") || m.has("max")) {
            return Err(Fail::Unsupported("an extreme of unsigned numbers"));
        }
        let (run, imm) = if elements == 1 {
            let imm = scalar(k, m, [part(1), part(2), part(0)]);
            let alu = alu!(k; |a: U32, b: U32, c: U32| -> U32 scalar_form(k).run(a, b, c));
            (alu.run, imm)
        } else {
            let pair = [s[0], s[1]];
            for (n, row) in s.iter_mut().enumerate().take(2) {
                if let Some(part) = part(n + 1) {
                    *row = self.permuted(pair, permutation(part, elements))?;
                }
            }
            let all = Some((1 << elements) - 1);
            let counted = part(0).map_or(all, |part| mask(part, elements));
            let add = if m.has("add") { ADD } else { 0 };
            let halves = if elements == 2 { HALVES } else { 0 };
            let imm = counted.map(|mask| k | mask << MASK | add | halves);
            let alu = alu!(k; |a: U32, b: U32, c: U32| -> U32 form(k).run(a, b, c));
            (alu.run, imm)
        };
        let imm = imm.ok_or(Fail::Unsupported("with this part"))?;
        let (d, fix) = self.dest(dest, Kind::R32)?;
        self.push(Op::Alu(run, Slots { d, s, imm }), Class::Int);
        self.finish_dest(fix, d);
        Ok(())
    }

    /// Lowers `vmad`.
    fn multiply_add(&mut self, i: &'a Instruction<'a>, m: &Mods<'_>) -> Lowered<()> {
        let [dest, sources @ ..] = i.operands.as_slice() else {
            return Err(Fail::Operand("operands are missing".to_owned()));
        };
        let part = |operand: usize| {
            let named = i.parts.iter().find(|(n, p)| *n == operand && *p != "-");
            let index = |p: &str| PART_NAMES.iter().position(|name| *name == p);
            named.map_or(Some(0), |(_, p)| index(p))
        };
        let minus = |operand: usize| u32::from(i.parts.contains(&(operand, "-")));
        let types: Vec<Type> = m.types().collect();
        let (Some(of_a), Some(of_b), &[_, a, b]) = (part(1), part(2), types.as_slice()) else {
            return Err(Fail::Unsupported("with this part"));
        };
        let shift = match () {
            () if m.has("shr7") => 7,
            () if m.has("shr15") => 15,
            () => 0,
        };
        let bits = [
            a.signed().into(),
            b.signed().into(),
            minus(1) ^ minus(2),
            minus(3),
            m.has("po").into(),
            m.has("sat").into(),
        ];
        let bits = (0..)
            .zip(bits)
            .fold(0, |all, (at, bit): (u32, u32)| all | bit << at);
        let imm = bits | (of_a as u32) << 8 | (of_b as u32) << 11 | shift << 14;
        let form = multiply_add_form(imm);
        // The assembler multiplies words as signed ones and extends the sign of `c`, whatever their types.
        let is_word = |n: usize| !form.signed[n] && form.parts[n] == Part(0);
        if (form.sat || shift > 0) && (!form.is_signed() || is_word(0) || is_word(1)) {
            let why = "unsigned words with a scale or saturation, which the assembler takes for signed ones";
            return Err(Fail::Unsupported(why));
        }
        let alu = alu!(k; |a: U32, b: U32, c: U32| -> U32 multiply_add_form(k).run(a, b, c));
        let class = Class::Int;
        let picked = Picked {
            alu,
            imm,
            class,
            flops: 0,
        };
        let sources: Vec<_> = sources.iter().collect();
        self.emit(picked, dest, &sources)
    }

    /// Returns the row of bytes of a pair of rows.
    fn permuted(&mut self, [a, b]: [u32; 2], selector: Option<u32>) -> Lowered<u32> {
        let imm = selector.ok_or(Fail::Unsupported("with this part"))?;
        let d = self.row32();
        let s = [a, b, 0, 0];
        let alu = alu!(k; |a: U32, b: U32| -> U32 integer::prmt(a, b, k, Permute::Default));
        self.push(Op::Alu(alu.run, Slots { d, s, imm }), Class::Int);
        Ok(d)
    }
}

/// Returns the constant of a scalar form; `None` for a part that does not exist.
fn scalar(k: u32, m: &Mods<'_>, parts: [Option<&str>; 3]) -> Option<u32> {
    let mut k = k;
    for (n, part) in (0..).zip(parts) {
        let index = PART_NAMES
            .iter()
            .position(|name| *name == part.unwrap_or(""))?;
        k |= (index as u32) << (PARTS + 3 * n);
    }
    let second = SECONDS.iter().skip(1).position(|(name, _)| m.has(name));
    Some(k | second.map_or(0, |index| index as u32 + 1) << SECOND)
}

fn scalar_form(k: u32) -> Scalar {
    let part = |n: u32| Part(k >> (PARTS + 3 * n) & 7);
    Scalar {
        op: operation(k),
        signed: [k & A != 0, k & B != 0, k & D != 0],
        parts: [part(0), part(1), part(2)],
        sat: k & SAT != 0,
        second: SECONDS[(k >> SECOND & 3) as usize].1,
    }
}

fn multiply_add_form(k: u32) -> MultiplyAdd {
    let bit = |at: u32| k >> at & 1 == 1;
    MultiplyAdd {
        signed: [bit(0), bit(1)],
        parts: [Part(k >> 8 & 7), Part(k >> 11 & 7)],
        minus_product: bit(2),
        minus_c: bit(3),
        plus_one: bit(4),
        shift: k >> 14,
        sat: bit(5),
    }
}

fn form(k: u32) -> Video {
    Video {
        op: operation(k),
        elements: if k & HALVES != 0 { 2 } else { 4 },
        a_signed: k & A != 0,
        b_signed: k & B != 0,
        d_signed: k & D != 0,
        sat: k & SAT != 0,
        accumulate: k & ADD != 0,
        mask: k >> MASK & 15,
    }
}
