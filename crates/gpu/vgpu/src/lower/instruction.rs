//! Lowers one instruction: the register-only families; others are delegated.

use super::program::{
    Address, Area, CarryOp, Constant, Data, LOCAL_WINDOW, Op, PARAM_WINDOW, SHARED_WINDOW,
};
use super::{
    Fail, Lower, Lowered, Mods, Picked, convert, float, int, pairs, random, select, shadow_values,
    video,
};
use crate::counters::Class;
use crate::exec::regs::{Kind, Slots, alu};
use crate::exec::shadow_values::{ShadowOperation, ShadowedAlu};
use ptx::ast::{Instruction, Operand, Type};

impl<'a> Lower<'a> {
    /// Tries the instruction families in turn.
    pub(super) fn dispatch(&mut self, i: &'a Instruction<'a>) -> Lowered<()> {
        let m = Mods(&i.modifiers);
        if video::is_video(i.opcode) {
            return self.video(i, &m);
        }
        if !i.parts.is_empty() {
            return Err(Fail::Unsupported("with a part of a register"));
        }
        // Families with side effects come first; all other opcodes only compute.
        if self.control(i)?
            || self.memory(i, &m)?
            || self.sync(i, &m)?
            || self.matrix(i, &m)?
            || self.warpgroup(i, &m)?
            || self.tensor_core(i, &m)?
            || self.launch_control(i, &m)?
            || self.image(i, &m)?
        {
            return Ok(());
        }
        match i.opcode {
            "mov" => self.mov(i, &m),
            "setp" => self.setp(i, &m),
            "set" => self.set(i, &m),
            "cvt" if m.has("rs") => self.stochastic(i, &m),
            "cvt" => self.plain(i, self.rounded("cvt", &m, convert::pick(&m))),
            "lop3" => self.lop3(i, &m),
            "cvta" => self.cvta(i, &m),
            "isspacep" => self.isspacep(i, &m),
            "addc" | "subc" | "madc" => self.carry(i, &m),
            "add" | "sub" | "mad" if m.has("cc") => self.carry(i, &m),
            "fma" if m.has("oob") => Err(Fail::Unsupported(
                "the PTX ISA does not give the bits of the NaN outside a tensor",
            )),
            "multimem" => Err(Fail::Unsupported(
                "a virtual device has no multicast objects that it could address",
            )),
            "nanosleep" => self.single(Op::Sleep),
            "setmaxnreg" => self.set_registers(i, m.has("inc")),
            // Exact for a launch that does not depend on another one: `wait` returns at once, and
            // `launch_dependents` has no dependents to launch.
            "griddepcontrol" if m.has("wait") || m.has("launch_dependents") => self.single(Op::Nop),
            "pragma" | "pmevent" => self.single(Op::Nop),
            opcode => {
                let ty = m.ty().ok_or(Fail::Unsupported(""))?;
                let sources = i.operands.len().saturating_sub(1);
                if let (Some(picked), Some((dest, sources))) =
                    (pairs::pick(opcode, &m, sources), i.operands.split_first())
                {
                    let sources: Vec<_> = sources.iter().collect();
                    return self.emit(picked, dest, &sources);
                }
                let floating = ty.float() || matches!(ty, Type::F16x2 | Type::Bf16x2);
                let picked = select::pick(opcode, &m).or_else(|| {
                    if floating {
                        float::pick(opcode, &m)
                    } else {
                        int::pick(opcode, &m)
                    }
                });
                self.plain(i, self.rounded(opcode, &m, picked))
            }
        }
    }

    /// Returns the instruction with a randomly rounded result, if the module requests it.
    fn rounded(&self, opcode: &str, m: &Mods<'_>, picked: Option<Picked>) -> Option<Picked> {
        let picked = picked?;
        let random = if self.form == super::Form::RandomlyRounded {
            random::pick(opcode, m, picked)
        } else {
            None
        };
        random.or(Some(picked))
    }

    fn single(&mut self, op: Op) -> Lowered<()> {
        self.push(op, Class::Control);
        Ok(())
    }

    /// Lowers `setmaxnreg`, whose number is a multiple of 8 from 24 to 256.
    fn set_registers(&mut self, i: &Instruction<'a>, increase: bool) -> Lowered<()> {
        let count = match i.operands.first() {
            Some(Operand::Int(count)) => u32::try_from(*count).unwrap_or(0),
            _ => 0,
        };
        if !(24..=256).contains(&count) || !count.is_multiple_of(8) {
            let why = "the number of registers is a multiple of 8 from 24 to 256";
            return Err(Fail::Operand(why.to_owned()));
        }
        self.push(Op::SetRegisters { count, increase }, Class::Sync);
        Ok(())
    }

    /// Lowers an operation whose operands are a destination and its sources.
    fn plain(&mut self, i: &'a Instruction<'a>, picked: Option<Picked>) -> Lowered<()> {
        let Some(picked) = picked else {
            return Err(Fail::Unsupported(""));
        };
        let Some((dest, sources)) = i.operands.split_first() else {
            return Err(Fail::Operand("operands are missing".to_owned()));
        };
        let operation = shadow_values::pick(i.opcode, &Mods(&i.modifiers));
        let sources: Vec<_> = sources.iter().collect();
        self.emit_shadowed(picked, operation, dest, &sources)
    }

    pub(super) fn emit(
        &mut self,
        picked: Picked,
        dest: &Operand<'a>,
        sources: &[&Operand<'a>],
    ) -> Lowered<()> {
        self.emit_shadowed(picked, None, dest, sources)
    }

    /// Emits an instruction that has this operation on shadow values, if the program has any.
    fn emit_shadowed(
        &mut self,
        picked: Picked,
        operation: Option<ShadowOperation>,
        dest: &Operand<'a>,
        sources: &[&Operand<'a>],
    ) -> Lowered<()> {
        let Picked {
            alu,
            imm,
            class,
            flops,
        } = picked;
        // Malformed PTX is rejected here: each operation has a fixed number of operands.
        if sources.len() != alu.sources.len() {
            return Err(Fail::Operand(format!(
                "{} source operands where {} are needed",
                sources.len(),
                alu.sources.len()
            )));
        }
        let mut s = [0; 4];
        for ((slot, operand), kind) in s.iter_mut().zip(sources).zip(alu.sources) {
            *slot = self.source(operand, *kind)?;
        }
        let (d, fix) = self.dest(dest, alu.dest)?;
        let slots = Slots { d, s, imm };
        // The most frequent instruction has an operation of its own, which the inner loop calls
        // directly.
        let floats = matches!(alu.sources, [Kind::R32, Kind::R32, Kind::R32]);
        let fused = floats && flops == 2 && imm == 0 && class == Class::Fp32;
        let op = match () {
            () if self.form == super::Form::Shadowed => Op::Shadowed(Box::new(ShadowedAlu {
                run: alu.run,
                slots,
                sources: alu.sources,
                dest: alu.dest,
                operation,
            })),
            () if fused => Op::FmaF32(slots),
            () => Op::Alu(alu.run, slots),
        };
        self.push_flops(op, class, flops);
        self.finish_dest(fix, d);
        Ok(())
    }

    fn mov(&mut self, i: &'a Instruction<'a>, m: &Mods<'_>) -> Lowered<()> {
        let ty = m.ty().ok_or(Fail::Unsupported(""))?;
        let [dest, source] = i.operands.as_slice() else {
            return Err(Fail::Operand("mov takes two operands".to_owned()));
        };
        if let Operand::Vector(parts) = dest {
            let from = self.data_source(source, ty.bytes())?;
            let to: Lowered<Vec<Data>> = parts.iter().map(|p| self.data(p)).collect();
            let width = ty.bytes() / parts.len().max(1) as u32;
            return self.moved(
                Op::Unpack {
                    from,
                    to: to?,
                    width,
                },
                width,
            );
        }
        if let Operand::Vector(parts) = source {
            let width = ty.bytes() / parts.len().max(1) as u32;
            let from: Lowered<Vec<Data>> =
                parts.iter().map(|p| self.data_source(p, width)).collect();
            let to = self.data(dest)?;
            return self.moved(
                Op::Pack {
                    from: from?,
                    to,
                    width,
                },
                width,
            );
        }
        let alu = match ty {
            Type::Pred => alu!(|a: P| -> P a),
            _ => match ty.bytes() {
                2 => alu!(|a: U16| -> U16 a),
                4 => alu!(|a: U32| -> U32 a),
                8 => alu!(|a: U64| -> U64 a),
                _ => return Err(Fail::Unsupported("")),
            },
        };
        self.emit(
            Picked {
                alu,
                imm: 0,
                class: Class::Move,
                flops: 0,
            },
            dest,
            &[source],
        )
    }

    fn moved(&mut self, op: Op, width: u32) -> Lowered<()> {
        if !matches!(width, 1 | 2 | 4 | 8) {
            return Err(Fail::Unsupported("a vector of this shape"));
        }
        self.push(op, Class::Move);
        Ok(())
    }

    fn setp(&mut self, i: &'a Instruction<'a>, m: &Mods<'a>) -> Lowered<()> {
        let (cmp, ty) = select::comparison(m)
            .zip(m.ty())
            .ok_or(Fail::Unsupported(""))?;
        let (dest, rest) = i.operands.split_first().ok_or(Fail::Unsupported(""))?;
        let [a, b, combine @ ..] = rest else {
            return Err(Fail::Operand("setp takes two sources".to_owned()));
        };
        // `setp` may have two destinations, `p|q`: the second is the complement.
        let (p, q) = match dest {
            Operand::Pair(p, q) => (&**p, &**q),
            p => (p, &Operand::Sink),
        };
        let ftz = m.has("ftz");
        // A packed comparison has one destination for each half.
        if matches!(ty, Type::F16x2 | Type::Bf16x2) {
            let halves = [false, true].map(|high| select::compare_packed(cmp, ty, high, ftz));
            let [Some(low), Some(high)] = halves else {
                return Err(Fail::Unsupported(""));
            };
            let (low, high) = (self.compared(&low, a, b)?, self.compared(&high, a, b)?);
            // In rows of their own: a destination may be the combined predicate.
            self.combined(low, low, &Operand::Sink, combine, m)?;
            self.combined(high, high, &Operand::Sink, combine, m)?;
            let (p, _) = self.dest(p, Kind::P)?;
            let (q, _) = self.dest(q, Kind::P)?;
            self.combined(low, p, &Operand::Sink, &[], m)?;
            return self.combined(high, q, &Operand::Sink, &[], m);
        }
        let picked = select::compare(cmp, ty, ftz).ok_or(Fail::Unsupported(""))?;
        // Without a combination, the comparison writes its destination directly.
        if combine.is_empty() && *q == Operand::Sink {
            return self.emit(picked, p, &[a, b]);
        }
        let temp = self.compared(&picked, a, b)?;
        let (p, _) = self.dest(p, Kind::P)?;
        self.combined(temp, p, q, combine, m)
    }

    /// Combines a comparison with a predicate, if there is one, into `p`, and its complement with
    /// the same into `q`.
    pub(super) fn combined(
        &mut self,
        compare: u32,
        p: u32,
        q: &'a Operand<'a>,
        combine: &'a [Operand<'a>],
        m: &Mods<'a>,
    ) -> Lowered<()> {
        let (with, negated) = match combine.first() {
            Some(Operand::Not(reg)) => (self.pred_row(*reg)?, true),
            Some(other) => (self.source(other, Kind::P)?, false),
            None => (self.constant(Kind::P, Constant::Value(1)), false),
        };
        let how = match () {
            () if combine.is_empty() => 0,
            () if m.has("or") => 1,
            () if m.has("xor") => 2,
            () => 0,
        };
        let (q, _) = self.dest(q, Kind::P)?;
        self.push(
            Op::SetpCombine {
                p,
                q,
                compare,
                with,
                negated,
                how,
            },
            Class::Move,
        );
        Ok(())
    }

    /// Compares two sources into a new predicate. Returns its row.
    pub(super) fn compared(
        &mut self,
        picked: &Picked,
        a: &'a Operand<'a>,
        b: &'a Operand<'a>,
    ) -> Lowered<u32> {
        let temp = self.new_pred();
        let s = [
            self.source(a, picked.alu.sources[0])?,
            self.source(b, picked.alu.sources[1])?,
        ];
        let slots = Slots {
            d: temp,
            s: [s[0], s[1], 0, 0],
            imm: picked.imm,
        };
        self.push(Op::Alu(picked.alu.run, slots), picked.class);
        Ok(temp)
    }

    fn set(&mut self, i: &'a Instruction<'a>, m: &Mods<'a>) -> Lowered<()> {
        let cmp = select::comparison(m).ok_or(Fail::Unsupported(""))?;
        let types: Vec<Type> = m.types().collect();
        let (&[to, from], [dest, a, b, combine @ ..]) = (types.as_slice(), i.operands.as_slice())
        else {
            return Err(Fail::Unsupported(""));
        };
        if matches!(from, Type::F16x2 | Type::Bf16x2) && combine.is_empty() {
            let picked = select::set_packed(cmp, from, to, m.has("ftz"));
            return self.emit(picked.ok_or(Fail::Unsupported(""))?, dest, &[a, b]);
        }
        if matches!(from, Type::F16x2 | Type::Bf16x2) {
            return self.set_packed(dest, [a, b], combine, m);
        }
        let picked = select::compare(cmp, from, m.has("ftz")).ok_or(Fail::Unsupported(""))?;
        let result = select::set_result(to).ok_or(Fail::Unsupported(""))?;
        let temp = self.compared(&picked, a, b)?;
        if !combine.is_empty() {
            self.combined(temp, temp, &Operand::Sink, combine, m)?;
        }
        let (d, fix) = self.dest(dest, result.dest)?;
        let slots = Slots {
            d,
            s: [temp, 0, 0, 0],
            imm: 0,
        };
        self.push(Op::Alu(result.run, slots), Class::Move);
        self.finish_dest(fix, d);
        Ok(())
    }

    fn lop3(&mut self, i: &'a Instruction<'a>, m: &Mods<'a>) -> Lowered<()> {
        let (operands, combine) = match i.operands.split_last() {
            Some((_, operands)) if m.has("and") || m.has("or") => (
                operands,
                i.operands.get(operands.len()..).unwrap_or_default(),
            ),
            _ => (i.operands.as_slice(), &[][..]),
        };
        let [dest, a, b, c, Operand::Int(table)] = operands else {
            return Err(Fail::Unsupported("this form"));
        };
        let picked = select::lop3(*table as u32 & 255);
        if combine.is_empty() {
            return self.emit(picked, dest, &[a, b, c]);
        }
        let Operand::Pair(dest, p) = dest else {
            return Err(Fail::Operand(
                "a predicate destination is needed".to_owned(),
            ));
        };
        let mut s = [0; 4];
        for (slot, operand) in s.iter_mut().zip([a, b, c]) {
            *slot = self.source(operand, Kind::R32)?;
        }
        // In a row of its own: the destination may be one of the sources, or `_`.
        let (d, imm, holds) = (self.row32(), picked.imm, self.new_pred());
        self.push(Op::Alu(picked.alu.run, Slots { d, s, imm }), Class::Int);
        self.push_alu(alu!(|a: U32| -> P a != 0).run, holds, [d, 0, 0, 0]);
        self.emit(picked, dest, &[a, b, c])?;
        let (p, _) = self.dest(p, Kind::P)?;
        self.combined(holds, p, &Operand::Sink, combine, m)
    }

    fn cvta(&mut self, i: &'a Instruction<'a>, m: &Mods<'_>) -> Lowered<()> {
        let ([dest, source], Some(ty)) = (i.operands.as_slice(), m.ty()) else {
            return Err(Fail::Unsupported(""));
        };
        if ty.bytes() != 8 {
            return Err(Fail::Unsupported("32-bit generic addresses"));
        }
        let window = match self.area(m)? {
            Area::Shared | Area::Cluster => SHARED_WINDOW,
            Area::Local => LOCAL_WINDOW,
            Area::CallParam => PARAM_WINDOW,
            _ => 0,
        };
        // The windows of all blocks coincide: generic addresses differ from offsets by a constant.
        let window = self.constant(Kind::R64, Constant::Value(window));
        let alu = if m.has("to") {
            alu!(|a: U64, w: U64| -> U64 a.wrapping_sub(w))
        } else {
            alu!(|a: U64, w: U64| -> U64 a.wrapping_add(w))
        };
        let a = self.source(source, Kind::R64)?;
        let (d, fix) = self.dest(dest, Kind::R64)?;
        self.push(
            Op::Alu(
                alu.run,
                Slots {
                    d,
                    s: [a, window, 0, 0],
                    imm: 0,
                },
            ),
            Class::Int,
        );
        self.finish_dest(fix, d);
        Ok(())
    }

    fn isspacep(&mut self, i: &'a Instruction<'a>, m: &Mods<'_>) -> Lowered<()> {
        let [dest, source] = i.operands.as_slice() else {
            return Err(Fail::Unsupported(""));
        };
        let area = self.area(m)?;
        let source = self.source(source, Kind::R64)?;
        let (dest, _) = self.dest(dest, Kind::P)?;
        self.push(Op::IsSpace { area, dest, source }, Class::Int);
        Ok(())
    }

    /// Lowers `add.cc`, `addc`, `sub.cc`, `subc`, `mad.cc`, `madc`.
    fn carry(&mut self, i: &'a Instruction<'a>, m: &Mods<'_>) -> Lowered<()> {
        let ty = m.ty().ok_or(Fail::Unsupported(""))?;
        let (dest, sources) = i.operands.split_first().ok_or(Fail::Unsupported(""))?;
        let op = match (&i.opcode[..3], m.has("hi")) {
            ("add", _) => 0,
            ("sub", _) => 1,
            (_, false) => 2,
            (_, true) => 3,
        };
        let needed = if op < 2 { 2 } else { 3 };
        if sources.len() != needed || !matches!(ty.bytes(), 4 | 8) {
            return Err(Fail::Unsupported(""));
        }
        let mut rows = [Data::Nothing; 3];
        for (row, operand) in rows.iter_mut().zip(sources) {
            *row = self.data_source(operand, ty.bytes())?;
        }
        let carry = CarryOp {
            op,
            signed: ty.signed(),
            // `addc`, `subc` and `madc` have four letters, the others three.
            carry_in: i.opcode.len() == 4,
            carry_out: m.has("cc"),
            dest: self.data(dest)?,
            sources: rows,
        };
        self.push(Op::Carry(Box::new(carry)), Class::Int);
        Ok(())
    }

    /// Lowers an address whose space is fixed by the instruction.
    pub(super) fn address_in(&mut self, operand: &Operand<'a>, area: Area) -> Lowered<Address> {
        self.address(operand, area)
    }
}
