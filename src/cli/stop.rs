//! `tuner stop`: stops runs of the daemon.

use super::daemon::{self, Place};
use super::results::block_on;
use super::{CliError, CommandResult, output};
use tuner_serve::client::Client;
use tuner_serve::view::{RunList, Stopping};
use tuner_store::{RunId, Store};

/// Stop runs and keep their results
///
/// A queued run leaves the queue; a running one ends after the candidate on the device.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tuner stop 20260301T120000000-1a2b3c
  tuner stop --all
  tuner stop --offline 20260301T120000000-1a2b3c   # where the daemon does not start any more")]
pub(crate) struct Args {
    /// Runs, as `tuner status` names them
    #[arg(value_name = "RUN", required_unless_present = "all")]
    runs: Vec<String>,

    /// Stop all runs
    #[arg(long, conflicts_with = "runs")]
    all: bool,

    /// Without a daemon: remove interrupted runs from the queue
    #[arg(long, conflicts_with_all = ["all", "server"])]
    offline: bool,

    #[command(flatten)]
    place: Place,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> CommandResult {
    let text = block_on(async {
        if args.offline {
            return offline(args).await;
        }
        match args.place.daemon().await? {
            Some(client) => by_daemon(args, &client).await,
            None if args.all => refuse!("no daemon runs; name the runs that shall leave the queue"),
            None => cancelled(args, false).await,
        }
    })?;
    output::result(&text)
}

async fn by_daemon(args: &Args, client: &Client) -> Result<String, CliError> {
    let mut text = String::new();
    let runs = if args.all {
        open(client).await?
    } else {
        args.runs.clone()
    };
    for id in &runs {
        let path = format!("/api/v1/runs/{id}/stop");
        let stopping: Stopping = client.post(&path, &()).await?;
        text.push_str(&said(&stopping.id, &stopping.state));
    }
    Ok(if text.is_empty() {
        "no run to stop\n".to_owned()
    } else {
        text
    })
}

/// Returns the names of all queued and running runs.
async fn open(client: &Client) -> Result<Vec<String>, CliError> {
    let mut ids = Vec::new();
    for state in ["queued", "running"] {
        let mut before = String::new();
        loop {
            let path = format!("/api/v1/runs?state={state}{before}");
            let list: RunList = client.get(&path).await?;
            ids.extend(
                list.runs
                    .into_iter()
                    // Others are runs that `tuner run` started itself: the daemon cannot stop them.
                    .filter(|run| run.request.is_some())
                    .map(|run| run.id),
            );
            match list.next {
                Some(next) => before = format!("&before={next}"),
                None => break,
            }
        }
    }
    Ok(ids)
}

async fn offline(args: &Args) -> Result<String, CliError> {
    if let Some(row) = daemon::owner(&args.place.db).await? {
        refuse!(
            "the daemon at {} is alive and stops its runs itself; leave --offline out",
            row.address
        );
    }
    cancelled(args, true).await
}

/// Removes the runs from the queue; with `begun`, also those marked running in the database.
async fn cancelled(args: &Args, begun: bool) -> Result<String, CliError> {
    let store = Store::open(&args.place.db).await?;
    let mut text = String::new();
    for id in &args.runs {
        let done = store.cancel_job(&RunId::from_text(id), begun).await;
        if !done? {
            let why = if begun {
                format!("run `{id}` neither waits nor is under way")
            } else {
                format!("no daemon runs, and run `{id}` is not queued")
            };
            refuse!("{why}; `tuner status` lists the runs");
        }
        text.push_str(&said(id, "stopped"));
    }
    store.close().await?;
    Ok(text)
}

fn said(id: &str, state: &str) -> String {
    match state {
        "running" => format!("{id}: ends after the candidate on the device\n"),
        state => format!("{id}: {state}\n"),
    }
}
