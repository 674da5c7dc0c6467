//! Local search with restarts: first improvement over all configurations that differ in one
//! parameter, in random order. A local optimum ends a descent, and the next one starts at a random
//! configuration.

use super::classic::Method;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;
use std::collections::HashSet;
use tuner_space::{Config, Neighbourhood, Space};

/// Local search with restarts.
#[derive(Debug, Default)]
pub(crate) struct Local {
    current: Option<(Config, f64)>,
    ahead: Vec<Config>,
    waiting: HashSet<Config>,
}

impl Method for Local {
    fn next_config(&mut self, space: &Space, rng: &mut ChaCha8Rng) -> Option<Config> {
        let config = match self.ahead.pop() {
            Some(config) => config,
            // A neighbour with a pending result may be faster.
            None if self.current.is_some() && !self.waiting.is_empty() => return None,
            None => {
                // A local optimum: restart from a random configuration.
                self.current = None;
                space.draw(rng)?
            }
        };
        self.waiting.insert(config.clone());
        Some(config)
    }

    fn judge(&mut self, config: &Config, cost: f64, space: &Space, rng: &mut ChaCha8Rng) {
        self.waiting.remove(config);
        let best = self
            .current
            .as_ref()
            .map_or(f64::INFINITY, |(_, cost)| *cost);
        if cost < best {
            self.ahead = space.neighbours(config, Neighbourhood::Hamming);
            self.ahead.shuffle(rng);
            self.current = Some((config.clone(), cost));
        }
    }
}
