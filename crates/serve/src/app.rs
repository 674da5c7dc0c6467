//! State shared by all requests.

use super::Settings;
use super::conditions::Conditions;
use super::live::Live;
use super::problem::Problem;
use super::view::RunView;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};
use tuner_core::panics::lock;
use tuner_core::record::DeviceKind;
use tuner_core::settings::RunSettings;
use tuner_engine::threads::run_blocking;
use tuner_store::{RunFilter, RunId, RunRow, RunTask, Store, StoreError};

/// Connections for concurrent reads.
const READERS: usize = 4;

/// Maximum age of a cached answer while results arrive, and while no change is known (another process may
/// write to the database).
const MAX_ANSWER_AGE: Duration = Duration::from_millis(250);
const MAX_UNCHANGED_AGE: Duration = Duration::from_secs(1);

/// Maximum number of cached answers, so that arbitrary queries cannot exhaust the memory.
const MAX_CACHED_ANSWERS: usize = 256;

/// Maximum length of a cached answer, bytes.
const MAX_CACHED_BYTES: usize = 1 << 20;

/// The daemon's state.
pub(super) struct App {
    /// Write handle.
    pub(super) store: Store,
    readers: Vec<Store>,
    next_reader: AtomicUsize,
    /// Running runs.
    pub(super) live: Live,
    /// Wakes the dispatcher when the queue may have changed.
    pub(super) wake: Notify,
    /// Settings; the kernel folders are canonical.
    pub(super) settings: Settings,
    /// Random, differs with every start.
    pub(super) instance: String,
    /// Start on a monotonic clock.
    pub(super) began: Instant,
    /// True once the daemon ends.
    pub(super) ending: watch::Receiver<bool>,
    /// The running runs as JSON, published a few times a second.
    pub(super) published: watch::Sender<Bytes>,
    /// Open event streams.
    pub(super) streams: AtomicUsize,
    /// Events that slow readers missed.
    pub(super) missed: AtomicU64,
    /// Current health conditions.
    pub(super) conditions: Conditions,
    /// Responses by class of status: 2xx, 4xx, 5xx and the rest.
    pub(super) answers: [AtomicU64; 4],
    cache: Mutex<HashMap<String, Arc<Slot>>>,
}

type Slot = tokio::sync::Mutex<Option<(Instant, u64, Bytes)>>;

impl App {
    /// Creates the state of a starting daemon.
    ///
    /// # Errors
    /// The database cannot be read.
    pub(super) async fn new(
        settings: Settings,
        store: Store,
        instance: String,
        ending: watch::Receiver<bool>,
    ) -> Result<Self, StoreError> {
        let mut readers = Vec::with_capacity(READERS);
        for _ in 0..READERS {
            readers.push(Store::open_read(store.path()).await?);
        }
        Ok(Self {
            store,
            readers,
            next_reader: AtomicUsize::new(0),
            live: Live::default(),
            wake: Notify::new(),
            settings,
            instance,
            began: Instant::now(),
            ending,
            published: watch::channel(Bytes::new()).0,
            streams: AtomicUsize::new(0),
            missed: AtomicU64::new(0),
            conditions: Conditions::default(),
            answers: Default::default(),
            cache: Mutex::default(),
        })
    }

    /// Runs a read query on the next of several connections and on a separate thread.
    ///
    /// # Errors
    /// The errors of `ask`.
    pub(super) async fn read<T, F, W>(&self, ask: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(Store) -> W + Send + 'static,
        W: Future<Output = Result<T, StoreError>>,
    {
        let turn = self.next_reader.fetch_add(1, Ordering::Relaxed);
        let store = self.readers.get(turn % READERS).unwrap_or(&self.store);
        let store = store.clone();
        // A query may decode a megabyte of JSON, which must not delay the event streams.
        let handle = tokio::runtime::Handle::current();
        let answer = run_blocking("question", move || handle.block_on(ask(store))).await;
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
            // A reader that does not close in order loses no data.
            let _ = reader.clone().close().await;
        }
    }

    /// Returns the cached JSON answer of this name, or a new one if it is too old. Concurrent callers share
    /// one computation.
    ///
    /// # Errors
    /// The errors of `compute`.
    pub(super) async fn cached<T: Serialize>(
        &self,
        name: String,
        compute: impl Future<Output = Result<T, Problem>>,
    ) -> Result<Response, Problem> {
        let response = |json| ([(CONTENT_TYPE, "application/json")], json).into_response();
        let slot = slot_of(&mut lock(&self.cache), name);
        let mut slot = slot.lock().await;
        // Before the computation, so that a change during it makes this answer outdated.
        let version = self.live.version();
        if let Some((at, of, answer)) = slot.as_ref() {
            let age = at.elapsed();
            if age < MAX_ANSWER_AGE || (*of == version && age < MAX_UNCHANGED_AGE) {
                return Ok(response(answer.clone()));
            }
        }
        let answer = Bytes::from(serde_json::to_vec(&compute.await?)?);
        // Many long answers would exhaust the memory.
        if answer.len() <= MAX_CACHED_BYTES {
            *slot = Some((Instant::now(), version, answer.clone()));
        }
        Ok(response(answer))
    }

    /// Returns a run with its tasks and curves; `None` if it does not exist.
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

/// Reads a run from the database; `None` if it does not exist.
///
/// # Errors
/// The database cannot be read.
pub async fn stored_run(store: &Store, id: &str) -> Result<Option<RunView>, StoreError> {
    let filter = RunFilter {
        id: Some(id.to_owned()),
        limit: 1,
        ..RunFilter::default()
    };
    let Some(row) = store.runs(&filter).await?.pop() else {
        return Ok(None);
    };
    let known = noted(row.settings.as_deref(), KNOWN);
    let mut view = run_view(row);
    let tasks = store.run_tasks(&RunId::from_text(id)).await?;
    if !tasks.is_empty() {
        if view.device_kind == Some(DeviceKind::Replay) {
            let charged: u64 = tasks.iter().map(|task| task.charged_us).sum();
            view.clock_s = Duration::from_micros(charged).as_secs_f64();
        }
        view.tasks = tasks;
    }
    let known: Vec<KnownCount> = known.unwrap_or_default();
    for task in &mut view.tasks {
        let of_task = known.iter().find(|count| count.counts(task));
        task.known = of_task.map_or(0, |count| count.known);
    }
    Ok(Some(view))
}

/// Reads the latest runs from the database.
///
/// # Errors
/// The database cannot be read.
pub async fn stored_runs(store: &Store, limit: u32) -> Result<Vec<RunView>, StoreError> {
    let filter = RunFilter {
        limit,
        ..RunFilter::default()
    };
    let rows = store.runs(&filter).await?;
    Ok(rows.into_iter().map(run_view).collect())
}

/// Keys of a run's settings with what only its events say.
pub(super) const NOTES: &str = "notes";
pub(super) const KNOWN: &str = "known";

/// Trials of a task that earlier runs answered, as stored with the run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct KnownCount {
    kernel: String,
    problem: String,
    known: u64,
}

impl KnownCount {
    pub(super) fn new(task: &RunTask) -> Self {
        Self {
            kernel: task.kernel.clone(),
            problem: task.problem.clone(),
            known: task.known,
        }
    }

    fn counts(&self, task: &RunTask) -> bool {
        self.kernel == task.kernel && self.problem == task.problem
    }
}

/// Reads a value that was noted in a run's settings.
fn noted<T: DeserializeOwned>(settings: Option<&str>, key: &str) -> Option<T> {
    let mut settings: serde_json::Value = serde_json::from_str(settings?).ok()?;
    serde_json::from_value(settings.get_mut(key)?.take()).ok()
}

/// Converts a stored run to its view in a list.
#[must_use]
pub(super) fn run_view(row: RunRow) -> RunView {
    let notes = noted(row.settings.as_deref(), NOTES);
    let settings: RunSettings = row
        .settings
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    let request: Option<tuner_engine::job::Request> = row
        .request
        .and_then(|text| serde_json::from_str(&text).ok());
    let asked_evals = request.as_ref().and_then(|request| request.evals);
    let asked_seed = request.as_ref().map(|request| request.seed.to_string());
    RunView {
        evals: row.tasks.iter().map(|task| task.evals).sum(),
        tasks: row.tasks,
        id: row.id,
        state: row.state,
        message: row.message,
        device_kind: row.device_kind,
        device: row.device.unwrap_or(row.selector),
        strategy: row.strategy,
        seed: row.seed.or(asked_seed),
        evals_limit: settings.evals.or(asked_evals),
        budget_s: settings.budget_s,
        request,
        submitted_at: row.submitted_at,
        started_at: row.started_at,
        ended_at: row.ended_at,
        notes: notes.unwrap_or_default(),
        ..RunView::default()
    }
}

/// Returns the slot of a name. With more than [`MAX_CACHED_ANSWERS`] names all slots are dropped first.
fn slot_of(cache: &mut HashMap<String, Arc<Slot>>, name: String) -> Arc<Slot> {
    if cache.len() >= MAX_CACHED_ANSWERS && !cache.contains_key(&name) {
        cache.clear();
    }
    Arc::clone(cache.entry(name).or_default())
}

#[cfg(test)]
mod tests {
    use super::{Arc, MAX_CACHED_ANSWERS, slot_of};

    #[test]
    fn queries_of_many_names_keep_few_answers() {
        let mut cache = super::HashMap::new();
        for number in 0..3 * MAX_CACHED_ANSWERS {
            let slot = slot_of(&mut cache, number.to_string());
            assert!(Arc::ptr_eq(&slot, &slot_of(&mut cache, number.to_string())));
            assert!(cache.len() <= MAX_CACHED_ANSWERS, "{number}");
        }
    }
}
