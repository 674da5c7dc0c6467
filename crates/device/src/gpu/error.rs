//! Errors of the driver, and their meaning for the candidate.

pub mod code;

use tuner_core::judgement::Judgement;
use tuner_core::record::Verdict;

/// A driver call that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{call}: {name} ({code}){log}", name = self.name())]
pub struct CudaError {
    /// The driver function.
    pub call: &'static str,
    /// Its `CUresult`. A plain number, because a newer driver may return one that no binding knows.
    pub code: u32,
    /// Text added by the driver's compiler or this crate; empty, or with a leading separator.
    pub log: String,
}

/// Cause of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// The candidate: this is its verdict.
    Candidate(Verdict),
    /// The device or the system: the candidate gets another attempt in a fresh process.
    Device,
}

impl CudaError {
    /// Creates an error of `call`.
    #[must_use]
    pub fn new(call: &'static str, code: u32) -> Self {
        Self {
            call,
            code,
            log: String::new(),
        }
    }

    /// Adds a note.
    #[must_use]
    pub fn noting(mut self, note: &str) -> Self {
        let note = note.trim();
        if !note.is_empty() {
            self.log = format!("{}: {note}", self.log);
        }
        self
    }

    /// Returns its entry in the table.
    fn known(&self) -> Option<&'static (u32, &'static str, &'static str, Blame)> {
        code::ALL.iter().find(|(number, ..)| *number == self.code)
    }

    /// Returns the driver's name of the error, and its meaning.
    #[must_use]
    pub fn name(&self) -> String {
        self.known().map_or_else(
            || "an error this version of tuner does not know".to_owned(),
            |(_, name, meaning, _)| format!("{name}, {meaning}"),
        )
    }

    /// Returns its cause. Kernels fail asynchronously, so the kernel's fault follows from the error,
    /// independent of the call that reports it; an unknown error counts as a rejection before the launch.
    #[must_use]
    pub fn blame(&self) -> Blame {
        let refused = Blame::Candidate(Verdict::LaunchFailed);
        self.known().map_or(refused, |(.., blame)| *blame)
    }

    /// Reports whether the context is unusable: every later call in this process fails too, so a new
    /// process is required.
    #[must_use]
    pub fn is_sticky(&self) -> bool {
        match self.blame() {
            Blame::Device => true,
            Blame::Candidate(verdict) => matches!(
                verdict,
                Verdict::OutOfBounds | Verdict::Misaligned | Verdict::Timeout | Verdict::Crashed
            ),
        }
    }
}

impl From<CudaError> for Judgement {
    fn from(error: CudaError) -> Self {
        let verdict = match error.blame() {
            Blame::Candidate(verdict) => verdict,
            // A second failure is attributed to the candidate: it ended the worker.
            Blame::Device => Verdict::Crashed,
        };
        Self::new(verdict, error.to_string())
    }
}
