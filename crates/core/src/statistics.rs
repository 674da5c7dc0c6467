//! Median, 90th percentile and the interval of the median, from raw samples.

use crate::record::{Measurement, TimingKind};
use crate::units::Micros;

/// Summarizes samples; `None` without samples.
#[must_use]
pub(crate) fn summarise(
    kind: TimingKind,
    protocol: &str,
    samples: &[Micros],
) -> Option<Measurement> {
    let samples: Vec<f64> = samples.iter().map(|time| time.get()).collect();
    let [low, high] = interval_of_median(&samples)?;
    Some(Measurement {
        kind,
        p50: Micros::new(median(&samples)?)?,
        p90: Micros::new(quantile_of(&samples, 0.9)?)?,
        ci95: [Micros::new(low)?, Micros::new(high)?],
        samples,
        protocol: protocol.to_owned(),
        reused: false,
        evidence: None,
    })
}

/// Returns the `q` quantile of sorted numbers, linear between neighbours (Hyndman and Fan's type 7,
/// the default of NumPy and R); `None` without numbers.
fn sorted_quantile(sorted: &[f64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = q.clamp(0.0, 1.0) * last as f64;
    let below = (place.floor() as usize).min(last);
    let above = (below + 1).min(last);
    let (a, b) = (sorted.get(below)?, sorted.get(above)?);
    Some(a + (b - a) * (place - below as f64))
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// Returns the `q` quantile of numbers in any order.
#[must_use]
pub fn quantile_of(values: &[f64], q: f64) -> Option<f64> {
    sorted_quantile(&sorted(values), q)
}

/// Returns the median of numbers in any order.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    quantile_of(values, 0.5)
}

/// Returns the 95 % percentile bootstrap interval of the median of numbers in any order.
///
/// Exact, without resampling: the median of a resample is at most the k-th smallest sample exactly if
/// enough of its n draws are, and that count is binomial (Maritz and Jarrett 1978; Efron 1979). So the
/// interval is deterministic and costs O(n log n) instead of thousands of resamples. With an even n the
/// lower end uses the lower, the upper end the upper middle element, which is conservative.
#[must_use]
pub fn interval_of_median(values: &[f64]) -> Option<[f64; 2]> {
    let sorted = sorted(values);
    let [low, high] = interval_places(sorted.len())?;
    Some([*sorted.get(low)?, *sorted.get(high)?])
}

/// Reports whether numbers form two groups. The widest gap that leaves a sixth of them on either side must
/// be wider than half a per cent, and than three times the median distance from the group's own middle
/// (MAD). A best-of or a mean of such samples depends on chance.
#[must_use]
pub fn bimodal(values: &[f64]) -> bool {
    const FEWEST: usize = 8;
    if values.len() < FEWEST {
        return false;
    }
    let sorted = sorted(values);
    let side = (sorted.len() / 6).max(2);
    let gaps = sorted.windows(2).map(|pair| match pair {
        [below, above] => above - below,
        _ => 0.0,
    });
    // A gap is numbered by the element after it; either side keeps a sixth.
    let inner = (1..).zip(gaps).take(sorted.len() - side).skip(side - 1);
    let Some((at, gap)) = inner.max_by(|a, b| a.1.total_cmp(&b.1)) else {
        return false;
    };
    let (below, above) = sorted.split_at(at);
    let distances: Vec<f64> = [below, above]
        .into_iter()
        .flat_map(|group| {
            let middle = sorted_quantile(group, 0.5).unwrap_or(0.0);
            group.iter().map(move |value| (value - middle).abs())
        })
        .collect();
    let within = median(&distances).unwrap_or(0.0);
    gap > 3.0 * within && gap > 0.005 * sorted_quantile(&sorted, 0.5).unwrap_or(0.0)
}

/// Returns the indices of the interval's ends among `n` sorted samples.
fn interval_places(n: usize) -> Option<[usize; 2]> {
    if n < 2 {
        return (n == 1).then_some([0, 0]);
    }
    let table = LogFactorials::up_to(n);
    // The first k (from 1) whose sample bounds the resampled middle element with probability `p`.
    let first = |need: usize, p: f64| {
        let (mut low, mut high) = (1, n);
        while low < high {
            let middle = low.midpoint(high);
            if table.at_least(need, middle as f64 / n as f64) >= p {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low - 1
    };
    Some([first(n.div_ceil(2), 0.025), first(n / 2 + 1, 0.975)])
}

struct LogFactorials(Vec<f64>);

impl LogFactorials {
    fn up_to(n: usize) -> Self {
        let next = |sum: &mut f64, k: usize| {
            *sum += (k.max(1) as f64).ln();
            Some(*sum)
        };
        Self((0..=n).scan(0.0, next).collect())
    }

    /// Returns the probability that at least `need` of n draws succeed, each with probability `p`.
    fn at_least(&self, need: usize, p: f64) -> f64 {
        // The logarithm of a miss would be -∞, and 0 misses times that is NaN.
        if p >= 1.0 {
            return 1.0;
        }
        let n = self.0.len() - 1;
        let (hit, miss) = (p.ln(), (1.0 - p).ln());
        (need..=n)
            .map(|k| {
                let log = |k: usize| self.0.get(k).copied().unwrap_or(0.0);
                let ways = log(n) - log(k) - log(n - k);
                (ways + k as f64 * hit + (n - k) as f64 * miss).exp()
            })
            .sum()
    }
}

/// A median of samples with the lower and the upper end of its 95 % interval.
pub type MedianInterval = (f64, f64, f64);

/// Returns the ratio of two medians from separate samples, with its 95 % interval. The interval combines
/// the two intervals in log space (MOVER: Donner and Zou, "Closed-form confidence intervals for functions
/// of the normal mean and standard deviation", 2012, eq. 3). Order: ratio, lower, upper end.
#[must_use]
pub fn ratio_of_medians(own: MedianInterval, other: MedianInterval) -> [f64; 3] {
    let ratio = own.0 / other.0;
    let down = (own.0 / own.1).ln().hypot((other.2 / other.0).ln());
    let up = (own.2 / own.0).ln().hypot((other.0 / other.1).ln());
    [ratio, ratio * (-down).exp(), ratio * up.exp()]
}

/// Ratio of two predicted times of one kernel below which the model cannot distinguish them.
///
/// The median error of the ratio of two predictions: 0.6745 √2 σ, where σ = 0.14 is the median over
/// the five recorded spaces of the standard deviation of ln(predicted / recorded)
/// (docs/evidence/prediction.md, table of version 11).
pub const PREDICTION_RESOLUTION: f64 = 1.14;

/// A median with the end of its interval that is nearer to the other median.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MedianEnd {
    /// The median.
    pub median: f64,
    /// The nearer end.
    pub end: f64,
}

/// Reports whether the interval of [`ratio_of_medians`], of a slower median with its lower end over
/// a faster one with its upper end, reaches 1.
#[must_use]
pub fn may_be_equal(fast: MedianEnd, slow: MedianEnd) -> bool {
    let distance = (slow.median / fast.median).ln();
    distance
        <= (slow.median / slow.end)
            .ln()
            .hypot((fast.end / fast.median).ln())
}

#[cfg(test)]
mod tests;
