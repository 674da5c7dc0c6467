//! The first trials: a few configurations of which one is good, whichever source is right.

use super::Knowledge;
use crate::encode::Encoder;
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution as _, StandardNormal};
use surrogate::{Place, Process, Shape, dot};
use tuner_space::Config;

/// Most candidates among which the first trials are chosen.
const CANDIDATES: usize = 300;
/// The best of each source that are candidates.
const EACH: usize = 60;
/// Imagined truths.
const TRUTHS: usize = 256;

/// Chooses `count` configurations, one after the other: the one that most raises the mean, over
/// imagined truths, of the best chosen one's score. A truth is one of the sources, or the mean of
/// all, and a draw of what no source knows, of a standard deviation that is `doubt` times the
/// source's.
pub(crate) fn portfolio(
    knowledge: &Knowledge,
    encoder: &Encoder,
    shape: &Shape,
    (count, doubt): (usize, f64),
    rng: &mut ChaCha8Rng,
) -> Vec<Config> {
    let sources = knowledge.sources();
    let candidates = knowledge.best(EACH.min(CANDIDATES / sources.len().max(1)));
    let imagined = Imagined::new(knowledge, encoder, shape, &candidates);
    let scores: Vec<Vec<f64>> = (0..TRUTHS).map(|_| imagined.scores(doubt, rng)).collect();
    let mut reached = [0.0_f64; TRUTHS];
    let mut chosen = Vec::new();
    while chosen.len() < count {
        let gain = |at: usize| -> f64 {
            let pairs = scores.iter().zip(&reached);
            pairs
                .map(|(score, reached)| (score[at] - reached).max(0.0))
                .sum()
        };
        let gains = (0..imagined.rows.len()).map(|at| (at, gain(at)));
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

/// What truths are drawn from.
struct Imagined {
    /// What each source expects of each candidate and, last, what they expect together.
    expected: Vec<Vec<f64>>,
    spreads: Vec<f64>,
    /// The Cholesky factor of the covariance of what no source knows.
    rows: Vec<Vec<f64>>,
}

impl Imagined {
    fn new(knowledge: &Knowledge, encoder: &Encoder, shape: &Shape, candidates: &[Config]) -> Self {
        let sources = knowledge.sources();
        let mut expected = vec![Vec::with_capacity(candidates.len()); sources.len() + 1];
        let mut process = Process::new(shape.clone());
        let mut rows = Vec::with_capacity(candidates.len());
        for config in candidates {
            let at = encoder.encode(config);
            let mut together = 0.0;
            for (source, expected) in sources.iter().zip(&mut expected) {
                let here = source.expected(config, &at);
                together += here / sources.len() as f64;
                expected.push(here);
            }
            expected[sources.len()].push(together);
            let point = process.point(&Place::of(at));
            let mut row = point.whitened.clone();
            row.push(point.variance.max(0.0).sqrt());
            rows.push(row);
            process.push(point);
        }
        let mut spreads: Vec<f64> = sources.iter().map(|source| source.spread).collect();
        spreads.push(spreads.iter().sum::<f64>() / sources.len().max(1) as f64);
        Self {
            expected,
            spreads,
            rows,
        }
    }

    /// The score of each candidate in one truth: the time of the best, divided by its own.
    fn scores(&self, doubt: f64, rng: &mut ChaCha8Rng) -> Vec<f64> {
        let believed = rng.random_range(0..self.expected.len());
        let spread = doubt * self.spreads[believed];
        let normal: Vec<f64> = self
            .rows
            .iter()
            .map(|_| StandardNormal.sample(rng))
            .collect();
        let logs: Vec<f64> = self.expected[believed]
            .iter()
            .zip(&self.rows)
            .map(|(expected, row)| expected + spread * dot(row, &normal[..row.len()]))
            .collect();
        let best = logs.iter().copied().fold(f64::INFINITY, f64::min);
        logs.iter().map(|log| (best - log).exp()).collect()
    }
}
