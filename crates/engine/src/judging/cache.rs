//! Cache of judgements for candidates with equal work.

use crate::evaluator::BoxError;
use std::collections::HashMap;
use std::sync::Mutex;
use tuner_core::panics::lock;
use tuner_core::units::ContentHash;
use tuner_judge::judgement::TimedJudgement;

/// Judgements by everything that decides them: equal work is judged once.
#[derive(Default)]
pub(in super::super) struct JudgementCache(Mutex<HashMap<ContentHash, TimedJudgement>>);

impl JudgementCache {
    /// Returns the cached judgement of the same work, or else that of `judge`, which is cached if
    /// it lasts; and whether it was cached.
    pub(in super::super) fn or_judge(
        &self,
        same: &ContentHash,
        judge: impl FnOnce() -> Result<TimedJudgement, BoxError>,
    ) -> Result<(TimedJudgement, bool), BoxError> {
        if let Some(found) = lock(&self.0).get(same) {
            return Ok((found.clone(), true));
        }
        // Judged without the lock: a judgement takes up to minutes, and the others must not wait
        // for it.
        let found = judge()?;
        if found.is_lasting() {
            lock(&self.0).insert(same.clone(), found.clone());
        }
        Ok((found, false))
    }
}
