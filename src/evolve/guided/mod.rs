//! The product's own search: evolution that asks a model before it spends a trial.
//!
//! It opens with configurations far apart. From then on every proposal is the best of a pool of
//! candidates: uniform draws, neighbours of the fastest, and their children by mutation and
//! crossover ([`super::variation`]). A Gaussian process over the parameters
//! ([`surrogate`]) predicts the logarithm of the time with its uncertainty, and, on the same
//! factorisation, whether a candidate will fail; the candidate with the largest expected
//! improvement, times the chance that it works, is next. What is still being measured counts as
//! measured with the predicted result, so proposals made together differ.
//!
//! A proposal costs the same whatever the size of the space: the pool and the number of results
//! that the model holds are bounded.

mod archive;
mod improvement;
mod pool;
mod settings;

pub use settings::Settings;

use super::encode::Encoder;
use super::fresh::Fresh;
use super::variation::Variation;
use super::{Proposal, Strategy, Told};
use crate::space::{Config, Neighbourhood, Space};
use crate::units::Seed;
use archive::{Archive, keep_fastest_and_sample};
use improvement::log_improvement;
use pool::Pool;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::collections::HashMap;
use surrogate::{Process, Scales, dot, squared_distance};

/// Share of children with two parents.
const CROSS: f64 = 0.4;
/// The least chance to work that is believed of a candidate, whatever the model says.
const LEAST_CHANCE: f64 = 0.02;
/// A signal's variance is at least this, for spaces that are flat.
const LEAST_SIGNAL: f64 = 1e-12;

pub(super) struct Guided {
    settings: Settings,
    fresh: Fresh,
    variation: Variation,
    rng: ChaCha8Rng,
    encoder: Encoder,
    archive: Archive,
    pending: HashMap<u64, usize>,
    scales: Scales,
    process: Process,
    /// Places in the archive of the points that the process holds.
    held: Vec<usize>,
    pool: Pool,
    /// The number of results at which the model is fitted again.
    next_fit: usize,
}

impl Guided {
    pub(super) fn new(space: &Space, seed: Seed, start: &[Config], settings: Settings) -> Self {
        let encoder = Encoder::new(space, settings.alignment);
        let scales = Scales::prior(encoder.dimensions(), settings.log_length);
        Self {
            fresh: Fresh::new(space, start),
            variation: Variation::new(space),
            rng: ChaCha8Rng::seed_from_u64(seed.0),
            archive: Archive::default(),
            pending: HashMap::new(),
            process: Process::new(scales.shape(encoder.dimension_of())),
            scales,
            held: Vec::new(),
            pool: Pool::default(),
            next_fit: 0,
            encoder,
            settings,
        }
    }

    /// The farthest of some uniform draws from everything proposed so far.
    fn far(&mut self) -> Option<Config> {
        let mut best: Option<(f64, Config)> = None;
        for _ in 0..self.settings.opening_draws {
            let config = self.fresh.space().draw(&mut self.rng)?;
            if !self.fresh.is_new(&config) {
                continue;
            }
            let here = self.encoder.encode(&config);
            let entries = self.archive.entries.iter();
            let distance = entries
                .map(|entry| squared_distance(&here, &entry.encoded))
                .fold(f64::INFINITY, f64::min);
            if best.as_ref().is_none_or(|(most, _)| distance > *most) {
                best = Some((distance, config));
            }
        }
        match best {
            Some((_, config)) if self.fresh.claim(&config) => Some(config),
            _ => self.fresh.draw(&mut self.rng),
        }
    }

    /// The candidate that promises most; `None` when the pool has none.
    fn promising(&mut self) -> Option<(Config, &'static str)> {
        if self.archive.told() >= self.next_fit || self.held.len() >= self.settings.model_limit {
            self.refit();
        }
        for _ in 0..self.settings.join_uniform {
            self.add_uniform();
        }
        for _ in 0..self.settings.join_bred {
            self.add_bred();
        }
        self.score();
        while let Some(candidate) = self.pool.take_best() {
            if self.fresh.claim(&candidate.config) {
                self.pool.trim(self.settings.pool_limit);
                return Some((candidate.config, candidate.origin));
            }
        }
        None
    }

    fn score(&mut self) {
        let (targets, best) = self.archive.targets(&self.held, &self.settings);
        let known = targets.iter().flatten().count().max(1);
        let times = self.process.whiten(&targets);
        let signal = (dot(&times, &times) / known as f64).max(LEAST_SIGNAL);
        let health = (self.settings.failures && self.archive.any_failed()).then(|| {
            let health: Vec<Option<f64>> = self
                .held
                .iter()
                .map(|place| self.archive.health(*place))
                .collect();
            self.process.whiten(&health)
        });
        let by_bound = self.archive.told() >= self.settings.bound_from;
        let deviations = self.settings.deviations;
        self.pool.score(&self.process, |point| {
            let mean = dot(&times, &point.whitened);
            let deviation = (signal * point.variance.max(1e-9)).sqrt();
            let gain = if by_bound {
                (best - mean + deviations * deviation).max(1e-9).ln()
            } else {
                log_improvement((best - mean) / deviation) + deviation.ln()
            };
            let chance = health.as_ref().map_or(1.0, |health| {
                (1.0 + dot(health, &point.whitened)).clamp(LEAST_CHANCE, 1.0)
            });
            gain + chance.ln()
        });
    }

    /// Fits the length scales to the results, and makes a new model and a new pool.
    fn refit(&mut self) {
        self.held = self
            .archive
            .select(self.settings.model_limit, &mut self.rng);
        let (targets, _) = self.archive.targets(&self.held, &self.settings);
        let mut results: Vec<(usize, f64)> = self
            .held
            .iter()
            .zip(targets)
            .filter_map(|(place, target)| Some((*place, target?)))
            .collect();
        let half = self.settings.fit_limit / 2;
        if results.len() > 2 * half {
            results.sort_by(|a, b| a.1.total_cmp(&b.1));
            keep_fastest_and_sample(&mut results, half, half, &mut self.rng);
        }
        let mean =
            results.iter().map(|(_, target)| target).sum::<f64>() / results.len().max(1) as f64;
        let (points, values): (Vec<&[f64]>, Vec<f64>) = results
            .iter()
            .map(|(place, target)| {
                (
                    self.archive.entries[*place].encoded.as_slice(),
                    target - mean,
                )
            })
            .unzip();
        let steps = self.settings.fit_steps;
        self.scales
            .climb(&points, &values, self.encoder.dimension_of(), steps);
        self.process = Process::new(self.scales.shape(self.encoder.dimension_of()));
        for place in &self.held {
            let point = self.process.point(&self.archive.entries[*place].encoded);
            self.process.push(point);
        }
        self.fill_pool();
        let told = self.archive.told();
        self.next_fit = ((told as f64 * self.settings.fit_growth) as usize).max(told + 3);
    }

    fn fill_pool(&mut self) {
        self.pool.clear();
        for rank in 0..self.settings.near_elites.min(self.archive.elites()) {
            self.add_neighbours(rank);
        }
        for _ in 0..self.settings.pool_uniform {
            self.add_uniform();
        }
        for _ in 0..self.settings.pool_bred {
            self.add_bred();
        }
    }

    fn add(&mut self, config: Config, origin: &'static str) {
        if self.fresh.is_new(&config) {
            self.pool.add(config, origin, &self.encoder, &self.process);
        }
    }

    fn add_uniform(&mut self) {
        if let Some(config) = self.fresh.space().draw(&mut self.rng) {
            self.add(config, "explore");
        }
    }

    fn add_neighbours(&mut self, rank: usize) {
        let elite = self.archive.elite(rank);
        let mut near = self.fresh.space().neighbours(elite, Neighbourhood::Hamming);
        if near.len() > self.settings.near_each {
            near.shuffle(&mut self.rng);
            near.truncate(self.settings.near_each);
        }
        for config in near {
            self.add(config, "neighbour");
        }
    }

    fn add_bred(&mut self) {
        let Some(rank) = self.pick_rank() else { return };
        let parent = self.archive.elite(rank).clone();
        let partner = self
            .rng
            .random_bool(CROSS)
            .then(|| self.pick_rank())
            .flatten()
            .map(|rank| self.archive.elite(rank).clone());
        let (space, rng) = (self.fresh.space(), &mut self.rng);
        let (child, origin) = match partner {
            Some(partner) => (
                self.variation.cross(space, &parent, &partner, rng),
                "crossover",
            ),
            None => (self.variation.mutate(space, &parent, rng), "mutate"),
        };
        if let Some(child) = child {
            self.add(child, origin);
        }
    }

    /// The square of a uniform number prefers the fastest.
    fn pick_rank(&mut self) -> Option<usize> {
        let elites = self.archive.elites();
        let place = self.rng.random::<f64>().powi(2) * elites as f64;
        (elites > 0).then(|| (place as usize).min(elites - 1))
    }

    /// Files a configuration that counts as proposed; the model holds it from now on.
    fn file(&mut self, config: Config) -> usize {
        let place = self.archive.push(config, &self.encoder);
        if self.held.len() < self.settings.model_limit {
            let point = self.process.point(&self.archive.entries[place].encoded);
            self.process.push(point);
            self.held.push(place);
        }
        place
    }

    fn learn(&mut self, place: usize, told: Told) {
        let rank = self.archive.learn(place, told, self.settings.elites);
        if let Some(rank @ 0..=1) = rank {
            self.add_neighbours(rank);
        }
    }

    fn propose(&mut self) -> Option<(Config, &'static str)> {
        if let Some(config) = self.fresh.take_start() {
            return Some((config, "start"));
        }
        if self.archive.entries.len() < self.settings.opening {
            return Some((self.far()?, "explore"));
        }
        if !self.rng.random_bool(self.settings.explore)
            && let Some(promising) = self.promising()
        {
            return Some(promising);
        }
        Some((self.fresh.draw(&mut self.rng)?, "explore"))
    }
}

impl Strategy for Guided {
    fn ask(&mut self) -> Option<Proposal> {
        let (config, origin) = self.propose()?;
        let id = self.fresh.take_id();
        let place = self.file(config.clone());
        self.pending.insert(id, place);
        Some(Proposal { id, config, origin })
    }

    fn tell(&mut self, id: u64, told: Told) {
        if let Some(place) = self.pending.remove(&id) {
            self.learn(place, told);
        }
    }

    fn observe(&mut self, config: &Config, told: Told) {
        if self.fresh.claim(config) {
            let place = self.file(config.clone());
            self.learn(place, told);
        }
    }

    fn name(&self) -> &'static str {
        "evolve"
    }

    fn exhausted(&self) -> bool {
        self.fresh.exhausted()
    }
}
