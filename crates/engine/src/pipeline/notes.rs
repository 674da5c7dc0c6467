//! Notes of a run: for the user during it, and in its stored settings at its end.

use super::Driver;
use crate::error::EngineError;
use crate::evaluator::{Clock, Evaluator};
use crate::event::Event;
use crate::limits::format_duration;
use std::time::Duration;
use tuner_search as evolve;
use tuner_store::TRIAL_COSTS;

impl<E: Evaluator> Driver<'_, E> {
    /// Emits a note for each task whose trials exceed its share of the budget.
    pub(super) fn note_postponed(&mut self) {
        while let Some(postponed) = self.schedule.take_postponed() {
            let key = &self.tasks[postponed.task].key;
            let took = match postponed.seconds {
                Some(seconds) => format!("a trial takes {}, more", in_seconds(seconds)),
                None => "a trial was stopped: it takes more".to_owned(),
            };
            let text = format!(
                "note: {} {}: {took} than this task's share of the budget ({}); it goes on after the \
                 others",
                key.kernel,
                key.problem,
                in_seconds(postponed.share),
            );
            (self.sink)(&Event::Note { text });
        }
    }

    /// Reports that candidates which are still being judged at the end of the budget are dropped.
    pub(super) fn note_dropped(&mut self) {
        let text = "note: what was still being judged when the budget ended is dropped: a larger --budget \
                    finishes it, and `ps` shows workers that were stopped";
        (self.sink)(&Event::Note {
            text: text.to_owned(),
        });
    }

    /// Updates the estimate of the remaining gain, if the search has one.
    pub(super) async fn note_left(&mut self) -> Result<(), EngineError> {
        let tasks = self.tasks.iter().enumerate();
        let kept = tasks.filter_map(|(at, task)| {
            Some(serde_json::json!({
                "kernel": task.key.kernel,
                "problem": task.key.problem,
                "share": self.schedule.remaining_gain(at)?,
                "chance": evolve::LEFT_CHANCE,
            }))
        });
        let kept: Vec<serde_json::Value> = kept.collect();
        if !kept.is_empty() {
            let kept = serde_json::Value::from(kept);
            self.store.note_setting(&self.run, "left", &kept).await?;
        }
        Ok(())
    }

    /// Stores the costs of trials, for the order and the plan of later runs.
    pub(super) async fn note_costs(&mut self) -> Result<(), EngineError> {
        if self.evaluator.clock() == Clock::Charged {
            return Ok(());
        }
        let tasks = self.tasks.iter().enumerate();
        let costs = tasks.filter_map(|(at, task)| {
            Some(serde_json::json!({
                "kernel": task.key.kernel,
                "problem": task.key.problem,
                "seconds": self.schedule.seconds_of_trial(at)?,
            }))
        });
        let costs: Vec<serde_json::Value> = costs.collect();
        if !costs.is_empty() {
            let costs = serde_json::Value::from(costs);
            self.store
                .note_setting(&self.run, TRIAL_COSTS, &costs)
                .await?;
        }
        Ok(())
    }
}

/// Formats seconds like a budget.
fn in_seconds(seconds: f64) -> String {
    format_duration(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}
