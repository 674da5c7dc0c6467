//! Conversion of trials to rows and back. Many rows are inserted in a statement, because a
//! statement costs a round trip to SQLite's thread and a row does not.

mod read;

pub(super) use read::{TRIAL_COLUMNS, compared_from_row, trial_from_row};

use super::details::packed;
use super::evidence::insert_evidence;
use serde::{Deserialize, Serialize};
use sqlx::error::BoxDynError;
use sqlx::sqlite::{SqliteArguments, SqliteTypeInfo, SqliteValueRef};
use sqlx::types::Text;
use sqlx::{Arguments as _, AssertSqlSafe, Decode, Encode, Sqlite, SqliteConnection, Type};
use std::fmt::Write as _;
use tuner_core::record::{
    Compared, Compilation, ConfigValues, Measurement, TimingEvidence, TimingKind, TrialRecord,
    config_as_object,
};
use tuner_core::units::ContentHash;

/// Rows of an insert statement, largest first. Few sizes, so that all stay prepared.
const CHUNKS: [usize; 3] = [64, 8, 1];

/// A trial on its way into the database.
pub(super) struct PendingTrial {
    pub(super) task: i64,
    pub(super) problem: i64,
    pub(super) provenance: i64,
    pub(super) trial: TrialRecord,
    /// Written before the launch, to be replaced after it.
    pub(super) announced: bool,
}

/// A configuration that is serialized as an object.
#[derive(Serialize)]
pub(super) struct ConfigRef<'c>(#[serde(with = "config_as_object")] pub(super) &'c ConfigValues);

/// Returns a configuration as the JSON object of the database; equal configurations have equal
/// text.
pub(super) fn config_text(config: &ConfigValues) -> String {
    // Values are finite numbers, booleans and text under text keys: this cannot fail.
    serde_json::to_string(&ConfigRef(config)).unwrap_or_default()
}

/// Parses the result of [`config_text`].
pub(super) fn config_from_text(text: &str) -> Result<ConfigValues, serde_json::Error> {
    serde_json::from_str::<Config>(text).map(Config::into)
}

/// Formats samples as a JSON array whose numbers read back to the same bits.
pub(super) fn samples_text(samples: &[f64]) -> String {
    let mut text = String::with_capacity(12 * samples.len() + 2);
    text.push('[');
    for (index, sample) in samples.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        // Rust's shortest digits read back to the same bits.
        let _ = write!(text, "{comma}{sample:?}");
    }
    text.push(']');
    text
}

/// Parses the result of [`samples_text`]; the standard parser is exact, serde_json's default is
/// not.
pub(super) fn samples_from_text(text: &str) -> Vec<f64> {
    text.trim_matches(['[', ']'])
        .split(',')
        .filter_map(|number| number.trim().parse().ok())
        .collect()
}

/// A column with a configuration.
#[derive(Deserialize)]
pub(super) struct Config(#[serde(with = "config_as_object")] ConfigValues);

impl From<Config> for ConfigValues {
    fn from(config: Config) -> Self {
        config.0
    }
}

impl Type<Sqlite> for Config {
    fn type_info() -> SqliteTypeInfo {
        <str as Type<Sqlite>>::type_info()
    }
}

impl<'r> Decode<'r, Sqlite> for Config {
    fn decode(value: SqliteValueRef<'r>) -> Result<Self, BoxDynError> {
        let text = <&str as Decode<Sqlite>>::decode(value)?;
        let config = config_from_text(text).map_err(|error| format!("config: {error}"))?;
        Ok(Self(config))
    }
}

/// Returns a hash as stored in the database: the bytes of its digits.
pub(super) fn hash_bytes(hash: &ContentHash) -> Vec<u8> {
    let bytes = hex::decode(hash.as_str()).ok();
    // Tests and old databases may hold other text, which is stored as it is.
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

/// Inserts rows in chunks; `add` pushes the values of one row.
pub(super) async fn insert_many<T>(
    connection: &mut SqliteConnection,
    head: &str,
    row: &str,
    tail: &str,
    items: &[T],
    add: impl Fn(&mut SqliteArguments, &T) -> Result<(), BoxDynError>,
) -> Result<(), sqlx::Error> {
    let mut rest = items;
    while !rest.is_empty() {
        let size = CHUNKS
            .into_iter()
            .find(|size| *size <= rest.len())
            .unwrap_or(1);
        let (now, later) = rest.split_at(size);
        let sql = format!("{head}{}{tail}", vec![row; size].join(","));
        let mut arguments = SqliteArguments::default();
        for item in now {
            add(&mut arguments, item).map_err(sqlx::Error::Encode)?;
        }
        sqlx::query_with(AssertSqlSafe(sql), arguments)
            .execute(&mut *connection)
            .await?;
        rest = later;
    }
    Ok(())
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
    insert_verdicts(connection, &rows, judged_at).await?;
    let long = rows
        .iter()
        .filter_map(|(id, row)| Some((*id, packed(&row.trial.judgement.detail).1?)));
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

async fn insert_verdicts(
    connection: &mut SqliteConnection,
    rows: &[(i64, &PendingTrial)],
    judged_at: &str,
) -> Result<(), sqlx::Error> {
    insert_many(
        connection,
        "INSERT INTO verdicts (id, task, candidate, provenance, sequence, verdict, detail, \
         max_error, compared, charged_us, origin, judged_at) VALUES ",
        "(?,?,(SELECT id FROM candidates WHERE problem=? AND hash=?),?,?,?,?,?,?,?,?,?)",
        "",
        rows,
        |values, (id, row)| {
            let trial = &row.trial;
            values.add(*id)?;
            values.add(row.task)?;
            values.add(row.problem)?;
            values.add(hash_bytes(&trial.candidate_hash))?;
            values.add(row.provenance)?;
            values.add((!row.announced).then(|| integer(trial.sequence)))?;
            values.add(trial.judgement.verdict.name())?;
            values.add(packed(&trial.judgement.detail).0.to_owned())?;
            values.add(trial.judgement.max_error)?;
            values.add(compared(trial).map(Text))?;
            values.add(integer(trial.charged_us))?;
            values.add(trial.origin.clone())?;
            values.add(judged_at.to_owned())
        },
    )
    .await
}

/// Returns the comparison of a trial. A time of this program without one is from an older worker;
/// recorded ones never have one.
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
