//! Defensible times of verified candidates.
//!
//! [`Measured`](tuner_core::evidence::Measured) has private fields, and its constructors require a
//! proof that only the gate constructs: a time without a checked result does not compile.

pub mod blocks;
pub mod calibration;
pub mod energy;
pub mod executor;
pub mod finale;
mod summary;
pub mod paired;
pub mod plan;
pub mod race;
pub mod reference;
