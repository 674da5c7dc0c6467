//! CUDA C++ sources: the syntax tree, text without comments, and the names of types.
//!
//! The parser of sources for all crates: `tuner adopt` parses whole project files with it, the scripted
//! mutators parse loops, and the checks of declarations parse types printed by the compiler.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

pub mod tree;

mod attributes;
mod text;
mod types;

pub use attributes::{attribute_macros, with_leading_attributes};
pub use text::{blanked, is_word, radix_of};
pub use types::{Base, CppType};
