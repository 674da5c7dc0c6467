//! Which configurations of a space are worth predicting before a run.
//!
//! A prediction costs no time of the device, but seconds of a processor core, so some hundred must
//! do. The first third is spread over the space, so that whatever is done when the time is up says
//! something of all of it. The rest is a search on the predicted times: the model of the device errs,
//! but what it holds to be fastest is where the run looks first, and the source of knowledge must be
//! exact there.

use crate::guided::{Guided, Settings};
use crate::knowledge::Knowledge;
use crate::{Observation, Strategy as _};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use std::collections::HashSet;
use tuner_core::units::Seed;
use tuner_space::{Config, Space};

/// Configurations in all.
const ALL: usize = 240;
/// Of these, spread over the space.
const SPREAD: usize = 80;
/// Configurations at once: a full round for the processors of a large machine, and results often
/// enough for the search.
const ROUND: usize = 16;

/// Chooses the configurations, in rounds.
pub struct Survey {
    search: Guided,
    chosen: usize,
    waiting: Vec<u64>,
}

impl Survey {
    /// A survey of `space` that begins with `start`. The same seed and the same results give the
    /// same configurations.
    #[must_use]
    pub fn new(space: &Space, seed: Seed, start: &[Config]) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed.0);
        // A space that is hardly larger than the draws would never give so many different ones.
        let draws = (0..2 * SPREAD).filter_map(|_| space.draw(&mut rng));
        let mut seen: HashSet<Config> = HashSet::new();
        let mut spread: Vec<Config> = start.iter().cloned().chain(draws).collect();
        spread.retain(|config| space.contains(config) && seen.insert(config.clone()));
        spread.truncate(SPREAD);
        let settings = Settings::default();
        Self {
            search: Guided::new(space, seed, &spread, settings, &Knowledge::default()),
            chosen: 0,
            waiting: Vec::new(),
        }
    }

    /// The next round, at most sixteen configurations; none when the survey is complete.
    pub fn round(&mut self) -> Vec<Config> {
        let wanted = ROUND.min(ALL.saturating_sub(self.chosen));
        let round: Vec<_> = (0..wanted).map_while(|_| self.search.ask()).collect();
        self.chosen += round.len();
        self.waiting = round.iter().map(|proposal| proposal.id).collect();
        round.into_iter().map(|proposal| proposal.config).collect()
    }

    /// What was predicted of the last round, in its order.
    pub fn tell(&mut self, told: impl IntoIterator<Item = Observation>) {
        for (id, told) in std::mem::take(&mut self.waiting).into_iter().zip(told) {
            self.search.tell(id, told);
        }
    }
}

#[cfg(test)]
mod tests;
