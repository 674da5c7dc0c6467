//! From a template and a configuration to something that can run.
//!
//! [`catalog`] finds and reads search spaces and templates, [`compile`] makes PTX and machine code
//! of a bound configuration, and [`build`] makes the plan that a device is handed.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

pub mod compile;
pub mod catalog;
pub mod declarations;
pub mod defaults;
pub mod scaled;
pub mod build;
