//! Semantics instruction by instruction: PTX snippets through the executor against models that
//! share no code with the crate.

mod harness;
mod models;
mod float;
mod double;
mod approximate;
mod halves;
mod integer;
mod convert;
mod compare;
mod warp;
mod memory;
mod control;
mod matrix;
