//! Trials of earlier runs that answer the proposals of a new one.

use super::Store;
use super::ack::Ack;
use super::error::{StoreError, WithPath as _};
use super::rows::{SEARCH_COLUMNS, config_text, trial_from_row};
use super::run::{RunId, RunStart, TaskStart};
use sqlx::AssertSqlSafe;
use sqlx::types::Text;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use tuner_core::record::{ConfigValues, TaskKey, TrialRecord, Validity};
use tuner_core::units::ContentHash;

/// Maximum rows of a task that are read, the newest.
const MAX_ROWS: i64 = 100_000;

/// A stored trial, whose time therefore had a proof when it was stored. Only the store constructs one.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownTrial(TrialRecord);

/// Trials of one task, by the identity of their candidates.
pub type KnownTrials = HashMap<ContentHash, KnownTrial>;

impl KnownTrial {
    /// Returns the trial.
    #[must_use]
    pub fn trial(&self) -> &TrialRecord {
        &self.0
    }

    /// Sets its place in another run.
    #[must_use]
    pub fn placed(mut self, sequence: u64, config: ConfigValues, origin: &str) -> Self {
        self.0.sequence = sequence;
        self.0.config = config;
        self.0.origin = origin.to_owned();
        if let Some(time) = &mut self.0.measurement {
            time.reused = true;
        }
        self
    }
}

/// Reports whether a judgement is independent of when and by which version it is made.
fn is_lasting(trial: &TrialRecord) -> bool {
    let passed = trial.judgement.is_ok();
    let validity = trial.judgement.verdict.facts().validity;
    passed == trial.measurement.is_some() && validity == Validity::Lasting
}

impl Store {
    /// Returns the trials of a task in earlier runs with the same template, reference, sizes, device,
    /// driver and program version. The identity of a candidate includes options and compiler. A candidate
    /// with contradicting verdicts is omitted.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn known_trials(
        &self,
        start: &RunStart,
        task: &TaskStart,
    ) -> Result<KnownTrials, StoreError> {
        // A recording has neither; the identity of its candidates contains that of the file.
        let template = task.template_hash.as_ref().map(ToString::to_string);
        let reference = task.reference_hash.as_ref().map(ToString::to_string);
        let recorded = start.device.recording.is_some();
        if !recorded && (template.is_none() || reference.is_none()) {
            return Ok(KnownTrials::new());
        }
        let sql = format!(
            "{SEARCH_COLUMNS} JOIN runs r ON r.id = t.run JOIN devices d ON d.id = r.device
             JOIN provenance o ON o.id = v.provenance
             WHERE k.name = ? AND k.template_hash IS ? AND k.reference_hash IS ? AND p.name = ?
               AND p.sizes = ? AND d.name = ? AND d.kind = ? AND o.tuner_version = ?
               AND o.driver IS ? AND v.sequence IS NOT NULL
             ORDER BY v.id DESC LIMIT ?"
        );
        let rows = sqlx::query(AssertSqlSafe(sql))
            .bind(&task.kernel)
            .bind(template)
            .bind(reference)
            .bind(&task.problem)
            .bind(config_text(&task.sizes))
            .bind(&start.device.name)
            .bind(Text(start.device.kind))
            .bind(&task.provenance.tuner_version)
            .bind(&task.provenance.driver)
            .bind(MAX_ROWS)
            .fetch_all(&mut *self.reader().await?)
            .await
            .with_path(&self.path)?;
        let mut known: HashMap<ContentHash, Option<KnownTrial>> = HashMap::new();
        for row in &rows {
            let (_, trial) = trial_from_row(row).with_path(&self.path)?;
            if !is_lasting(&trial) {
                continue;
            }
            match known.entry(trial.candidate_hash.clone()) {
                Entry::Vacant(place) => {
                    place.insert(Some(KnownTrial(trial)));
                }
                Entry::Occupied(mut place) => {
                    let newer = place.get().as_ref();
                    let agrees = newer
                        .is_some_and(|newer| newer.0.judgement.is_ok() == trial.judgement.is_ok());
                    if !agrees {
                        // Also excludes later rows: no verdict agrees with `None`.
                        place.insert(None);
                    }
                }
            }
        }
        let agreed = known.into_iter();
        Ok(agreed
            .filter_map(|(hash, trial)| Some((hash, trial?)))
            .collect())
    }

    /// Submits a trial of an earlier run as one of this run; see [`Store::submit`].
    ///
    /// # Errors
    /// The store is closed.
    pub async fn submit_known(
        &self,
        run: &RunId,
        task: &TaskKey,
        known: KnownTrial,
    ) -> Result<Ack, StoreError> {
        self.queue_record(run, task, known.0, false).await
    }
}
