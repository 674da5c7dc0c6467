//! `tuner submit`: queues a run for the daemon.

use super::daemon::{self, TokenFile};
use super::results::{block_on, db_parser};
use super::wanted::RunArgs;
use super::{CliError, CommandResult, output};
use std::path::{Path, PathBuf};
use tuner_engine::job;
use tuner_serve::client::Client;
use tuner_serve::view::{RunView, Submitted};
use tuner_store as store;
use tuner_store::{JobState, NewJob, RunFilter, RunId, Store, StoreError};

/// Submit a run to the daemon's queue
///
/// Prints the run's name. The queue is kept in the database: a submitted run is executed even if the
/// daemon is restarted, or started later.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tuner submit gemm_f32 --budget 2h
  tuner submit --device replay:conv2d_A100.json.gz --evals 200 --seed 1
  tuner submit gemm_f32 --evals 500 --server http://gpu7:7878")]
pub(crate) struct Args {
    #[command(flatten)]
    wanted: RunArgs,

    /// Database of results and of the queue
    #[arg(long, value_name = "FILE", default_value = store::DEFAULT_PATH, value_parser = db_parser())]
    db: PathBuf,

    /// A daemon elsewhere, http://HOST:PORT; kernels are then its own, by name
    #[arg(long, value_name = "URL")]
    server: Option<String>,

    #[command(flatten)]
    token: TokenFile,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> CommandResult {
    let id = block_on(async {
        match &args.server {
            Some(server) => remote(args, server).await,
            None => local(args).await,
        }
    })?;
    output::result(&id)
}

async fn remote(args: &Args, server: &str) -> Result<String, CliError> {
    let client = Client::new(server, daemon::read_token(&args.token)?);
    let submitted: Submitted = client.post("/api/v1/runs", &args.wanted.request()?).await?;
    Ok(submitted.id)
}

async fn local(args: &Args) -> Result<String, CliError> {
    let folder = std::env::current_dir()?;
    let request = job::absolute(&args.wanted.request()?, &folder)?;
    let owner = daemon::owner(&args.db).await?;
    let id = enqueue(&args.db, &request, &folder).await?;
    match owner {
        Some(row) => ring(&row.address, &id).await,
        None => say!(
            "note: no daemon is running; start one with `tuner serve --db {}`",
            args.db.display()
        ),
    }
    Ok(id)
}

/// Adds a request with absolute paths to the database's queue.
pub(super) async fn enqueue(
    db: &Path,
    request: &job::Request,
    folder: &Path,
) -> Result<String, CliError> {
    let new = NewJob {
        device: job::device_key(request)?,
        request: serde_json::to_string(request)?,
        folder: Some(folder.to_string_lossy().into_owned()),
    };
    let store = Store::open(db).await?;
    let id = store.enqueue(new).await?;
    store.close().await?;
    Ok(id.to_string())
}

/// Requeues the latest unfinished run with the same kernels, device and seed; `None`, after a
/// message, without one.
pub(super) async fn take_up(db: &Path, request: &job::Request) -> Result<Option<String>, CliError> {
    let store = Store::open(db).await?;
    let found = find_open(&store, request).await?;
    store.close().await?;
    if found.is_none() {
        say!("note: no unfinished run of the same kernels, device and seed: a new one begins");
    }
    Ok(found)
}

async fn find_open(store: &Store, request: &job::Request) -> Result<Option<String>, StoreError> {
    let filter = RunFilter {
        limit: 1000,
        ..RunFilter::default()
    };
    for run in store.runs(&filter).await? {
        let asked: Option<job::Request> = run
            .request
            .and_then(|text| serde_json::from_str(&text).ok());
        let same = asked.is_some_and(|asked| {
            asked.kernels == request.kernels
                && asked.device == request.device
                && asked.problems == request.problems
                && asked.seed == request.seed
        });
        if !same || run.state == "finished" {
            continue;
        }
        let id = RunId::from_text(&run.id);
        // A run that is queued or in progress keeps its place in the queue.
        if matches!(run.state.as_str(), "stopped" | "failed") {
            store.leave_job(&id, JobState::Queued, "", 0.0).await?;
        }
        return Ok(Some(run.id));
    }
    Ok(None)
}

/// Notifies the daemon of a queue change. Best effort: the daemon also polls every half second.
async fn ring(address: &str, id: &str) {
    let client = Client::new(address, std::env::var("TUNER_TOKEN").ok());
    let _: Result<RunView, _> = client.get(&format!("/api/v1/runs/{id}")).await;
}
