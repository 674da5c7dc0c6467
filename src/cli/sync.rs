//! `tuner sync`: exchanges results between two databases.

use super::results::{block_on, db_parser};
use super::{CliError, CommandResult, output};
use std::fmt::Write as _;
use std::path::PathBuf;
use tuner_core::units::counted;
use tuner_store as store;

/// Exchange results with another database
///
/// Results keep their run, their provenance and all evidence. Known results are skipped, so the
/// command may be repeated at any time.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tuner sync /mnt/hub/tuner.db                 both ways
  tuner sync hub.db --pull                     only from there to here
  tuner sync /mnt/hub/tuner.db --push --db laptop.db")]
pub(crate) struct Args {
    /// Other database
    #[arg(value_name = "FILE")]
    other: PathBuf,

    /// Database of results on this side
    #[arg(long, value_name = "FILE", default_value = store::DEFAULT_PATH, value_parser = db_parser())]
    db: PathBuf,

    /// Only pull results from the other database
    #[arg(long, conflicts_with = "push")]
    pull: bool,

    /// Only push results to the other database
    #[arg(long)]
    push: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> CommandResult {
    let text = block_on(both(args))?;
    output::result(&text)
}

async fn both(args: &Args) -> Result<String, CliError> {
    let (here, there) = (&args.db, &args.other);
    // Without an option both directions are synchronized.
    let ways = [(!args.push, there, here), (!args.pull, here, there)];
    let mut text = String::new();
    for (_, from, into) in ways.into_iter().filter(|(wanted, ..)| *wanted) {
        let synced = store::pull(into, from).await?;
        let _ = writeln!(
            text,
            "{} -> {}: {} and {} taken over, {} known",
            from.display(),
            into.display(),
            counted(synced.runs, "run"),
            counted(synced.results, "result"),
            synced.known
        );
    }
    Ok(text)
}
