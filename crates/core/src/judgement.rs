//! Judgement of a candidate: the same type from the device's report to the stored row and the printed
//! result.

use crate::record::compared::Compared;
use crate::record::verdict::{Hazard, Verdict};
use serde::{Deserialize, Serialize};

/// Detail of a candidate without hazards whose space has `reference: none`.
pub const HAZARDS_ONLY: &str = "hazards only, results not compared";

/// The verdict on a candidate with its evidence. Failure is a value, at every stage: in the compiler, on
/// the device, in the gate or during timing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The verdict; the first by precedence if several apply.
    pub verdict: Verdict,
    /// Findings of all checks.
    #[serde(default)]
    pub hazards: Vec<Hazard>,
    /// Warnings: legal but fragile; they do not reject the candidate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Hazard>,
    /// The reason: compiler log, first wrong element, …; empty without a failure.
    pub detail: String,
    /// Largest error divided by its tolerance; `None` if nothing was compared.
    #[serde(default)]
    pub max_error: Option<f64>,
    /// Comparison of results at the size of the judged problem; `None` if the candidate did not
    /// pass, and for recorded data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared: Option<Compared>,
}

impl Judgement {
    /// Creates a verdict with its reason, without hazards and without a comparison.
    #[must_use]
    pub fn new(verdict: Verdict, detail: impl Into<String>) -> Self {
        Self {
            verdict,
            hazards: Vec::new(),
            warnings: Vec::new(),
            detail: detail.into(),
            max_error: None,
            compared: None,
        }
    }

    /// Creates a pass with the largest error found.
    #[must_use]
    pub fn ok(max_error: Option<f64>) -> Self {
        Self {
            max_error,
            ..Self::new(Verdict::Ok, "")
        }
    }

    /// Adds a clause to the detail.
    pub fn add_detail(&mut self, clause: &str) {
        if !self.detail.is_empty() {
            self.detail.push_str("; ");
        }
        self.detail.push_str(clause);
    }

    /// Reports whether the candidate passed.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.verdict == Verdict::Ok
    }
}

impl std::fmt::Display for Judgement {
    /// Formats `verdict: detail`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.verdict, self.detail)
    }
}
