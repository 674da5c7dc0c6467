//! The product's own search: a steady-state evolutionary algorithm with restarts.
//!
//! An epoch starts with uniform draws, then breeds from its fastest configurations: a parent is
//! taken by rank, varied (see [`super::variation`]), and replaced in the ranking by whatever is
//! faster. When an epoch stops improving, the next one starts from new draws; the fastest of all
//! epochs stay available as partners for crossover.

use super::fresh::Fresh;
use super::variation::Variation;
use super::{Proposal, Strategy, Told};
use crate::space::{Config, Neighbourhood, Space};
use crate::units::{Micros, Seed};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::collections::HashMap;

// The constants were chosen on the five recorded convolution and GEMM spaces together (60 to 100
// seeds, mean score at 25 to 400 evaluations); none of them is sharp.

/// How many of an epoch's fastest configurations may become parents.
const ELITES: usize = 8;
/// How many of the fastest configurations of earlier epochs stay as partners.
const HALL: usize = 8;
/// Attempts to breed something new before falling back to neighbours of the elites.
const ATTEMPTS: u32 = 16;
/// Share of proposals drawn uniformly, so that no corner of the space is out of reach.
const EXPLORE: f64 = 0.05;
/// Share of proposals with two parents.
const CROSS: f64 = 0.4;

pub(super) struct Evolve {
    fresh: Fresh,
    variation: Variation,
    rng: ChaCha8Rng,
    pending: HashMap<u64, (Config, u32)>,
    epoch: Epoch,
    hall: Vec<(Micros, Config)>,
}

/// One start of the search.
#[derive(Debug, Default)]
struct Epoch {
    number: u32,
    asked: usize,
    elites: Vec<(Micros, Config)>,
    /// Results since the fastest one.
    stale: usize,
}

impl Evolve {
    pub(super) fn new(space: &Space, seed: Seed, start: &[Config]) -> Self {
        Self {
            fresh: Fresh::new(space, start),
            variation: Variation::new(space),
            rng: ChaCha8Rng::seed_from_u64(seed.0),
            pending: HashMap::new(),
            epoch: Epoch::default(),
            hall: Vec::new(),
        }
    }

    /// Uniform draws at the start of an epoch: enough to rank, few enough for small budgets.
    fn opening(&self) -> usize {
        (2 * self.variation.freedom()).clamp(8, 20)
    }

    /// Results without progress after which an epoch is given up.
    fn patience(&self) -> usize {
        60 + 10 * self.variation.freedom()
    }

    fn breed(&mut self) -> Option<(Config, &'static str)> {
        if self.epoch.asked < self.opening()
            || self.epoch.elites.is_empty()
            || self.rng.random_bool(EXPLORE)
        {
            return None;
        }
        for attempt in 0..ATTEMPTS {
            let parent = self.pick_elite();
            let (child, origin) = if self.rng.random_bool(CROSS) {
                let partner = self.pick_partner();
                let child =
                    self.variation
                        .cross(self.fresh.space(), &parent, &partner, &mut self.rng);
                (child, "crossover")
            } else {
                let child =
                    self.variation
                        .mutate(self.fresh.space(), &parent, attempt / 4, &mut self.rng);
                (child, "mutate")
            };
            if let Some(child) = child.filter(|child| self.fresh.claim(child)) {
                return Some((child, origin));
            }
        }
        self.unseen_neighbour().map(|config| (config, "neighbour"))
    }

    /// The cube of a uniform number prefers low ranks: half of the picks fall on the first eighth of
    /// the elites.
    fn pick_elite(&mut self) -> Config {
        let place = self.rng.random::<f64>().powi(3) * self.epoch.elites.len() as f64;
        self.epoch.elites[(place as usize).min(self.epoch.elites.len() - 1)]
            .1
            .clone()
    }

    fn pick_partner(&mut self) -> Config {
        if self.hall.is_empty() || self.rng.random_bool(0.7) {
            return self.pick_elite();
        }
        self.hall[self.rng.random_range(0..self.hall.len())]
            .1
            .clone()
    }

    /// A configuration that differs in one parameter from an elite, best elites first.
    fn unseen_neighbour(&mut self) -> Option<Config> {
        for (_, elite) in &self.epoch.elites {
            let mut near: Vec<Config> = self
                .fresh
                .space()
                .neighbours(elite, Neighbourhood::Hamming)
                .into_iter()
                .filter(|config| self.fresh.is_new(config))
                .collect();
            if !near.is_empty() {
                let config = near.swap_remove(self.rng.random_range(0..near.len()));
                self.fresh.claim(&config);
                return Some(config);
            }
        }
        None
    }

    fn learn(&mut self, config: Config, told: Told, epoch: u32) {
        self.epoch.stale += 1;
        if let Told::Time(time) = told {
            if epoch == self.epoch.number {
                let fastest = self.epoch.elites.first();
                if fastest.is_none_or(|(best, _)| time < *best) {
                    self.epoch.stale = 0;
                }
                insert_ranked(&mut self.epoch.elites, (time, config), ELITES);
            } else {
                insert_ranked(&mut self.hall, (time, config), HALL);
            }
        }
        if self.epoch.stale > self.patience() && self.epoch.asked > self.opening() {
            self.restart();
        }
    }

    fn restart(&mut self) {
        let old = std::mem::take(&mut self.epoch);
        self.epoch.number = old.number + 1;
        for elite in old.elites {
            insert_ranked(&mut self.hall, elite, HALL);
        }
    }
}

/// Inserts by time, after equals, and keeps the first `limit`.
fn insert_ranked(ranked: &mut Vec<(Micros, Config)>, entry: (Micros, Config), limit: usize) {
    let place = ranked.partition_point(|(time, _)| *time <= entry.0);
    if place < limit {
        ranked.insert(place, entry);
        ranked.truncate(limit);
    }
}

impl Strategy for Evolve {
    fn ask(&mut self) -> Option<Proposal> {
        let (config, origin) = match self.fresh.take_start() {
            Some(config) => (config, "start"),
            None => match self.breed() {
                Some(bred) => bred,
                None => (self.fresh.draw(&mut self.rng)?, "explore"),
            },
        };
        let id = self.fresh.take_id();
        self.epoch.asked += 1;
        self.pending.insert(id, (config.clone(), self.epoch.number));
        Some(Proposal { id, config, origin })
    }

    fn tell(&mut self, id: u64, told: Told) {
        if let Some((config, epoch)) = self.pending.remove(&id) {
            self.learn(config, told, epoch);
        }
    }

    fn observe(&mut self, config: &Config, told: Told) {
        if self.fresh.claim(config) {
            self.epoch.asked += 1;
            self.learn(config.clone(), told, self.epoch.number);
        }
    }

    fn name(&self) -> &'static str {
        "evolve"
    }

    fn exhausted(&self) -> bool {
        self.fresh.exhausted()
    }
}
