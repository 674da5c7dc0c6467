//! What was found about a candidate: one type from the device's report to the stored row and the
//! printed one.

use crate::record::{Compared, Hazard, Verdict};
use serde::{Deserialize, Serialize};

/// What is said of a candidate whose space has `reference: none` and that has no hazard.
pub const HAZARDS_ONLY: &str = "hazards only, results not compared";

/// The verdict on a candidate with its evidence. A candidate that fails is a value, wherever it
/// fails: in the compiler, on the device, at the gate or under the stopwatch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The verdict; the first by precedence where several hold.
    pub verdict: Verdict,
    /// Everything the checks found.
    #[serde(default)]
    pub hazards: Vec<Hazard>,
    /// What works and yet should not stay so; no reason to refuse the candidate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Hazard>,
    /// Why, for people: compiler log, first wrong element, …; empty when all is well.
    pub detail: String,
    /// Largest error divided by its tolerance; `None` where nothing was compared.
    #[serde(default)]
    pub max_error: Option<f64>,
    /// How results were compared at the size of the judged problem; `None` where the candidate did
    /// not pass, and for recorded data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared: Option<Compared>,
}

impl Judgement {
    /// A verdict and why, without hazards and without a comparison.
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

    /// Nothing is wrong; the largest error found.
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

    /// Whether the candidate passed.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.verdict == Verdict::Ok
    }
}

impl std::fmt::Display for Judgement {
    /// `verdict: detail`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.verdict, self.detail)
    }
}
