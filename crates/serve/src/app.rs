//! What all requests share.

use super::health::Conditions;
use super::live::Live;
use super::problem::Problem;
use super::view::{PointView, RunView, TaskView};
use bytes::Bytes;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};
use tuner_core::record::DeviceKind;
use tuner_engine::fleet::Fleet;
use tuner_store::{RunFilter, RunId, RunRow, RunTask, Store, StoreError};

/// Connections that answer questions side by side.
const READERS: usize = 4;

/// How old an answer may be while results stream in, and while nothing is known to have changed
/// (another process may write to the database too).
const FRESH: Duration = Duration::from_millis(250);
const UNCHANGED: Duration = Duration::from_secs(1);

/// Answers kept; a client that invents queries cannot fill the memory.
const CACHED: usize = 256;

/// The daemon's state.
pub(super) struct App {
    /// The writing handle.
    pub(super) store: Store,
    readers: Vec<Store>,
    next_reader: AtomicUsize,
    /// Runs under way.
    pub(super) live: Live,
    /// Rung when the queue may have changed.
    pub(super) wake: Notify,
    /// Folders whose kernels and recordings requests may name, canonical.
    pub(super) folders: Vec<PathBuf>,
    /// What clients must show.
    pub(super) token: Option<String>,
    /// Only this machine can reach the listener.
    pub(super) loopback: bool,
    /// Who judges candidates, where that is not this machine.
    pub(super) fleet: Option<Arc<dyn Fleet>>,
    /// Random, differs with every start.
    pub(super) instance: String,
    /// Start, on a clock that never jumps.
    pub(super) began: Instant,
    /// Turns true when the daemon ends.
    pub(super) ending: watch::Receiver<bool>,
    /// The runs under way as JSON, published a few times a second.
    pub(super) published: watch::Sender<Bytes>,
    /// Open event streams.
    pub(super) streams: AtomicUsize,
    /// Events that slow readers missed.
    pub(super) missed: AtomicU64,
    /// What keeps it from its work.
    pub(super) conditions: Conditions,
    /// Answers by class of status: 2xx, 4xx, 5xx and the rest.
    pub(super) answers: [AtomicU64; 4],
    cache: Mutex<HashMap<String, Arc<Slot>>>,
}

type Slot = tokio::sync::Mutex<Option<(Instant, u64, Bytes)>>;

/// What a new [`App`] is made from.
pub(super) struct Parts {
    /// The writing handle.
    pub(super) store: Store,
    /// Canonical kernel folders.
    pub(super) folders: Vec<PathBuf>,
    /// What clients must show.
    pub(super) token: Option<String>,
    /// Only this machine can reach the listener.
    pub(super) loopback: bool,
    /// Random.
    pub(super) instance: String,
    /// Who judges candidates, where that is not this machine.
    pub(super) fleet: Option<Arc<dyn Fleet>>,
    /// Turns true when the daemon ends.
    pub(super) ending: watch::Receiver<bool>,
}

impl App {
    /// The state of a daemon that begins.
    ///
    /// # Errors
    /// The database cannot be read.
    pub(super) async fn new(parts: Parts) -> Result<Self, StoreError> {
        let mut readers = Vec::with_capacity(READERS);
        for _ in 0..READERS {
            readers.push(Store::open_read(parts.store.path()).await?);
        }
        Ok(Self {
            store: parts.store,
            readers,
            next_reader: AtomicUsize::new(0),
            live: Live::default(),
            wake: Notify::new(),
            folders: parts.folders,
            token: parts.token,
            loopback: parts.loopback,
            instance: parts.instance,
            fleet: parts.fleet,
            began: Instant::now(),
            ending: parts.ending,
            published: watch::channel(Bytes::new()).0,
            streams: AtomicUsize::new(0),
            missed: AtomicU64::new(0),
            conditions: Conditions::default(),
            answers: Default::default(),
            cache: Mutex::default(),
        })
    }

    /// Asks the database, on the next of a few connections and a thread of its own.
    ///
    /// # Errors
    /// Those of `ask`.
    pub(super) async fn read<T, F, W>(&self, ask: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(Store) -> W + Send + 'static,
        W: Future<Output = Result<T, StoreError>>,
    {
        let turn = self.next_reader.fetch_add(1, Ordering::Relaxed);
        let store = self.readers.get(turn % READERS).unwrap_or(&self.store);
        let store = store.clone();
        // A question may decode a megabyte of JSON: that must not hold up the event streams.
        let handle = tokio::runtime::Handle::current();
        let answer = tokio::task::spawn_blocking(move || handle.block_on(ask(store))).await;
        answer.unwrap_or_else(|error| {
            Err(StoreError::broken(
                self.store.path(),
                format!("a question was not answered: {error}"),
            ))
        })
    }

    /// Closes the reading connections.
    pub(super) async fn close_readers(&self) {
        for reader in &self.readers {
            // Nothing is lost when a reader cannot be closed in order.
            let _ = reader.clone().close().await;
        }
    }

    /// The answer under that name, or a new one where it is too old. Of many who ask at once, one
    /// computes.
    ///
    /// # Errors
    /// Those of `compute`.
    pub(super) async fn cached<F>(&self, name: String, compute: F) -> Result<Bytes, Problem>
    where
        F: Future<Output = Result<Bytes, Problem>>,
    {
        let slot = {
            let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
            if cache.len() >= CACHED && !cache.contains_key(&name) {
                cache.clear();
            }
            Arc::clone(cache.entry(name).or_default())
        };
        let mut slot = slot.lock().await;
        let version = self.live.version();
        if let Some((at, of, answer)) = slot.as_ref() {
            let age = at.elapsed();
            if age < FRESH || (*of == version && age < UNCHANGED) {
                return Ok(answer.clone());
            }
        }
        let answer = compute.await?;
        *slot = Some((Instant::now(), version, answer.clone()));
        Ok(answer)
    }

    /// A run with its tasks and curves; `None` where there is none of that name.
    ///
    /// # Errors
    /// The database cannot be read.
    pub(super) async fn run(&self, id: &str) -> Result<Option<RunView>, StoreError> {
        if let Some(live) = self.live.get(id) {
            return Ok(Some(live.view()));
        }
        let wanted = id.to_owned();
        self.read(async move |store| stored_run(&store, &wanted).await)
            .await
    }
}

/// See [`super::stored_run`].
pub(super) async fn stored_run(store: &Store, id: &str) -> Result<Option<RunView>, StoreError> {
    let filter = RunFilter {
        id: Some(id.to_owned()),
        limit: 1,
        ..RunFilter::default()
    };
    let Some(row) = store.runs(&filter).await?.pop() else {
        return Ok(None);
    };
    let mut view = run_view(row);
    let tasks = store.run_tasks(&RunId::from_text(id)).await?;
    if !tasks.is_empty() {
        if view.device_kind == Some(DeviceKind::Replay) {
            let charged: u64 = tasks.iter().map(|task| task.charged_us).sum();
            view.clock_s = Duration::from_micros(charged).as_secs_f64();
        }
        view.tasks = tasks.into_iter().map(task_view).collect();
    }
    Ok(Some(view))
}

/// A stored run as the API shows it in a list.
#[must_use]
pub(super) fn run_view(row: RunRow) -> RunView {
    let settings: serde_json::Value = row
        .settings
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    let request: Option<tuner_engine::job::Request> = row
        .request
        .and_then(|text| serde_json::from_str(&text).ok());
    let asked_evals = request.as_ref().and_then(|request| request.evals);
    let asked_seed = request.as_ref().map(|request| request.seed.to_string());
    let tasks: Vec<TaskView> = row
        .tasks
        .into_iter()
        .map(|(key, evals)| TaskView {
            kernel: key.kernel,
            problem: key.problem,
            valid: None,
            evals,
            best_us: None,
            best_config: None,
            default_us: None,
            verdicts: std::collections::BTreeMap::new(),
            left: None,
            curve: Vec::new(),
        })
        .collect();
    RunView {
        evals: tasks.iter().map(|task| task.evals).sum(),
        tasks,
        id: row.id,
        state: row.state,
        message: row.message,
        device_kind: row.device.as_ref().map(|(_, kind)| *kind),
        device: row.device.map_or(row.selector, |(name, _)| name),
        strategy: row.strategy,
        seed: row.seed.or(asked_seed),
        evals_limit: settings
            .get("evals")
            .and_then(serde_json::Value::as_u64)
            .or(asked_evals),
        budget_s: settings.get("budget_s").and_then(serde_json::Value::as_f64),
        request,
        clock_s: 0.0,
        elapsed_s: None,
        rate: None,
        notes: Vec::new(),
        submitted_at: row.submitted_at,
        started_at: row.started_at,
        ended_at: row.ended_at,
    }
}

fn task_view(task: RunTask) -> TaskView {
    TaskView {
        kernel: task.key.kernel,
        problem: task.key.problem,
        valid: None,
        evals: task.evals,
        best_us: task.curve.last().map(|point| point.us),
        best_config: task.best_config,
        default_us: task.default_us,
        verdicts: task.verdicts,
        left: None,
        curve: task
            .curve
            .iter()
            .map(|point| PointView {
                evals: point.evals,
                us: point.us,
            })
            .collect(),
    }
}
