//! What the store hands to exports and reports.

use crate::record::{ConfigValues, Definition, LeaderboardRow, TrialRecord};

/// The best configuration of one kernel, problem and device, with what is known around it.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The winning row.
    pub best: LeaderboardRow,
    /// The problem's sizes; empty when unknown.
    pub sizes: ConfigValues,
    /// The device's names in expressions and their values.
    pub environment: ConfigValues,
    /// Parameters and constraints.
    pub definition: Definition,
    /// Compute capability of the device, such as 90; `None` where it is not known.
    pub cc: Option<u32>,
    /// Driver under which it was timed.
    pub driver: Option<String>,
    /// Every timed configuration of the group with its median in microseconds, best first.
    pub times: Vec<(ConfigValues, f64)>,
}

/// A judged candidate, for the formats that carry all of them.
#[derive(Debug, Clone)]
pub struct StoredTrial {
    /// What was stored.
    pub trial: TrialRecord,
    /// When, RFC 3339 UTC.
    pub judged_at: String,
}
