//! Runs as they are listed and drawn: asked for, under way, over.

use super::begin::kind_from_name;
use super::error::StoreError;
use super::owner;
use super::rows::{config_from_text, hash_from_bytes};
use super::run::RunId;
use super::{Store, closed};
use sqlx::{Row as _, SqliteConnection};
use std::collections::BTreeMap;
use std::path::Path;
use tuner_core::record::{ConfigValues, DeviceKind, TaskKey, Verdict};
use tuner_core::units::ContentHash;

/// Which runs to list.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// Only that one.
    pub id: Option<String>,
    /// Only those in this state.
    pub state: Option<String>,
    /// Only those asked for before this one.
    pub before: Option<String>,
    /// How many, latest first.
    pub limit: u32,
}

/// A run, from the queue or begun by `tuner run`.
#[derive(Debug, Clone)]
pub struct RunRow {
    /// Its name.
    pub id: String,
    /// `queued`, `running`, `finished`, `stopped`, `failed`, or `interrupted`: begun by a
    /// `tuner run` that ended before its limits.
    pub state: String,
    /// How it ended or failed; may be empty.
    pub message: String,
    /// What was asked for, JSON; `None` where `tuner run` began it.
    pub request: Option<String>,
    /// What it waits for, or the selector of its device.
    pub selector: String,
    /// Device and kind; `None` before it begins.
    pub device: Option<(String, DeviceKind)>,
    /// Strategy; `None` before it begins.
    pub strategy: Option<String>,
    /// Seed, decimal; `None` before it begins.
    pub seed: Option<String>,
    /// Limits and other settings, JSON.
    pub settings: Option<String>,
    /// Kernel and problem of each task, with the number of its results.
    pub tasks: Vec<(TaskKey, u64)>,
    /// When it was asked for, RFC 3339 UTC; `None` where `tuner run` began it.
    pub submitted_at: Option<String>,
    /// When it began.
    pub started_at: Option<String>,
    /// When it ended.
    pub ended_at: Option<String>,
}

/// A place where the best time so far fell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CurvePoint {
    /// Results told until then, this one included.
    pub evals: u64,
    /// The new best, microseconds.
    pub us: f64,
}

/// A task of a run as it is drawn.
#[derive(Debug, Clone)]
pub struct RunTask {
    /// Kernel, problem, device.
    pub key: TaskKey,
    /// Results.
    pub evals: u64,
    /// Time of the default configuration, microseconds.
    pub default_us: Option<f64>,
    /// How many candidates got which verdict.
    pub verdicts: BTreeMap<Verdict, u64>,
    /// The best-so-far curve.
    pub curve: Vec<CurvePoint>,
    /// What its candidates cost on the device's virtual clock, microseconds.
    pub charged_us: u64,
    /// The configuration at its end.
    pub best_config: Option<ConfigValues>,
}

/// One result of a run, in short.
#[derive(Debug, Clone)]
pub struct RunTrial {
    /// Kernel name.
    pub kernel: String,
    /// Problem name.
    pub problem: String,
    /// Place in the order of its task; `None` where only announced.
    pub sequence: Option<u64>,
    /// The judgement.
    pub verdict: Verdict,
    /// Why, its first 300 characters.
    pub detail: String,
    /// Identity of the candidate.
    pub candidate: ContentHash,
    /// The configuration.
    pub config: ConfigValues,
    /// Median, microseconds, where it passed.
    pub p50_us: Option<f64>,
}

impl Store {
    /// The latest results of a run; `failed` leaves out those that passed.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn run_trials(
        &self,
        id: &RunId,
        failed: bool,
        limit: u32,
    ) -> Result<Vec<RunTrial>, StoreError> {
        let mut reader = self.reader().await?;
        let connection = reader.as_mut().ok_or_else(|| closed(&self.path))?;
        run_trials(connection, id, failed, limit)
            .await
            .map_err(|error| StoreError::from_sqlx(&self.path, &error))
    }

    /// Runs, latest first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>, StoreError> {
        let mut reader = self.reader().await?;
        let connection = reader.as_mut().ok_or_else(|| closed(&self.path))?;
        runs(connection, filter)
            .await
            .map_err(|error| StoreError::from_sqlx(&self.path, &error))
    }

    /// The tasks of a run with their curves; empty where it has not begun.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn run_tasks(&self, id: &RunId) -> Result<Vec<RunTask>, StoreError> {
        let mut reader = self.reader().await?;
        let connection = reader.as_mut().ok_or_else(|| closed(&self.path))?;
        run_tasks(connection, id)
            .await
            .map_err(|error| StoreError::from_sqlx(&self.path, &error))
    }

    /// How many runs of the queue are in each state.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn queue_counts(&self) -> Result<BTreeMap<String, u64>, StoreError> {
        let mut reader = self.reader().await?;
        let connection = reader.as_mut().ok_or_else(|| closed(&self.path))?;
        let rows: Result<Vec<(String, i64)>, _> =
            sqlx::query_as("SELECT state, count(*) FROM queue GROUP BY state")
                .fetch_all(connection)
                .await;
        let rows = rows.map_err(|error| StoreError::from_sqlx(&self.path, &error))?;
        let count = |(state, count)| (state, u64::try_from(count).unwrap_or(0));
        Ok(rows.into_iter().map(count).collect())
    }
}

async fn runs(
    connection: &mut SqliteConnection,
    filter: &RunFilter,
) -> Result<Vec<RunRow>, sqlx::Error> {
    let rows = sqlx::query(
        "SELECT * FROM (
            SELECT coalesce(q.name, r.name) AS name, q.state AS queue_state, q.message, q.request,
                q.device AS waits_for, q.submitted_at, r.id AS run, r.state AS run_state, r.owner,
                r.selector, r.strategy, r.seed, r.settings, d.name AS device, d.kind,
                coalesce(q.started_at, r.started_at) AS started_at,
                iif(q.name IS NULL, r.ended_at, q.ended_at) AS ended_at
            FROM queue q FULL JOIN runs r ON r.name = q.name LEFT JOIN devices d ON d.id = r.device)
         WHERE (?1 IS NULL OR name = ?1) AND (?2 IS NULL OR name < ?2)
           AND (?3 IS NULL OR coalesce(queue_state, run_state) = ?3
                OR (?3 = 'interrupted' AND queue_state IS NULL AND run_state = 'running'))
         ORDER BY name DESC LIMIT ?4",
    )
    .bind(filter.id.clone())
    .bind(filter.before.clone())
    .bind(filter.state.clone())
    .bind(filter.limit)
    .fetch_all(&mut *connection)
    .await?;
    let mut runs = Vec::with_capacity(rows.len());
    for row in rows {
        let run = run_row(connection, &row).await?;
        // Whether an owner lives is not for SQL to say.
        if filter
            .state
            .as_ref()
            .is_none_or(|state| *state == run.state)
        {
            runs.push(run);
        }
    }
    Ok(runs)
}

async fn run_row(
    connection: &mut SqliteConnection,
    row: &sqlx::sqlite::SqliteRow,
) -> Result<RunRow, sqlx::Error> {
    let text = |column: &str| row.try_get::<Option<String>, _>(column);
    let device = text("device")?;
    let kind = text("kind")?.as_deref().and_then(kind_from_name);
    let state = match (text("queue_state")?, text("run_state")?) {
        (Some(state), _) => state,
        (None, Some(state)) if state == "running" => {
            let driven = text("owner")?.as_deref().is_some_and(owner::is_alive);
            if driven { "running" } else { "interrupted" }.to_owned()
        }
        (None, state) => state.unwrap_or_default(),
    };
    let tasks: Vec<(String, String, i64)> = sqlx::query_as(
        "SELECT k.name, p.name,
            (SELECT coalesce(max(v.sequence) + 1, 0) FROM verdicts v WHERE v.task = t.id)
         FROM tasks t JOIN problems p ON p.id = t.problem JOIN kernels k ON k.id = p.kernel
         WHERE t.run = ? ORDER BY t.id",
    )
    .bind(row.try_get::<Option<i64>, _>("run")?)
    .fetch_all(connection)
    .await?;
    let key = |(kernel, problem, evals): (String, String, i64)| {
        let device = device.clone().unwrap_or_default();
        let key = TaskKey {
            kernel,
            problem,
            device,
        };
        (key, u64::try_from(evals).unwrap_or(0))
    };
    Ok(RunRow {
        id: row.try_get("name")?,
        state,
        message: text("message")?.unwrap_or_default(),
        request: text("request")?,
        selector: text("waits_for")?.or(text("selector")?).unwrap_or_default(),
        tasks: tasks.into_iter().map(key).collect(),
        device: device.clone().zip(kind),
        strategy: text("strategy")?,
        seed: text("seed")?,
        settings: text("settings")?,
        submitted_at: text("submitted_at")?,
        started_at: text("started_at")?,
        ended_at: text("ended_at")?,
    })
}

async fn run_tasks(
    connection: &mut SqliteConnection,
    id: &RunId,
) -> Result<Vec<RunTask>, sqlx::Error> {
    let rows: Vec<(i64, String, String, String, Option<String>)> = sqlx::query_as(
        "SELECT t.id, k.name, p.name, d.name, t.default_config FROM runs r
         JOIN tasks t ON t.run = r.id JOIN problems p ON p.id = t.problem
         JOIN kernels k ON k.id = p.kernel JOIN devices d ON d.id = r.device
         WHERE r.name = ? ORDER BY t.id",
    )
    .bind(id.to_string())
    .fetch_all(&mut *connection)
    .await?;
    let mut tasks = Vec::with_capacity(rows.len());
    for (task, kernel, problem, device, default) in rows {
        let key = TaskKey {
            kernel,
            problem,
            device,
        };
        tasks.push(run_task(connection, task, key, default).await?);
    }
    Ok(tasks)
}

async fn run_trials(
    connection: &mut SqliteConnection,
    id: &RunId,
    failed: bool,
    limit: u32,
) -> Result<Vec<RunTrial>, sqlx::Error> {
    let rows = sqlx::query(
        "SELECT k.name AS kernel, p.name AS problem, v.sequence, v.verdict,
            substr(v.detail, 1, 300) AS detail, c.hash, c.config, m.p50_us
         FROM runs r JOIN tasks t ON t.run = r.id JOIN verdicts v ON v.task = t.id
         JOIN candidates c ON c.id = v.candidate JOIN problems p ON p.id = t.problem
         JOIN kernels k ON k.id = p.kernel LEFT JOIN times m ON m.verdict = v.id
         WHERE r.name = ?1 AND (NOT ?2 OR v.verdict <> 'ok') ORDER BY v.id DESC LIMIT ?3",
    )
    .bind(id.to_string())
    .bind(failed)
    .bind(limit)
    .fetch_all(connection)
    .await?;
    let decode = |error: serde_json::Error| sqlx::Error::Decode(Box::new(error));
    rows.iter()
        .map(|row| {
            let verdict: String = row.try_get("verdict")?;
            let sequence: Option<i64> = row.try_get("sequence")?;
            Ok(RunTrial {
                kernel: row.try_get("kernel")?,
                problem: row.try_get("problem")?,
                sequence: sequence.and_then(|sequence| u64::try_from(sequence).ok()),
                verdict: Verdict::from_name(&verdict).unwrap_or(Verdict::Unsupported),
                detail: row.try_get("detail")?,
                candidate: hash_from_bytes(&row.try_get::<Vec<u8>, _>("hash")?),
                config: config_from_text(row.try_get("config")?).map_err(decode)?,
                p50_us: row.try_get("p50_us")?,
            })
        })
        .collect()
}

async fn run_task(
    connection: &mut SqliteConnection,
    task: i64,
    key: TaskKey,
    default: Option<String>,
) -> Result<RunTask, sqlx::Error> {
    let counts: Vec<(String, i64, i64)> = sqlx::query_as(
        "SELECT verdict, count(*), sum(charged_us) FROM verdicts WHERE task = ? GROUP BY verdict",
    )
    .bind(task)
    .fetch_all(&mut *connection)
    .await?;
    let charged_us: i64 = counts.iter().map(|(_, _, charged)| charged).sum();
    let verdicts: BTreeMap<Verdict, u64> = counts
        .into_iter()
        .filter_map(|(name, count, _)| {
            Some((Verdict::from_name(&name)?, u64::try_from(count).ok()?))
        })
        .collect();
    // Only the falls of the running minimum leave the database: a curve has tens of points, a task
    // may have a million results.
    let falls: Vec<(i64, f64, i64)> = sqlx::query_as(
        "SELECT sequence, p50_us, candidate FROM (
            SELECT v.sequence, m.p50_us, v.candidate, min(m.p50_us) OVER (
                ORDER BY v.sequence ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
            FROM verdicts v JOIN measurements m ON m.verdict = v.id
            WHERE v.task = ? AND v.sequence IS NOT NULL AND v.verdict = 'ok')
         WHERE before IS NULL OR p50_us < before ORDER BY sequence",
    )
    .bind(task)
    .fetch_all(&mut *connection)
    .await?;
    let best: Option<String> = match falls.last() {
        None => None,
        Some((_, _, candidate)) => {
            sqlx::query_scalar("SELECT config FROM candidates WHERE id = ?")
                .bind(candidate)
                .fetch_optional(&mut *connection)
                .await?
        }
    };
    let default_us: Option<f64> = match default {
        None => None,
        Some(config) => {
            sqlx::query_scalar(
                "SELECT m.p50_us FROM verdicts v JOIN measurements m ON m.verdict = v.id
                 JOIN candidates c ON c.id = v.candidate WHERE v.task = ? AND c.config = ? LIMIT 1",
            )
            .bind(task)
            .bind(config)
            .fetch_optional(connection)
            .await?
        }
    };
    Ok(RunTask {
        key,
        evals: verdicts.values().sum(),
        charged_us: u64::try_from(charged_us).unwrap_or(0),
        default_us,
        verdicts,
        curve: falls
            .into_iter()
            .map(|(sequence, us, _)| CurvePoint {
                evals: u64::try_from(sequence).unwrap_or(0) + 1,
                us,
            })
            .collect(),
        best_config: best.and_then(|config| config_from_text(&config).ok()),
    })
}

/// See [`super::Store::kernels`].
pub(super) async fn kernels(
    path: &Path,
    connection: &mut SqliteConnection,
) -> Result<Vec<String>, StoreError> {
    sqlx::query_scalar(
        "SELECT DISTINCT k.name FROM kernels k JOIN problems p ON p.kernel = k.id
         JOIN tasks t ON t.problem = p.id
         WHERE EXISTS (SELECT 1 FROM verdicts v WHERE v.task = t.id) ORDER BY k.name",
    )
    .fetch_all(connection)
    .await
    .map_err(|error| StoreError::from_sqlx(path, &error))
}
