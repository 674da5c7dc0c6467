//! Whether a time was taken with warm or cold caches.

use serde::{Deserialize, Serialize};

/// What the caches hold when a launch begins. Times of different modes are never compared: on a
/// GPU whose L2 cache holds the problem they differ by a half, and so do their winners.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize
)]
#[derive(
    utoipa::ToSchema,
    strum::Display,
    strum::EnumString,
    strum::IntoStaticStr
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum CacheMode {
    /// The same buffers again and again.
    Warm,
    /// Sets of buffers in rotation whose bytes are together at least three times the second-level
    /// cache; outputs rotate too.
    Cold,
}

impl CacheMode {
    /// The name used in the database.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}
