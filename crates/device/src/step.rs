//! The steps of judging a candidate on a device, each with a deadline of its own.

use serde::{Deserialize, Serialize};

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
    /// Timing.
    Time,
}
