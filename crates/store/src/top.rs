//! Dashboard queries over millions of results: one candidate, the effects of a parameter's
//! values, the devices. All but the second are index scans.

use super::Store;
use super::error::{StoreError, WithPath as _};
use super::leaderboard::{LeaderboardQuery, described, newest};
use super::rows::{Config, TRIAL_COLUMNS, hash_bytes, trial_from_row};
use super::times::stated_interval;
use serde::Serialize;
use sqlx::types::Text;
use sqlx::{AssertSqlSafe, Row as _, SqliteConnection};
use std::collections::BTreeMap;
use tuner_core::record::{
    Compared, Compilation, ConfigValues, DeviceKind, Hazard, Measurement, TimingKind, Verdict,
    config_as_object,
};
use tuner_core::units::{ContentHash, Micros};
use tuner_core::value::Value;
use utoipa::ToSchema;

/// Maximum returned verdicts of one candidate, latest first.
const MAX_ATTEMPTS: i64 = 20;

/// Selects the verdicts on a candidate, latest first. Problems outside, candidates inside: the
/// index begins with the problem.
const ATTEMPTS_OF: &str =
    "SELECT v.id, k.name AS kernel, k.template_hash, p.name AS problem, p.sizes,
            r.name AS run, d.name AS device, d.kind, o.git_commit, o.dirty, o.driver, v.judged_at
         FROM problems p CROSS JOIN candidates c ON c.problem = p.id AND c.hash = ?
         JOIN kernels k ON k.id = p.kernel JOIN verdicts v ON v.candidate = c.id
         JOIN tasks t ON t.id = v.task JOIN runs r ON r.id = t.run
         JOIN devices d ON d.id = r.device JOIN provenance o ON o.id = v.provenance
         ORDER BY v.id DESC LIMIT ?";

/// Maximum candidates for the effects of a parameter's values; more are sampled evenly.
const EFFECT_SAMPLE: i64 = 20_000;

/// All data of a candidate.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = CandidateView)]
pub struct CandidatePage {
    /// Its identity.
    pub candidate: String,
    /// Kernel name.
    pub kernel: String,
    /// Problem name.
    pub problem: String,
    /// The problem's sizes.
    #[serde(with = "config_as_object")]
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    pub sizes: ConfigValues,
    /// The configuration.
    #[serde(with = "config_as_object")]
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    pub config: ConfigValues,
    /// Hash of the template.
    pub template_hash: Option<String>,
    /// Result of the compile: registers, spills, shared memory, sizes of PTX and SASS.
    pub compilation: Option<Compilation>,
    /// Verdicts, latest first.
    pub attempts: Vec<Attempt>,
}

/// One verdict on a candidate.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = AttemptView)]
pub struct Attempt {
    /// The run.
    pub run: String,
    /// The device.
    pub device: String,
    /// Its kind.
    pub device_kind: DeviceKind,
    /// The verdict.
    pub verdict: Verdict,
    /// Reason.
    pub detail: String,
    /// Findings of all checks, with source lines.
    pub hazards: Vec<FoundHazard>,
    /// Largest error divided by its tolerance.
    pub max_error: Option<f64>,
    /// Comparison of results at the timed size; null if it did not pass, and for recorded results.
    pub compared: Option<Compared>,
    /// The time with its raw samples.
    pub measurement: Option<Measurement>,
    /// The operator of the search that proposed it.
    pub origin: String,
    /// Index in the order of its run.
    pub sequence: u64,
    /// Commit of the template's tree.
    pub commit: Option<String>,
    /// The tree was dirty.
    pub dirty: bool,
    /// GPU driver.
    pub driver: Option<String>,
    /// Time of judgement, RFC 3339 UTC.
    pub judged_at: String,
}

/// A hazard with its source line.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = HazardView)]
pub struct FoundHazard {
    /// The hazard.
    #[serde(flatten)]
    pub hazard: Hazard,
    /// Text of that line in the current template; null if unavailable.
    // The database holds no sources: a caller with the kernel's files sets it.
    pub source: Option<String>,
}

/// Effects of the values of a board's parameters.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = EffectsView)]
pub struct BoardEffects {
    /// Kernel name.
    pub kernel: String,
    /// Problem name.
    pub problem: String,
    /// Device name.
    pub device: String,
    /// Source of the times.
    pub timing: TimingKind,
    /// Parameters with more than one value.
    pub parameters: Vec<Effect>,
    /// The share of the variance of log time that only interactions of parameters explain, 0 to 1;
    /// null if there are too few results.
    // This and [`Effect::importance`] are computed from `rows` by a caller with a model.
    pub together: Option<f64>,
    /// The candidates of the computation, with their times in microseconds.
    #[serde(skip)]
    pub rows: Vec<(ConfigValues, f64)>,
}

/// Effects of the values of a parameter.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = EffectView)]
pub struct Effect {
    /// The parameter.
    pub parameter: String,
    /// The share of the variance of log time that it explains alone, 0 to 1 (functional analysis of
    /// variance over a random forest, Hutter et al. 2014); null if there are too few results.
    pub importance: Option<f64>,
    /// Its values, in order.
    pub values: Vec<EffectValue>,
}

/// Effect of one value.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = EffectValueView)]
pub struct EffectValue {
    /// The value.
    #[schema(value_type = serde_json::Value)]
    pub value: Value,
    /// Candidates with it that passed.
    pub count: u64,
    /// The fastest of them, µs.
    pub best_us: f64,
    /// Their median, µs.
    pub median_us: f64,
}

/// A device with results.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct DeviceRow {
    /// Its name.
    pub name: String,
    /// Its kind.
    #[sqlx(try_from = "&'a str")]
    pub kind: DeviceKind,
    /// Compile target; may be empty.
    pub arch: String,
    /// Runs on it.
    pub runs: u64,
    /// Start of the latest run, RFC 3339 UTC.
    pub last_run_at: Option<String>,
}

impl Store {
    /// Returns a candidate by its identity; `None` if it is unknown.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn candidate(&self, hash: &ContentHash) -> Result<Option<CandidatePage>, StoreError> {
        let reader = &mut *self.reader().await?;
        candidate(reader, hash).await.with_path(&self.path)
    }

    /// Returns the effects of the parameters of the first board that the query selects.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn effects(
        &self,
        query: &LeaderboardQuery,
    ) -> Result<Option<BoardEffects>, StoreError> {
        let reader = &mut *self.reader().await?;
        effects(reader, query).await.with_path(&self.path)
    }

    /// Returns the devices with results.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn devices(&self) -> Result<Vec<DeviceRow>, StoreError> {
        let reader = &mut *self.reader().await?;
        sqlx::query_as(
            "SELECT d.name, d.kind, d.arch, count(r.id) AS runs, max(r.started_at) AS last_run_at
             FROM devices d LEFT JOIN runs r ON r.device = d.id
             GROUP BY d.id ORDER BY d.kind, d.name",
        )
        .fetch_all(reader)
        .await
        .with_path(&self.path)
    }
}

async fn candidate(
    connection: &mut SqliteConnection,
    hash: &ContentHash,
) -> Result<Option<CandidatePage>, sqlx::Error> {
    let rows = sqlx::query(ATTEMPTS_OF)
        .bind(hash_bytes(hash))
        .bind(MAX_ATTEMPTS)
        .fetch_all(&mut *connection)
        .await?;
    let Some(first) = rows.first() else {
        return Ok(None);
    };
    let mut page = CandidatePage {
        candidate: hash.to_string(),
        kernel: first.try_get("kernel")?,
        problem: first.try_get("problem")?,
        sizes: first.try_get::<Config, _>("sizes")?.into(),
        config: ConfigValues::new(),
        template_hash: first.try_get("template_hash")?,
        compilation: None,
        attempts: Vec::with_capacity(rows.len()),
    };
    for row in &rows {
        let sql = format!("{TRIAL_COLUMNS} WHERE v.id = ?");
        let stored = sqlx::query(AssertSqlSafe(sql))
            .bind(row.try_get::<i64, _>("id")?)
            .fetch_one(&mut *connection)
            .await?;
        let (_, mut trial) = trial_from_row(&stored)?;
        if let Some(time) = &mut trial.measurement
            && time.kind == TimingKind::Predicted
            && let Some([low, high]) = trial.counters.as_ref().and_then(stated_interval)
            && let (Some(low), Some(high)) = (Micros::new(low), Micros::new(high))
        {
            time.ci95 = [low, high];
        }
        if page.attempts.is_empty() {
            (page.config, page.compilation) = (trial.config, trial.compilation);
        }
        let found = |hazard| FoundHazard {
            hazard,
            source: None,
        };
        page.attempts.push(Attempt {
            run: row.try_get("run")?,
            device: row.try_get("device")?,
            device_kind: row.try_get::<Text<_>, _>("kind")?.0,
            verdict: trial.judgement.verdict,
            detail: trial.judgement.detail,
            hazards: trial.judgement.hazards.into_iter().map(found).collect(),
            max_error: trial.judgement.max_error,
            compared: trial.judgement.compared,
            measurement: trial.measurement,
            origin: trial.origin,
            sequence: trial.sequence,
            commit: row.try_get("git_commit")?,
            dirty: row.try_get("dirty")?,
            driver: row.try_get("driver")?,
            judged_at: row.try_get("judged_at")?,
        });
    }
    Ok(Some(page))
}

async fn effects(
    connection: &mut SqliteConnection,
    query: &LeaderboardQuery,
) -> Result<Option<BoardEffects>, sqlx::Error> {
    let Some(group) = newest(connection, query).await?.into_iter().next() else {
        return Ok(None);
    };
    let redefined = group.redefined;
    let board = described(group);
    let of_board = "FROM best_times b JOIN candidates c ON c.id = b.candidate
         WHERE b.problem = ?1 AND b.device = ?2 AND b.kind = ?3";
    let count: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM best_times WHERE problem = ?1 AND device = ?2 AND kind = ?3",
    )
    .bind(board.problem_id)
    .bind(board.device_id)
    .bind(Text(board.timing))
    .fetch_one(&mut *connection)
    .await?;
    let sql = format!(
        "SELECT c.config, coalesce(b.search_us, b.p50_us) {of_board} AND b.candidate % ?4 = 0"
    );
    let rows: Vec<(Config, f64)> = sqlx::query_as(AssertSqlSafe(sql))
        .bind(board.problem_id)
        .bind(board.device_id)
        .bind(Text(board.timing))
        // Every n-th identifier: a random order would make SQLite sort the whole board first.
        .bind(1 + count / EFFECT_SAMPLE)
        .fetch_all(connection)
        .await?;
    let mut rows: Vec<(ConfigValues, f64)> = rows
        .into_iter()
        .map(|(config, us)| (config.into(), us))
        .collect();
    if let Some(admits) = query.admits(&board, redefined) {
        rows.retain(|(config, _)| admits(config));
    }
    Ok(Some(BoardEffects {
        kernel: board.key.kernel,
        problem: board.key.problem,
        device: board.key.device,
        timing: board.timing,
        parameters: worth(&rows),
        together: None,
        rows,
    }))
}

/// Groups times by each parameter's values; parameters with one value have no effect and are
/// omitted.
fn worth(rows: &[(ConfigValues, f64)]) -> Vec<Effect> {
    let Some((first, _)) = rows.first() else {
        return Vec::new();
    };
    let mut effects = Vec::new();
    for (place, (parameter, _)) in first.iter().enumerate() {
        let mut groups: BTreeMap<String, (Value, Vec<f64>)> = BTreeMap::new();
        for (config, us) in rows {
            let Some((_, value)) = config.get(place).filter(|(name, _)| name == parameter) else {
                continue;
            };
            let key = serde_json::to_string(value).unwrap_or_default();
            let group = groups.entry(key);
            let group = group.or_insert_with(|| (value.clone(), Vec::new()));
            group.1.push(*us);
        }
        if groups.len() < 2 {
            continue;
        }
        let mut values: Vec<EffectValue> = groups
            .into_values()
            .filter_map(|(value, mut times)| {
                times.sort_by(f64::total_cmp);
                Some(EffectValue {
                    value,
                    count: times.len() as u64,
                    best_us: *times.first()?,
                    median_us: *times.get(times.len() / 2)?,
                })
            })
            .collect();
        values.sort_by(|a, b| order(&a.value, &b.value));
        effects.push(Effect {
            parameter: parameter.clone(),
            importance: None,
            values,
        });
    }
    effects
}

/// Orders numbers by size, other values by their text.
fn order(a: &Value, b: &Value) -> std::cmp::Ordering {
    let json = |value: &Value| serde_json::to_value(value).unwrap_or_default();
    let (a, b) = (json(a), json(b));
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        _ => a.to_string().cmp(&b.to_string()),
    }
}

#[cfg(test)]
mod tests;
