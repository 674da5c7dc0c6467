//! Messages between the tuner and a mutator: one JSON request, one JSON answer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Version of the protocol, in the field `protocol` of each request.
pub const PROTOCOL: u32 = 1;

/// Largest answer that is read, bytes.
pub const MAX_ANSWER_BYTES: usize = 4 << 20;

/// Largest source that an answer may make, bytes.
pub const MAX_SOURCE_BYTES: usize = 1 << 20;

/// Largest changed search space, bytes as JSON.
pub const MAX_SPACE_BYTES: usize = 1 << 20;

/// Maximum number of launches of a changed kernel.
pub const MAX_LAUNCHES: usize = 64;

/// Maximum number of tokens that an answer may report.
pub const MAX_TOKENS: u64 = 1_000_000_000;

/// Largest cost that an answer may report.
pub const MAX_COST: f64 = 1e6;

/// Maximum length of a note, characters; the rest is truncated.
pub const MAX_NOTE_CHARS: usize = 500;

/// Request for one change of a kernel's code.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MutationRequest {
    /// Version of the protocol.
    pub protocol: u32,
    /// Identity of the request; the answer repeats it.
    pub id: String,
    /// Round of the evolution, from 1.
    pub round: u32,
    /// Seed of this request's random choices. Inputs and shapes of the checks have another one.
    pub seed: u64,
    /// Computation that the kernel performs.
    pub task: Task,
    /// Kernel to change.
    pub parent: Parent,
    /// Last failed changes of this line, newest first.
    pub failures: Vec<Failure>,
    /// Other changes of the same parent, newest first.
    pub siblings: Vec<Sibling>,
    /// Rules that an answer must keep.
    pub rules: Rules,
    /// Defect of the previous answer to this request; it is reported once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correction: Option<String>,
}

/// Computation of a kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    /// Name of the kernel.
    pub kernel: String,
    /// Operation in one line.
    pub summary: String,
    /// Device of the times.
    pub device: String,
    /// `measured` or `predicted`.
    pub timing: String,
    /// Arguments with types, roles and shapes, as in the search space.
    pub arguments: Value,
    /// Timed problems by name, with their sizes.
    pub problems: BTreeMap<String, Value>,
    /// Definition of a correct result, as in the search space.
    pub reference: Value,
    /// Tolerance of the comparison, as in the search space; null: the default of the reference.
    pub tolerance: Value,
}

/// Kernel that a mutator changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Parent {
    /// Number of the change that made it; null: the shipped template.
    pub change: Option<i64>,
    /// CUDA source; parameters are macros.
    pub source: String,
    /// Search space as JSON: parameters, derived values, constraints and launches.
    pub space: Value,
    /// Best configuration of each problem.
    pub best: Vec<ProblemBest>,
}

/// Best configuration of a problem with its time and limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProblemBest {
    /// Name of the problem.
    pub problem: String,
    /// Values of the parameters.
    pub config: Map<String, Value>,
    /// Time, microseconds.
    pub time_us: f64,
    /// Time of the shipped template's best configuration, microseconds.
    pub shipped_us: f64,
    /// Lower bound of the time by peak arithmetic and bandwidth, microseconds; null: not known.
    #[serde(default)]
    pub roofline_us: Option<f64>,
    /// Counters of the device, by name; empty: none were taken.
    #[serde(default)]
    pub counters: Map<String, Value>,
    /// Main limits, the largest first.
    #[serde(default)]
    pub bottlenecks: Vec<Bottleneck>,
}

/// Limit of a kernel with the figures that show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bottleneck {
    /// Name of the limit.
    pub name: String,
    /// Counters that show it.
    pub evidence: String,
}

/// Failed change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// Number of the change.
    pub change: i64,
    /// Outcome, such as `failed` or `refused`.
    pub outcome: String,
    /// Verdict of the gate, such as `race`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// Finding in one line, with source lines where they are known.
    pub detail: String,
    /// Note of its mutator.
    pub note: String,
}

/// Other change of the same parent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sibling {
    /// Number of the change.
    pub change: i64,
    /// Outcome.
    pub outcome: String,
    /// Note of its mutator.
    pub note: String,
    /// Incumbent's time over its own, by problem; above 1 is faster.
    pub gains: BTreeMap<String, f64>,
}

/// Rules that an answer must keep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rules {
    /// Condition of acceptance.
    pub accept: String,
    /// Gain below which two predicted times are the same; null for measured times.
    pub resolution: Option<f64>,
    /// Headers that a source may include.
    pub includes: Vec<String>,
    /// Largest source, bytes.
    pub max_source_bytes: usize,
    /// Largest answer, bytes.
    pub max_answer_bytes: usize,
}

/// Answer of a mutator. Exactly one of `source`, `blocks` and `diff` is given, unless only the search
/// space changes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MutationAnswer {
    /// Identity of the request.
    pub id: String,
    /// Complete new source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// SEARCH/REPLACE blocks; each SEARCH text occurs exactly once in the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<String>,
    /// Unified diff of the source; every line must match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Changes of the search space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space: Option<SpaceChange>,
    /// Purpose of the change in one line.
    #[serde(default)]
    pub note: String,
    /// Cost of the answer, as far as the mutator knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// Changes of a search space. Problems, arguments, reference, tolerance and metric cannot be changed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SpaceChange {
    /// Parameters by name, in the form of the search space; null removes one.
    #[serde(default)]
    pub parameters: Map<String, Value>,
    /// Derived values by name; null removes one.
    #[serde(default)]
    pub derived: Map<String, Value>,
    /// Constraints to add.
    #[serde(default)]
    pub add_constraints: Vec<Constraint>,
    /// Rules of constraints to remove, as they are written in the search space.
    #[serde(default)]
    pub remove_constraints: Vec<String>,
    /// Configurations to judge before those of the search space; unnamed parameters take their defaults.
    #[serde(default)]
    pub seeds: Vec<Map<String, Value>>,
    /// All launches in order, in the form of the search space; null keeps them.
    #[serde(default)]
    pub launches: Option<Vec<Value>>,
}

/// Constraint of a search space.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Constraint {
    /// Expression that must be true.
    pub rule: String,
    /// Reason.
    pub why: String,
}

/// Cost of an answer.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Serialize,
    Deserialize,
    JsonSchema
)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// Tokens read and written.
    #[serde(default)]
    pub tokens: u64,
    /// Price in the currency of the cost limit.
    #[serde(default)]
    pub cost: f64,
}

impl Usage {
    /// Reports whether the figures are those of a possible answer.
    #[must_use]
    pub fn is_plausible(&self) -> bool {
        self.tokens <= MAX_TOKENS && (0.0..=MAX_COST).contains(&self.cost)
    }

    /// Adds the cost of another attempt.
    pub fn add(&mut self, other: Self) {
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.cost += other.cost;
    }
}

/// Returns the JSON Schemas of the request and of the answer, by name.
#[must_use]
pub fn schemas() -> [(&'static str, Value); 2] {
    [
        ("request", schemars::schema_for!(MutationRequest).into()),
        ("answer", schemars::schema_for!(MutationAnswer).into()),
    ]
}
