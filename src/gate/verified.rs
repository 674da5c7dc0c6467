//! The proof that a candidate is right: only the gate makes one, and only with one can a candidate
//! be timed.

use crate::device::replay::Outcome;
use crate::record::Verdict;

/// Proof that a candidate's results were judged right.
#[derive(Debug, Clone, PartialEq)]
pub struct Verified {
    basis: Basis,
}

/// What a [`Verified`] stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// Whoever recorded the data accepted the result; this tuner never saw it.
    Recorded,
}

impl Verified {
    /// What the proof stands on.
    #[must_use]
    pub fn basis(&self) -> Basis {
        self.basis
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
