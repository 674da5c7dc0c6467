//! NVIDIA machine code (SASS) of compute capability 7.5 to 12.0: what an instruction is, and its text.

mod alias;
mod decode;
mod instruction;
mod place;
mod table;
mod unit;

pub use decode::decode;
pub use instruction::{
    Address, Bank, Constant, Control, Float, FloatFormat, Guard, Instruction, Operand, Predicate,
    Register, Unknown, ZERO,
};
pub use unit::Unit;
