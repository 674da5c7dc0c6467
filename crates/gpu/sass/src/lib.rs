//! NVIDIA machine code (SASS) of compute capability 7.5 to 12.0: the kernels of a cubin, their
//! instructions, and each instruction's text in the syntax of `nvdisasm`.
//!
//! NVIDIA does not document the encodings. They were derived from the output of `nvdisasm` for
//! words that differ in one bit, and are verified against it for all recorded instructions
//! (`tests/nvdisasm.rs`). The table in `encodings.txt` has one operation form per line.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod alias;
mod cubin;
mod decode;
mod elf;
mod info;
mod instruction;
mod lines;
mod link;
mod place;
mod reader;
mod table;
mod unit;

pub use cubin::{
    Cubin, CubinError, Function, Global, Kernel, Pointer, Relocation, RelocationTarget,
};
pub use decode::decode;
pub use elf::Section;
pub use info::{Indirect, Info, Parameter};
pub use instruction::{
    Address, Bank, Constant, Control, Float, FloatFormat, Guard, Instruction, Operand, Predicate,
    Register, Unknown, ZERO,
};
pub use link::{LinkError, LinkedCode};
pub use unit::Unit;

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
