//! How hard the gate looks, by what hangs on the answer.

use serde::{Deserialize, Serialize};

/// How hard the gate looks at a candidate.
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
    /// A candidate of a search before its first time: one seed, one run, of a large problem on the
    /// virtual GPU a smaller sample. It decides whether the candidate is worth more, and nothing is
    /// published on it.
    First,
    /// Every candidate of a search: one seed, two runs bit for bit.
    #[default]
    Screening,
    /// A candidate that may win: three seeds, and two runs bit for bit.
    Timing,
    /// `tuner check`: as screening, and as many adversarial inputs and repetitions as cost little.
    Check,
    /// A new best, and what is published: five seeds, all adversarial inputs, fifty runs bit for
    /// bit.
    Final,
}

impl Level {
    /// Its name, as it is stored.
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

    /// Seeds of the input data, beginning with the one that all levels share.
    #[must_use]
    pub fn seeds(self, first: u64) -> Vec<u64> {
        let count = match self {
            Self::First | Self::Screening | Self::Check => 1,
            Self::Timing => 3,
            Self::Final => 5,
        };
        // Far apart, and the same ones each time.
        (0..count)
            .map(|number: u64| first ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .collect()
    }

    /// Runs on the first seed that must agree bit for bit.
    #[must_use]
    pub fn runs(self) -> u32 {
        match self {
            Self::First => 1,
            Self::Final => 50,
            _ => 2,
        }
    }

    /// What this level may spend of a limit: the first look an eighth, as whatever may win is looked
    /// at again.
    #[must_use]
    pub(crate) fn share_of(self, limit: u64) -> u64 {
        match self {
            Self::First => limit / 8,
            _ => limit,
        }
    }

    /// Lane instructions that repetitions beyond the second and adversarial inputs may cost on a
    /// device that counts them; 0 for none of either.
    #[must_use]
    pub(crate) fn extra_limit(self) -> u64 {
        match self {
            Self::First | Self::Screening | Self::Timing => 0,
            // A few tens of milliseconds of the virtual GPU, less than the compile took.
            Self::Check => 10_000_000,
            Self::Final => u64::MAX,
        }
    }
}

#[cfg(test)]
mod tests;
