//! Online correction of the model by compile-time facts and a predicted time.
//!
//! The model's expectation is stored before each result, so the difference to the result is an unbiased
//! error of the model. A ridge regression of these errors on the facts learns the weight of each fact: zero
//! for spills without a cost, large for a prediction that orders the candidates well.

use crate::CompileStats;

/// Number of features, each scaled to be near 1 for a relevant size.
const FEATURES: usize = 4;
/// Smallest number of errors for a regression.
const MIN_ERRORS: usize = 12;
/// Largest number of stored errors. Old ones are dropped because the model changes.
const MAX_ERRORS: usize = 256;
/// Ridge penalty on the weights, as a number of results.
const RIDGE: f64 = 4.0;

type Features = [f64; FEATURES];

/// Computes the features. `expected` and all errors below are on the model's scale; `centre` is its
/// zero as a logarithm of microseconds.
fn features(facts: &CompileStats, expected: f64, centre: f64) -> Features {
    let log = |value: f64| value.max(0.0).ln_1p();
    [
        f64::from(facts.registers) / 64.0,
        log(facts.spill_bytes as f64) / 4.0,
        log(facts.shared_bytes as f64) / 8.0,
        // The prediction relative to the model; subtracting the mean later removes a
        // constant factor.
        facts
            .predicted
            .map_or(0.0, |predicted| predicted.get().ln() - centre - expected),
    ]
}

/// Model errors with the facts of their candidates.
#[derive(Debug, Default)]
pub(super) struct Correction {
    seen: Vec<(Features, f64)>,
    weights: Option<([f64; FEATURES], Features, f64)>,
}

impl Correction {
    /// Adds the error of the model for a candidate: its target minus the expected one.
    pub(super) fn learn(&mut self, facts: &CompileStats, expected: f64, centre: f64, target: f64) {
        if self.seen.len() == MAX_ERRORS {
            // Old errors are of an outdated model.
            self.seen.remove(0);
        }
        let seen = features(facts, expected, centre);
        self.seen.push((seen, target - expected));
        self.weights = (self.seen.len() >= MIN_ERRORS).then(|| fit(&self.seen));
    }

    /// Returns the correction of the expected target.
    pub(super) fn shift(&self, facts: &CompileStats, expected: f64, centre: f64) -> f64 {
        let Some((weights, means, reach)) = &self.weights else {
            return 0.0;
        };
        let here = features(facts, expected, centre);
        let sum: f64 = (0..FEATURES)
            .map(|at| weights[at] * (here[at] - means[at]))
            .sum();
        // The regression does not extrapolate beyond the largest observed error.
        sum.clamp(-reach, *reach)
    }
}

/// Fits the regression to the errors.
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
        // The ridge also keeps the matrix regular if a feature is constant.
        row[at] += RIDGE;
    }
    let reach = seen
        .iter()
        .map(|(_, error)| error.abs())
        .fold(0.0, f64::max);
    (solve(matrix), centre, reach)
}

/// Solves a positive definite system by Gauss elimination.
fn solve(mut matrix: [[f64; FEATURES + 1]; FEATURES]) -> [f64; FEATURES] {
    for at in 0..FEATURES {
        // A positive definite matrix needs no pivoting.
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
