//! Deletion of a run with its results.

use super::Store;
use super::error::StoreError;
use super::owner;
use super::run::RunId;
use sqlx::{Connection as _, SqliteConnection};

/// Outcome of a deletion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deletion {
    /// The run and its results were deleted.
    Deleted,
    /// No such run.
    Missing,
    /// Nothing was deleted, for this reason.
    Refused(&'static str),
}

impl Store {
    /// Deletes an ended run: its results, its note and its entry in the queue, in one transaction.
    /// Candidates that other runs measured keep those times. A run whose times another run has reused
    /// stays.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn delete_run(&self, id: &RunId) -> Result<Deletion, StoreError> {
        let id = id.to_string();
        self.write(move |connection| Box::pin(delete(connection, id)))
            .await
    }
}

async fn delete(connection: &mut SqliteConnection, id: String) -> Result<Deletion, sqlx::Error> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let refused = refusal(&mut transaction, &id).await?;
    if let Some(reason) = refused {
        return Ok(Deletion::Refused(reason));
    }
    for statement in STATEMENTS {
        sqlx::query(statement)
            .bind(&id)
            .execute(&mut *transaction)
            .await?;
    }
    // Both rows of a run that the daemon started have its name.
    let mut rows = 0;
    for statement in [
        "DELETE FROM runs WHERE name = ?1",
        "DELETE FROM queue WHERE name = ?1",
    ] {
        let deleted = sqlx::query(statement).bind(&id);
        rows += deleted.execute(&mut *transaction).await?.rows_affected();
    }
    transaction.commit().await?;
    Ok(if rows > 0 {
        Deletion::Deleted
    } else {
        Deletion::Missing
    })
}

/// Statements that delete the rows of a run, in order.
const STATEMENTS: [&str; 6] = [
    // A verdict other than `ok` has no valid time: the trigger then chooses among those of other runs.
    "UPDATE verdicts SET verdict = 'unchecked' WHERE verdict = 'ok' AND task IN
        (SELECT t.id FROM tasks t JOIN runs r ON r.id = t.run WHERE r.name = ?1)",
    "DELETE FROM verdicts WHERE task IN
        (SELECT t.id FROM tasks t JOIN runs r ON r.id = t.run WHERE r.name = ?1)",
    "DELETE FROM baselines WHERE task IN
        (SELECT t.id FROM tasks t JOIN runs r ON r.id = t.run WHERE r.name = ?1)",
    "DELETE FROM tasks WHERE run = (SELECT id FROM runs WHERE name = ?1)",
    "DELETE FROM notes WHERE run = ?1",
    "DELETE FROM change_runs WHERE run = ?1",
];

/// Returns the reason why a run cannot be deleted.
async fn refusal(
    connection: &mut SqliteConnection,
    id: &str,
) -> Result<Option<&'static str>, sqlx::Error> {
    let queued: Option<String> = sqlx::query_scalar("SELECT state FROM queue WHERE name = ?1")
        .bind(id)
        .fetch_optional(&mut *connection)
        .await?;
    let driven: Option<(String, Option<String>)> =
        sqlx::query_as("SELECT state, owner FROM runs WHERE name = ?1")
            .bind(id)
            .fetch_optional(&mut *connection)
            .await?;
    let open = queued.is_some_and(|state| state == "queued" || state == "running");
    let alive = driven.is_some_and(|(state, owner)| {
        state == "running" && owner.as_deref().is_some_and(owner::is_alive)
    });
    if open || alive {
        return Ok(Some("it is not over: stop it first"));
    }
    let withdraws: bool = sqlx::query_scalar(WITHDRAWS)
        .bind(id)
        .fetch_one(&mut *connection)
        .await?;
    // Without its verdict a wrong candidate would rank again.
    if withdraws {
        return Ok(Some("it found candidates wrong that another run had timed"));
    }
    let reused: bool = sqlx::query_scalar(REUSED)
        .bind(id)
        .fetch_one(connection)
        .await?;
    Ok(reused.then_some("another run has reused its times: delete that one first"))
}

/// Query: a later run has copied times of a run, which would continue to rank.
const REUSED: &str = "SELECT EXISTS (
    SELECT 1 FROM verdicts v JOIN tasks t ON t.id = v.task JOIN runs r ON r.id = t.run
    JOIN measurements m ON m.verdict = v.id
    JOIN verdicts w ON w.candidate = v.candidate AND w.id > v.id
    JOIN tasks u ON u.id = w.task JOIN runs s ON s.id = u.run
    JOIN measurements n ON n.verdict = w.id
    WHERE r.name = ?1 AND s.id <> r.id AND s.device = r.device AND n.reused AND NOT m.reused)";

/// Query: a wrong verdict of a run withdraws times of another one.
const WITHDRAWS: &str = "SELECT EXISTS (
    SELECT 1 FROM verdicts w JOIN tasks u ON u.id = w.task JOIN runs s ON s.id = u.run
    JOIN verdicts v ON v.candidate = w.candidate JOIN tasks t ON t.id = v.task
    JOIN runs r ON r.id = t.run
    WHERE s.name = ?1 AND r.id <> s.id AND r.device = s.device AND v.verdict = 'ok'
      AND (SELECT f.class FROM verdict_facts f WHERE f.name = w.verdict) = 'wrong'
      AND (w.judged_at, w.id) > (v.judged_at, v.id))";
