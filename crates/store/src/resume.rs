//! Search for the run that `--resume` continues.

use super::error::broken;
use super::owner;
use super::rows::{SEARCH_COLUMNS, config_text, trial_from_row};
use super::run::{RunId, RunStart, StoredRun, StoredTask, TaskStart};
use sqlx::types::Text;
use sqlx::{AssertSqlSafe, SqliteConnection};
use std::collections::BTreeSet;

#[derive(sqlx::FromRow)]
struct RunRow {
    id: i64,
    #[sqlx(flatten)]
    run: StoredRun,
    state: String,
    owner: Option<String>,
}

/// Kernel, version, problem, sizes and reference: these must agree for old results to be valid. A stored
/// reference of `None` predates the recording of references.
type TaskIdentity = (String, String, String, String, Option<String>);

/// Reports whether the tasks of a stored run are the wanted ones.
fn agree(stored: &BTreeSet<TaskIdentity>, wanted: &BTreeSet<TaskIdentity>) -> bool {
    let same = |(stored, wanted): (&TaskIdentity, &TaskIdentity)| {
        let references = stored.4.is_none() || stored.4 == wanted.4;
        references
            && (&stored.0, &stored.1, &stored.2, &stored.3)
                == (&wanted.0, &wanted.1, &wanted.2, &wanted.3)
    };
    // The reference is the last part of the order, so tasks that differ only in it still pair up.
    stored.len() == wanted.len() && stored.iter().zip(wanted).all(same)
}

/// Finds the latest run of the same kernels, template versions, problems, device and seed that did not
/// reach its end, and whose process has ended.
pub(super) async fn unfinished(
    connection: &mut SqliteConnection,
    start: &RunStart,
) -> Result<Option<StoredRun>, sqlx::Error> {
    let runs: Vec<RunRow> = sqlx::query_as(
        "SELECT r.id, r.name, r.strategy, r.settings, r.state, r.owner, r.started_at
         FROM runs r JOIN devices d ON d.id = r.device
         WHERE d.name = ? AND d.kind = ? AND r.seed = ? AND r.state <> 'finished'
         ORDER BY r.id DESC",
    )
    .bind(&start.device.name)
    .bind(Text(start.device.kind))
    .bind(start.seed.to_string())
    .fetch_all(&mut *connection)
    .await?;
    let wanted = identities(start);
    for run in runs {
        let driven = run.state == "running" && run.owner.as_deref().is_some_and(owner::is_alive);
        // Two processes that continue one run would mix their sequences.
        if driven {
            continue;
        }
        let stored = tasks_of(connection, run.id).await?;
        if agree(&stored, &wanted) {
            return load(connection, run, start).await.map(Some);
        }
    }
    Ok(None)
}

fn identities(start: &RunStart) -> BTreeSet<TaskIdentity> {
    let identity = |task: &TaskStart| {
        (
            task.kernel.clone(),
            start.version(task),
            task.problem.clone(),
            config_text(&task.sizes),
            task.reference_hash.as_ref().map(ToString::to_string),
        )
    };
    start.tasks.iter().map(identity).collect()
}

async fn tasks_of(
    connection: &mut SqliteConnection,
    run: i64,
) -> Result<BTreeSet<TaskIdentity>, sqlx::Error> {
    let tasks: Vec<TaskIdentity> = sqlx::query_as(
        "SELECT k.name, coalesce(k.template_hash, k.version), p.name, p.sizes, k.reference_hash
         FROM tasks t
         JOIN problems p ON p.id = t.problem JOIN kernels k ON k.id = p.kernel
         WHERE t.run = ?",
    )
    .bind(run)
    .fetch_all(connection)
    .await?;
    Ok(tasks.into_iter().collect())
}

/// Finds the run of that name, if it has begun; rejected if the kernels have changed since.
pub(super) async fn named(
    connection: &mut SqliteConnection,
    id: &RunId,
    start: &RunStart,
) -> Result<Option<StoredRun>, sqlx::Error> {
    let run: Option<RunRow> = sqlx::query_as(
        "SELECT id, name, strategy, settings, state, owner, started_at FROM runs WHERE name = ?",
    )
    .bind(id.as_str())
    .fetch_optional(&mut *connection)
    .await?;
    let Some(run) = run else { return Ok(None) };
    let stored = tasks_of(connection, run.id).await?;
    if !agree(&stored, &identities(start)) {
        return Err(broken(format!(
            "run {id} cannot go on: its template, reference, sizes or recording changed since it \
             began. What it found is kept; submit it again to tune the new version"
        )));
    }
    load(connection, run, start).await.map(Some)
}

async fn load(
    connection: &mut SqliteConnection,
    RunRow { id, mut run, .. }: RunRow,
    start: &RunStart,
) -> Result<StoredRun, sqlx::Error> {
    for task in &start.tasks {
        let sql = format!(
            "{SEARCH_COLUMNS} WHERE t.run = ? AND k.name = ? AND p.name = ?
             ORDER BY v.sequence, v.id"
        );
        let rows = sqlx::query(AssertSqlSafe(sql))
            .bind(id)
            .bind(&task.kernel)
            .bind(&task.problem)
            .fetch_all(&mut *connection)
            .await?;
        let mut stored = StoredTask {
            key: start.key(task),
            trials: Vec::new(),
            never_came_back: Vec::new(),
        };
        for row in &rows {
            match trial_from_row(row)? {
                (Some(_), trial) => stored.trials.push(trial),
                // Only an announcement has no sequence.
                (None, trial) => stored.never_came_back.push(trial),
            }
        }
        run.tasks.push(stored);
    }
    Ok(run)
}
