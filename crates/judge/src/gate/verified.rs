//! Proof that a candidate is correct: only the gate constructs one, and timing requires one.

use super::level::Level;
use tuner_core::evidence::Proof;

/// Proof that the gate ran a candidate and accepted its outputs.
///
/// ```compile_fail
/// let forged = tuner_judge::gate::Verified { level: None };
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Verified {
    /// Verification level; `None` for the result of a worker process, which reports its level
    /// itself.
    level: Option<Level>,
}

impl Proof for Verified {
    fn level(&self) -> Option<&'static str> {
        self.level.map(Level::name)
    }
}

impl Verified {
    /// Constructs the proof: for [`super::verify::verify`], which has compared the results, and for the
    /// answer of a worker process, which has done so too.
    pub(crate) fn checked(level: Option<Level>) -> Self {
        Self { level }
    }
}
