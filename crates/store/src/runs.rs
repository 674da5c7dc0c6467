//! Runs as they are listed and drawn: asked for, under way, over.

use super::Store;
use super::error::{At as _, StoreError};
use super::owner;
use super::rows::{Config, HashBytes};
use super::run::RunId;
use sqlx::SqliteConnection;
use sqlx::types::Text;
use std::collections::BTreeMap;
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
    /// The best-so-far curve, without candidates that a later judgement found to be wrong.
    pub curve: Vec<CurvePoint>,
    /// What its candidates cost on the device's virtual clock, microseconds.
    pub charged_us: u64,
    /// The configuration at its end.
    pub best_config: Option<ConfigValues>,
}

/// One result of a run, in short.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct RunTrial {
    /// Kernel name.
    pub kernel: String,
    /// Problem name.
    pub problem: String,
    /// Place in the order of its task; `None` where only announced.
    pub sequence: Option<u64>,
    /// The judgement.
    #[sqlx(try_from = "&'a str")]
    pub verdict: Verdict,
    /// Why, its first 300 characters.
    pub detail: String,
    /// Identity of the candidate.
    #[sqlx(try_from = "HashBytes")]
    pub candidate: ContentHash,
    /// The configuration.
    #[sqlx(try_from = "Config")]
    pub config: ConfigValues,
    /// Median, microseconds, where it passed.
    pub p50_us: Option<f64>,
    /// The time that one launch in ten exceeds, microseconds, where it passed.
    pub p90_us: Option<f64>,
    /// Registers a thread, where it was compiled.
    pub registers: Option<u32>,
    /// Machine code, bytes, where its length was kept.
    pub code_bytes: Option<u64>,
    /// Energy of a launch sequence, millijoules, where it was measured.
    pub energy_mj: Option<f64>,
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
        let reader = &mut *self.reader().await?;
        run_trials(reader, id, failed, limit).await.at(&self.path)
    }

    /// Runs, latest first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>, StoreError> {
        let reader = &mut *self.reader().await?;
        runs(reader, filter).await.at(&self.path)
    }

    /// The tasks of a run with their curves; empty where it has not begun.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn run_tasks(&self, id: &RunId) -> Result<Vec<RunTask>, StoreError> {
        let reader = &mut *self.reader().await?;
        run_tasks(reader, id).await.at(&self.path)
    }

    /// How many runs of the queue are in each state.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn queue_counts(&self) -> Result<BTreeMap<String, u64>, StoreError> {
        let reader = &mut *self.reader().await?;
        let rows = sqlx::query_as("SELECT state, count(*) FROM queue GROUP BY state")
            .fetch_all(reader)
            .await
            .at(&self.path)?;
        Ok(rows.into_iter().collect())
    }
}

async fn runs(
    connection: &mut SqliteConnection,
    filter: &RunFilter,
) -> Result<Vec<RunRow>, sqlx::Error> {
    let rows: Vec<FoundRun> = sqlx::query_as(
        "SELECT * FROM (
            SELECT coalesce(q.name, r.name) AS name, q.state AS queue_state,
                coalesce(q.message, '') AS message, q.request,
                coalesce(q.device, r.selector, '') AS selector, q.submitted_at, r.id AS run,
                r.state AS run_state, r.owner, r.strategy, r.seed, r.settings, d.name AS device,
                d.kind, coalesce(q.started_at, r.started_at) AS started_at,
                iif(q.name IS NULL, r.ended_at, q.ended_at) AS ended_at
            FROM queue q FULL JOIN runs r ON r.name = q.name LEFT JOIN devices d ON d.id = r.device)
         WHERE (?1 IS NULL OR name = ?1) AND (?2 IS NULL OR name < ?2)
           AND (?3 IS NULL OR coalesce(queue_state, run_state) = ?3
                OR (?3 = 'interrupted' AND queue_state IS NULL AND run_state = 'running'))
         ORDER BY name DESC LIMIT ?4",
    )
    .bind(&filter.id)
    .bind(&filter.before)
    .bind(&filter.state)
    .bind(filter.limit)
    .fetch_all(&mut *connection)
    .await?;
    let mut runs = Vec::with_capacity(rows.len());
    for row in rows {
        let run = run_row(connection, row).await?;
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

#[derive(sqlx::FromRow)]
struct FoundRun {
    name: String,
    queue_state: Option<String>,
    message: String,
    request: Option<String>,
    selector: String,
    submitted_at: Option<String>,
    run: Option<i64>,
    run_state: Option<String>,
    owner: Option<String>,
    strategy: Option<String>,
    seed: Option<String>,
    settings: Option<String>,
    device: Option<String>,
    kind: Option<Text<DeviceKind>>,
    started_at: Option<String>,
    ended_at: Option<String>,
}

async fn run_row(connection: &mut SqliteConnection, row: FoundRun) -> Result<RunRow, sqlx::Error> {
    let state = match (row.queue_state, row.run_state) {
        (Some(state), _) => state,
        (None, Some(state)) if state == "running" => {
            let driven = row.owner.as_deref().is_some_and(owner::is_alive);
            if driven { "running" } else { "interrupted" }.to_owned()
        }
        (None, state) => state.unwrap_or_default(),
    };
    let tasks: Vec<(String, String, u64)> = sqlx::query_as(
        "SELECT k.name, p.name,
            (SELECT coalesce(max(v.sequence) + 1, 0) FROM verdicts v WHERE v.task = t.id)
         FROM tasks t JOIN problems p ON p.id = t.problem JOIN kernels k ON k.id = p.kernel
         WHERE t.run = ? ORDER BY t.id",
    )
    .bind(row.run)
    .fetch_all(connection)
    .await?;
    let device = row.device.clone().unwrap_or_default();
    let key = |(kernel, problem, evals): (String, String, u64)| {
        let device = device.clone();
        let key = TaskKey {
            kernel,
            problem,
            device,
        };
        (key, evals)
    };
    Ok(RunRow {
        id: row.name,
        state,
        message: row.message,
        request: row.request,
        selector: row.selector,
        tasks: tasks.into_iter().map(key).collect(),
        device: row.device.zip(row.kind.map(|kind| kind.0)),
        strategy: row.strategy,
        seed: row.seed,
        settings: row.settings,
        submitted_at: row.submitted_at,
        started_at: row.started_at,
        ended_at: row.ended_at,
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
    .bind(id.as_str())
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
    sqlx::query_as(RUN_TRIALS)
        .bind(id.as_str())
        .bind(failed)
        .bind(limit)
        .fetch_all(connection)
        .await
}

/// The latest results of a run: first which, then what is known of them.
pub(super) const RUN_TRIALS: &str =
    "SELECT k.name AS kernel, p.name AS problem, v.sequence, v.verdict,
            substr(v.detail, 1, 300) AS detail, c.hash AS candidate, c.config,
            coalesce(f.p50_us, m.p50_us) AS p50_us, coalesce(f.p90_us, m.p90_us) AS p90_us,
            x.registers, nullif(x.sass_bytes, 0) AS code_bytes, w.energy_mj
         FROM (SELECT v.id FROM runs r JOIN tasks t ON t.run = r.id JOIN verdicts v ON v.task = t.id
             WHERE r.name = ?1 AND (NOT ?2 OR v.verdict <> 'ok') ORDER BY v.id DESC LIMIT ?3) latest
         JOIN verdicts v ON v.id = latest.id JOIN tasks t ON t.id = v.task
         JOIN candidates c ON c.id = v.candidate JOIN problems p ON p.id = t.problem
         JOIN kernels k ON k.id = p.kernel LEFT JOIN measurements m ON m.verdict = v.id
         LEFT JOIN final_times f ON f.verdict = v.id
         LEFT JOIN compilations x ON x.candidate = c.id
         LEFT JOIN timing_evidence w ON w.verdict = v.id AND w.stage = 'race'
         ORDER BY v.id DESC";

async fn run_task(
    connection: &mut SqliteConnection,
    task: i64,
    key: TaskKey,
    default: Option<String>,
) -> Result<RunTask, sqlx::Error> {
    let counts: Vec<(Text<Verdict>, u64, u64)> = sqlx::query_as(
        "SELECT verdict, count(*), sum(charged_us) FROM verdicts WHERE task = ? GROUP BY verdict",
    )
    .bind(task)
    .fetch_all(&mut *connection)
    .await?;
    // Only the falls of the running minimum leave the database: a curve has tens of points, a task
    // may have a million results.
    let falls: Vec<(u64, f64, i64)> = sqlx::query_as(
        "SELECT sequence + 1, p50_us, candidate FROM (
            SELECT v.sequence, m.p50_us, v.candidate, min(m.p50_us) OVER (
                ORDER BY v.sequence ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
            FROM verdicts v JOIN measurements m ON m.verdict = v.id
            WHERE v.task = ? AND v.sequence IS NOT NULL AND v.verdict = 'ok'
              AND NOT EXISTS (SELECT 1 FROM withdrawn w WHERE w.verdict = v.id))
         WHERE before IS NULL OR p50_us < before ORDER BY sequence",
    )
    .bind(task)
    .fetch_all(&mut *connection)
    .await?;
    let best: Option<Config> = sqlx::query_scalar("SELECT config FROM candidates WHERE id = ?")
        .bind(falls.last().map(|(_, _, candidate)| candidate))
        .fetch_optional(&mut *connection)
        .await?;
    let default_us = sqlx::query_scalar(
        "SELECT m.p50_us FROM verdicts v JOIN measurements m ON m.verdict = v.id
         JOIN candidates c ON c.id = v.candidate WHERE v.task = ? AND c.config = ? LIMIT 1",
    )
    .bind(task)
    .bind(default)
    .fetch_optional(connection)
    .await?;
    Ok(RunTask {
        key,
        evals: counts.iter().map(|(_, count, _)| count).sum(),
        charged_us: counts.iter().map(|(_, _, charged)| charged).sum(),
        default_us,
        verdicts: counts
            .into_iter()
            .map(|(verdict, count, _)| (verdict.0, count))
            .collect(),
        curve: falls
            .into_iter()
            .map(|(evals, us, _)| CurvePoint { evals, us })
            .collect(),
        best_config: best.map(Config::into),
    })
}
