//! Baseline times: stored as reported by their commands, compared with the rows of the leaderboard.

use super::Store;
use super::board::Board;
use super::error::{StoreError, WithPath as _};
use super::run::RunId;
use super::tasks::{now, task_row};
use sqlx::types::Json;
use sqlx::{Row as _, SqliteConnection};
use tuner_core::baseline_record::BaselineRecord;
use tuner_core::record::{TaskKey, TimingKind};
use tuner_core::units::ContentHash;

async fn store(
    connection: &mut SqliteConnection,
    run: RunId,
    task: TaskKey,
    record: BaselineRecord,
) -> Result<(), sqlx::Error> {
    let task = task_row(connection, &run, &task).await?;
    sqlx::query(
        "INSERT INTO baselines (task, command, name, version, p50_us, p90_us, visits, reference,
         reference_us, failure, measured_at) VALUES (?,?,?,?,?,?,?,?,?,?,?)",
    )
    .bind(task)
    .bind(Json(&record.command))
    .bind(&record.name)
    .bind(&record.version)
    .bind(record.p50_us())
    .bind(record.p90_us())
    .bind(Json(&record.visits))
    .bind(record.reference.as_ref().map(ContentHash::as_str))
    .bind(record.reference_us())
    .bind(&record.failure)
    .bind(now())
    .execute(connection)
    .await
    .map(drop)
}

/// Returns the latest baseline of a problem on a device, including failed ones.
async fn latest(
    connection: &mut SqliteConnection,
    problem: i64,
    device: i64,
) -> Result<Option<BaselineRecord>, sqlx::Error> {
    // A figure of an earlier run is more useful than a later failure.
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
    let record = |row: sqlx::sqlite::SqliteRow| -> Result<BaselineRecord, sqlx::Error> {
        let reference: Option<String> = row.try_get("reference")?;
        Ok(BaselineRecord {
            command: row.try_get::<Json<_>, _>("command")?.0,
            name: row.try_get("name")?,
            version: row.try_get("version")?,
            visits: row.try_get::<Json<_>, _>("visits")?.0,
            reference: reference.map(ContentHash::from_stored),
            failure: row.try_get("failure")?,
        })
    };
    row.map(record).transpose()
}

/// Returns the baseline for the rows of a board: only for measured rows, since a predicted or
/// recorded time is never compared with a measured one.
pub(super) async fn peer(
    connection: &mut SqliteConnection,
    problem: i64,
    device: i64,
    timing: TimingKind,
) -> Result<Option<BaselineRecord>, sqlx::Error> {
    match timing {
        TimingKind::Measured => latest(connection, problem, device).await,
        TimingKind::Predicted | TimingKind::Recorded => Ok(None),
    }
}

impl Store {
    /// Stores the report of a baseline's command for a task. The run may have ended.
    ///
    /// # Errors
    /// The database cannot be written, or the run has no such task.
    pub async fn store_baseline(
        &self,
        run: &RunId,
        task: &TaskKey,
        record: BaselineRecord,
    ) -> Result<(), StoreError> {
        let (run, task) = (run.clone(), task.clone());
        self.write(move |connection| Box::pin(store(connection, run, task, record)))
            .await
    }

    /// Returns the latest baseline of a board's problem and device that has a figure, else the
    /// latest failure.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn baseline(&self, board: &Board) -> Result<Option<BaselineRecord>, StoreError> {
        let reader = &mut *self.reader().await?;
        latest(reader, board.problem_id, board.device_id)
            .await
            .with_path(&self.path)
    }
}
