//! The fixed reference of a session.

use super::plan::Runner;
use tuner_core::units::ContentHash;

/// The fixed reference of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    /// The subject and its launches per sample.
    pub runner: Runner,
    /// Identity: machine code and launches.
    pub identity: Option<ContentHash>,
    /// Current time, microseconds: the running median.
    pub session_us: f64,
    /// Current clock, MHz, if the device can stamp it.
    pub clock_mhz: Option<f64>,
}
