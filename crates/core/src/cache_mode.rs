//! Whether a time was taken with warm or cold caches.

use crate::record::named;

named! {
    /// What the caches hold when a launch begins. Times of different modes are never compared: on a
    /// GPU whose L2 cache holds the problem they differ by a half, and so do their winners.
    pub enum CacheMode {
        /// The same buffers again and again.
        Warm,
        /// Sets of buffers in rotation whose bytes are together at least three times the second-level
        /// cache; outputs rotate too.
        Cold,
    }
}

impl Default for CacheMode {
    /// What every device can do.
    fn default() -> Self {
        Self::Warm
    }
}
