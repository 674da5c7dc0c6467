//! One-line summary of a run's end.

use std::fmt::Write as _;
use tuner_core::record::TimingKind;
use tuner_engine::{Report, StopReason};

/// Formats `all evaluations done: 12.300 us (2.10x the default)`; with several tasks, each with its name.
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
                if let Some(speedup) = task.speedup() {
                    // The final comparison does not time the default.
                    let protocol = match best.search_us {
                        Some(_) => " in the search",
                        None => "",
                    };
                    let _ = write!(text, " ({speedup:.2}x the default{protocol})");
                }
            }
            None => text.push_str(" no candidate passed"),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tuner_core::record::TaskKey;
    use tuner_engine::{Best, TaskReport};

    /// Returns a report of one task with a default of 20 us.
    fn report(time_us: f64, search_us: Option<f64>) -> Report {
        let task = TaskReport {
            key: TaskKey {
                kernel: "scale".to_owned(),
                problem: "large".to_owned(),
                device: "gpu".to_owned(),
            },
            best: Some(Best {
                config: Vec::new(),
                time_us,
                timing: Some(TimingKind::Measured),
                compared: None,
                ci95_us: None,
                search_us,
            }),
            default_us: Some(20.0),
            default_ci95_us: None,
            known: 0,
            free: 0,
            exhausted: false,
            verdicts: Default::default(),
            left: None,
        };
        Report {
            run_id: "r1".to_owned(),
            reason: StopReason::Evals,
            elapsed: Duration::ZERO,
            clock: Duration::ZERO,
            tasks: vec![task],
        }
    }

    #[test]
    fn the_ratio_is_of_times_of_one_protocol() {
        assert_eq!(
            describe(&report(10.0, None)),
            "all evaluations done: 10.000 us (2.00x the default)"
        );
        // The final comparison measured at a lower clock.
        assert_eq!(
            describe(&report(12.5, Some(10.0))),
            "all evaluations done: 12.500 us (2.00x the default in the search)"
        );
    }
}
