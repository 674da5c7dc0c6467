//! Evidence of a passed candidate.

use std::collections::BTreeSet;
use tuner_core::record::Hazard;

/// Evidence that a candidate passed. Only this module constructs one for kernels that ran.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// Largest error divided by its tolerance; `None` if nothing was compared.
    pub max_error: Option<f64>,
    /// Only some blocks ran.
    pub sampled: bool,
    /// Reason why a block was abandoned before its end, if one was: its outputs were not compared.
    /// The candidate passes only if other evidence shows that it is correct.
    pub budget_exhausted: Option<String>,
    /// Other checks that were omitted.
    pub note: Option<String>,
    /// Warnings: legal but fragile.
    pub warnings: Vec<Hazard>,
    /// Outputs, by their number among the plan's outputs, with compared elements of which some are
    /// finite.
    pub compared: BTreeSet<usize>,
    /// Reason why the comparison of the other outputs proves nothing: every expected value is NaN
    /// or infinite.
    pub not_finite: Option<String>,
}

/// Adds new findings: one for each position and text, independent of the block.
pub fn add_new(known: &mut Vec<Hazard>, found: Vec<Hazard>) {
    for new in found {
        let same =
            |old: &Hazard| (&old.file, old.line, &old.detail) == (&new.file, new.line, &new.detail);
        if !known.iter().any(same) {
            known.push(new);
        }
    }
}
