//! Acquisition function for two objectives: expected hypervolume improvement, the expected growth
//! of the area that the front dominates. Exact for two independent normals (Emmerich, Deutz and
//! Klinkenberg 2011), as a logarithm: it ranks candidates even if the growth itself underflows.

use super::improvement::log_improvement;

/// Predicted distribution of one objective of a candidate, a normal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Prediction {
    pub(super) mean: f64,
    pub(super) deviation: f64,
}

/// Non-dominated points in order of the first objective, and the reference corner that bounds the
/// dominated area.
#[derive(Debug)]
pub(super) struct Front {
    points: Vec<[f64; 2]>,
    corner: [f64; 2],
}

/// Extent of the area beyond the worst point of the front, as a share of the front's extent.
const AREA_MARGIN: f64 = 0.1;

impl Front {
    /// Creates a front from at least one point, in order of the first objective. `spread`: standard
    /// deviations of the objectives, which set the extent of a front of one point.
    pub(super) fn new(points: Vec<[f64; 2]>, spread: [f64; 2]) -> Self {
        let corner = |at: usize| {
            let all = || points.iter().map(|point| point[at]);
            let worst = all().fold(f64::NEG_INFINITY, f64::max);
            let best = all().fold(f64::INFINITY, f64::min);
            worst + (AREA_MARGIN * (worst - best)).max(AREA_MARGIN * spread[at])
        };
        Self {
            corner: [corner(0), corner(1)],
            points,
        }
    }

    /// Computes the logarithm of the expected growth of the area.
    pub(super) fn log_growth(&self, first: Prediction, second: Prediction) -> f64 {
        // The front cuts the first objective into strips; each has the height left by the
        // point before it.
        let mut terms = Vec::with_capacity(self.points.len() + 1);
        let (mut before, mut height) = (f64::NEG_INFINITY, self.corner[1]);
        for [end, next] in self.points.iter().copied().chain([self.corner]) {
            let expected = log_below(end, first);
            terms.push(log_difference(expected, before) + log_below(height, second));
            (before, height) = (expected, next);
        }
        log_sum(&terms)
    }
}

/// Computes the logarithm of the expected distance below a limit, counted as 0 above it.
fn log_below(limit: f64, prediction: Prediction) -> f64 {
    prediction.deviation.ln() + log_improvement((limit - prediction.mean) / prediction.deviation)
}

/// Computes `ln(exp(a) - exp(b))` for `a > b`.
fn log_difference(a: f64, b: f64) -> f64 {
    if b < a {
        a + (-(b - a).exp()).ln_1p()
    } else {
        f64::NEG_INFINITY
    }
}

fn log_sum(terms: &[f64]) -> f64 {
    let most = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if most == f64::NEG_INFINITY {
        return most;
    }
    // Factored out, so that the exponentials neither overflow nor all underflow.
    most + terms
        .iter()
        .map(|term| (term - most).exp())
        .sum::<f64>()
        .ln()
}

#[cfg(test)]
mod tests;
