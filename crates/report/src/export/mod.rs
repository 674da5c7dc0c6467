//! Results in the formats that others read. Pure: rows in, text out; the same rows give the same
//! bytes.

mod cexpr;
mod checks;
mod devices;
mod form;
mod header;
mod json;
mod kernelbench;
mod kernel_tuner;
mod launches;
mod lookup;
mod names;
mod number;
mod others;
mod python;
mod rules;
mod shipped;
mod t4;

pub use shipped::{Shipped, read as read_shipped};
use tuner_core::entry::{Entry, StoredTrial};

/// Why there is no export.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// Nothing to export.
    #[error("there is no result to export")]
    Empty,
    /// The format holds one device and problem.
    #[error(
        "this format holds one problem of one device, and there are several: choose with \
         --device and --problem among {}",
        .0.join(", ")
    )]
    Several(Vec<String>),
    /// A parameter is no macro name.
    #[error("the parameter {0:?} is no name in C (letters, digits and `_`): export with --to json")]
    NotAName(String),
}

/// A device's or kernel's name as a macro or a file name, in Kernel Tuner's way: every run of other
/// characters than letters and digits is one `_`.
#[must_use]
pub fn target_name(name: &str) -> String {
    names::target(name)
}

/// The header that the contract describes.
///
/// # Errors
/// Nothing to export, or a parameter whose name C does not take.
pub fn header(kernel: &str, entries: &[Entry]) -> Result<String, ExportError> {
    header::header(kernel, entries)
}

/// The rules that C cannot state for other sizes than an entry's own, a line each: the header
/// returns that entry only where the sizes in the rule are its own.
///
/// # Errors
/// As [`header()`].
pub fn own_sizes_only(kernel: &str, entries: &[Entry]) -> Result<Vec<String>, ExportError> {
    header::own_sizes_only(kernel, entries)
}

/// The best rows with the sizes, as JSON.
///
/// # Errors
/// Nothing to export.
pub fn json(kernel: &str, entries: &[Entry]) -> Result<String, ExportError> {
    json::json(kernel, entries)
}

/// A closed Kernel Tuner cache file, which Kernel Tuner simulates from and resumes.
///
/// # Errors
/// Nothing to export.
pub fn kernel_tuner(entry: &Entry, judged: &[StoredTrial]) -> Result<String, ExportError> {
    kernel_tuner::cache(entry, judged)
}

/// KernelBench's evaluation results (`eval_results.json`): a problem each, its candidates as samples.
///
/// # Errors
/// Nothing to export.
pub fn kernelbench(problems: &[(Entry, Vec<StoredTrial>)]) -> Result<String, ExportError> {
    kernelbench::results(problems)
}

/// T4 results, version 1.0.0.
///
/// # Errors
/// Nothing to export.
pub fn t4(entry: &Entry, judged: &[StoredTrial]) -> Result<String, ExportError> {
    t4::results(entry, judged)
}

/// A Kernel Launcher wisdom file: one line a device and problem.
///
/// # Errors
/// Nothing to export.
pub fn wisdom(kernel: &str, entries: &[Entry]) -> Result<String, ExportError> {
    others::wisdom(kernel, entries)
}

/// A Triton autotuner cache: configurations with their timings.
///
/// # Errors
/// Nothing to export.
pub fn triton(entry: &Entry, judged: &[StoredTrial]) -> Result<String, ExportError> {
    others::triton(entry, judged)
}
