//! Uniform draws without replacement: the baseline every other strategy must beat.

use super::fresh::Fresh;
use super::{Observation, Proposal, Strategy};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use tuner_core::units::Seed;
use tuner_space::{Config, Space};

/// Uniform random search.
pub(super) struct Random {
    fresh: Fresh,
    rng: ChaCha8Rng,
}

impl Random {
    pub(super) fn new(space: &Space, seed: Seed, start: &[Config]) -> Self {
        Self {
            fresh: Fresh::new(space, start),
            rng: ChaCha8Rng::seed_from_u64(seed.0),
        }
    }
}

impl Strategy for Random {
    fn ask(&mut self) -> Option<Proposal> {
        let (config, origin) = match self.fresh.take_start() {
            Some(config) => (config, "start"),
            None => (self.fresh.draw(&mut self.rng)?, "random"),
        };
        Some(Proposal {
            id: self.fresh.take_id(),
            config,
            origin,
        })
    }

    fn tell(&mut self, _id: u64, _observation: Observation) {}

    fn observe(&mut self, config: &Config, _observation: Observation) {
        self.fresh.claim(config);
    }

    fn exhausted(&self) -> bool {
        self.fresh.exhausted()
    }
}
