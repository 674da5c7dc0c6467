//! Proofs that were postponed until every task had its first trials.

use super::Driver;
use crate::error::EngineError;
use crate::evaluator::Evaluator;
use crate::event::{Event, StopReason};

impl<E: Evaluator> Driver<'_, E> {
    /// Starts the postponed proofs at the end of a run with time left. Reports whether one is in progress.
    pub(super) fn proves_more(&mut self, stop: Option<StopReason>) -> bool {
        if matches!(stop, Some(StopReason::Budget | StopReason::Interrupted)) {
            return false;
        }
        while let Some(proof) = self.schedule.last_proof() {
            self.lanes.proofs.send(proof);
        }
        self.schedule.has_postponed_proofs()
    }

    /// Stores the results of postponed proofs.
    pub(super) async fn store_proofs(&mut self) -> Result<(), EngineError> {
        if self.settled.is_empty() {
            return Ok(());
        }
        // A proof updates the row of its trial, which must be stored before.
        self.drain().await?;
        for settled in std::mem::take(&mut self.settled) {
            let task = &self.tasks[settled.task];
            let config = task.space.values(&settled.config);
            let judgement = settled.judgement;
            self.ledger.take_proof(settled.task, &config, &judgement);
            if !judgement.is_ok() {
                let text = format!(
                    "{} {}: a trial is wrong when the timed problem is run whole, its time is withdrawn: \
                     {judgement}",
                    task.key.kernel, task.key.problem
                );
                (self.sink)(&Event::Note { text });
            }
            self.store
                .store_proof(&self.run, &task.key, &config, judgement)
                .await?;
        }
        Ok(())
    }
}
