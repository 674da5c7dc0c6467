//! The steps of judging a candidate on a device, each with a deadline of its own.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Where the worker is, so that each step has a deadline of its own.
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
    /// Running a problem whole and comparing it, with the lane instructions that this may take.
    Prove(u64),
    /// Timing.
    Time,
}

/// Lane instructions a second that a loaded host executes at least, a tenth of what one core does.
const PROOF_RATE: u64 = 10_000_000;

/// The time that a proof of that many lane instructions may take: a guard against hangs, far above
/// what it does take, so that no result depends on the host's speed.
#[must_use]
pub fn proof_deadline(lane_instructions: u64) -> Duration {
    // The candidate and its reference.
    Duration::from_secs(lane_instructions.saturating_mul(2) / PROOF_RATE)
}
