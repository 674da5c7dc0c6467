//! The proof that a candidate is right: only the gate makes one, and only with one can a candidate
//! be timed.

use super::level::Level;
use tuner_core::evidence::Proof;

/// Proof that the gate ran a candidate and found what it wrote right.
///
/// ```compile_fail
/// let forged = tuner_judge::gate::Verified { level: None };
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Verified {
    /// How hard the gate looked; `None` for what a worker process has found, whose answer says so.
    level: Option<Level>,
}

impl Proof for Verified {
    fn level(&self) -> Option<&'static str> {
        self.level.map(Level::name)
    }
}

impl Verified {
    /// For [`super::verify::verify`], which has compared the results, and for the answer of a worker
    /// process, which has done so.
    pub(crate) fn checked(level: Option<Level>) -> Self {
        Self { level }
    }
}
