//! Progress of a run: a live display on a terminal, plain lines elsewhere.
#![expect(
    clippy::indexing_slicing,
    reason = "tasks are numbered by the run that tells of them"
)]

use super::failures::Failures;
use super::terminal;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tuner_core::escape;
use tuner_core::record::{TimingKind, Verdict};
use tuner_core::units::counted;
use tuner_engine::{Event, StopReason, TrialEvent, format_duration};
use tuner_serve::view::RunView;

/// Shortest intervals of plain lines with and without news.
const NEWS: Duration = Duration::from_secs(1);
const PLAIN: Duration = Duration::from_secs(10);

/// Shows a run's events on standard error.
pub(super) struct Progress {
    live: bool,
    began: Instant,
    shown: Instant,
    evals: u64,
    fresh: u64,
    limit: Option<u64>,
    budget_s: Option<f64>,
    charged: bool,
    verdicts: BTreeMap<Verdict, u64>,
    tasks: Vec<TaskLine>,
    /// Failures so far.
    pub(super) failures: Failures,
}

/// Display state of a kernel and problem.
struct TaskLine {
    name: String,
    best_us: Option<f64>,
    timing: Option<TimingKind>,
    default_us: Option<f64>,
}

impl Progress {
    /// Creates a display; with `charged`, the device's clock counts instead of the wall clock.
    pub(super) fn new(charged: bool) -> Self {
        Self {
            live: terminal::live(),
            began: Instant::now(),
            shown: Instant::now(),
            evals: 0,
            fresh: 0,
            limit: None,
            budget_s: None,
            charged,
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
                        best_us: None,
                        timing: None,
                        default_us: None,
                    })
                    .collect();
                let device = escape::line(device);
                say!("run {run_id}: {strategy}, seed {seed}, on {device}");
                for (task, line) in tasks.iter().zip(&self.tasks) {
                    let valid = counted(&task.valid, "valid configuration");
                    say!("  {}: {valid}", line.name);
                }
                let limit = evals.map(|limit| format!("{resumed}/{limit}"));
                // An empty bar, where the limit is known.
                terminal::status(limit.unwrap_or_default(), evals.map(|_| 0.0));
                if *resumed > 0 {
                    say!("  continues after {resumed} stored results");
                }
            }
            Event::Trial(trial) => self.trial(trial),
            Event::Note { text } => say!("{text}"),
            Event::RunFinished { reason, evals, .. } => {
                terminal::status(String::new(), None);
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
            line.best_us = task.best_us;
            line.timing = task.timing;
            line.default_us = task.default_us;
        }
    }

    fn trial(&mut self, trial: &TrialEvent) {
        self.evals = trial.evals;
        self.fresh += u64::from(!trial.resumed);
        *self.verdicts.entry(trial.verdict).or_insert(0) += 1;
        self.failures.take(trial);
        let name = escape::line(&format!("{} {}", trial.kernel, trial.problem));
        if trial.origin == "default" && trial.verdict != Verdict::Ok && !trial.resumed {
            let (verdict, detail) = (trial.verdict, &trial.detail);
            say!("warning: {name}: the default configuration fails: {verdict}: {detail}");
        }
        // Another process's events do not number the tasks.
        let Some(place) = self.tasks.iter().position(|task| task.name == name) else {
            return;
        };
        let task = &mut self.tasks[place];
        task.best_us = trial.best_us;
        task.timing = task.timing.or(trial.timing);
        if trial.origin == "default" {
            task.default_us = trial.time_us;
        }
        terminal::status(
            self.short_status(trial, place),
            self.completed_fraction(trial),
        );
        if self.live {
            return;
        }
        let due = if trial.new_best { NEWS } else { PLAIN };
        if self.shown.elapsed() >= due {
            self.shown = Instant::now();
            say!("{}", self.status(trial));
        }
    }

    /// Formats one line: done of limit, best and speed-up, outcomes, rate, time left.
    fn status(&self, trial: &TrialEvent) -> String {
        let mut parts = vec![self.done()];
        parts.extend(self.tasks.iter().map(|task| self.best(task)));
        parts.push(counts(&self.verdicts));
        parts.extend(trial.left.map(left_at_most));
        parts.push(self.rate());
        if let Some(left) = self.left(self.used(trial)) {
            parts.push(format!("{} left", format_duration(left)));
        }
        if self.charged {
            let clock = Duration::try_from_secs_f64(trial.clock_s).unwrap_or(Duration::MAX);
            parts.push(format!("recorded clock {}", format_duration(clock)));
        }
        parts.join(" | ")
    }

    /// Formats a shorter line with the best first.
    fn short_status(&self, trial: &TrialEvent, task: usize) -> String {
        let mut done = self.done();
        if let Some(left) = self.left(self.used(trial)) {
            let left = Duration::from_secs(left.as_secs());
            done = format!("{done}, {} left", format_duration(left));
        }
        let mut parts = vec![done, self.best(&self.tasks[task])];
        parts.extend(trial.left.map(left_at_most));
        parts.extend([counts(&self.verdicts), self.rate()]);
        parts.join(" | ")
    }

    fn done(&self) -> String {
        match self.limit {
            Some(limit) => format!("{}/{limit}", self.evals),
            None => format!("{} done", self.evals),
        }
    }

    /// Formats the best of a task, with its name where there are several.
    fn best(&self, task: &TaskLine) -> String {
        let best = best(task.best_us, task.timing, task.default_us);
        match self.tasks.len() {
            1 => best,
            _ => format!("{} {best}", task.name),
        }
    }

    fn rate(&self) -> String {
        let elapsed = self.began.elapsed().as_secs_f64();
        format!("{:.1}/s", self.fresh as f64 / elapsed.max(1e-3))
    }

    /// Returns the used part of the budget, seconds.
    fn used(&self, trial: &TrialEvent) -> f64 {
        if self.charged {
            trial.clock_s
        } else {
            self.began.elapsed().as_secs_f64()
        }
    }

    /// Returns the completed fraction of the run, by the nearer limit.
    fn completed_fraction(&self, trial: &TrialEvent) -> Option<f64> {
        let by_evals = self
            .limit
            .map(|limit| self.evals as f64 / limit.max(1) as f64);
        let by_time = self
            .budget_s
            .map(|budget| self.used(trial) / budget.max(1e-9));
        match (by_evals, by_time) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        }
    }

    /// Estimates the wall time until the nearer limit at the current rate.
    fn left(&self, used: f64) -> Option<Duration> {
        let elapsed = self.began.elapsed().as_secs_f64();
        let by_evals = self
            .limit
            .filter(|_| self.fresh > 0)
            .map(|limit| elapsed * limit.saturating_sub(self.evals) as f64 / self.fresh as f64);
        let by_time = self
            .budget_s
            .filter(|_| used > 0.0)
            .map(|budget| (budget - used).max(0.0) * elapsed / used);
        let seconds = match (by_evals, by_time) {
            (Some(a), Some(b)) => a.min(b),
            (a, b) => a.or(b)?,
        };
        Duration::try_from_secs_f64(seconds).ok()
    }
}

/// Formats the best time of a task and its speed-up over the default.
pub(super) fn best(
    best_us: Option<f64>,
    timing: Option<TimingKind>,
    default_us: Option<f64>,
) -> String {
    let Some(best) = best_us else {
        return "none passed yet".to_owned();
    };
    let speedup = default_us.map(|default| format!(" ({:.2}x the default)", default / best));
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
