//! Number of concurrent preparations.

use serde::{Deserialize, Serialize};

/// Maximum concurrent preparations of a run. Each is a thread and a compiler process; a machine
/// supports some thousands of both in total.
pub(crate) const JOBS_MAX: u16 = 1024;

/// Number of concurrent preparations, 1 to 1024: larger values cannot be constructed, so neither
/// the command line nor a request can exhaust the machine's threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct Jobs(u16);

/// Invalid number of jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} jobs: use 1 to {JOBS_MAX}, or omit it for one per core")]
pub struct JobsError(u16);

impl Jobs {
    /// Returns the number.
    #[must_use]
    pub fn get(self) -> u16 {
        self.0
    }
}

impl TryFrom<u16> for Jobs {
    type Error = JobsError;

    fn try_from(number: u16) -> Result<Self, JobsError> {
        if (1..=JOBS_MAX).contains(&number) {
            Ok(Self(number))
        } else {
            Err(JobsError(number))
        }
    }
}

impl From<Jobs> for u16 {
    fn from(jobs: Jobs) -> Self {
        jobs.0
    }
}

impl std::str::FromStr for Jobs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number: u16 = text
            .parse()
            .map_err(|_| format!("`{text}` is not a number from 1 to {JOBS_MAX}"))?;
        Self::try_from(number).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests;
