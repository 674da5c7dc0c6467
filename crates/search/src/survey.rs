//! Choice of the configurations to predict before a run.
//!
//! A prediction costs seconds of a processor core and no device time, so a few hundred must suffice. The
//! first third is spread over the space: if the time limit ends the survey early, the results still cover
//! the whole space. The rest is a search on the predicted times. The device model has errors, but the run
//! starts with its fastest predictions, so this source of knowledge must be exact near them.

use crate::evolve::{Evolve, Settings};
use crate::knowledge::Knowledge;
use crate::{Observation, Strategy as _};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use std::collections::HashSet;
use tuner_core::units::Seed;
use tuner_space::{Config, Space};

/// Configurations of a complete survey.
const MAX_CONFIGS: usize = 240;
/// Number of configurations that are spread over the space.
const SPREAD_CONFIGS: usize = 80;
/// Configurations per round: enough for all cores of a large machine, and few enough that the
/// search gets results often.
const ROUND_SIZE: usize = 16;

/// A survey of a space, in rounds.
pub struct Survey {
    search: Evolve,
    chosen: usize,
    waiting: Vec<u64>,
}

impl Survey {
    /// Creates a survey of `space` that begins with `start`. The same seed and the same results
    /// produce the same configurations.
    #[must_use]
    pub fn new(space: &Space, seed: Seed, start: &[Config]) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed.0);
        // Bounded: a space hardly larger than the number of draws may never return enough distinct
        // configurations.
        let draws = (0..2 * SPREAD_CONFIGS).filter_map(|_| space.draw(&mut rng));
        let mut seen: HashSet<Config> = HashSet::new();
        let mut spread: Vec<Config> = start.iter().cloned().chain(draws).collect();
        spread.retain(|config| space.contains(config) && seen.insert(config.clone()));
        spread.truncate(SPREAD_CONFIGS);
        let settings = Settings::default();
        Self {
            search: Evolve::new(space, seed, &spread, settings, &Knowledge::default()),
            chosen: 0,
            waiting: Vec::new(),
        }
    }

    /// Returns the next round, at most 16 configurations; empty if the survey is complete.
    pub fn round(&mut self) -> Vec<Config> {
        let count = ROUND_SIZE.min(MAX_CONFIGS.saturating_sub(self.chosen));
        let round: Vec<_> = (0..count).map_while(|_| self.search.ask()).collect();
        self.chosen += round.len();
        self.waiting = round.iter().map(|proposal| proposal.id).collect();
        round.into_iter().map(|proposal| proposal.config).collect()
    }

    /// Takes the predictions of the last round, in its order.
    pub fn tell(&mut self, observations: impl IntoIterator<Item = Observation>) {
        for (id, observation) in std::mem::take(&mut self.waiting)
            .into_iter()
            .zip(observations)
        {
            self.search.tell(id, observation);
        }
    }
}

#[cfg(test)]
mod tests;
