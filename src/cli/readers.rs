//! Parsers of tables that other programs write, in the form that the fuzz tests call.

use super::{import, predict, profile};
use std::path::Path;
use tuner_space::Space;

/// Reads the table of `cutlass_profiler --output`; returns the number of rows that passed.
///
/// # Errors
/// The message for the user.
pub fn profiler_table(text: &str) -> Result<usize, String> {
    let rows = import::cutlass::count_rows(Path::new("fuzz.csv"), text);
    rows.map_err(|error| error.to_string())
}

/// Reads the raw page of `ncu`; returns the number of metrics.
///
/// # Errors
/// The message for the user.
pub fn profile_table(text: &str) -> Result<usize, String> {
    profile::ncu::read(text).map(|metrics| metrics.len())
}

/// Reads a file of configurations; returns their number.
///
/// # Errors
/// The message for the user.
pub fn configuration_table(text: &str, space: &Space, strict: bool) -> Result<usize, String> {
    predict::configs::count_rows(text, space, strict)
}
