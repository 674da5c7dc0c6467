//! Memory of the virtual GPU.
#![expect(
    clippy::indexing_slicing,
    reason = "the executor: allocations are numbered as they are made, and an access is checked against its allocation first"
)]

mod buffer_id;
mod global;
pub(crate) mod heap;
pub(crate) mod init;
mod ranges;

pub use buffer_id::BufferId;
pub(crate) use global::{Allocation, Near};
pub use global::{GlobalMemory, Lookup, MemoryError};
