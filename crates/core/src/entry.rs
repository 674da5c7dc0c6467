//! Entry: the data of the store for exports and reports.

use crate::record::{ConfigValues, Definition, LeaderboardRow, TrialRecord};

/// The best configuration of one kernel, problem and device, with its context.
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
    /// Compute capability of the device, such as 90; `None` if unknown.
    pub cc: Option<u32>,
    /// Driver of the measurement.
    pub driver: Option<String>,
    /// Every timed configuration of the group with its median in microseconds, best first.
    pub times: Vec<(ConfigValues, f64)>,
}

/// A judged candidate, for formats with all candidates.
#[derive(Debug, Clone)]
pub struct StoredTrial {
    /// The stored trial.
    pub trial: TrialRecord,
    /// Time of judgement, RFC 3339 UTC.
    pub judged_at: String,
}
