//! Compiled work from another machine.

use crate::other_problems::SEEDS;
use serde::{Deserialize, Deserializer};
use tuner_device::worker::protocol::Job;
use tuner_judge::gate::level::Level;

/// Reads a job; only its plans are taken from the sender.
///
/// # Errors
/// It is malformed.
pub(super) fn plans_only<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Job, D::Error> {
    let sent = Job::deserialize(deserializer)?;
    // Every field is named, so that a new one is not accepted from the sender by accident: the folder of
    // the outputs would allow it to write files here.
    Ok(Job {
        checks: sent.checks,
        timed: sent.timed,
        seeds: SEEDS.to_vec(),
        schedules: 0,
        level: Level::default(),
        proof_limit: None,
        outputs: None,
    })
}

#[cfg(test)]
mod tests;
