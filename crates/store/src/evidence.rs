//! Evidence of measured times, and times that are measured again at the end of a run.

use super::Store;
use super::error::{StoreError, broken};
use super::rows::insert::insert_many;
use super::rows::text::{config_text, samples_from_text, samples_text};
use super::run::RunId;
use super::tasks::{now, task_row};
use sqlx::types::Text;
use sqlx::{Arguments as _, Connection as _, Row as _, SqliteConnection};
use tuner_core::cache_mode::CacheMode;
use tuner_core::evidence::Measured;
use tuner_core::record::{ConfigValues, Energy, Measurement, OtherMode, TaskKey, TimingEvidence};
use tuner_core::statistics::{interval_of_median, median};
use tuner_core::units::{ContentHash, Micros};

/// Inserts evidence of the stage for verdicts.
pub(super) async fn insert_evidence(
    connection: &mut SqliteConnection,
    stage: &'static str,
    rows: &[(i64, &TimingEvidence)],
) -> Result<(), sqlx::Error> {
    insert_many(
        connection,
        "INSERT OR REPLACE INTO timing_evidence (verdict, stage, cache, launches, cycles, \
         clock_mhz, reference, reference_us, ratios, ratio, ratio_low, ratio_high, flags, \
         other_cache, other_p50_us, other_p90_us, other_low_us, other_high_us, other_samples, \
         gate, energy_mj, energy_low_mj, energy_high_mj, energies_mj) VALUES ",
        "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        "",
        rows,
        |values, (verdict, evidence)| {
            let interval = interval_of_median(&evidence.reference_ratios);
            let other = evidence.other.as_ref();
            values.add(*verdict)?;
            values.add(stage)?;
            values.add(evidence.cache.name())?;
            values.add(i64::from(evidence.launches))?;
            values.add(samples_text(&evidence.cycles))?;
            values.add(samples_text(&evidence.clock_mhz))?;
            values.add(evidence.reference.as_ref().map(ToString::to_string))?;
            values.add(evidence.reference_us)?;
            values.add(samples_text(&evidence.reference_ratios))?;
            // Stored with the ratios, so that a rank of many rows need not parse them.
            values.add(median(&evidence.reference_ratios))?;
            values.add(interval.map(|[low, _]| low))?;
            values.add(interval.map(|[_, high]| high))?;
            values.add(serde_json::to_string(&evidence.flags).unwrap_or_else(|_| "[]".into()))?;
            values.add(other.map(|mode| mode.cache.name()))?;
            values.add(other.map(|mode| mode.p50.get()))?;
            values.add(other.map(|mode| mode.p90.get()))?;
            values.add(other.map(|mode| mode.ci95[0].get()))?;
            values.add(other.map(|mode| mode.ci95[1].get()))?;
            values.add(other.map(|mode| samples_text(&mode.samples)))?;
            values.add(evidence.gate.clone())?;
            let energy = evidence.energy.as_ref();
            values.add(energy.map(|energy| energy.launch_mj))?;
            values.add(energy.map(|energy| energy.ci95_mj[0]))?;
            values.add(energy.map(|energy| energy.ci95_mj[1]))?;
            values.add(energy.map(|energy| samples_text(&energy.samples_mj)))
        },
    )
    .await
}

/// Reads the energy from a row with the columns of [`super::rows::TRIAL_COLUMNS`].
fn energy_from_row(row: &sqlx::sqlite::SqliteRow) -> Result<Option<Energy>, sqlx::Error> {
    let number = |column: &str| row.try_get::<Option<f64>, _>(column);
    let median = number("energy_mj")?;
    let interval = number("energy_low_mj")?.zip(number("energy_high_mj")?);
    let samples: Option<String> = row.try_get("energies_mj")?;
    let found = median.zip(interval);
    Ok(found.map(|(launch_mj, (low, high))| Energy {
        launch_mj,
        ci95_mj: [low, high],
        samples_mj: samples_from_text(&samples.unwrap_or_default()),
    }))
}

/// Reads the evidence from a row with the columns of [`super::rows::TRIAL_COLUMNS`]; `None` if
/// absent.
pub(super) fn evidence_from_row(
    row: &sqlx::sqlite::SqliteRow,
) -> Result<Option<Box<TimingEvidence>>, sqlx::Error> {
    let Some(Text(cache)) = row.try_get("cache")? else {
        return Ok(None);
    };
    let numbers = |column: &str| -> Result<Vec<f64>, sqlx::Error> {
        Ok(samples_from_text(&row.try_get::<String, _>(column)?))
    };
    let time = |column: &str| -> Result<Option<Micros>, sqlx::Error> {
        Ok(row.try_get::<Option<f64>, _>(column)?.and_then(Micros::new))
    };
    let times = (
        time("other_p50_us")?,
        time("other_p90_us")?,
        time("other_low_us")?,
        time("other_high_us")?,
    );
    let other_cache: Option<Text<CacheMode>> = row.try_get("other_cache")?;
    let other = match (other_cache, times) {
        (Some(Text(cache)), (Some(p50), Some(p90), Some(low), Some(high))) => Some(OtherMode {
            cache,
            p50,
            p90,
            ci95: [low, high],
            samples: numbers("other_samples")?,
        }),
        _ => None,
    };
    let flags: String = row.try_get("flags")?;
    let reference: Option<String> = row.try_get("reference")?;
    Ok(Some(Box::new(TimingEvidence {
        cache,
        launches: row.try_get("launches")?,
        cycles: numbers("cycles")?,
        clock_mhz: numbers("clock_mhz")?,
        reference: reference.map(ContentHash::from_stored),
        reference_us: row.try_get("reference_us")?,
        reference_ratios: numbers("ratios")?,
        flags: serde_json::from_str(&flags).unwrap_or_default(),
        gate: row.try_get("gate")?,
        other,
        energy: energy_from_row(row)?,
    })))
}

async fn publish(
    connection: &mut SqliteConnection,
    run: RunId,
    task: TaskKey,
    config: String,
    time: Measurement,
) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let task = task_row(&mut transaction, &run, &task).await?;
    // The final time is linked to the verdict of the first one, which proves the results.
    let verdict: i64 = sqlx::query_scalar(
        "SELECT v.id FROM verdicts v JOIN candidates c ON c.id = v.candidate
         JOIN measurements m ON m.verdict = v.id WHERE v.task = ? AND c.config = ?",
    )
    .bind(task)
    .bind(config)
    .fetch_optional(&mut *transaction)
    .await?
    .ok_or_else(|| broken("the configuration that was timed again has no first time"))?;
    sqlx::query(
        "INSERT OR REPLACE INTO final_times (verdict, p50_us, p90_us, ci_low_us, ci_high_us,
         protocol, sample_count, samples_us, timed_at) VALUES (?,?,?,?,?,?,?,?,?)",
    )
    .bind(verdict)
    .bind(time.p50.get())
    .bind(time.p90.get())
    .bind(time.ci95[0].get())
    .bind(time.ci95[1].get())
    .bind(&time.protocol)
    .bind(time.samples.len() as i64)
    .bind(samples_text(&time.samples))
    .bind(now())
    .execute(&mut *transaction)
    .await?;
    if let Some(evidence) = &time.evidence {
        insert_evidence(&mut transaction, "final", &[(verdict, evidence)]).await?;
    }
    transaction.commit().await
}

impl Store {
    /// Stores a time that was measured again at the end of a run, in a fresh process, as the valid one; the
    /// first is kept. The run may have ended.
    ///
    /// # Errors
    /// The database cannot be written, or the configuration has no first time in that run.
    pub async fn publish(
        &self,
        run: &RunId,
        task: &TaskKey,
        config: &ConfigValues,
        time: Measured,
    ) -> Result<(), StoreError> {
        let time = time.into_record();
        let (run, task, config) = (run.clone(), task.clone(), config_text(config));
        self.write(move |connection| Box::pin(publish(connection, run, task, config, time)))
            .await
    }
}
