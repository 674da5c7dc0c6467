//! Times of the ranking candidates.

use super::board::Board;
use super::rank::{Relative, Timed};
use sqlx::types::Text;
use sqlx::{AssertSqlSafe, SqliteConnection};
use tuner_core::record::TimingKind;
use tuner_core::statistics::PREDICTION_RESOLUTION;

/// A narrow row: all of them determine ranks and ties, but few are shown.
#[derive(sqlx::FromRow)]
pub(super) struct TimeRow {
    pub(super) verdict: i64,
    pub(super) config: String,
    pub(super) hash: Vec<u8>,
    class: u8,
    pub(super) p50_us: f64,
    /// The fastest time of the search, if `p50_us` is of a final comparison.
    pub(super) search_us: Option<f64>,
    ci_low_us: f64,
    ci_high_us: f64,
    reference: Option<String>,
    reference_us: Option<f64>,
    ratio: Option<f64>,
    ratio_low: Option<f64>,
    ratio_high: Option<f64>,
    /// Only a sample of its blocks was compared.
    sampled: bool,
}

impl TimeRow {
    /// Returns the time for ranks and ties. Predictions tie if the model cannot distinguish them.
    pub(super) fn timed(&self, timing: TimingKind) -> Timed {
        if timing == TimingKind::Predicted {
            return Timed {
                class: self.class,
                sampled: self.sampled,
                p50: self.p50_us,
                // The model's error is not sampling noise, so its resolution replaces the interval.
                low: self.p50_us / PREDICTION_RESOLUTION,
                high: self.p50_us,
                search: None,
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
            sampled: self.sampled,
            p50: self.p50_us,
            low: self.ci_low_us,
            high: self.ci_high_us,
            search: self.search_us,
            relative,
        }
    }

    /// Returns its time in the search, which every row has, so that rows with and without a final
    /// comparison are comparable.
    pub(super) fn search_time(&self) -> f64 {
        self.search_us.unwrap_or(self.p50_us)
    }

    /// Returns the time for a ratio to this row.
    pub(super) fn default_time(&self) -> DefaultTime {
        DefaultTime {
            p50_us: self.p50_us,
            search_us: self.search_us,
        }
    }

    /// Returns the fixed reference and its time in the session of this row, microseconds.
    pub(super) fn reference(&self) -> Option<(&str, f64)> {
        self.reference.as_deref().zip(self.reference_us)
    }
}

/// Time of the default configuration.
#[derive(Debug, Clone, Copy, sqlx::FromRow)]
pub(super) struct DefaultTime {
    p50_us: f64,
    search_us: Option<f64>,
}

impl DefaultTime {
    /// Returns the speed-up of a row: both times of final comparisons, or both of the search.
    pub(super) fn speedup(self, row: &TimeRow) -> f64 {
        match (self.search_us, row.search_us) {
            (Some(_), Some(_)) => self.p50_us / row.p50_us,
            _ => self.search_us.unwrap_or(self.p50_us) / row.search_time(),
        }
    }
}

/// Returns the times of candidates in the order of their ranks, those compared at the timed size first; at
/// most `limit` if given.
///
/// If a candidate was timed more than once, the time of the latest final comparison counts, since the best
/// of many noisy times is biased low; without one, the fastest. A candidate that a later judgement found
/// wrong has none. The table `best_times` holds these; for results of some commits the view `valid_times`
/// is queried.
pub(super) async fn best_times(
    connection: &mut SqliteConnection,
    problem: i64,
    device: i64,
    timing: TimingKind,
    commits: Option<String>,
    limit: Option<usize>,
) -> Result<Vec<TimeRow>, sqlx::Error> {
    // The table has the best of all commits; a subset must be ranked again.
    let source = match commits {
        None => TABLE,
        Some(_) => {
            "(SELECT *, iif(stage = 'final', fastest_us, NULL) AS search_us FROM (
                 SELECT v.problem, v.device, v.kind, v.candidate, v.verdict, v.class, v.stage, v.p50_us,
                     min(v.search_us) OVER (PARTITION BY candidate, class) AS fastest_us,
                     row_number() OVER (PARTITION BY candidate ORDER BY class, stage,
                         iif(stage = 'final', -verdict, 0), p50_us, verdict) AS place
                 FROM valid_times v JOIN provenance o ON o.id = v.provenance
                 WHERE problem = ?1 AND device = ?2 AND kind = ?3
                   AND o.git_commit IN (SELECT value FROM json_each(?5))) WHERE place = 1)"
        }
    };
    let mut parts = [Vec::new(), Vec::new()];
    // All times of final comparisons, a few per run, determine the ranks of the others.
    for (part, (which, limit)) in parts.iter_mut().zip([(FINAL, None), (SEARCH, limit)]) {
        *part = sqlx::query_as(AssertSqlSafe(question(source, which)))
            .bind(problem)
            .bind(device)
            .bind(Text(timing))
            // A negative LIMIT means none in SQLite.
            .bind(limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX)))
            .bind(&commits)
            .fetch_all(&mut *connection)
            .await?;
    }
    let [finals, searched] = parts;
    let mut times = merged(finals, searched);
    times.truncate(limit.unwrap_or(usize::MAX));
    Ok(times)
}

/// Rows of final comparisons.
pub(super) const FINAL: &str = "b.search_us IS NOT NULL";
/// Rows of the search alone.
pub(super) const SEARCH: &str = "b.search_us IS NULL";
/// The table of the best times.
pub(super) const TABLE: &str = "best_times";

/// Merges rows of final comparisons and rows of the search, each in the order of class and time.
///
/// The two protocols are not compared with each other. A row of the search follows all final rows of its
/// class that the search measured as fast or faster. Its time orders it among the rest.
fn merged(finals: Vec<TimeRow>, searched: Vec<TimeRow>) -> Vec<TimeRow> {
    let mut bounds: Vec<(u8, f64, f64)> = finals
        .iter()
        .map(|row| (row.class, row.search_time(), row.p50_us))
        .collect();
    bounds.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut bounds = bounds.into_iter().peekable();
    // The class, and its slowest final time among the rows that the search measured as faster so far.
    let mut slowest = (0, 0.0_f64);
    let searched = searched.into_iter().map(|row| {
        while let Some((class, _, us)) =
            bounds.next_if(|(class, us, _)| (*class, *us) <= (row.class, row.p50_us))
        {
            slowest = match slowest {
                (known, other) if known == class => (class, us.max(other)),
                _ => (class, us),
            };
        }
        let bound = if slowest.0 == row.class {
            slowest.1
        } else {
            0.0
        };
        (row.p50_us.max(bound), row)
    });
    let mut searched = searched.peekable();
    let mut rows = Vec::with_capacity(finals.len() + searched.len());
    for row in finals {
        let place = (row.class, row.p50_us);
        while let Some((_, before)) = searched.next_if(|(us, other)| (other.class, *us) < place) {
            rows.push(before);
        }
        rows.push(row);
    }
    rows.extend(searched.map(|(_, row)| row));
    rows
}

/// Builds the query for the times of a board in `source`, in order: [`FINAL`] or [`SEARCH`] rows.
pub(super) fn question(source: &str, which: &str) -> String {
    // Without statistics SQLite reads all rows of a board to find the few of final comparisons.
    let index = match (source, which) {
        (TABLE, FINAL) => "INDEXED BY best_times_final",
        _ => "",
    };
    format!(
        "SELECT b.verdict, c.config, c.hash, b.class, b.p50_us, b.search_us, m.ci_low_us, m.ci_high_us,
             e.reference, e.reference_us, e.ratio, e.ratio_low, e.ratio_high,
             v.compared IS 'sampled' AS sampled
         FROM {source} b {index} JOIN times m ON m.verdict = b.verdict
         JOIN verdicts v ON v.id = b.verdict
         JOIN candidates c ON c.id = b.candidate
         LEFT JOIN timing_evidence e ON e.verdict = b.verdict AND e.stage = m.stage
         WHERE b.problem = ?1 AND b.device = ?2 AND b.kind = ?3 AND {which}
         ORDER BY b.class, b.p50_us, sampled, c.config, b.verdict LIMIT ?4"
    )
}

/// Returns the best time of the default configuration on a board. `limit`: maximum number of times
/// already read.
pub(super) async fn default_time(
    connection: &mut SqliteConnection,
    board: &Board,
    times: &[TimeRow],
    config: Option<String>,
    limit: Option<usize>,
) -> Result<Option<DefaultTime>, sqlx::Error> {
    let Some(config) = config else {
        return Ok(None);
    };
    let read = times.iter().find(|time| time.config == config);
    if read.is_some() || limit.is_none_or(|limit| times.len() < limit) {
        return Ok(read.map(TimeRow::default_time));
    }
    // The default is tried first: it is among the first results of a task, except in recordings.
    let tried: (i64, Option<f64>, Option<f64>) = sqlx::query_as(
        "SELECT count(*), min(b.p50_us), b.search_us FROM tasks t JOIN runs r ON r.id = t.run
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
    // Found among the first results, with or without a time: the search of all results is not needed.
    if tried.0 > 0 {
        let (_, p50_us, search_us) = tried;
        return Ok(p50_us.map(|p50_us| DefaultTime { p50_us, search_us }));
    }
    sqlx::query_as(
        "SELECT b.p50_us, b.search_us FROM best_times b JOIN candidates c ON c.id = b.candidate
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
