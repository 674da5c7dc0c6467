//! Functions that differ by name only in the runtime and in the driver interface.

pub mod graphs;
