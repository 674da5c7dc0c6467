//! Outcome of a change.

/// Outcome of a requested change, in the order of the stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(
    serde::Serialize,
    serde::Deserialize,
    strum::Display,
    strum::EnumString,
    strum::VariantArray
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Outcome {
    /// The mutator did not answer: missing, ended, too late, too much.
    NoAnswer,
    /// The answer is not one: not JSON, another request's, edits that do not apply.
    Malformed,
    /// The answer requires something that a change must not use, such as a header outside the allow-list.
    Refused,
    /// The compiled code is the parent's, or that of an earlier change.
    Unchanged,
    /// The gate found a defect; the verdict names it.
    Failed,
    /// Correct, and no faster than the rule demands.
    NotBetter,
    /// Predicted faster by the rule, but by less than the model can resolve.
    WithinResolution,
    /// Predicted faster by the rule and by more than the model's resolution; not measured.
    PredictedBetter,
    /// Measured faster by the rule.
    Accepted,
}

impl Outcome {
    /// Reports whether the change passed the gate, so that it may be a parent.
    #[must_use]
    pub fn is_right(self) -> bool {
        self >= Self::NotBetter
    }

    /// Reports whether later changes of its line must be faster than it.
    #[must_use]
    pub fn is_incumbent(self) -> bool {
        self >= Self::PredictedBetter
    }

    /// Returns the display name.
    #[must_use]
    pub fn words(self) -> String {
        self.to_string().replace('_', " ")
    }
}
