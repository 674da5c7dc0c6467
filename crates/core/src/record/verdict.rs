//! Verdicts with their consequences: the only table of them.

use crate::named::named;
use serde::{Deserialize, Serialize};

named! {
    /// The judgement on one candidate, in order of precedence if several apply.
    pub enum Verdict {
        /// Correct, and timed if requested.
        Ok,
        /// A constraint excludes it.
        Rejected,
        /// NVRTC or ptxas refused it.
        CompileFailed,
        /// Refused before launch, or over a device limit.
        LaunchFailed,
        /// Accessed memory outside a buffer.
        OutOfBounds,
        /// An access not aligned to its size.
        Misaligned,
        /// Threads of one block waited at different barriers.
        BarrierDivergence,
        /// No thread could make progress.
        Deadlock,
        /// Unordered accesses to the same byte, one of them a plain write.
        Race,
        /// Read unwritten memory.
        Uninitialized,
        /// Did not end within its deadline or instruction budget.
        Timeout,
        /// Launch failure, assertion or trap; or the worker died.
        Crashed,
        /// More memory than the device or host has.
        OutOfMemory,
        /// Two runs on the same input differ bitwise.
        Nondeterministic,
        /// Faster than the hardware permits.
        Implausible,
        /// A wrong result.
        Incorrect,
        /// The virtual GPU lacks an instruction; not a fault of the kernel.
        Unsupported,
        /// It ran without a fault, but no result was compared with a reference: neither ranked nor
        /// exported.
        Unchecked,
        /// Its workers were repeatedly lost for external reasons: there is no result.
        NotJudged,
    }
}

/// A forbidden action of a kernel, with its position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Hazard {
    /// The verdict that this hazard implies.
    pub kind: Verdict,
    /// The event, as a sentence; names both sides of a conflict.
    pub detail: String,
    /// The CUDA source file, if line information names one.
    pub file: Option<String>,
    /// The line in `file`, from 1.
    pub line: Option<u32>,
    /// The thread block, x y z.
    pub block: Option<[u32; 3]>,
    /// The thread in its block, x y z.
    pub thread: Option<[u32; 3]>,
    /// The address, `0x…`, and its buffer or state space.
    pub address: Option<String>,
}

named! {
    /// Kind of a verdict: its effect on times, and its colour.
    pub enum VerdictClass {
        /// The candidate passed: its time ranks.
        Passed,
        /// The candidate is wrong: its times on the device are withdrawn.
        Wrong,
        /// The candidate ran, but did not end or could not be compared: possibly a limit of the machine.
        Limit,
        /// The candidate did not run.
        NotRun,
    }
}

named! {
    /// Time for which a verdict holds.
    pub enum Validity {
        /// Whenever and by whatever version the candidate is judged again.
        Lasting,
        /// Until another version of this program judges the candidate.
        Version,
        /// For this judgement only: the machine may have caused it.
        Once,
    }
}

named! {
    /// Meaning of a verdict for a candidate that passed and is then run as a whole.
    pub enum ProofEffect {
        /// It decides.
        Decides,
        /// It decides if the run reported a hazard; otherwise the run was too long for this host.
        DecidesWithHazard,
        /// A limit of the host: the proof was not made.
        NotMade,
    }
}

/// Consequences of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, utoipa::ToSchema)]
pub struct VerdictFacts {
    /// Kind of verdict.
    pub class: VerdictClass,
    /// It is evidence about the configuration that also applies to other devices and problems.
    pub knowledge: bool,
    /// Time for which it holds.
    pub validity: Validity,
    /// Meaning in a proof.
    pub proof: ProofEffect,
    /// `invalidity` in T4 results.
    pub t4: &'static str,
    /// Error in Kernel Tuner's cache files.
    pub kernel_tuner: &'static str,
}

/// Kernel Tuner's errors (`util.py`).
const INVALID: &str = "InvalidConfig";
const NOT_COMPILED: &str = "CompilationFailedConfig";
const FAILED: &str = "RuntimeFailedConfig";

impl Verdict {
    /// Returns the consequences. The columns that database queries need are also in its table
    /// `verdict_facts`; opening a database compares both.
    #[must_use]
    pub fn facts(self) -> VerdictFacts {
        use ProofEffect::{Decides, DecidesWithHazard, NotMade};
        use Validity::{Lasting, Once, Version};
        use VerdictClass::{Limit, NotRun, Passed, Wrong};
        let (class, knowledge, validity, proof, t4, kernel_tuner) = match self {
            Self::Ok => (Passed, true, Lasting, Decides, "correct", FAILED),
            Self::Rejected => (NotRun, false, Lasting, Decides, "constraints", INVALID),
            Self::CompileFailed => (NotRun, true, Lasting, Decides, "compile", NOT_COMPILED),
            Self::LaunchFailed => (NotRun, true, Lasting, NotMade, "runtime", FAILED),
            Self::OutOfBounds => (Wrong, true, Lasting, Decides, "runtime", FAILED),
            Self::Misaligned => (Wrong, true, Lasting, Decides, "runtime", FAILED),
            Self::BarrierDivergence => (Wrong, true, Lasting, Decides, "runtime", FAILED),
            Self::Deadlock => (Wrong, true, Lasting, Decides, "timeout", FAILED),
            Self::Race => (Wrong, true, Lasting, Decides, "correctness", FAILED),
            Self::Uninitialized => (Wrong, true, Lasting, Decides, "correctness", FAILED),
            Self::Timeout => (Limit, true, Once, DecidesWithHazard, "timeout", FAILED),
            Self::Crashed => (Limit, true, Once, DecidesWithHazard, "runtime", FAILED),
            Self::OutOfMemory => (Limit, true, Once, NotMade, "runtime", FAILED),
            Self::Nondeterministic => (Wrong, true, Lasting, Decides, "correctness", FAILED),
            Self::Implausible => (Wrong, true, Lasting, Decides, "correctness", FAILED),
            Self::Incorrect => (Wrong, true, Lasting, Decides, "correctness", FAILED),
            Self::Unsupported => (NotRun, false, Version, NotMade, "runtime", FAILED),
            Self::Unchecked => (Limit, false, Version, NotMade, "runtime", FAILED),
            Self::NotJudged => (NotRun, false, Once, NotMade, "runtime", FAILED),
        };
        VerdictFacts {
            class,
            knowledge,
            validity,
            proof,
            t4,
            kernel_tuner,
        }
    }

    /// Reports whether the candidate was compiled.
    #[must_use]
    pub fn is_compiled(self) -> bool {
        !matches!(self.facts().kernel_tuner, INVALID | NOT_COMPILED)
    }

    /// Returns the verdict for a T4 `invalidity`. T4 has fewer terms than there are verdicts; the returned
    /// verdict has the same term.
    #[must_use]
    pub fn from_t4(invalidity: &str) -> Self {
        match invalidity {
            "correct" => Self::Ok,
            "constraints" => Self::Rejected,
            "compile" => Self::CompileFailed,
            "timeout" => Self::Timeout,
            "correctness" => Self::Incorrect,
            _ => Self::Crashed,
        }
    }

    /// Returns the verdict for an error of Kernel Tuner. Its `InvalidConfig` of a recorded row is a device
    /// limit at launch: a configuration outside the constraints has no row.
    #[must_use]
    pub fn from_kernel_tuner(error: &str) -> Self {
        match error {
            NOT_COMPILED => Self::CompileFailed,
            INVALID => Self::LaunchFailed,
            _ => Self::Crashed,
        }
    }
}

#[cfg(test)]
mod tests;
