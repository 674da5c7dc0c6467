//! Names that an operation takes on for certain operands.

use crate::decode::Reader;
use crate::instruction::{Instruction, Operand};

/// Renames an instruction whose operands make it a simpler one.
pub(crate) fn apply(instruction: &mut Instruction, reader: &Reader) {
    if instruction.opcode == "IMAD" && instruction.modifiers.iter().all(|m| *m == "U32") {
        multiply_add(instruction, reader);
    }
}

fn zero(operand: &Operand) -> bool {
    matches!(operand, Operand::Register(r) if r.is_zero() && !r.negate && !r.uniform)
}

/// `IMAD` as a move, an addition or a shift.
fn multiply_add(instruction: &mut Instruction, reader: &Reader) {
    let [_, a, b, c] = instruction.operands.as_slice() else {
        return;
    };
    let factor = match b {
        Operand::Immediate(value) => Some(*value as u32),
        _ => None,
    };
    let plain = !matches!(c, Operand::Register(r) if r.uniform);
    let name = if zero(a) && zero(b) && plain {
        "MOV"
    } else if factor == Some(1) {
        "IADD"
    } else if zero(c) && factor.is_some_and(u32::is_power_of_two) {
        "SHL"
    } else {
        return;
    };
    let _ = reader;
    instruction.modifiers.insert(0, name);
}
