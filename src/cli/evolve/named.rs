//! Selection of a mutator.

use super::http::HttpMutator;
use super::manual::ManualMutator;
use super::mutator::{CommandMutator, Mutator, Scripted};

/// Returns the mutator that a name or a command line selects.
pub(super) fn select(
    text: &str,
    folder: &std::path::Path,
    cost_limit: Option<f64>,
) -> Result<Box<dyn Mutator>, String> {
    Ok(match text {
        "scripted" => Box::new(Scripted),
        "http" => Box::new(HttpMutator::from_environment(folder, cost_limit)?),
        "manual" => Box::new(ManualMutator::new(folder)?),
        command => Box::new(CommandMutator {
            command: command.to_owned(),
        }),
    })
}
