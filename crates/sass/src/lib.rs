//! NVIDIA machine code (SASS) of compute capability 7.5 to 12.0: what an instruction is, and its text.

mod instruction;
mod unit;

pub use instruction::{
    Address, Bank, Constant, Control, Float, FloatFormat, Guard, Instruction, Operand, Predicate,
    Register, Unknown, ZERO,
};
pub use unit::Unit;
