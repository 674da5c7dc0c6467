//! Effects of a configuration's choices: single changes, known pathologies, and their costs on a
//! real GPU.
#![expect(
    clippy::indexing_slicing,
    reason = "parameters, changes and their results are numbered by the space and the list of changes, the base being the first"
)]

mod cost;
mod inversion;
mod measured;

pub use cost::Cost;
pub use inversion::{Inversions, PathologicalConfig, Spills, inversions};
pub use measured::{Ablation, Outcome};

use crate::job::{JobError, usage};
use tuner_core::judgement::Judgement;
use tuner_space::{Config, Neighbourhood, Space};

/// A change of the base configuration.
#[derive(Debug, Clone)]
pub struct Change {
    /// The parameter, or the pathology's name; empty for the base itself.
    pub what: String,
    /// The base's values of the changed parameters.
    pub from: String,
    /// The new values.
    pub to: String,
    /// The changed configuration.
    pub config: Config,
}

/// Returns every valid change of one parameter, in the order of the space.
pub fn single_changes(space: &Space, base: &Config) -> Vec<Change> {
    let parameters = space.parameters();
    space
        .neighbours(base, Neighbourhood::Hamming)
        .into_iter()
        .filter_map(|config| {
            let differs = |at: &usize| config.choices()[*at] != base.choices()[*at];
            let at = (0..parameters.len()).find(differs)?;
            let value = |config: &Config| space.values(config)[at].1.to_string();
            Some(Change {
                what: parameters[at].name.clone(),
                from: value(base),
                to: value(&config),
                config,
            })
        })
        .collect()
}

/// Returns the error for a wrong base configuration, which cannot be analysed.
#[must_use]
pub fn bad_base(device: &str, why: &Judgement) -> JobError {
    let Judgement {
        verdict, detail, ..
    } = why;
    usage(format!(
        "the configuration to take apart is {verdict} on {device}: {detail}\n\
         help: name one that is right by --config, or let `tuner run` find one"
    ))
}
