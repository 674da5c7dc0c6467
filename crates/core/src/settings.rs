//! Settings of a run, stored with its notes.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Settings of a run from its request. The order of the fields is that of the stored text.
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
    pub knowledge: Option<Value>,
}

impl RunSettings {
    /// Reads the settings of a stored run. An imported run has none; an unreadable one, for example of
    /// another version, does not hide the others.
    #[must_use]
    pub fn from_stored(settings: &Value) -> Self {
        Self {
            evals: field(settings, "evals"),
            budget_s: field(settings, "budget_s"),
            jobs: field(settings, "jobs"),
            window: field(settings, "window"),
            prove_budget: field(settings, "prove_budget"),
            arch: field(settings, "arch"),
            objective: field(settings, "objective"),
            until_converged: field(settings, "until_converged"),
            knowledge: field(settings, "knowledge"),
        }
    }
}

fn field<'a, T: Deserialize<'a>>(settings: &'a Value, name: &str) -> Option<T> {
    Option::deserialize(settings.get(name)?).ok()?
}

#[cfg(test)]
mod tests {
    use super::RunSettings;
    use serde_json::json;

    #[test]
    fn what_cannot_be_read_does_not_hide_the_rest_of_a_stored_run() {
        let all = RunSettings {
            evals: Some(1),
            budget_s: Some(2.5),
            jobs: Some(3),
            window: Some(4),
            prove_budget: Some(5),
            arch: Some("sm_90".to_owned()),
            objective: Some("time,spill_bytes".to_owned()),
            until_converged: Some(0.01),
            knowledge: Some(json!({ "runs": 2 })),
        };
        let mut stored = serde_json::to_value(&all).unwrap();
        assert_eq!(RunSettings::from_stored(&stored), all);
        stored["jobs"] = json!("three");
        let read = RunSettings::from_stored(&stored);
        assert_eq!(read, RunSettings { jobs: None, ..all });
        assert_eq!(RunSettings::from_stored(&json!({})), RunSettings::default());
    }
}
