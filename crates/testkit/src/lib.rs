//! External dependencies of tests, with injected failures. The product does not depend on this
//! crate.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

pub mod fake;
pub mod faults;
pub mod points;
pub mod proxy;
pub mod synthetic;
