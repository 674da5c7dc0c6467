//! `tuner export --torch`: a Python package with a custom op of PyTorch.

use super::launcher::{launcher_source, present_kernel};
use crate::cli::{CliError, usage};
use tuner_core::entry::Entry;
use tuner_report::export::{LauncherError, PackageFiles, torch_package};
use tuner_store::Board;

/// Writes the package of the boards' entries.
pub(super) fn render_package(
    name: &str,
    boards: &[Board],
    entries: &[Entry],
) -> Result<PackageFiles, CliError> {
    let kernel = present_kernel("--torch", name, boards)?;
    let mentions = |name: &str| kernel.template.mentions(name);
    // Every shape goes to a valid variant or to the fallback.
    let source = launcher_source(&kernel, &mentions, true);
    torch_package(name, entries, &source).map_err(|error| match error {
        LauncherError::Unsupported(what) => usage(format!(
            "--torch: the package cannot pass {what}: export the header alone"
        )),
        error => usage(error),
    })
}
