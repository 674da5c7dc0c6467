//! What the model promises of candidates, as of one moment.

use super::Settings;
use super::archive::{Archive, Scale};
use super::improvement::{log_improvement, normal_cdf};
use super::volume::Front;
use surrogate::{Point, Process, dot};

/// The least chance to work that is believed of a candidate, whatever the model says.
const LEAST_CHANCE: f64 = 0.02;
/// A signal's variance is at least this, for spaces that are flat.
const LEAST_SIGNAL: f64 = 1e-12;
/// Variance that is left of a candidate at least, as a share of the signal's.
const LEAST_VARIANCE: f64 = 1e-9;

/// Points of the front that are weighed, spread along it: each costs every candidate an evaluation.
const MAX_FRONT: usize = 8;

/// The model of a second objective, on the same factorisation.
#[derive(Debug)]
struct Second {
    /// Whitened targets.
    targets: Vec<f64>,
    /// Zero of the targets, as a logarithm.
    centre: f64,
    /// Variance of the targets.
    signal: f64,
    front: Front,
}

impl Second {
    /// `None` where only the time counts.
    fn new(
        archive: &Archive,
        process: &Process,
        held: &[usize],
        (scale, signal): (Option<Scale>, f64),
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
        let own = (dot(&targets, &targets) / known.len() as f64).max(LEAST_SIGNAL);
        let step = front.len().div_ceil(MAX_FRONT);
        let point = |at: &usize| Some([scale.target(archive.log(*at)?), target(at)?]);
        let points = front.iter().step_by(step).filter_map(point).collect();
        Some(Self {
            targets,
            centre,
            signal: own,
            front: Front::new(points, [signal.sqrt(), own.sqrt()]),
        })
    }

    /// How much a candidate promises to the front. `known`: its second objective, where the compiler
    /// has said it.
    fn gain(&self, point: &Point, variance: f64, first: (f64, f64), known: Option<f64>) -> f64 {
        let least = (self.signal * LEAST_VARIANCE).sqrt();
        let second = match known {
            Some(value) => (value.max(f64::MIN_POSITIVE).ln() - self.centre, least),
            None => (
                dot(&self.targets, &point.whitened),
                (self.signal * variance).sqrt(),
            ),
        };
        self.front.log_growth(first, second)
    }
}

/// The model's answers, given the results known when it was made.
#[derive(Debug)]
pub(super) struct Acquisition {
    /// Whitened targets: times.
    times: Vec<f64>,
    /// Whitened targets: works (0) or fails (-1); `None` while nothing failed.
    health: Option<Vec<f64>>,
    /// What the fastest is believed to take, on the scale of the targets.
    best: f64,
    /// Variance of the targets.
    pub(super) signal: f64,
    /// What the targets are; `None` while no time is known.
    pub(super) scale: Option<Scale>,
    /// Where a second objective counts.
    second: Option<Second>,
    /// Standard deviations of the lower bound, where candidates are ranked by it.
    bound: Option<f64>,
    /// Variance of the luck of a configuration, which no other tells of.
    luck: f64,
}

impl Acquisition {
    /// Of the results in the archive; `held` are the places of the points that the process holds.
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
        // One lucky measurement is no reason to look for something faster still.
        let beyond = if archive.noisy {
            process.smooth(&targets, &times)
        } else {
            targets
        };
        let pairs = held.iter().zip(&beyond);
        let best = pairs.filter_map(|(place, beyond)| Some((*beyond)? + archive.mean(*place)));
        let best = best.reduce(f64::min);
        let health = (settings.failures && archive.any_failed).then(|| {
            let health: Vec<Option<f64>> =
                held.iter().map(|place| archive.health(*place)).collect();
            process.whiten(&health)
        });
        let signal = (dot(&times, &times) / known as f64).max(LEAST_SIGNAL);
        Self {
            second: Second::new(archive, process, held, (scale, signal)),
            signal,
            times,
            health,
            best: best.unwrap_or(0.0),
            scale,
            luck: settings.luck * process.noise(),
            bound: (archive.told >= settings.bound_from).then_some(settings.deviations),
        }
    }

    /// The expected target.
    pub(super) fn mean(&self, point: &Point) -> f64 {
        point.mean() + dot(&self.times, &point.whitened)
    }

    /// The chance that a candidate is faster than what is believed to be the fastest by more than
    /// this, as a difference of log times.
    pub(super) fn chance_beyond(&self, point: &Point, gain: f64) -> f64 {
        let deviation = (self.signal * point.variance.max(LEAST_VARIANCE)).sqrt();
        self.chance(point) * normal_cdf((self.best - self.mean(point) - gain) / deviation)
    }

    /// How much a candidate promises, as a logarithm. `variance`: what is left of the prior's;
    /// `shift`: what else is known of its target; `other`: its second objective, where it is known.
    pub(super) fn of(&self, point: &Point, variance: f64, shift: f64, other: Option<f64>) -> f64 {
        let mean = self.mean(point) + shift;
        let variance = variance + self.luck;
        let deviation = (self.signal * variance.max(LEAST_VARIANCE)).sqrt();
        let gain = match (&self.second, self.bound) {
            (Some(second), _) => second.gain(
                point,
                variance.max(LEAST_VARIANCE),
                (mean, deviation),
                other,
            ),
            (None, Some(deviations)) => (self.best - mean + deviations * deviation).max(1e-9).ln(),
            (None, None) => log_improvement((self.best - mean) / deviation) + deviation.ln(),
        };
        gain + self.chance(point).ln()
    }

    /// The chance that a candidate works.
    fn chance(&self, point: &Point) -> f64 {
        self.health.as_ref().map_or(1.0, |health| {
            (1.0 + dot(health, &point.whitened)).clamp(LEAST_CHANCE, 1.0)
        })
    }
}
