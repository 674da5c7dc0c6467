//! CUDA C++ sources: the syntax tree, text without comments, and the names of types.
//!
//! The one reader of sources for all crates: `tuner adopt` reads whole files of projects with it, the scripted mutators read
//! loops, and the checks of declarations read the types that the compiler prints.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

pub mod tree;

mod text;
mod types;

pub use text::{blanked, is_word, radix_of};
pub use types::{Base, CppType};
