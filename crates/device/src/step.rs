//! Steps of judging a candidate on a device, each with its own deadline.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Current step of the worker; each has its own deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Opening the device.
    Open,
    /// Reading code.
    Load,
    /// One launch, until it ends.
    Launch,
    /// Running and comparing.
    Gate,
    /// Running a problem whole and comparing it, with its limit of lane instructions.
    Prove(u64),
    /// Timing.
    Time,
}

/// Minimum speed of a loaded host, lane instructions per second: a tenth of one core's.
const PROOF_RATE: u64 = 10_000_000;

/// Returns the time limit of a proof of that many lane instructions: a guard against hangs. It is far above
/// the actual time, so that no result depends on the host's speed.
#[must_use]
pub fn proof_deadline(lane_instructions: u64) -> Duration {
    // For the candidate and its reference.
    Duration::from_secs(lane_instructions.saturating_mul(2) / PROOF_RATE)
}
