//! Start and reopening of a run: the rows that all others reference.

use super::error::broken;
use super::owner;
use super::rows::config_text;
use super::run::{RunId, RunStart, TaskStart};
use super::tasks::now;
use sqlx::types::Text;
use sqlx::{Connection as _, SqliteConnection};
use std::collections::BTreeMap;
use tuner_core::record::{Provenance, TaskKey};

/// The rows referenced by a task's trials.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenTask {
    pub(super) task: i64,
    pub(super) problem: i64,
    pub(super) provenance: i64,
}

pub(super) type OpenTasks = BTreeMap<TaskKey, OpenTask>;

/// Stores a new run.
pub(super) async fn begin(
    connection: &mut SqliteConnection,
    id: &RunId,
    start: &RunStart,
) -> Result<OpenTasks, sqlx::Error> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let run = insert_run(&mut transaction, id, start).await?;
    let tasks = open_tasks(&mut transaction, run, start).await?;
    transaction.commit().await?;
    Ok(tasks)
}

async fn open_tasks(
    connection: &mut SqliteConnection,
    run: i64,
    start: &RunStart,
) -> Result<OpenTasks, sqlx::Error> {
    // In the transaction of the run: a run without tasks must never be visible.
    let mut tasks = OpenTasks::new();
    for task in &start.tasks {
        let open = open_task(connection, run, start, task).await?;
        tasks.insert(start.key(task), open);
    }
    Ok(tasks)
}

async fn insert_run(
    connection: &mut SqliteConnection,
    id: &RunId,
    start: &RunStart,
) -> Result<i64, sqlx::Error> {
    let device = &start.device;
    let device_id: i64 = sqlx::query_scalar(
        "INSERT INTO devices (name, kind, arch, environment) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (name, kind) DO UPDATE SET arch = ?3, environment = ?4 RETURNING id",
    )
    .bind(&device.name)
    .bind(Text(device.kind))
    .bind(&device.arch)
    .bind(config_text(&device.environment))
    .fetch_one(&mut *connection)
    .await?;
    let recording = device.recording.as_ref();
    sqlx::query_scalar(
        "INSERT INTO runs (name, device, selector, recording_path, recording_hash, seed, strategy,
                           settings, state, owner, started_at)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'running', ?, ?) RETURNING id",
    )
    .bind(id.as_str())
    .bind(device_id)
    .bind(&device.selector)
    .bind(recording.map(|source| source.path.to_string_lossy().into_owned()))
    .bind(recording.map(|source| source.hash.to_string()))
    .bind(start.seed.to_string())
    .bind(&start.strategy)
    .bind(start.settings.to_string())
    .bind(owner::current())
    .bind(now())
    .fetch_one(&mut *connection)
    .await
}

/// Finds or inserts the rows of a task, for a new and for a continued run.
async fn open_task(
    connection: &mut SqliteConnection,
    run: i64,
    start: &RunStart,
    task: &TaskStart,
) -> Result<OpenTask, sqlx::Error> {
    let kernel = open_kernel(connection, start, task).await?;
    // The update without a change makes RETURNING yield the id of an existing row.
    let problem: i64 = sqlx::query_scalar(
        "INSERT INTO problems (kernel, name, sizes) VALUES (?1, ?2, ?3)
         ON CONFLICT (kernel, name, sizes) DO UPDATE SET name = name RETURNING id",
    )
    .bind(kernel)
    .bind(&task.problem)
    .bind(config_text(&task.sizes))
    .fetch_one(&mut *connection)
    .await?;
    let definition: i64 = sqlx::query_scalar(
        "INSERT INTO definitions (body) VALUES (?1)
         ON CONFLICT (body) DO UPDATE SET body = body RETURNING id",
    )
    .bind(serde_json::to_string(&task.definition).unwrap_or_default())
    .fetch_one(&mut *connection)
    .await?;
    // A resumed run already has the row; its definition and paths may have changed.
    let task_id: i64 = sqlx::query_scalar(
        "INSERT INTO tasks (run, problem, definition, default_config, space_path)
         VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (run, problem)
         DO UPDATE SET definition = ?3, default_config = ?4, space_path = ?5 RETURNING id",
    )
    .bind(run)
    .bind(problem)
    .bind(definition)
    .bind(task.default_config.as_ref().map(config_text))
    .bind(
        task.space_path
            .as_ref()
            .map(|path| path.to_string_lossy().into_owned()),
    )
    .fetch_one(&mut *connection)
    .await?;
    Ok(OpenTask {
        task: task_id,
        problem,
        provenance: provenance_row(connection, &task.provenance).await?,
    })
}

/// Finds or inserts the row of a kernel's version. A row that predates stored references gets the first
/// reference used with it; any other reference creates a separate version.
async fn open_kernel(
    connection: &mut SqliteConnection,
    start: &RunStart,
    task: &TaskStart,
) -> Result<i64, sqlx::Error> {
    let version = start.version(task);
    let reference = task.reference_hash.as_ref().map(ToString::to_string);
    let known: Option<i64> = sqlx::query_scalar(
        "UPDATE kernels SET reference_hash = coalesce(reference_hash, ?3)
         WHERE name = ?1 AND version = ?2
           AND (reference_hash IS NULL OR ?3 IS NULL OR reference_hash = ?3) RETURNING id",
    )
    .bind(&task.kernel)
    .bind(&version)
    .bind(&reference)
    .fetch_optional(&mut *connection)
    .await?;
    if let Some(id) = known {
        return Ok(id);
    }
    sqlx::query_scalar(
        "INSERT INTO kernels (name, version, template_hash, reference_hash)
         VALUES (?1, iif(EXISTS (SELECT 1 FROM kernels WHERE name = ?1 AND version = ?2),
                         ?2 || '#' || ?4, ?2), ?3, ?4)
         ON CONFLICT (name, version) DO UPDATE SET name = name RETURNING id",
    )
    .bind(&task.kernel)
    .bind(version)
    .bind(task.template_hash.as_ref().map(ToString::to_string))
    .bind(reference)
    .fetch_one(&mut *connection)
    .await
}

/// Finds or inserts a row of provenance. It has no unique index, because its columns may be null
/// and nulls are never equal.
async fn provenance_row(
    connection: &mut SqliteConnection,
    provenance: &Provenance,
) -> Result<i64, sqlx::Error> {
    let with_columns = |sql: &'static str| {
        sqlx::query_scalar(sql)
            .bind(&provenance.commit)
            .bind(provenance.dirty)
            .bind(&provenance.host)
            .bind(&provenance.tuner_version)
            .bind(&provenance.driver)
            .bind(&provenance.nvrtc_version)
            .bind(&provenance.diff_hash)
    };
    let known: Option<i64> = with_columns(
        "SELECT id FROM provenance WHERE git_commit IS ?1 AND dirty = ?2 AND host = ?3
         AND tuner_version = ?4 AND driver IS ?5 AND nvrtc_version IS ?6 AND diff_hash IS ?7",
    )
    .fetch_optional(&mut *connection)
    .await?;
    if let Some(id) = known {
        return Ok(id);
    }
    with_columns(
        "INSERT INTO provenance (git_commit, dirty, host, tuner_version, driver, nvrtc_version,
                                 diff_hash)
         VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id",
    )
    .fetch_one(&mut *connection)
    .await
}

/// Takes over an unfinished run; also returns the announcements without a result.
pub(super) async fn reopen(
    connection: &mut SqliteConnection,
    id: &RunId,
    start: &RunStart,
) -> Result<(OpenTasks, Vec<(i64, Vec<u8>)>), sqlx::Error> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let (run, state, owner): (i64, String, Option<String>) =
        sqlx::query_as("SELECT id, state, owner FROM runs WHERE name = ?")
            .bind(id.as_str())
            .fetch_optional(&mut *transaction)
            .await?
            .ok_or_else(|| broken(format!("there is no run {id}")))?;
    // This process may have failed to record its exit from the run.
    let elsewhere = |owner: &str| owner != owner::current() && owner::is_alive(owner);
    if state == "running" && owner.as_deref().is_some_and(elsewhere) {
        return Err(broken(format!(
            "run {id} is being continued by another process; leave out --resume to start a new run"
        )));
    }
    sqlx::query("UPDATE runs SET state = 'running', owner = ?, ended_at = NULL WHERE id = ?")
        .bind(owner::current())
        .bind(run)
        .execute(&mut *transaction)
        .await?;
    let tasks = open_tasks(&mut transaction, run, start).await?;
    let announced = sqlx::query_as(
        "SELECT v.task, c.hash FROM verdicts v JOIN candidates c ON c.id = v.candidate
         JOIN tasks t ON t.id = v.task WHERE t.run = ? AND v.sequence IS NULL",
    )
    .bind(run)
    .fetch_all(&mut *transaction)
    .await?;
    transaction.commit().await?;
    Ok((tasks, announced))
}
