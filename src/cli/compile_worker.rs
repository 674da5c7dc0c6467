//! `tuner compile-worker` (hidden): the NVRTC process, started by the compile pool.

use super::CommandResult;
use crate::exit;
use anyhow::Context as _;

/// No options: the requests name the code to compile.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Serves compilation requests over the pipes until they close.
///
/// # Errors
/// The pipes break, which happens immediately if it is started by hand.
pub(crate) fn run(_: &Args) -> CommandResult {
    tuner_kernel::compile::serve().context("this command is for the tuner itself")?;
    Ok(exit::DONE)
}
