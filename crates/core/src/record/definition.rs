//! Definition of a kernel's search space at the time of tuning.

use super::{ConfigValues, assignments};
use crate::value::Value;
use serde::{Deserialize, Serialize};

/// Search space of a kernel at the time of tuning: enough to export without the YAML file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Definition {
    /// The parameters, in the order of the space.
    pub parameters: Vec<ParameterDefinition>,
    /// Derived names and their expressions, in order.
    pub derived: Vec<(String, String)>,
    /// The constraints, in order; empty for a recorded file without expressions.
    pub constraints: Vec<ConstraintDefinition>,
    /// The launches, in order; empty for a recorded file, and for results of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub launches: Vec<LaunchDefinition>,
}

impl Definition {
    /// Formats a configuration as `NAME=value …` of the parameters with a choice; fixed ones do not
    /// distinguish configurations.
    #[must_use]
    pub fn varied(&self, config: &ConfigValues) -> String {
        let fixed = |name: &str| {
            let mut parameters = self.parameters.iter();
            parameters.any(|parameter| parameter.name == name && parameter.values.len() == 1)
        };
        assignments(config.iter().filter(|(name, _)| !fixed(name)), " ")
    }

    /// Reports whether another definition has the same rules for valid configurations.
    #[must_use]
    pub fn has_rules_of(&self, other: &Self) -> bool {
        self.constraints == other.constraints && self.derived == other.derived
    }
}

/// One launch of a [`Definition`]: expressions over parameters, derived values, sizes and the device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchDefinition {
    /// The kernel function.
    pub entry: String,
    /// Condition of the launch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// Blocks in x, y, z.
    pub grid: [String; 3],
    /// Threads per block in x, y, z.
    pub block: [String; 3],
    /// Dynamic shared memory per block, bytes.
    pub shared: String,
    /// Blocks of a cluster in x, y, z, if the launch specifies them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<[String; 3]>,
}

/// One parameter of a [`Definition`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParameterDefinition {
    /// The macro's name.
    pub name: String,
    /// The values it may take, in order.
    pub values: Vec<Value>,
    /// The default; `None` in recorded files.
    pub default: Option<Value>,
    /// Its description; may be empty.
    #[serde(default)]
    pub doc: String,
}

/// One constraint of a [`Definition`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConstraintDefinition {
    /// The expression that must hold.
    pub rule: String,
    /// The reason; may be empty.
    #[serde(default)]
    pub why: String,
}

impl ConstraintDefinition {
    /// Creates a rule without a reason.
    #[must_use]
    pub fn unexplained(rule: &str) -> Self {
        Self {
            rule: rule.to_owned(),
            why: String::new(),
        }
    }
}
