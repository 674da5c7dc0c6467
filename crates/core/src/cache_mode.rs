//! Cache mode of a time: warm or cold.

use crate::named::named;

named! {
    /// State of the caches at the start of a launch. Times of different modes are never compared: on a GPU
    /// whose L2 cache holds the problem they differ by a half, and have different winners.
    pub enum CacheMode {
        /// The same buffers repeatedly.
        Warm,
        /// Rotating sets of buffers whose total size is at least three times the second-level cache;
        /// outputs rotate too.
        Cold,
    }
}

impl Default for CacheMode {
    /// Returns the mode that every device supports.
    fn default() -> Self {
        Self::Warm
    }
}
