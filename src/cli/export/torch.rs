//! `tuner export --torch`: a Python package with a custom op of PyTorch.

use super::Args;
use super::launcher::{embedded_images, launcher_source, present_kernel};
use crate::cli::{CliError, usage};
use tuner_core::entry::Entry;
use tuner_report::export::{
    Launcher, LauncherError, PackageFiles, launcher_entries, torch_package,
};
use tuner_store::Board;

/// Writes the package of the boards' entries.
pub(super) fn render_package(
    args: &Args,
    name: &str,
    boards: &[Board],
    entries: &[Entry],
) -> Result<PackageFiles, CliError> {
    let kernel = present_kernel("--torch", name, boards)?;
    let mentions = |name: &str| kernel.template.mentions(name);
    // Every shape is dispatched to a valid variant or to the fallback.
    let source = launcher_source(&kernel, &mentions, true);
    let refused = |error| match error {
        LauncherError::Unsupported(what) => usage(format!(
            "--torch: the package cannot pass {what}: export the header alone"
        )),
        error => usage(error),
    };
    let mut images = Vec::new();
    if args.embed.is_some() {
        let entries = launcher_entries(entries);
        let launcher = Launcher::new(name, &entries, &source).map_err(refused)?;
        let compiled = embedded_images(args, &launcher, &kernel, &entries)?;
        images = compiled
            .into_iter()
            .map(|image| {
                let macros = launcher.own_macros(image.entry);
                (image, macros)
            })
            .collect();
    }
    torch_package(name, entries, &source, &images).map_err(refused)
}
