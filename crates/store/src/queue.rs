//! The daemon's run queue, and the daemon that owns the database.

use super::Store;
use super::error::{Failure, StoreError, WithPath as _};
use super::owner;
use super::run::RunId;
use super::tasks::now;
use sqlx::types::Json;
use sqlx::{Connection as _, SqliteConnection};

/// A requested run.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct NewJob {
    /// Runs on the same device are serialized.
    pub device: String,
    /// The request, JSON.
    pub request: String,
    /// Folder for resolving its names; `None` if only configured folders may be read.
    pub folder: Option<String>,
}

/// A run in the queue.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct QueuedJob {
    /// The run's name.
    pub id: RunId,
    /// The request.
    #[sqlx(flatten)]
    pub job: NewJob,
    /// Wall time that its engine has worked so far, seconds.
    pub spent_s: f64,
}

/// State of a queued run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[derive(strum::Display, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum JobState {
    /// It waits for its device.
    Queued,
    /// Its engine is working, or was when the daemon died.
    Running,
    /// Its limits were reached.
    Finished,
    /// It was stopped.
    Stopped,
    /// It failed.
    Failed,
}

impl JobState {
    /// Returns the name in the database and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Maximum runs that wait in the queue.
pub const MAX_QUEUED_RUNS: u64 = 10_000;

/// Number of daemons that a run may crash during its setup before it is set aside.
const ATTEMPTS_MAX: i64 = 2;

/// The daemon recorded in the database.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct DaemonRow {
    /// Host, process and its start time.
    pub owner: String,
    /// Its address for clients of the same machine.
    pub address: String,
    /// The instance that its `/healthz` reports.
    pub instance: String,
    /// Start, RFC 3339 UTC.
    pub started_at: String,
    /// The process is running (a process of another host counts as running).
    #[sqlx(skip)]
    pub alive: bool,
}

impl Store {
    /// Makes this process the daemon of the database, unless another one lives. The running runs of
    /// its predecessor are queued again; if that one `crashed`, a run that repeatedly crashed
    /// daemons during its setup is set aside. The inner `Err(row)` names the living daemon.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn claim(
        &self,
        address: &str,
        instance: &str,
        crashed: bool,
    ) -> Result<Result<(), DaemonRow>, StoreError> {
        let (address, instance) = (address.to_owned(), instance.to_owned());
        self.write(move |connection| Box::pin(claim(connection, address, instance, crashed)))
            .await
    }

    /// Releases the database.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn release(&self, instance: &str) -> Result<(), StoreError> {
        self.execute(
            "DELETE FROM daemon WHERE instance = ?",
            vec![instance.to_owned()],
        )
        .await
        .map(drop)
    }

    /// Returns the daemon recorded in the database, if any.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn daemon(&self) -> Result<Option<DaemonRow>, StoreError> {
        let reader = &mut *self.reader().await?;
        daemon(reader).await.with_path(&self.path)
    }

    /// Adds a run to the queue durably. At most [`MAX_QUEUED_RUNS`] wait.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn enqueue(&self, job: NewJob) -> Result<RunId, StoreError> {
        let id = RunId::new();
        // Counting and inserting in one statement: two requests cannot both get the last slot.
        let queued = self
            .execute(
                "INSERT INTO queue (name, device, request, folder, state, submitted_at)
                 SELECT ?, ?, ?, nullif(?, ''), 'queued', ?
                 WHERE (SELECT count(*) FROM queue WHERE state = 'queued') < CAST(? AS INTEGER)",
                vec![
                    id.to_string(),
                    job.device,
                    job.request,
                    job.folder.unwrap_or_default(),
                    now().to_string(),
                    // Cast in the statement: values are bound as text, which SQLite orders after
                    // all numbers.
                    MAX_QUEUED_RUNS.to_string(),
                ],
            )
            .await?;
        if queued == 0 {
            return Err(Failure::QueueFull(MAX_QUEUED_RUNS).with_path(&self.path));
        }
        Ok(id)
    }

    /// Returns at most `most` waiting runs in queue order, one for each device that is not in
    /// `busy`.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn next_jobs(
        &self,
        busy: &[String],
        most: usize,
    ) -> Result<Vec<QueuedJob>, StoreError> {
        sqlx::query_as(
            "SELECT name AS id, device, request, folder, spent_s FROM queue WHERE id IN (
                SELECT min(id) FROM queue WHERE state = 'queued'
                AND device NOT IN (SELECT value FROM json_each(?)) GROUP BY device)
             ORDER BY id LIMIT ?",
        )
        .bind(Json(busy))
        .bind(i64::try_from(most).unwrap_or(i64::MAX))
        .fetch_all(&mut *self.reader().await?)
        .await
        .with_path(&self.path)
    }

    /// Marks a queued run as taken by its engine; false if it is no longer queued.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn start_job(&self, id: &RunId) -> Result<bool, StoreError> {
        // It may have been cancelled since it was read, and a continued run keeps its first start.
        let changed = self
            .execute(
                "UPDATE queue SET state = 'running', started_at = coalesce(started_at, ?1),
                     attempts = attempts + 1
                 WHERE name = ?2 AND state = 'queued'",
                vec![now().to_string(), id.to_string()],
            )
            .await?;
        Ok(changed > 0)
    }

    /// Records that a run's engine is working: a later crash of the daemon is not attributed to the run's
    /// setup.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn job_works(&self, id: &RunId) -> Result<(), StoreError> {
        self.execute(
            "UPDATE queue SET attempts = 0 WHERE name = ?1",
            vec![id.to_string()],
        )
        .await
        .map(drop)
    }

    /// Removes a run that has not begun from the queue, or with `may_run`, for a database whose
    /// daemon does not start, also a running one; false if there is none.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn cancel_job(&self, id: &RunId, may_run: bool) -> Result<bool, StoreError> {
        let sql = if may_run {
            "UPDATE queue SET state = 'stopped', ended_at = ?1, message = 'stopped on request'
             WHERE name = ?2 AND state IN ('queued', 'running')"
        } else {
            "UPDATE queue SET state = 'stopped', ended_at = ?1, message = 'stopped on request'
             WHERE name = ?2 AND state = 'queued'"
        };
        let changed = self.execute(sql, vec![now().to_string(), id.to_string()]);
        Ok(changed.await? > 0)
    }

    /// Returns the user's note on a run, and its last change (RFC 3339 UTC).
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn note(&self, id: &RunId) -> Result<Option<(String, String)>, StoreError> {
        let reader = &mut *self.reader().await?;
        sqlx::query_as("SELECT text, changed_at FROM notes WHERE run = ?1")
            .bind(id.as_str())
            .fetch_optional(reader)
            .await
            .with_path(&self.path)
    }

    /// Writes the user's note on a run; an empty text removes it.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn write_note(&self, id: &RunId, text: &str) -> Result<(), StoreError> {
        let sql = if text.is_empty() {
            "DELETE FROM notes WHERE run = ?1"
        } else {
            "INSERT INTO notes (run, text, changed_at) VALUES (?1, ?2, ?3)
             ON CONFLICT (run) DO UPDATE SET text = ?2, changed_at = ?3"
        };
        let values = vec![id.to_string(), text.to_owned(), now().to_string()];
        let bound = if text.is_empty() { 1 } else { values.len() };
        self.execute(sql, values.into_iter().take(bound).collect())
            .await
            .map(drop)
    }

    /// Records the state in which a run's engine left it. `Queued`: it continues later.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn leave_job(
        &self,
        id: &RunId,
        state: JobState,
        message: &str,
        spent_s: f64,
    ) -> Result<(), StoreError> {
        let open = matches!(state, JobState::Queued | JobState::Running);
        self.execute(
            "UPDATE queue SET state = ?1, message = ?2, spent_s = CAST(?3 AS REAL), attempts = 0,
                ended_at = nullif(?4, '') WHERE name = ?5",
            vec![
                state.to_string(),
                message.to_owned(),
                spent_s.to_string(),
                if open {
                    String::new()
                } else {
                    now().to_string()
                },
                id.to_string(),
            ],
        )
        .await
        .map(drop)
    }

    /// Records the time that a run's engine has worked since it took over the run.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn spend(&self, id: &RunId, seconds: f64) -> Result<(), StoreError> {
        self.execute(
            // Reports may arrive out of order; the time must never decrease.
            "UPDATE queue SET spent_s = max(spent_s, CAST(?1 AS REAL)) WHERE name = ?2",
            vec![seconds.to_string(), id.to_string()],
        )
        .await
        .map(drop)
    }

    /// Checks that the writer can write to the database now.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn ping(&self) -> Result<(), StoreError> {
        // A write without a change still needs the lock and the disk.
        self.execute("UPDATE daemon SET id = id WHERE id = 1", Vec::new())
            .await
            .map(drop)
    }

    /// Executes one statement with text parameters; returns the number of changed rows.
    pub(super) async fn execute(
        &self,
        sql: &'static str,
        values: Vec<String>,
    ) -> Result<u64, StoreError> {
        self.write(move |connection| {
            let query = values
                .iter()
                .fold(sqlx::query(sql), |query, value| query.bind(value));
            Box::pin(async move { Ok(query.execute(connection).await?.rows_affected()) })
        })
        .await
    }
}

async fn daemon(connection: &mut SqliteConnection) -> Result<Option<DaemonRow>, sqlx::Error> {
    let row: Option<DaemonRow> =
        sqlx::query_as("SELECT owner, address, instance, started_at FROM daemon")
            .fetch_optional(connection)
            .await?;
    Ok(row.map(|row| DaemonRow {
        alive: owner::is_alive(&row.owner),
        ..row
    }))
}

/// Claims in one transaction: of two daemons that start at once, one sees the other's row.
async fn claim(
    connection: &mut SqliteConnection,
    address: String,
    instance: String,
    crashed: bool,
) -> Result<Result<(), DaemonRow>, sqlx::Error> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    if let Some(row) = daemon(&mut transaction).await?
        && row.alive
        && row.instance != instance
    {
        return Ok(Err(row));
    }
    sqlx::query(
        "INSERT INTO daemon (id, owner, address, instance, started_at) VALUES (1, ?1, ?2, ?3, ?4)
         ON CONFLICT (id) DO UPDATE
         SET owner = ?1, address = ?2, instance = ?3, started_at = ?4",
    )
    .bind(owner::current())
    .bind(address)
    .bind(instance)
    .bind(now())
    .execute(&mut *transaction)
    .await?;
    // A daemon that was killed did not crash because of the run that it was setting up.
    sqlx::query(
        "UPDATE queue SET attempts = attempts - 1
         WHERE state = 'running' AND attempts > 0 AND NOT ?",
    )
    .bind(crashed)
    .execute(&mut *transaction)
    .await?;
    sqlx::query(
        "UPDATE queue SET state = 'failed', ended_at = ?1, message =
             'set aside: the daemon crashed ' || attempts || ' times while it set this run up; look \
              into its log, lower --jobs, and submit it again'
         WHERE state = 'running' AND attempts >= ?2",
    )
    .bind(now())
    .bind(ATTEMPTS_MAX)
    .execute(&mut *transaction)
    .await?;
    // Runs of the dead daemon continue from their stored results.
    sqlx::query("UPDATE queue SET state = 'queued' WHERE state = 'running'")
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await?;
    Ok(Ok(()))
}
