//! `tuner man`: manual pages from the command definitions.

use super::results::write_file;
use super::{Cli, CommandResult, output, usage};
use crate::exit;
use anyhow::Context as _;
use clap::CommandFactory as _;
use std::path::PathBuf;

/// Write the manual pages
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tuner man run | man -l -
  tuner man --output ~/.local/share/man/man1 && man tuner-run

`make install` writes them beside the program.")]
pub(crate) struct Args {
    /// Print the page of this command [default: tuner itself]
    #[arg(conflicts_with = "output")]
    command: Option<String>,

    /// Write all pages into this folder; created if missing
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// No such command, or a folder that cannot be written.
pub(crate) fn run(args: &Args) -> CommandResult {
    let pages = pages()?;
    if let Some(folder) = &args.output {
        std::fs::create_dir_all(folder)
            .map_err(|error| usage(format!("{}: cannot be made: {error}", folder.display())))?;
        for (name, page) in &pages {
            let path = folder.join(format!("{name}.1"));
            write_file(&path, page)?;
        }
        say!("wrote {} pages to {}", pages.len(), folder.display());
        return Ok(exit::DONE);
    }
    let wanted = match &args.command {
        Some(command) => format!("tuner-{command}"),
        None => "tuner".to_owned(),
    };
    let Some((_, page)) = pages.iter().find(|(name, _)| *name == wanted) else {
        refuse!(
            "there is no command `{}`; `tuner --help` lists them",
            args.command.as_deref().unwrap_or_default()
        );
    };
    output::print_bytes(page).context("cannot write to standard output")?;
    Ok(exit::DONE)
}

/// Renders the pages by name: of the program, and of each visible command.
fn pages() -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let mut all = Cli::command();
    // Propagates inherited options.
    all.build();
    let mut pages = Vec::new();
    let mut add = |name: String, command: clap::Command| -> anyhow::Result<()> {
        let mut page = Vec::new();
        let command = command.disable_help_subcommand(true);
        clap_mangen::Man::new(command).render(&mut page)?;
        pages.push((name, page));
        Ok(())
    };
    add("tuner".to_owned(), all.clone())?;
    let shown = all.get_subcommands().filter(|one| !one.is_hide_set());
    for command in shown.filter(|one| one.get_name() != "help") {
        let name = format!("tuner-{}", command.get_name());
        add(name.clone(), command.clone().name(name))?;
    }
    Ok(pages)
}

#[cfg(test)]
mod tests;
