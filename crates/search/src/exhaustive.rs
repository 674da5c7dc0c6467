//! Every configuration once, in a seeded pseudo-random order: stopping early leaves a fair sample
//! of the space instead of one corner.

use super::{Observation, Proposal, Strategy};
use std::collections::{HashSet, VecDeque};
use tuner_core::units::Seed;
use tuner_space::{Config, Space};

/// Exhaustive search along a permutation of the indices. Stores only the configurations that were
/// proposed out of order.
pub(super) struct Exhaustive {
    space: Space,
    order: Permutation,
    next: u128,
    next_id: u64,
    start: VecDeque<Config>,
    ahead: HashSet<Config>,
    left: u128,
}

impl Exhaustive {
    pub(super) fn new(space: &Space, seed: Seed, start: &[Config]) -> Self {
        Self {
            space: space.clone(),
            order: Permutation::new(space.count(), seed),
            next: 0,
            next_id: 0,
            start: start.iter().cloned().collect(),
            ahead: HashSet::new(),
            left: space.count(),
        }
    }

    /// Marks a configuration as proposed out of order; `false` if it is invalid or was proposed.
    fn claim(&mut self, config: &Config) -> bool {
        let Some(index) = self.space.index_of(config) else {
            return false;
        };
        // A configuration at an earlier position was already proposed in order.
        let new = self.order.position_of(index) >= self.next && self.ahead.insert(config.clone());
        self.left -= u128::from(new);
        new
    }

    fn propose(&mut self, config: Config, origin: &'static str) -> Proposal {
        let id = self.next_id;
        self.next_id += 1;
        Proposal { id, config, origin }
    }
}

impl Strategy for Exhaustive {
    fn ask(&mut self) -> Option<Proposal> {
        while let Some(config) = self.start.pop_front() {
            if self.claim(&config) {
                return Some(self.propose(config, "start"));
            }
        }
        while self.next < self.order.len {
            let config = self.space.config_at(self.order.index_at(self.next));
            self.next += 1;
            // A configuration that was proposed out of order is skipped and removed: its index does not
            // recur.
            if let Some(config) = config.filter(|config| !self.ahead.remove(config)) {
                self.left -= 1;
                return Some(self.propose(config, "exhaustive"));
            }
        }
        None
    }

    fn tell(&mut self, _id: u64, _observation: Observation) {}

    fn observe(&mut self, config: &Config, _observation: Observation) {
        self.claim(config);
    }

    fn exhausted(&self) -> bool {
        self.left == 0
    }
}

/// A seeded bijection of `0..len`: a four-round Feistel network on the next even number of bits,
/// iterated until the value is in range (Black and Rogaway 2002). It needs no table.
struct Permutation {
    len: u128,
    half_bits: u32,
    keys: [u64; 4],
}

impl Permutation {
    fn new(len: u128, seed: Seed) -> Self {
        let bits = u128::BITS - len.saturating_sub(1).leading_zeros();
        Self {
            len,
            // A network needs two halves, even for a single index.
            half_bits: bits.div_ceil(2).max(1),
            keys: std::array::from_fn(|round| mix(seed.0 ^ mix(round as u64 + 1))),
        }
    }

    fn index_at(&self, position: u128) -> u128 {
        self.iterate_into_range(position, Self::forward)
    }

    fn position_of(&self, index: u128) -> u128 {
        self.iterate_into_range(index, Self::backward)
    }

    fn iterate_into_range(&self, mut value: u128, step: fn(&Self, u128) -> u128) -> u128 {
        loop {
            value = step(self, value);
            if value < self.len {
                return value;
            }
        }
    }

    fn forward(&self, value: u128) -> u128 {
        let (mut left, mut right) = self.split(value);
        for key in self.keys {
            (left, right) = (right, left ^ self.round(right, key));
        }
        self.join(left, right)
    }

    fn backward(&self, value: u128) -> u128 {
        let (mut left, mut right) = self.split(value);
        for key in self.keys.into_iter().rev() {
            (left, right) = (right ^ self.round(left, key), left);
        }
        self.join(left, right)
    }

    fn split(&self, value: u128) -> (u64, u64) {
        let mask = u128::from(self.mask());
        ((value >> self.half_bits) as u64, (value & mask) as u64)
    }

    fn join(&self, left: u64, right: u64) -> u128 {
        (u128::from(left) << self.half_bits) | u128::from(right)
    }

    fn round(&self, half: u64, key: u64) -> u64 {
        mix(half ^ key) & self.mask()
    }

    fn mask(&self) -> u64 {
        u64::MAX >> (u64::BITS - self.half_bits)
    }
}

/// Applies the finaliser of SplitMix64 (Steele, Lea and Flood 2014).
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests;
