//! How a run looks while it goes on: a live bar on a terminal, plain lines elsewhere.

use super::output;
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tuner_core::record::Verdict;
use tuner_engine::{Event, StopReason, TrialEvent, format_duration};
use tuner_serve::view::RunView;

/// How often the bar is redrawn, and how often a plain line may come with and without news.
const REDRAW: Duration = Duration::from_millis(100);
const NEWS: Duration = Duration::from_secs(1);
const PLAIN: Duration = Duration::from_secs(10);

/// Shows a run's events on standard error.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    began: Instant,
    shown: Instant,
    evals: u64,
    fresh: u64,
    limit: Option<u64>,
    budget_s: Option<f64>,
    charged: bool,
    verdicts: BTreeMap<Verdict, u64>,
    tasks: Vec<TaskLine>,
}

/// One kernel and problem, as the display knows it.
struct TaskLine {
    name: String,
    best_us: Option<f64>,
    default_us: Option<f64>,
}

impl Progress {
    /// A display; `charged` says that the device's own clock counts, and not the wall's.
    pub(super) fn new(charged: bool) -> Self {
        let bar = output::stderr_is_terminal().then(|| {
            let bar = ProgressBar::new_spinner();
            bar.set_style(
                ProgressStyle::with_template("{spinner} {msg}")
                    .unwrap_or_else(|_| ProgressStyle::default_spinner()),
            );
            bar
        });
        Self {
            bar,
            began: Instant::now(),
            shown: Instant::now(),
            evals: 0,
            fresh: 0,
            limit: None,
            budget_s: None,
            charged,
            verdicts: BTreeMap::new(),
            tasks: Vec::new(),
        }
    }

    /// Takes in an event, and shows it where it is news.
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
                        name: format!("{} {}", task.kernel, task.problem),
                        best_us: None,
                        default_us: None,
                    })
                    .collect();
                self.line(&format!(
                    "run {run_id}: {strategy}, seed {seed}, on {device}"
                ));
                for task in tasks {
                    self.line(&format!(
                        "  {} {}: {} valid configurations",
                        task.kernel, task.problem, task.valid
                    ));
                }
                if *resumed > 0 {
                    self.line(&format!("  goes on after {resumed} stored results"));
                }
            }
            Event::Trial(trial) => self.trial(trial),
            Event::Note { text } => self.line(text),
            Event::RunFinished { reason, evals, .. } => {
                if let Some(bar) = &self.bar {
                    bar.finish_and_clear();
                }
                say!(
                    "{} after {} ({evals} configurations)",
                    why(*reason),
                    format_duration(self.began.elapsed())
                );
            }
        }
    }

    /// Takes in where a run is that another process drives, after events were missed.
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
            line.default_us = task.default_us;
        }
    }

    fn trial(&mut self, trial: &TrialEvent) {
        self.evals = trial.evals;
        self.fresh += u64::from(!trial.resumed);
        *self.verdicts.entry(trial.verdict).or_insert(0) += 1;
        let task = &mut self.tasks[trial.task];
        task.best_us = trial.best_us;
        if trial.origin == "default" {
            task.default_us = trial.time_us;
        }
        let due = match (&self.bar, trial.new_best) {
            (Some(_), _) => REDRAW,
            (None, true) => NEWS,
            (None, false) => PLAIN,
        };
        if self.shown.elapsed() >= due {
            self.shown = Instant::now();
            let status = self.status(trial);
            match &self.bar {
                Some(bar) => {
                    bar.set_message(status);
                    bar.tick();
                }
                None => say!("{status}"),
            }
        }
    }

    /// One line: done of limit, best and speed-up, outcomes, rate, time left.
    fn status(&self, trial: &TrialEvent) -> String {
        let elapsed = self.began.elapsed().as_secs_f64();
        let mut parts = vec![match self.limit {
            Some(limit) => format!("{}/{limit}", self.evals),
            None => format!("{} done", self.evals),
        }];
        for task in &self.tasks {
            let name = if self.tasks.len() > 1 {
                format!("{} ", task.name)
            } else {
                String::new()
            };
            parts.push(match task.best_us {
                Some(best) => format!("{name}best {}{}", time(best), task.speedup()),
                None => format!("{name}none passed yet"),
            });
        }
        parts.push(counts(&self.verdicts));
        parts.push(format!("{:.1}/s", self.fresh as f64 / elapsed.max(1e-3)));
        let used = if self.charged { trial.clock_s } else { elapsed };
        if let Some(left) = self.left(elapsed, used) {
            parts.push(format!("{} left", format_duration(left)));
        }
        if self.charged {
            let clock = Duration::try_from_secs_f64(trial.clock_s).unwrap_or(Duration::MAX);
            parts.push(format!("recorded clock {}", format_duration(clock)));
        }
        parts.join(" | ")
    }

    /// Wall time until the nearer of the two limits, at the pace so far.
    fn left(&self, elapsed: f64, used: f64) -> Option<Duration> {
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

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => say!("{text}"),
        }
    }
}

impl TaskLine {
    fn speedup(&self) -> String {
        match (self.best_us, self.default_us) {
            (Some(best), Some(default)) => format!(" ({:.2}x the default)", default / best),
            _ => String::new(),
        }
    }
}

/// `ok 12, compile_failed 3`.
pub(super) fn counts(verdicts: &BTreeMap<Verdict, u64>) -> String {
    verdicts
        .iter()
        .map(|(verdict, count)| format!("{verdict} {count}"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// A time in the unit that reads best.
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
        StopReason::Interrupted => "interrupted; everything finished is stored",
    }
}
