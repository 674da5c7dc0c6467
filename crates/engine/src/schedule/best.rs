//! The best time of a task, in the order of ranks: how it was compared first, then the time.

use super::TaskState;
use crate::evaluator::{CONTENDER, Judged};
use tuner_core::judgement::Judgement;
use tuner_core::record::{Measurement, TrialRecord, rank_class};

/// A time with the rank class of its comparison; the order is that of ranks.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(super) struct BestTime {
    class: u8,
    us: f64,
}

impl BestTime {
    /// The time of a stored trial that passed.
    pub(super) fn from_trial<T: AsRef<Measurement>>(trial: &TrialRecord<T>) -> Option<Self> {
        let time = trial.measurement.as_ref()?.as_ref();
        Self::new(&trial.judgement, time)
    }

    /// The time of a judged candidate that passed.
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
    /// Whether a time is near enough to the best, or there is none yet.
    pub(super) fn may_win(&self, judged: &Judged) -> bool {
        let (Some(time), Some(best)) = (BestTime::from_judged(judged), self.best) else {
            return true;
        };
        time.class < best.class || time.us <= CONTENDER * best.us
    }

    /// Whether a candidate would be the best if its proof succeeded, and there was none yet.
    pub(super) fn needs_proof(&self, judged: &Judged) -> bool {
        let Some(time) = BestTime::from_judged(judged) else {
            return false;
        };
        let proven = BestTime { class: 0, ..time };
        judged.lacks_proof() && self.best.is_none_or(|best| proven < best)
    }

    /// Takes in a time that is told.
    pub(super) fn take_best(&mut self, time: Option<BestTime>) {
        let better = |time: &BestTime| self.best.is_none_or(|best| *time < best);
        self.best = time.filter(better).or(self.best);
    }
}
