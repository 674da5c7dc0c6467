//! Hash tables for hot lookups by numbers that are not adversarial.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A table keyed by numbers.
pub type Table<K, V> = HashMap<K, V, Mixed>;
/// A set of numbers.
pub type Numbers<K> = HashSet<K, Mixed>;

/// Builds the hasher of numbers.
pub type Mixed = BuildHasherDefault<Mix>;

/// A hasher of numbers: one multiplication (Fibonacci hashing, Knuth vol. 3, 6.4).
#[derive(Debug, Clone, Copy, Default)]
pub struct Mix(u64);

impl Hasher for Mix {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0 ^ u64::from(*byte));
        }
    }

    #[inline]
    fn write_u32(&mut self, n: u32) {
        self.write_u64(n.into());
    }

    #[inline]
    fn write_u64(&mut self, n: u64) {
        // A product mixes upwards, and the table takes the bucket from the low bits: the rotation
        // moves the mixed bits there.
        self.0 = (n ^ n >> 32)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(26);
    }
}
