//! `alloca`, `stacksave`, `stackrestore` (PTX ISA, "Stack Manipulation Instructions").

use super::program::{NONE, Op, StackOp};
use super::{Fail, Lower, Lowered, Mods};
use crate::counters::Class;
use crate::exec::regs::Kind;
use ptx::ast::{Body, Function, Instruction, Operand, Type};

/// Alignment of an allocation that names none, or less.
const LEAST_ALIGNMENT: u32 = 8;
/// Largest alignment of an allocation.
const LARGEST_ALIGNMENT: u64 = 1 << 23;

impl<'a> Lower<'a> {
    /// Saves the top of the stack at the beginning of a function that allocates memory there: it is freed when the
    /// function returns.
    pub(super) fn save_stack(&mut self, f: &Function<'_>, body: &Body<'_>) {
        if f.entry || !body.instructions.iter().any(|i| i.opcode == "alloca") {
            return;
        }
        let dest = self.row64();
        self.function.stack_row = dest;
        self.push(Op::Stack(StackOp::Save { dest }), Class::Control);
    }

    /// Lowers the return from a function.
    pub(super) fn leave(&mut self) {
        if self.function.stack_row != NONE {
            let source = self.function.stack_row;
            self.push(Op::Stack(StackOp::Restore { source }), Class::Control);
        }
        self.push(Op::Return, Class::Control);
    }

    /// Lowers an operation on the stack.
    pub(super) fn stack(&mut self, i: &'a Instruction<'a>) -> Lowered<()> {
        if Mods(&i.modifiers).ty().map(Type::bytes) != Some(8) {
            return Err(Fail::Unsupported("32-bit addresses"));
        }
        match (i.opcode, i.operands.as_slice()) {
            ("alloca", [dest, bytes, align @ ..]) => {
                let align = match align {
                    [] => LEAST_ALIGNMENT,
                    [Operand::Int(n)] if n.is_power_of_two() && *n <= LARGEST_ALIGNMENT => {
                        LEAST_ALIGNMENT.max(*n as u32)
                    }
                    _ => {
                        let why = "the alignment is a power of two up to 2^23";
                        return Err(Fail::Operand(why.to_owned()));
                    }
                };
                let bytes = self.source(bytes, Kind::R64)?;
                let (dest, _) = self.dest(dest, Kind::R64)?;
                let op = StackOp::Allocate { dest, bytes, align };
                self.push(Op::Stack(op), Class::Control);
            }
            ("stacksave", [dest]) => {
                let (dest, _) = self.dest(dest, Kind::R64)?;
                self.push(Op::Stack(StackOp::Save { dest }), Class::Control);
            }
            ("stackrestore", [source]) => {
                let source = self.source(source, Kind::R64)?;
                self.push(Op::Stack(StackOp::Restore { source }), Class::Control);
            }
            _ => return Err(Fail::Operand("operands are missing".to_owned())),
        }
        Ok(())
    }
}
