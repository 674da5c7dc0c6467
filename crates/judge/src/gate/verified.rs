//! The proof that a candidate is right: only the gate makes one, and only with one can a candidate
//! be timed.

use tuner_core::evidence::Proof;

/// Proof that the gate ran a candidate and found what it wrote right.
///
/// ```compile_fail
/// let forged = tuner_judge::gate::Verified { checked: () };
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Verified {
    checked: (),
}

impl Proof for Verified {}

impl Verified {
    /// For [`super::verify::verify`], which has compared the results, and for the answer of a worker
    /// process, which has done so.
    pub(crate) fn checked() -> Self {
        Self { checked: () }
    }
}
