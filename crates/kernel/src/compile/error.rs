//! Failures of the tools.

/// A failure of the tuner's tools; not the candidate's fault.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the compiler cannot work: {0}")]
pub struct CompileError(String);

impl CompileError {
    pub(super) fn new(why: String) -> Self {
        Self(why)
    }
}
