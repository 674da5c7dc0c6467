//! NVIDIA machine code (SASS) of compute capability 7.5 to 12.0: a cubin's kernels, their
//! instructions, and each instruction's text as `nvdisasm` writes it.
//!
//! NVIDIA does not document the encodings; they are read from what `nvdisasm` prints for words of
//! which one bit after the other is changed, and hold for every instruction that was compared with
//! it (`tests/nvdisasm.rs`). They are a table, one operation form a line, in `encodings.txt`.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod alias;
mod cubin;
mod decode;
mod elf;
mod info;
mod instruction;
mod lines;
mod place;
mod table;
mod unit;

pub use cubin::{Cubin, CubinError, Function, Global, Kernel, Place, Relocation};
pub use decode::decode;
pub use info::{Indirect, Info, Parameter};
pub use instruction::{
    Address, Bank, Constant, Control, Float, FloatFormat, Guard, Instruction, Operand, Predicate,
    Register, Unknown, ZERO,
};
pub use unit::Unit;
