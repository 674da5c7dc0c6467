//! One-line summary of a run's end.

use std::fmt::Write as _;
use tuner_core::record::TimingKind;
use tuner_engine::{Report, StopReason};

/// Formats `all evaluations done: 12.300 us (2.10x the default)`; of several tasks, each with its
/// name.
pub(super) fn describe(report: &Report) -> String {
    let mut text = match report.reason {
        StopReason::Evals => "all evaluations done",
        StopReason::Budget => "the budget is used up",
        StopReason::Exhausted => "every configuration is judged",
        StopReason::Converged => "converged",
        StopReason::Interrupted => "stopped on request",
    }
    .to_owned();
    for (number, task) in report.tasks.iter().enumerate() {
        let separator = if number == 0 { ":" } else { ";" };
        text.push_str(separator);
        if report.tasks.len() > 1 {
            let _ = write!(text, " {} {}", task.key.kernel, task.key.problem);
        }
        match &task.best {
            Some(best) => {
                let _ = write!(text, " {:.3} us", best.time_us);
                if best.timing == Some(TimingKind::Predicted) {
                    text.push_str(" predicted");
                }
                if let Some(default) = task.default_us {
                    let _ = write!(text, " ({:.2}x the default)", default / best.time_us);
                }
            }
            None => text.push_str(" no candidate passed"),
        }
    }
    text
}
