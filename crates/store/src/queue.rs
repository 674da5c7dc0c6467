//! The daemon's run queue, and which daemon owns the database.

use super::Store;
use super::error::{At as _, Failure, StoreError};
use super::owner;
use super::run::RunId;
use super::writer::now;
use sqlx::types::Json;
use sqlx::{Connection as _, SqliteConnection};

/// A run that is asked for.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct NewJob {
    /// Runs on the same device wait for one another.
    pub device: String,
    /// The request, JSON.
    pub request: String,
    /// Where names in it are looked for; `None` where only configured folders may be read.
    pub folder: Option<String>,
}

/// A run in the queue.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct QueuedJob {
    /// The run's name.
    pub id: RunId,
    /// What was asked for.
    #[sqlx(flatten)]
    pub job: NewJob,
    /// Wall time its engine was at work before, seconds.
    pub spent_s: f64,
}

/// Where a run of the queue is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[derive(strum::Display, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum JobState {
    /// Waits for its device.
    Queued,
    /// Its engine is at work, or was when the daemon died.
    Running,
    /// Its limits were reached.
    Finished,
    /// Somebody stopped it.
    Stopped,
    /// It could not be carried out.
    Failed,
}

impl JobState {
    /// The name in the database and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Runs that may wait in the queue.
pub const MAX_QUEUED_RUNS: u64 = 10_000;

/// Daemons that a run may take down while it is set up, before it is set aside.
const ATTEMPTS_MAX: i64 = 2;

/// The daemon that a database's row names.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct DaemonRow {
    /// Host, process and its start time.
    pub owner: String,
    /// Where it listens, as a client of the same machine reaches it.
    pub address: String,
    /// What its `/healthz` says.
    pub instance: String,
    /// When it began, RFC 3339 UTC.
    pub started_at: String,
    /// Whether that process runs (one of another host counts as running).
    #[sqlx(skip)]
    pub alive: bool,
}

impl Store {
    /// Makes this process the daemon of the database, unless a living one is. What that one left
    /// running is queued again; where it `crashed`, a run that it was setting up, as one before it
    /// was, is set aside. `Err(row)` inside names the living one.
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

    /// Gives the database up.
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

    /// The daemon that the database names, if any.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn daemon(&self) -> Result<Option<DaemonRow>, StoreError> {
        let reader = &mut *self.reader().await?;
        daemon(reader).await.at(&self.path)
    }

    /// Puts a run into the queue; it is there, whatever happens, when this returns. At most
    /// [`MAX_QUEUED_RUNS`] wait.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn enqueue(&self, job: NewJob) -> Result<RunId, StoreError> {
        let id = RunId::new();
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
                    MAX_QUEUED_RUNS.to_string(),
                ],
            )
            .await?;
        if queued == 0 {
            return Err(Failure::QueueFull(MAX_QUEUED_RUNS).at(&self.path));
        }
        Ok(id)
    }

    /// The runs that wait, first come first, at most `most`, one for each device that is not in
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
        .at(&self.path)
    }

    /// Marks a queued run as taken by its engine; false when it is no longer queued.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn start_job(&self, id: &RunId) -> Result<bool, StoreError> {
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

    /// Notes that a run's engine is at work: should the daemon end now, the run is not why.
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

    /// Takes a run that has not begun out of the queue, or, for a database whose daemon does not
    /// start, one that `may_run`; false when there is none.
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

    /// What people wrote beside a run, and when they last changed it (RFC 3339 UTC).
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn note(&self, id: &RunId) -> Result<Option<(String, String)>, StoreError> {
        let reader = &mut *self.reader().await?;
        sqlx::query_as("SELECT text, changed_at FROM notes WHERE run = ?1")
            .bind(id.as_str())
            .fetch_optional(reader)
            .await
            .at(&self.path)
    }

    /// Writes beside a run; an empty text removes what stood there.
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

    /// Says how a run's engine left it. `Queued`: it goes on later.
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

    /// Notes how long a run's engine has been at work since it took the run up.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn spend(&self, id: &RunId, seconds: f64) -> Result<(), StoreError> {
        self.execute(
            "UPDATE queue SET spent_s = max(spent_s, CAST(?1 AS REAL)) WHERE name = ?2",
            vec![seconds.to_string(), id.to_string()],
        )
        .await
        .map(drop)
    }

    /// Whether the writer gets through to the database at this moment.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn ping(&self) -> Result<(), StoreError> {
        self.execute("UPDATE daemon SET id = id WHERE id = 1", Vec::new())
            .await
            .map(drop)
    }

    /// One statement with text parameters; the number of rows it changed.
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

/// In one transaction: of two daemons that start at once, one sees the other's row.
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
    // A daemon that was killed was not ended by what it set up.
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
    sqlx::query("UPDATE queue SET state = 'queued' WHERE state = 'running'")
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await?;
    Ok(Ok(()))
}
