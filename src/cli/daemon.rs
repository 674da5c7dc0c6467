//! Finding the daemon of a database and following its runs.

use super::events::EventLog;
use super::failures::Failures;
use super::progress::Progress;
use super::results::db_parser;
use super::{CliError, usage};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tuner_core::files;
use tuner_core::record::{DeviceKind, TaskKey};
use tuner_engine::{Best, Event, Report, StopReason, TaskReport};
use tuner_serve::client::{Client, ClientError};
use tuner_serve::view::{Health, RunView, Stopping};
use tuner_store::{DaemonRow, Store};

/// Maximum time for a restarting daemon to become reachable before its followers fail.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Time between two attempts.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// File with the daemon's token.
#[derive(Debug, clap::Args)]
pub(super) struct TokenFile {
    /// File with the daemon's token [default: the environment variable TUNER_TOKEN]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

/// Location of the queue: a database, or a remote daemon.
#[derive(Debug, clap::Args)]
pub(super) struct Place {
    /// Database of results and of the queue
    #[arg(long, value_name = "FILE", default_value = tuner_store::DEFAULT_PATH, value_parser = db_parser())]
    pub(super) db: PathBuf,

    /// A daemon elsewhere, http://HOST:PORT
    #[arg(long, value_name = "URL")]
    server: Option<String>,

    #[command(flatten)]
    token: TokenFile,
}

impl Place {
    /// Returns a client of the daemon at `--server`, or of the one that owns the database.
    pub(super) async fn daemon(&self) -> Result<Option<Client>, CliError> {
        let token = read_token(&self.token)?;
        if let Some(server) = &self.server {
            return Ok(Some(Client::new(server, token)));
        }
        match owner(&self.db).await? {
            Some(row) => reach(&row, &self.db, token).await.map(Some),
            None => Ok(None),
        }
    }
}

/// Reads the token, if any. A file or variable without a token is an error, not the absence of one.
pub(super) fn read_token(file: &TokenFile) -> Result<Option<String>, CliError> {
    let (place, text) = match &file.token_file {
        Some(path) => (path.display().to_string(), secret(path)?),
        None => match std::env::var("TUNER_TOKEN") {
            Ok(text) => ("the environment variable TUNER_TOKEN".to_owned(), text),
            Err(std::env::VarError::NotPresent) => return Ok(None),
            Err(error) => refuse!("TUNER_TOKEN: {error}"),
        },
    };
    let token = text.trim();
    if token.is_empty() {
        refuse!(
            "{place} holds no token; put one there (`openssl rand -hex 32`), or leave it out to \
             work without a token"
        );
    }
    // Other bytes cannot be sent in a header, or show that it is the wrong file.
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        refuse!(
            "{place}: a token is one line of printable ASCII characters without blanks; make one with \
             `openssl rand -hex 32`"
        );
    }
    Ok(Some(token.to_owned()))
}

/// Largest token file, bytes.
const MAX_TOKEN_FILE_BYTES: u64 = 64 << 10;

/// Reads a file that only its owner and group may read.
fn secret(path: &Path) -> Result<String, CliError> {
    use std::os::unix::fs::PermissionsExt as _;
    let unreadable = |error| {
        usage(format!(
            "{}: the token cannot be read: {error}; name a file with --token-file",
            path.display()
        ))
    };
    let facts = std::fs::metadata(path).map_err(unreadable)?;
    if facts.is_file() && facts.permissions().mode() & 0o007 != 0 {
        refuse!(
            "{0}: everybody on this machine may read the token; type `chmod 600 {0}`",
            path.display()
        );
    }
    files::read_text(path, MAX_TOKEN_FILE_BYTES).map_err(unreadable)
}

/// Returns the live daemon that owns the database; `None` if there is no database or no daemon.
pub(super) async fn owner(db: &Path) -> Result<Option<DaemonRow>, CliError> {
    if !db.is_file() {
        return Ok(None);
    }
    let store = Store::open_read(db).await?;
    let row = store.daemon().await?;
    store.close().await?;
    Ok(row.filter(|row| row.alive))
}

/// Connects to the daemon of a row and verifies that it answers.
pub(super) async fn reach(
    row: &DaemonRow,
    db: &Path,
    token: Option<String>,
) -> Result<Client, CliError> {
    let client = Client::new(&row.address, token);
    let health: Result<Health, ClientError> = client.get("/healthz").await;
    let why = match health {
        // After a crash another daemon may listen on the port stored in the row.
        Ok(health) if health.instance == row.instance => return Ok(client),
        Ok(_) => "another daemon answers there".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(anyhow::anyhow!(
        "{}: the daemon at http://{} owns this database ({}), and cannot be reached: {why}. End \
         that process, or name another file with --db",
        db.display(),
        row.address,
        row.owner
    ))?
}

/// Shows a run's progress until the run ends, and returns the final state. Ctrl-C stops the run.
pub(super) async fn follow(
    client: &Client,
    id: &str,
    events: &mut EventLog,
) -> Result<(RunView, Failures), CliError> {
    let mut shutdown = events.watch_signals(super::events::stopping)?;
    let mut display = Display::default();
    let mut lost: Option<Instant> = None;
    let mut asked = false;
    let path = format!("/api/v1/runs/{id}/events");
    loop {
        let why = match client.events(&path).await {
            Ok(mut stream) => loop {
                let next = tokio::select! {
                    next = stream.next() => next,
                    () = tuner_engine::turned(&mut shutdown), if !asked => {
                        // Only the first Ctrl-C requests the stop; then the run is followed to its end.
                        asked = true;
                        let path = format!("/api/v1/runs/{id}/stop");
                        let _: Stopping = client.post(&path, &()).await?;
                        continue;
                    }
                };
                let Some((name, data)) = next else {
                    break format!("the daemon at http://{} ended the events", client.address());
                };
                lost = None;
                if let Some(mut view) = display.take(&name, &data, events)? {
                    view.notes.retain(|note| !display.noted.contains(note));
                    let failures = display.progress.map(|progress| progress.failures);
                    return Ok((view, failures.unwrap_or_default()));
                }
            },
            // A retry does not help against a rejected request, only against a lost connection.
            Err(error @ (ClientError::Refused { .. } | ClientError::Token { .. })) => {
                return Err(error.into());
            }
            Err(error) => error.to_string(),
        };
        let since = *lost.get_or_insert_with(Instant::now);
        if since.elapsed() > RECONNECT_TIMEOUT {
            Err(anyhow::anyhow!(
                "{why}. Run {id} is in its queue and continues when it is back: `tuner status {id}`"
            ))?;
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

/// Progress display of a run in another process.
#[derive(Default)]
struct Display {
    progress: Option<Progress>,
    /// Notes that were printed.
    noted: Vec<String>,
    waiting: bool,
}

impl Display {
    /// Handles an event of the stream; returns the run when it has ended.
    fn take(
        &mut self,
        name: &str,
        data: &str,
        log: &mut EventLog,
    ) -> Result<Option<RunView>, CliError> {
        let odd = |error| anyhow::anyhow!("the daemon's events cannot be read: {error}");
        match name {
            "run_started" | "trial" | "note" | "run_finished" => {
                let event: Event = serde_json::from_str(data).map_err(odd)?;
                self.event(&event, log);
            }
            "snapshot" => {
                let view: RunView = serde_json::from_str(data).map_err(odd)?;
                self.snapshot(&view);
            }
            "end" => return Ok(Some(serde_json::from_str(data).map_err(odd)?)),
            "shutdown" => say!("the daemon is shutting down; the run continues when it restarts"),
            // `lag`: a snapshot follows.
            _ => {}
        }
        Ok(None)
    }

    fn event(&mut self, event: &Event, log: &mut EventLog) {
        match event {
            Event::RunStarted { device_kind, .. } => {
                self.progress = Some(Progress::new(*device_kind == DeviceKind::Replay));
            }
            // The start event was missed.
            Event::Trial(_) if self.progress.is_none() => return,
            Event::Note { text } if self.progress.is_some() => self.noted.push(text.clone()),
            Event::Trial(_) | Event::RunFinished { .. } | Event::Note { .. } => {}
        }
        if let Some(progress) = &mut self.progress {
            progress.show(event);
        }
        log.write(event);
    }

    fn snapshot(&mut self, view: &RunView) {
        match &mut self.progress {
            Some(progress) => progress.catch_up(view),
            None if view.state == "queued" && !self.waiting => {
                self.waiting = true;
                say!("run {} waits for {}", view.id, view.device);
            }
            None => {}
        }
    }
}

/// Converts a run's end to the engine's report.
pub(super) fn report(view: &RunView, elapsed: Duration) -> Report {
    let tasks = view.tasks.iter().map(|task| TaskReport {
        key: TaskKey {
            kernel: task.kernel.clone(),
            problem: task.problem.clone(),
            device: view.device.clone(),
        },
        best: task
            .best_us
            .zip(task.best_config.clone())
            .map(|(time_us, config)| Best {
                config,
                time_us,
                timing: task.timing,
                compared: task.best_compared,
                ci95_us: task.best_ci95_us,
                search_us: task.search_us,
            }),
        default_us: task.default_us,
        default_ci95_us: task.default_ci95_us,
        known: task.known,
        free: task
            .verdicts
            .values()
            .sum::<u64>()
            .saturating_sub(task.evals),
        exhausted: task.valid.as_deref() == Some(&task.evals.to_string()),
        verdicts: task.verdicts.clone(),
        left: task.left,
    });
    Report {
        run_id: view.id.clone(),
        reason: if view.state == "finished" {
            StopReason::Evals
        } else {
            StopReason::Interrupted
        },
        elapsed,
        clock: Duration::try_from_secs_f64(view.clock_s).unwrap_or_default(),
        tasks: tasks.collect(),
    }
}

/// Converts a failed run to this command's error.
pub(super) fn failure(view: &RunView) -> Option<CliError> {
    (view.state == "failed").then(|| {
        if view.message.starts_with("error: ") {
            CliError::Usage(view.message.clone())
        } else {
            anyhow::anyhow!("run {}: {}", view.id, view.message).into()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    /// Answers every request with a stream that has ended; counts the requests.
    async fn empty_streams(listener: tokio::net::TcpListener) {
        while let Ok((mut connection, _)) = listener.accept().await {
            let mut request = [0; 4096];
            let _ = connection.read(&mut request).await;
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
                        Content-Length: 0\r\nConnection: close\r\n\r\n";
            let _ = connection.write_all(head.as_bytes()).await;
            REQUESTS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    }

    static REQUESTS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

    #[tokio::test]
    async fn a_stream_without_events_is_asked_for_again_after_a_pause() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(empty_streams(listener));
        let client = Client::new(&address, None);
        let mut events = EventLog::open(None).unwrap();
        let following = follow(&client, "r1", &mut events);
        let followed = tokio::time::timeout(3 * RETRY_INTERVAL, following).await;
        assert!(followed.is_err(), "it waits for the daemon");
        let requests = REQUESTS.load(std::sync::atomic::Ordering::Relaxed);
        assert!((1..=4).contains(&requests), "{requests} requests");
    }
}
