//! Timing model: SASS of sampled blocks, replayed on one multiprocessor.
//!
//! ```text
//! cubin ─machine─► path of each warp, accesses by instruction     ┐
//!       ─code─► units, control bits ──────────────────────────────┴─cursor─► sm ─► cycles, stalls
//! PTX ─exec─► the same memory, or no prediction                         cache, banks ┘   │
//!     └─► which bytes blocks share                  waves, tail, bandwidth shares, launch ◄─┘ estimate
//! ```
#![expect(
    clippy::indexing_slicing,
    reason = "the model: warps, pieces and units are numbered by the kernel and the architecture that the tables are made from"
)]

mod blocks;
mod cache;
mod clock;
mod code;
mod cursor;
mod dependence;
mod estimate;
mod handed_on;
mod imbalance;
mod long;
mod memory;
mod queue;
mod sample;
mod sectors;
mod reuse;
mod sm;
mod metrics;
mod units;
#[cfg(test)]
mod tests;

pub use code::serialized_products;
pub use estimate::{Estimate, Shape, estimate, resident_blocks};
pub use memory::Traffic;
pub use metrics::{SERIALIZED, SERIALIZED_MOST_PCT};
pub use sample::{Sampled, Traces, Withheld, trace};

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
