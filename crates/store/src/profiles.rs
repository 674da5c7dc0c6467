//! Profiles of single candidates.

use super::Store;
use super::board::Board;
use super::error::{StoreError, WithPath as _, broken};
use super::rows::config_text;
use super::tasks::now;
use serde::Serialize;
use sqlx::SqliteConnection;
use sqlx::types::{Json, Text};
use tuner_core::record::ConfigValues;

/// Source of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[derive(Serialize, strum::Display, strum::EnumString)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ProfileSource {
    /// Nsight Compute on a real GPU.
    Ncu,
    /// The virtual GPU's counters: predicted.
    Vgpu,
}

/// A profile of a candidate.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct Profile {
    /// Its source.
    #[sqlx(try_from = "&'a str")]
    pub source: ProfileSource,
    /// The profiler and its version.
    pub tool: String,
    /// Metrics by name.
    #[sqlx(json)]
    pub metrics: serde_json::Map<String, serde_json::Value>,
    /// Time, RFC 3339 UTC; empty for one that is not stored yet.
    pub profiled_at: String,
}

impl Store {
    /// Returns profiles of a candidate on a board's device, newest first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn profiles(
        &self,
        board: &Board,
        config: &ConfigValues,
    ) -> Result<Vec<Profile>, StoreError> {
        sqlx::query_as(
            "SELECT f.source, f.tool, f.metrics, f.profiled_at FROM profiles f
             JOIN candidates c ON c.id = f.candidate WHERE c.problem = ? AND f.device = ?
               AND c.config = ? ORDER BY f.profiled_at DESC, f.id DESC",
        )
        .bind(board.problem_id)
        .bind(board.device_id)
        .bind(config_text(config))
        .fetch_all(&mut *self.reader().await?)
        .await
        .with_path(&self.path)
    }

    /// Stores a profile of a stored candidate, replacing the older one of that source.
    ///
    /// # Errors
    /// The database cannot be written, or the candidate is not in it.
    pub async fn store_profile(
        &self,
        board: &Board,
        config: &ConfigValues,
        profile: Profile,
    ) -> Result<(), StoreError> {
        let (problem, device) = (board.problem_id, board.device_id);
        let config = config_text(config);
        self.write(move |connection| Box::pin(store(connection, problem, device, config, profile)))
            .await
    }
}

/// Writes a profile of every candidate with that configuration. `problem` and `device` are rows.
async fn store(
    connection: &mut SqliteConnection,
    problem: i64,
    device: i64,
    config: String,
    profile: Profile,
) -> Result<(), sqlx::Error> {
    let result = sqlx::query(
        "INSERT INTO profiles (candidate, device, source, tool, metrics, profiled_at)
         SELECT id, ?1, ?2, ?3, ?4, ?5 FROM candidates WHERE problem = ?6 AND config = ?7
         ON CONFLICT (candidate, device, source)
         DO UPDATE SET tool = excluded.tool, metrics = excluded.metrics,
             profiled_at = excluded.profiled_at",
    )
    .bind(device)
    .bind(Text(profile.source))
    .bind(&profile.tool)
    .bind(Json(&profile.metrics))
    .bind(now())
    .bind(problem)
    .bind(config)
    .execute(connection)
    .await?;
    if result.rows_affected() == 0 {
        return Err(broken(
            "the profiled configuration is not a candidate of it",
        ));
    }
    Ok(())
}
