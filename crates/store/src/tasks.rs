//! Rows of tasks, and the time of a write.

use super::error::broken;
use super::run::RunId;
use sqlx::SqliteConnection;
use std::sync::Arc;
use tuner_core::record::TaskKey;

/// Returns the row of a task, of a run that may have ended.
pub(super) async fn task_row(
    connection: &mut SqliteConnection,
    run: &RunId,
    key: &TaskKey,
) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT t.id FROM tasks t JOIN runs r ON r.id = t.run
         JOIN problems p ON p.id = t.problem JOIN kernels k ON k.id = p.kernel
         WHERE r.name = ? AND k.name = ? AND p.name = ?",
    )
    .bind(run.as_str())
    .bind(&key.kernel)
    .bind(&key.problem)
    .fetch_optional(connection)
    .await?
    .ok_or_else(|| {
        broken(format!(
            "run {run} has no task {} {}",
            key.kernel, key.problem
        ))
    })
}

/// Returns the current time, RFC 3339 UTC to the millisecond.
pub(super) fn now() -> Arc<str> {
    format!("{:.3}", jiff::Timestamp::now()).into()
}
