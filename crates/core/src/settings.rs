//! Settings of a run, as the store keeps them beside its notes.

use serde::{Deserialize, Serialize};

/// What a request sets for a run. The order of the fields is that of the stored text.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunSettings {
    /// Unique valid configurations to judge.
    pub evals: Option<u64>,
    /// Time budget, seconds.
    pub budget_s: Option<f64>,
    /// Concurrent preparations.
    pub jobs: Option<u64>,
    /// Proposals in preparation.
    pub window: Option<u64>,
    /// Lane instructions that a proof may take, on a virtual GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prove_budget: Option<u64>,
    /// Compile target, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arch: Option<String>,
    /// Two objectives, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective: Option<String>,
    /// Convergence threshold, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_converged: Option<f64>,
    /// Record of the prior knowledge, if the search used any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knowledge: Option<serde_json::Value>,
}

impl RunSettings {
    /// Reads the settings of a stored run. An imported run has none.
    #[must_use]
    pub fn from_stored(settings: &serde_json::Value) -> Self {
        Self::deserialize(settings).unwrap_or_default()
    }
}
