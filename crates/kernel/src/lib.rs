//! Construction of an executable plan from a template and a configuration.
//!
//! [`catalog`] finds and reads search spaces and templates, [`compile`] compiles a bound
//! configuration to PTX and machine code, and [`build`] builds the plan for a device.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

pub mod compile;
pub mod catalog;
pub mod declarations;
pub mod defaults;
pub mod scaled;
pub mod build;
mod launch_limits;
