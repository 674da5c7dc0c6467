//! Waiting proposals: in compilation, or compiled and not yet evaluated.

use super::archive::Archive;
use surrogate::{Input, Point, Process};
use tuner_space::Config;

/// A configuration to propose next.
pub(super) struct Suggestion {
    pub(super) config: Config,
    pub(super) origin: &'static str,
    /// True if the model selected it and may withdraw it.
    pub(super) scored: bool,
    /// True if prior knowledge led to it.
    pub(super) from_prior: bool,
}

impl Suggestion {
    /// Creates a suggestion that the model did not select.
    pub(super) fn fixed(config: Config, origin: &'static str) -> Self {
        Self {
            config,
            origin,
            scored: false,
            from_prior: false,
        }
    }
}

/// A waiting proposal.
#[derive(Debug)]
pub(super) struct WaitingProposal {
    pub(super) id: u64,
    pub(super) config: Config,
    pub(super) input: Input,
    pub(super) point: Point,
    /// True if the model selected it and may withdraw it; other proposals keep their order.
    pub(super) scored: bool,
    /// True if prior knowledge led to it.
    pub(super) from_prior: bool,
    /// Number of the model that computed `point`.
    model: u64,
}

/// All waiting proposals, in the order proposed.
#[derive(Debug, Default)]
pub(super) struct WaitingList {
    pub(super) list: Vec<WaitingProposal>,
}

impl WaitingList {
    pub(super) fn push(
        &mut self,
        id: u64,
        suggestion: Suggestion,
        input: Input,
        point: Point,
        model: u64,
    ) {
        self.list.push(WaitingProposal {
            id,
            config: suggestion.config,
            input,
            point,
            scored: suggestion.scored,
            from_prior: suggestion.from_prior,
            model,
        });
    }

    pub(super) fn take(&mut self, id: u64) -> Option<WaitingProposal> {
        let index = self.list.iter().position(|proposal| proposal.id == id)?;
        Some(self.list.remove(index))
    }

    /// Updates all points to this model.
    pub(super) fn catch_up(&mut self, model: u64, archive: &Archive, process: &Process) {
        for proposal in &mut self.list {
            if proposal.model == model {
                process.catch_up(&mut proposal.point);
            } else {
                proposal.point = process.point(&archive.model_input(&proposal.input));
                proposal.model = model;
            }
        }
    }

    /// Returns the variance of a candidate after measurement of all waiting proposals, with their
    /// information treated as independent.
    pub(super) fn variance_after(&self, process: &Process, point: &Point) -> f64 {
        self.list.iter().fold(point.variance, |left, proposal| {
            let common = process.covariance(point, &proposal.point);
            // The variance of a measured point may be rounded to zero.
            let both = point.variance.max(1e-9) * proposal.point.variance.max(1e-9);
            left * (1.0 - (common * common / both).min(1.0))
        })
    }
}
