//! Notes on prior knowledge, each of which fits a line.

use crate::schedule::Task;

/// Width of a note, columns.
const WIDTH: usize = 100;
/// Rank correlations from which on a source ordered the results well, or roughly.
const WELL: f64 = 0.7;
const ROUGHLY: f64 = 0.3;

/// Tells what the searches of a run know; `None` if nothing.
pub(crate) fn describe_known(tasks: &[Task]) -> Option<String> {
    let known = tasks
        .iter()
        .filter(|task| task.knowledge.names().next().is_some());
    match (tasks, known.count()) {
        (_, 0) => None,
        ([task], _) => {
            let names: Vec<String> = task.knowledge.names().map(str::to_owned).collect();
            let key = &task.key;
            let begin = format!("{} {}: the search knows ", key.kernel, key.problem);
            Some(listed(begin, &names, " (--no-knowledge: nothing)"))
        }
        (tasks, count) => Some(format!(
            "the search knows related results for {count} of {} tasks (--no-knowledge: nothing)",
            tasks.len()
        )),
    }
}

/// Tells how well what was known ordered the results, by task and source, and how many trials it
/// saved; `None` without knowledge.
pub(super) fn describe_worth(
    tasks: &[Task],
    correlations: &[Vec<f64>],
    saved: Option<u64>,
) -> Option<String> {
    let known = tasks.iter().zip(correlations);
    let known: Vec<(&Task, &Vec<f64>)> = known.filter(|(_, worth)| !worth.is_empty()).collect();
    let saved = saved.map(|trials| format!("; {trials} trials saved"));
    let saved = saved.unwrap_or_default();
    match &known[..] {
        [] => None,
        [(task, worth)] => {
            let each = task.knowledge.names().zip(worth.iter());
            let each: Vec<String> = each
                .map(|(name, worth)| format!("{name} {worth:+.2}"))
                .collect();
            let begin = format!(
                "{} {}: how well what was known ordered the results (1: the same, -1: reversed): ",
                task.key.kernel, task.key.problem
            );
            Some(listed(begin, &each, &saved))
        }
        known => {
            let best = known
                .iter()
                .map(|(_, worth)| worth.iter().copied().fold(-1.0, f64::max));
            let best: Vec<f64> = best.collect();
            let well = best.iter().filter(|worth| **worth >= WELL).count();
            let roughly = best.iter().filter(|worth| **worth >= ROUGHLY).count() - well;
            Some(format!(
                "what was known ordered the results of {well} of {} tasks well, of {roughly} roughly{saved}",
                known.len()
            ))
        }
    }
}

/// Lists the first items, as many as fit the line but at least one, and the number of the others.
fn listed(begin: String, items: &[String], end: &str) -> String {
    let rest = |shown: usize| match items.len() - shown {
        0 => String::new(),
        more => format!("; {more} more"),
    };
    let text = |shown: usize| {
        let items = items.iter().take(shown).cloned().collect::<Vec<_>>();
        format!("{begin}{}{}{end}", items.join("; "), rest(shown))
    };
    let fits = |shown: &usize| text(*shown).chars().count() <= WIDTH;
    let shown = (1..=items.len()).rev().find(fits);
    text(shown.unwrap_or(1.min(items.len())))
}

#[cfg(test)]
mod tests;
