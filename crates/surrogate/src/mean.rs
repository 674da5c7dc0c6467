//! A model that is made once and then only asked for means.

use super::fit::Scales;
use super::linear::squared_distance;
use super::process::{Place, Process, matern};

/// Steps of the fit: it starts from the prior, and there is only one.
const STEPS: usize = 25;

/// The mean of a Gaussian process through given points. An answer costs one covariance a point.
#[derive(Debug, Clone)]
pub struct Mean {
    inverse: Vec<f64>,
    points: Vec<Vec<f64>>,
    pulls: Vec<f64>,
    centre: f64,
}

impl Mean {
    /// Fits length scales to these values, and keeps the points. `log_length` as in
    /// [`Scales::prior`].
    #[must_use]
    pub fn fit(
        points: &[Vec<f64>],
        values: &[f64],
        dimension_of: &[usize],
        log_length: f64,
    ) -> Self {
        let centre = values.iter().sum::<f64>() / values.len().max(1) as f64;
        let values: Vec<f64> = values.iter().map(|value| value - centre).collect();
        let mut scales = Scales::prior(dimension_of, log_length);
        let slices: Vec<&[f64]> = points.iter().map(Vec::as_slice).collect();
        let no_noise = vec![0.0; values.len()];
        scales.climb(&slices, &values, &no_noise, STEPS);
        let shape = scales.shape();
        let mut process = Process::new(shape.clone());
        for point in points {
            let point = process.point(&Place::of(point.clone()));
            process.push(point);
        }
        let known: Vec<Option<f64>> = values.into_iter().map(Some).collect();
        let pulls = process.unwhiten(&process.whiten(&known));
        let scaled = |point: &Vec<f64>| -> Vec<f64> {
            let pairs = point.iter().zip(&shape.inverse);
            pairs.map(|(x, inverse)| x * inverse).collect()
        };
        Self {
            points: points.iter().map(scaled).collect(),
            inverse: shape.inverse,
            pulls,
            centre,
        }
    }

    /// The expected value at a point.
    #[must_use]
    pub fn at(&self, point: &[f64]) -> f64 {
        let pairs = point.iter().zip(&self.inverse);
        let here: Vec<f64> = pairs.map(|(x, inverse)| x * inverse).collect();
        let terms = self.points.iter().zip(&self.pulls);
        let sum: f64 = terms
            .map(|(point, pull)| pull * matern(squared_distance(point, &here)).0)
            .sum();
        self.centre + sum
    }
}

#[cfg(test)]
mod tests;
