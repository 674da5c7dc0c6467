//! What was found of candidates, kept for those that come to the same.

use crate::evaluator::BoxError;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use tuner_core::units::ContentHash;
use tuner_judge::judgement::TimedJudgement;

/// What is known of candidates by what decides it: equal work is judged once.
#[derive(Default)]
pub(in super::super) struct Known(Mutex<HashMap<ContentHash, TimedJudgement>>);

impl Known {
    /// What is known of the same work, marked as used again, or else what `judge` finds, which is
    /// remembered if it lasts.
    pub(in super::super) fn or_judge(
        &self,
        same: &ContentHash,
        judge: impl FnOnce() -> Result<TimedJudgement, BoxError>,
    ) -> Result<TimedJudgement, BoxError> {
        if let Some(found) = self.get(same) {
            return Ok(found.reused());
        }
        self.judge_anew(same, judge)
    }

    /// The same without the mark.
    pub(in super::super) fn or_judge_unmarked(
        &self,
        same: &ContentHash,
        judge: impl FnOnce() -> Result<TimedJudgement, BoxError>,
    ) -> Result<TimedJudgement, BoxError> {
        self.get(same)
            .map_or_else(|| self.judge_anew(same, judge), Ok)
    }

    fn get(&self, same: &ContentHash) -> Option<TimedJudgement> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(same).cloned()
    }

    fn judge_anew(
        &self,
        same: &ContentHash,
        judge: impl FnOnce() -> Result<TimedJudgement, BoxError>,
    ) -> Result<TimedJudgement, BoxError> {
        let found = judge()?;
        if found.is_lasting() {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            known.insert(same.clone(), found.clone());
        }
        Ok(found)
    }
}
