//! Alias names of operations with certain operands.

use crate::Unit;
use crate::instruction::{Instruction, Operand};

/// Renames an instruction whose operands reduce it to a simpler one.
pub(crate) fn apply(instruction: &mut Instruction) {
    if instruction.opcode == "IMAD" && instruction.modifiers.iter().all(|m| *m == "U32") {
        multiply_add(instruction);
    }
    // `nvdisasm` prints no reuse of the coordinates of an image.
    if instruction.unit == Unit::Texture {
        for operand in &mut instruction.operands {
            if let Operand::Register(register) = operand {
                register.reuse = false;
            }
        }
    }
}

fn zero(operand: &Operand) -> bool {
    matches!(operand, Operand::Register(r) if r.is_zero() && !r.negate && !r.uniform)
}

/// Renames an `IMAD` that is a move, an addition or a shift.
fn multiply_add(instruction: &mut Instruction) {
    let [_, a, b, c] = instruction.operands.as_slice() else {
        return;
    };
    let factor = match b {
        Operand::Immediate(value) => u32::try_from(*value).ok(),
        _ => None,
    };
    let plain = !matches!(c, Operand::Register(r) if r.uniform);
    let name = if (zero(a) || zero(b)) && plain {
        "MOV"
    } else if factor == Some(1) {
        "IADD"
    // `nvdisasm` prints a product with 0x10000 as `IMAD.U32`, not as a shift.
    } else if zero(c) && factor.is_some_and(|f| f.is_power_of_two() && f != 0x10000) {
        "SHL"
    } else {
        return;
    };
    instruction.modifiers.insert(0, name);
}
