//! State of tensor memory.

/// Tensor memory of one block.
#[derive(Debug, Default)]
pub(super) struct TensorMemory {
    /// Cells, none until the first allocation.
    pub(super) words: Vec<u32>,
    /// Allocations, a bit for each 32 columns.
    pub(super) units: u32,
}
