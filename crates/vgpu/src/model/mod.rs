//! The timing model: machine code of sampled blocks, replayed on one multiprocessor.
//!
//! ```text
//! cubin ─sass─► instructions, control bits ┐
//! PTX ─exec─► way of each warp, addresses  ┴─walk─► stream of a warp ─sm─► cycles, stalls
//!                                                      cache, banks ┘         │
//!                               waves, tail, bandwidth shares, launch ◄───────┘ estimate
//! ```
#![expect(
    clippy::indexing_slicing,
    reason = "the model: warps, pieces and units are numbered by the kernel and the architecture that the tables are made from"
)]

mod cache;
mod estimate;
mod memory;
mod sample;
mod sectors;
mod sharing;
mod sm;
mod map;
mod metrics;
mod units;
mod walk;

pub use estimate::{Estimate, Shape, estimate, resident_blocks};
pub use memory::Traffic;
pub use sample::{Traces, trace};
