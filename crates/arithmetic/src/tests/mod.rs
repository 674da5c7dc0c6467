//! Tests of the numerics against models that share no code with them.

mod model;
mod arithmetic;
mod halves;
mod conversions;
mod approximations;
mod integers;
mod matrices;
