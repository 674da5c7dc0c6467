//! Refit of the model: length scales, and the decision to use prior knowledge.

use super::Evolve;
use super::archive::{Scale, keep_fastest_and_sample};
use crate::Strategy;
use rand::RngExt as _;
use surrogate::{Input, Process, dot};

/// Returns the sources' contribution to the expectation with these weights.
pub(super) fn weighted_features(weights: &[f64], input: &Input) -> f64 {
    if weights.len() == input.features.len() {
        dot(weights, &input.features)
    } else {
        0.0
    }
}

impl Evolve {
    /// Selects the results that scales are fitted to: all, or the fastest and a sample.
    fn sample(&mut self) -> Vec<usize> {
        let known = self.model_entries.iter();
        let known = known.filter_map(|index| Some((*index, self.archive.log(*index)?)));
        let mut known: Vec<(usize, f64)> = known.collect();
        let half = self.settings.fit_limit / 2;
        if known.len() > 2 * half {
            known.sort_by(|a, b| a.1.total_cmp(&b.1));
            keep_fastest_and_sample(&mut known, half, half, &mut self.rng);
        }
        known.into_iter().map(|(index, _)| index).collect()
    }

    /// Fits scales to these results with or without prior knowledge. Returns the log likelihood of
    /// the results and the weights of the sources.
    fn fit(&mut self, uses_knowledge: bool, sample: &[usize], steps: usize) -> (f64, Vec<f64>) {
        self.archive.uses_knowledge = uses_knowledge;
        let has_knowledge = self.has_knowledge();
        let scale = self.archive.scale(&self.model_entries, &self.settings);
        let targets = scale.map_or_else(Vec::new, |scale| self.archive.targets(sample, &scale));
        let targets: Vec<f64> = targets.into_iter().flatten().collect();
        let mean = targets.iter().sum::<f64>() / targets.len().max(1) as f64;
        let input = |index: &usize| &self.archive.entries[*index].input;
        let weights: &[f64] = if uses_knowledge { &self.weights } else { &[] };
        let pairs = sample.iter().zip(&targets);
        // The scales describe the residual of the sources' weighted expectation.
        let residuals =
            pairs.map(|(index, target)| target - mean - weighted_features(weights, input(index)));
        let values: Vec<f64> = residuals.collect();
        let points: Vec<&[f64]> = sample
            .iter()
            .map(|index| input(index).coordinates.as_slice())
            .collect();
        let noise = sample.iter().map(|index| self.noise_variance(*index));
        let noise: Vec<f64> = noise.collect();
        // The prior on the scales fades out as results accumulate.
        let few = 1.0 - self.archive.result_count as f64 / self.settings.apart_after as f64;
        let scales = &mut self.scales[usize::from(uses_knowledge)];
        scales.set_prior_increase(self.settings.apart_doubt * few.max(0.0));
        scales.climb(&points, &values, &noise, steps);
        if !has_knowledge {
            return (0.0, Vec::new());
        }
        let mut process = Process::new(scales.shape());
        for index in sample {
            let input = &self.archive.entries[*index].input;
            let mut free = Input::new(input.coordinates.clone());
            // The level of the times stays a free weight, so that both likelihoods are comparable.
            free.features = if uses_knowledge {
                input.features.clone()
            } else {
                vec![1.0]
            };
            process.push(process.point(&free));
        }
        let targets: Vec<Option<f64>> = targets.into_iter().map(Some).collect();
        let whitened = process.whiten(&targets);
        let likelihood = process.log_likelihood(&whitened);
        (likelihood, process.weights(&whitened))
    }

    /// Returns true once prior knowledge no longer leads to gains.
    pub(super) fn doubts_knowledge(&self) -> bool {
        let [_, idle] = self.archive.idle;
        let settings = &self.settings;
        self.spread_left < settings.spread
            || self.archive.result_count >= settings.doubt_after && idle >= settings.patience
    }

    /// Returns the best rank correlation of a source with the results; 0 if unknown.
    fn best_correlation(&self) -> f64 {
        Strategy::source_correlations(self)
            .into_iter()
            .fold(0.0, f64::max)
    }

    /// Returns true if a source orders the results well, so that good configurations are likely
    /// near its best ones.
    pub(super) fn orders_well(&self) -> bool {
        self.best_correlation() >= self.settings.orders_well
    }

    /// Decides to use prior knowledge until the next fit. Without doubt it is always used. After
    /// that the decision is random, with odds that fall with every result from knowledge without a
    /// gain.
    fn decide_trust(&mut self) -> bool {
        let sample = self.sample();
        let steps = self.settings.fit_steps;
        if !self.has_knowledge() {
            self.fit(false, &sample, steps);
            return false;
        }
        let (doubts, uses_knowledge) = (self.doubts_knowledge(), self.archive.uses_knowledge);
        // The model that is not in use gets fewer steps.
        let steps = |of: bool| {
            if of == uses_knowledge {
                steps
            } else {
                steps.div_ceil(3)
            }
        };
        let (steps_without, steps_with) = (steps(false), steps(true));
        let without = doubts.then(|| self.fit(false, &sample, steps_without).0);
        let (with, weights) = self.fit(true, &sample, steps_with);
        self.weights = weights;
        let Some(without) = without else { return true };
        let settings = &self.settings;
        let limit = settings.most_odds;
        let [own, from_prior] = self.archive.idle.map(|idle| idle as f64);
        // A source that explains the order of the results did not cause the missing gain.
        let impatience = settings.impatience * (1.0 - self.best_correlation().powi(2));
        let penalty = impatience * (from_prior - settings.second_chance * own);
        let odds = settings.trust + (with - without).clamp(-limit, limit) - penalty;
        self.rng.random_bool(1.0 / (1.0 + (-odds).exp()))
    }

    /// Fits the length scales to the results, and creates a new model and a new pool.
    pub(super) fn refit(&mut self) {
        self.model_entries = self
            .archive
            .select(self.settings.model_limit, &mut self.rng);
        let uses_knowledge = self.decide_trust();
        self.archive.uses_knowledge = uses_knowledge;
        let correlations = Strategy::source_correlations(self);
        let informs = |value: &f64| value.abs() >= self.settings.says_something;
        self.archive.uninformed = !correlations.is_empty() && !correlations.iter().any(informs);
        if self.archive.excludes_knowledge() {
            let entries = &self.archive.entries;
            self.model_entries
                .retain(|index| !entries[*index].from_prior);
        }
        let scale = self.archive.scale(&self.model_entries, &self.settings);
        let shape = self.scales[usize::from(uses_knowledge)].shape();
        self.process = Process::new(shape);
        for index in &self.model_entries {
            let point = self.process.point(
                &self
                    .archive
                    .model_input(&self.archive.entries[*index].input),
            );
            self.process.push(point);
            self.process.widen_last(self.noise_variance(*index));
        }
        // Waiting proposals recompute their points against the new model.
        self.model += 1;
        if self.archive.noisy {
            self.rank_by_smoothed(scale);
        }
        self.fill_pool();
        self.estimate_gain();
        let count = self.archive.result_count;
        // Fits become rarer: each costs more as results accumulate.
        self.next_fit = ((count as f64 * self.settings.fit_growth) as usize).max(count + 3);
    }

    /// Ranks parents and neighbours by the model's smoothed times, so that lucky measurements do
    /// not attract the search.
    fn rank_by_smoothed(&mut self, scale: Option<Scale>) {
        let Some(scale) = scale else { return };
        let targets = self.archive.targets(&self.model_entries, &scale);
        let whitened = self.process.whiten(&targets);
        let smooth = self.process.smooth(&targets, &whitened);
        let believed = self.model_entries.iter().zip(smooth);
        let believed = believed
            .filter_map(|(index, target)| {
                Some((target? + self.archive.mean(*index) + scale.centre, *index))
            })
            .collect();
        self.archive.rank(believed, self.settings.elites);
    }
}
