//! Lines of the display: running tasks and current activities.

use super::TaskStatus;
use tuner_core::activity::Activity;

/// Formats the tasks with current activities, at most `most`, each with its oldest activity; without
/// activities the task with the newest result.
pub(super) fn running(tasks: &[TaskStatus], now: &[Activity], most: usize) -> Vec<String> {
    let lines = tasks.iter().filter_map(|task| {
        let of_task = |activity: &&Activity| {
            let rest = activity.object.strip_prefix(&task.name);
            rest.is_some_and(|rest| rest.starts_with(':'))
        };
        let own: Vec<Activity> = now.iter().filter(of_task).cloned().collect();
        (!own.is_empty()).then(|| format!("{}  {} | {}", task.name, task.text, doing_here(&own)))
    });
    let lines: Vec<String> = lines.take(most).collect();
    if lines.is_empty() && now.is_empty() {
        let newest = tasks.first();
        return newest
            .map(|task| format!("{}  {}", task.name, task.text))
            .into_iter()
            .collect();
    }
    lines
}

/// Formats activities of a task without its name.
fn doing_here(own: &[Activity]) -> String {
    let short = own.iter().map(|one| Activity {
        object: match one.object.split_once(": ") {
            Some((_, configuration)) => configuration.to_owned(),
            None => one.object.clone(),
        },
        ..one.clone()
    });
    doing(&short.collect::<Vec<_>>())
}

/// Truncates a line to this number of characters, with a mark.
pub(super) fn cut(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    let kept: String = line.chars().take(width.saturating_sub(3)).collect();
    format!("{kept}...")
}

/// Formats `compiling 2: scale large: VEC=2 (3 s), judging …`: for each verb the number and the
/// oldest.
pub(in super::super) fn doing(all: &[Activity]) -> String {
    let mut verbs: Vec<&str> = Vec::new();
    for one in all {
        if !verbs.contains(&one.verb) {
            verbs.push(one.verb);
        }
    }
    let parts = verbs.into_iter().filter_map(|verb| {
        let mut same = all.iter().filter(|one| one.verb == verb);
        let first = same.next()?;
        let count = match same.count() {
            0 => String::new(),
            more => format!("{}: ", more + 1),
        };
        let time = match first.since.elapsed().as_secs() {
            0 => String::new(),
            seconds => format!(" ({seconds} s)"),
        };
        Some(format!("{verb} {count}{}{time}", first.object))
    });
    parts.collect::<Vec<_>>().join(", ")
}
