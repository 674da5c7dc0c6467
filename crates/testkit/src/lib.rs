//! What tests need of the outside world, made to fail. The product never depends on it.

pub mod faults;
pub mod points;
pub mod proxy;
