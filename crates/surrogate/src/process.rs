//! A Gaussian process that grows one point at a time.

use super::linear::{dot, squared_distance};

/// The covariance: its scales and its noise.
#[derive(Debug, Clone)]
pub struct Shape {
    /// Inverse length scale of every coordinate.
    pub(super) inverse: Vec<f64>,
    /// Variance of the noise, in units of the signal's.
    pub(super) noise: f64,
}

/// Matérn 5/2 of a squared scaled distance, and minus twice its slope there.
pub(super) fn matern(squared: f64) -> (f64, f64) {
    let r = (5.0 * squared).sqrt();
    let decay = (-r).exp();
    (
        (1.0 + r + r * r / 3.0) * decay,
        5.0 / 3.0 * (1.0 + r) * decay,
    )
}

/// Where something lies, and what is believed of it before any result.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Place {
    /// Its coordinates.
    pub at: Vec<f64>,
    /// Features whose weights are learned with the rest, in prior standard deviations of a weight:
    /// the covariance of two places has the product of their features beside the Matérn term, so
    /// weights are integrated out (Rasmussen and Williams, section 2.7). The same number at every
    /// place; none leaves the Matérn term alone.
    pub features: Vec<f64>,
    /// What is expected of it with all weights zero.
    pub mean: f64,
}

impl Place {
    /// A place of which nothing is believed beforehand.
    #[must_use]
    pub fn of(at: Vec<f64>) -> Self {
        Self {
            at,
            ..Self::default()
        }
    }
}

/// A point that the process may be asked about. Its prediction for targets `y` is the product of
/// `whitened` with [`Process::whiten`]`(y)`: many models share the work for one point.
#[derive(Debug, Clone)]
pub struct Point {
    /// Scaled coordinates, features, and last what is expected with all weights zero.
    at: Vec<f64>,
    /// Solves `L v = k` for the covariance `k` with the points held.
    pub whitened: Vec<f64>,
    /// What is left of the prior's variance: 1, and the square of the features.
    pub variance: f64,
}

impl Point {
    /// What is expected of it with all weights zero.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.at.last().copied().unwrap_or(0.0)
    }
}

/// The points held, and the Cholesky factor `L` of their covariance.
#[derive(Debug)]
pub struct Process {
    shape: Shape,
    /// As the points have it.
    at: Vec<Vec<f64>>,
    rows: Vec<Vec<f64>>,
    /// Variance of the noise of every point held, in units of the signal's.
    noise: Vec<f64>,
}

impl Process {
    /// A process that holds nothing yet.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        Self {
            shape,
            at: Vec::new(),
            rows: Vec::new(),
            noise: Vec::new(),
        }
    }

    /// A point to ask about.
    #[must_use]
    pub fn point(&self, place: &Place) -> Point {
        let scales = place.at.iter().zip(&self.shape.inverse);
        let coordinates = scales.map(|(x, inverse)| x * inverse);
        let believed = place.features.iter().copied().chain([place.mean]);
        let mut point = Point {
            at: coordinates.chain(believed).collect(),
            whitened: Vec::with_capacity(self.rows.len() + 64),
            variance: 1.0 + dot(&place.features, &place.features),
        };
        self.catch_up(&mut point);
        point
    }

    /// Lets a point know of what is held since it was made.
    pub fn catch_up(&self, point: &mut Point) {
        for next in point.whitened.len()..self.rows.len() {
            let row = &self.rows[next];
            let covariance = self.prior(&self.at[next], &point.at);
            let explained = (covariance - dot(&row[..next], &point.whitened)) / row[next];
            point.whitened.push(explained);
            point.variance -= explained * explained;
        }
    }

    /// Holds a point from now on.
    pub fn push(&mut self, mut point: Point) {
        self.catch_up(&mut point);
        let mut row = point.whitened;
        row.push((point.variance.max(0.0) + self.shape.noise).sqrt());
        self.rows.push(row);
        self.at.push(point.at);
        self.noise.push(self.shape.noise);
    }

    /// Adds noise to the point held last: the variance of its own measurement, in units of the
    /// signal's.
    pub fn widen_last(&mut self, noise: f64) {
        if let (Some(diagonal), Some(known)) = (
            self.rows.last_mut().and_then(|row| row.last_mut()),
            self.noise.last_mut(),
        ) {
            *diagonal = (*diagonal * *diagonal + noise).sqrt();
            *known += noise;
        }
    }

    /// Variance of the noise that every point has, in units of the signal's.
    #[must_use]
    pub fn noise(&self) -> f64 {
        self.shape.noise
    }

    /// How many points are held.
    #[must_use]
    pub fn held(&self) -> usize {
        self.rows.len()
    }

    /// Covariance that two points, both up to date, have left, as a share of the prior's variance.
    #[must_use]
    pub fn covariance(&self, a: &Point, b: &Point) -> f64 {
        self.prior(&a.at, &b.at) - dot(&a.whitened, &b.whitened)
    }

    /// Covariance before any result.
    fn prior(&self, a: &[f64], b: &[f64]) -> f64 {
        let coordinates = self.shape.inverse.len();
        let (near, _) = matern(squared_distance(&a[..coordinates], &b[..coordinates]));
        near + dot(self.features(a), self.features(b))
    }

    fn features<'a>(&self, at: &'a [f64]) -> &'a [f64] {
        &at[self.shape.inverse.len()..at.len() - 1]
    }

    /// Solves `L z = y`. A value that is not known is taken to be what those before it predict, so
    /// that it changes the variance and no mean.
    #[must_use]
    pub fn whiten(&self, values: &[Option<f64>]) -> Vec<f64> {
        let mut whitened: Vec<f64> = Vec::with_capacity(values.len());
        for (row, value) in self.rows.iter().zip(values) {
            let place = whitened.len();
            whitened.push(value.map_or(0.0, |value| {
                (value - dot(&row[..place], &whitened)) / row[place]
            }));
        }
        whitened
    }

    /// What the process believes of the points it holds, given targets and what
    /// [`Process::whiten`] made of them: the targets with the noise taken out. `None` where the
    /// target is not known.
    #[must_use]
    pub fn smooth(&self, values: &[Option<f64>], whitened: &[f64]) -> Vec<Option<f64>> {
        values
            .iter()
            .zip(self.unwhiten(whitened))
            .zip(&self.noise)
            .map(|((value, weight), noise)| value.map(|value| value - noise * weight))
            .collect()
    }

    /// The logarithm of the targets' likelihood, but for a constant and with the signal's variance at
    /// its best value, given what [`Process::whiten`] made of them; all of them are known.
    #[must_use]
    pub fn log_likelihood(&self, whitened: &[f64]) -> f64 {
        let count = whitened.len() as f64;
        let signal = (dot(whitened, whitened) / count.max(1.0)).max(f64::MIN_POSITIVE);
        let diagonals = self.rows.iter().filter_map(|row| row.last());
        -0.5 * count * signal.ln() - diagonals.map(|root| root.ln()).sum::<f64>()
    }

    /// The expected weights of the features, given what [`Process::whiten`] made of targets.
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
