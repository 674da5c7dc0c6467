//! Fit of length scales and noise by the likelihood of the results and a prior.

use super::linear::{Symmetric, dot, squared_distance};
use super::process::{Shape, matern};

/// Mean of the prior of the log noise share.
const LOG_NOISE: f64 = -6.0;
/// Standard deviation of the prior of the log noise share.
const LOG_NOISE_SPREAD: f64 = 1.5;
/// Standard deviation of the prior of a log length scale.
const LOG_LENGTH_SPREAD: f64 = 1.0;
/// Smallest number of results for a fit.
const MIN_RESULTS: usize = 4;

/// Log length scale per dimension, and log noise.
#[derive(Debug, Clone)]
pub struct Scales {
    /// Dimension of every coordinate, ascending; further coordinates of a point are ignored.
    dimension_of: Vec<usize>,
    log_lengths: Vec<f64>,
    log_noise: f64,
    typical: f64,
    /// First of the dimensions with longer prior scales, and the increase of their log length
    /// scale.
    longer: (usize, f64),
}

impl Scales {
    /// Creates prior scales for coordinates of these dimensions, numbered from 0 and ascending. Further
    /// coordinates of a point are ignored. Distances grow with the root of the number of dimensions, and
    /// typical length scales with them (Hvarfner, Hellsten and Nardi 2024).
    #[must_use]
    pub fn prior(dimension_of: &[usize], log_length: f64) -> Self {
        let dimensions = dimension_of.last().map_or(0, |last| last + 1);
        let typical = 0.5 * (dimensions.max(1) as f64).ln() + log_length;
        Self {
            dimension_of: dimension_of.to_vec(),
            log_lengths: vec![typical; dimensions],
            log_noise: LOG_NOISE,
            typical,
            longer: (dimensions, 0.0),
        }
    }

    /// Adds `by` to the log length scales of the dimensions from `from` on, which are less relevant
    /// a priori.
    #[must_use]
    pub fn longer(mut self, from: usize, by: f64) -> Self {
        self.longer = (from, by);
        for log_length in self.log_lengths.iter_mut().skip(from) {
            *log_length += by;
        }
        self
    }

    /// Sets the prior increase of these log length scales for the next fit.
    pub fn set_prior_increase(&mut self, by: f64) {
        self.longer.1 = by;
    }

    /// Returns the prior mean of a dimension's log length scale.
    fn typical(&self, dimension: usize) -> f64 {
        let (from, by) = self.longer;
        self.typical + if dimension >= from { by } else { 0.0 }
    }

    /// Returns the covariance of these scales.
    #[must_use]
    pub fn shape(&self) -> Shape {
        Shape {
            inverse: self
                .dimension_of
                .iter()
                .map(|dimension| (-self.log_lengths[*dimension]).exp())
                .collect(),
            noise: self.log_noise.exp(),
        }
    }

    /// Climbs towards the most likely scales by the signs of the slopes (Riedmiller and Braun 1993). A few
    /// steps per fit suffice, since the next fit continues from the result. `noise_variances`: known noise
    /// of each value in addition to the fitted one, in units of the signal variance.
    pub fn climb(
        &mut self,
        points: &[&[f64]],
        values: &[f64],
        noise_variances: &[f64],
        steps: usize,
    ) {
        if points.len() < MIN_RESULTS {
            return;
        }
        let pairs = Pairs::new(points, &self.dimension_of, self.log_lengths.len());
        let mut strides = vec![0.3_f64; self.log_lengths.len() + 1];
        let mut last = vec![0.0_f64; strides.len()];
        for _ in 0..steps {
            let Some(mut slopes) = self.slopes(&pairs, values, noise_variances) else {
                return;
            };
            for ((slope, last), stride) in slopes.iter_mut().zip(&mut last).zip(&mut strides) {
                if *slope * *last > 0.0 {
                    *stride = (*stride * 1.2).min(0.8);
                } else if *slope * *last < 0.0 {
                    *stride *= 0.5;
                    // The last step went too far: this dimension is skipped now and keeps its stride for
                    // the next step.
                    *slope = 0.0;
                }
                *last = *slope;
            }
            let step = |at: usize| strides[at] * last[at].signum() * f64::from(last[at] != 0.0);
            for (at, log_length) in self.log_lengths.iter_mut().enumerate() {
                *log_length = (*log_length + step(at)).clamp(-3.0, 5.0);
            }
            let noise = self.log_noise + step(self.log_lengths.len());
            self.log_noise = noise.clamp(-10.0, 0.0);
        }
    }

    /// Computes the slopes of the log posterior in the log length scales and, last, the log noise,
    /// with the signal variance at its best value.
    fn slopes(&self, pairs: &Pairs, values: &[f64], noise_variances: &[f64]) -> Option<Vec<f64>> {
        let n = values.len();
        let noise = self.log_noise.exp();
        let weights: Vec<f64> = self
            .log_lengths
            .iter()
            .map(|log| (-2.0 * log).exp())
            .collect();
        let (triangle, mut pulls): (Vec<f64>, Vec<f64>) =
            pairs.distances(&weights).into_iter().map(matern).unzip();
        let covariance = Symmetric {
            n,
            triangle,
            diagonal: noise_variances
                .iter()
                .map(|known| 1.0 + noise + known)
                .collect(),
        };
        let inverse = covariance.inverse()?;
        let weighted: Vec<f64> = inverse
            .chunks_exact(n)
            .map(|row| dot(row, values))
            .collect();
        // Equal values would leave no variance to divide by.
        let signal = (dot(&weighted, values) / n as f64).max(1e-12);
        let mut trace = 0.0;
        for at in 0..n {
            let start = Symmetric::start(at);
            let pull =
                |other: usize| weighted[at] * weighted[other] / signal - inverse[at * n + other];
            for (other, slope) in pulls[start..start + at].iter_mut().enumerate() {
                *slope *= pull(other);
            }
            trace += pull(at);
        }
        let prior = |value: f64, typical: f64, spread: f64| (value - typical) / (spread * spread);
        let mut slopes: Vec<f64> = pairs
            .squares
            .iter()
            .zip(&weights)
            .zip(self.log_lengths.iter().enumerate())
            .map(|((squares, weight), (dimension, log))| {
                let typical = self.typical(dimension);
                weight * dot(&pulls, squares) - prior(*log, typical, LOG_LENGTH_SPREAD)
            })
            .collect();
        slopes.push(0.5 * noise * trace - prior(self.log_noise, LOG_NOISE, LOG_NOISE_SPREAD));
        Some(slopes)
    }
}

/// Squared distances between all pairs of points, by dimension; triangles row by row.
struct Pairs {
    count: usize,
    squares: Vec<Vec<f64>>,
}

impl Pairs {
    fn new(points: &[&[f64]], dimension_of: &[usize], dimensions: usize) -> Self {
        let count = points.len() * points.len().saturating_sub(1) / 2;
        let squares = (0..dimensions)
            .map(|dimension| {
                let from = dimension_of.partition_point(|other| *other < dimension);
                let to = dimension_of.partition_point(|other| *other <= dimension);
                let mut squares = Vec::with_capacity(count);
                for (at, a) in points.iter().enumerate() {
                    let before = points[..at].iter();
                    squares.extend(before.map(|b| squared_distance(&a[from..to], &b[from..to])));
                }
                squares
            })
            .collect();
        Self { count, squares }
    }

    /// Computes the weighted sums of the distances over all dimensions.
    fn distances(&self, weights: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; self.count];
        for (squares, weight) in self.squares.iter().zip(weights) {
            for (sum, square) in sums.iter_mut().zip(squares) {
                *sum += weight * square;
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests;
