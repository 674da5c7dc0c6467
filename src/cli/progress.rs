//! Progress of a run: a live display on a terminal, plain lines elsewhere.

use super::failures::Failures;
use super::terminal::{self, Status, TaskStatus, WallBudget};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tuner_core::escape;
use tuner_core::record::{TimingKind, Verdict};
use tuner_core::units::counted;
use tuner_engine::{Event, StopReason, TrialEvent, format_duration};
use tuner_serve::view::RunView;
use tuner_store::RunTask;

/// Maximum number of tasks that are listed by name at the start of a run.
const LISTED_TASKS: usize = 5;

/// Shows a run's events on standard error.
pub(super) struct Progress {
    began: Instant,
    evals: u64,
    fresh: u64,
    limit: Option<u64>,
    budget_s: Option<f64>,
    charged: bool,
    /// The device's clock, seconds.
    clock_s: f64,
    verdicts: BTreeMap<Verdict, u64>,
    tasks: Vec<TaskLine>,
    /// Failures so far.
    pub(super) failures: Failures,
}

/// Display state of a kernel and problem.
struct TaskLine {
    name: String,
    trials: u64,
    /// Number, within the run, of the task's latest trial.
    last: u64,
    best_us: Option<f64>,
    timing: Option<TimingKind>,
    default_us: Option<f64>,
}

impl Progress {
    /// Creates a display; with `charged`, the device's clock counts instead of the wall clock.
    pub(super) fn new(charged: bool) -> Self {
        Self {
            began: Instant::now(),
            evals: 0,
            fresh: 0,
            limit: None,
            budget_s: None,
            charged,
            clock_s: 0.0,
            verdicts: BTreeMap::new(),
            tasks: Vec::new(),
            failures: Failures::default(),
        }
    }

    /// Handles an event, and prints news.
    pub(super) fn show(&mut self, event: &Event) {
        match event {
            Event::RunStarted {
                run_id,
                device,
                strategy,
                seed,
                tasks,
                evals,
                budget_s,
                resumed,
                ..
            } => {
                self.limit = *evals;
                self.budget_s = *budget_s;
                self.tasks = tasks
                    .iter()
                    .map(|task| TaskLine {
                        name: escape::line(&format!("{} {}", task.kernel, task.problem)),
                        trials: 0,
                        last: 0,
                        best_us: None,
                        timing: None,
                        default_us: None,
                    })
                    .collect();
                let device = escape::line(device);
                say!("run {run_id}: {strategy}, seed {seed}, on {device}");
                if tasks.len() > LISTED_TASKS {
                    say!("  {}", counted(tasks.len(), "task"));
                } else {
                    for (task, line) in tasks.iter().zip(&self.tasks) {
                        let valid = counted(&task.valid, "valid configuration");
                        say!("  {}: {valid}", line.name);
                    }
                }
                (self.evals, self.began) = (*resumed, Instant::now());
                terminal::status(self.status(None));
                if *resumed > 0 {
                    say!("  continues after {resumed} stored results");
                }
            }
            Event::Trial(trial) => self.trial(trial),
            Event::Note { text } => say!("{text}"),
            Event::RunFinished { reason, evals, .. } => {
                terminal::status(Status::default());
                say!(
                    "{} after {} ({})",
                    why(*reason),
                    format_duration(self.began.elapsed()),
                    counted(*evals, "configuration")
                );
            }
        }
    }

    /// Synchronizes with a run in another process after missed events.
    pub(super) fn catch_up(&mut self, view: &RunView) {
        self.fresh += view.evals.saturating_sub(self.evals);
        self.evals = view.evals;
        self.verdicts.clear();
        for task in &view.tasks {
            for (verdict, count) in &task.verdicts {
                *self.verdicts.entry(*verdict).or_insert(0) += count;
            }
        }
        for (line, task) in self.tasks.iter_mut().zip(&view.tasks) {
            line.trials = task.evals;
            line.best_us = task.best_us;
            line.timing = task.timing;
            line.default_us = task.default_us;
        }
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "tasks are numbered by the run that tells of them"
    )]
    fn trial(&mut self, trial: &TrialEvent) {
        (self.evals, self.clock_s) = (trial.evals, trial.clock_s);
        // Stored results of a resumed run arrive at once and would raise the rate.
        self.fresh += u64::from(!trial.resumed && !trial.free);
        *self.verdicts.entry(trial.verdict).or_insert(0) += 1;
        self.failures.take(trial);
        let name = escape::line(&format!("{} {}", trial.kernel, trial.problem));
        if trial.origin == "default" && trial.verdict != Verdict::Ok && !trial.resumed {
            let (verdict, detail) = (trial.verdict, &trial.detail);
            say!("warning: {name}: the default configuration fails: {verdict}: {detail}");
        }
        // Events of another process do not number the tasks.
        let Some(place) = self.tasks.iter().position(|task| task.name == name) else {
            return;
        };
        let evals = self.evals;
        let task = &mut self.tasks[place];
        task.trials += 1;
        task.last = evals;
        task.best_us = trial.best_us;
        task.timing = task.timing.or(trial.timing);
        if trial.origin == "default" {
            task.default_us = trial.time_us;
        }
        terminal::status(self.status(Some((trial, place))));
    }

    /// Builds the display's status, after a trial of a task if there was one.
    fn status(&self, newest: Option<(&TrialEvent, usize)>) -> Status {
        let mut tasks: Vec<&TaskLine> = self.tasks.iter().collect();
        tasks.sort_by_key(|task| std::cmp::Reverse(task.last));
        let tasks = tasks.into_iter().map(|task| TaskStatus {
            name: task.name.clone(),
            text: format!("{}, {}", counted(task.trials, "trial"), task.best()),
        });
        let wall = self.budget_s.filter(|_| !self.charged);
        let length = wall.and_then(|budget| Duration::try_from_secs_f64(budget).ok());
        let began = self.began;
        Status {
            done: self.done(),
            details: newest.map_or_else(Vec::new, |(trial, place)| self.details(trial, place)),
            part: self.completed_fraction(),
            ends: self.expected_end(),
            budget: length.map(|length| WallBudget { began, length }),
            tasks: tasks.collect(),
            json: self.json(),
            began: Some(began),
        }
    }

    /// Formats the state of the whole run: best and gain, outcomes, rate.
    #[expect(
        clippy::indexing_slicing,
        reason = "tasks are numbered by the run that tells of them"
    )]
    fn details(&self, trial: &TrialEvent, place: usize) -> Vec<String> {
        let mut parts = Vec::new();
        if self.tasks.len() > 1 {
            let tried = self.tasks.iter().filter(|task| task.trials > 0).count();
            parts.push(format!("{tried} of {} tasks tried", self.tasks.len()));
            parts.extend(self.largest_gain());
        } else {
            parts.push(self.tasks[place].best());
            parts.extend(trial.left.map(left_at_most));
            parts.push(counts(&self.verdicts));
        }
        parts.push(self.rate());
        parts
    }

    /// Formats the largest speed-up of a task.
    fn largest_gain(&self) -> Option<String> {
        let gains = self
            .tasks
            .iter()
            .filter_map(|task| Some((task.gain()?, task)));
        let (gain, task) = gains.max_by(|a, b| a.0.total_cmp(&b.0))?;
        Some(format!("largest gain {gain:.2}x ({})", task.name))
    }

    /// Returns the figures as one JSON object, with places for those of the clock.
    fn json(&self) -> serde_json::Value {
        let tasks = self
            .tasks
            .iter()
            .filter(|task| task.trials > 0)
            .map(|task| {
                serde_json::json!({
                    "task": task.name,
                    "trials": task.trials,
                    "best_us": task.best_us,
                    "default_us": task.default_us,
                    "gain": task.gain(),
                })
            });
        serde_json::json!({ "progress": {
            "elapsed_s": null,
            "evals": self.evals,
            "limit": self.limit,
            "budget_s": self.budget_s,
            "left_s": null,
            "completed": null,
            "tasks": self.tasks.len(),
            "tried": tasks.collect::<Vec<_>>(),
        }})
    }

    fn done(&self) -> String {
        match self.limit {
            Some(limit) => format!("{}/{limit}", self.evals),
            None => format!("{} done", self.evals),
        }
    }

    fn rate(&self) -> String {
        let elapsed = self.began.elapsed().as_secs_f64();
        format!("{:.1}/s", self.fresh as f64 / elapsed.max(1e-3))
    }

    /// Returns the completed fraction of the run by trials and recorded time, the nearer limit.
    fn completed_fraction(&self) -> Option<f64> {
        let by_evals = self
            .limit
            .map(|limit| self.evals as f64 / limit.max(1) as f64);
        let charged = self.budget_s.filter(|_| self.charged);
        let by_time = charged.map(|budget| self.clock_s / budget.max(1e-9));
        match (by_evals, by_time) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        }
    }

    /// Estimates the end by trials and recorded time at the current rate, the nearer limit.
    fn expected_end(&self) -> Option<Instant> {
        let elapsed = self.began.elapsed().as_secs_f64();
        let by_evals = self
            .limit
            .filter(|_| self.fresh > 0)
            .map(|limit| elapsed * limit.saturating_sub(self.evals) as f64 / self.fresh as f64);
        let by_time = self
            .budget_s
            .filter(|_| self.charged && self.clock_s > 0.0)
            // A budget of recorded time passes faster than the wall clock.
            .map(|budget| (budget - self.clock_s).max(0.0) * elapsed / self.clock_s);
        let seconds = match (by_evals, by_time) {
            (Some(a), Some(b)) => a.min(b),
            (a, b) => a.or(b)?,
        };
        Instant::now().checked_add(Duration::try_from_secs_f64(seconds).ok()?)
    }
}

impl TaskLine {
    /// Formats the best time and its speed-up over the default.
    fn best(&self) -> String {
        best_text(self.best_us, self.timing, self.gain())
    }

    /// Returns the speed-up over the default.
    fn gain(&self) -> Option<f64> {
        Some(self.default_us? / self.best_us?)
    }
}

/// Formats the best time of a task and its speed-up over the default, which the search measured.
pub(super) fn best(task: &RunTask) -> String {
    let searched = task.search_us.or(task.best_us);
    let gain = task.default_us.zip(searched);
    best_text(
        task.best_us,
        task.timing,
        gain.map(|(default, best)| default / best),
    )
}

fn best_text(best_us: Option<f64>, timing: Option<TimingKind>, gain: Option<f64>) -> String {
    let Some(best) = best_us else {
        return "none passed yet".to_owned();
    };
    let speedup = gain.map(|gain| format!(" ({gain:.2}x the default)"));
    format!(
        "best {}{}",
        labelled(best, timing),
        speedup.unwrap_or_default()
    )
}

/// Formats a time, marked if predicted.
pub(super) fn labelled(us: f64, timing: Option<TimingKind>) -> String {
    match timing {
        Some(TimingKind::Predicted) => format!("{} predicted", time(us)),
        _ => time(us),
    }
}

/// Formats `ok 12, compile_failed 3`.
pub(super) fn counts(verdicts: &BTreeMap<Verdict, u64>) -> String {
    verdicts
        .iter()
        .map(|(verdict, count)| format!("{verdict} {count}"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Formats the expected gain of further trials.
pub(super) fn left_at_most(share: f64) -> String {
    format!("gain left < {:.1} % (with 90 %)", share * 100.0)
}

/// Formats a time with four significant digits at most.
pub(super) fn short_time(us: f64) -> String {
    let (value, unit) = match us {
        us if us >= 1e6 => (us / 1e6, "s"),
        us if us >= 1e3 => (us / 1e3, "ms"),
        us => (us, "us"),
    };
    let digits = match value {
        value if value >= 100.0 => 1,
        value if value >= 10.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.digits$}");
    format!(
        "{} {unit}",
        text.trim_end_matches('0').trim_end_matches('.')
    )
}

/// Formats a time in the most readable unit.
pub(super) fn time(us: f64) -> String {
    if us >= 1e6 {
        format!("{:.3} s", us / 1e6)
    } else if us >= 1e3 {
        format!("{:.4} ms", us / 1e3)
    } else {
        format!("{us:.3} us")
    }
}

fn why(reason: StopReason) -> &'static str {
    match reason {
        StopReason::Evals => "all evaluations done",
        StopReason::Budget => "the budget is used up",
        StopReason::Exhausted => "every configuration is judged",
        StopReason::Converged => "converged: further trials bring too little",
        StopReason::Interrupted => "interrupted; everything finished is stored",
    }
}
