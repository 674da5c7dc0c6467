//! Baselines: the methods other tuners offer, with their usual settings, so that one run compares
//! them with `evolve` under the same rules.
//!
//! They may come back to a configuration as often as they like: what was measured is remembered
//! and costs nothing, so only unique evaluations count for them too.

mod annealing;
mod differential;
mod genetic;
mod local;

pub(super) use annealing::Annealing;
pub(super) use differential::Differential;
pub(super) use genetic::Genetic;
pub(super) use local::Local;

use super::fresh::Fresh;
use super::{Observation, Proposal, Strategy};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::collections::HashMap;
use tuner_core::units::Seed;
use tuner_space::{Config, Space};

/// Wishes in a row that bring nothing new before a uniform draw is proposed instead.
const MAX_REPEATED_DRAWS: usize = 400;

/// One method, apart from bookkeeping.
pub(super) trait Method: Send {
    /// The name it is chosen by.
    fn name(&self) -> &'static str;

    /// Where it wants to look next, old or new; `None` when it has to wait for results.
    fn wish(&mut self, space: &Space, rng: &mut ChaCha8Rng) -> Option<Config>;

    /// Takes the cost of a configuration: its time in microseconds, infinite when it failed.
    fn judge(&mut self, config: &Config, cost: f64, space: &Space, rng: &mut ChaCha8Rng);
}

/// A method as a strategy: duplicates answered from memory, results in any order.
pub(super) struct Classic<M> {
    method: M,
    fresh: Fresh,
    rng: ChaCha8Rng,
    pending: HashMap<u64, Config>,
    costs: HashMap<Config, f64>,
}

impl<M: Method> Classic<M> {
    pub(super) fn new(method: M, space: &Space, seed: Seed, start: &[Config]) -> Self {
        Self {
            method,
            fresh: Fresh::new(space, start),
            rng: ChaCha8Rng::seed_from_u64(seed.0),
            pending: HashMap::new(),
            costs: HashMap::new(),
        }
    }

    /// `None` when the method has to wait.
    fn next(&mut self) -> Option<(Config, &'static str)> {
        let name = self.method.name();
        if let Some(config) = self.fresh.take_start() {
            return Some((config, "start"));
        }
        for _ in 0..MAX_REPEATED_DRAWS {
            let wish = self.method.wish(self.fresh.space(), &mut self.rng);
            let Some(config) = wish else {
                if self.pending.is_empty() {
                    break;
                }
                return None;
            };
            if self.fresh.claim(&config) {
                return Some((config, name));
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

    fn learn(&mut self, config: Config, told: Observation) {
        let cost = match told {
            Observation::Time { time, .. } => time.get(),
            Observation::Failed(_) | Observation::Unknown => f64::INFINITY,
        };
        self.judge(&config, cost);
        // The method goes on without one that is unknown, and does not meet it as a failure again.
        if told != Observation::Unknown {
            self.costs.insert(config, cost);
        }
    }
}

impl<M: Method> Strategy for Classic<M> {
    fn ask(&mut self) -> Option<Proposal> {
        let (config, origin) = self.next()?;
        let id = self.fresh.take_id();
        self.pending.insert(id, config.clone());
        Some(Proposal { id, config, origin })
    }

    fn tell(&mut self, id: u64, told: Observation) {
        if let Some(config) = self.pending.remove(&id) {
            self.learn(config, told);
        }
    }

    fn observe(&mut self, config: &Config, told: Observation) {
        if self.fresh.claim(config) {
            self.learn(config.clone(), told);
        }
    }

    fn name(&self) -> &'static str {
        self.method.name()
    }

    fn exhausted(&self) -> bool {
        self.fresh.exhausted()
    }
}

/// The same configuration with one parameter set to another value, both drawn uniformly, if that
/// is valid; `None` after some tries in vain.
fn random_neighbour(config: &Config, space: &Space, rng: &mut ChaCha8Rng) -> Option<Config> {
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

/// The valid configuration nearest to a wish, parameters taken in random order.
fn repair(wanted: &[u32], space: &Space, rng: &mut ChaCha8Rng) -> Option<Config> {
    use rand::seq::SliceRandom as _;
    let config = Config::new(wanted);
    if space.contains(&config) {
        return Some(config);
    }
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.shuffle(rng);
    space.nearest(wanted, &order, rng)
}
