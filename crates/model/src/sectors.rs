//! Tables of sector numbers: millions of lookups a prediction, by keys that nobody chooses to harm.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A set of sectors.
pub(super) type Sectors = HashSet<u64, Mixed>;
/// Something for each of some sectors.
pub(super) type BySector<T> = HashMap<u64, T, Mixed>;

pub(super) type Mixed = BuildHasherDefault<Mix>;

/// Mixes numbers: one multiplication (Fibonacci hashing, Knuth vol. 3, 6.4).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0 ^ u64::from(*byte));
        }
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = (n ^ n >> 32)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(26);
    }
}
