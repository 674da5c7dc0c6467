//! Acquisition function: the score of a candidate, given the present results.

use super::archive::{Archive, Scale};
use super::improvement::{log_improvement, normal_cdf};
use super::volume::{Front, Prediction};
use super::{Evolve, Settings};
use surrogate::{Point, Process, dot};

/// Lower bound of a candidate's predicted probability to work.
const MIN_CHANCE: f64 = 0.02;
/// Lower bound of the signal variance, for flat spaces.
const MIN_SIGNAL: f64 = 1e-12;
/// Lower bound of a candidate's remaining variance, as a share of the signal variance.
const MIN_VARIANCE: f64 = 1e-9;

/// Largest number of front points in the score, spread along the front. Each one costs an
/// evaluation for every candidate.
const MAX_FRONT_POINTS: usize = 8;

/// Number of best candidates that are scored again with the waiting proposals included.
const RESCORED_CANDIDATES: usize = 40;

/// Model of a second objective, on the factorisation of the first.
#[derive(Debug)]
struct Second {
    /// Whitened targets of the second objective.
    targets: Vec<f64>,
    /// Zero of the targets, as a logarithm.
    centre: f64,
    /// Variance of the targets.
    signal: f64,
    front: Front,
}

impl Second {
    /// Creates the model; `None` if the time is the only objective.
    fn new(
        archive: &Archive,
        process: &Process,
        held: &[usize],
        scale: Option<Scale>,
        signal: f64,
    ) -> Option<Self> {
        let scale = scale?;
        let front = &archive.front;
        let known: Vec<f64> = held.iter().filter_map(|at| archive.other(*at)).collect();
        if front.is_empty() || known.is_empty() {
            return None;
        }
        let centre = known.iter().sum::<f64>() / known.len() as f64;
        let target = |at: &usize| archive.other(*at).map(|log| log - centre);
        let targets: Vec<Option<f64>> = held.iter().map(target).collect();
        let targets = process.whiten(&targets);
        let own = (dot(&targets, &targets) / known.len() as f64).max(MIN_SIGNAL);
        // The cost of a score grows with the front; evenly spaced points keep its shape.
        let step = front.len().div_ceil(MAX_FRONT_POINTS);
        let point = |at: &usize| Some([scale.target(archive.log(*at)?), target(at)?]);
        let points = front.iter().step_by(step).filter_map(point).collect();
        Some(Self {
            targets,
            centre,
            signal: own,
            front: Front::new(points, [signal.sqrt(), own.sqrt()]),
        })
    }

    /// Returns the log expected growth of the front. `known`: the candidate's second objective, if
    /// the compiler determined it.
    fn gain(&self, point: &Point, variance: f64, first: Prediction, known: Option<f64>) -> f64 {
        let least = (self.signal * MIN_VARIANCE).sqrt();
        let second = match known {
            Some(value) => Prediction {
                // The compiler has reported the objective, so only the time is uncertain.
                mean: value.max(f64::MIN_POSITIVE).ln() - self.centre,
                deviation: least,
            },
            None => Prediction {
                mean: dot(&self.targets, &point.whitened),
                deviation: (self.signal * variance).sqrt(),
            },
        };
        self.front.log_growth(first, second)
    }
}

/// Acquisition function for the results known when it was created.
#[derive(Debug)]
pub(super) struct Acquisition {
    /// Whitened targets of the times.
    times: Vec<f64>,
    /// Whitened targets of the failures: works (0) or fails (-1); `None` before the first failure.
    health: Option<Vec<f64>>,
    /// Expected target of the fastest candidate.
    best: f64,
    /// Variance of the targets.
    pub(super) signal: f64,
    /// Transformation of times into targets; `None` before the first time.
    pub(super) scale: Option<Scale>,
    /// Model of the second objective, if the run has one.
    second: Option<Second>,
    /// Standard deviations of the lower confidence bound, if candidates are ranked by it.
    bound: Option<f64>,
    /// Variance that is specific to a configuration, without correlation to others.
    luck: f64,
}

impl Acquisition {
    /// Creates the function for the archive's results; `held`: entry indices of the process's
    /// points.
    pub(super) fn new(
        archive: &Archive,
        process: &Process,
        held: &[usize],
        settings: &Settings,
    ) -> Self {
        let scale = archive.scale(held, settings);
        let targets = scale.map_or_else(
            || vec![None; held.len()],
            |scale| archive.targets(held, &scale),
        );
        let known = targets.iter().flatten().count().max(1);
        let times = process.whiten(&targets);
        // With noise, the smoothed best is used: a lucky measurement must not raise the threshold.
        let beyond = if archive.noisy {
            process.smooth(&targets, &times)
        } else {
            targets
        };
        let pairs = held.iter().zip(&beyond);
        let best = pairs.filter_map(|(index, beyond)| Some((*beyond)? + archive.mean(*index)));
        let best = best.reduce(f64::min);
        let health = (settings.failures && archive.any_failed).then(|| {
            let health: Vec<Option<f64>> =
                held.iter().map(|index| archive.health(*index)).collect();
            process.whiten(&health)
        });
        let signal = (dot(&times, &times) / known as f64).max(MIN_SIGNAL);
        Self {
            second: Second::new(archive, process, held, scale, signal),
            signal,
            times,
            health,
            best: best.unwrap_or(0.0),
            scale,
            luck: settings.luck * process.noise(),
            bound: (archive.result_count >= settings.bound_from).then_some(settings.deviations),
        }
    }

    /// Returns the expected target.
    pub(super) fn mean(&self, point: &Point) -> f64 {
        point.mean() + dot(&self.times, &point.whitened)
    }

    /// Returns the probability that a candidate is faster than the expected best by more than `gain`, a
    /// difference of log times.
    pub(super) fn chance_beyond(&self, point: &Point, gain: f64) -> f64 {
        let deviation = (self.signal * point.variance.max(MIN_VARIANCE)).sqrt();
        self.chance(point) * normal_cdf((self.best - self.mean(point) - gain) / deviation)
    }

    /// Returns the expected decrease of the logarithm of the best time by a candidate; `None` before
    /// the first time.
    pub(super) fn improvement(&self, point: &Point) -> Option<f64> {
        self.scale?;
        let deviation = (self.signal * point.variance.max(MIN_VARIANCE)).sqrt();
        let log = log_improvement((self.best - self.mean(point)) / deviation) + deviation.ln();
        Some(self.chance(point) * log.exp())
    }

    /// Returns the log score of a candidate. `variance`: its remaining share of the prior variance;
    /// `shift`: a correction of its expected target; `other`: its second objective, if known.
    pub(super) fn score(
        &self,
        point: &Point,
        variance: f64,
        shift: f64,
        other: Option<f64>,
    ) -> f64 {
        let mean = self.mean(point) + shift;
        let variance = variance + self.luck;
        let deviation = (self.signal * variance.max(MIN_VARIANCE)).sqrt();
        let gain = match (&self.second, self.bound) {
            (Some(second), _) => second.gain(
                point,
                variance.max(MIN_VARIANCE),
                Prediction { mean, deviation },
                other,
            ),
            // The bound may be above the best time.
            (None, Some(deviations)) => (self.best - mean + deviations * deviation).max(1e-9).ln(),
            (None, None) => log_improvement((self.best - mean) / deviation) + deviation.ln(),
        };
        gain + self.chance(point).ln()
    }

    /// Returns the predicted probability that a candidate works.
    fn chance(&self, point: &Point) -> f64 {
        self.health.as_ref().map_or(1.0, |health| {
            // Never zero: the model of failures may be wrong near the boundary of a region.
            (1.0 + dot(health, &point.whitened)).clamp(MIN_CHANCE, 1.0)
        })
    }
}

impl Evolve {
    /// Creates the acquisition function and updates the waiting proposals to the present model.
    pub(super) fn acquisition(&mut self) -> Acquisition {
        let acquisition = Acquisition::new(
            &self.archive,
            &self.process,
            &self.model_entries,
            &self.settings,
        );
        self.signal = acquisition.signal;
        self.waiting
            .catch_up(self.model, &self.archive, &self.process);
        acquisition
    }

    /// Scores the pool, and returns the acquisition function.
    pub(super) fn score_pool(&mut self) -> Acquisition {
        let acquisition = self.acquisition();
        self.pool.score(&self.process, |point| {
            acquisition.score(point, point.variance, 0.0, None)
        });
        if !self.waiting.list.is_empty() {
            let (waiting, process) = (&self.waiting, &self.process);
            self.pool.score_best(RESCORED_CANDIDATES, |point| {
                acquisition.score(point, waiting.variance_after(process, point), 0.0, None)
            });
        }
        acquisition
    }
}
