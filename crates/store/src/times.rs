//! The time of every candidate that ranks.

use super::rank::{Relative, Timed};
use sqlx::SqliteConnection;
use sqlx::types::Text;
use std::collections::{BTreeMap, BTreeSet};
use tuner_core::record::TimingKind;

/// Narrow rows: all of them decide places and ties, few are shown.
#[derive(sqlx::FromRow)]
pub(super) struct TimeRow {
    candidate: i64,
    pub(super) verdict: i64,
    pub(super) config: String,
    pub(super) hash: Vec<u8>,
    pub(super) p50_us: f64,
    ci_low_us: f64,
    ci_high_us: f64,
    stage: String,
    reference: Option<String>,
    reference_us: Option<f64>,
    ratio: Option<f64>,
    ratio_low: Option<f64>,
    ratio_high: Option<f64>,
}

impl TimeRow {
    /// As places and ties are decided by it.
    pub(super) fn timed(&self) -> Timed {
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
            p50: self.p50_us,
            low: self.ci_low_us,
            high: self.ci_high_us,
            relative,
        }
    }

    /// The fixed reference and its time in the session of this row, microseconds.
    pub(super) fn reference(&self) -> Option<(&str, f64)> {
        self.reference.as_deref().zip(self.reference_us)
    }
}

/// The time of every candidate, fastest first.
///
/// Where a candidate was timed more than once, that of the latest final comparison counts, for the
/// best of many noisy times is too good; where there is none, the fastest. One that a later run found
/// to be wrong has none.
pub(super) async fn best_times(
    connection: &mut SqliteConnection,
    (problem, device): (i64, i64),
    timing: TimingKind,
    commits: Option<String>,
) -> Result<Vec<TimeRow>, sqlx::Error> {
    let mut times: Vec<TimeRow> = sqlx::query_as(
        "SELECT v.candidate, v.id AS verdict, c.config, c.hash, m.p50_us, m.ci_low_us, m.ci_high_us,
             m.stage, e.reference, e.reference_us, e.ratio, e.ratio_low, e.ratio_high
         FROM tasks t JOIN runs r ON r.id = t.run JOIN verdicts v ON v.task = t.id
         JOIN times m ON m.verdict = v.id JOIN candidates c ON c.id = v.candidate
         JOIN provenance o ON o.id = v.provenance
         LEFT JOIN timing_evidence e ON e.verdict = v.id AND e.stage = m.stage
         WHERE t.problem = ?1 AND r.device = ?2 AND m.kind = ?3 AND v.verdict = 'ok'
           AND (?4 IS NULL OR o.git_commit IN (SELECT value FROM json_each(?4)))",
    )
    .bind(problem)
    .bind(device)
    .bind(Text(timing))
    .bind(commits)
    .fetch_all(&mut *connection)
    .await?;
    let wrong = found_wrong(connection, (problem, device)).await?;
    times.retain(|row| wrong.get(&row.candidate).is_none_or(|at| *at < row.verdict));
    let mut published: Vec<(i64, i64)> = times
        .iter()
        .filter(|row| row.stage == "final")
        .map(|row| (row.candidate, row.verdict))
        .collect();
    published.sort_unstable();
    let published: BTreeMap<i64, i64> = published.into_iter().collect();
    times.retain(|row| {
        published
            .get(&row.candidate)
            .is_none_or(|verdict| *verdict == row.verdict)
    });
    times.sort_by(|a, b| {
        a.p50_us
            .total_cmp(&b.p50_us)
            .then_with(|| a.config.cmp(&b.config))
            .then_with(|| a.verdict.cmp(&b.verdict))
    });
    let mut seen = BTreeSet::new();
    times.retain(|row| seen.insert(row.candidate));
    Ok(times)
}

/// Candidates that a run found to be wrong, with the latest such verdict: times from before it do
/// not rank. The same verdicts withdraw rows of the table `best_times`.
async fn found_wrong(
    connection: &mut SqliteConnection,
    (problem, device): (i64, i64),
) -> Result<BTreeMap<i64, i64>, sqlx::Error> {
    let rows: Vec<(i64, i64)> = sqlx::query_as(
        "SELECT v.candidate, max(v.id) FROM tasks t JOIN runs r ON r.id = t.run
         JOIN verdicts v ON v.task = t.id
         WHERE t.problem = ? AND r.device = ? AND v.verdict IN (
             'out_of_bounds', 'misaligned', 'barrier_divergence', 'deadlock', 'race',
             'uninitialized', 'nondeterministic', 'implausible', 'incorrect')
         GROUP BY v.candidate",
    )
    .bind(problem)
    .bind(device)
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().collect())
}

/// The first rows of [`best_times`], by the table that keeps them in order.
pub(super) async fn first_times(
    connection: &mut SqliteConnection,
    (problem, device): (i64, i64),
    timing: TimingKind,
    limit: i64,
) -> Result<Vec<TimeRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT b.candidate, b.verdict, c.config, c.hash, b.p50_us, m.ci_low_us, m.ci_high_us,
             m.stage, e.reference, e.reference_us, e.ratio, e.ratio_low, e.ratio_high
         FROM best_times b JOIN times m ON m.verdict = b.verdict
         JOIN candidates c ON c.id = b.candidate
         LEFT JOIN timing_evidence e ON e.verdict = b.verdict AND e.stage = m.stage
         WHERE b.problem = ? AND b.device = ? AND b.kind = ?
         ORDER BY b.p50_us, c.config, b.verdict LIMIT ?",
    )
    .bind(problem)
    .bind(device)
    .bind(Text(timing))
    .bind(limit)
    .fetch_all(connection)
    .await
}
