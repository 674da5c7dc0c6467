//! Gaussian process with incremental updates: points are added one at a time.

use super::linear::{dot, squared_distance};

/// Hyperparameters of the covariance.
#[derive(Debug, Clone)]
pub struct Shape {
    /// Inverse length scale of every coordinate.
    pub(super) inverse: Vec<f64>,
    /// Noise variance, in units of the signal variance.
    pub(super) noise: f64,
}

/// Computes Matérn 5/2 of a squared scaled distance, and minus twice its slope.
pub(super) fn matern(squared: f64) -> (f64, f64) {
    let r = (5.0 * squared).sqrt();
    let decay = (-r).exp();
    (
        (1.0 + r + r * r / 3.0) * decay,
        5.0 / 3.0 * (1.0 + r) * decay,
    )
}

/// Input of the process with its prior.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Input {
    /// Coordinates before scaling.
    pub coordinates: Vec<f64>,
    /// Features with learned weights, in prior standard deviations of a weight. The covariance of
    /// two inputs is the Matérn term plus the product of their features, so weights are integrated
    /// out (Rasmussen and Williams, section 2.7). All inputs have the same number of features;
    /// without features the Matérn term remains.
    pub features: Vec<f64>,
    /// Expected value with all weights zero.
    pub mean: f64,
}

impl Input {
    /// Creates an input without features and with prior mean zero.
    #[must_use]
    pub fn new(coordinates: Vec<f64>) -> Self {
        Self {
            coordinates,
            ..Self::default()
        }
    }
}

/// A query point. Its prediction for targets `y` is the product of `whitened` with
/// [`Process::whiten`]`(y)`, so models of several targets share the work for one point.
#[derive(Debug, Clone)]
pub struct Point {
    /// Scaled coordinates, features, and last the prior mean with all weights zero.
    at: Vec<f64>,
    /// Solution of `L v = k` for the covariance `k` with the points of the process.
    pub whitened: Vec<f64>,
    /// Remaining share of the prior variance, which is 1 plus the squares of the features.
    pub variance: f64,
}

impl Point {
    /// Returns the prior mean with all weights zero.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.at.last().copied().unwrap_or(0.0)
    }
}

/// Training points, and the Cholesky factor `L` of their covariance.
#[derive(Debug)]
pub struct Process {
    shape: Shape,
    /// Scaled coordinates, features and prior mean of each training point.
    at: Vec<Vec<f64>>,
    rows: Vec<Vec<f64>>,
    /// Noise variance of every training point, in units of the signal variance.
    noise: Vec<f64>,
}

impl Process {
    /// Creates a process without training points.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        Self {
            shape,
            at: Vec::new(),
            rows: Vec::new(),
            noise: Vec::new(),
        }
    }

    /// Creates a query point that is up to date.
    #[must_use]
    pub fn point(&self, input: &Input) -> Point {
        let scales = input.coordinates.iter().zip(&self.shape.inverse);
        let coordinates = scales.map(|(x, inverse)| x * inverse);
        let prior = input.features.iter().copied().chain([input.mean]);
        let mut point = Point {
            at: coordinates.chain(prior).collect(),
            // Capacity for later training points.
            whitened: Vec::with_capacity(self.rows.len() + 64),
            variance: 1.0 + dot(&input.features, &input.features),
        };
        self.catch_up(&mut point);
        point
    }

    /// Updates a query point to the training points added since its last update.
    pub fn catch_up(&self, point: &mut Point) {
        for next in point.whitened.len()..self.rows.len() {
            let row = &self.rows[next];
            let covariance = self.prior(&self.at[next], &point.at);
            let explained = (covariance - dot(&row[..next], &point.whitened)) / row[next];
            point.whitened.push(explained);
            point.variance -= explained * explained;
        }
    }

    /// Adds a training point.
    pub fn push(&mut self, mut point: Point) {
        self.catch_up(&mut point);
        let mut row = point.whitened;
        // Rounding may produce a negative variance at a known point.
        row.push((point.variance.max(0.0) + self.shape.noise).sqrt());
        self.rows.push(row);
        self.at.push(point.at);
        self.noise.push(self.shape.noise);
    }

    /// Adds the variance of its measurement to the last training point, in units of the signal
    /// variance.
    pub fn widen_last(&mut self, noise: f64) {
        // Later rows would depend on the changed diagonal.
        if let (Some(diagonal), Some(known)) = (
            self.rows.last_mut().and_then(|row| row.last_mut()),
            self.noise.last_mut(),
        ) {
            *diagonal = (*diagonal * *diagonal + noise).sqrt();
            *known += noise;
        }
    }

    /// Returns the noise variance common to all points, in units of the signal variance.
    #[must_use]
    pub fn noise(&self) -> f64 {
        self.shape.noise
    }

    /// Returns the number of training points.
    #[must_use]
    pub fn point_count(&self) -> usize {
        self.rows.len()
    }

    /// Returns the posterior covariance of two points that are up to date, as a share of the prior
    /// variance.
    #[must_use]
    pub fn covariance(&self, a: &Point, b: &Point) -> f64 {
        self.prior(&a.at, &b.at) - dot(&a.whitened, &b.whitened)
    }

    /// Computes the prior covariance.
    fn prior(&self, a: &[f64], b: &[f64]) -> f64 {
        let coordinates = self.shape.inverse.len();
        let (near, _) = matern(squared_distance(&a[..coordinates], &b[..coordinates]));
        near + dot(self.features(a), self.features(b))
    }

    fn features<'a>(&self, at: &'a [f64]) -> &'a [f64] {
        &at[self.shape.inverse.len()..at.len() - 1]
    }

    /// Solves `L z = y`. An unknown value is set to the prediction from those before it, so that it affects
    /// the variance but not the mean.
    #[must_use]
    pub fn whiten(&self, values: &[Option<f64>]) -> Vec<f64> {
        let mut whitened: Vec<f64> = Vec::with_capacity(values.len());
        for (row, value) in self.rows.iter().zip(values) {
            let index = whitened.len();
            whitened.push(value.map_or(0.0, |value| {
                (value - dot(&row[..index], &whitened)) / row[index]
            }));
        }
        whitened
    }

    /// Returns the targets with the noise removed, given the result of [`Process::whiten`] for them. `None`
    /// for unknown targets.
    #[must_use]
    pub fn smooth(&self, values: &[Option<f64>], whitened: &[f64]) -> Vec<Option<f64>> {
        values
            .iter()
            .zip(self.unwhiten(whitened))
            .zip(&self.noise)
            .map(|((value, weight), noise)| value.map(|value| value - noise * weight))
            .collect()
    }

    /// Returns the log likelihood of the targets up to a constant, with the signal variance at its
    /// best value, given the result of [`Process::whiten`]. All targets must be known.
    #[must_use]
    pub fn log_likelihood(&self, whitened: &[f64]) -> f64 {
        let count = whitened.len() as f64;
        let signal = (dot(whitened, whitened) / count.max(1.0)).max(f64::MIN_POSITIVE);
        let diagonals = self.rows.iter().filter_map(|row| row.last());
        -0.5 * count * signal.ln() - diagonals.map(|root| root.ln()).sum::<f64>()
    }

    /// Returns the expected weights of the features, given the result of [`Process::whiten`].
    #[must_use]
    pub fn weights(&self, whitened: &[f64]) -> Vec<f64> {
        let count = self.at.first().map_or(0, |at| self.features(at).len());
        let mut weights = vec![0.0; count];
        for (pull, at) in self.unwhiten(whitened).iter().zip(&self.at) {
            for (weight, feature) in weights.iter_mut().zip(self.features(at)) {
                *weight += pull * feature;
            }
        }
        weights
    }

    /// Solves `L' a = z` from the last row up: `a` is the inverse covariance times the targets.
    pub(super) fn unwhiten(&self, whitened: &[f64]) -> Vec<f64> {
        let mut solved = whitened.to_vec();
        for at in (0..solved.len()).rev() {
            let row = &self.rows[at];
            let value = solved[at] / row[at];
            solved[at] = value;
            for (earlier, factor) in solved[..at].iter_mut().zip(row) {
                *earlier -= factor * value;
            }
        }
        solved
    }
}

#[cfg(test)]
mod tests;
