//! What a candidate promises where two objectives count: the expected growth of the area that the
//! front dominates (expected hypervolume improvement), exact for two independent normals (Emmerich,
//! Deutz and Klinkenberg 2011), as a logarithm so that it still ranks candidates where it
//! underflows.

use super::improvement::log_improvement;

/// What is believed of one objective of a candidate: its mean and standard deviation.
pub(super) type Belief = (f64, f64);

/// Points that nothing beats, in order of the first objective, and the corner up to which an area
/// counts.
#[derive(Debug)]
pub(super) struct Front {
    points: Vec<[f64; 2]>,
    corner: [f64; 2],
}

/// Beyond the worst of the front, as a share of its extent, an area still counts.
const MARGIN: f64 = 0.1;

impl Front {
    /// Of points in order of the first objective, at least one; `spread`: standard deviations of the
    /// objectives, for a front of one point.
    pub(super) fn new(points: Vec<[f64; 2]>, spread: [f64; 2]) -> Self {
        let corner = |at: usize| {
            let all = || points.iter().map(|point| point[at]);
            let worst = all().fold(f64::NEG_INFINITY, f64::max);
            let best = all().fold(f64::INFINITY, f64::min);
            worst + (MARGIN * (worst - best)).max(MARGIN * spread[at])
        };
        Self {
            corner: [corner(0), corner(1)],
            points,
        }
    }

    /// The logarithm of the expected growth of the area.
    pub(super) fn log_growth(&self, first: Belief, second: Belief) -> f64 {
        // Strips of the first objective, each with the height that the point before it leaves.
        let mut terms = Vec::with_capacity(self.points.len() + 1);
        let (mut before, mut height) = (f64::NEG_INFINITY, self.corner[1]);
        for [end, next] in self.points.iter().copied().chain([self.corner]) {
            let reach = log_below(end, first);
            terms.push(log_difference(reach, before) + log_below(height, second));
            (before, height) = (reach, next);
        }
        log_sum(&terms)
    }
}

/// Logarithm of the expected distance below a limit, 0 above it.
fn log_below(limit: f64, (mean, deviation): Belief) -> f64 {
    deviation.ln() + log_improvement((limit - mean) / deviation)
}

/// `ln(exp(a) - exp(b))` for `a > b`.
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
    most + terms
        .iter()
        .map(|term| (term - most).exp())
        .sum::<f64>()
        .ln()
}

#[cfg(test)]
mod tests;
