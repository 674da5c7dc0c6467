//! Results in formats of other tools. Pure: rows in, text out; equal rows produce equal bytes.

mod cexpr;
mod chosen;
mod entry;
mod header;
mod json;
mod kernelbench;
mod kernel_tuner;
mod launcher;
mod lookup;
mod names;
mod others;
mod python;
mod plan;
mod rules;
mod shipped;
mod t4;
mod torch;
mod values;

pub use header::{header, own_sizes_only};
pub use json::json;
pub use kernel_tuner::kernel_tuner;
pub use kernelbench::kernelbench;
pub use launcher::{
    Launcher, LauncherError, LauncherImage, LauncherSource, launcher_entries, launcher_folder,
};
pub use names::target_name;
pub use others::{triton, wisdom};
use serde_json::{Map, Value as Json, json};
pub use shipped::{
    CodeChange, LaunchedSource, Shipped, is_shipped, launched_source, read as read_shipped,
};
pub use t4::t4;
pub use torch::{MacroImage, torch_package};
use tuner_core::escape::MacroBodyError;
use tuner_core::record::{ConfigValues, TrialRecord};

/// Files of an exported folder: relative paths and texts.
pub type PackageFiles = Vec<(String, Vec<u8>)>;

/// Reason why there is no export.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// Nothing to export.
    #[error("there is no result to export")]
    Empty,
    /// The format supports only one device and problem.
    #[error(
        "this format holds one problem of one device, and there are several: choose with \
         --device and --problem among {}",
        .0.join(", ")
    )]
    Several(Vec<String>),
    /// A parameter's name is not a valid macro name.
    #[error(
        "the parameter {0:?} is not a name in C and C++ (letters, digits and `_`, no keyword): export \
         with --to json"
    )]
    NotAName(String),
    /// A text value cannot be a macro's body.
    #[error(
        "the value {value:?} of {name} is not the body of a macro ({why}): export with --to json"
    )]
    NotABody {
        /// The parameter.
        name: String,
        /// Its value.
        value: String,
        /// The reason.
        why: MacroBodyError,
    },
}

/// Returns the cost of compiling and benchmarking, ms.
fn costs_ms(trial: &TrialRecord) -> [f64; 2] {
    let compile_us = trial.compilation.as_ref().map_or(0, |c| c.compile_us);
    let benchmark_us = trial.charged_us.saturating_sub(compile_us);
    [compile_us, benchmark_us].map(|us| us as f64 / 1e3)
}

/// Returns raw samples, ms; empty without a time.
fn samples_ms(trial: &TrialRecord) -> Vec<f64> {
    let samples = trial.measurement.iter().flat_map(|time| &time.samples);
    samples.map(|us| us / 1e3).collect()
}

/// Returns a configuration as an object, in the order of the space.
fn object(config: &ConfigValues) -> Map<String, Json> {
    let pairs = config.iter();
    pairs
        .map(|(name, value)| (name.clone(), json!(value)))
        .collect()
}
