//! Conversion of trials to rows and back. Many rows are inserted in a statement, because a
//! statement costs a round trip to SQLite's thread and a row does not.

pub(crate) mod insert;
mod read;
pub(crate) mod text;

pub(super) use read::{SEARCH_COLUMNS, TRIAL_COLUMNS, compared_from_row, trial_from_row};
pub(super) use text::{Config, ConfigRef, config_from_text, config_text};

use super::details::packed;
use super::evidence::insert_evidence;
use insert::insert_many;
use sqlx::sqlite::SqliteArguments;
use sqlx::types::Text;
use sqlx::{Arguments as _, Encode, Sqlite, SqliteConnection, Type};
use text::samples_text;
use tuner_core::record::{
    Compared, Compilation, Measurement, TimingEvidence, TimingKind, TrialRecord,
};
use tuner_core::units::ContentHash;

/// A trial that is waiting to be written.
pub(super) struct PendingTrial {
    pub(super) task: i64,
    pub(super) problem: i64,
    pub(super) provenance: i64,
    pub(super) trial: TrialRecord,
    /// Written before the launch, to be replaced after it.
    pub(super) announced: bool,
}

/// Returns a hash as stored in the database: the bytes of its digits.
pub(super) fn hash_bytes(hash: &ContentHash) -> Vec<u8> {
    let bytes = hex::decode(hash.as_str()).ok();
    // Tests and old databases may contain other text, which is stored unchanged.
    let bytes = bytes.filter(|bytes| bytes.len() == 32);
    bytes.unwrap_or_else(|| hash.as_str().as_bytes().to_vec())
}

/// A column with [`hash_bytes`].
#[derive(sqlx::Type)]
#[sqlx(transparent)]
pub(super) struct HashBytes(Vec<u8>);

impl From<HashBytes> for ContentHash {
    fn from(bytes: HashBytes) -> Self {
        hash_from_bytes(&bytes.0)
    }
}

/// Converts the result of [`hash_bytes`] back.
pub(super) fn hash_from_bytes(bytes: &[u8]) -> ContentHash {
    ContentHash::from_stored(if bytes.len() == 32 {
        hex::encode(bytes)
    } else {
        String::from_utf8_lossy(bytes).into_owned()
    })
}

pub(super) fn integer(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Inserts the trials and all dependent rows; runs inside the writer's transaction.
pub(super) async fn insert_trials(
    connection: &mut SqliteConnection,
    trials: &[&PendingTrial],
    replaces: &[(i64, Vec<u8>)],
    judged_at: &str,
) -> Result<(), sqlx::Error> {
    for (task, hash) in replaces {
        sqlx::query(
            "DELETE FROM verdicts WHERE task = ?1 AND sequence IS NULL AND candidate IN
             (SELECT id FROM candidates WHERE hash = ?2)",
        )
        .bind(*task)
        .bind(hash)
        .execute(&mut *connection)
        .await?;
    }
    // The transaction holds the write lock, so ids can be assigned here and used by all dependent
    // rows without reading them back.
    let first: i64 = sqlx::query_scalar("SELECT coalesce(max(id), 0) + 1 FROM verdicts")
        .fetch_one(&mut *connection)
        .await?;
    let rows: Vec<(i64, &PendingTrial)> = (first..).zip(trials.iter().copied()).collect();
    // In the order of foreign keys.
    insert_candidates(connection, &rows).await?;
    let (details, bodies): (Vec<_>, Vec<_>) = rows
        .iter()
        .map(|(_, row)| packed(&row.trial.judgement.detail))
        .unzip();
    let described: Vec<_> = rows.iter().copied().zip(details).collect();
    insert_verdicts(connection, &described, judged_at).await?;
    let long = rows.iter().zip(bodies);
    let long = long.filter_map(|((id, _), body)| Some((*id, body?)));
    insert_bodies(connection, "long_details", &long.collect::<Vec<_>>()).await?;
    insert_compilations(connection, &rows).await?;
    insert_measurements(connection, &rows).await?;
    insert_hazards(connection, &rows).await?;
    let counted = rows
        .iter()
        .filter_map(|(id, row)| Some((*id, row.trial.counters.as_ref()?.to_string())));
    insert_bodies(connection, "counters", &counted.collect::<Vec<_>>()).await
}

async fn insert_candidates(
    connection: &mut SqliteConnection,
    rows: &[(i64, &PendingTrial)],
) -> Result<(), sqlx::Error> {
    insert_many(
        connection,
        "INSERT INTO candidates (problem, hash, config) VALUES ",
        "(?,?,?)",
        " ON CONFLICT DO NOTHING",
        rows,
        |values, (_, row)| {
            values.add(row.problem)?;
            values.add(hash_bytes(&row.trial.candidate_hash))?;
            values.add(config_text(&row.trial.config))
        },
    )
    .await
}

/// Inserts the verdicts of trials, each with its detail.
async fn insert_verdicts(
    connection: &mut SqliteConnection,
    rows: &[((i64, &PendingTrial), &str)],
    judged_at: &str,
) -> Result<(), sqlx::Error> {
    insert_many(
        connection,
        "INSERT INTO verdicts (id, task, candidate, provenance, sequence, verdict, detail, \
         max_error, compared, charged_us, origin, judged_at) VALUES ",
        "(?,?,(SELECT id FROM candidates WHERE problem=? AND hash=?),?,?,?,?,?,?,?,?,?)",
        "",
        rows,
        |values, ((id, row), detail)| {
            let trial = &row.trial;
            values.add(*id)?;
            values.add(row.task)?;
            values.add(row.problem)?;
            values.add(hash_bytes(&trial.candidate_hash))?;
            values.add(row.provenance)?;
            values.add((!row.announced).then(|| integer(trial.sequence)))?;
            values.add(trial.judgement.verdict.name())?;
            values.add((*detail).to_owned())?;
            values.add(trial.judgement.max_error)?;
            values.add(compared(trial).map(Text))?;
            values.add(integer(trial.charged_us))?;
            values.add(trial.origin.clone())?;
            values.add(judged_at.to_owned())
        },
    )
    .await
}

/// Returns the comparison of a trial. A time without one is from an older worker; recorded times never have
/// one.
fn compared(trial: &TrialRecord) -> Option<Compared> {
    let time = trial.measurement.as_ref();
    let ours = time.is_some_and(|time| time.kind != TimingKind::Recorded);
    let unknown = Some(Compared::Unknown).filter(|_| ours);
    trial.judgement.compared.or(unknown)
}

/// Inserts the data of verdicts that have a separate table.
async fn insert_bodies<B>(
    connection: &mut SqliteConnection,
    table: &str,
    bodies: &[(i64, B)],
) -> Result<(), sqlx::Error>
where
    B: Clone + for<'q> Encode<'q, Sqlite> + Type<Sqlite>,
{
    let head = format!("INSERT INTO {table} (verdict, body) VALUES ");
    let add = |values: &mut SqliteArguments, (id, body): &(i64, B)| {
        values.add(*id)?;
        values.add(body.clone())
    };
    insert_many(connection, &head, "(?,?)", "", bodies, add).await
}

async fn insert_compilations(
    connection: &mut SqliteConnection,
    rows: &[(i64, &PendingTrial)],
) -> Result<(), sqlx::Error> {
    let compiled: Vec<(&PendingTrial, &Compilation)> = rows
        .iter()
        .filter_map(|(_, row)| Some((*row, row.trial.compilation.as_ref()?)))
        .collect();
    insert_many(
        connection,
        "INSERT INTO compilations (candidate, cubin_hash, nvrtc_version, arch, registers, \
         spill_bytes, stack_bytes, shared_bytes, compile_us, ptx_bytes, sass_bytes) VALUES ",
        "((SELECT id FROM candidates WHERE problem=? AND hash=?),?,?,?,?,?,?,?,?,?,?)",
        " ON CONFLICT DO NOTHING",
        &compiled,
        |values, (row, facts)| {
            values.add(row.problem)?;
            values.add(hash_bytes(&row.trial.candidate_hash))?;
            values.add(facts.cubin_hash.to_string())?;
            values.add(facts.nvrtc_version.clone())?;
            values.add(facts.arch.clone())?;
            values.add(i64::from(facts.registers))?;
            values.add(integer(facts.spill_bytes))?;
            values.add(integer(facts.stack_bytes))?;
            values.add(integer(facts.shared_bytes))?;
            values.add(integer(facts.compile_us))?;
            values.add(integer(facts.ptx_bytes))?;
            values.add(integer(facts.sass_bytes))
        },
    )
    .await
}

async fn insert_measurements(
    connection: &mut SqliteConnection,
    rows: &[(i64, &PendingTrial)],
) -> Result<(), sqlx::Error> {
    let timed: Vec<(i64, &Measurement)> = rows
        .iter()
        .filter_map(|(id, row)| Some((*id, row.trial.measurement.as_ref()?)))
        .collect();
    insert_many(
        connection,
        "INSERT INTO measurements (verdict, kind, p50_us, p90_us, ci_low_us, ci_high_us, \
         protocol, reused, sample_count, samples_us) VALUES ",
        "(?,?,?,?,?,?,?,?,?,?)",
        "",
        &timed,
        |values, (id, time)| {
            values.add(*id)?;
            values.add(Text(time.kind))?;
            values.add(time.p50.get())?;
            values.add(time.p90.get())?;
            values.add(time.ci95[0].get())?;
            values.add(time.ci95[1].get())?;
            values.add(time.protocol.clone())?;
            values.add(i64::from(time.reused))?;
            values.add(integer(time.samples.len() as u64))?;
            values.add(samples_text(&time.samples))
        },
    )
    .await?;
    let measured: Vec<(i64, &TimingEvidence)> = timed
        .iter()
        .filter_map(|(id, time)| Some((*id, time.evidence.as_deref()?)))
        .collect();
    insert_evidence(connection, "race", &measured).await
}

async fn insert_hazards(
    connection: &mut SqliteConnection,
    rows: &[(i64, &PendingTrial)],
) -> Result<(), sqlx::Error> {
    let hazards: Vec<(i64, i64, String)> = rows
        .iter()
        .flat_map(|(id, row)| {
            (0..)
                .zip(&row.trial.judgement.hazards)
                .map(|(ordinal, hazard)| {
                    (
                        *id,
                        ordinal,
                        serde_json::to_string(hazard).unwrap_or_default(),
                    )
                })
        })
        .collect();
    insert_many(
        connection,
        "INSERT INTO hazards (verdict, ordinal, body) VALUES ",
        "(?,?,?)",
        "",
        &hazards,
        |values, (id, ordinal, body)| {
            values.add(*id)?;
            values.add(*ordinal)?;
            values.add(body.clone())
        },
    )
    .await
}

#[cfg(test)]
mod tests;
