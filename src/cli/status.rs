//! `tuner status`: queue and progress of the daemon.

use super::daemon::Place;
use super::fleet::{self, FleetOptions};
use super::output::{self, Column, Format, or};
use super::progress::{best, counts};
use super::results::block_on;
use super::{CliError, CommandResult, usage};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use tuner_core::escape;
use tuner_serve::client::Client;
use tuner_serve::view::{RunList, RunView};
use tuner_serve::{stored_run, stored_runs};
use tuner_store::Store;

/// Number of listed runs without `--top`.
const DEFAULT_LISTED_RUNS: u32 = 20;

/// Show the queue or the progress of a run
///
/// Asks the daemon that owns the database; without one, the database itself.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tuner status                                   the latest runs
  tuner status 20260301T120000000-1a2b3c         one run
  tuner status --format json --server http://gpu7:7878
  tuner status --fleet nats://hub:4222           workers, what they do, queues")]
pub(crate) struct Args {
    /// Show only this run
    #[arg(value_name = "RUN")]
    run: Option<String>,

    /// Number of runs to list, latest first
    #[arg(long, value_name = "N", default_value_t = DEFAULT_LISTED_RUNS,
          value_parser = clap::value_parser!(u32).range(1..=100))]
    top: u32,

    #[command(flatten)]
    place: Place,

    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    format: Format,

    #[command(flatten)]
    fleet: FleetOptions,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> CommandResult {
    if let Some(url) = &args.fleet.fleet {
        return fleet(args, url);
    }
    let text = block_on(async {
        let client = args.place.daemon().await?;
        match &args.run {
            Some(id) => format_run(args, client, id).await,
            None => format_queue(args, client).await,
        }
    })?;
    output::result(&text)
}

/// Prints the fleet's workers, runs and queues.
fn fleet(args: &Args, url: &str) -> CommandResult {
    let (access, names) = args.fleet.named(url)?;
    let view = block_on(async { Ok(tuner_fleet::look(&access, &names).await?) })?;
    let text = match args.format {
        Format::Json => output::json(&view)?,
        _ => fleet::show(&view),
    };
    output::result(&text)
}

async fn format_run(args: &Args, client: Option<Client>, id: &str) -> Result<String, CliError> {
    let view: RunView = match client {
        Some(client) => client.get(&format!("/api/v1/runs/{id}")).await?,
        None => {
            let store = Store::open_read(&args.place.db).await?;
            let view = stored_run(&store, id).await?;
            view.ok_or_else(|| usage(format!("there is no run `{id}`; `tuner status` lists them")))?
        }
    };
    if args.format == Format::Json {
        return Ok(output::json(&view)?);
    }
    Ok(described(&view))
}

async fn format_queue(args: &Args, client: Option<Client>) -> Result<String, CliError> {
    let runs = match client {
        Some(client) => {
            let path = format!("/api/v1/runs?limit={}", args.top);
            let list: RunList = client.get(&path).await?;
            list.runs
        }
        None => {
            let store = Store::open_read(&args.place.db).await?;
            say!("note: no daemon is running; `tuner serve` executes the queue");
            stored_runs(&store, args.top).await?
        }
    };
    Ok(output::values(args.format, &COLUMNS, &runs)?)
}

const COLUMNS: [Column<RunView>; 6] = [
    ("run", |view| view.id.clone()),
    ("state", |view| view.state.clone()),
    ("device", |view| view.device.clone()),
    ("kernels", |view| {
        let mut seen = BTreeSet::new();
        let kernels = view.tasks.iter().map(|task| &*task.kernel);
        let distinct: Vec<&str> = kernels.filter(|name| seen.insert(*name)).collect();
        or("-", (!distinct.is_empty()).then(|| distinct.join(" ")))
    }),
    ("done", done),
    ("began", |view| {
        let began = view.started_at.as_deref().unwrap_or("-");
        began.get(..19).unwrap_or(began).replace('T', " ")
    }),
];

fn done(view: &RunView) -> String {
    match view.evals_limit {
        Some(limit) => format!("{}/{limit}", view.evals),
        None => view.evals.to_string(),
    }
}

/// Formats a run as text.
fn described(view: &RunView) -> String {
    let mut text = format!(
        "run {}: {}, {} on {}",
        view.id,
        view.state,
        done(view),
        escape::line(&view.device)
    );
    if let Some(rate) = view.rate {
        let _ = write!(text, ", {rate:.1}/s");
    }
    text.push('\n');
    if !view.message.is_empty() {
        let _ = writeln!(text, "  {}", view.message);
    }
    for note in &view.notes {
        let _ = writeln!(text, "  {note}");
    }
    for task in &view.tasks {
        let best = best(task);
        let name = escape::line(&format!("{} | {}", task.kernel, task.problem));
        let _ = writeln!(text, "{name}: {best}");
        let _ = writeln!(text, "  {}", counts(&task.verdicts));
    }
    text
}
