//! Functions that differ by name only in the runtime and in the driver interface.

pub mod devices;
pub mod graphs;
pub mod libraries;
pub mod memory;
pub mod pools;
pub mod streams;
