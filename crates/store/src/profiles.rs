//! Profiles of single candidates.

use super::error::StoreError;
use super::leaderboard::Board;
use super::rows::config_text;
use super::writer::now;
use serde::Serialize;
use sqlx::{Row as _, SqliteConnection};
use std::path::Path;
use tuner_core::record::ConfigValues;

/// What made a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProfileSource {
    /// Nsight Compute on a real GPU.
    Ncu,
    /// The virtual GPU's counters: predicted.
    Vgpu,
}

impl ProfileSource {
    /// The name in the database and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ncu => "ncu",
            Self::Vgpu => "vgpu",
        }
    }
}

/// A profile of a candidate.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// What made it.
    pub source: ProfileSource,
    /// The profiler and its version.
    pub tool: String,
    /// Metrics by name.
    pub metrics: serde_json::Map<String, serde_json::Value>,
    /// When, RFC 3339 UTC; empty for one that is not stored yet.
    pub profiled_at: String,
}

/// See [`super::Store::profiles`].
pub(super) async fn of(
    path: &Path,
    connection: &mut SqliteConnection,
    board: &Board,
    config: &ConfigValues,
) -> Result<Vec<Profile>, StoreError> {
    let rows = sqlx::query(
        "SELECT f.source, f.tool, f.metrics, f.profiled_at FROM profiles f
         JOIN candidates c ON c.id = f.candidate
         WHERE c.problem = ? AND f.device = ? AND c.config = ? ORDER BY f.profiled_at DESC, f.id DESC",
    )
    .bind(board.problem_id)
    .bind(board.device_id)
    .bind(config_text(config))
    .fetch_all(connection)
    .await
    .map_err(|error| StoreError::from_sqlx(path, &error))?;
    let read = |row: &sqlx::sqlite::SqliteRow| -> Result<Profile, sqlx::Error> {
        let source: String = row.try_get("source")?;
        let metrics: String = row.try_get("metrics")?;
        Ok(Profile {
            source: if source == "ncu" {
                ProfileSource::Ncu
            } else {
                ProfileSource::Vgpu
            },
            tool: row.try_get("tool")?,
            metrics: serde_json::from_str(&metrics).unwrap_or_default(),
            profiled_at: row.try_get("profiled_at")?,
        })
    };
    let profiles: Result<Vec<Profile>, sqlx::Error> = rows.iter().map(read).collect();
    profiles.map_err(|error| StoreError::from_sqlx(path, &error))
}

/// Writes a profile of every candidate with that configuration; `place` is the problem's and the
/// device's row.
pub(super) async fn store(
    path: &Path,
    connection: &mut SqliteConnection,
    (problem, device): (i64, i64),
    config: &ConfigValues,
    profile: &Profile,
) -> Result<(), StoreError> {
    let metrics = serde_json::Value::Object(profile.metrics.clone()).to_string();
    let result = sqlx::query(
        "INSERT INTO profiles (candidate, device, source, tool, metrics, profiled_at)
         SELECT id, ?1, ?2, ?3, ?4, ?5 FROM candidates WHERE problem = ?6 AND config = ?7
         ON CONFLICT (candidate, device, source)
         DO UPDATE SET tool = excluded.tool, metrics = excluded.metrics,
             profiled_at = excluded.profiled_at",
    )
    .bind(device)
    .bind(profile.source.name())
    .bind(profile.tool.clone())
    .bind(metrics)
    .bind(now().to_string())
    .bind(problem)
    .bind(config_text(config))
    .execute(connection)
    .await
    .map_err(|error| StoreError::from_sqlx(path, &error))?;
    if result.rows_affected() == 0 {
        let detail = "the profiled configuration is no candidate of it";
        return Err(StoreError::broken(path, detail));
    }
    Ok(())
}
