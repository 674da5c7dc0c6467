//! Runs under way, as memory has them: fed by the engines, read by the event streams.
//!
//! Nothing here grows with the number of results: a run's state is counts, the falls of its best
//! time and its latest events. It leaves with the run, or later: the command that queued a run follows
//! it, and a short run is over before that command has asked for its events.

use super::view::RunView;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio::sync::{broadcast, watch};
use tuner_core::panics::lock;
use tuner_engine::{Event, TrialEvent};
use tuner_store::{CurvePoint, RunTask};

/// Events that a slow reader may be behind; older ones are dropped for it, and it is told so.
const BACKLOG: usize = 1024;

/// Runs that are over and whose events nobody asked for yet; older ones are dropped.
const UNHEARD: usize = 8;

/// Points of a curve, at most. A best time falls tens of times; this is a seat belt.
const CURVE: usize = 4096;

/// A run under way.
#[derive(Debug)]
pub(super) struct LiveRun {
    state: Mutex<LiveState>,
    /// What happens, each an event of the engine as JSON.
    events: broadcast::Sender<Arc<str>>,
    /// What the first that listens is to hear: everything from the start.
    unheard: Mutex<Option<Unheard>>,
    stop: watch::Sender<bool>,
    /// Its engine is done with it, and the database says how it ended.
    over: watch::Sender<bool>,
    /// Somebody asked for the stop, rather than the daemon's own end.
    asked: AtomicBool,
    /// Wall time its engine was at work before, seconds.
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
}

impl LiveRun {
    /// A run whose engine is about to begin.
    #[must_use]
    pub(super) fn new(view: RunView, spent_s: f64) -> Self {
        let (events, listener) = broadcast::channel(BACKLOG);
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
            }),
            events,
            stop: watch::channel(false).0,
            over: watch::channel(false).0,
            asked: AtomicBool::new(false),
            spent_s,
        }
    }

    /// Takes in what the engine says.
    pub(super) fn take(&self, event: &Event) {
        let mut state = lock(&self.state);
        match event {
            Event::RunStarted { .. } => state.start(event),
            Event::Trial(trial) => state.trial(trial),
            Event::RunFinished { .. } | Event::Note { .. } => {}
        }
        // Under the lock, so that a reader that takes a snapshot and then listens misses nothing
        // and sees nothing twice.
        if self.events.receiver_count() > 0 {
            let _ = self.events.send(json(event));
        }
    }

    /// Changes what is shown, outside the engine's events.
    pub(super) fn edit(&self, change: impl FnOnce(&mut RunView)) {
        change(&mut lock(&self.state).view);
    }

    /// The run at this moment.
    #[must_use]
    pub(super) fn view(&self) -> RunView {
        lock(&self.state).snapshot()
    }

    /// The run at this moment, the engine's first event, and everything after. The first that listens
    /// gets the run before it began, and all its events, unless these are too many to be kept.
    #[must_use]
    pub(super) fn listen(&self) -> (RunView, Option<Arc<str>>, broadcast::Receiver<Arc<str>>) {
        let state = lock(&self.state);
        if let Some(Unheard { view, events }) = lock(&self.unheard).take()
            && events.len() <= BACKLOG
        {
            return (view, None, events);
        }
        let listener = self.events.subscribe();
        (state.snapshot(), state.started.clone(), listener)
    }

    /// Wall time that its engine has been at work, now and before, seconds.
    #[must_use]
    pub(super) fn spent_s(&self) -> f64 {
        self.spent_s + lock(&self.state).began.elapsed().as_secs_f64()
    }

    /// Ends the run after the candidate on the device.
    pub(super) fn stop(&self, asked: bool) {
        self.asked.fetch_or(asked, Ordering::Relaxed);
        self.stop.send_replace(true);
    }

    /// Whether somebody asked for the end.
    #[must_use]
    pub(super) fn was_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Turns true when the engine is done with the run.
    #[must_use]
    pub(super) fn over(&self) -> watch::Receiver<bool> {
        self.over.subscribe()
    }

    /// Turns true when the run shall end.
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

    fn trial(&mut self, trial: &TrialEvent) {
        self.fresh += u64::from(!trial.resumed);
        self.view.evals = trial.evals;
        self.view.clock_s = trial.clock_s;
        let Some(task) = self.view.tasks.get_mut(trial.task) else {
            return;
        };
        task.evals += 1;
        task.left = trial.left;
        *task.verdicts.entry(trial.verdict).or_insert(0) += 1;
        if trial.origin == "default" {
            task.default_us = trial.time_us;
        }
        if let Some(us) = trial.time_us.filter(|_| trial.new_best) {
            // A time that was not compared at its size gave way to a slower one that was.
            if task.best_us.is_some_and(|best| best < us) {
                task.curve.clear();
            }
            task.best_us = Some(us);
            task.timing = trial.timing;
            task.best_config = Some(trial.config.clone());
            task.best_compared = trial.compared;
            if task.curve.len() < CURVE {
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
        }
        view
    }
}

/// All runs under way.
#[derive(Debug, Default)]
pub(super) struct Live {
    runs: Mutex<HashMap<String, Arc<LiveRun>>>,
    /// Runs that are over, and whose events nobody asked for.
    unheard: Mutex<VecDeque<(String, Arc<LiveRun>)>>,
    /// Counts changes of anything that the API shows.
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

    /// Takes a run away; those that listen to it meet the end of its events.
    pub(super) fn remove(&self, id: &str) {
        let Some(run) = self.get(id) else { return };
        if lock(&run.unheard).is_some() {
            let mut unheard = lock(&self.unheard);
            unheard.push_back((id.to_owned(), Arc::clone(&run)));
            if unheard.len() > UNHEARD {
                unheard.pop_front();
            }
        }
        lock(&self.runs).remove(id);
        run.over.send_replace(true);
        self.changed();
    }

    /// The run of that name, if it is over and nobody asked for its events; it is given once.
    #[must_use]
    pub(super) fn unheard(&self, id: &str) -> Option<Arc<LiveRun>> {
        let mut unheard = lock(&self.unheard);
        let place = unheard.iter().position(|(name, _)| name == id)?;
        unheard.remove(place).map(|(_, run)| run)
    }

    /// The run of that name, if it is under way.
    #[must_use]
    pub(super) fn get(&self, id: &str) -> Option<Arc<LiveRun>> {
        lock(&self.runs).get(id).cloned()
    }

    /// All runs, latest first.
    #[must_use]
    pub(super) fn all(&self) -> Vec<Arc<LiveRun>> {
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

    /// Candidates judged since the start, by verdict.
    #[must_use]
    pub(super) fn verdicts(&self) -> BTreeMap<&'static str, u64> {
        lock(&self.verdicts).clone()
    }

    /// Notes that something the API shows has changed.
    pub(super) fn changed(&self) {
        self.version.fetch_add(1, Ordering::Relaxed);
    }

    /// Differs from an earlier value when something has changed since.
    #[must_use]
    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests;
