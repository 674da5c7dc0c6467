//! What tests need of the outside world, made to fail. The product never depends on it.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

pub mod fake;
pub mod faults;
pub mod points;
pub mod proxy;
pub mod synthetic;
