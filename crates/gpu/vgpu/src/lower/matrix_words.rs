//! Matrices of doubles and of elements of less than a byte: `wmma.load` and `wmma.store` of them, and products of bits.

use super::program::{Area, Constant, Data, Mem, MmaBits, Op, Order, Special};
use super::{Fail, Lower, Lowered, Mods};
use crate::counters::Class;
use crate::exec::regs::{Kind, Slots, alu};
use gpu_arithmetic::mma::BitMma;
use gpu_arithmetic::wmma::{Fragment, Operand as WmmaOperand};
use ptx::ast::Instruction;
use ptx::structs::Unwritten;

/// Bits of the constant of an address: A or B (otherwise the accumulator), the layout, and the second register.
const OF_A: u32 = 1;
const OF_B: u32 = 2;
const ROW_MAJOR: u32 = 4;
const SECOND: u32 = 8;

/// Returns the offset of a lane's element in a matrix of doubles of m8n8k4.
fn double_offset(k: u32, lane: u32, stride: u32) -> u64 {
    let (group, thread) = (u64::from(lane / 4), u64::from(lane % 4));
    let (row, column) = match () {
        () if k & OF_A != 0 => (group, thread),
        () if k & OF_B != 0 => (thread, group),
        () => (group, 2 * thread + u64::from(k & SECOND != 0)),
    };
    let stride = u64::from(stride);
    8 * if k & ROW_MAJOR != 0 {
        row * stride + column
    } else {
        column * stride + row
    }
}

/// Returns the fragment of a matrix of elements of less than a byte, by words of a row of A or a column of B; `None` for other
/// layouts and shapes.
pub(super) fn words_fragment(m: &Mods<'_>, which: &str) -> Option<Fragment> {
    let fits = m.has(if m.has("b1") { "m8n8k128" } else { "m8n8k32" });
    match which {
        "a" if fits && m.has("row") => Some(Fragment::words(WmmaOperand::A)),
        "b" if fits && m.has("col") => Some(Fragment::words(WmmaOperand::B)),
        _ => None,
    }
}

impl<'a> Lower<'a> {
    /// Returns the row of a stride in words, given that in elements of which a word has two to this power.
    pub(super) fn stride_in_words(&mut self, stride: u32, shift: u32) -> u32 {
        let d = self.row32();
        let alu = alu!(k; |a: U32| -> U32 a >> k);
        let slots = Slots {
            d,
            s: [stride, 0, 0, 0],
            imm: shift,
        };
        self.push(Op::Alu(alu.run, slots), Class::Int);
        d
    }

    /// Lowers `wmma.load` and `wmma.store` of doubles to those of single elements.
    pub(super) fn wmma_doubles(
        &mut self,
        i: &'a Instruction<'a>,
        m: &Mods<'_>,
        store: bool,
    ) -> Lowered<()> {
        let which = m.0.get(1).copied().unwrap_or_default();
        let (registers, address, stride) = match (store, i.operands.as_slice()) {
            (false, [r, a, rest @ ..]) | (true, [a, r, rest @ ..]) => (r, a, rest.first()),
            _ => return Err(Fail::Operand("operands are missing".to_owned())),
        };
        let area = self.area(m)?;
        let at = self.address(address, area)?;
        let base = match at.base {
            Data::R64(row) => row,
            Data::R32(row) => {
                let wide = self.row64();
                self.push_alu(alu!(|a: U32| -> U64 a.into()).run, wide, [row, 0, 0, 0]);
                wide
            }
            Data::Nothing => return Err(Fail::Unsupported("at a constant address")),
        };
        let (operand, count, tight) = match which {
            "a" => (OF_A, 1, if m.has("row") { 4 } else { 8 }),
            "b" => (OF_B, 1, if m.has("row") { 8 } else { 4 }),
            _ => (0, 2, 8),
        };
        let stride = match stride {
            Some(stride) => self.source(stride, Kind::R32)?,
            None => self.number(Kind::R32, tight),
        };
        let lane = self.constant(Kind::R32, Constant::Special(Special::Lane));
        let layout = if m.has("row") { ROW_MAJOR } else { 0 };
        let rows = self.wide_rows(registers, count)?;
        for (row, part) in rows.into_iter().zip([0, SECOND]) {
            let d = self.row64();
            let place = alu!(k; |base: U64, lane: U32, stride: U32| -> U64
                base.wrapping_add(double_offset(k, lane, stride)));
            let slots = Slots {
                d,
                s: [base, lane, stride, 0],
                imm: operand | layout | part,
            };
            self.push(Op::Alu(place.run, slots), Class::Int);
            let element = Mem {
                at: super::program::Address {
                    base: Data::R64(d),
                    ..at
                },
                width: 8,
                signed: false,
                data: vec![Data::R64(row)],
                order: Order::Weak,
                device_wide: true,
                unwritten: Unwritten::Hazard,
                read_only: false,
                used: u32::MAX,
                counted: u32::MAX,
            };
            let op = match store {
                true => Op::Store(Box::new(element)),
                false => Op::Load(Box::new(element)),
            };
            let class = match area {
                Area::Shared => Class::Shared,
                _ => Class::Global,
            };
            self.push(op, class);
        }
        Ok(())
    }

    /// Lowers the products of bits of `mma` and `wmma`.
    pub(super) fn mma_bits(
        &mut self,
        i: &'a Instruction<'a>,
        m: &Mods<'_>,
        [rows, k]: [usize; 2],
    ) -> Lowered<()> {
        let [d, a, b, c] = i.operands.as_slice() else {
            return Err(Fail::Operand("four operands are needed".to_owned()));
        };
        let form = BitMma {
            m: rows,
            k,
            and: m.has("and"),
        };
        let known = m.has("popc") && (form.and || m.has("xor"));
        let counts = form.registers().filter(|_| known);
        let counts = counts.ok_or(Fail::Unsupported("this combination"))?;
        let op = MmaBits {
            form,
            a: self.fixed(a, counts.a)?,
            b: self.fixed(b, counts.b)?,
            c: self.fixed(c, counts.c)?,
            d: self.fixed(d, counts.d)?,
        };
        self.push(Op::MmaBits(Box::new(op)), Class::Tensor);
        Ok(())
    }
}
