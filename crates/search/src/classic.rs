//! Baselines: the methods of other tuners with their usual settings, for comparison with `evolve`
//! in one run under the same rules.
//!
//! A method may return to a configuration at no cost, since its result is stored. Only unique evaluations
//! count, as they do for `evolve`.

use super::fresh::Fresh;
use super::{Observation, Proposal, Strategy, StrategyName};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::collections::HashMap;
use tuner_core::units::Seed;
use tuner_space::{Config, Space};

/// Consecutive repeated proposals after which a uniform draw is proposed instead.
const MAX_REPEATED_DRAWS: usize = 400;

/// A search method without bookkeeping.
pub(super) trait Method: Send {
    /// Returns the next configuration, new or repeated; `None` if the method needs results first.
    fn next_config(&mut self, space: &Space, rng: &mut ChaCha8Rng) -> Option<Config>;

    /// Takes the cost of a configuration: its time in microseconds, infinite for a failure.
    fn judge(&mut self, config: &Config, cost: f64, space: &Space, rng: &mut ChaCha8Rng);
}

/// A method as a strategy: answers repeated configurations from memory and accepts results in any order.
pub(super) struct Classic<M> {
    name: &'static str,
    method: M,
    fresh: Fresh,
    rng: ChaCha8Rng,
    pending: HashMap<u64, Config>,
    costs: HashMap<Config, f64>,
}

impl<M: Method + Default> Classic<M> {
    pub(super) fn new(name: StrategyName, space: &Space, seed: Seed, start: &[Config]) -> Self {
        Self {
            name: name.name(),
            method: M::default(),
            fresh: Fresh::new(space, start),
            rng: ChaCha8Rng::seed_from_u64(seed.0),
            pending: HashMap::new(),
            costs: HashMap::new(),
        }
    }
}

impl<M: Method> Classic<M> {
    /// Returns the next new configuration; `None` if the method needs results first.
    fn next_unproposed(&mut self) -> Option<(Config, &'static str)> {
        if let Some(config) = self.fresh.take_start() {
            return Some((config, "start"));
        }
        for _ in 0..MAX_REPEATED_DRAWS {
            let next = self.method.next_config(self.fresh.space(), &mut self.rng);
            let Some(config) = next else {
                // The method needs results; without pending proposals it would wait forever.
                if self.pending.is_empty() {
                    break;
                }
                return None;
            };
            if self.fresh.claim(&config) {
                return Some((config, self.name));
            }
            if let Some(cost) = self.costs.get(&config).copied() {
                self.judge(&config, cost);
            }
        }
        Some((self.fresh.draw(&mut self.rng)?, "explore"))
    }

    fn judge(&mut self, config: &Config, cost: f64) {
        self.method
            .judge(config, cost, self.fresh.space(), &mut self.rng);
    }

    fn learn(&mut self, config: Config, observation: Observation) {
        let cost = match observation {
            Observation::Time { time, .. } => time.get(),
            Observation::Failed(_) | Observation::Unknown => f64::INFINITY,
        };
        self.judge(&config, cost);
        // Unknown is infinite for this step only; a stored cost would count as a failure later.
        if observation != Observation::Unknown {
            self.costs.insert(config, cost);
        }
    }
}

impl<M: Method> Strategy for Classic<M> {
    fn ask(&mut self) -> Option<Proposal> {
        let (config, origin) = self.next_unproposed()?;
        let id = self.fresh.take_id();
        self.pending.insert(id, config.clone());
        Some(Proposal { id, config, origin })
    }

    fn tell(&mut self, id: u64, observation: Observation) {
        if let Some(config) = self.pending.remove(&id) {
            self.learn(config, observation);
        }
    }

    fn observe(&mut self, config: &Config, observation: Observation) {
        if self.fresh.claim(config) {
            self.learn(config.clone(), observation);
        }
    }

    fn exhausted(&self) -> bool {
        self.fresh.exhausted()
    }
}

/// Changes one parameter to another value, both drawn uniformly; `None` after 100 invalid draws.
pub(super) fn random_neighbour(
    config: &Config,
    space: &Space,
    rng: &mut ChaCha8Rng,
) -> Option<Config> {
    let parameters = space.parameters();
    for _ in 0..100 {
        let at = rng.random_range(0..parameters.len().max(1));
        let count = parameters.get(at)?.values.len() as u32;
        if count < 2 {
            continue;
        }
        let other = rng.random_range(0..count - 1);
        let near = config.with(at, other + u32::from(other >= config.choices()[at]));
        if space.contains(&near) {
            return Some(near);
        }
    }
    None
}

/// Returns the valid configuration nearest to a preference; parameters are processed in random order.
pub(super) fn repair(wanted: &[u32], space: &Space, rng: &mut ChaCha8Rng) -> Option<Config> {
    use rand::seq::SliceRandom as _;
    let config = Config::new(wanted);
    if space.contains(&config) {
        return Some(config);
    }
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.shuffle(rng);
    space.nearest(wanted, &order, rng)
}
