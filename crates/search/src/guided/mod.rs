//! The product's own search: evolution that asks a model before it spends a trial.
//!
//! It opens with configurations typical of the space and others far apart. From then on every proposal is the best of a pool of
//! candidates: uniform draws, neighbours of the fastest, and their children by mutation and
//! crossover ([`super::variation`]). A Gaussian process over the parameters
//! ([`surrogate`]) predicts the logarithm of the time with its uncertainty, and, on the same
//! factorisation, whether a candidate will fail; the candidate with the largest expected
//! improvement, times the chance that it works, is next. What is still being measured counts as
//! measured with the predicted result; what is waiting to be measured takes away from the promise
//! of what resembles it, so proposals made together differ. Which of those waiting is measured
//! next is decided at the last moment, with all results known and with what the compiler said.
//! Where nothing is gained any more, a second search from other configurations takes turns with it
//! ([`second`]).
//!
//! A proposal costs the same whatever the size of the space: the pool and the number of results
//! that the model holds are bounded.

mod archive;
mod candidates;
mod compile_stats;
mod improvement;
mod opening;
mod outlook;
mod pool;
mod refit;
mod second;
mod acquisition;
mod settings;
#[cfg(test)]
mod tests;
mod volume;
mod waiting;

pub use settings::Settings;

use super::encode::Encoder;
use super::fresh::Fresh;
use super::knowledge::{Knowledge, Places, portfolio};
use super::variation::Variation;
use super::{CompileStats, Observation, Proposal, Ready, Strategy};
use acquisition::Acquisition;
use archive::{Archive, Scale};
use compile_stats::Correction;
use outlook::Outlook;
use pool::Pool;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use second::Second;
use std::collections::{HashMap, VecDeque};
use surrogate::{Place, Process, Scales};
use tuner_core::units::Seed;
use tuner_space::{Config, Space};
use waiting::Waiting;

/// Share of children with two parents.
const CROSS: f64 = 0.4;
/// The most promising candidates, among which those that resemble a waiting one are told apart.
const SHORT_LIST: usize = 40;

pub(super) struct Guided {
    settings: Settings,
    places: Places,
    /// The fastest of all sources, with what is believed of them.
    known: Vec<(Config, Place)>,
    fresh: Fresh,
    variation: Variation,
    rng: ChaCha8Rng,
    encoder: Encoder,
    archive: Archive,
    pending: HashMap<u64, usize>,
    /// Without and with what is known from elsewhere. With it, values of ordered parameters are not
    /// told apart: a source has done that, and what it misses is smooth.
    scales: [Scales; 2],
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
    /// Weights of the sources beyond the equal share of each, when the model was last made.
    weights: Vec<f64>,
    /// The number of results at which the model is fitted again.
    next_fit: usize,
    /// First trials that are chosen from what is known from elsewhere.
    first: VecDeque<Config>,
    /// Far configurations to be tried when it is doubted.
    spread_left: usize,
    outlook: Outlook,
    /// Another search, where this one gains nothing any more.
    second: Second,
}

/// What was believed of a candidate when it was chosen.
struct Expected {
    facts: CompileStats,
    target: f64,
    scale: Scale,
}

impl Guided {
    pub(super) fn new(
        space: &Space,
        seed: Seed,
        start: &[Config],
        mut settings: Settings,
        knowledge: &Knowledge,
    ) -> Self {
        let encoder = Encoder::new(space, settings.alignment, settings.apart);
        let beyond = encoder.smooth().last().map_or(0, |last| last + 1);
        let scales = [encoder.dimension_of(), encoder.smooth()].map(|dimension_of| {
            let prior = Scales::prior(dimension_of, settings.log_length);
            prior.longer(beyond, settings.apart_doubt)
        });
        let mut rng = ChaCha8Rng::seed_from_u64(seed.0);
        let shape = scales[usize::from(!knowledge.is_empty())].shape();
        let (mut first, mut known) = (Vec::new(), Vec::new());
        if !knowledge.is_empty() {
            let count = settings.first.min(knowledge.names().count().max(2));
            let wanted = (count, settings.first_doubt);
            first = portfolio(knowledge, &encoder, &shape, wanted, &mut rng);
            settings.opening = 0;
            known = knowledge.best(usize::MAX);
        }
        let place = |config: Config| {
            let lies = knowledge.place(&encoder, &config, settings.doubt);
            (config, lies)
        };
        Self {
            known: known.into_iter().map(place).collect(),
            places: Places::new(knowledge.clone(), settings.doubt),
            fresh: Fresh::new(space, start),
            variation: Variation::new(space),
            rng,
            archive: Archive::new(!knowledge.is_empty()),
            pending: HashMap::new(),
            process: Process::new(shape),
            scales,
            held: Vec::new(),
            pool: Pool::default(),
            waiting: Waiting::default(),
            expected: HashMap::new(),
            correction: Correction::default(),
            model: 0,
            signal: 0.0,
            weights: Vec::new(),
            next_fit: 0,
            first: first.into(),
            spread_left: settings.spread,
            outlook: Outlook::default(),
            second: Second::default(),
            encoder,
            settings,
        }
    }

    /// Where a configuration lies, and what is believed of it beforehand.
    fn lies(&mut self, config: &Config) -> Place {
        if self.knowing() {
            self.places.of(config, &self.encoder).clone()
        } else {
            Place::of(self.encoder.encode(config))
        }
    }

    /// Whether anything is known from elsewhere.
    fn knowing(&self) -> bool {
        !self.places.knowledge().is_empty()
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
        if self.archive.told >= self.next_fit || self.held.len() >= self.settings.model_limit {
            self.refit();
        }
    }

    /// What the model promises, with what is waiting brought up to date.
    fn promise(&mut self) -> Acquisition {
        let promise = Acquisition::new(&self.archive, &self.process, &self.held, &self.settings);
        self.signal = promise.signal;
        self.waiting
            .catch_up(self.model, &self.archive, &self.process);
        promise
    }

    fn score(&mut self) {
        let promise = self.promise();
        self.pool.score(&self.process, |point| {
            promise.of(point, point.variance, 0.0, None)
        });
        if !self.waiting.list.is_empty() {
            let (waiting, process) = (&self.waiting, &self.process);
            self.pool.score_best(SHORT_LIST, |point| {
                promise.of(point, waiting.variance_after(process, point), 0.0, None)
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
            let other = ready[place].facts.and_then(|facts| facts.other);
            scores.push((place, promise.of(&waiter.point, variance, shift, other)));
        }
        scores
    }

    /// A waiting proposal is measured from now on: the model holds it. `believed`: what is known
    /// of it, and the model's promises with the proposal's point up to date.
    fn launch(&mut self, id: u64, believed: Option<(CompileStats, Acquisition)>) {
        let Some(waiter) = self.waiting.take(id) else {
            return;
        };
        let place = self.file(waiter.config, waiter.lent);
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

    /// Files a configuration that counts as proposed; the model holds it from now on.
    fn file(&mut self, config: Config, lent: bool) -> usize {
        let lies = self.lies(&config);
        let place = self.archive.push(config, lies, lent);
        let left_out = lent && self.archive.alone();
        if self.held.len() < self.settings.model_limit && !left_out {
            let point = self
                .process
                .point(&self.archive.seen(&self.archive.entries[place].lies));
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
        self.tell_second(place, told);
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
        // One of the front is a best of its own.
        let ahead = self.archive.front.contains(&place);
        if let Some(rank) = rank.filter(|rank| *rank <= 1 || ahead) {
            self.add_neighbours(rank);
        }
    }

    /// The next configuration.
    fn propose(&mut self) -> Option<Wish> {
        if let Some(config) = self.fresh.take_start() {
            return Some(Wish::fixed(config, "start"));
        }
        while let Some(config) = self.first.pop_front() {
            if self.fresh.claim(&config) {
                let lent = true;
                return Some(Wish {
                    lent,
                    ..Wish::fixed(config, "known")
                });
            }
        }
        if self.proposed() < self.settings.opening {
            return Some(Wish::fixed(self.open()?, "explore"));
        }
        if self.knowing() && self.spread_left > 0 && self.doubts() && !self.orders_well() {
            self.spread_left -= 1;
            return Some(Wish::fixed(self.far()?, "explore"));
        }
        if let Some(config) = self.ask_second() {
            return Some(Wish::fixed(config, "second"));
        }
        // Many in flight: the model knows of no result yet, and would ask for extreme ones alone.
        if !self.knowing() && self.archive.told == 0 {
            let weighed = true;
            return Some(Wish {
                weighed,
                ..Wish::fixed(self.typical()?, "explore")
            });
        }
        let uniform = self.rng.random_bool(self.settings.explore);
        let promising = if uniform { None } else { self.promising() };
        let (config, origin) = match promising {
            Some(found) => found,
            None => (self.fresh.draw(&mut self.rng)?, "explore"),
        };
        Some(Wish {
            config,
            origin,
            weighed: true,
            lent: self.archive.trusting,
        })
    }
}

/// What is to be tried next.
struct Wish {
    config: Config,
    origin: &'static str,
    /// Whether the model had its say, which may change its mind.
    weighed: bool,
    /// Whether it comes of what is known from elsewhere.
    lent: bool,
}

impl Wish {
    /// One that the model has no say in.
    fn fixed(config: Config, origin: &'static str) -> Self {
        Self {
            config,
            origin,
            weighed: false,
            lent: false,
        }
    }
}

impl Strategy for Guided {
    fn ask(&mut self) -> Option<Proposal> {
        let wish = self.propose()?;
        let proposal = Proposal {
            id: self.fresh.take_id(),
            config: wish.config.clone(),
            origin: wish.origin,
        };
        let lies = self.lies(&wish.config);
        let model = (self.model, &self.archive, &self.process);
        self.waiting.push(proposal.id, wish, lies, model);
        Some(proposal)
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

    fn chooses(&self) -> bool {
        true
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
            let place = self.file(config.clone(), false);
            self.learn(place, told);
        }
    }

    fn know(&mut self, knowledge: &Knowledge) {
        self.places = Places::new(knowledge.clone(), self.settings.doubt);
        self.archive.trusting = !knowledge.is_empty();
        // Where everything lies depends on the sources, and so do weights and the model.
        self.weights.clear();
        self.known = knowledge
            .best(usize::MAX)
            .into_iter()
            .map(|config| {
                let lies = self.lies(&config);
                (config, lies)
            })
            .collect();
        for place in 0..self.archive.entries.len() {
            let config = self.archive.entries[place].config.clone();
            let lies = self.lies(&config);
            self.archive.entries[place].lies = lies;
        }
        for place in 0..self.waiting.list.len() {
            let config = self.waiting.list[place].config.clone();
            let lies = self.lies(&config);
            self.waiting.list[place].lies = lies;
        }
        if !knowledge.is_empty() {
            // What is known takes the place of what was still to be explored.
            self.settings.opening = self.settings.opening.min(self.proposed());
        }
        self.refit();
    }

    fn worth(&self) -> Vec<f64> {
        self.archive.worth(self.places.knowledge().names().count())
    }

    fn left(&self) -> Option<f64> {
        self.outlook.left(self.archive.since_gain)
    }

    fn name(&self) -> &'static str {
        "evolve"
    }

    fn exhausted(&self) -> bool {
        self.fresh.exhausted()
    }
}
