//! `tuner completions`: a completion script for a shell.

use super::{Cli, CommandResult, output};
use crate::exit;
use anyhow::Context as _;
use clap::CommandFactory as _;
use clap_complete::Shell;

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  tuner completions bash > ~/.local/share/bash-completion/completions/tuner"
)]
pub(crate) struct Args {
    /// Shell
    shell: Shell,
}

/// Prints the script.
///
/// # Errors
/// When standard output cannot be written.
pub(crate) fn run(args: &Args) -> CommandResult {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tuner", &mut script);
    output::print(&String::from_utf8_lossy(&script)).context("cannot write to standard output")?;
    Ok(exit::DONE)
}
