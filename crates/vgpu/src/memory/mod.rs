//! Memory of the virtual GPU.

mod global;
pub(crate) mod init;

pub use global::{BufferId, GlobalMemory, MemoryError};
pub(crate) use global::{Allocation, Lookup};
