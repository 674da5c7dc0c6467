//! Trials that prior knowledge saved.

use super::Store;
use super::bests::{CurvePoint, best_falls};
use super::error::{StoreError, WithPath as _};
use super::run::RunId;
use tuner_core::record::TaskKey;

/// Factor of a run's best time within which times count as equal.
const EQUAL_TIME_FACTOR: f64 = 1.02;

/// Returns the number of trials after which a curve came to a time.
fn reached(curve: &[CurvePoint], enough: f64) -> Option<u64> {
    let point = curve.iter().find(|point| point.us <= enough);
    point.map(|point| point.evals)
}

impl Store {
    /// Returns the trials that a task's run with knowledge saved: compared with the median of the
    /// runs of the same problem, device and strategy without knowledge that came to its best time.
    /// `None` without such runs.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn trials_saved(
        &self,
        run: &RunId,
        key: &TaskKey,
    ) -> Result<Option<u64>, StoreError> {
        let reader = &mut *self.reader().await?;
        let tasks: Vec<(i64, bool)> = sqlx::query_as(
            "SELECT t.id, t.run = o.run FROM tasks o JOIN runs w ON w.id = o.run
             JOIN problems p ON p.id = o.problem JOIN kernels k ON k.id = p.kernel
             JOIN tasks t ON t.problem = o.problem JOIN runs r ON r.id = t.run
             WHERE w.name = ? AND k.name = ? AND p.name = ? AND r.device = w.device
               AND (r.id = w.id OR r.strategy = w.strategy
                    AND json_extract(r.settings, '$.knowledge') IS NULL)",
        )
        .bind(run.as_str())
        .bind(&key.kernel)
        .bind(&key.problem)
        .fetch_all(&mut *reader)
        .await
        .with_path(&self.path)?;
        let mut own = Vec::new();
        let mut others = Vec::new();
        for (task, is_own) in tasks {
            let falls = best_falls(reader, task).await.with_path(&self.path)?;
            let curve = falls.into_iter().map(|fall| fall.point).collect();
            match is_own {
                true => own = curve,
                false => others.push(curve),
            }
        }
        let Some(enough) = own.last().map(|point| EQUAL_TIME_FACTOR * point.us) else {
            return Ok(None);
        };
        let needed = reached(&own, enough).unwrap_or(0);
        let mut cold: Vec<u64> = others
            .iter()
            .filter_map(|curve| reached(curve, enough))
            .collect();
        cold.sort_unstable();
        let median = cold.get(cold.len() / 2);
        Ok(median.map(|trials| trials.saturating_sub(needed)))
    }
}
