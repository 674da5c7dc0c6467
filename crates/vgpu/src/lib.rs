//! A virtual GPU: executes PTX on the CPU and reports every memory and synchronisation hazard.

pub mod num;
