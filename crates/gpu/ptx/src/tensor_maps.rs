//! Changes of tensor maps as the ordinary instructions that ptxas makes of them: `tensormap.replace` (PTX ISA,
//! 9.7.9.28) loads and stores the words of its field, `tensormap.cp_fenceproxy` (9.7.13.16) copies a word a lane.

use super::ast::{Body, Instruction, Operand, Reg, Type};
use super::wide::replace_each;
use gpu_tensor_map::{Field, TENSOR_MAP_BYTES};

/// Replaces the instructions of a function that change tensor maps. Forms that are not supported stay as they
/// are.
pub(super) fn split_tensor_maps(body: &mut Body<'_>) {
    if body.instructions.iter().all(|i| i.opcode != "tensormap") {
        return;
    }
    let mut registers = std::mem::take(&mut body.registers);
    replace_each(body, |i| {
        if i.opcode != "tensormap" {
            return vec![i];
        }
        let mut code = Code {
            of: &i,
            registers: &mut registers,
            instructions: Vec::new(),
        };
        let done = match i.modifiers.first() {
            Some(&"replace") => code.replace(),
            Some(&"cp_fenceproxy") => code.copy(),
            _ => None,
        };
        let instructions = code.instructions;
        match done {
            Some(()) => instructions,
            None => vec![i],
        }
    });
    body.registers = registers;
}

/// The instructions that replace one.
struct Code<'i, 'a> {
    of: &'i Instruction<'a>,
    registers: &'i mut Vec<Option<Type>>,
    instructions: Vec<Instruction<'a>>,
}

impl<'a> Code<'_, 'a> {
    fn register(&mut self, ty: Type) -> Operand<'a> {
        self.registers.push(Some(ty));
        Operand::Reg(Reg(self.registers.len() as u32 - 1))
    }

    fn push(&mut self, opcode: &'a str, modifiers: &[&'a str], operands: Vec<Operand<'a>>) {
        self.instructions.push(Instruction {
            opcode,
            modifiers: modifiers.to_vec(),
            operands,
            parts: Vec::new(),
            used_bytes: None,
            ..self.of.clone()
        });
    }

    /// Computes a value into a new register of a type.
    fn computed(
        &mut self,
        opcode: &'a str,
        modifiers: &[&'a str],
        ty: Type,
        sources: &[Operand<'a>],
    ) -> Operand<'a> {
        let to = self.register(ty);
        let operands = [std::slice::from_ref(&to), sources].concat();
        self.push(opcode, modifiers, operands);
        to
    }

    /// Lowers `tensormap.replace`.
    fn replace(&mut self) -> Option<()> {
        let i = self.of;
        let [_, "tile", field, ..] = i.modifiers.as_slice() else {
            return None;
        };
        let (ordinal, value) = match i.operands.as_slice() {
            [_, value] => (0, value),
            [_, Operand::Int(ordinal @ 0..5), value] => (*ordinal as u32, value),
            _ => return None,
        };
        let less_one = |code: &mut Self| {
            let sources = [value.clone(), Operand::Int(1)];
            code.computed("sub", &["u32"], Type::U32, &sources)
        };
        match (*field, value) {
            ("global_address", _) => self.store(Field::ADDRESS, value.clone(), "b64")?,
            ("rank", _) => self.put(Field::RANK, value)?,
            ("box_dim", _) => {
                let value = less_one(self);
                self.put(Field::extent(ordinal), &value)?;
            }
            ("global_dim", _) => {
                let value = less_one(self);
                self.put(Field::size(ordinal), &value)?;
            }
            ("element_stride", _) => {
                let value = less_one(self);
                self.put(Field::step(ordinal), &value)?;
            }
            ("global_stride", _) if ordinal < 4 => {
                for (field, shift) in [
                    (Field::stride(ordinal), 4),
                    (Field::stride_high(ordinal), 36),
                ] {
                    let sources = [value.clone(), Operand::Int(shift)];
                    let wide = self.computed("shr", &["u64"], Type::U64, &sources);
                    let part = self.computed("cvt", &["u32", "u64"], Type::U32, &[wide]);
                    self.put(field, &part)?;
                }
            }
            ("elemtype", Operand::Int(number @ 0..16)) => {
                // Two are single precision, rounded; packed types follow.
                let (code, rounded) = match number {
                    13.. => (number - 2, 0),
                    11.. => (number - 4, 1),
                    _ => (*number, 0),
                };
                self.put(Field::ELEMENT, &Operand::Int(code))?;
                self.put(Field::ROUNDED, &Operand::Int(rounded))?;
            }
            ("interleave_layout", Operand::Int(0..3)) => self.put(Field::INTERLEAVE, value)?,
            ("swizzle_mode", Operand::Int(0..4)) => {
                self.put(Field::SWIZZLE, value)?;
                self.put(Field::SWIZZLE_96, &Operand::Int(0))?;
            }
            ("swizzle_atomicity", Operand::Int(0..4)) => self.put(Field::ATOMS, value)?,
            ("fill_mode", Operand::Int(0..2)) => self.put(Field::FILL, value)?,
            _ => return None,
        }
        Some(())
    }

    /// Returns the word of a field.
    fn place(&self, field: Field) -> Option<Operand<'a>> {
        let Some(Operand::Address(base, offset)) = self.of.operands.first() else {
            return None;
        };
        Some(Operand::Address(
            base.clone(),
            offset + i64::from(field.offset),
        ))
    }

    /// Returns the modifiers of an access to the map.
    fn access(&self, ty: &'a str) -> Vec<&'a str> {
        let space = self
            .of
            .modifiers
            .iter()
            .find(|word| **word == "global" || word.starts_with("shared"));
        space.copied().into_iter().chain([ty]).collect()
    }

    fn store(&mut self, field: Field, value: Operand<'a>, ty: &'a str) -> Option<()> {
        let operands = vec![self.place(field)?, value];
        self.push("st", &self.access(ty), operands);
        Some(())
    }

    /// Stores a value into the bits of a field.
    fn put(&mut self, field: Field, value: &Operand<'a>) -> Option<()> {
        if field.mask() == u32::MAX {
            return self.store(field, value.clone(), "b32");
        }
        let word = self.register(Type::B32);
        let operands = vec![word.clone(), self.place(field)?];
        self.push("ld", &self.access("b32"), operands);
        let number = |value: u32| Operand::Int(value.into());
        let mut logic = |opcode, a: &Operand<'a>, b: Operand<'a>| {
            self.computed(opcode, &["b32"], Type::B32, &[a.clone(), b])
        };
        let kept = logic("and", &word, number(!field.mask()));
        let moved = logic("shl", value, number(field.low));
        let new = logic("and", &moved, number(field.mask()));
        let word = logic("or", &kept, new);
        self.store(field, word, "b32")
    }

    /// Lowers `tensormap.cp_fenceproxy`: each lane copies a word, and all of them release it.
    fn copy(&mut self) -> Option<()> {
        let bytes = TENSOR_MAP_BYTES as u64;
        let [to, from, Operand::Int(size)] = self.of.operands.as_slice() else {
            return None;
        };
        let scope = self
            .of
            .modifiers
            .iter()
            .find(|word| matches!(**word, "cta" | "cluster" | "gpu" | "sys"))?;
        if *size != bytes || !self.of.modifiers.contains(&"release") {
            return None;
        }
        let lane = [Operand::Special("laneid", "")];
        let lane = self.computed("mov", &["u32"], Type::U32, &lane);
        let offset = self.computed("shl", &["b32"], Type::B32, &[lane, Operand::Int(2)]);
        let from = self.element(from, &offset, Type::U32)?;
        let word = self.computed("ld", &["shared", "b32"], Type::B32, &[from]);
        let to = self.element(to, &offset, Type::U64)?;
        self.push("st", &["global", "b32"], vec![to, word]);
        let all = vec![Operand::Int(u32::MAX.into())];
        self.push("bar", &["warp", "sync"], all);
        let release = ["proxy", "tensormap::generic", "release", *scope];
        self.push("fence", &release, Vec::new());
        Some(())
    }

    /// Returns an address with an offset in a register added; names have addresses of this type.
    fn element(
        &mut self,
        at: &Operand<'a>,
        offset: &Operand<'a>,
        names: Type,
    ) -> Option<Operand<'a>> {
        let Operand::Address(base, constant) = at else {
            return None;
        };
        let ty = match &**base {
            Operand::Reg(reg) => (*self.registers.get(reg.0 as usize)?)?,
            _ => names,
        };
        let sum = if ty.bytes() == 8 {
            let wide = self.computed(
                "cvt",
                &["u64", "u32"],
                Type::U64,
                std::slice::from_ref(offset),
            );
            self.computed("add", &["u64"], Type::U64, &[(**base).clone(), wide])
        } else {
            self.computed(
                "add",
                &["u32"],
                Type::U32,
                &[(**base).clone(), offset.clone()],
            )
        };
        Some(Operand::Address(Box::new(sum), *constant))
    }
}
