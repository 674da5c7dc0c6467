//! History of the best configurations, and the course of each run.

use super::Store;
use super::bests::final_best;
use super::board::Board;
use super::error::{StoreError, WithPath as _};
use super::leaderboard::{LeaderboardQuery, filtered};
use super::rows::Config;
use serde::Serialize;
use sqlx::types::Text;
use sqlx::{AssertSqlSafe, FromRow as _, Row as _, SqliteConnection};
use tuner_core::record::{ConfigValues, DeviceKind, TimingKind, Verdict, config_as_object};

/// A moment in the history of results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, sqlx::FromRow)]
pub struct Moment {
    /// Time of judgement, RFC 3339 UTC.
    #[sqlx(rename = "judged_at")]
    pub at: String,
    /// Commit of the template's tree; null outside git and for recorded results.
    #[sqlx(rename = "git_commit")]
    pub commit: Option<String>,
    /// The tree was dirty.
    pub dirty: Option<bool>,
    /// The run.
    pub run_id: String,
}

/// The period in which one configuration was the best of its kernel, problem and device. Counted between
/// ends of runs: a configuration that was the best only during a run is omitted.
#[derive(Debug, Clone, PartialEq, Serialize, sqlx::FromRow)]
pub struct BestPeriod {
    /// Kernel name.
    pub kernel: String,
    /// Problem name.
    pub problem: String,
    /// Device name.
    pub device: String,
    /// Kind of device.
    #[sqlx(try_from = "&'a str")]
    pub device_kind: DeviceKind,
    /// Source of the times.
    #[sqlx(try_from = "&'a str")]
    pub timing: TimingKind,
    /// The configuration.
    #[serde(with = "config_as_object")]
    #[sqlx(try_from = "Config")]
    pub config: ConfigValues,
    /// Its best median in the period, µs.
    pub time_us_p50: f64,
    /// Version of the template, or of the recording.
    pub template_hash: String,
    /// When it became the best.
    #[sqlx(flatten)]
    pub since: Moment,
    /// When it stopped being the best; null while it is.
    #[sqlx(skip)]
    pub until: Option<Moment>,
    /// Reason of its end: a faster configuration, or another version of the kernel.
    pub ended_by: Option<String>,
    /// Median of its successor, µs.
    pub next_us_p50: Option<f64>,
}

// If a task has a final comparison, its best is that of the comparison. SQLite takes the other columns of a
// group from the row with the minimum.
const BEST_OF_TASKS: &str = "SELECT v.task, k.name AS kernel, p.name AS problem, p.id AS version,
        d.name AS device, d.kind AS device_kind, m.kind AS timing, c.config,
        coalesce(k.template_hash, k.version) AS template_hash, min(m.p50_us) AS p50_us,
        v.judged_at, o.git_commit, iif(o.git_commit IS NULL, NULL, o.dirty <> 0) AS dirty,
        r.name AS run_id
     FROM verdicts v
     JOIN times m ON m.verdict = v.id
     JOIN candidates c ON c.id = v.candidate
     JOIN provenance o ON o.id = v.provenance
     JOIN tasks t ON t.id = v.task
     JOIN runs r ON r.id = t.run
     JOIN devices d ON d.id = r.device
     JOIN problems p ON p.id = t.problem
     JOIN kernels k ON k.id = p.kernel
     WHERE v.verdict = 'ok' AND NOT EXISTS (SELECT 1 FROM withdrawn w WHERE w.verdict = v.id)
       AND v.compared IS NOT 'smaller_problems'
       AND (m.stage = 'final' OR v.task NOT IN (
           SELECT y.task FROM final_times f JOIN verdicts y ON y.id = f.verdict))
       AND NOT EXISTS (SELECT 1 FROM change_runs x WHERE x.run = r.name)
       AND (?1 IS NULL OR k.name = ?1) AND (?2 IS NULL OR p.name = ?2)
       AND (?3 IS NULL OR d.name = ?3 COLLATE NOCASE) AND (?4 IS NULL OR d.kind = ?4)
       AND (?5 IS NULL OR r.selector = ?5)
       AND (?6 IS NULL OR r.recording_hash = ?6 OR r.recording_path = ?7)
     GROUP BY v.task, m.kind";

// After each task the leader of its version is the configuration of the latest fall of the running minimum:
// a restored template has its old results again. A period is a sequence of tasks of one version with one
// leading configuration; only its start is read from the database.
const PERIODS: &str = "falls AS (
        SELECT *, iif(p50_us >= min(p50_us) OVER (
            PARTITION BY version, device, device_kind, timing ORDER BY task
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), NULL, task) AS fall FROM best),
    leads AS (
        SELECT *, max(fall) OVER (
            PARTITION BY version, device, device_kind, timing ORDER BY task) AS leader FROM falls),
    turns AS (
        SELECT l.task, l.version, l.judged_at, l.git_commit, l.dirty, l.run_id, b.kernel, b.problem,
            b.device, b.device_kind, b.timing, b.config, b.template_hash, b.p50_us,
            lag(l.version) OVER g IS l.version AND lag(b.config) OVER g IS b.config AS goes_on
        FROM leads l JOIN best b ON b.task = l.leader AND b.timing = l.timing
        WINDOW g AS (PARTITION BY b.kernel, b.problem, b.device, b.device_kind, b.timing
                     ORDER BY l.task)),
    numbered AS (
        SELECT *, sum(NOT goes_on) OVER (
            PARTITION BY kernel, problem, device, device_kind, timing ORDER BY task) AS period
        FROM turns),
    periods AS (
        SELECT *, last_value(p50_us) OVER (
            PARTITION BY kernel, problem, device, device_kind, timing, period ORDER BY task
            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS time_us_p50
        FROM numbered)
    SELECT *, lead(p50_us) OVER g AS next_us_p50,
        CASE WHEN lead(version) OVER g = version THEN 'a faster configuration'
            WHEN lead(version) OVER g <> version THEN 'another version of the kernel'
        END AS ended_by
    FROM periods WHERE NOT goes_on
    WINDOW g AS (PARTITION BY kernel, problem, device, device_kind, timing ORDER BY task)
    ORDER BY kernel, problem, device, device_kind, timing, task";

impl Store {
    /// Returns every commit with a result.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn commits(&self) -> Result<Vec<String>, StoreError> {
        sqlx::query_scalar(
            "SELECT DISTINCT git_commit FROM provenance WHERE git_commit IS NOT NULL ORDER BY 1",
        )
        .fetch_all(&mut *self.reader().await?)
        .await
        .with_path(&self.path)
    }

    /// Returns the best configuration after each run, oldest first; sorted by kernel, problem and
    /// device. `top` and `timings` of the query are ignored.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn history(&self, query: &LeaderboardQuery) -> Result<Vec<BestPeriod>, StoreError> {
        let sql = format!("WITH best AS ({BEST_OF_TASKS}), {PERIODS}");
        // Parameters only bind values; the statement itself is constant text.
        let periods = filtered(AssertSqlSafe(sql), query);
        let found = periods.fetch_all(&mut *self.reader().await?).await;
        found.map(with_ends).with_path(&self.path)
    }
}

/// Sets the end of each period to the start of the next one of its kernel, problem and device.
fn with_ends(mut periods: Vec<BestPeriod>) -> Vec<BestPeriod> {
    let next: Vec<Moment> = periods
        .iter()
        .skip(1)
        .map(|next| next.since.clone())
        .collect();
    for (period, next) in periods.iter_mut().zip(next) {
        // Without a reason the next row is of another kernel, problem or device.
        period.until = period.ended_by.is_some().then_some(next);
    }
    periods
}

/// Facts of a run for a report.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct RunFacts {
    /// Its name.
    pub name: String,
    /// The kernels it tuned, in order.
    #[sqlx(json)]
    pub kernels: Vec<String>,
    /// The problems it tuned, in order.
    #[sqlx(json)]
    pub problems: Vec<String>,
    /// The resolved `--device`.
    pub selector: String,
    /// Hash of the recorded file, on replay.
    pub recording_hash: Option<String>,
    /// Its seed.
    pub seed: String,
    /// The search strategy.
    pub strategy: String,
    /// Its settings.
    #[sqlx(json)]
    pub settings: serde_json::Value,
    /// `running`, `interrupted`, `failed` or `finished`.
    pub state: String,
    /// Start, RFC 3339 UTC.
    pub started_at: String,
    /// End.
    pub ended_at: Option<String>,
    /// Commit of its results; like host and versions, that of the first result.
    #[sqlx(rename = "git_commit")]
    pub commit: Option<String>,
    /// That tree was dirty.
    pub dirty: bool,
    /// SHA-256 of the uncommitted changes.
    pub diff_hash: Option<String>,
    /// The host.
    pub host: String,
    /// Version of this program.
    pub tuner_version: String,
    /// GPU driver version.
    pub driver: Option<String>,
    /// NVRTC version.
    pub nvrtc_version: Option<String>,
}

/// One trial in the course of a run.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct Step {
    /// The judgement.
    #[sqlx(try_from = "&'a str")]
    pub verdict: Verdict,
    /// Median, µs, if it has a time and no later judgement found the candidate wrong.
    pub p50_us: Option<f64>,
    /// Device-side cost, µs.
    pub charged_us: u64,
}

/// One run on a board's kernel, problem and device.
#[derive(Debug, Clone, PartialEq)]
pub struct TimeLine {
    /// The run.
    pub run: RunFacts,
    /// Its trials, in the order they were reported to the search, with their times of the search.
    pub steps: Vec<Step>,
    /// The best time of its final comparison, µs; `None` without one.
    pub final_us: Option<f64>,
}

/// Returns the course of each run; see [`super::Store::time_lines`].
pub(super) async fn time_lines(
    connection: &mut SqliteConnection,
    board: &Board,
) -> Result<Vec<TimeLine>, sqlx::Error> {
    let tasks = sqlx::query(
        "SELECT t.id AS task,
            (SELECT json_group_array(name ORDER BY first) FROM (
                SELECT k.name, min(s.id) AS first FROM tasks s JOIN problems p ON p.id = s.problem
                JOIN kernels k ON k.id = p.kernel WHERE s.run = r.id GROUP BY k.name)) AS kernels,
            (SELECT json_group_array(name ORDER BY first) FROM (
                SELECT p.name, min(s.id) AS first FROM tasks s JOIN problems p ON p.id = s.problem
                WHERE s.run = r.id GROUP BY p.name)) AS problems,
            r.name, r.recording_hash, r.selector, r.seed, r.strategy, r.settings, r.state,
            r.started_at, r.ended_at, o.git_commit, o.dirty <> 0 AS dirty, o.diff_hash, o.host,
            o.tuner_version, o.driver, o.nvrtc_version
         FROM tasks t JOIN runs r ON r.id = t.run
         JOIN provenance o ON o.id = (SELECT provenance FROM verdicts WHERE task = t.id LIMIT 1)
         WHERE t.problem = ? AND r.device = ? ORDER BY t.id",
    )
    .bind(board.problem_id)
    .bind(board.device_id)
    .fetch_all(&mut *connection)
    .await?;
    let mut lines = Vec::with_capacity(tasks.len());
    for task in &tasks {
        let task_id: i64 = task.try_get("task")?;
        let steps = sqlx::query_as(
            "SELECT v.verdict, iif(v.verdict = 'ok' AND m.kind = ?2
                    AND NOT EXISTS (SELECT 1 FROM withdrawn w WHERE w.verdict = v.id),
                    m.p50_us, NULL) AS p50_us, v.charged_us
             FROM verdicts v LEFT JOIN measurements m ON m.verdict = v.id
             WHERE v.task = ?1 ORDER BY v.sequence IS NULL, v.sequence, v.id",
        )
        .bind(task_id)
        .bind(Text(board.timing))
        .fetch_all(&mut *connection)
        .await?;
        let run = RunFacts::from_row(task)?;
        let found = final_best(connection, task_id).await?;
        lines.push(TimeLine {
            run,
            steps,
            final_us: found.map(|found| found.p50_us),
        });
    }
    Ok(lines)
}

#[cfg(test)]
mod tests;
