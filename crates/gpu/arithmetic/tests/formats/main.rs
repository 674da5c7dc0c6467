//! Tests of the numerics against models that share no code with them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should fail")]

mod model;
mod arithmetic;
mod halves;
mod conversions;
mod approximations;
mod integers;
mod matrices;
mod tensor_cores;
