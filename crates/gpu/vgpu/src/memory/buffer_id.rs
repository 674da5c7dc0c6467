//! Identity of an allocation.

/// Identifies one allocation of a [`GlobalMemory`](super::GlobalMemory).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BufferId(pub(crate) usize);

impl BufferId {
    /// Returns its index among all allocations, in order.
    #[must_use]
    pub fn index(self) -> usize {
        self.0
    }
}
