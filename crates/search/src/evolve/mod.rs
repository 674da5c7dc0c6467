//! `evolve`: model-based evolutionary search.
//!
//! The opening proposes configurations typical of the space and others that are far apart. After it, every
//! proposal is the best of a pool of candidates: uniform draws, neighbours of the fastest, and their
//! children by mutation and crossover ([`super::variation`]).
//!
//! A Gaussian process over the parameters ([`surrogate`]) predicts the logarithm of the time with
//! its uncertainty, and on the same factorisation the probability of failure. The score of a
//! candidate is its expected improvement times its probability to work. Proposals under measurement
//! count as results with the predicted value. Compiled and waiting proposals reduce the score of
//! similar candidates, so proposals made together differ.
//!
//! The next proposal to measure is selected when the device is free, with all results and the
//! compiler's facts. Once the search stops gaining, a second search from other configurations
//! alternates with it ([`second`]).
//!
//! The cost of a proposal does not depend on the size of the space: the pool and the number of
//! results in the model are bounded.

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
use super::knowledge::{InputCache, Knowledge, portfolio};
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
use surrogate::{Input, Process, Scales};
use tuner_core::units::Seed;
use tuner_space::{Config, Space};
use waiting::{Suggestion, WaitingList};

/// Share of children with two parents.
const CROSSOVER_SHARE: f64 = 0.4;

/// The strategy `evolve`.
pub(super) struct Evolve {
    settings: Settings,
    inputs: InputCache,
    /// The fastest configurations of all sources, with their model inputs.
    known_best: Vec<(Config, Input)>,
    fresh: Fresh,
    variation: Variation,
    rng: ChaCha8Rng,
    encoder: Encoder,
    archive: Archive,
    pending: HashMap<u64, usize>,
    /// Length scales without and with prior knowledge. Those with it do not separate the values of
    /// ordered parameters: the source has done so, and its error is smooth.
    scales: [Scales; 2],
    process: Process,
    /// Archive indices of the process's points, in its order.
    model_entries: Vec<usize>,
    pool: Pool,
    waiting: WaitingList,
    /// Expectations of the model for the entries under measurement, by archive index.
    expected: HashMap<usize, Expected>,
    correction: Correction,
    /// Number of the present model; points belong to one model.
    model: u64,
    /// Variance of the targets at the last score.
    signal: f64,
    /// Corrections of the sources' weights in the present model, relative to equal shares.
    weights: Vec<f64>,
    /// Number of results at which the model is fitted again.
    next_fit: usize,
    /// First trials, selected from prior knowledge.
    first: VecDeque<Config>,
    /// Remaining distant configurations to try while prior knowledge is in doubt.
    spread_left: usize,
    outlook: Outlook,
    /// Independent search that alternates with this one once it stops gaining.
    second: Second,
}

/// Expectation of the model for a candidate at the time of its selection.
struct Expected {
    facts: CompileStats,
    target: f64,
    scale: Scale,
}

impl Evolve {
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
            first = portfolio(
                knowledge,
                &encoder,
                &shape,
                count,
                settings.first_doubt,
                &mut rng,
            );
            settings.opening = 0;
            known = knowledge.best(usize::MAX);
        }
        let with_input = |config: Config| {
            let input = knowledge.input(&encoder, &config, settings.doubt);
            (config, input)
        };
        Self {
            known_best: known.into_iter().map(with_input).collect(),
            inputs: InputCache::new(knowledge.clone(), settings.doubt),
            fresh: Fresh::new(space, start),
            variation: Variation::new(space),
            rng,
            archive: Archive::new(!knowledge.is_empty()),
            pending: HashMap::new(),
            process: Process::new(shape),
            scales,
            model_entries: Vec::new(),
            pool: Pool::default(),
            waiting: WaitingList::default(),
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

    /// Returns the model input of a configuration, with prior knowledge.
    fn input_for(&mut self, config: &Config) -> Input {
        if self.has_knowledge() {
            self.inputs.get(config, &self.encoder).clone()
        } else {
            Input::new(self.encoder.encode(config))
        }
    }

    /// Returns true if any prior knowledge exists.
    fn has_knowledge(&self) -> bool {
        !self.inputs.knowledge().is_empty()
    }

    /// Takes the candidate with the best score; `None` if the pool is empty.
    fn take_best(&mut self) -> Option<(Config, &'static str)> {
        self.refit_if_due();
        for _ in 0..self.settings.join_uniform {
            self.add_uniform();
        }
        for _ in 0..self.settings.join_bred {
            self.add_bred();
        }
        let acquisition = self.score_pool();
        while let Some(candidate) = self.pool.take_best() {
            if self.fresh.claim(&candidate.config) {
                let gain = acquisition.improvement(&candidate.point);
                self.outlook.note_improvement(gain);
                self.pool.trim(self.settings.pool_limit);
                return Some((candidate.config, candidate.origin));
            }
        }
        None
    }

    fn refit_if_due(&mut self) {
        if self.archive.result_count >= self.next_fit
            || self.model_entries.len() >= self.settings.model_limit
        {
            self.refit();
        }
    }

    /// Returns the index in `ready` of the proposal to measure next, and the acquisition function
    /// if it was used.
    fn pick(&mut self, ready: &[Ready]) -> (usize, Option<Acquisition>) {
        let index_of = |id: u64| ready.iter().position(|each| each.id == id);
        // Proposals of the start, the opening and the second search keep their turn.
        let mut unscored = self.waiting.list.iter().filter(|each| !each.scored);
        if let Some(index) = unscored.find_map(|proposal| index_of(proposal.id)) {
            return (index, None);
        }
        self.refit_if_due();
        let acquisition = self.acquisition();
        let scores = self.score_ready(&acquisition, ready).into_iter();
        let best = scores.reduce(|best, next| if next.1 > best.1 { next } else { best });
        (best.map_or(0, |(index, _)| index), Some(acquisition))
    }

    /// Returns the present scores of the ready proposals, oldest first, without those that the
    /// model did not select.
    fn score_ready(&self, acquisition: &Acquisition, ready: &[Ready]) -> Vec<(usize, f64)> {
        let mut scores = Vec::with_capacity(ready.len());
        for proposal in self.waiting.list.iter().filter(|proposal| proposal.scored) {
            let Some(index) = ready.iter().position(|each| each.id == proposal.id) else {
                continue;
            };
            let facts = ready[index].facts.as_ref().zip(acquisition.scale);
            let shift = facts.map_or(0.0, |(facts, scale)| {
                let expected = acquisition.mean(&proposal.point);
                self.correction.shift(facts, expected, scale.centre)
            });
            let variance = proposal.point.variance;
            let other = ready[index].facts.and_then(|facts| facts.other);
            scores.push((
                index,
                acquisition.score(&proposal.point, variance, shift, other),
            ));
        }
        scores
    }

    /// Moves a waiting proposal to the model as a pending point. `believed`: the compile-time
    /// facts, and an acquisition function for which the proposal's point is up to date.
    fn launch(&mut self, id: u64, believed: Option<(CompileStats, Acquisition)>) {
        let Some(proposal) = self.waiting.take(id) else {
            return;
        };
        let index = self.push_entry(proposal.config, proposal.from_prior);
        self.pending.insert(id, index);
        if let Some((facts, acquisition)) = believed
            && let Some(scale) = acquisition.scale
        {
            let expected = Expected {
                facts,
                target: acquisition.mean(&proposal.point),
                scale,
            };
            self.expected.insert(index, expected);
        }
    }

    /// Adds a proposed configuration to the archive and, if there is room, to the model.
    fn push_entry(&mut self, config: Config, from_prior: bool) -> usize {
        let input = self.input_for(&config);
        let index = self.archive.push(config, input, from_prior);
        let left_out = from_prior && self.archive.excludes_knowledge();
        if self.model_entries.len() < self.settings.model_limit && !left_out {
            let point = self
                .process
                .point(&self.archive.model_input(&self.archive.entries[index].input));
            self.process.push(point);
            self.model_entries.push(index);
        }
        index
    }

    /// Returns the variance of a result's error, in units of the signal variance.
    fn noise_variance(&self, index: usize) -> f64 {
        let noise_variance = self.archive.noise_variance(index);
        if noise_variance > 0.0 && self.signal > 0.0 {
            noise_variance / self.signal
        } else {
            0.0
        }
    }

    fn learn(&mut self, index: usize, observation: Observation) {
        self.report_to_second(index, observation);
        if let Some(expected) = self.expected.remove(&index)
            && let Observation::Time { time, .. } = observation
        {
            let target = expected.scale.target(time.get().ln());
            let centre = expected.scale.centre;
            self.correction
                .learn(&expected.facts, expected.target, centre, target);
        }
        let rank = self.archive.learn(index, observation, self.settings.elites);
        // Noise can be added only to the last point; others get theirs at the next refit.
        if self.model_entries.last() == Some(&index)
            && self.process.point_count() == self.model_entries.len()
        {
            self.process.widen_last(self.noise_variance(index));
        }
        // Each entry of the front is the best in its own trade-off, independent of its rank in time.
        let ahead = self.archive.front.contains(&index);
        if let Some(rank) = rank.filter(|rank| *rank <= 1 || ahead) {
            self.add_neighbours(rank);
        }
    }

    /// Selects the next configuration.
    fn propose(&mut self) -> Option<Suggestion> {
        if let Some(config) = self.fresh.take_start() {
            return Some(Suggestion::fixed(config, "start"));
        }
        while let Some(config) = self.first.pop_front() {
            if self.fresh.claim(&config) {
                let from_prior = true;
                return Some(Suggestion {
                    from_prior,
                    ..Suggestion::fixed(config, "known")
                });
            }
        }
        if self.proposed() < self.settings.opening {
            return Some(Suggestion::fixed(self.open()?, "explore"));
        }
        if self.has_knowledge()
            && self.spread_left > 0
            && self.doubts_knowledge()
            && !self.orders_well()
        {
            self.spread_left -= 1;
            return Some(Suggestion::fixed(self.draw_distant()?, "explore"));
        }
        if let Some(config) = self.propose_second() {
            return Some(Suggestion::fixed(config, "second"));
        }
        // Without any result the model prefers extreme configurations, which are slow on
        // many kernels.
        if !self.has_knowledge() && self.archive.result_count == 0 {
            let scored = true;
            return Some(Suggestion {
                scored,
                ..Suggestion::fixed(self.draw_typical()?, "explore")
            });
        }
        let uniform = self.rng.random_bool(self.settings.explore);
        let best = if uniform { None } else { self.take_best() };
        let (config, origin) = match best {
            Some(found) => found,
            None => (self.fresh.draw(&mut self.rng)?, "explore"),
        };
        Some(Suggestion {
            config,
            origin,
            scored: true,
            from_prior: self.archive.uses_knowledge,
        })
    }
}

impl Strategy for Evolve {
    fn ask(&mut self) -> Option<Proposal> {
        let suggestion = self.propose()?;
        let proposal = Proposal {
            id: self.fresh.take_id(),
            config: suggestion.config.clone(),
            origin: suggestion.origin,
        };
        let input = self.input_for(&suggestion.config);
        let point = self.process.point(&self.archive.model_input(&input));
        self.waiting
            .push(proposal.id, suggestion, input, point, self.model);
        Some(proposal)
    }

    fn choose(&mut self, ready: &[Ready]) -> usize {
        let (index, acquisition) = match ready.len() {
            0 | 1 => (0, None),
            _ => self.pick(ready),
        };
        let believed = ready[index]
            .facts
            .map(|facts| (facts, acquisition.unwrap_or_else(|| self.acquisition())));
        self.launch(ready[index].id, believed);
        index
    }

    fn chooses(&self) -> bool {
        true
    }

    fn withdraw(&mut self, ready: &[Ready]) -> Option<usize> {
        let acquisition = self.acquisition();
        let scores = self.score_ready(&acquisition, ready).into_iter();
        let (index, _) =
            scores.reduce(|worst, next| if next.1 < worst.1 { next } else { worst })?;
        let proposal = self.waiting.take(ready[index].id)?;
        self.fresh.release(&proposal.config);
        Some(index)
    }

    fn tell(&mut self, id: u64, observation: Observation) {
        // Has no effect if `choose` has launched it; calls of `choose` are optional.
        self.launch(id, None);
        if let Some(index) = self.pending.remove(&id) {
            self.learn(index, observation);
        }
    }

    fn observe(&mut self, config: &Config, observation: Observation) {
        if self.fresh.claim(config) {
            let index = self.push_entry(config.clone(), false);
            self.learn(index, observation);
        }
    }

    fn know(&mut self, knowledge: &Knowledge) {
        self.inputs = InputCache::new(knowledge.clone(), self.settings.doubt);
        self.archive.uses_knowledge = !knowledge.is_empty();
        // Inputs depend on the sources, and so do the weights and the model.
        self.weights.clear();
        self.known_best = knowledge
            .best(usize::MAX)
            .into_iter()
            .map(|config| {
                let input = self.input_for(&config);
                (config, input)
            })
            .collect();
        for index in 0..self.archive.entries.len() {
            let config = self.archive.entries[index].config.clone();
            let input = self.input_for(&config);
            self.archive.entries[index].input = input;
        }
        for index in 0..self.waiting.list.len() {
            let config = self.waiting.list[index].config.clone();
            let input = self.input_for(&config);
            self.waiting.list[index].input = input;
        }
        if !knowledge.is_empty() {
            // Prior knowledge replaces the rest of the opening.
            self.settings.opening = self.settings.opening.min(self.proposed());
        }
        self.refit();
    }

    fn source_correlations(&self) -> Vec<f64> {
        self.archive
            .source_correlations(self.inputs.knowledge().names().count())
    }

    fn remaining_gain(&self) -> Option<f64> {
        self.outlook.remaining_gain(self.archive.since_gain)
    }

    fn expected_improvement(&self) -> Option<f64> {
        self.outlook.improvement()
    }

    fn exhausted(&self) -> bool {
        self.fresh.exhausted()
    }
}
