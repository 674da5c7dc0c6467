//! Best time of a task, in rank order: by the comparison of its results first, then by time.

use super::TaskState;
use crate::evaluator::{CONTENDER_FACTOR, Judged, NOT_PROVEN, OUT_OF_BUDGET};
use tuner_core::judgement::Judgement;
use tuner_core::record::{Compared, Measurement, TrialRecord, rank_class};
use tuner_judge::gate::level::Level;

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

    /// Returns the time with the rank class of this comparison.
    pub(super) fn compared(self, compared: Option<Compared>) -> Self {
        let class = rank_class(compared);
        Self { class, ..self }
    }

    /// Returns the time of a candidate whose proof succeeded.
    pub(super) fn proven(self) -> Self {
        self.compared(Some(Compared::Whole))
    }

    /// Returns the time, microseconds.
    pub(super) fn us(self) -> f64 {
        self.us
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
        let (Some(time), Some(best)) = (BestTime::from_judged(judged), self.best()) else {
            return true;
        };
        time.class < best.class || time.us <= CONTENDER_FACTOR * best.us
    }

    /// Reports whether a candidate would be the best if its proof succeeded, and has no proof yet.
    pub(super) fn needs_proof(&self, judged: &Judged) -> bool {
        let time = BestTime::from_judged(judged);
        judged.lacks_proof() && time.is_some_and(|time| self.would_win(time))
    }

    /// Reports whether a trial of an earlier run is judged again instead of reused: its time is near
    /// the best and `remeasures` is set, or it would win without checks that a winner passes.
    pub(super) fn must_rejudge(&self, known: &TrialRecord, remeasures: bool, proves: bool) -> bool {
        let Some(time) = BestTime::from_trial(known) else {
            return false;
        };
        let near = self
            .best()
            .is_none_or(|best| time.class < best.class || time.us <= CONTENDER_FACTOR * best.us);
        let evidence = known
            .measurement
            .as_ref()
            .and_then(|time| time.evidence.as_ref());
        let gate = evidence.and_then(|evidence| evidence.gate.as_deref());
        near && (remeasures || gate == Some(Level::First.name()))
            || proves && self.would_win(time) && lacks_proof(&known.judgement)
    }

    /// Updates the best with a time whose proof is not postponed.
    pub(super) fn take_best(&mut self, time: Option<BestTime>) {
        let better = |time: &BestTime| self.proven.is_none_or(|best| *time < best);
        self.proven = time.filter(better).or(self.proven);
    }
}

/// Reports whether a stored candidate was compared in part and no whole run was tried.
pub(super) fn lacks_proof(stored: &Judgement) -> bool {
    let partly = stored
        .compared
        .is_some_and(|compared| compared != Compared::Whole);
    // A stored judgement has no field for the attempt; its detail has the reason of a missing proof.
    let tried = stored.detail.contains(NOT_PROVEN) && !stored.detail.contains(OUT_OF_BUDGET);
    partly && !tried
}

/// Returns the judgement without the remark that the run ended before the proof.
pub(super) fn without_postponement(judgement: &Judgement) -> Judgement {
    let remark = format!("{NOT_PROVEN}{OUT_OF_BUDGET}");
    let detail = judgement.detail.replace(&remark, "");
    let detail = detail.trim_end_matches("; ").to_owned();
    Judgement {
        detail,
        ..judgement.clone()
    }
}
