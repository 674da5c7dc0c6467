//! `cvt.rs`: conversions whose rounding is decided by given random bits (PTX ISA, `cvt`).

use super::convert_mode::{RELU, flags, overflow};
use super::{Fail, Lower, Lowered, Mods, Picked};
use crate::counters::Class;
use crate::exec::regs::{Alu, Kind, Slots, alu};
use crate::lower::program::Op;
use gpu_arithmetic::half::{self, Bfloat16, Fp16, Half};
use gpu_arithmetic::small::{self, Small};
use ptx::ast::{Instruction, Operand};

/// Results of four numbers, with their formats.
const FOURS: [(&str, Small); 5] = [
    ("e4m3x4", Small::E4m3),
    ("e5m2x4", Small::E5m2),
    ("e2m3x4", Small::E2m3),
    ("e3m2x4", Small::E3m2),
    ("e2m1x4", Small::E2m1),
];
/// Position of the index of a format in an instruction's constant.
const FORMAT: u32 = 8;

fn picked(alu: Alu, imm: u32) -> Picked {
    Picked {
        alu,
        imm,
        class: Class::Convert,
        flops: 0,
    }
}

fn format(k: u32) -> Small {
    FOURS[(k >> FORMAT) as usize % FOURS.len()].1
}

/// Rounds two numbers to halves with the random bits of a word, `a` with the upper ones.
fn halves<H: Half>([a, b]: [f32; 2], random: u32, k: u32) -> u32 {
    let [low, high] = [(b, random as u16), (a, (random >> 16) as u16)].map(|(x, random)| {
        let half = half::from_f32_stochastic::<H>(x, random, overflow(k));
        if k & RELU != 0 {
            half::relu::<H>(half)
        } else {
            half
        }
    });
    half::pack(low, high)
}

/// Returns two codes side by side, rounded with two of the four parts of the random bits.
fn pair([high, low]: [f32; 2], [of_low, of_high]: [u16; 2], k: u32) -> u32 {
    let code = |x, random| small::from_f32_stochastic(format(k), x, random, k & RELU != 0);
    u32::from(code(high, of_high)) << format(k).pair_shift() | u32::from(code(low, of_low))
}

impl<'a> Lower<'a> {
    /// Lowers `cvt.rs`.
    pub(super) fn stochastic(&mut self, i: &'a Instruction<'a>, m: &Mods<'_>) -> Lowered<()> {
        let k = flags(m);
        let four = FOURS.iter().position(|(name, _)| m.has(name));
        match (four, i.operands.as_slice()) {
            (None, [d, a, b, random]) if m.has("f16x2") => {
                let alu = alu!(k; |a: F32, b: F32, r: U32| -> U32 halves::<Fp16>([a, b], r, k));
                self.emit(picked(alu, k), d, &[a, b, random])
            }
            (None, [d, a, b, random]) if m.has("bf16x2") => {
                let alu = alu!(k; |a: F32, b: F32, r: U32| -> U32 halves::<Bfloat16>([a, b], r, k));
                self.emit(picked(alu, k), d, &[a, b, random])
            }
            (Some(index), [d, Operand::Vector(parts), random]) => match parts.as_slice() {
                [a, b, e, f] => self.four(d, [a, b, e, f], random, k | (index as u32) << FORMAT),
                _ => Err(Fail::Operand("four numbers are needed".to_owned())),
            },
            _ => Err(Fail::Unsupported("")),
        }
    }

    /// Lowers a conversion of four numbers, the first of which comes to lie in the highest bits.
    fn four(
        &mut self,
        d: &Operand<'a>,
        [a, b, e, f]: [&Operand<'a>; 4],
        random: &Operand<'a>,
        k: u32,
    ) -> Lowered<()> {
        let random = self.source(random, Kind::R32)?;
        let mut s = [0; 4];
        for (row, operand) in s.iter_mut().zip([e, f]) {
            *row = self.source(operand, Kind::R32)?;
        }
        s[2] = random;
        let lower = alu!(k; |e: F32, f: F32, r: U32| -> U32 {
            let [f_bits, e_bits, _, _] = small::shared_bits(format(k), r);
            pair([e, f], [f_bits, e_bits], k)
        });
        let low = self.row32();
        let slots = Slots { d: low, s, imm: k };
        self.push(Op::Alu(lower.run, slots), Class::Convert);
        let upper = alu!(k; |a: F32, b: F32, r: U32, low: U32| -> U32 {
            let [_, _, b_bits, a_bits] = small::shared_bits(format(k), r);
            pair([a, b], [b_bits, a_bits], k) << (2 * format(k).pair_shift()) | low
        });
        let s = [
            self.source(a, Kind::R32)?,
            self.source(b, Kind::R32)?,
            random,
            low,
        ];
        let (d, fix) = self.dest(d, Kind::R32)?;
        self.push(Op::Alu(upper.run, Slots { d, s, imm: k }), Class::Convert);
        self.finish_dest(fix, d);
        Ok(())
    }
}
