//! Result of judging one candidate, with its time: the answer of a device's worker.

use crate::explanation::Explanation;
use crate::gate::Verified;
use serde::{Deserialize, Deserializer, Serialize};
use tuner_core::evidence::Measured;
use tuner_core::judgement::Judgement;
use tuner_core::record::{Measurement, Validity};
use tuner_core::units::Micros;

/// A judgement with the time measured under it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TimedJudgement {
    /// The finding.
    pub judgement: Judgement,
    /// The time, if requested and the verdict is `ok`.
    pub measured: Option<Measured>,
    /// Explanation of a predicted time.
    pub explanation: Option<Explanation>,
    /// Predicted time of a candidate that is `unchecked`: `tuner predict` shows it; it is neither
    /// ranked nor stored.
    pub unproven: Option<Micros>,
}

impl From<Judgement> for TimedJudgement {
    fn from(judgement: Judgement) -> Self {
        Self {
            judgement,
            measured: None,
            explanation: None,
            unproven: None,
        }
    }
}

impl TimedJudgement {
    /// Copies this judgement to another candidate that compiled to the same machine code.
    #[must_use]
    pub fn reused(self) -> Self {
        Self {
            measured: self.measured.map(Measured::reused),
            ..self
        }
    }

    /// Reports whether the judgement is independent of when the candidate is judged. A timeout, a dead or
    /// lost worker or full memory may be the machine's fault, and is never reused for others.
    #[must_use]
    pub fn is_lasting(&self) -> bool {
        self.judgement.verdict.facts().validity != Validity::Once
    }

    /// Deserializes the answer of a worker process, which runs this gate: the only place where a
    /// proven time comes from text.
    ///
    /// # Errors
    /// The deserializer's own.
    pub fn received<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        WireJudgement::deserialize(deserializer).map(Self::from)
    }

    /// Deserializes several answers.
    ///
    /// # Errors
    /// The deserializer's own.
    pub fn all_received<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Self>, D::Error> {
        let all = Vec::<WireJudgement>::deserialize(deserializer)?;
        Ok(all.into_iter().map(Self::from).collect())
    }
}

/// A judgement as serialized on the pipe.
#[derive(Deserialize)]
struct WireJudgement {
    judgement: Judgement,
    measured: Option<Measurement>,
    explanation: Option<Explanation>,
    unproven: Option<Micros>,
}

impl From<WireJudgement> for TimedJudgement {
    fn from(received: WireJudgement) -> Self {
        // A wrong candidate with a time is a contradiction, which the caller rejects.
        let time = received.measured;
        Self {
            measured: time.map(|time| Measured::new(&Verified::checked(None), time)),
            judgement: received.judgement,
            explanation: received.explanation,
            unproven: received.unproven,
        }
    }
}
