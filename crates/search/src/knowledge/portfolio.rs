//! Choice of the first trials: a few configurations, one of which is good whichever source is accurate.

use super::Knowledge;
use crate::encode::Encoder;
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution as _, StandardNormal};
use surrogate::{Input, Process, Shape, dot};
use tuner_space::Config;

/// Largest number of candidates for the first trials.
const MAX_CANDIDATES: usize = 300;
/// Best configurations per source that are candidates.
const BEST_PER_SOURCE: usize = 60;
/// Number of sampled scenarios.
const SCENARIOS: usize = 256;

/// Selects configurations greedily. Each step adds the one that most raises the mean, over sampled
/// scenarios, of the best selected score. A scenario is one source, or the mean of all, plus a draw of
/// their common error. The standard deviation of that error is `error_share` of the source's spread.
pub(crate) fn portfolio(
    knowledge: &Knowledge,
    encoder: &Encoder,
    shape: &Shape,
    count: usize,
    error_share: f64,
    rng: &mut ChaCha8Rng,
) -> Vec<Config> {
    let sources = knowledge.sources();
    let candidates = knowledge.best(BEST_PER_SOURCE.min(MAX_CANDIDATES / sources.len().max(1)));
    let sampler = ScenarioSampler::new(knowledge, encoder, shape, &candidates);
    let scores: Vec<Vec<f64>> = (0..SCENARIOS)
        .map(|_| sampler.sample_scores(error_share, rng))
        .collect();
    let mut reached = [0.0_f64; SCENARIOS];
    let mut chosen = Vec::new();
    while chosen.len() < count {
        let gain = |at: usize| -> f64 {
            let pairs = scores.iter().zip(&reached);
            pairs
                .map(|(score, reached)| (score[at] - reached).max(0.0))
                .sum()
        };
        // Greedy choice: each configuration covers scenarios in which the earlier ones are slow.
        let gains = (0..sampler.rows.len()).map(|at| (at, gain(at)));
        let best = gains.reduce(|best, next| if next.1 > best.1 { next } else { best });
        let Some((best, _)) = best.filter(|(_, gain)| *gain > 0.0) else {
            break;
        };
        for (reached, score) in reached.iter_mut().zip(&scores) {
            *reached = reached.max(score[best]);
        }
        chosen.push(best);
    }
    chosen
        .into_iter()
        .map(|at| candidates[at].clone())
        .collect()
}

/// Distribution of the scenarios.
struct ScenarioSampler {
    /// Expectations of each source for each candidate; last, the mean of all sources.
    expected: Vec<Vec<f64>>,
    spreads: Vec<f64>,
    /// Cholesky factor of the covariance of the sources' common error.
    rows: Vec<Vec<f64>>,
}

impl ScenarioSampler {
    fn new(knowledge: &Knowledge, encoder: &Encoder, shape: &Shape, candidates: &[Config]) -> Self {
        let sources = knowledge.sources();
        let mut expected = vec![Vec::with_capacity(candidates.len()); sources.len() + 1];
        let mut process = Process::new(shape.clone());
        let mut rows = Vec::with_capacity(candidates.len());
        for config in candidates {
            let coordinates = encoder.encode(config);
            let mut mean = 0.0;
            for (source, expected) in sources.iter().zip(&mut expected) {
                let expectation = source.expected(config, &coordinates);
                mean += expectation / sources.len() as f64;
                expected.push(expectation);
            }
            expected[sources.len()].push(mean);
            let point = process.point(&Input::new(coordinates));
            let mut row = point.whitened.clone();
            row.push(point.variance.max(0.0).sqrt());
            rows.push(row);
            process.push(point);
        }
        let mut spreads: Vec<f64> = sources.iter().map(|source| source.spread).collect();
        // For the scenario of the mean of all sources.
        spreads.push(spreads.iter().sum::<f64>() / sources.len().max(1) as f64);
        Self {
            expected,
            spreads,
            rows,
        }
    }

    /// Samples a scenario and returns each candidate's score: the best time divided by its own.
    fn sample_scores(&self, error_share: f64, rng: &mut ChaCha8Rng) -> Vec<f64> {
        // One of the sources, or their mean: any may apply to this task.
        let scenario = rng.random_range(0..self.expected.len());
        let spread = error_share * self.spreads[scenario];
        let normal: Vec<f64> = self
            .rows
            .iter()
            .map(|_| StandardNormal.sample(rng))
            .collect();
        let logs: Vec<f64> = self.expected[scenario]
            .iter()
            .zip(&self.rows)
            .map(|(expected, row)| expected + spread * dot(row, &normal[..row.len()]))
            .collect();
        let best = logs.iter().copied().fold(f64::INFINITY, f64::min);
        logs.iter().map(|log| (best - log).exp()).collect()
    }
}
