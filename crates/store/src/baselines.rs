//! Peers' times: stored as their commands gave them, compared with the rows of the leaderboard.

use super::error::StoreError;
use super::leaderboard::Board;
use super::run::RunId;
use super::writer::{Command, now};
use super::{Store, closed};
use sqlx::{Row as _, SqliteConnection};
use std::path::Path;
use tuner_core::baseline_record::{BaselineRecord, Visit};
use tuner_core::record::{TaskKey, TimingKind};
use tuner_core::units::ContentHash;

/// Keeps what a baseline's command gave.
pub(super) async fn store(
    path: &Path,
    connection: &mut SqliteConnection,
    task: i64,
    record: &BaselineRecord,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO baselines (task, command, name, version, p50_us, p90_us, visits, reference,
         reference_us, failure, measured_at) VALUES (?,?,?,?,?,?,?,?,?,?,?)",
    )
    .bind(task)
    .bind(json(&record.command))
    .bind(record.name.clone())
    .bind(record.version.clone())
    .bind(record.p50_us())
    .bind(record.p90_us())
    .bind(json(&record.visits))
    .bind(record.reference.as_ref().map(ToString::to_string))
    .bind(record.reference_us())
    .bind(record.failure.clone())
    .bind(now().to_string())
    .execute(connection)
    .await
    .map_err(|error| StoreError::from_sqlx(path, &error))?;
    Ok(())
}

fn json<T: serde::Serialize>(value: &T) -> String {
    // Texts and finite numbers: this cannot fail.
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

/// The latest baseline of a problem on a device, failed ones too.
pub(super) async fn latest(
    connection: &mut SqliteConnection,
    problem: i64,
    device: i64,
) -> Result<Option<BaselineRecord>, sqlx::Error> {
    let row = sqlx::query(
        "SELECT b.command, b.name, b.version, b.visits, b.reference, b.failure
         FROM baselines b JOIN tasks t ON t.id = b.task JOIN runs r ON r.id = t.run
         WHERE t.problem = ? AND r.device = ?
         ORDER BY b.failure IS NOT NULL, b.id DESC LIMIT 1",
    )
    .bind(problem)
    .bind(device)
    .fetch_optional(connection)
    .await?;
    let Some(row) = row else {
        return Ok(None);
    };
    let visits: Vec<Visit> =
        serde_json::from_str(&row.try_get::<String, _>("visits")?).unwrap_or_default();
    Ok(Some(BaselineRecord {
        command: serde_json::from_str(&row.try_get::<String, _>("command")?).unwrap_or_default(),
        name: row.try_get("name")?,
        version: row.try_get("version")?,
        visits,
        reference: row
            .try_get::<Option<String>, _>("reference")?
            .map(ContentHash::from_stored),
        failure: row.try_get("failure")?,
    }))
}

/// The peer that rows of a board are compared with: only measured ones are, for a predicted or
/// recorded time never stands beside a peer's measured one.
pub(super) async fn peer(
    connection: &mut SqliteConnection,
    (problem, device): (i64, i64),
    timing: TimingKind,
) -> Result<Option<BaselineRecord>, sqlx::Error> {
    match timing {
        TimingKind::Measured => latest(connection, problem, device).await,
        TimingKind::Predicted | TimingKind::Recorded => Ok(None),
    }
}

impl Store {
    /// Keeps what a baseline's command gave for a task. The run may have ended.
    ///
    /// # Errors
    /// The database cannot be written, or the run has no such task.
    pub async fn store_baseline(
        &self,
        run: &RunId,
        task: &TaskKey,
        record: BaselineRecord,
    ) -> Result<(), StoreError> {
        let place = (run.clone(), task.clone());
        self.ask(|reply| Command::Baseline(place, Box::new(record), reply))
            .await
    }

    /// The latest baseline of a board's problem and device that has a figure, else the latest
    /// failure.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn baseline(&self, board: &Board) -> Result<Option<BaselineRecord>, StoreError> {
        let mut reader = self.reader().await?;
        let connection = reader.as_mut().ok_or_else(|| closed(&self.path))?;
        latest(connection, board.problem_id, board.device_id)
            .await
            .map_err(|error| StoreError::from_sqlx(&self.path, &error))
    }
}
