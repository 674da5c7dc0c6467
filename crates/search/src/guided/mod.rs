//! The product's own search: evolution that asks a model before it spends a trial.
//!
//! It opens with configurations far apart. From then on every proposal is the best of a pool of
//! candidates: uniform draws, neighbours of the fastest, and their children by mutation and
//! crossover ([`super::variation`]). A Gaussian process over the parameters
//! ([`surrogate`]) predicts the logarithm of the time with its uncertainty, and, on the same
//! factorisation, whether a candidate will fail; the candidate with the largest expected
//! improvement, times the chance that it works, is next. What is still being measured counts as
//! measured with the predicted result; what is waiting to be measured takes away from the promise
//! of what resembles it, so proposals made together differ. Which of those waiting is measured
//! next is decided at the last moment, with all results known and with what the compiler said.
//!
//! A proposal costs the same whatever the size of the space: the pool and the number of results
//! that the model holds are bounded.

mod archive;
mod compile_stats;
mod improvement;
mod pool;
mod acquisition;
mod settings;
mod waiting;

pub use settings::Settings;

use super::encode::Encoder;
use super::fresh::Fresh;
use super::variation::Variation;
use super::{CompileStats, Observation, Proposal, Ready, Strategy};
use acquisition::Acquisition;
use archive::{Archive, Scale, keep_fastest_and_sample};
use compile_stats::Correction;
use pool::Pool;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::collections::HashMap;
use surrogate::{Process, Scales, squared_distance};
use tuner_core::units::Seed;
use tuner_space::{Config, Neighbourhood, Space};
use waiting::Waiting;

/// Share of children with two parents.
const CROSS: f64 = 0.4;
/// The most promising candidates, among which those that resemble a waiting one are told apart.
const SHORT_LIST: usize = 40;

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
    waiting: Waiting,
    /// What the model had expected of those being measured, by place in the archive.
    expected: HashMap<usize, Expected>,
    correction: Correction,
    /// Counts the models, as points belong to one.
    model: u64,
    /// Variance of the targets when they were last looked at.
    signal: f64,
    /// The number of results at which the model is fitted again.
    next_fit: usize,
}

/// What was believed of a candidate when it was chosen.
struct Expected {
    facts: CompileStats,
    target: f64,
    scale: Scale,
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
            waiting: Waiting::default(),
            expected: HashMap::new(),
            correction: Correction::default(),
            model: 0,
            signal: 0.0,
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
            let waiting = self.waiting.list.iter();
            let proposed = self
                .archive
                .entries
                .iter()
                .map(|entry| squared_distance(&here, &entry.encoded))
                .chain(
                    waiting
                        .map(|other| squared_distance(&here, &self.encoder.encode(&other.config))),
                );
            let distance = proposed.fold(f64::INFINITY, f64::min);
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
        self.refit_if_due();
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

    fn refit_if_due(&mut self) {
        if self.archive.told() >= self.next_fit || self.held.len() >= self.settings.model_limit {
            self.refit();
        }
    }

    /// What the model promises, with what is waiting brought up to date.
    fn promise(&mut self) -> Acquisition {
        let promise = Acquisition::new(&self.archive, &self.process, &self.held, &self.settings);
        self.signal = promise.signal;
        self.waiting
            .catch_up(self.model, &self.encoder, &self.process);
        promise
    }

    fn score(&mut self) {
        let promise = self.promise();
        self.pool.score(&self.process, |point| {
            promise.of(point, point.variance, 0.0)
        });
        if !self.waiting.list.is_empty() {
            let (waiting, process) = (&self.waiting, &self.process);
            self.pool.score_best(SHORT_LIST, |point| {
                promise.of(point, waiting.variance_after(process, point), 0.0)
            });
        }
    }

    /// The place in `ready` of the one to measure next, and what the model promised if it was asked.
    fn pick(&mut self, ready: &[Ready]) -> (usize, Option<Acquisition>) {
        let of = |id: u64| ready.iter().position(|each| each.id == id);
        let mut unweighed = self.waiting.list.iter().filter(|each| !each.weighed);
        if let Some(place) = unweighed.find_map(|waiter| of(waiter.id)) {
            return (place, None);
        }
        self.refit_if_due();
        let promise = self.promise();
        let scores = self.promises(&promise, ready).into_iter();
        let best = scores.reduce(|best, next| if next.1 > best.1 { next } else { best });
        (best.map_or(0, |(place, _)| place), Some(promise))
    }

    /// What each of them promises now, the oldest first. Those that the model had no say in are
    /// left out.
    fn promises(&self, promise: &Acquisition, ready: &[Ready]) -> Vec<(usize, f64)> {
        let mut scores = Vec::with_capacity(ready.len());
        for waiter in self.waiting.list.iter().filter(|waiter| waiter.weighed) {
            let Some(place) = ready.iter().position(|each| each.id == waiter.id) else {
                continue;
            };
            let facts = ready[place].facts.as_ref().zip(promise.scale);
            let shift = facts.map_or(0.0, |(facts, scale)| {
                let expected = promise.mean(&waiter.point);
                self.correction.shift(facts, expected, scale.centre)
            });
            let variance = waiter.point.variance;
            scores.push((place, promise.of(&waiter.point, variance, shift)));
        }
        scores
    }

    /// A waiting proposal is measured from now on: the model holds it. `believed`: what is known
    /// of it, and the model's promises with the proposal's point up to date.
    fn launch(&mut self, id: u64, believed: Option<(CompileStats, Acquisition)>) {
        let Some(waiter) = self.waiting.take(id) else {
            return;
        };
        let place = self.file(waiter.config);
        self.pending.insert(id, place);
        if let Some((facts, promise)) = believed
            && let Some(scale) = promise.scale
        {
            let expected = Expected {
                facts,
                target: promise.mean(&waiter.point),
                scale,
            };
            self.expected.insert(place, expected);
        }
    }

    /// Fits the length scales to the results, and makes a new model and a new pool.
    fn refit(&mut self) {
        self.held = self
            .archive
            .select(self.settings.model_limit, &mut self.rng);
        let scale = self.archive.scale(&self.held, &self.settings);
        let mut results: Vec<(usize, f64)> = self
            .held
            .iter()
            .filter_map(|place| Some((*place, scale?.target(self.archive.log(*place)?))))
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
        let noise_variances: Vec<f64> = results
            .iter()
            .map(|(place, _)| self.noise_variance(*place))
            .collect();
        let steps = self.settings.fit_steps;
        let dimension_of = self.encoder.dimension_of();
        self.scales
            .climb(&points, &values, &noise_variances, dimension_of, steps);
        self.process = Process::new(self.scales.shape(dimension_of));
        for place in &self.held {
            let point = self.process.point(&self.archive.entries[*place].encoded);
            self.process.push(point);
            self.process.widen_last(self.noise_variance(*place));
        }
        self.model += 1;
        if self.archive.any_noise() {
            self.rank_by_belief(scale);
        }
        self.fill_pool();
        let told = self.archive.told();
        self.next_fit = ((told as f64 * self.settings.fit_growth) as usize).max(told + 3);
    }

    /// Parents and neighbours come from those that the model believes to be fast, not from those
    /// that were measured when the clock was kind.
    fn rank_by_belief(&mut self, scale: Option<Scale>) {
        let Some(scale) = scale else { return };
        let targets = self.archive.targets(&self.held, &scale);
        let whitened = self.process.whiten(&targets);
        let smooth = self.process.smooth(&targets, &whitened);
        let believed = self.held.iter().zip(smooth);
        let believed = believed
            .filter_map(|(place, target)| Some((target? + scale.centre, *place)))
            .collect();
        self.archive.rank(believed, self.settings.elites);
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

    /// Variance of a result's error, in units of the signal's.
    fn noise_variance(&self, place: usize) -> f64 {
        let noise_variance = self.archive.noise_variance(place);
        if noise_variance > 0.0 && self.signal > 0.0 {
            noise_variance / self.signal
        } else {
            0.0
        }
    }

    fn learn(&mut self, place: usize, told: Observation) {
        if let Some(expected) = self.expected.remove(&place)
            && let Observation::Time { time, .. } = told
        {
            let target = expected.scale.target(time.get().ln());
            let centre = expected.scale.centre;
            self.correction
                .learn(&expected.facts, expected.target, centre, target);
        }
        let rank = self.archive.learn(place, told, self.settings.elites);
        // Others wait until the model is made anew.
        if self.held.last() == Some(&place) && self.process.held() == self.held.len() {
            self.process.widen_last(self.noise_variance(place));
        }
        if let Some(rank @ 0..=1) = rank {
            self.add_neighbours(rank);
        }
    }

    /// The next configuration, the operator that made it, and whether the model had its say.
    fn propose(&mut self) -> Option<(Config, &'static str, bool)> {
        if let Some(config) = self.fresh.take_start() {
            return Some((config, "start", false));
        }
        if self.archive.entries.len() + self.waiting.list.len() < self.settings.opening {
            return Some((self.far()?, "explore", false));
        }
        if !self.rng.random_bool(self.settings.explore)
            && let Some((config, origin)) = self.promising()
        {
            return Some((config, origin, true));
        }
        Some((self.fresh.draw(&mut self.rng)?, "explore", true))
    }
}

impl Strategy for Guided {
    fn ask(&mut self) -> Option<Proposal> {
        let (config, origin, weighed) = self.propose()?;
        let id = self.fresh.take_id();
        let model = (self.model, &self.encoder, &self.process);
        self.waiting.push(id, config.clone(), weighed, model);
        Some(Proposal { id, config, origin })
    }

    fn choose(&mut self, ready: &[Ready]) -> usize {
        let (place, promise) = match ready.len() {
            0 | 1 => (0, None),
            _ => self.pick(ready),
        };
        let believed = ready[place]
            .facts
            .map(|facts| (facts, promise.unwrap_or_else(|| self.promise())));
        self.launch(ready[place].id, believed);
        place
    }

    fn withdraw(&mut self, ready: &[Ready]) -> Option<usize> {
        let promise = self.promise();
        let scores = self.promises(&promise, ready).into_iter();
        let (place, _) =
            scores.reduce(|worst, next| if next.1 < worst.1 { next } else { worst })?;
        let waiter = self.waiting.take(ready[place].id)?;
        self.fresh.release(&waiter.config);
        Some(place)
    }

    fn tell(&mut self, id: u64, told: Observation) {
        self.launch(id, None);
        if let Some(place) = self.pending.remove(&id) {
            self.learn(place, told);
        }
    }

    fn observe(&mut self, config: &Config, told: Observation) {
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
