//! Server-sent events. Every client has a task and a short queue. A client that stops reading does not
//! delay others and costs a few kilobytes. When it reads again, it receives the number of missed events.

use super::app::App;
use super::live::LiveRun;
use super::problem::Problem;
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;

/// Maximum number of open streams.
pub(super) const MAX_STREAMS: usize = 4096;

/// Queued chunks of a client.
const MAX_QUEUED_CHUNKS: usize = 8;

/// Interval of keep-alive comments, which keep proxies from closing an idle stream and detect
/// disconnected clients.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Shortest interval between published states of all runs.
const PUBLISH_INTERVAL: Duration = Duration::from_millis(300);

/// Polling interval of a queued run.
const QUEUE_POLL_INTERVAL: Duration = Duration::from_millis(300);

/// Maximum number of trials joined into one chunk.
const MAX_JOINED_TRIALS: usize = 256;

/// Formats an event.
fn event(name: &str, data: &str) -> String {
    // JSON has no line breaks.
    format!("event: {name}\ndata: {data}\n\n")
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// The body of a response: chunks from a task.
struct Chunks {
    chunks: mpsc::Receiver<Bytes>,
    app: Arc<App>,
}

impl futures_core::Stream for Chunks {
    type Item = Result<Bytes, std::convert::Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.chunks.poll_recv(context).map(|chunk| chunk.map(Ok))
    }
}

impl Drop for Chunks {
    fn drop(&mut self) {
        self.app.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A client. Sending fails once it disconnects, and its task then ends.
struct Client {
    chunks: mpsc::Sender<Bytes>,
}

/// The client disconnected.
struct Disconnected;

impl Client {
    async fn send(&self, text: String) -> Result<(), Disconnected> {
        self.chunks
            .send(text.into())
            .await
            .map_err(|_| Disconnected)
    }
}

/// Opens a stream; the task sends its events.
fn open<F, T>(app: &Arc<App>, task: F) -> Result<Response, Problem>
where
    F: FnOnce(Arc<App>, Client) -> T,
    T: Future<Output = Result<(), Disconnected>> + Send + 'static,
{
    if app.streams.fetch_add(1, Ordering::Relaxed) >= MAX_STREAMS {
        app.streams.fetch_sub(1, Ordering::Relaxed);
        return Err(Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            format!("{MAX_STREAMS} event streams are open; close one, or poll /api/v1/runs"),
        ));
    }
    let (sender, chunks) = mpsc::channel(MAX_QUEUED_CHUNKS);
    let work = task(Arc::clone(app), Client { chunks: sender });
    tokio::spawn(async move {
        let _: Result<(), Disconnected> = work.await;
    });
    let mut response = Response::new(Body::from_stream(Chunks {
        chunks,
        app: Arc::clone(app),
    }));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream"),
    );
    // nginx would otherwise buffer events until its buffer is full.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// Publishes the running runs after changes while a client is connected.
pub(super) async fn publish(app: Arc<App>) {
    let mut ending = app.ending.clone();
    let mut published = None;
    while !*ending.borrow() {
        let version = app.live.version();
        // The activities of running runs change between results.
        let waits = published == Some(version) && app.live.is_empty();
        if !waits && app.published.receiver_count() > 0 {
            published = Some(version);
            let runs: Vec<_> = app.live.runs().iter().map(|run| run.view()).collect();
            app.published.send_replace(json(&runs).into());
        }
        tokio::select! {
            () = tokio::time::sleep(PUBLISH_INTERVAL) => {}
            () = tuner_engine::turned(&mut ending) => {}
        }
    }
}

/// Opens `/api/v1/events`: all running runs, a few times a second after changes.
pub(super) fn open_all(app: &Arc<App>) -> Result<Response, Problem> {
    open(app, |app, client| async move {
        let mut ending = app.ending.clone();
        let mut published = app.published.subscribe();
        let runs: Vec<_> = app.live.runs().iter().map(|run| run.view()).collect();
        client.send(event("runs", &json(&runs))).await?;
        loop {
            tokio::select! {
                changed = published.changed() => {
                    if changed.is_err() {
                        return Ok(());
                    }
                    let runs = published.borrow_and_update().clone();
                    let runs = String::from_utf8_lossy(&runs).into_owned();
                    client.send(event("runs", &runs)).await?;
                }
                () = tokio::time::sleep(KEEP_ALIVE) => client.send(":\n\n".to_owned()).await?,
                () = client.chunks.closed() => return Err(Disconnected),
                () = tuner_engine::turned(&mut ending) => {
                    return client.send(event("shutdown", "{}")).await;
                }
            }
        }
    })
}

/// Opens `/api/v1/runs/{id}/events`: a snapshot, then all events of the run, then its end.
pub(super) fn open_run(app: &Arc<App>, id: String) -> Result<Response, Problem> {
    open(app, |app, client| async move {
        let mut ending = app.ending.clone();
        let mut shown = String::new();
        loop {
            let run = app.live.get(&id).or_else(|| app.live.unheard(&id));
            if let Some(run) = run {
                follow(&app, &run, &client).await?;
                shown.clear();
            }
            // It is queued, finished, or was requeued.
            let Ok(Some(view)) = app.run(&id).await else {
                return Ok(());
            };
            if view.state == "running" && app.live.get(&id).is_some() {
                continue;
            }
            let over = !matches!(view.state.as_str(), "queued" | "running");
            if over {
                return client.send(event("end", &json(&view))).await;
            }
            if *ending.borrow() {
                return client.send(event("shutdown", "{}")).await;
            }
            if shown != view.state {
                shown.clone_from(&view.state);
                client.send(event("snapshot", &json(&view))).await?;
            }
            tokio::select! {
                () = tokio::time::sleep(QUEUE_POLL_INTERVAL) => {}
                () = client.chunks.closed() => return Err(Disconnected),
                () = tuner_engine::turned(&mut ending) => {}
            }
        }
    })
}

/// Sends the events of a running run until its engine has finished.
async fn follow(app: &App, run: &LiveRun, client: &Client) -> Result<(), Disconnected> {
    let (view, started, mut events) = run.listen();
    let mut over = run.over();
    if let Some(started) = started {
        client.send(event("run_started", &started)).await?;
    }
    client.send(event("snapshot", &json(&view))).await?;
    loop {
        tokio::select! {
            received = events.recv() => match received {
                Ok(first) => {
                    let mut chunk = event(name(&first), &first);
                    // Available events are sent in one write.
                    for _ in 0..MAX_JOINED_TRIALS {
                        let Ok(next) = events.try_recv() else { break };
                        chunk.push_str(&event(name(&next), &next));
                    }
                    client.send(chunk).await?;
                }
                Err(RecvError::Lagged(missed)) => {
                    app.missed.fetch_add(missed, Ordering::Relaxed);
                    client.send(event("lag", &format!("{{\"missed\":{missed}}}"))).await?;
                    let (view, _, later) = run.listen();
                    events = later;
                    client.send(event("snapshot", &json(&view))).await?;
                }
                Err(RecvError::Closed) => return Ok(()),
            },
            () = tokio::time::sleep(KEEP_ALIVE) => client.send(":\n\n".to_owned()).await?,
            () = client.chunks.closed() => return Err(Disconnected),
            // Sent events are received first: the end is last.
            () = tuner_engine::turned(&mut over), if events.is_empty() => return Ok(()),
        }
    }
}

/// Returns the kind of an engine event from the start of its JSON.
fn name(json: &str) -> &str {
    let kind = json.strip_prefix("{\"event\":\"");
    let kind = kind.and_then(|rest| rest.split('"').next());
    // The name of an event without one.
    kind.unwrap_or("message")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use tuner_engine::{Event, StopReason};

    #[test]
    fn events_are_sent_under_their_own_names() {
        let note = Event::Note {
            text: "a \"note\"".to_owned(),
        };
        let finished = Event::RunFinished {
            run_id: "r1".to_owned(),
            reason: StopReason::Evals,
            evals: 1,
            verdicts: BTreeMap::new(),
            search_us: 0,
        };
        assert_eq!(name(&json(&note)), "note");
        assert_eq!(name(&json(&finished)), "run_finished");
        assert_eq!(name("[]"), "message");
    }
}
