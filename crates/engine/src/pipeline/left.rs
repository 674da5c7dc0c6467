//! What further trials may still bring, kept with the run.

use super::Driver;
use crate::error::EngineError;
use crate::evaluator::Evaluator;
use tuner_search::LEFT_CHANCE;

impl<E: Evaluator> Driver<'_, E> {
    /// Ends the run once further trials of no task bring more than what is asked for.
    pub(super) fn look_whether_converged(&mut self) {
        if let Some(share) = self.limits.converged {
            self.converged = self.schedule.converge(share);
        }
    }

    /// Keeps the estimate of what is left to gain, where the search has one.
    pub(super) async fn note_left(&mut self) -> Result<(), EngineError> {
        let tasks = self.tasks.iter().enumerate();
        let kept = tasks.filter_map(|(at, task)| {
            Some(serde_json::json!({
                "kernel": task.key.kernel,
                "problem": task.key.problem,
                "share": self.schedule.left(at)?,
                "chance": LEFT_CHANCE,
            }))
        });
        let kept: Vec<serde_json::Value> = kept.collect();
        if !kept.is_empty() {
            let kept = serde_json::Value::from(kept);
            self.store.note_setting(&self.run, "left", &kept).await?;
        }
        Ok(())
    }
}
