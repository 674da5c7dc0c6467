//! What was proposed, and what became of it.

use super::Settings;
use crate::Observation;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;
use std::borrow::Cow;
use surrogate::Place;
use tuner_core::objective::front;
use tuner_space::Config;

/// Fewer results than this say nothing of a source.
const FEW: usize = 10;
/// Less than this, as a difference of log times, is no gain.
const LEAST_GAIN: f64 = 0.01;

/// One proposed configuration.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) config: Config,
    pub(super) lies: Place,
    pub(super) result: Option<Outcome>,
    /// Whether it was proposed because of what is known from elsewhere.
    pub(super) lent: bool,
    /// Logarithm of the second objective, where it is known.
    other: Option<f64>,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Outcome {
    /// Logarithm of the time in microseconds, and its standard error.
    Log(f64, f64),
    Failed,
}

/// Everything proposed, in order, with the fastest at hand.
#[derive(Debug, Default)]
pub(super) struct Archive {
    pub(super) entries: Vec<Entry>,
    /// Log time and place of the fastest, fastest first.
    elites: Vec<(f64, usize)>,
    /// The same of those found without what is known from elsewhere.
    own: Vec<(f64, usize)>,
    /// Results since the last gain, of those found without knowledge and of those with it.
    pub(super) idle: [usize; 2],
    /// Places of those that no other beats in both objectives, where a second one counts, in order of
    /// time; empty where only the time counts.
    pub(super) front: Vec<usize>,
    /// The front and then the fastest, where a second objective counts.
    mixed: Vec<(f64, usize)>,
    /// Results since the last gain.
    pub(super) since_gain: usize,
    /// Whether what was believed beforehand counts.
    pub(super) trusting: bool,
    /// Whether no source orders the results at all: what such proposed is as good as any draw.
    pub(super) uninformed: bool,
    /// Results in all.
    pub(super) told: usize,
    pub(super) any_failed: bool,
    /// Whether any time came with an error.
    pub(super) noisy: bool,
}

/// Times as the model takes them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    /// Zero of the targets, as a log time.
    pub(super) centre: f64,
    /// Log time beyond which differences shrink.
    median: f64,
    slack: f64,
}

impl Scale {
    /// The target of a log time.
    pub(super) fn target(&self, log: f64) -> f64 {
        self.bend(log) - self.centre
    }

    fn bend(&self, log: f64) -> f64 {
        if log > self.median {
            self.median + self.slack * (log - self.median)
        } else {
            log
        }
    }
}

impl Archive {
    /// An empty one.
    pub(super) fn new(trusting: bool) -> Self {
        Self {
            trusting,
            ..Self::default()
        }
    }

    /// Adds a configuration without a result; returns its place. `lent`: whether it was proposed
    /// because of what is known from elsewhere.
    pub(super) fn push(&mut self, config: Config, lies: Place, lent: bool) -> usize {
        self.entries.push(Entry {
            lies,
            config,
            result: None,
            lent,
            other: None,
        });
        self.entries.len() - 1
    }

    /// Takes a result; returns its rank if it is among the `keep` fastest.
    pub(super) fn learn(&mut self, place: usize, told: Observation, keep: usize) -> Option<usize> {
        if told == Observation::Unknown {
            // It stays a point without a result: not proposed again, and neither good nor bad.
            return None;
        }
        self.told += 1;
        let lent = self.entries[place].lent;
        let idle = &mut self.idle[usize::from(lent)];
        *idle += 1;
        self.since_gain += 1;
        let Observation::Time { time, error, other } = told else {
            self.any_failed = true;
            self.entries[place].result = Some(Outcome::Failed);
            return None;
        };
        let log = time.get().ln();
        let best = self.elites.first();
        if best.is_none_or(|(best, _)| log < best - LEAST_GAIN) {
            *idle = 0;
            self.since_gain = 0;
        }
        self.noisy |= error > 0.0;
        self.entries[place].result = Some(Outcome::Log(log, error));
        insert(&mut self.elites, (log, place), keep);
        if let Some(other) = other {
            self.entries[place].other = Some(other.max(f64::MIN_POSITIVE).ln());
            self.advance(place, keep);
        }
        if !lent {
            insert(&mut self.own, (log, place), keep);
        }
        let fastest = self.fastest().iter();
        fastest.map(|(_, at)| *at).position(|at| at == place)
    }

    /// Takes one with both objectives to the front, unless it is beaten there.
    fn advance(&mut self, place: usize, keep: usize) {
        let mut places = self.front.clone();
        places.push(place);
        let points: Vec<[f64; 2]> = places.iter().filter_map(|at| self.point(*at)).collect();
        let kept = front(&points).into_iter().map(|at| places[at]);
        self.front = kept.collect();
        if self.front.contains(&place) {
            self.since_gain = 0;
        }
        // A long front lends parents from all along it.
        let step = self.front.len().div_ceil(keep.max(1)).max(1);
        let ahead = self.front.iter().step_by(step);
        let mut mixed: Vec<(f64, usize)> =
            ahead.filter_map(|at| Some((self.log(*at)?, *at))).collect();
        let others = self
            .elites
            .iter()
            .filter(|(_, at)| !self.front.contains(at));
        mixed.extend(others.copied());
        mixed.truncate(keep);
        self.mixed = mixed;
    }

    /// Logarithms of both objectives.
    fn point(&self, place: usize) -> Option<[f64; 2]> {
        Some([self.log(place)?, self.entries[place].other?])
    }

    /// Logarithm of the second objective, where it is known.
    pub(super) fn other(&self, place: usize) -> Option<f64> {
        self.entries[place].other
    }

    /// Ranks the fastest anew by what is believed of them, one value a place.
    pub(super) fn rank(&mut self, mut believed: Vec<(f64, usize)>, keep: usize) {
        believed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let own = believed
            .iter()
            .filter(|(_, place)| !self.entries[*place].lent);
        let own = own.take(keep).copied().collect();
        // Alone, the model holds no others.
        if !self.alone() {
            believed.truncate(keep);
            self.elites = believed;
        }
        self.own = own;
    }

    /// Whether results that came of knowledge are left out: while it is not believed, and what was
    /// found without it is slower. A search that knows of a false optimum stays near it, as the
    /// fastest lend parents, neighbours and the time that is to be improved on. What sources proposed
    /// that say nothing is no optimum of theirs, and stays.
    pub(super) fn alone(&self) -> bool {
        let best = |of: &[(f64, usize)]| of.first().map_or(f64::INFINITY, |(log, _)| *log);
        !self.trusting && !self.uninformed && best(&self.elites) < best(&self.own)
    }

    /// The fastest that the present model knows of.
    fn fastest(&self) -> &[(f64, usize)] {
        if !self.front.is_empty() {
            &self.mixed
        } else if self.alone() {
            &self.own
        } else {
            &self.elites
        }
    }

    /// How many elites there are.
    pub(super) fn elites(&self) -> usize {
        self.fastest().len()
    }

    /// The elite of that rank.
    pub(super) fn elite(&self, rank: usize) -> &Config {
        &self.entries[self.fastest()[rank].1].config
    }

    /// The log time, unless failed or unknown.
    pub(super) fn log(&self, place: usize) -> Option<f64> {
        match self.entries[place].result {
            Some(Outcome::Log(log, _)) => Some(log),
            _ => None,
        }
    }

    /// What was believed of it beforehand.
    pub(super) fn mean(&self, place: usize) -> f64 {
        if self.trusting {
            self.entries[place].lies.mean
        } else {
            0.0
        }
    }

    /// A place as the model takes it: without what was believed beforehand, where that does not
    /// count.
    pub(super) fn seen<'a>(&self, lies: &'a Place) -> Cow<'a, Place> {
        if self.trusting || lies.features.is_empty() {
            Cow::Borrowed(lies)
        } else {
            Cow::Owned(Place::of(lies.at.clone()))
        }
    }

    /// Variance of the error of the log time; 0 where it is not known.
    pub(super) fn noise_variance(&self, place: usize) -> f64 {
        match self.entries[place].result {
            Some(Outcome::Log(_, error)) => error * error,
            _ => 0.0,
        }
    }

    /// Whether it worked: 0 if so, -1 if not, as the failure model wants it.
    pub(super) fn health(&self, place: usize) -> Option<f64> {
        self.entries[place].result.map(|result| match result {
            Outcome::Log(..) => 0.0,
            Outcome::Failed => -1.0,
        })
    }

    /// Places for the model to hold: all of them, or beyond the limit the fastest half and a sample
    /// of the others with room to grow, in order.
    pub(super) fn select(&self, limit: usize, rng: &mut ChaCha8Rng) -> Vec<usize> {
        let all = 0..self.entries.len();
        if all.len() < limit {
            return all.collect();
        }
        let mut places: Vec<usize> = all.collect();
        // What is still being measured must stay, or it would be measured twice in spirit.
        let cost = |place: usize| match self.entries[place].result {
            None => f64::NEG_INFINITY,
            Some(Outcome::Log(log, _)) => log,
            Some(Outcome::Failed) => f64::INFINITY,
        };
        places.sort_by(|a, b| cost(*a).total_cmp(&cost(*b)));
        keep_fastest_and_sample(&mut places, limit / 2, limit / 4, rng);
        places.sort_unstable();
        places
    }

    /// How the times of these places become targets; `None` while none is known.
    pub(super) fn scale(&self, places: &[usize], settings: &Settings) -> Option<Scale> {
        let mut known: Vec<f64> = places.iter().filter_map(|place| self.log(*place)).collect();
        if known.is_empty() {
            return None;
        }
        let half = known.len() / 2;
        let median = *known.select_nth_unstable_by(half, f64::total_cmp).1;
        let mut scale = Scale {
            centre: 0.0,
            median,
            slack: settings.slack,
        };
        let believed = places.iter().filter(|place| self.log(**place).is_some());
        let believed: f64 = believed.map(|place| self.mean(*place)).sum();
        let bent: f64 = known.iter().map(|log| scale.bend(*log)).sum();
        scale.centre = (bent - believed) / known.len() as f64;
        Some(scale)
    }

    /// The rank correlation of what each of so many sources expected and what was measured.
    pub(super) fn worth(&self, sources: usize) -> Vec<f64> {
        let timed = self.entries.iter().filter_map(|entry| match entry.result {
            Some(Outcome::Log(log, _)) => Some((log, &entry.lies.features)),
            _ => None,
        });
        let (logs, features): (Vec<f64>, Vec<&Vec<f64>>) = timed.unzip();
        if logs.len() < FEW {
            return Vec::new();
        }
        let measured = ranks(&logs);
        (0..sources)
            .map(|source| {
                let expected: Vec<f64> = features.iter().map(|each| each[source]).collect();
                correlation(&measured, &ranks(&expected))
            })
            .collect()
    }

    /// Targets of the model for these places, beyond what was believed beforehand; nothing for those
    /// failed or unknown.
    pub(super) fn targets(&self, places: &[usize], scale: &Scale) -> Vec<Option<f64>> {
        let target = |place: &usize| {
            let log = self.log(*place)?;
            Some(scale.target(log) - self.mean(*place))
        };
        places.iter().map(target).collect()
    }
}

/// Puts one in its place among the `keep` fastest.
fn insert(fastest: &mut Vec<(f64, usize)>, new: (f64, usize), keep: usize) {
    let rank = fastest.partition_point(|(other, _)| *other <= new.0);
    if rank < keep {
        fastest.insert(rank, new);
        fastest.truncate(keep);
    }
}

/// The rank of each value, the mean of their ranks for equal ones.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    for equal in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let below = values.iter().filter(|value| **value < values[equal[0]]);
        let rank = below.count() as f64 + (equal.len() - 1) as f64 / 2.0;
        equal.iter().for_each(|at| ranks[*at] = rank);
    }
    ranks
}

/// Pearson's correlation; 0 where one side does not vary.
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
    let (mean_a, mean_b) = (mean(a), mean(b));
    let sum = |f: &dyn Fn(f64, f64) -> f64| -> f64 {
        let pairs = a.iter().zip(b);
        pairs.map(|(a, b)| f(a - mean_a, b - mean_b)).sum()
    };
    let scale = (sum(&|a, _| a * a) * sum(&|_, b| b * b)).sqrt();
    if scale > 0.0 {
        sum(&|a, b| a * b) / scale
    } else {
        0.0
    }
}

/// Keeps the first `head` and a sample of `tail` of the others.
pub(super) fn keep_fastest_and_sample<T>(
    ranked: &mut Vec<T>,
    head: usize,
    tail: usize,
    rng: &mut ChaCha8Rng,
) {
    if ranked.len() > head + tail {
        ranked[head..].shuffle(rng);
        ranked.truncate(head + tail);
    }
}

#[cfg(test)]
mod tests;
