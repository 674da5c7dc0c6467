//! Progress of a run, with what the clock alone changes.

use std::time::{Duration, Instant};
use tuner_engine::format_duration;

/// Progress of a run.
#[derive(Debug, Default)]
pub(in crate::cli) struct Status {
    /// Done of limit; empty: only the activities are shown.
    pub(in crate::cli) done: String,
    /// Best, gain, outcomes and rate.
    pub(in crate::cli) details: Vec<String>,
    /// Completed fraction by trials and recorded time.
    pub(in crate::cli) part: Option<f64>,
    /// Expected end by trials and recorded time.
    pub(in crate::cli) ends: Option<Instant>,
    /// Limit on the wall clock.
    pub(in crate::cli) budget: Option<WallBudget>,
    /// Tasks, the one with the newest result first.
    pub(in crate::cli) tasks: Vec<TaskStatus>,
    /// Figures of the run as JSON, without those of the clock; null: none.
    pub(in crate::cli) json: serde_json::Value,
    /// Begin of the run.
    pub(in crate::cli) began: Option<Instant>,
}

/// A budget of wall time.
#[derive(Debug, Clone, Copy)]
pub(in crate::cli) struct WallBudget {
    pub(in crate::cli) began: Instant,
    pub(in crate::cli) length: Duration,
}

/// Progress of a task.
#[derive(Debug)]
pub(in crate::cli) struct TaskStatus {
    /// `KERNEL PROBLEM`, the begin of its activities.
    pub(in crate::cli) name: String,
    /// Trials, best time and gain.
    pub(in crate::cli) text: String,
}

impl Status {
    /// Formats the whole run in one line; `None` without a run.
    pub(super) fn line(&self) -> Option<String> {
        if self.done.is_empty() {
            return None;
        }
        let mut parts = vec![match self.left() {
            Some(left) => {
                let left = Duration::from_secs(left.as_secs());
                format!("{}, {} left", self.done, format_duration(left))
            }
            None => self.done.clone(),
        }];
        parts.extend(self.details.iter().cloned());
        Some(parts.join(" | "))
    }

    /// Returns the completed fraction, by the nearer limit.
    pub(super) fn completed(&self) -> Option<f64> {
        let by_time = self.budget.map(|WallBudget { began, length }| {
            let part = began.elapsed().as_secs_f64() / length.as_secs_f64().max(1e-9);
            part.min(1.0)
        });
        match (self.part, by_time) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        }
    }

    /// Estimates the wall time until the nearer limit.
    fn left(&self) -> Option<Duration> {
        let by_time = self
            .budget
            .map(|WallBudget { began, length }| length.saturating_sub(began.elapsed()));
        let by_rate = self
            .ends
            .map(|ends| ends.saturating_duration_since(Instant::now()));
        match (by_rate, by_time) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Returns the status as one JSON object; `None` without a run.
    pub(super) fn json(&self) -> Option<serde_json::Value> {
        let mut json = self.json.clone();
        let figures = json.get_mut("progress")?.as_object_mut()?;
        let seconds = |time: Duration| serde_json::json!(time.as_secs_f64());
        let elapsed = self.began.map(|began| seconds(began.elapsed()));
        // These keys exist, so that their order stays.
        figures.insert("elapsed_s".to_owned(), elapsed.unwrap_or_default());
        let left = self.left().map(seconds);
        figures.insert("left_s".to_owned(), left.unwrap_or_default());
        figures.insert("completed".to_owned(), serde_json::json!(self.completed()));
        Some(json)
    }
}

#[cfg(test)]
mod tests;
