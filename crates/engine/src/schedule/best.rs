//! Best time of a task, in rank order: by the comparison of its results first, then by time.

use super::TaskState;
use crate::evaluator::{CONTENDER_FACTOR, Judged};
use tuner_core::judgement::Judgement;
use tuner_core::record::{Measurement, TrialRecord, rank_class};

/// A time with the rank class of its comparison, in rank order.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(super) struct BestTime {
    class: u8,
    us: f64,
}

impl BestTime {
    /// Returns the time of a stored trial that passed.
    pub(super) fn from_trial<T: AsRef<Measurement>>(trial: &TrialRecord<T>) -> Option<Self> {
        let time = trial.measurement.as_ref()?.as_ref();
        Self::new(&trial.judgement, time)
    }

    /// Returns the time of a judged candidate that passed.
    fn from_judged(judged: &Judged) -> Option<Self> {
        Self::new(&judged.found.judgement, judged.time()?)
    }

    fn new(judgement: &Judgement, time: &Measurement) -> Option<Self> {
        judgement.is_ok().then(|| Self {
            class: rank_class(judgement.compared),
            us: time.p50.get(),
        })
    }
}

impl TaskState {
    /// Reports whether a time is close enough to the best, or there is none yet.
    pub(super) fn may_win(&self, judged: &Judged) -> bool {
        let (Some(time), Some(best)) = (BestTime::from_judged(judged), self.best) else {
            return true;
        };
        time.class < best.class || time.us <= CONTENDER_FACTOR * best.us
    }

    /// Reports whether a candidate would be the best if its proof succeeded, and has no proof yet.
    pub(super) fn needs_proof(&self, judged: &Judged) -> bool {
        let Some(time) = BestTime::from_judged(judged) else {
            return false;
        };
        let proven = BestTime { class: 0, ..time };
        judged.lacks_proof() && self.best.is_none_or(|best| proven < best)
    }

    /// Updates the best with a reported time.
    pub(super) fn take_best(&mut self, time: Option<BestTime>) {
        let better = |time: &BestTime| self.best.is_none_or(|best| *time < best);
        self.best = time.filter(better).or(self.best);
    }
}
