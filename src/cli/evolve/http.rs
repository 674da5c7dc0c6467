//! `http`: an OpenAI-compatible chat endpoint.

use super::mutator::{Mutator, MutatorError, Reply};
use std::path::Path;
use std::time::Duration;
use tuner_evolve::protocol::MutationRequest;

/// Endpoint.
pub(super) struct HttpMutator;

impl HttpMutator {
    /// Reads the environment.
    pub(super) fn from_environment(_: &Path, _: Option<f64>) -> Result<Self, String> {
        Err("not built yet".to_owned())
    }
}

impl Mutator for HttpMutator {
    fn propose(
        &mut self,
        _: &MutationRequest,
        _: Duration,
        _: &(dyn Fn() -> bool + Sync),
    ) -> Result<Reply, MutatorError> {
        Err(MutatorError::NoAnswer(String::new()))
    }
}
