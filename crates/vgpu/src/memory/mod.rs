//! Memory of the virtual GPU.

mod global;
pub(crate) mod init;

pub(crate) use global::{Allocation, Lookup};
pub use global::{BufferId, GlobalMemory, MemoryError};
