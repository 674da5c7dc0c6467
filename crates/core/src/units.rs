//! Quantities with their unit in the type, and counts with their noun.

use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// Formats a count with its noun: "1 worker", "12 workers". The plural is the noun with an "s".
#[must_use]
pub fn counted(count: impl std::fmt::Display, noun: &str) -> String {
    let count = count.to_string();
    let plural = if count == "1" { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// A kernel's run time in microseconds: finite and greater than zero.
///
/// A float, because a time is a mean over many launches and a 4 µs kernel needs less than a nanosecond of
/// resolution. The constructor excludes NaN, infinities and zero, so that the order is total.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Serialize,
    Deserialize,
    utoipa::ToSchema
)]
#[serde(try_from = "f64", into = "f64")]
#[schema(value_type = f64)]
pub struct Micros(f64);

impl Micros {
    /// Wraps a time in microseconds; `None` unless it is finite and positive.
    #[must_use]
    pub fn new(us: f64) -> Option<Self> {
        (us.is_finite() && us > 0.0).then_some(Self(us))
    }

    /// Plausible kernel times, microseconds: one cycle of a fast clock takes 0.3 ns, and runs have
    /// deadlines far below the three hours of the upper end.
    pub const PLAUSIBLE_US: RangeInclusive<f64> = 1e-4..=1e10;

    /// Wraps a time in milliseconds, the unit of Kernel Tuner's files; `None` unless it is plausible.
    #[must_use]
    pub fn from_millis(ms: f64) -> Option<Self> {
        Self::new(ms * 1e3).filter(|time| Self::PLAUSIBLE_US.contains(&time.get()))
    }

    /// Returns the time in microseconds.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }

    /// Returns the time in milliseconds.
    #[must_use]
    pub fn as_millis(self) -> f64 {
        self.0 / 1e3
    }
}

impl Eq for Micros {}

impl PartialOrd for Micros {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Micros {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl TryFrom<f64> for Micros {
    type Error = String;

    fn try_from(us: f64) -> Result<Self, Self::Error> {
        Self::new(us).ok_or_else(|| format!("{us} is not a time: it must be finite and positive"))
    }
}

impl From<Micros> for f64 {
    fn from(time: Micros) -> Self {
        time.0
    }
}

/// The seed of all random choices of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, utoipa::ToSchema)]
#[serde(transparent)]
pub struct Seed(pub u64);

impl std::fmt::Display for Seed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// A SHA-256 of content, in lower-case hexadecimal: the name of sources, cubins and spaces.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, utoipa::ToSchema)]
#[serde(transparent)]
pub struct ContentHash(String);

impl ContentHash {
    /// Hashes the parts, each preceded by its length so that different lists of parts do not collide.
    #[must_use]
    pub fn from_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        use sha2::Digest as _;
        let mut hasher = sha2::Sha256::new();
        for part in parts {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        Self(hex::encode(hasher.finalize()))
    }

    /// Returns the 64 hexadecimal digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Wraps a hash read from a file or the database.
    #[must_use]
    pub fn from_stored(text: String) -> Self {
        Self(text)
    }

    /// Returns the first 12 digits, for display.
    #[must_use]
    pub fn short(&self) -> &str {
        self.0.get(..12).unwrap_or(&self.0)
    }
}

impl std::fmt::Display for ContentHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
