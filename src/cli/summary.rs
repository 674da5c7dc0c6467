//! Final report of a run: one task in full, several as a table sorted by gain.

use super::failures::Failures;
use super::terminal::LINE_WIDTH;
use super::{output, progress};
use std::fmt::Write as _;
use tuner_core::escape;
use tuner_core::record::{Compared, DeviceKind, TimingKind, assignments};
use tuner_core::units::counted;
use tuner_engine::{Best, Report, StopReason, TaskReport, TaskState, format_duration};

/// Input of the report.
pub(super) struct Summary<'r> {
    pub(super) report: &'r Report,
    pub(super) failures: &'r Failures,
    pub(super) kind: Option<DeviceKind>,
}

impl Summary<'_> {
    /// Formats the report.
    pub(super) fn text(&self) -> String {
        let report = self.report;
        let mut text = String::new();
        if let [task] = &*report.tasks {
            if report.reason != StopReason::Interrupted || task.trials() > 0 {
                task_summary(&mut text, task);
                if task.best.is_none() {
                    text.push_str(&self.failures.describe(&task.key.kernel, &task.key.problem));
                }
            }
        } else {
            text.push_str(&table(&report.tasks));
            text.push_str(&self.failures.kinds());
            let verdicts = report.verdicts();
            if !verdicts.is_empty() {
                let _ = writeln!(text, "verdicts {}", progress::counts(&verdicts));
            }
        }
        let known: u64 = report.tasks.iter().map(|task| task.known).sum();
        if known > 0 {
            let _ = writeln!(
                text,
                "{known} of {} known: judged by earlier runs (--fresh judges everything again)",
                report.evals()
            );
        }
        let clock = if self.kind == Some(DeviceKind::Replay) {
            format!(", {} of recorded time", format_duration(report.clock))
        } else {
            String::new()
        };
        let _ = writeln!(
            text,
            "run {}: {} in {}{clock}",
            report.run_id,
            counted(report.evals(), "configuration"),
            format_duration(report.elapsed),
        );
        text
    }
}

pub(super) fn task_summary(text: &mut String, task: &TaskReport) {
    let key = &task.key;
    let name = format!("{} | {} | {}", key.kernel, key.problem, key.device);
    let _ = writeln!(text, "{}", escape::line(&name));
    match &task.best {
        Some(best) => {
            let time = |us| progress::labelled(us, best.timing);
            // A result that was compared on smaller problems only may be wrong at this size.
            let label = match best.compared {
                Some(Compared::SmallerProblems) => "fastest ",
                _ => "best    ",
            };
            let _ = writeln!(text, "  {label} {}", best_text(best));
            if let Some(compared) = best.compared {
                let _ = writeln!(text, "  compared {compared}: {}", compared.describe());
            }
            if let Some(default) = task.default_us {
                // Only the search timed both.
                let protocol = match best.search_us {
                    Some(_) => " in the search",
                    None => "",
                };
                let _ = writeln!(text, "  default  {}{protocol}", time(default));
                if let Some(speedup) = task.speedup() {
                    let _ = writeln!(text, "  speed-up {speedup:.2}x{protocol}");
                }
            }
            let config = escape::line(&assignments(&best.config, " "));
            let _ = writeln!(text, "  config   {config}");
            if let Some(left) = task.left {
                let _ = writeln!(
                    text,
                    "  expected gain of further trials: < {:.1} % (90 % confidence)",
                    left * 100.0
                );
            }
        }
        None if task.state() == TaskState::NotReached => {
            // Nothing was judged, so there are no verdicts to count.
            let _ = writeln!(text, "  best     none: not reached, no trial was made");
            return;
        }
        None => {
            let _ = writeln!(text, "  best     none: no candidate passed");
        }
    }
    let _ = writeln!(text, "  verdicts {}", progress::counts(&task.verdicts));
}

/// Formats the time of the best; the time of a final comparison has its interval.
fn best_text(best: &Best) -> String {
    let time = progress::labelled(best.time_us, best.timing);
    match (best.search_us, best.ci95_us) {
        (Some(search), Some([low, high])) => format!(
            "{time} in the final comparison (95 %: {} to {}), {} in the search",
            progress::time(low),
            progress::time(high),
            progress::time(search)
        ),
        _ => time,
    }
}

/// Formats a time of a table; predictions have fewer digits, because they are not measurements.
fn time(us: Option<f64>, timing: Option<TimingKind>) -> String {
    match us {
        None => "-".to_owned(),
        Some(us) if timing == Some(TimingKind::Predicted) => {
            let digits = 2 - us.abs().max(1e-9).log10().floor() as i32;
            let scale = 10_f64.powi(digits);
            format!("~{}", progress::short_time((us * scale).round() / scale))
        }
        Some(us) => progress::short_time(us),
    }
}

/// Formats the speed-up with the interval that follows from those of both times.
fn gain_text(task: &TaskReport) -> String {
    let Some(gain) = task.speedup() else {
        return "-".to_owned();
    };
    // The interval of a final comparison is not that of the ratio, which the search measured.
    let best = task.best.as_ref().filter(|best| best.search_us.is_none());
    let best = best.and_then(|best| best.ci95_us);
    match task.default_ci95_us.zip(best) {
        Some(([low, high], [best_low, best_high])) if best_low > 0.0 => {
            format!("{gain:.2}x ({:.2}-{:.2})", low / best_high, high / best_low)
        }
        _ => format!("{gain:.2}x"),
    }
}

/// Formats the tasks, those with the largest gain first.
fn table(tasks: &[TaskReport]) -> String {
    const HEADINGS: [&str; 8] = [
        "kernel", "problem", "trials", "best", "default", "gain", "compared", "state",
    ];
    let mut sorted: Vec<&TaskReport> = tasks.iter().collect();
    let key = |task: &TaskReport| {
        (
            task.state() == TaskState::NotReached,
            -task.speedup().unwrap_or(0.0),
        )
    };
    sorted.sort_by(|a, b| {
        key(a)
            .partial_cmp(&key(b))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    let rows = sorted.into_iter().map(|task| {
        let best = task.best.as_ref();
        let timing = best.and_then(|best| best.timing);
        let compared = best.and_then(|best| best.compared);
        vec![
            task.key.kernel.clone(),
            task.key.problem.clone(),
            task.evals().to_string(),
            match best {
                None if task.trials() > 0 => "none passed".to_owned(),
                best => time(best.map(|best| best.time_us), timing),
            },
            time(task.default_us, timing),
            gain_text(task),
            compared.map_or("-".to_owned(), compared_text),
            task.state().to_string(),
        ]
    });
    output::table_within(&HEADINGS, &rows.collect::<Vec<_>>(), LINE_WIDTH)
}

fn compared_text(compared: Compared) -> String {
    match compared {
        Compared::SmallerProblems => "smaller".to_owned(),
        other => other.to_string(),
    }
}
