//! Verification levels: the intended use of the result.

use serde::{Deserialize, Serialize};

/// Verification level of a candidate.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize
)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// A candidate of a search before its first time: one seed, one run, a smaller sample of a large
    /// problem on the virtual GPU. It decides whether the candidate is worth more checks; published results
    /// never depend on it alone.
    First,
    /// Every candidate of a search: one seed, two runs with equal bits.
    #[default]
    Screening,
    /// A candidate that may win: three seeds, and two runs with equal bits.
    Timing,
    /// `tuner check`: like screening, with as many adversarial inputs and repetitions as are cheap.
    Check,
    /// A new best and published results: five seeds, all adversarial inputs, fifty runs with equal bits.
    Final,
}

impl Level {
    /// Returns the stored name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Screening => "screening",
            Self::Timing => "timing",
            Self::Check => "check",
            Self::Final => "final",
        }
    }

    /// Returns the seeds of the input data, starting with the one that all levels share.
    #[must_use]
    pub fn seeds(self, first: u64) -> Vec<u64> {
        let count = match self {
            Self::First | Self::Screening | Self::Check => 1,
            Self::Timing => 3,
            Self::Final => 5,
        };
        // Widely spaced and always the same.
        (0..count)
            .map(|number: u64| first ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .collect()
    }

    /// Returns the number of runs on the first seed that must agree bit for bit.
    #[must_use]
    pub fn runs(self) -> u32 {
        match self {
            Self::First => 1,
            Self::Final => 50,
            _ => 2,
        }
    }

    /// Returns this level's share of a limit: an eighth for the first level, since possible winners
    /// are verified again.
    #[must_use]
    pub(crate) fn share_of(self, limit: u64) -> u64 {
        match self {
            Self::First => limit / 8,
            _ => limit,
        }
    }

    /// Returns the lane instructions for repetitions beyond the second and adversarial inputs on a
    /// device that counts them; 0 disables both.
    #[must_use]
    pub(crate) fn extra_limit(self) -> u64 {
        match self {
            Self::First | Self::Screening | Self::Timing => 0,
            // A few tens of milliseconds of the virtual GPU, less than the compile.
            Self::Check => 10_000_000,
            Self::Final => u64::MAX,
        }
    }
}

#[cfg(test)]
mod tests;
