//! Best times of a task: their falls in the search, and the best of the final comparison.

use serde::{Deserialize, Serialize};
use sqlx::SqliteConnection;
use sqlx::types::Text;
use tuner_core::record::Compared;
use utoipa::ToSchema;

/// A point of a best-so-far curve.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Serialize,
    Deserialize,
    ToSchema,
    sqlx::FromRow
)]
#[schema(as = PointView)]
pub struct CurvePoint {
    /// Results of the task until then.
    pub evals: u64,
    /// The new best, µs.
    pub us: f64,
}

/// A fall of the best time of a task.
#[derive(sqlx::FromRow)]
pub(super) struct Fall {
    #[sqlx(flatten)]
    pub(super) point: CurvePoint,
    pub(super) candidate: i64,
    pub(super) compared: Option<Text<Compared>>,
}

/// Reads the falls of a task's best time in the search.
pub(super) async fn best_falls(
    connection: &mut SqliteConnection,
    task: i64,
) -> Result<Vec<Fall>, sqlx::Error> {
    // Only the falls of the running minimum leave the database: a curve has tens of points, a task
    // may have a million results. Times that were not compared at the timed size count only if
    // there is no other.
    sqlx::query_as(
        "SELECT sequence + 1 AS evals, p50_us AS us, candidate, compared FROM (
            SELECT *, min(p50_us) OVER (
                ORDER BY sequence ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
            FROM (
                SELECT sequence, p50_us, candidate, compared, class, min(class) OVER () AS least
                FROM (
                    SELECT v.sequence, m.p50_us, v.candidate, v.compared,
                        coalesce(v.compared IN ('smaller_problems', 'unknown'), 0) AS class
                    FROM verdicts v JOIN measurements m ON m.verdict = v.id
                    WHERE v.task = ? AND v.sequence IS NOT NULL AND v.verdict = 'ok'
                      AND NOT EXISTS (SELECT 1 FROM withdrawn w WHERE w.verdict = v.id)))
            WHERE class = least)
         WHERE before IS NULL OR p50_us < before ORDER BY sequence",
    )
    .bind(task)
    .fetch_all(&mut *connection)
    .await
}

/// The fastest of a task's final comparison.
#[derive(sqlx::FromRow)]
pub(super) struct FinalBest {
    pub(super) candidate: i64,
    pub(super) compared: Option<Text<Compared>>,
    pub(super) p50_us: f64,
    pub(super) ci_low_us: f64,
    pub(super) ci_high_us: f64,
    pub(super) search_us: f64,
}

/// Reads the fastest of a task's final comparison; `None` if there was none.
pub(super) async fn final_best(
    connection: &mut SqliteConnection,
    task: i64,
) -> Result<Option<FinalBest>, sqlx::Error> {
    sqlx::query_as(
        "SELECT v.candidate, v.compared, f.p50_us, f.ci_low_us, f.ci_high_us, m.p50_us AS search_us
         FROM verdicts v JOIN final_times f ON f.verdict = v.id
         JOIN measurements m ON m.verdict = v.id JOIN candidates c ON c.id = v.candidate
         WHERE v.task = ? AND v.verdict = 'ok'
           AND NOT EXISTS (SELECT 1 FROM withdrawn w WHERE w.verdict = v.id)
         ORDER BY coalesce(v.compared IN ('smaller_problems', 'unknown'), 0), f.p50_us, c.config
         LIMIT 1",
    )
    .bind(task)
    .fetch_optional(connection)
    .await
}
