//! Figures of merit of an evolution.

use crate::outcome::Outcome;
use serde::Serialize;
use std::collections::BTreeMap;

/// Factors of `fast_p` that are exported.
pub const FAST_P: [f64; 4] = [0.0, 1.0, 1.5, 2.0];

/// Returns the share of problems on which a correct kernel is more than `p` times as fast as the baseline
/// (KernelBench, Ouyang et al. 2025, arXiv 2502.10517). A wrong kernel has no speed-up: `None`.
#[must_use]
pub fn fast_p(speedups: &[Option<f64>], p: f64) -> Option<f64> {
    let fast = speedups.iter().flatten().filter(|speedup| **speedup > p);
    (!speedups.is_empty()).then(|| fast.count() as f64 / speedups.len() as f64)
}

/// Figures of an evolution.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figures {
    /// Number of changes by outcome.
    pub outcomes: BTreeMap<Outcome, u64>,
    /// Share of changes by outcome.
    pub shares: BTreeMap<Outcome, f64>,
    /// Number of changes by verdict of the gate, without those that never reached it.
    pub verdicts: BTreeMap<String, u64>,
    /// Tokens of all answers.
    pub tokens: u64,
    /// Seconds that mutators took.
    pub mutator_s: f64,
    /// Best change's gain over the shipped template, per cent, geometric mean over the problems; null:
    /// none passed the gate.
    pub best_gain_pct: Option<f64>,
    /// That gain for each thousand tokens; null without tokens.
    pub gain_per_1000_tokens: Option<f64>,
    /// `fast_p` by `p` against the baseline of the search space; null: none was measured.
    pub fast_p: Option<BTreeMap<String, f64>>,
}

/// Facts of one change.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangeFacts {
    /// Outcome.
    pub outcome: Outcome,
    /// Verdict of the gate.
    pub verdict: Option<String>,
    /// Tokens of the answer.
    pub tokens: u64,
    /// Seconds of the mutator.
    pub seconds: f64,
    /// Shipped template's time over that of the change, by problem.
    pub gains: Vec<f64>,
}

impl Figures {
    /// Computes the figures. `speedups` has the best kernel's speed-up over the baseline, by problem;
    /// `None` if no baseline was measured.
    #[must_use]
    pub fn new(changes: &[ChangeFacts], speedups: Option<&[Option<f64>]>) -> Self {
        let mut outcomes = BTreeMap::new();
        let mut verdicts = BTreeMap::new();
        for change in changes {
            *outcomes.entry(change.outcome).or_insert(0) += 1;
            if let Some(verdict) = &change.verdict {
                *verdicts.entry(verdict.clone()).or_insert(0) += 1;
            }
        }
        let share = |count: &u64| *count as f64 / changes.len() as f64;
        let shares = outcomes
            .iter()
            .map(|(outcome, count)| (*outcome, share(count)));
        let tokens = changes.iter().map(|change| change.tokens).sum();
        let gains = changes
            .iter()
            .filter_map(|change| geometric_mean(&change.gains));
        let best = gains
            .max_by(f64::total_cmp)
            .map(|gain| (gain - 1.0) * 100.0);
        let fast = |all: &[Option<f64>]| -> BTreeMap<String, f64> {
            let each = FAST_P
                .iter()
                .filter_map(|p| Some((format!("{p}"), fast_p(all, *p)?)));
            each.collect()
        };
        Self {
            shares: shares.collect(),
            verdicts,
            tokens,
            mutator_s: changes.iter().map(|change| change.seconds).sum(),
            best_gain_pct: best,
            gain_per_1000_tokens: best
                .filter(|_| tokens > 0)
                .map(|gain| gain / (tokens as f64 / 1000.0)),
            fast_p: speedups.map(fast),
            outcomes,
        }
    }
}

/// Returns the geometric mean; `None` for an empty slice.
#[must_use]
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    let logs: f64 = values.iter().map(|value| value.ln()).sum();
    (!values.is_empty()).then(|| (logs / values.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fast_p_counts_wrong_kernels_as_slow() {
        let speedups = [Some(2.1), Some(1.2), None, Some(0.5)];
        let shares: Vec<_> = FAST_P.iter().map(|p| fast_p(&speedups, *p)).collect();
        assert_eq!(shares, [Some(0.75), Some(0.5), Some(0.25), Some(0.25)]);
        assert_eq!(fast_p(&[], 1.0), None);
    }

    #[test]
    fn figures_of_two_changes() {
        let change = |outcome, tokens, gains: &[f64]| ChangeFacts {
            outcome,
            verdict: Some("ok".to_owned()),
            tokens,
            seconds: 1.5,
            gains: gains.to_vec(),
        };
        let all = [
            change(Outcome::PredictedBetter, 1500, &[1.5, 1.5]),
            change(Outcome::NotBetter, 500, &[0.9, 0.9]),
        ];
        let figures = Figures::new(&all, None);
        assert_eq!(figures.tokens, 2000);
        assert_eq!(figures.shares[&Outcome::NotBetter], 0.5);
        assert!((figures.best_gain_pct.unwrap() - 50.0).abs() < 1e-9);
        assert!((figures.gain_per_1000_tokens.unwrap() - 25.0).abs() < 1e-9);
        assert_eq!(figures.fast_p, None);
        assert_eq!(Figures::new(&[], None).best_gain_pct, None);
    }
}
