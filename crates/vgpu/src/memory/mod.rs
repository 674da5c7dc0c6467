//! Memory of the virtual GPU.
#![expect(
    clippy::indexing_slicing,
    reason = "the executor: allocations are numbered as they are made, and an access is checked against its allocation first"
)]

mod global;
pub(crate) mod heap;
pub(crate) mod init;
mod ranges;

pub(crate) use global::{Allocation, Near};
pub use global::{BufferId, GlobalMemory, Lookup, MemoryError};
