//! The executor: warps in lockstep, blocks on all cores.

pub mod launch;
