//! The proof that a candidate is right: only the gate makes one, and only with one can a candidate
//! be timed.

use crate::judgement::Judgement;
use tuner_core::record::Verdict;
use tuner_core::recorded::Outcome;

/// Proof that a candidate's results were judged right.
#[derive(Debug, Clone, PartialEq)]
pub struct Verified {
    basis: Basis,
}

/// What a [`Verified`] stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// The gate ran it and compared what it wrote.
    Checked,
    /// Whoever recorded the data accepted the result; this tuner never saw it.
    Recorded,
}

impl Verified {
    /// What the proof stands on.
    #[must_use]
    pub fn basis(&self) -> Basis {
        self.basis
    }

    /// For [`super::verify::verify`], which has compared the results.
    pub(super) fn checked() -> Self {
        Self {
            basis: Basis::Checked,
        }
    }
}

/// Takes over the judgement of a worker process, whose gate is this one.
///
/// # Errors
/// The verdict, when the candidate did not pass.
pub fn by_worker(judgement: &Judgement) -> Result<Verified, Verdict> {
    match judgement.verdict {
        Verdict::Ok => Ok(Verified::checked()),
        verdict => Err(verdict),
    }
}

/// Judges a recorded outcome: one that has a time was accepted by its recorder, and is tagged so.
///
/// # Errors
/// The recorded verdict, when the recording says that the candidate failed.
pub fn recorded(outcome: &Outcome) -> Result<Verified, Verdict> {
    match outcome {
        Outcome::Timed { .. } => Ok(Verified {
            basis: Basis::Recorded,
        }),
        Outcome::Failed { verdict, .. } => Err(*verdict),
    }
}
