//! Failed candidates of a run, grouped by similar messages.

use super::terminal::LINE_WIDTH;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use tuner_core::escape;
use tuner_core::escape::shell as quoted;
use tuner_core::record::{ConfigValues, Verdict, assignments};
use tuner_core::units::counted;
use tuner_engine::TrialEvent;

/// Maximum number of kinds of failures stored for a task.
const MAX_KINDS: usize = 100;
/// Maximum number of kinds shown.
const MAX_SHOWN_KINDS: usize = 3;

/// The failures of a run's tasks.
#[derive(Debug, Default)]
pub(super) struct Failures(Vec<Failure>);

#[derive(Debug)]
struct Failure {
    kernel: String,
    problem: String,
    verdict: Verdict,
    detail: String,
    config: ConfigValues,
    count: u64,
}

/// Similar failures of all tasks.
struct Kind<'f> {
    first: &'f Failure,
    count: u64,
    tasks: BTreeSet<String>,
}

/// Returns the common form of similar messages: the text without numbers.
fn shape(detail: &str) -> String {
    let mut shape = String::with_capacity(detail.len());
    for character in detail.chars() {
        match character {
            '0'..='9' | '.' if shape.ends_with('#') => {}
            '0'..='9' => shape.push('#'),
            other => shape.push(other),
        }
    }
    shape
}

impl Failures {
    /// Adds a result.
    pub(super) fn take(&mut self, trial: &TrialEvent) {
        if trial.verdict == Verdict::Ok {
            return;
        }
        let same = self.0.iter_mut().find(|known| {
            known.kernel == trial.kernel
                && known.problem == trial.problem
                && known.verdict == trial.verdict
                && shape(&known.detail) == shape(&trial.detail)
        });
        if let Some(known) = same {
            known.count += 1;
        } else if self.task_failures(&trial.kernel, &trial.problem).count() < MAX_KINDS {
            self.0.push(Failure {
                kernel: trial.kernel.clone(),
                problem: trial.problem.clone(),
                verdict: trial.verdict,
                detail: trial.detail.clone(),
                config: trial.config.clone(),
                count: 1,
            });
        }
    }

    fn task_failures<'f>(
        &'f self,
        kernel: &'f str,
        problem: &'f str,
    ) -> impl Iterator<Item = &'f Failure> {
        let own = move |one: &&Failure| one.kernel == kernel && one.problem == problem;
        self.0.iter().filter(own)
    }

    /// Formats the first errors of a task, each with its count.
    pub(super) fn describe(&self, kernel: &str, problem: &str) -> String {
        let mut text = String::new();
        for (at, one) in self
            .task_failures(kernel, problem)
            .take(MAX_SHOWN_KINDS)
            .enumerate()
        {
            let label = if at == 0 { "first error:" } else { "another:" };
            let times = match one.count {
                1 => String::new(),
                count => format!(" ({count} times)"),
            };
            let detail = if one.detail.is_empty() { "" } else { ": " };
            let _ = writeln!(
                text,
                "  {label} {}{detail}{}{times}",
                one.verdict, one.detail
            );
        }
        match self
            .task_failures(kernel, problem)
            .skip(MAX_SHOWN_KINDS)
            .count()
        {
            0 => {}
            1 => text.push_str("  and 1 other kind of error\n"),
            more => {
                let _ = writeln!(text, "  and {more} other kinds of errors");
            }
        }
        text
    }

    /// Formats the kinds of failures of all tasks, the most frequent first, each once with an
    /// example.
    pub(super) fn kinds(&self) -> String {
        const MOST_KINDS: usize = 8;
        let mut kinds: Vec<Kind<'_>> = Vec::new();
        for one in &self.0 {
            let task = format!("{} {}", one.kernel, one.problem);
            let same = kinds.iter_mut().find(|kind| {
                let first = kind.first;
                first.verdict == one.verdict && shape(&first.detail) == shape(&one.detail)
            });
            match same {
                Some(kind) => {
                    kind.count += one.count;
                    kind.tasks.insert(task);
                }
                None => kinds.push(Kind {
                    first: one,
                    count: one.count,
                    tasks: BTreeSet::from([task]),
                }),
            }
        }
        kinds.sort_by_key(|kind| std::cmp::Reverse(kind.count));
        let mut text = String::new();
        // Paths are not wrapped, so that they can be copied.
        let wrapped = textwrap::Options::new(LINE_WIDTH)
            .subsequent_indent("  ")
            .break_words(false)
            .word_splitter(textwrap::WordSplitter::NoHyphenation);
        for kind in kinds.iter().take(MOST_KINDS) {
            let one = kind.first;
            let detail = if one.detail.is_empty() { "" } else { ": " };
            let first = escape::line(&format!("{}{detail}{}", one.verdict, one.detail));
            let task = escape::line(&format!("{} {}", one.kernel, one.problem));
            let more = match kind.tasks.len() {
                1 => String::new(),
                tasks => format!(" and {}", counted(tasks - 1, "other task")),
            };
            let first = format!("{} {first}", counted(kind.count, "time"));
            for line in textwrap::wrap(&first, &wrapped) {
                let _ = writeln!(text, "{line}");
            }
            let _ = writeln!(text, "  in {task}{more}");
        }
        match kinds.len().saturating_sub(MOST_KINDS) {
            0 => {}
            more => {
                let _ = writeln!(text, "and {more} rarer kinds of failures");
            }
        }
        text
    }

    /// Formats `--config …` for the first error of a task.
    pub(super) fn config(&self, kernel: &str, problem: &str) -> Option<String> {
        let first = self.task_failures(kernel, problem).next()?;
        let config = assignments(&first.config, ",");
        (!config.is_empty()).then(|| format!(" --config {}", quoted(&config)))
    }
}

#[cfg(test)]
mod tests;
