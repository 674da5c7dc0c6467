//! Fixed model of a mean, without variances.

use super::fit::Scales;
use super::linear::squared_distance;
use super::process::{Input, Process, matern};

/// Steps of the fit. More than for [`Scales`] in a search, as this fit is not continued later.
const STEPS: usize = 25;

/// Mean of a Gaussian process. A prediction costs one covariance per training point.
#[derive(Debug, Clone)]
pub struct Mean {
    inverse: Vec<f64>,
    points: Vec<Vec<f64>>,
    weights: Vec<f64>,
    centre: f64,
}

impl Mean {
    /// Fits length scales to these values. `log_length` as in [`Scales::prior`].
    #[must_use]
    pub fn fit(
        points: &[Vec<f64>],
        values: &[f64],
        dimension_of: &[usize],
        log_length: f64,
    ) -> Self {
        let centre = values.iter().sum::<f64>() / values.len().max(1) as f64;
        // The process expects a mean of zero.
        let values: Vec<f64> = values.iter().map(|value| value - centre).collect();
        let mut scales = Scales::prior(dimension_of, log_length);
        let slices: Vec<&[f64]> = points.iter().map(Vec::as_slice).collect();
        let no_noise = vec![0.0; values.len()];
        scales.climb(&slices, &values, &no_noise, STEPS);
        let shape = scales.shape();
        let mut process = Process::new(shape.clone());
        for point in points {
            let point = process.point(&Input::new(point.clone()));
            process.push(point);
        }
        let known: Vec<Option<f64>> = values.into_iter().map(Some).collect();
        let weights = process.unwhiten(&process.whiten(&known));
        // Scaled here once instead of in each prediction.
        let scaled = |point: &Vec<f64>| -> Vec<f64> {
            let pairs = point.iter().zip(&shape.inverse);
            pairs.map(|(x, inverse)| x * inverse).collect()
        };
        Self {
            points: points.iter().map(scaled).collect(),
            inverse: shape.inverse,
            weights,
            centre,
        }
    }

    /// Predicts the value at a point.
    #[must_use]
    pub fn predict(&self, point: &[f64]) -> f64 {
        let pairs = point.iter().zip(&self.inverse);
        let scaled: Vec<f64> = pairs.map(|(x, inverse)| x * inverse).collect();
        let terms = self.points.iter().zip(&self.weights);
        let sum: f64 = terms
            .map(|(point, weight)| weight * matern(squared_distance(point, &scaled)).0)
            .sum();
        self.centre + sum
    }
}

#[cfg(test)]
mod tests;
