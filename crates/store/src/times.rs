//! Times of the ranking candidates.

use super::board::Board;
use super::rank::{Relative, Timed};
use sqlx::types::Text;
use sqlx::{AssertSqlSafe, SqliteConnection};
use tuner_core::record::TimingKind;
use tuner_core::statistics::PREDICTION_RESOLUTION;

/// A narrow row: all of them decide ranks and ties, few are shown.
#[derive(sqlx::FromRow)]
pub(super) struct TimeRow {
    pub(super) verdict: i64,
    pub(super) config: String,
    pub(super) hash: Vec<u8>,
    class: u8,
    pub(super) p50_us: f64,
    ci_low_us: f64,
    ci_high_us: f64,
    reference: Option<String>,
    reference_us: Option<f64>,
    ratio: Option<f64>,
    ratio_low: Option<f64>,
    ratio_high: Option<f64>,
}

impl TimeRow {
    /// Returns the time for ranks and ties. Predictions tie if the model cannot distinguish them.
    pub(super) fn timed(&self, timing: TimingKind) -> Timed {
        if timing == TimingKind::Predicted {
            return Timed {
                class: self.class,
                p50: self.p50_us,
                // The model's error is no noise of samples, so its resolution replaces the
                // interval.
                low: self.p50_us / PREDICTION_RESOLUTION,
                high: self.p50_us,
                relative: None,
            };
        }
        let ratio = (self.ratio, self.ratio_low, self.ratio_high);
        let relative = match (&self.reference, ratio) {
            (Some(reference), (Some(p50), Some(low), Some(high))) => Some(Relative {
                reference: reference.clone(),
                p50,
                low,
                high,
            }),
            _ => None,
        };
        Timed {
            class: self.class,
            p50: self.p50_us,
            low: self.ci_low_us,
            high: self.ci_high_us,
            relative,
        }
    }

    /// Returns the fixed reference and its time in the session of this row, microseconds.
    pub(super) fn reference(&self) -> Option<(&str, f64)> {
        self.reference.as_deref().zip(self.reference_us)
    }
}

/// Returns the times of candidates, those compared at the timed size first, of these the fastest
/// first; at most `limit` if given.
///
/// If a candidate was timed more than once, that of the latest final comparison counts, since the
/// best of many noisy times is biased low; without one, the fastest. A candidate that a later
/// judgement found wrong has none. The table `best_times` holds these; for results of some commits
/// the view `valid_times` is queried.
pub(super) async fn best_times(
    connection: &mut SqliteConnection,
    problem: i64,
    device: i64,
    timing: TimingKind,
    commits: Option<String>,
    limit: Option<usize>,
) -> Result<Vec<TimeRow>, sqlx::Error> {
    // The table holds the best of all commits; a subset must be ranked again.
    let source = match commits {
        None => "best_times",
        Some(_) => {
            "(SELECT v.*, row_number() OVER (PARTITION BY candidate ORDER BY class, stage,
                 iif(stage = 'final', -verdict, 0), p50_us, verdict) AS place
             FROM valid_times v JOIN provenance o ON o.id = v.provenance
             WHERE problem = ?1 AND device = ?2 AND kind = ?3
               AND o.git_commit IN (SELECT value FROM json_each(?5)))"
        }
    };
    let first = commits.as_ref().map_or("", |_| "AND b.place = 1");
    sqlx::query_as(AssertSqlSafe(question(source, first)))
        .bind(problem)
        .bind(device)
        .bind(Text(timing))
        // A negative LIMIT means none in SQLite.
        .bind(limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX)))
        .bind(commits)
        .fetch_all(connection)
        .await
}

/// Builds the query for the times of a board in `source`, in order.
pub(super) fn question(source: &str, first: &str) -> String {
    format!(
        "SELECT b.verdict, c.config, c.hash, b.class, b.p50_us, m.ci_low_us, m.ci_high_us,
             e.reference, e.reference_us, e.ratio, e.ratio_low, e.ratio_high
         FROM {source} b JOIN times m ON m.verdict = b.verdict
         JOIN candidates c ON c.id = b.candidate
         LEFT JOIN timing_evidence e ON e.verdict = b.verdict AND e.stage = m.stage
         WHERE b.problem = ?1 AND b.device = ?2 AND b.kind = ?3 {first}
         ORDER BY b.class, b.p50_us, c.config, b.verdict LIMIT ?4"
    )
}

/// Returns the best time of the default configuration on a board, microseconds. `limit`: maximum
/// number of times already read.
pub(super) async fn default_time(
    connection: &mut SqliteConnection,
    board: &Board,
    times: &[TimeRow],
    config: Option<String>,
    limit: Option<usize>,
) -> Result<Option<f64>, sqlx::Error> {
    let Some(config) = config else {
        return Ok(None);
    };
    let read = times.iter().find(|time| time.config == config);
    if read.is_some() || limit.is_none_or(|limit| times.len() < limit) {
        return Ok(read.map(|time| time.p50_us));
    }
    // The default is tried first: it is among the first results of a task, except in recordings.
    let tried: (i64, Option<f64>) = sqlx::query_as(
        "SELECT count(*), min(b.p50_us) FROM tasks t JOIN runs r ON r.id = t.run
         JOIN verdicts v ON v.task = t.id AND v.sequence < 16
         JOIN candidates c ON c.id = v.candidate
         LEFT JOIN best_times b ON b.candidate = c.id AND b.device = r.device AND b.kind = ?4
         WHERE t.problem = ?1 AND c.config = ?2 AND r.device = ?3",
    )
    .bind(board.problem_id)
    .bind(&config)
    .bind(board.device_id)
    .bind(Text(board.timing))
    .fetch_one(&mut *connection)
    .await?;
    // Found among the first results, with or without a time: the search of all results is not
    // needed.
    if tried.0 > 0 {
        return Ok(tried.1);
    }
    sqlx::query_scalar(
        "SELECT b.p50_us FROM best_times b JOIN candidates c ON c.id = b.candidate
         WHERE b.problem = ?1 AND c.config = ?2 AND b.device = ?3 AND b.kind = ?4",
    )
    .bind(board.problem_id)
    .bind(config)
    .bind(board.device_id)
    .bind(Text(board.timing))
    .fetch_optional(connection)
    .await
}

/// Returns the interval that the model states for a predicted time, µs.
pub(super) async fn predicted_interval(
    connection: &mut SqliteConnection,
    verdict: i64,
) -> Result<Option<[f64; 2]>, sqlx::Error> {
    let counters: Option<String> =
        sqlx::query_scalar("SELECT body FROM counters WHERE verdict = ?")
            .bind(verdict)
            .fetch_optional(connection)
            .await?;
    let counters = counters.and_then(|text| serde_json::from_str(&text).ok());
    Ok(counters.as_ref().and_then(stated_interval))
}

/// Returns the interval of a prediction from its explanation, µs.
pub(super) fn stated_interval(counters: &serde_json::Value) -> Option<[f64; 2]> {
    let interval = counters.get("interval_us")?;
    let end = |at: usize| interval.get(at)?.as_f64();
    let [low, high] = [end(0)?, end(1)?];
    (low < high).then_some([low, high])
}
