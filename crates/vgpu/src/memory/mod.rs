//! Memory of the virtual GPU.
#![expect(
    clippy::indexing_slicing,
    reason = "the executor: allocations are numbered as they are made, and an access is checked against its allocation first"
)]

mod global;
pub(crate) mod init;

pub(crate) use global::Allocation;
pub use global::{BufferId, GlobalMemory, Lookup, MemoryError};
