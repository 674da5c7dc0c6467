//! One-line summary of a run's end.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use tuner_core::record::TimingKind;
use tuner_core::units::counted;
use tuner_engine::{Report, StopReason, TaskReport, TaskState};

/// Formats `all evaluations done: 12.300 us (2.10x the default)`; of several tasks, their number by
/// state and the largest gain.
pub(super) fn describe(report: &Report) -> String {
    let reason = match report.reason {
        StopReason::Evals => "all evaluations done",
        StopReason::Budget => "the budget is used up",
        StopReason::Exhausted => "every configuration is judged",
        StopReason::Converged => "converged",
        StopReason::Interrupted => "stopped on request",
    };
    let result = match &*report.tasks {
        [task] => describe_task(task),
        tasks => describe_tasks(tasks),
    };
    format!("{reason}: {result}")
}

fn describe_task(task: &TaskReport) -> String {
    let Some(best) = &task.best else {
        return match task.state() {
            TaskState::NotReached => "no trial was made".to_owned(),
            _ => "no candidate passed".to_owned(),
        };
    };
    let mut text = format!("{:.3} us", best.time_us);
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
    text
}

fn describe_tasks(tasks: &[TaskReport]) -> String {
    let mut states: BTreeMap<TaskState, usize> = BTreeMap::new();
    for task in tasks {
        *states.entry(task.state()).or_insert(0) += 1;
    }
    let states = states
        .iter()
        .map(|(state, count)| format!("{count} {state}"));
    let mut parts = vec![format!(
        "{}, {}",
        counted(tasks.len(), "task"),
        states.collect::<Vec<_>>().join(", ")
    )];
    let failed = tasks.iter().filter(|task| {
        let tried = task.state() != TaskState::NotReached;
        tried && task.best.is_none()
    });
    match failed.count() {
        0 => {}
        count => parts.push(format!("no candidate of {count} passed")),
    }
    let gains = tasks
        .iter()
        .filter_map(|task| Some((task.speedup()?, task)));
    if let Some((gain, task)) = gains.max_by(|a, b| a.0.total_cmp(&b.0)) {
        let (kernel, problem) = (&task.key.kernel, &task.key.problem);
        parts.push(format!("largest gain {gain:.2}x ({kernel} {problem})"));
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tuner_core::record::{TaskKey, Verdict};
    use tuner_engine::Best;

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
    #[test]
    fn a_task_without_a_trial_did_not_fail() {
        let mut never = report(10.0, None);
        never.reason = StopReason::Budget;
        never.tasks[0].best = None;
        never.tasks[0].default_us = None;
        let text = describe(&never);
        assert_eq!(text, "the budget is used up: no trial was made");
        never.tasks[0].verdicts.insert(Verdict::Race, 3);
        let text = describe(&never);
        assert_eq!(text, "the budget is used up: no candidate passed");
    }

    #[test]
    fn several_tasks_are_counted_and_not_listed() {
        let mut night = report(10.0, None);
        night.reason = StopReason::Budget;
        let mut task = night.tasks[0].clone();
        task.verdicts.insert(Verdict::Ok, 3);
        night.tasks = vec![task.clone(); 40];
        night.tasks[7].best.as_mut().unwrap().time_us = 5.0;
        night.tasks[8].exhausted = true;
        for untried in &mut night.tasks[30..] {
            untried.verdicts.clear();
            untried.best = None;
        }
        night.tasks[0].best = None;
        assert_eq!(
            describe(&night),
            "the budget is used up: 40 tasks, 1 converged, 29 few trials, 10 not reached; \
             no candidate of 1 passed; largest gain 4.00x (scale large)"
        );
    }
}
