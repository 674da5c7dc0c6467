//! The library that stands between a program and the driver of a GPU, for captures.
//!
//! Every exported function is a jump to the driver's own; those of [`hooks`] do more: they offer loaded images to the
//! tuner and copy the memory of a launch before and after it.

pub mod hooks;

mod call;
mod launch;
mod memory;
mod real;
mod wanted;

pub use real::{DRIVER_VARIABLE, address_of_name};
