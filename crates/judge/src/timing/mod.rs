//! From a verified candidate to a time that can be defended.
//!
//! [`Measured`](tuner_core::evidence::Measured) has private fields, and its constructors take a
//! proof that only the gate makes: a time that was taken before the result was checked does not
//! compile.

pub mod blocks;
pub mod calibration;
pub mod energy;
pub mod executor;
pub mod finale;
mod found;
pub mod paired;
pub mod plan;
pub mod predict;
pub mod race;
