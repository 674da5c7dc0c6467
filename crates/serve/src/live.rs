//! In-memory state of running runs: written by the engines, read by the event streams.
//!
//! Memory does not grow with the number of results: a run's state consists of counts, the improvements of
//! its best time and its latest events. It is removed after the run or later: the command that queued a run
//! follows it, and a short run may end before that command requests its events.

use super::view::{ActivityView, RunView};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio::sync::{broadcast, watch};
use tuner_core::activity::{self, Activity, Owner};
use tuner_core::panics::lock;
use tuner_engine::{Event, TrialEvent};
use tuner_store::{CurvePoint, RunTask};

/// Maximum number of events that a slow reader may lag; older ones are dropped and reported as `lag`.
const MAX_LAG_EVENTS: usize = 1024;

/// Maximum number of finished runs whose events were never requested; older ones are dropped.
const MAX_UNREAD_RUNS: usize = 8;

/// Maximum points of a curve. A best time improves tens of times, so this is only a safety limit.
const MAX_CURVE_POINTS: usize = 4096;

/// Most notes of a run. A task has a few; this is only a safety limit.
const NOTES: usize = 1024;

/// A running run.
#[derive(Debug)]
pub(super) struct LiveRun {
    state: Mutex<LiveState>,
    /// The engine's events as JSON.
    events: broadcast::Sender<Arc<str>>,
    /// Events from the start, for the first listener.
    unheard: Mutex<Option<Unheard>>,
    stop: watch::Sender<bool>,
    /// True once the engine is done and the database has the run's end.
    over: watch::Sender<bool>,
    /// A user requested the stop, rather than the daemon's shutdown.
    asked: AtomicBool,
    /// Wall time of the engine in earlier sessions, seconds.
    spent_s: f64,
}

/// A run before its first event, and all events since.
#[derive(Debug)]
struct Unheard {
    view: RunView,
    events: broadcast::Receiver<Arc<str>>,
}

#[derive(Debug)]
struct LiveState {
    view: RunView,
    /// The engine's first event, as JSON.
    started: Option<Arc<str>>,
    began: Instant,
    fresh: u64,
    /// Owner of the activities on its candidates.
    owner: Option<Owner>,
}

impl LiveRun {
    /// Creates a run whose engine is about to begin.
    #[must_use]
    pub(super) fn new(view: RunView, spent_s: f64) -> Self {
        let (events, listener) = broadcast::channel(MAX_LAG_EVENTS);
        Self {
            unheard: Mutex::new(Some(Unheard {
                view: view.clone(),
                events: listener,
            })),
            state: Mutex::new(LiveState {
                view,
                started: None,
                began: Instant::now(),
                fresh: 0,
                owner: None,
            }),
            events,
            stop: watch::channel(false).0,
            over: watch::channel(false).0,
            asked: AtomicBool::new(false),
            spent_s,
        }
    }

    /// Applies an engine event.
    pub(super) fn take(&self, event: &Event) {
        let mut state = lock(&self.state);
        match event {
            Event::RunStarted { .. } => state.start(event),
            Event::Trial(trial) => state.trial(trial),
            Event::Note { text } => state.note(text),
            Event::RunFinished { .. } => {}
        }
        // Under the lock: a reader that takes a snapshot and then listens receives each later event exactly
        // once.
        if self.events.receiver_count() > 0 {
            let _ = self.events.send(json(event));
        }
    }

    /// Sets the owner of the activities that its view lists.
    pub(super) fn own(&self, owner: Option<Owner>) {
        lock(&self.state).owner = owner;
    }

    /// Changes the view independently of the engine's events.
    pub(super) fn edit(&self, change: impl FnOnce(&mut RunView)) {
        change(&mut lock(&self.state).view);
    }

    /// Returns the current view.
    #[must_use]
    pub(super) fn view(&self) -> RunView {
        lock(&self.state).snapshot()
    }

    /// Returns the current view, the engine's first event, and a receiver of later events. The
    /// first listener receives the view before the start and all events, unless there are too many
    /// to keep.
    #[must_use]
    pub(super) fn listen(&self) -> (RunView, Option<Arc<str>>, broadcast::Receiver<Arc<str>>) {
        let state = lock(&self.state);
        if let Some(Unheard { view, events }) = lock(&self.unheard).take()
            && events.len() <= MAX_LAG_EVENTS
        {
            return (view, None, events);
        }
        let listener = self.events.subscribe();
        (state.snapshot(), state.started.clone(), listener)
    }

    /// Returns the total wall time of its engine, seconds.
    #[must_use]
    pub(super) fn spent_s(&self) -> f64 {
        self.spent_s + lock(&self.state).began.elapsed().as_secs_f64()
    }

    /// Ends the run after the candidate on the device.
    pub(super) fn stop(&self, asked: bool) {
        self.asked.fetch_or(asked, Ordering::Relaxed);
        self.stop.send_replace(true);
    }

    /// Reports whether a user requested the end.
    #[must_use]
    pub(super) fn was_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Returns a channel that turns true when the engine is done with the run.
    #[must_use]
    pub(super) fn over(&self) -> watch::Receiver<bool> {
        self.over.subscribe()
    }

    /// Returns a channel that turns true when the run shall end.
    #[must_use]
    pub(super) fn stopping(&self) -> watch::Receiver<bool> {
        self.stop.subscribe()
    }
}

fn json(event: &Event) -> Arc<str> {
    serde_json::to_string(event).unwrap_or_default().into()
}

impl LiveState {
    fn start(&mut self, event: &Event) {
        let Event::RunStarted {
            device,
            device_kind,
            strategy,
            seed,
            tasks,
            evals,
            budget_s,
            ..
        } = event
        else {
            return;
        };
        self.started = Some(json(event));
        self.began = Instant::now();
        self.fresh = 0;
        let view = &mut self.view;
        view.evals = 0;
        view.device.clone_from(device);
        view.device_kind = Some(*device_kind);
        view.strategy = Some(strategy.clone());
        view.seed = Some(seed.to_string());
        (view.evals_limit, view.budget_s) = (*evals, *budget_s);
        view.tasks = tasks
            .iter()
            .map(|task| RunTask {
                kernel: task.kernel.clone(),
                problem: task.problem.clone(),
                valid: Some(task.valid.clone()),
                ..RunTask::default()
            })
            .collect();
    }

    fn note(&mut self, text: &str) {
        let notes = &mut self.view.notes;
        if notes.len() < NOTES && !notes.iter().any(|note| note == text) {
            notes.push(text.to_owned());
        }
    }

    fn trial(&mut self, trial: &TrialEvent) {
        self.fresh += u64::from(!trial.resumed);
        self.view.evals = trial.evals;
        self.view.clock_s = trial.clock_s;
        let Some(task) = self.view.tasks.get_mut(trial.task) else {
            return;
        };
        task.evals += u64::from(!trial.free);
        task.left = trial.left;
        *task.verdicts.entry(trial.verdict).or_insert(0) += 1;
        task.known += u64::from(trial.known && !trial.free);
        if trial.origin == "default" {
            task.default_us = trial.time_us;
            task.default_ci95_us = trial.ci95_us;
        }
        if let Some(us) = trial.time_us.filter(|_| trial.new_best) {
            // A time that was not compared at its size may be replaced by a slower one that was.
            if task.best_us.is_some_and(|best| best < us) {
                task.curve.clear();
            }
            task.best_us = Some(us);
            task.timing = trial.timing;
            task.best_config = Some(trial.config.clone());
            task.best_compared = trial.compared;
            if task.curve.len() < MAX_CURVE_POINTS {
                let evals = task.evals;
                task.curve.push(CurvePoint { evals, us });
            }
        }
    }

    fn snapshot(&self) -> RunView {
        let elapsed = self.began.elapsed().as_secs_f64();
        let mut view = self.view.clone();
        if view.state == "running" {
            view.elapsed_s = Some(elapsed);
            view.rate = Some(self.fresh as f64 / elapsed.max(1e-3));
            view.activities = self.owner.map(activities).unwrap_or_default();
        }
        view
    }
}

/// Returns the current activities of an owner.
fn activities(owner: Owner) -> Vec<ActivityView> {
    let own = |one: &Activity| one.owner == Some(owner);
    let all = activity::now().into_iter().filter(own);
    let view = |one: Activity| ActivityView {
        stage: one.verb.to_owned(),
        seconds: one.since.elapsed().as_secs_f64(),
        candidate: one.object,
    };
    all.map(view).collect()
}

/// All running runs.
#[derive(Debug, Default)]
pub(super) struct Live {
    runs: Mutex<HashMap<String, Arc<LiveRun>>>,
    /// Finished runs whose events were never requested.
    unheard: Mutex<VecDeque<(String, Arc<LiveRun>)>>,
    /// Counts changes of the API's data.
    version: AtomicU64,
    /// Candidates judged since the start, by verdict.
    verdicts: Mutex<BTreeMap<&'static str, u64>>,
}

impl Live {
    /// Adds a run.
    pub(super) fn add(&self, run: &Arc<LiveRun>) {
        let id = run.view().id;
        lock(&self.runs).insert(id, Arc::clone(run));
        self.changed();
    }

    /// Removes a run; its listeners receive the end of its events.
    pub(super) fn remove(&self, id: &str) {
        let Some(run) = self.get(id) else { return };
        if lock(&run.unheard).is_some() {
            let mut unheard = lock(&self.unheard);
            unheard.push_back((id.to_owned(), Arc::clone(&run)));
            if unheard.len() > MAX_UNREAD_RUNS {
                unheard.pop_front();
            }
        }
        // Before its listeners receive the end: they then look the run up again, in the database.
        lock(&self.runs).remove(id);
        run.over.send_replace(true);
        self.changed();
    }

    /// Removes and returns a finished run whose events were never requested.
    #[must_use]
    pub(super) fn unheard(&self, id: &str) -> Option<Arc<LiveRun>> {
        let mut unheard = lock(&self.unheard);
        let place = unheard.iter().position(|(name, _)| name == id)?;
        unheard.remove(place).map(|(_, run)| run)
    }

    /// Returns a running run.
    #[must_use]
    pub(super) fn get(&self, id: &str) -> Option<Arc<LiveRun>> {
        lock(&self.runs).get(id).cloned()
    }

    /// Reports whether no run is executing.
    #[must_use]
    pub(super) fn is_empty(&self) -> bool {
        lock(&self.runs).is_empty()
    }

    /// Returns all runs, latest first.
    #[must_use]
    pub(super) fn runs(&self) -> Vec<Arc<LiveRun>> {
        let mut runs: Vec<(String, Arc<LiveRun>)> = lock(&self.runs)
            .iter()
            .map(|(id, run)| (id.clone(), Arc::clone(run)))
            .collect();
        runs.sort_by(|(a, _), (b, _)| b.cmp(a));
        runs.into_iter().map(|(_, run)| run).collect()
    }

    /// Counts a judged candidate.
    pub(super) fn count(&self, trial: &TrialEvent) {
        if !trial.resumed {
            *lock(&self.verdicts)
                .entry(trial.verdict.name())
                .or_insert(0) += 1;
        }
        self.changed();
    }

    /// Returns candidates judged since the start, by verdict.
    #[must_use]
    pub(super) fn verdicts(&self) -> BTreeMap<&'static str, u64> {
        lock(&self.verdicts).clone()
    }

    /// Records a change of the API's data.
    pub(super) fn changed(&self) {
        self.version.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns a value that differs from earlier ones after a change.
    #[must_use]
    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests;
