//! What compile-time facts and a predicted time add to the model, learned while it goes.
//!
//! For every result there is what the model had expected before it came, so the difference is an
//! honest error of the model. A ridge regression of these errors on the facts says how far to trust
//! which fact: spills that cost nothing here get no weight, a prediction that orders the candidates
//! well gets much.

use crate::CompileStats;

/// How many numbers stand for the facts, each near 1 where it matters.
const FEATURES: usize = 4;
/// Errors before the facts have a say.
const FEW: usize = 12;
/// Results remembered: kernels of one space behave alike, and the model changes.
const MOST: usize = 256;
/// Weight of the belief that facts do not matter, in results.
const RIDGE: f64 = 4.0;

type Features = [f64; FEATURES];

/// `expected` and, below, all errors are in the model's own scale; `centre` is its zero as a
/// logarithm of microseconds.
fn features(facts: &CompileStats, expected: f64, centre: f64) -> Features {
    let log = |value: f64| value.max(0.0).ln_1p();
    [
        f64::from(facts.registers) / 64.0,
        log(facts.spill_bytes as f64) / 4.0,
        log(facts.shared_bytes as f64) / 8.0,
        // What the prediction says beyond the model; a constant factor between them is in the mean.
        facts
            .predicted
            .map_or(0.0, |predicted| predicted.get().ln() - centre - expected),
    ]
}

/// Errors of the model with the facts of their candidates.
#[derive(Debug, Default)]
pub(super) struct Correction {
    seen: Vec<(Features, f64)>,
    weights: Option<([f64; FEATURES], Features, f64)>,
}

impl Correction {
    /// Takes the target that a candidate came to, of which the model had expected another.
    pub(super) fn learn(&mut self, facts: &CompileStats, expected: f64, centre: f64, target: f64) {
        if self.seen.len() == MOST {
            self.seen.remove(0);
        }
        let seen = features(facts, expected, centre);
        self.seen.push((seen, target - expected));
        self.weights = (self.seen.len() >= FEW).then(|| fit(&self.seen));
    }

    /// What to add to the expected target.
    pub(super) fn shift(&self, facts: &CompileStats, expected: f64, centre: f64) -> f64 {
        let Some((weights, means, reach)) = &self.weights else {
            return 0.0;
        };
        let here = features(facts, expected, centre);
        let sum: f64 = (0..FEATURES)
            .map(|at| weights[at] * (here[at] - means[at]))
            .sum();
        // Beyond the errors ever made the regression knows nothing.
        sum.clamp(-reach, *reach)
    }
}

/// Weights of the features, their means, and the largest error.
fn fit(seen: &[(Features, f64)]) -> ([f64; FEATURES], Features, f64) {
    let count = seen.len() as f64;
    let mut centre = [0.0; FEATURES];
    let mut mean = 0.0;
    for (features, error) in seen {
        for (sum, feature) in centre.iter_mut().zip(features) {
            *sum += feature / count;
        }
        mean += error / count;
    }
    let mut matrix = [[0.0; FEATURES + 1]; FEATURES];
    for (features, error) in seen {
        for a in 0..FEATURES {
            let value = features[a] - centre[a];
            for b in 0..FEATURES {
                matrix[a][b] += value * (features[b] - centre[b]);
            }
            matrix[a][FEATURES] += value * (error - mean);
        }
    }
    for (at, row) in matrix.iter_mut().enumerate() {
        row[at] += RIDGE;
    }
    let reach = seen
        .iter()
        .map(|(_, error)| error.abs())
        .fold(0.0, f64::max);
    (solve(matrix), centre, reach)
}

/// Gauss elimination of a positive definite system.
fn solve(mut matrix: [[f64; FEATURES + 1]; FEATURES]) -> [f64; FEATURES] {
    for at in 0..FEATURES {
        let pivot = matrix[at];
        for row in matrix.iter_mut().skip(at + 1) {
            let factor = row[at] / pivot[at];
            for (value, above) in row.iter_mut().zip(pivot) {
                *value -= factor * above;
            }
        }
    }
    let mut weights = [0.0; FEATURES];
    for at in (0..FEATURES).rev() {
        let known: f64 = (at + 1..FEATURES)
            .map(|other| matrix[at][other] * weights[other])
            .sum();
        weights[at] = (matrix[at][FEATURES] - known) / matrix[at][at];
    }
    weights
}

#[cfg(test)]
mod tests;
