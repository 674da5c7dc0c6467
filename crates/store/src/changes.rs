//! Changes of a kernel's code: one row for each request to a mutator.

use super::Store;
use super::error::{StoreError, WithPath as _, broken};
use super::rows::{Config, config_text};
use super::run::RunId;
use super::tasks::now;
use sqlx::types::{Json, Text};
use sqlx::{Connection as _, Sqlite, SqliteConnection, Transaction};
use tuner_core::record::{ConfigValues, TimingKind};
use tuner_core::units::Seed;

/// Identity and settings of an evolution.
#[derive(Debug, Clone, PartialEq)]
pub struct EvolutionStart {
    /// Name of the kernel.
    pub kernel: String,
    /// Hash of the shipped template.
    pub template_hash: String,
    /// Name of the device.
    pub device: String,
    /// Kind of its times.
    pub timing: TimingKind,
    /// Seed.
    pub seed: Seed,
    /// Mutator.
    pub mutator: String,
    /// Other settings.
    pub settings: serde_json::Value,
}

/// Time of a change on a problem.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct ChangeTime {
    /// Name of the problem.
    pub problem: String,
    /// Best time, microseconds.
    pub us: f64,
    /// Best time of the nearest accepted ancestor, or of the shipped template.
    pub incumbent_us: f64,
    /// Best time of the shipped template.
    pub shipped_us: f64,
    /// Configuration of the best time.
    #[sqlx(try_from = "Config")]
    pub config: ConfigValues,
}

/// Change with all known data.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct Change {
    /// Number of the change; 0 before it is stored.
    pub id: i64,
    /// Round of the evolution, from 1.
    pub round: u32,
    /// Parent; `None`: the shipped template.
    pub parent: Option<i64>,
    /// Mutator.
    pub mutator: String,
    /// Its note.
    pub note: String,
    /// Unified diff against the parent; empty without a new source.
    pub diff: String,
    /// Source, if the answer could be applied.
    pub source: Option<String>,
    /// Search space as JSON, if the answer could be applied.
    pub space: Option<String>,
    /// Tokens of the answer.
    pub tokens: u32,
    /// Price of the answer.
    pub cost: f64,
    /// Seconds that the mutator took.
    pub seconds: f64,
    /// Outcome, by its name.
    pub outcome: String,
    /// Verdict of the gate, by its name.
    pub verdict: Option<String>,
    /// Finding in one line.
    pub detail: String,
    /// Hash of its machine code; empty if it was not compiled.
    pub code: String,
    /// Figures by which novelty is judged.
    #[sqlx(json)]
    pub behaviour: Vec<f64>,
    /// Times by problem.
    #[sqlx(skip)]
    pub times: Vec<ChangeTime>,
}

/// Evolution with its changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Lineage {
    /// Name.
    pub name: String,
    /// Identity and settings.
    pub start: EvolutionStart,
    /// `running`, `interrupted` or `finished`.
    pub state: String,
    /// Changes, in the order of their rounds.
    pub changes: Vec<Change>,
}

#[derive(sqlx::FromRow)]
struct EvolutionRow {
    id: i64,
    name: String,
    kernel: String,
    template_hash: String,
    device: String,
    timing: Text<TimingKind>,
    seed: String,
    mutator: String,
    settings: Json<serde_json::Value>,
    state: String,
}

impl Store {
    /// Stores a new evolution, and returns its name.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn begin_evolution(&self, start: EvolutionStart) -> Result<String, StoreError> {
        let name = RunId::new().to_string();
        let stored = name.clone();
        self.write(move |connection| Box::pin(begin(connection, stored, start)))
            .await?;
        Ok(name)
    }

    /// Sets the state of an evolution: `running`, `interrupted` or `finished`.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn set_evolution_state(
        &self,
        name: &str,
        state: &'static str,
    ) -> Result<(), StoreError> {
        let name = name.to_owned();
        self.write(move |connection| {
            Box::pin(async move {
                let ended = (state != "running").then(now);
                sqlx::query("UPDATE evolutions SET state = ?, ended_at = ? WHERE name = ?")
                    .bind(state)
                    .bind(ended)
                    .bind(name)
                    .execute(connection)
                    .await
                    .map(drop)
            })
        })
        .await
    }

    /// Stores a change with its times in one transaction, and returns its number. It may then be announced.
    ///
    /// # Errors
    /// The database cannot be written, or the round is stored already.
    pub async fn add_change(&self, evolution: &str, change: Change) -> Result<i64, StoreError> {
        let evolution = evolution.to_owned();
        self.write(move |connection| Box::pin(add(connection, evolution, change)))
            .await
    }

    /// Excludes a run from the leaderboard: it tunes a change that is not in the project. Call it
    /// before the run begins.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn mark_change_run(&self, run: &RunId) -> Result<(), StoreError> {
        let run = run.to_string();
        self.write(move |connection| {
            Box::pin(async move {
                sqlx::query("INSERT OR IGNORE INTO change_runs (run) VALUES (?)")
                    .bind(run)
                    .execute(connection)
                    .await
                    .map(drop)
            })
        })
        .await
    }

    /// Returns the evolutions of a kernel on a device, oldest first; `None` selects all.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn lineages(
        &self,
        kernel: Option<&str>,
        device: Option<&str>,
    ) -> Result<Vec<Lineage>, StoreError> {
        let connection = &mut *self.reader().await?;
        lineages(connection, kernel, device)
            .await
            .with_path(&self.path)
    }

    /// Returns the latest evolution of the same kernel, template, device, mutator and seed that did not
    /// finish.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn unfinished_evolution(
        &self,
        start: &EvolutionStart,
    ) -> Result<Option<Lineage>, StoreError> {
        let all = self
            .lineages(Some(&start.kernel), Some(&start.device))
            .await?;
        Ok(all.into_iter().rev().find(|one| {
            let same = (&one.start.template_hash, &one.start.mutator, one.start.seed);
            one.state != "finished" && same == (&start.template_hash, &start.mutator, start.seed)
        }))
    }
}

async fn begin(
    connection: &mut SqliteConnection,
    name: String,
    start: EvolutionStart,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO evolutions (name, kernel, template_hash, device, timing, seed, mutator, settings,
         state, started_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'running', ?)",
    )
    .bind(name)
    .bind(start.kernel)
    .bind(start.template_hash)
    .bind(start.device)
    .bind(Text(start.timing))
    // As text: integers of SQLite are signed, and a seed may use all 64 bits.
    .bind(start.seed.0.to_string())
    .bind(start.mutator)
    .bind(Json(start.settings))
    .bind(now())
    .execute(connection)
    .await
    .map(drop)
}

async fn add(
    connection: &mut SqliteConnection,
    evolution: String,
    change: Change,
) -> Result<i64, sqlx::Error> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let id: i64 = sqlx::query_scalar(
        "INSERT INTO changes (evolution, round, parent, mutator, note, diff, source, space, tokens, cost,
         seconds, outcome, verdict, detail, code, behaviour, made_at)
         SELECT id, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17
         FROM evolutions WHERE name = ?1 RETURNING id",
    )
    .bind(&evolution)
    .bind(change.round)
    .bind(change.parent)
    .bind(change.mutator)
    .bind(change.note)
    .bind(change.diff)
    .bind(change.source)
    .bind(change.space)
    .bind(change.tokens)
    .bind(change.cost)
    .bind(change.seconds)
    .bind(change.outcome)
    .bind(change.verdict)
    .bind(change.detail)
    .bind(change.code)
    .bind(Json(change.behaviour))
    .bind(now())
    .fetch_optional(&mut *transaction)
    .await?
    // The statement selects from `evolutions`, so without that evolution it inserts no row.
    .ok_or_else(|| broken(format!("there is no evolution {evolution}")))?;
    for time in change.times {
        add_time(&mut transaction, id, time).await?;
    }
    transaction.commit().await?;
    Ok(id)
}

async fn add_time(
    transaction: &mut Transaction<'_, Sqlite>,
    change: i64,
    time: ChangeTime,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO change_times (change, problem, us, incumbent_us, shipped_us, config)
         VALUES (?, ?, ?, ?, ?, ?)",
    )
    .bind(change)
    .bind(time.problem)
    .bind(time.us)
    .bind(time.incumbent_us)
    .bind(time.shipped_us)
    .bind(config_text(&time.config))
    .execute(&mut **transaction)
    .await
    .map(drop)
}

async fn lineages(
    connection: &mut SqliteConnection,
    kernel: Option<&str>,
    device: Option<&str>,
) -> Result<Vec<Lineage>, sqlx::Error> {
    let rows: Vec<EvolutionRow> = sqlx::query_as(
        "SELECT * FROM evolutions WHERE (?1 IS NULL OR kernel = ?1)
         AND (?2 IS NULL OR device = ?2 COLLATE NOCASE) ORDER BY id",
    )
    .bind(kernel)
    .bind(device)
    .fetch_all(&mut *connection)
    .await?;
    let mut all = Vec::with_capacity(rows.len());
    for row in rows {
        let mut changes: Vec<Change> =
            sqlx::query_as("SELECT * FROM changes WHERE evolution = ? ORDER BY round")
                .bind(row.id)
                .fetch_all(&mut *connection)
                .await?;
        for change in &mut changes {
            change.times =
                sqlx::query_as("SELECT * FROM change_times WHERE change = ? ORDER BY problem")
                    .bind(change.id)
                    .fetch_all(&mut *connection)
                    .await?;
        }
        let seed = row.seed.parse();
        all.push(Lineage {
            name: row.name,
            start: EvolutionStart {
                kernel: row.kernel,
                template_hash: row.template_hash,
                device: row.device,
                timing: row.timing.0,
                seed: Seed(seed.map_err(|_| broken("a seed is not a number"))?),
                mutator: row.mutator,
                settings: row.settings.0,
            },
            state: row.state,
            changes,
        });
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
