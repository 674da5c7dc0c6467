//! Making the model anew: scales, and whether what is known from elsewhere is believed.

use super::Guided;
use super::archive::{Scale, keep_fastest_and_sample};
use crate::Strategy;
use rand::RngExt as _;
use surrogate::{Place, Process, dot};

/// What the sources add to the expectation with these weights.
pub(super) fn weighed(weights: &[f64], lies: &Place) -> f64 {
    if weights.len() == lies.features.len() {
        dot(weights, &lies.features)
    } else {
        0.0
    }
}

impl Guided {
    /// Places of the results that scales are fitted to: all, or the fastest and a sample.
    fn sample(&mut self) -> Vec<usize> {
        let known = self.held.iter();
        let known = known.filter_map(|place| Some((*place, self.archive.log(*place)?)));
        let mut known: Vec<(usize, f64)> = known.collect();
        let half = self.settings.fit_limit / 2;
        if known.len() > 2 * half {
            known.sort_by(|a, b| a.1.total_cmp(&b.1));
            keep_fastest_and_sample(&mut known, half, half, &mut self.rng);
        }
        known.into_iter().map(|(place, _)| place).collect()
    }

    /// Fits scales to these results, with or without what is known from elsewhere: the logarithm of
    /// the results' likelihood, and the weights of the sources.
    fn fit(&mut self, trusting: bool, sample: &[usize], steps: usize) -> (f64, Vec<f64>) {
        self.archive.trusting = trusting;
        let knowing = self.knowing();
        let scale = self.archive.scale(&self.held, &self.settings);
        let targets = scale.map_or_else(Vec::new, |scale| self.archive.targets(sample, &scale));
        let targets: Vec<f64> = targets.into_iter().flatten().collect();
        let mean = targets.iter().sum::<f64>() / targets.len().max(1) as f64;
        let lies = |place: &usize| &self.archive.entries[*place].lies;
        let weights: &[f64] = if trusting { &self.weights } else { &[] };
        let pairs = sample.iter().zip(&targets);
        let beyond = pairs.map(|(place, target)| target - mean - weighed(weights, lies(place)));
        let values: Vec<f64> = beyond.collect();
        let points: Vec<&[f64]> = sample
            .iter()
            .map(|place| lies(place).at.as_slice())
            .collect();
        let noise = sample.iter().map(|place| self.noise_variance(*place));
        let noise: Vec<f64> = noise.collect();
        let few = 1.0 - self.archive.told as f64 / self.settings.apart_after as f64;
        let scales = &mut self.scales[usize::from(trusting)];
        scales.believe_longer(self.settings.apart_doubt * few.max(0.0));
        scales.climb(&points, &values, &noise, steps);
        if !knowing {
            return (0.0, Vec::new());
        }
        let mut process = Process::new(scales.shape());
        for place in sample {
            let lies = &self.archive.entries[*place].lies;
            let mut place = Place::of(lies.at.clone());
            // Without knowledge, the level of the times is as open as with it.
            place.features = if trusting {
                lies.features.clone()
            } else {
                vec![1.0]
            };
            process.push(process.point(&place));
        }
        let targets: Vec<Option<f64>> = targets.into_iter().map(Some).collect();
        let whitened = process.whiten(&targets);
        let likelihood = process.log_likelihood(&whitened);
        (likelihood, process.weights(&whitened))
    }

    /// Whether knowledge had its chance: it brings no gain any more.
    pub(super) fn doubts(&self) -> bool {
        let [_, idle] = self.archive.idle;
        let settings = &self.settings;
        self.spread_left < settings.spread
            || self.archive.told >= settings.doubt_after && idle >= settings.patience
    }

    /// The rank correlation of the results with what the best source expected; 0 while nothing is
    /// known of that.
    fn best_worth(&self) -> f64 {
        Strategy::worth(self).into_iter().fold(0.0, f64::max)
    }

    /// Whether a source orders the results well, so that what it misses is near what it holds to be
    /// fastest.
    pub(super) fn orders_well(&self) -> bool {
        self.best_worth() >= self.settings.orders_well
    }

    /// Whether what is known from elsewhere is believed until the next fit: always until it is
    /// doubted; then by chance, with odds that fall with every result that it proposed in vain.
    fn believe(&mut self) -> bool {
        let sample = self.sample();
        let steps = self.settings.fit_steps;
        if !self.knowing() {
            self.fit(false, &sample, steps);
            return false;
        }
        let (doubts, trusting) = (self.doubts(), self.archive.trusting);
        // The model that was not in use follows in fewer steps.
        let steps = |of: bool| {
            if of == trusting {
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
        let [own, lent] = self.archive.idle.map(|idle| idle as f64);
        // What a source explains of the order is no fault of it.
        let impatience = settings.impatience * (1.0 - self.best_worth().powi(2));
        let vain = impatience * (lent - settings.second_chance * own);
        let odds = settings.trust + (with - without).clamp(-limit, limit) - vain;
        self.rng.random_bool(1.0 / (1.0 + (-odds).exp()))
    }

    /// Fits the length scales to the results, and makes a new model and a new pool.
    pub(super) fn refit(&mut self) {
        self.held = self
            .archive
            .select(self.settings.model_limit, &mut self.rng);
        let trusting = self.believe();
        self.archive.trusting = trusting;
        let worth = Strategy::worth(self);
        let says = |worth: &f64| worth.abs() >= self.settings.says_something;
        self.archive.uninformed = !worth.is_empty() && !worth.iter().any(says);
        if self.archive.alone() {
            let entries = &self.archive.entries;
            self.held.retain(|place| !entries[*place].lent);
        }
        let scale = self.archive.scale(&self.held, &self.settings);
        let shape = self.scales[usize::from(trusting)].shape();
        self.process = Process::new(shape);
        for place in &self.held {
            let point = self
                .process
                .point(&self.archive.seen(&self.archive.entries[*place].lies));
            self.process.push(point);
            self.process.widen_last(self.noise_variance(*place));
        }
        self.model += 1;
        if self.archive.noisy {
            self.rank_by_belief(scale);
        }
        self.fill_pool();
        self.look_ahead();
        let told = self.archive.told;
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
            .filter_map(|(place, target)| {
                Some((target? + self.archive.mean(*place) + scale.centre, *place))
            })
            .collect();
        self.archive.rank(believed, self.settings.elites);
    }
}
