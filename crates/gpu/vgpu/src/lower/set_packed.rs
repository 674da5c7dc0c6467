//! `set` of packed numbers whose comparisons are combined with a predicate.

use super::program::Op;
use super::{Fail, Lower, Lowered, Mods, select};
use crate::counters::Class;
use crate::exec::regs::{Kind, Slots, alu};
use ptx::ast::{Operand, Type};

impl<'a> Lower<'a> {
    /// Lowers `set.CMP.BOOL.dtype.{f16x2,bf16x2}`.
    pub(super) fn set_packed(
        &mut self,
        dest: &'a Operand<'a>,
        [a, b]: [&'a Operand<'a>; 2],
        combine: &'a [Operand<'a>],
        m: &Mods<'a>,
    ) -> Lowered<()> {
        let types: Vec<Type> = m.types().collect();
        let (&[to, from], Some(cmp)) = (types.as_slice(), select::comparison(m)) else {
            return Err(Fail::Unsupported(""));
        };
        let mut holds = [0; 4];
        for (row, high) in holds.iter_mut().zip([false, true]) {
            let picked = select::compare_packed(cmp, from, high, m.has("ftz"));
            *row = self.compared(&picked.ok_or(Fail::Unsupported(""))?, a, b)?;
            self.combined(*row, *row, &Operand::Sink, combine, m)?;
        }
        let imm = match to {
            Type::F16x2 => 0x3c00,
            Type::Bf16x2 => 0x3f80,
            _ => 0xffff,
        };
        let alu = alu!(k; |low: P, high: P| -> U32
            (if low { k } else { 0 }) | (if high { k << 16 } else { 0 }));
        let (d, fix) = self.dest(dest, Kind::R32)?;
        let slots = Slots { d, s: holds, imm };
        self.push(Op::Alu(alu.run, slots), Class::Move);
        self.finish_dest(fix, d);
        Ok(())
    }
}
