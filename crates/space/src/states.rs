//! States of a layer, and a hash table that finds equal ones.

use super::expr::Val;
use std::hash::Hasher;

/// Index of a missing state.
pub(super) const NONE: u32 = u32::MAX;

/// The states of a layer, stored consecutively, each with a fixed number of values.
pub(super) struct States {
    width: usize,
    values: Vec<Val>,
    /// Number of states; kept separately, because a state may have no values.
    count: usize,
}

impl States {
    pub(super) fn new(width: usize) -> Self {
        Self {
            width,
            values: Vec::new(),
            count: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "buckets are numbered modulo the size of the table, states as they are pushed"
    )]
    pub(super) fn get(&self, state: usize) -> &[Val] {
        &self.values[state * self.width..(state + 1) * self.width]
    }

    /// Adds a state and moves its values out of `state`.
    pub(super) fn push(&mut self, state: &mut Vec<Val>) -> u32 {
        self.values.append(state);
        self.count += 1;
        self.count as u32 - 1
    }

    pub(super) fn bytes(&self) -> usize {
        self.values.len() * size_of::<Val>()
    }
}

/// Open-addressing table from hashes to consecutive indices; the caller stores the keys.
pub(super) struct Table {
    buckets: Vec<u32>,
    hashes: Vec<u64>,
}

impl Table {
    pub(super) fn new() -> Self {
        Self {
            // A power of two, like every later length: a mask of the hash selects the bucket.
            buckets: vec![NONE; 16],
            hashes: Vec::new(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.buckets.len() * size_of::<u32>() + self.hashes.len() * size_of::<u64>()
    }

    /// Returns the index whose entry `matches`, or the bucket for the next index.
    #[expect(
        clippy::indexing_slicing,
        reason = "buckets are numbered modulo the size of the table, states as they are pushed"
    )]
    pub(super) fn find(&self, hash: u64, matches: impl Fn(u32) -> bool) -> Result<u32, usize> {
        let mask = self.buckets.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            match self.buckets[at] {
                NONE => return Err(at),
                index if self.hashes[index as usize] == hash && matches(index) => {
                    return Ok(index);
                }
                _ => at = (at + 1) & mask,
            }
        }
    }

    /// Enters the next index in the bucket that [`Self::find`] returned.
    #[expect(
        clippy::indexing_slicing,
        reason = "buckets are numbered modulo the size of the table, states as they are pushed"
    )]
    pub(super) fn insert(&mut self, bucket: usize, hash: u64) {
        self.buckets[bucket] = self.hashes.len() as u32;
        self.hashes.push(hash);
        // At most half full, so that linear probing finds a free bucket after few steps.
        if self.hashes.len() * 2 > self.buckets.len() {
            let length = self.buckets.len() * 4;
            self.buckets.clear();
            self.buckets.resize(length, NONE);
            for (index, hash) in self.hashes.iter().enumerate() {
                let mut at = *hash as usize & (length - 1);
                while self.buckets[at] != NONE {
                    at = (at + 1) & (length - 1);
                }
                self.buckets[at] = index as u32;
            }
        }
    }
}

/// A fast hash for states, which are short lists of small numbers.
pub(super) struct Mixer(u64);

impl Mixer {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }
}

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        // Finalizer of splitmix64 (Steele, Lea, Flood 2014): every input bit affects every output
        // bit.
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
