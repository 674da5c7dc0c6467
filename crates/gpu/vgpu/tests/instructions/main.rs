//! Semantics by instruction: PTX snippets through the executor against models that share no code
//! with the crate.
#![expect(clippy::panic, reason = "a test that cannot go on should fail")]
#![expect(clippy::unwrap_used, reason = "helpers of tests: a failure is a panic")]

mod harness;
mod models;
mod float;
mod double;
mod approximate;
mod halves;
mod integer;
mod convert;
mod small;
mod stack;
mod stochastic;
mod video;
mod compare;
mod vectors;
mod warp;
mod memory;
mod tensor_maps;
mod control;
mod matrix;
mod matrix_words;
mod tensor_memory;
mod bulk;
