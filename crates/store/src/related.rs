//! Related results of a kernel outside of one task: other devices, other problems, other versions of the
//! template, and kernels with the same parameters and sizes, such as the same product for another type.

use super::Store;
use super::error::{StoreError, WithPath as _};
use super::rows::{Config, config_text};
use super::run::{RunId, RunStart, TaskStart};
use sqlx::types::Text;
use std::collections::{BTreeMap, BTreeSet};
use tuner_core::record::{ConfigValues, DeviceKind, Verdict};
use tuner_core::units::Micros;

/// Maximum rows that are read, the newest.
const MAX_ROWS: i64 = 200_000;

/// Results of one problem, version of a kernel and device.
#[derive(Debug, Clone, PartialEq)]
pub struct Related {
    /// Kernel name.
    pub kernel: String,
    /// Problem name.
    pub problem: String,
    /// Device name.
    pub device: String,
    /// Kind of device.
    pub kind: DeviceKind,
    /// Version of the template, or of the recording.
    pub version: String,
    /// Configurations with their times, oldest first; `None` for a failed one.
    pub rows: Vec<(ConfigValues, Option<Micros>)>,
}

/// All results related to a task, as of one moment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RelatedResults {
    /// The moment: the newest result of the kernel that was included. A query with it returns the
    /// same results.
    pub as_of: i64,
    /// By problem, version and device, the oldest first.
    pub groups: Vec<Related>,
}

/// Cost of the trials of a task in an earlier run.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct TrialCost {
    /// Kernel name.
    pub kernel: String,
    /// Problem name.
    pub problem: String,
    /// Mean time of a trial, seconds.
    pub seconds: f64,
}

/// Key of the costs of trials in a run's settings.
pub const TRIAL_COSTS: &str = "trial_costs";

#[derive(sqlx::FromRow)]
struct Row {
    id: i64,
    problem_id: i64,
    device_id: i64,
    kernel: String,
    problem: String,
    device: String,
    #[sqlx(try_from = "&'a str")]
    kind: DeviceKind,
    version: String,
    #[sqlx(try_from = "Config")]
    config: ConfigValues,
    #[sqlx(try_from = "&'a str")]
    verdict: Verdict,
    p50_us: Option<f64>,
}

/// Identity of a task on a known device: kernel, version, problem and sizes.
type TaskIdentity = (String, String, String, String);

/// Results of the kernel and of its family that do not belong to this task: the same problem, sizes,
/// version and device. A kernel of the family has the same names of parameters and sizes.
const RELATED: &str = "WITH family AS MATERIALIZED (
    SELECT f.id FROM definitions f
    WHERE (SELECT json_group_array(json_extract(e.value, '$.name'))
           FROM json_each(f.body, '$.parameters') e) = ?9),
related AS MATERIALIZED (
    SELECT t.id FROM tasks t JOIN problems p ON p.id = t.problem JOIN kernels k ON k.id = p.kernel
    WHERE k.name = ?1 OR t.definition IN (SELECT id FROM family)
        AND (SELECT json_group_array(s.key) FROM json_each(p.sizes) s) = ?10)
SELECT * FROM (
    SELECT v.id, p.id AS problem_id, d.id AS device_id, k.name AS kernel, p.name AS problem,
        d.name AS device,
        d.kind, coalesce(k.template_hash, k.version) AS version, c.config, v.verdict,
        (SELECT m.p50_us FROM measurements m WHERE m.verdict = v.id) AS p50_us
    FROM related CROSS JOIN tasks t ON t.id = related.id
    JOIN verdicts v ON v.task = t.id
    JOIN candidates c ON c.id = v.candidate
    JOIN runs r ON r.id = t.run
    JOIN devices d ON d.id = r.device
    JOIN problems p ON p.id = t.problem
    JOIN kernels k ON k.id = p.kernel
    WHERE v.sequence IS NOT NULL AND v.id <= ?2
      AND r.id NOT IN (SELECT value FROM json_each(?11))
      AND v.verdict IN (SELECT name FROM verdict_facts WHERE knowledge)
      AND NOT (k.name = ?1 AND coalesce(k.template_hash, k.version) IS ?3 AND p.name IS ?4
               AND p.sizes IS ?5 AND d.name IS ?6 AND d.kind IS ?7)
    ORDER BY v.id DESC LIMIT ?8) ORDER BY id";

impl Store {
    /// Returns results of a kernel on other devices, of other problems and of other versions than
    /// those of the task `of`, if given. `as_of`: only results stored up to the moment of an
    /// earlier answer. `without`: rows of runs that are left out, see [`Store::runs_of_same_tasks`].
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn related(
        &self,
        kernel: &str,
        of: Option<(&RunStart, &TaskStart)>,
        as_of: Option<i64>,
        without: &[i64],
    ) -> Result<RelatedResults, StoreError> {
        let rows: Vec<Row> = sqlx::query_as(RELATED)
            .bind(kernel)
            .bind(as_of.unwrap_or(i64::MAX))
            .bind(of.map(|(start, task)| start.version(task)))
            .bind(of.map(|(_, task)| task.problem.clone()))
            .bind(of.map(|(_, task)| config_text(&task.sizes)))
            .bind(of.map(|(start, _)| start.device.name.clone()))
            .bind(of.map(|(start, _)| Text(start.device.kind)))
            .bind(MAX_ROWS)
            .bind(of.map(|(_, task)| parameter_names(task)))
            .bind(of.map(|(_, task)| json_names(task.sizes.iter().map(|(name, _)| &**name))))
            .bind(serde_json::Value::from(without).to_string())
            .fetch_all(&mut *self.reader().await?)
            .await
            .with_path(&self.path)?;
        Ok(grouped(rows))
    }

    /// Returns the rows of the runs with the same tasks on the same device as this one, the oldest
    /// first. Of a single task none: [`Store::related`] leaves out its own results.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn runs_of_same_tasks(&self, start: &RunStart) -> Result<Vec<i64>, StoreError> {
        if start.tasks.len() < 2 {
            return Ok(Vec::new());
        }
        let rows: Vec<(i64, String, String, String, String)> = sqlx::query_as(
            "SELECT r.id, k.name, coalesce(k.template_hash, k.version), p.name, p.sizes
             FROM runs r JOIN devices d ON d.id = r.device JOIN tasks t ON t.run = r.id
                  JOIN problems p ON p.id = t.problem JOIN kernels k ON k.id = p.kernel
             WHERE d.name = ? AND d.kind = ?",
        )
        .bind(&start.device.name)
        .bind(Text(start.device.kind))
        .fetch_all(&mut *self.reader().await?)
        .await
        .with_path(&self.path)?;
        let mut runs: BTreeMap<i64, BTreeSet<TaskIdentity>> = BTreeMap::new();
        for (run, kernel, version, problem, sizes) in rows {
            let tasks = runs.entry(run).or_default();
            tasks.insert((kernel, version, problem, sizes));
        }
        let tasks = start.tasks.iter().map(|task| {
            let (kernel, problem) = (task.kernel.clone(), task.problem.clone());
            (
                kernel,
                start.version(task),
                problem,
                config_text(&task.sizes),
            )
        });
        let wanted: BTreeSet<TaskIdentity> = tasks.collect();
        let same = runs.into_iter().filter(|(_, tasks)| *tasks == wanted);
        Ok(same.map(|(run, _)| run).collect())
    }

    /// Returns the costs of trials that runs on a device noted, the newest last.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn trial_costs(&self, start: &RunStart) -> Result<Vec<TrialCost>, StoreError> {
        sqlx::query_as(
            "SELECT json_extract(e.value, '$.kernel') AS kernel,
                    json_extract(e.value, '$.problem') AS problem,
                    CAST(json_extract(e.value, '$.seconds') AS REAL) AS seconds
             FROM runs r JOIN devices d ON d.id = r.device,
                  json_each(r.settings, '$.' || ?) e
             WHERE d.name = ? AND d.kind = ? ORDER BY r.id",
        )
        .bind(TRIAL_COSTS)
        .bind(&start.device.name)
        .bind(Text(start.device.kind))
        .fetch_all(&mut *self.reader().await?)
        .await
        .with_path(&self.path)
    }

    /// Stores a value in a run's settings under this key.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn note_setting(
        &self,
        run: &RunId,
        key: &str,
        value: &serde_json::Value,
    ) -> Result<(), StoreError> {
        let sql =
            "UPDATE runs SET settings = json_set(settings, '$.' || ?, json(?)) WHERE name = ?";
        let values = vec![key.to_owned(), value.to_string(), run.to_string()];
        self.execute(sql, values).await.map(drop)
    }
}

/// Returns the names of a task's parameters; `None` for fewer than two, which do not identify the kernel.
fn parameter_names(task: &TaskStart) -> Option<String> {
    let parameters = &task.definition.parameters;
    let names = parameters.iter().map(|parameter| &*parameter.name);
    (parameters.len() >= 2).then(|| json_names(names))
}

/// Returns names as SQLite's `json_group_array` writes them.
fn json_names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    serde_json::Value::from_iter(names).to_string()
}

/// Groups rows by problem, version and device, the oldest first.
fn grouped(rows: Vec<Row>) -> RelatedResults {
    let mut as_of = 0;
    let mut groups: BTreeMap<(i64, i64), Related> = BTreeMap::new();
    for row in rows {
        // Ids grow with time, so the largest one reproduces this set of rows later.
        as_of = as_of.max(row.id);
        // By ids: two versions of a problem have the same name.
        let place = (row.problem_id, row.device_id);
        let group = groups.entry(place).or_insert_with(|| Related {
            kernel: row.kernel,
            problem: row.problem,
            device: row.device,
            kind: row.kind,
            version: row.version,
            rows: Vec::new(),
        });
        let time = row.p50_us.and_then(Micros::new);
        // A passed row without a time was withdrawn or never timed: it is neither fast nor failed.
        if time.is_some() || row.verdict != Verdict::Ok {
            group.rows.push((row.config, time));
        }
    }
    RelatedResults {
        as_of,
        groups: groups.into_values().collect(),
    }
}
