//! Archive of proposed configurations and their results.

use super::Settings;
use crate::Observation;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;
use std::borrow::Cow;
use surrogate::Input;
use tuner_core::objective::front;
use tuner_space::Config;

/// Smallest number of timed results for a source's rank correlation.
const MIN_TIMED_RESULTS: usize = 10;
/// Smallest difference of log times that counts as a gain.
const MIN_GAIN: f64 = 0.01;

/// One proposed configuration.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) config: Config,
    pub(super) input: Input,
    pub(super) result: Option<Outcome>,
    /// True if prior knowledge led to the proposal.
    pub(super) from_prior: bool,
    /// Logarithm of the second objective, if known.
    other: Option<f64>,
}

/// Result of a proposed configuration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Outcome {
    /// Logarithm of the time in microseconds, and its standard error.
    Log(f64, f64),
    Failed,
}

/// All proposed configurations in order, with a ranking of the fastest.
#[derive(Debug, Default)]
pub(super) struct Archive {
    pub(super) entries: Vec<Entry>,
    /// Log time and entry index of the fastest, fastest first.
    elites: Vec<(f64, usize)>,
    /// The same ranking without the entries from prior knowledge.
    own: Vec<(f64, usize)>,
    /// Results since the last gain: without prior knowledge, with prior knowledge.
    pub(super) idle: [usize; 2],
    /// Entries on the Pareto front of both objectives, in order of time; empty with one objective.
    pub(super) front: Vec<usize>,
    /// The front followed by the fastest, if the run has a second objective.
    mixed: Vec<(f64, usize)>,
    /// Results since the last gain.
    pub(super) since_gain: usize,
    /// True if the model uses prior knowledge at present.
    pub(super) uses_knowledge: bool,
    /// True if no source correlates with the results: its proposals are as good as uniform draws.
    pub(super) uninformed: bool,
    /// Number of results.
    pub(super) result_count: usize,
    pub(super) any_failed: bool,
    /// True if any time has a standard error.
    pub(super) noisy: bool,
}

/// Transformation of times into the model's targets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    /// Zero of the targets, as a log time.
    pub(super) centre: f64,
    /// Log time above which differences are compressed.
    median: f64,
    slack: f64,
}

impl Scale {
    /// Returns the target of a log time.
    pub(super) fn target(&self, log: f64) -> f64 {
        self.bend(log) - self.centre
    }

    fn bend(&self, log: f64) -> f64 {
        if log > self.median {
            // The exact time of a slow kernel does not matter for the optimum; full residuals would
            // dominate the fit.
            self.median + self.slack * (log - self.median)
        } else {
            log
        }
    }
}

impl Archive {
    /// Creates an empty archive.
    pub(super) fn new(uses_knowledge: bool) -> Self {
        Self {
            uses_knowledge,
            ..Self::default()
        }
    }

    /// Adds a configuration without a result and returns its index. `from_prior`: true if prior
    /// knowledge led to it.
    pub(super) fn push(&mut self, config: Config, input: Input, from_prior: bool) -> usize {
        self.entries.push(Entry {
            input,
            config,
            result: None,
            from_prior,
            other: None,
        });
        self.entries.len() - 1
    }

    /// Records a result and returns its rank if it is among the `keep` fastest.
    pub(super) fn learn(
        &mut self,
        index: usize,
        observation: Observation,
        keep: usize,
    ) -> Option<usize> {
        if observation == Observation::Unknown {
            // It remains a point without a result: not proposed again, but neither fast nor failed.
            return None;
        }
        self.result_count += 1;
        let from_prior = self.entries[index].from_prior;
        // Separate counts: proposals with and without prior knowledge lose trust independently.
        let idle = &mut self.idle[usize::from(from_prior)];
        *idle += 1;
        self.since_gain += 1;
        let Observation::Time { time, error, other } = observation else {
            self.any_failed = true;
            self.entries[index].result = Some(Outcome::Failed);
            return None;
        };
        // Log times: kernels differ by factors, and the error of a time is relative.
        let log = time.get().ln();
        let best = self.elites.first();
        if best.is_none_or(|(best, _)| log < best - MIN_GAIN) {
            *idle = 0;
            self.since_gain = 0;
        }
        self.noisy |= error > 0.0;
        self.entries[index].result = Some(Outcome::Log(log, error));
        insert(&mut self.elites, log, index, keep);
        if let Some(other) = other {
            self.entries[index].other = Some(other.max(f64::MIN_POSITIVE).ln());
            self.advance(index, keep);
        }
        if !from_prior {
            // Stored as well in case the knowledge is excluded later.
            insert(&mut self.own, log, index, keep);
        }
        let fastest = self.fastest().iter();
        fastest.map(|(_, at)| *at).position(|at| at == index)
    }

    /// Adds an entry with both objectives to the front unless another one dominates it.
    fn advance(&mut self, index: usize, keep: usize) {
        let mut indices = self.front.clone();
        indices.push(index);
        let points: Vec<[f64; 2]> = indices.iter().filter_map(|at| self.point(*at)).collect();
        let kept = front(&points).into_iter().map(|at| indices[at]);
        self.front = kept.collect();
        if self.front.contains(&index) {
            self.since_gain = 0;
        }
        // A long front contributes parents from its whole length, not only from its fast end.
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

    /// Returns the logarithms of both objectives.
    fn point(&self, index: usize) -> Option<[f64; 2]> {
        Some([self.log(index)?, self.entries[index].other?])
    }

    /// Returns the logarithm of the second objective, if known.
    pub(super) fn other(&self, index: usize) -> Option<f64> {
        self.entries[index].other
    }

    /// Replaces the ranking by expected values, one per entry index.
    pub(super) fn rank(&mut self, mut believed: Vec<(f64, usize)>, keep: usize) {
        believed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let own = believed
            .iter()
            .filter(|(_, index)| !self.entries[*index].from_prior);
        let own = own.take(keep).copied().collect();
        // Without the results of prior knowledge, the model has no values for their entries.
        if !self.excludes_knowledge() {
            believed.truncate(keep);
            self.elites = believed;
        }
        self.own = own;
    }

    /// Returns true if results from prior knowledge are excluded: the model does not use the knowledge, and
    /// the best result without it is slower. A search that includes a false optimum stays near it, because
    /// the fastest entries provide parents, neighbours and the time to improve. Proposals of uncorrelated
    /// sources remain: they are not such an optimum.
    pub(super) fn excludes_knowledge(&self) -> bool {
        let best = |of: &[(f64, usize)]| of.first().map_or(f64::INFINITY, |(log, _)| *log);
        !self.uses_knowledge && !self.uninformed && best(&self.elites) < best(&self.own)
    }

    /// Returns the ranking for the present model.
    fn fastest(&self) -> &[(f64, usize)] {
        if !self.front.is_empty() {
            &self.mixed
        } else if self.excludes_knowledge() {
            &self.own
        } else {
            &self.elites
        }
    }

    /// Returns the number of elites.
    pub(super) fn elites(&self) -> usize {
        self.fastest().len()
    }

    /// Returns the elite of that rank.
    pub(super) fn elite(&self, rank: usize) -> &Config {
        &self.entries[self.fastest()[rank].1].config
    }

    /// Returns the log time; `None` for failed or unknown results.
    pub(super) fn log(&self, index: usize) -> Option<f64> {
        match self.entries[index].result {
            Some(Outcome::Log(log, _)) => Some(log),
            _ => None,
        }
    }

    /// Returns the prior mean of an entry, 0 if prior knowledge is not in use.
    pub(super) fn mean(&self, index: usize) -> f64 {
        if self.uses_knowledge {
            self.entries[index].input.mean
        } else {
            0.0
        }
    }

    /// Returns the input for the model, without prior knowledge if it is not in use.
    pub(super) fn model_input<'a>(&self, input: &'a Input) -> Cow<'a, Input> {
        if self.uses_knowledge || input.features.is_empty() {
            Cow::Borrowed(input)
        } else {
            Cow::Owned(Input::new(input.coordinates.clone()))
        }
    }

    /// Returns the variance of the error of the log time; 0 if unknown.
    pub(super) fn noise_variance(&self, index: usize) -> f64 {
        match self.entries[index].result {
            Some(Outcome::Log(_, error)) => error * error,
            _ => 0.0,
        }
    }

    /// Returns the target of the failure model: 0 for a working entry, -1 for a failed one.
    pub(super) fn health(&self, index: usize) -> Option<f64> {
        self.entries[index].result.map(|result| match result {
            Outcome::Log(..) => 0.0,
            Outcome::Failed => -1.0,
        })
    }

    /// Selects the entries for the model, in order. Beyond the limit these are the fastest half and
    /// a sample of the others, with room for new ones.
    pub(super) fn select(&self, limit: usize, rng: &mut ChaCha8Rng) -> Vec<usize> {
        let all = 0..self.entries.len();
        if all.len() < limit {
            return all.collect();
        }
        let mut indices: Vec<usize> = all.collect();
        // Pending entries must stay: without them the model would propose in their neighbourhood again.
        let cost = |index: usize| match self.entries[index].result {
            None => f64::NEG_INFINITY,
            Some(Outcome::Log(log, _)) => log,
            Some(Outcome::Failed) => f64::INFINITY,
        };
        // The fastest half determines proposals; a sample of the others keeps the model accurate in slow
        // regions.
        indices.sort_by(|a, b| cost(*a).total_cmp(&cost(*b)));
        keep_fastest_and_sample(&mut indices, limit / 2, limit / 4, rng);
        indices.sort_unstable();
        indices
    }

    /// Fits the transformation of these entries' times into targets; `None` without a time.
    pub(super) fn scale(&self, indices: &[usize], settings: &Settings) -> Option<Scale> {
        let mut known: Vec<f64> = indices
            .iter()
            .filter_map(|index| self.log(*index))
            .collect();
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
        let believed = indices.iter().filter(|index| self.log(**index).is_some());
        let believed: f64 = believed.map(|index| self.mean(*index)).sum();
        let bent: f64 = known.iter().map(|log| scale.bend(*log)).sum();
        // Relative to their prior means, the targets have a mean of zero.
        scale.centre = (bent - believed) / known.len() as f64;
        Some(scale)
    }

    /// Returns the rank correlation of each source's expectations with the measured times.
    pub(super) fn source_correlations(&self, sources: usize) -> Vec<f64> {
        let timed = self.entries.iter().filter_map(|entry| match entry.result {
            Some(Outcome::Log(log, _)) => Some((log, &entry.input.features)),
            _ => None,
        });
        let (logs, features): (Vec<f64>, Vec<&Vec<f64>>) = timed.unzip();
        // A correlation of few values is mostly chance.
        if logs.len() < MIN_TIMED_RESULTS {
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

    /// Returns the model's targets for these entries, relative to the prior mean; `None` for failed
    /// or unknown results.
    pub(super) fn targets(&self, indices: &[usize], scale: &Scale) -> Vec<Option<f64>> {
        let target = |index: &usize| {
            let log = self.log(*index)?;
            Some(scale.target(log) - self.mean(*index))
        };
        indices.iter().map(target).collect()
    }
}

/// Inserts an entry into the ranking of the `keep` fastest.
fn insert(fastest: &mut Vec<(f64, usize)>, log: f64, index: usize, keep: usize) {
    let rank = fastest.partition_point(|(other, _)| *other <= log);
    if rank < keep {
        fastest.insert(rank, (log, index));
        fastest.truncate(keep);
    }
}

/// Returns the rank of each value; equal values get their mean rank.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    for equal in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let below = values.iter().filter(|value| **value < values[equal[0]]);
        // Equal values share the mean rank (Spearman).
        let rank = below.count() as f64 + (equal.len() - 1) as f64 / 2.0;
        equal.iter().for_each(|at| ranks[*at] = rank);
    }
    ranks
}

/// Returns Pearson's correlation; 0 if one side does not vary.
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

/// Keeps the first `head` elements and a sample of `tail` others.
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
