//! Ends of a run.

use super::Driver;
use crate::evaluator::{Clock, Evaluator};
use crate::event::StopReason;
use crate::schedule::Finished;
use std::time::Duration;
use tokio::time::Instant;

/// Time that candidates on the device get after the end of the budget.
pub(super) const OVERTIME: Duration = Duration::from_secs(1);

impl<E: Evaluator> Driver<'_, E> {
    /// Returns the reason to stop now.
    pub(super) fn due_stop(&self) -> Option<StopReason> {
        if *self.shutdown.borrow() {
            Some(StopReason::Interrupted)
        } else if self
            .deadline
            .is_some_and(|deadline| Instant::now() >= deadline)
        {
            Some(StopReason::Budget)
        } else if self.converged {
            Some(StopReason::Converged)
        } else {
            None
        }
    }

    /// Reports whether candidates that are still being judged are dropped. A launch on a real GPU is
    /// awaited: without its result it would count as one that never returned.
    pub(super) fn is_overdue(&self) -> bool {
        let last = self.deadline.map(|deadline| deadline + OVERTIME);
        !self.evaluator.may_hang() && last.is_some_and(|last| Instant::now() >= last)
    }

    /// Reports whether this result would exceed the budget of a charged clock.
    pub(super) fn over_budget(&self, finished: &Finished) -> bool {
        let charged = match finished {
            Finished::New(judged) => judged.charged_us,
            Finished::Stored(trial) => trial.charged_us,
            Finished::Known(known) => known.trial().charged_us,
        };
        self.evaluator.clock() == Clock::Charged
            && self.limits.budget.is_some_and(|budget| {
                Duration::from_micros(self.charged_us.saturating_add(charged)) > budget
            })
    }
}
