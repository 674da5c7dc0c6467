//! What the dashboard asks of millions of results: the first rows of a leaderboard, one candidate,
//! what a parameter's values are worth. All but the last are index scans.

use super::Store;
use super::error::{At as _, StoreError};
use super::leaderboard::{Board, LeaderboardQuery, add_rows, described, newest};
use super::rows::{Config, TRIAL_COLUMNS, hash_bytes, hash_from_bytes, trial_from_row};
use super::times::first_times;
use sqlx::types::Text;
use sqlx::{AssertSqlSafe, Row as _, SqliteConnection};
use std::collections::BTreeMap;
use tuner_core::record::{ConfigValues, DeviceKind, TaskKey, TimingKind, TrialRecord};
use tuner_core::units::ContentHash;
use tuner_core::value::Value;

/// Verdicts of one candidate that are given, latest first.
const ATTEMPTS: i64 = 20;

/// Candidates that decide what a parameter's values are worth, at most; more are sampled evenly.
const EFFECT_SAMPLE: i64 = 20_000;

/// The first rows of a board, with their candidates.
#[derive(Debug, Clone)]
pub struct RankedBoard {
    /// The board; its rows are the first only.
    pub board: Board,
    /// Identity of each row's candidate.
    pub candidates: Vec<ContentHash>,
}

/// One verdict on a candidate, and where it was given.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// The run.
    pub run: String,
    /// The device.
    pub device: String,
    /// Its kind.
    pub device_kind: DeviceKind,
    /// Commit of the template's tree.
    pub commit: Option<String>,
    /// The tree was dirty.
    pub dirty: bool,
    /// GPU driver.
    pub driver: Option<String>,
    /// When, RFC 3339 UTC.
    pub judged_at: String,
    /// Everything stored.
    pub trial: TrialRecord,
}

/// Everything known of a candidate.
#[derive(Debug, Clone)]
pub struct CandidatePage {
    /// Kernel name.
    pub kernel: String,
    /// Problem name.
    pub problem: String,
    /// The problem's sizes.
    pub sizes: ConfigValues,
    /// Hash of the template.
    pub template_hash: Option<String>,
    /// Verdicts, latest first.
    pub attempts: Vec<Attempt>,
}

/// What one value of a parameter is worth.
#[derive(Debug, Clone, PartialEq)]
pub struct EffectValue {
    /// The value.
    pub value: Value,
    /// Candidates with it.
    pub count: u64,
    /// The fastest of them, microseconds.
    pub best_us: f64,
    /// Their median, microseconds.
    pub median_us: f64,
}

/// What the values of a parameter are worth.
#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    /// The parameter.
    pub parameter: String,
    /// Its values, in order.
    pub values: Vec<EffectValue>,
}

/// What the parameters of one board are worth.
#[derive(Debug, Clone)]
pub struct BoardEffects {
    /// Kernel, problem and device.
    pub key: TaskKey,
    /// How the times came to be.
    pub timing: TimingKind,
    /// Parameters with more than one value.
    pub effects: Vec<Effect>,
    /// The candidates that this was read from, with their times in microseconds.
    pub rows: Vec<(ConfigValues, f64)>,
}

/// A device that has results.
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
    /// When the latest began, RFC 3339 UTC.
    pub last_run_at: Option<String>,
}

impl Store {
    /// The first rows of every board that the query selects (`top` of it, 50 where it has none).
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn top(&self, query: &LeaderboardQuery) -> Result<Vec<RankedBoard>, StoreError> {
        let reader = &mut *self.reader().await?;
        top(reader, query).await.at(&self.path)
    }

    /// A candidate by its identity; `None` where it is unknown.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn candidate(&self, hash: &ContentHash) -> Result<Option<CandidatePage>, StoreError> {
        let reader = &mut *self.reader().await?;
        candidate(reader, hash).await.at(&self.path)
    }

    /// What the parameters of the first board that the query selects are worth.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn effects(
        &self,
        query: &LeaderboardQuery,
    ) -> Result<Option<BoardEffects>, StoreError> {
        let reader = &mut *self.reader().await?;
        effects(reader, query).await.at(&self.path)
    }

    /// Devices with results.
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
        .at(&self.path)
    }
}

async fn top(
    connection: &mut SqliteConnection,
    query: &LeaderboardQuery,
) -> Result<Vec<RankedBoard>, sqlx::Error> {
    let limit = i64::try_from(query.top.unwrap_or(50)).unwrap_or(i64::MAX);
    let mut boards = Vec::new();
    for group in newest(connection, query).await? {
        let default = group.default_config.clone();
        let mut board = described(group);
        // The rank of a row depends on the rows above it alone.
        let place = (board.problem_id, board.device_id);
        let times = first_times(connection, place, board.timing, limit).await?;
        let default_us = default_time(connection, &board, default).await?;
        add_rows(connection, &mut board, &times, default_us, usize::MAX).await?;
        let candidates = times.iter().map(|time| hash_from_bytes(&time.hash));
        boards.push(RankedBoard {
            candidates: candidates.collect(),
            board,
        });
    }
    Ok(boards)
}

/// The best time of the default configuration on a board, microseconds.
async fn default_time(
    connection: &mut SqliteConnection,
    board: &Board,
    config: Option<String>,
) -> Result<Option<f64>, sqlx::Error> {
    // The default is tried first: it is among the first results of a task, or has none.
    sqlx::query_scalar(
        "SELECT min(b.p50_us) FROM tasks t JOIN runs r ON r.id = t.run
         JOIN verdicts v ON v.task = t.id AND v.sequence < 16
         JOIN candidates c ON c.id = v.candidate
         JOIN best_times b ON b.candidate = c.id AND b.device = r.device AND b.kind = ?4
         WHERE t.problem = ?1 AND c.config = ?2 AND r.device = ?3",
    )
    .bind(board.problem_id)
    .bind(config)
    .bind(board.device_id)
    .bind(Text(board.timing))
    .fetch_one(connection)
    .await
}

async fn candidate(
    connection: &mut SqliteConnection,
    hash: &ContentHash,
) -> Result<Option<CandidatePage>, sqlx::Error> {
    // Problems outside, candidates inside: the index begins with the problem.
    let rows = sqlx::query(
        "SELECT v.id, k.name AS kernel, k.template_hash, p.name AS problem, p.sizes,
            r.name AS run, d.name AS device, d.kind, o.git_commit, o.dirty, o.driver, v.judged_at
         FROM problems p CROSS JOIN candidates c ON c.problem = p.id AND c.hash = ?
         JOIN kernels k ON k.id = p.kernel JOIN verdicts v ON v.candidate = c.id
         JOIN tasks t ON t.id = v.task JOIN runs r ON r.id = t.run
         JOIN devices d ON d.id = r.device JOIN provenance o ON o.id = v.provenance
         ORDER BY v.id DESC LIMIT ?",
    )
    .bind(hash_bytes(hash))
    .bind(ATTEMPTS)
    .fetch_all(&mut *connection)
    .await?;
    let Some(first) = rows.first() else {
        return Ok(None);
    };
    let mut page = CandidatePage {
        kernel: first.try_get("kernel")?,
        problem: first.try_get("problem")?,
        sizes: first.try_get::<Config, _>("sizes")?.into(),
        template_hash: first.try_get("template_hash")?,
        attempts: Vec::with_capacity(rows.len()),
    };
    for row in &rows {
        let sql = format!("{TRIAL_COLUMNS} WHERE v.id = ?");
        let trial = sqlx::query(AssertSqlSafe(sql))
            .bind(row.try_get::<i64, _>("id")?)
            .fetch_one(&mut *connection)
            .await?;
        page.attempts.push(Attempt {
            run: row.try_get("run")?,
            device: row.try_get("device")?,
            device_kind: row.try_get::<Text<_>, _>("kind")?.0,
            commit: row.try_get("git_commit")?,
            dirty: row.try_get("dirty")?,
            driver: row.try_get("driver")?,
            judged_at: row.try_get("judged_at")?,
            trial: trial_from_row(&trial)?.1,
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
    let sql = format!("SELECT c.config, b.p50_us {of_board} AND b.candidate % ?4 = 0");
    let rows: Vec<(Config, f64)> = sqlx::query_as(AssertSqlSafe(sql))
        .bind(board.problem_id)
        .bind(board.device_id)
        .bind(Text(board.timing))
        .bind(1 + count / EFFECT_SAMPLE)
        .fetch_all(connection)
        .await?;
    let rows: Vec<(ConfigValues, f64)> = rows
        .into_iter()
        .map(|(config, us)| (config.into(), us))
        .collect();
    Ok(Some(BoardEffects {
        key: board.key,
        timing: board.timing,
        effects: worth(&rows),
        rows,
    }))
}

/// Groups times by each parameter's values; parameters with one value say nothing and are left out.
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
            values,
        });
    }
    effects
}

/// Numbers by size, the rest by its text.
fn order(a: &Value, b: &Value) -> std::cmp::Ordering {
    let json = |value: &Value| serde_json::to_value(value).unwrap_or_default();
    let (a, b) = (json(a), json(b));
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        _ => a.to_string().cmp(&b.to_string()),
    }
}
