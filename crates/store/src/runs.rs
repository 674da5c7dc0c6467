//! Listing of runs: queued, running, ended.

use super::Store;
use super::bests::{CurvePoint, best_falls, final_best};
use super::error::{StoreError, WithPath as _};
use super::owner;
use super::rows::{Config, HashBytes};
use super::run::RunId;
use serde::{Deserialize, Serialize};
use sqlx::SqliteConnection;
use sqlx::types::Text;
use std::collections::BTreeMap;
use tuner_core::record::{
    Compared, ConfigValues, DeviceKind, TimingKind, Verdict, config_as_object, rank_class,
};
use tuner_core::units::ContentHash;
use utoipa::ToSchema;

/// Filter of listed runs.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// Only that one.
    pub id: Option<String>,
    /// Only those in this state.
    pub state: Option<String>,
    /// Only those requested before this one.
    pub before: Option<String>,
    /// Maximum number, latest first.
    pub limit: u32,
}

/// A run, from the queue or started by `tuner run`.
#[derive(Debug, Clone, Default, sqlx::FromRow)]
pub struct RunRow {
    /// Its name.
    #[sqlx(rename = "name")]
    pub id: String,
    /// `queued`, `running`, `finished`, `stopped`, `failed`, or `interrupted`: started by a `tuner run`
    /// that ended before its limits.
    pub state: String,
    /// Result or reason of failure; may be empty.
    pub message: String,
    /// The request, JSON; `None` if `tuner run` started it.
    pub request: Option<String>,
    /// The device key it waits for, or the selector of its device.
    pub selector: String,
    /// Device; `None` before it begins.
    pub device: Option<String>,
    /// Its kind; `None` before it begins.
    #[sqlx(skip)]
    pub device_kind: Option<DeviceKind>,
    /// Strategy; `None` before it begins.
    pub strategy: Option<String>,
    /// Seed, decimal; `None` before it begins.
    pub seed: Option<String>,
    /// Limits and other settings, JSON.
    pub settings: Option<String>,
    /// Its tasks, with the number of results and no other figures.
    #[sqlx(skip)]
    pub tasks: Vec<RunTask>,
    /// Time of the request, RFC 3339 UTC; `None` if `tuner run` started it.
    pub submitted_at: Option<String>,
    /// Start.
    pub started_at: Option<String>,
    /// End.
    pub ended_at: Option<String>,
}

/// A kernel and problem of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = TaskView)]
pub struct RunTask {
    /// Kernel name.
    pub kernel: String,
    /// Problem name.
    pub problem: String,
    /// Number of valid configurations, decimal; null if unavailable.
    pub valid: Option<String>,
    /// Configurations judged.
    pub evals: u64,
    /// The fastest verified time, µs: that of the run's final comparison if there was one.
    pub best_us: Option<f64>,
    /// 95 % interval of that time, µs, if it is of the final comparison; null otherwise.
    #[serde(default)]
    pub best_ci95_us: Option<[f64; 2]>,
    /// Time of that configuration in the search, µs, if `best_us` is of the final comparison; null
    /// otherwise. `default_us` and `curve` are of the search.
    #[serde(default)]
    pub search_us: Option<f64>,
    /// Source of that time; null without a time.
    #[serde(default)]
    pub timing: Option<TimingKind>,
    /// The configuration with that time.
    #[serde(with = "optional_config")]
    #[schema(value_type = Option<BTreeMap<String, serde_json::Value>>)]
    pub best_config: Option<ConfigValues>,
    /// Comparison of its results at the timed size; null for recorded ones.
    #[serde(default)]
    pub best_compared: Option<Compared>,
    /// Time of the default configuration, µs.
    pub default_us: Option<f64>,
    /// 95 % interval of that time, µs; null unless it was measured.
    #[serde(default)]
    pub default_ci95_us: Option<[f64; 2]>,
    /// Configurations answered by earlier runs, if the daemon carried the run out; included in
    /// `evals`.
    #[serde(default)]
    pub known: u64,
    /// Number of candidates by verdict.
    #[schema(value_type = BTreeMap<String, u64>)]
    pub verdicts: BTreeMap<Verdict, u64>,
    /// Upper bound of the expected gain of further trials, as a share of the best time, with 90 %
    /// confidence. Null without an estimate.
    #[serde(default)]
    pub left: Option<f64>,
    /// Falls of the best time. Only for a single run; empty in lists.
    // Without candidates that a later judgement found to be wrong.
    pub curve: Vec<CurvePoint>,
    /// Cost of its candidates on the device's virtual clock, microseconds.
    #[serde(skip)]
    pub charged_us: u64,
}

/// Summary of one result of a run.
#[derive(Debug, Clone, Serialize, ToSchema, sqlx::FromRow)]
#[schema(as = TrialView)]
pub struct RunTrial {
    /// Kernel name.
    pub kernel: String,
    /// Problem name.
    pub problem: String,
    /// Index in the order of its task, from 0; null while the launch has not returned.
    pub sequence: Option<u64>,
    /// The judgement.
    #[sqlx(try_from = "&'a str")]
    pub verdict: Verdict,
    /// The first 300 characters of the reason; `…` ends what is cut.
    pub detail: String,
    /// Identity of the candidate, for `/api/v1/candidates/{candidate}`.
    #[sqlx(try_from = "HashBytes")]
    #[schema(value_type = String)]
    pub candidate: ContentHash,
    /// The configuration.
    #[serde(with = "config_as_object")]
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    #[sqlx(try_from = "Config")]
    pub config: ConfigValues,
    /// Median, µs, if it passed.
    pub time_us: Option<f64>,
    /// 90th percentile, µs, if it passed.
    pub time_us_p90: Option<f64>,
    /// Registers per thread, if it was compiled.
    pub registers: Option<u32>,
    /// Machine code, bytes, if its length was stored.
    pub code_bytes: Option<u64>,
    /// Energy of a launch sequence, millijoules, if it was measured.
    pub energy_mj: Option<f64>,
    /// Verification level before the time, if recorded; after `first` the result may be wrong.
    pub gate: Option<String>,
}

/// Serializes an optional configuration as an object or null.
mod optional_config {
    use crate::rows::{Config, ConfigRef};
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};
    use tuner_core::record::ConfigValues;

    pub(super) fn serialize<S: Serializer>(
        config: &Option<ConfigValues>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        config.as_ref().map(ConfigRef).serialize(serializer)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(
        deserializer: D,
    ) -> Result<Option<ConfigValues>, D::Error> {
        Ok(Option::<Config>::deserialize(deserializer)?.map(Config::into))
    }
}

impl Store {
    /// Returns the latest results of a run; `failed` excludes those that passed.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn run_trials(
        &self,
        id: &RunId,
        failed: bool,
        limit: u32,
    ) -> Result<Vec<RunTrial>, StoreError> {
        sqlx::query_as(RUN_TRIALS)
            .bind(id.as_str())
            .bind(failed)
            .bind(limit)
            .fetch_all(&mut *self.reader().await?)
            .await
            .with_path(&self.path)
    }

    /// Returns runs, latest first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>, StoreError> {
        let reader = &mut *self.reader().await?;
        runs(reader, filter).await.with_path(&self.path)
    }

    /// Returns the tasks of a run with their curves; empty if it has not begun.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn run_tasks(&self, id: &RunId) -> Result<Vec<RunTask>, StoreError> {
        let reader = &mut *self.reader().await?;
        run_tasks(reader, id).await.with_path(&self.path)
    }

    /// Counts the runs of the queue by state.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn queue_counts(&self) -> Result<BTreeMap<String, u64>, StoreError> {
        let reader = &mut *self.reader().await?;
        let rows = sqlx::query_as("SELECT state, count(*) FROM queue GROUP BY state")
            .fetch_all(reader)
            .await
            .with_path(&self.path)?;
        Ok(rows.into_iter().collect())
    }
}

async fn runs(
    connection: &mut SqliteConnection,
    filter: &RunFilter,
) -> Result<Vec<RunRow>, sqlx::Error> {
    let rows: Vec<FoundRun> = sqlx::query_as(
        "SELECT * FROM (
            SELECT coalesce(q.name, r.name) AS name, coalesce(q.state, r.state, '') AS state,
                q.name IS NULL AS own, coalesce(q.message, '') AS message, q.request,
                coalesce(q.device, r.selector, '') AS selector, q.submitted_at, r.id AS run,
                r.owner, r.strategy, r.seed, r.settings, d.name AS device,
                d.kind, coalesce(q.started_at, r.started_at) AS started_at,
                iif(q.name IS NULL, r.ended_at, q.ended_at) AS ended_at
            FROM queue q FULL JOIN runs r ON r.name = q.name LEFT JOIN devices d ON d.id = r.device)
         WHERE (?1 IS NULL OR name = ?1) AND (?2 IS NULL OR name < ?2)
           AND (?3 IS NULL OR state = ?3 OR (?3 = 'interrupted' AND own AND state = 'running'))
         ORDER BY name DESC LIMIT ?4",
    )
    .bind(&filter.id)
    .bind(&filter.before)
    .bind(&filter.state)
    .bind(filter.limit)
    .fetch_all(&mut *connection)
    .await?;
    let mut runs = Vec::with_capacity(rows.len());
    for found in rows {
        let run = run_row(connection, found).await?;
        // SQL cannot check whether an owner is alive.
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
    #[sqlx(flatten)]
    run_row: RunRow,
    /// Driven by a separate owner process instead of a daemon.
    own: bool,
    owner: Option<String>,
    run: Option<i64>,
    kind: Option<Text<DeviceKind>>,
}

async fn run_row(
    connection: &mut SqliteConnection,
    found: FoundRun,
) -> Result<RunRow, sqlx::Error> {
    let mut row = found.run_row;
    let driven = || found.owner.as_deref().is_some_and(owner::is_alive);
    if found.own && row.state == "running" && !driven() {
        "interrupted".clone_into(&mut row.state);
    }
    row.device_kind = found.kind.map(|kind| kind.0);
    let tasks: Vec<(String, String, u64)> = sqlx::query_as(
        "SELECT k.name, p.name,
            (SELECT coalesce(max(v.sequence) + 1, 0) FROM verdicts v WHERE v.task = t.id)
         FROM tasks t JOIN problems p ON p.id = t.problem JOIN kernels k ON k.id = p.kernel
         WHERE t.run = ? ORDER BY t.id",
    )
    .bind(found.run)
    .fetch_all(connection)
    .await?;
    let task = |(kernel, problem, evals)| RunTask {
        kernel,
        problem,
        evals,
        ..RunTask::default()
    };
    row.tasks = tasks.into_iter().map(task).collect();
    Ok(row)
}

async fn run_tasks(
    connection: &mut SqliteConnection,
    id: &RunId,
) -> Result<Vec<RunTask>, sqlx::Error> {
    let rows: Vec<(i64, String, String, Option<String>)> = sqlx::query_as(
        "SELECT t.id, k.name, p.name, t.default_config FROM runs r
         JOIN tasks t ON t.run = r.id JOIN problems p ON p.id = t.problem
         JOIN kernels k ON k.id = p.kernel WHERE r.name = ? ORDER BY t.id",
    )
    .bind(id.as_str())
    .fetch_all(&mut *connection)
    .await?;
    let mut tasks = Vec::with_capacity(rows.len());
    for (task, kernel, problem, default) in rows {
        tasks.push(RunTask {
            kernel,
            problem,
            ..run_task(connection, task, default).await?
        });
    }
    Ok(tasks)
}

/// Selects the latest results of a run: first their keys, then their data.
pub(super) const RUN_TRIALS: &str =
    "SELECT k.name AS kernel, p.name AS problem, v.sequence, v.verdict,
            iif(length(v.detail) > 300, substr(v.detail, 1, 299) || '…', v.detail) AS detail, c.hash AS candidate, c.config,
            coalesce(f.p50_us, m.p50_us) AS time_us, coalesce(f.p90_us, m.p90_us) AS time_us_p90,
            x.registers, nullif(x.sass_bytes, 0) AS code_bytes, w.energy_mj, w.gate
         FROM (SELECT v.id FROM runs r JOIN tasks t ON t.run = r.id JOIN verdicts v ON v.task = t.id
             WHERE r.name = ?1 AND (NOT ?2 OR v.verdict <> 'ok') ORDER BY v.id DESC LIMIT ?3) latest
         JOIN verdicts v ON v.id = latest.id JOIN tasks t ON t.id = v.task
         JOIN candidates c ON c.id = v.candidate JOIN problems p ON p.id = t.problem
         JOIN kernels k ON k.id = p.kernel LEFT JOIN measurements m ON m.verdict = v.id
         LEFT JOIN final_times f ON f.verdict = v.id
         LEFT JOIN compilations x ON x.candidate = c.id
         LEFT JOIN timing_evidence w ON w.verdict = v.id AND w.stage = 'race'
         ORDER BY v.id DESC";

/// Reads the data of a task except its names.
async fn run_task(
    connection: &mut SqliteConnection,
    task: i64,
    default: Option<String>,
) -> Result<RunTask, sqlx::Error> {
    // A trial whose launch was refused before a compile is not an evaluation.
    let counts: Vec<(Text<Verdict>, u64, u64, u64)> = sqlx::query_as(
        "SELECT v.verdict, count(*), sum(v.charged_us), count(*) FILTER
            (WHERE v.verdict <> 'launch_failed' OR d.kind = 'replay' OR EXISTS (
                SELECT 1 FROM compilations x WHERE x.candidate = v.candidate))
         FROM verdicts v JOIN tasks t ON t.id = v.task JOIN runs r ON r.id = t.run JOIN devices d
         ON d.id = r.device WHERE t.id = ? GROUP BY v.verdict",
    )
    .bind(task)
    .fetch_all(&mut *connection)
    .await?;
    let falls = best_falls(connection, task).await?;
    let found = final_best(connection, task).await?;
    let class = |compared: &Option<Text<Compared>>| rank_class(compared.as_ref().map(|it| it.0));
    let found = found.filter(|found| {
        let fall = falls.last();
        fall.is_none_or(|fall| class(&found.compared) <= class(&fall.compared))
    });
    let best: Option<Config> = sqlx::query_scalar("SELECT config FROM candidates WHERE id = ?")
        .bind(match &found {
            Some(found) => Some(found.candidate),
            None => falls.last().map(|fall| fall.candidate),
        })
        .fetch_optional(&mut *connection)
        .await?;
    let timing: Option<Text<TimingKind>> = sqlx::query_scalar(
        "SELECT m.kind FROM verdicts v JOIN measurements m ON m.verdict = v.id WHERE v.task = ?
         LIMIT 1",
    )
    .bind(task)
    .fetch_optional(&mut *connection)
    .await?;
    let default_time: Option<(f64, bool, f64, f64)> = sqlx::query_as(
        "SELECT m.p50_us, m.kind = 'measured', m.ci_low_us, m.ci_high_us
         FROM verdicts v JOIN measurements m ON m.verdict = v.id
         JOIN candidates c ON c.id = v.candidate WHERE v.task = ? AND c.config = ? LIMIT 1",
    )
    .bind(task)
    .bind(default)
    .fetch_optional(connection)
    .await?;
    Ok(RunTask {
        evals: counts.iter().map(|(_, _, _, evals)| evals).sum(),
        charged_us: counts.iter().map(|(_, _, charged, _)| charged).sum(),
        default_us: default_time.map(|(us, ..)| us),
        default_ci95_us: default_time
            .and_then(|(_, measured, low, high)| measured.then_some([low, high])),
        verdicts: counts.iter().map(|row| (row.0.0, row.1)).collect(),
        best_us: match &found {
            Some(found) => Some(found.p50_us),
            None => falls.last().map(|fall| fall.point.us),
        },
        best_ci95_us: found
            .as_ref()
            .map(|found| [found.ci_low_us, found.ci_high_us]),
        search_us: found.as_ref().map(|found| found.search_us),
        timing: timing.map(|timing| timing.0),
        best_compared: match &found {
            Some(found) => found.compared.as_ref(),
            None => falls.last().and_then(|fall| fall.compared.as_ref()),
        }
        .map(|it| it.0),
        curve: falls.into_iter().map(|fall| fall.point).collect(),
        best_config: best.map(Config::into),
        ..RunTask::default()
    })
}
