//! Import of results from another database. Rows are identified by their content, not by their ids, so a
//! repeated import changes nothing, and every row keeps its provenance.

use super::error::StoreError;
use super::open;
use sqlx::{Connection as _, SqliteConnection};
use std::path::Path;

/// Counts of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SyncCounts {
    /// New runs.
    pub runs: u64,
    /// New results.
    pub results: u64,
    /// Results that were already present.
    pub known: u64,
}

/// Tables with rows of a verdict, and their further columns.
const OF_VERDICTS: [(&str, &str); 6] = [
    ("hazards", "ordinal, body"),
    ("long_details", "body"),
    ("counters", "body"),
    (
        "measurements",
        "kind, p50_us, p90_us, ci_low_us, ci_high_us, protocol, reused, sample_count, samples_us",
    ),
    (
        "timing_evidence",
        "stage, gate, cache, launches, cycles, clock_mhz, reference, reference_us, ratios, ratio, \
         ratio_low, ratio_high, flags, other_cache, other_p50_us, other_p90_us, other_low_us, \
         other_high_us, other_samples, energy_mj, energy_low_mj, energy_high_mj, energies_mj",
    ),
    (
        "final_times",
        "p50_us, p90_us, ci_low_us, ci_high_us, protocol, sample_count, samples_us, timed_at",
    ),
];

/// Columns of independent tables.
const DEVICES: &str = "name, kind, arch, environment";
const PROVENANCE: &str = "git_commit, dirty, host, tuner_version, driver, nvrtc_version, diff_hash";
const KERNELS: &str = "name, version, template_hash, reference_hash";
const COMPILATIONS: &str = "cubin_hash, nvrtc_version, arch, registers, spill_bytes, stack_bytes, \
                            shared_bytes, compile_us, ptx_bytes, sass_bytes";
const PROFILES: &str = "source, tool, metrics, profiled_at";
const BASELINES: &str = "command, name, version, p50_us, p90_us, visits, reference, reference_us, \
                         failure, measured_at";

/// Imports the results of `from` that `into` lacks. Both are migrated to this program's schema first.
///
/// # Errors
/// One of them is not a database of this program, newer, damaged, or cannot be written. Then no result was
/// imported.
pub async fn pull(into: &Path, from: &Path) -> Result<SyncCounts, StoreError> {
    // Migrates it to the current schema if it is older.
    let mut other = open::readable(from, open::OlderSchema::Migrate).await?;
    let fail = |error: sqlx::Error| StoreError::from_sqlx(into, &error);
    let copies = tempfile::tempdir().map_err(|error| fail(sqlx::Error::Io(error)))?;
    let copy = copies.path().join("other.db");
    // ATTACH needs a path; the migrated copy of a read-only database has none.
    let source = if is_read_from(&mut other, from).await.map_err(fail)? {
        from
    } else {
        // It was read from a migrated copy whose name is removed, so it is written to a named file.
        sqlx::query("VACUUM INTO ?1")
            .bind(copy.to_string_lossy().into_owned())
            .execute(&mut other)
            .await
            .map_err(fail)?;
        &copy
    };
    other.close().await.map_err(fail)?;
    // Opened after the source, so that a bad source creates no database.
    let mut connection = open::writable(into).await?;
    let taken = take(&mut connection, source).await.map_err(fail);
    connection.close().await.map_err(fail)?;
    taken
}

/// Reports whether a connection reads this file itself.
async fn is_read_from(other: &mut SqliteConnection, file: &Path) -> Result<bool, sqlx::Error> {
    let question = "SELECT file FROM pragma_database_list WHERE name = 'main'";
    let opened: String = sqlx::query_scalar(question).fetch_one(other).await?;
    let same = |path: &Path| std::fs::canonicalize(path).ok();
    Ok(same(Path::new(&opened)).is_some_and(|opened| same(file) == Some(opened)))
}

async fn take(connection: &mut SqliteConnection, from: &Path) -> Result<SyncCounts, sqlx::Error> {
    sqlx::query("ATTACH ?1 AS other")
        .bind(from.to_string_lossy().into_owned())
        .execute(&mut *connection)
        .await?;
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let runs = count(&mut transaction, "runs").await?;
    let results = count(&mut transaction, "verdicts").await?;
    for statement in statements() {
        sqlx::query(sqlx::AssertSqlSafe(statement))
            .execute(&mut *transaction)
            .await?;
    }
    let all = count(&mut transaction, "verdict_map").await?;
    let new = count(&mut transaction, "verdicts").await? - results;
    let synced = SyncCounts {
        runs: count(&mut transaction, "runs").await? - runs,
        results: new,
        known: all.saturating_sub(new),
    };
    // Temporary tables are of the connection and would outlive the transaction.
    for map in ["provenance", "problem", "task", "candidate", "verdict"] {
        let drop = format!("DROP TABLE temp.{map}_map");
        sqlx::query(sqlx::AssertSqlSafe(drop))
            .execute(&mut *transaction)
            .await?;
    }
    transaction.commit().await?;
    Ok(synced)
}

async fn count(connection: &mut SqliteConnection, table: &str) -> Result<u64, sqlx::Error> {
    let question = format!("SELECT count(*) FROM {table}");
    let count: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(question))
        .fetch_one(connection)
        .await?;
    Ok(u64::try_from(count).unwrap_or(0))
}

/// Prefixes the columns with a table's name.
fn qualify(table: &str, columns: &str) -> String {
    let columns = columns
        .split(',')
        .map(|column| format!("{table}.{}", column.trim()));
    columns.collect::<Vec<_>>().join(", ")
}

const EVOLUTIONS: &str = "name, kernel, template_hash, device, timing, seed, mutator, settings, state, \
    started_at, ended_at";
const CHANGES: &str = "mutator, note, diff, source, space, tokens, cost, seconds, outcome, verdict, \
    detail, code, behaviour, made_at";
const CHANGE_TIMES: &str = "problem, us, incumbent_us, shipped_us, config";

/// Returns the statements for changes of kernels' code: an evolution is identified by its name, a change by
/// its round.
fn of_evolutions() -> Vec<String> {
    let changes = qualify("o", CHANGES);
    let times = qualify("o", CHANGE_TIMES);
    vec![
        format!(
            "INSERT OR IGNORE INTO evolutions ({EVOLUTIONS}) SELECT {EVOLUTIONS} FROM other.evolutions"
        ),
        "CREATE TEMP TABLE evolution_map AS SELECT o.id AS old, e.id AS new
         FROM other.evolutions o JOIN main.evolutions e ON e.name = o.name"
            .to_owned(),
        // Parents are set below, when all changes have their numbers.
        format!(
            "INSERT OR IGNORE INTO changes (evolution, round, parent, {CHANGES})
             SELECT m.new, o.round, NULL, {changes}
             FROM other.changes o JOIN evolution_map m ON m.old = o.evolution"
        ),
        "CREATE TEMP TABLE change_map AS SELECT o.id AS old, c.id AS new
         FROM other.changes o JOIN evolution_map m ON m.old = o.evolution
         JOIN main.changes c ON c.evolution = m.new AND c.round = o.round"
            .to_owned(),
        "UPDATE main.changes SET parent = (
             SELECT p.new FROM change_map m JOIN other.changes o ON o.id = m.old
             JOIN change_map p ON p.old = o.parent WHERE m.new = changes.id)
         WHERE parent IS NULL AND id IN (SELECT new FROM change_map)"
            .to_owned(),
        format!(
            "INSERT OR IGNORE INTO change_times (change, {CHANGE_TIMES}) SELECT m.new, {times}
             FROM other.change_times o JOIN change_map m ON m.old = o.change"
        ),
        "INSERT OR IGNORE INTO change_runs (run) SELECT run FROM other.change_runs".to_owned(),
    ]
}

/// Returns all statements, in order.
fn statements() -> Vec<String> {
    let same = |a: &str, b: &str, columns: &str| {
        let pairs = columns.split(',').map(str::trim);
        // IS, not =, because columns may be null.
        let pairs = pairs.map(|column| format!("{a}.{column} IS {b}.{column}"));
        pairs.collect::<Vec<_>>().join(" AND ")
    };
    let mut all = vec![
        "INSERT OR IGNORE INTO notes (run, text, changed_at)
         SELECT run, text, changed_at FROM other.notes"
            .to_owned(),
        format!("INSERT OR IGNORE INTO devices ({DEVICES}) SELECT {DEVICES} FROM other.devices"),
        format!(
            "INSERT INTO provenance ({PROVENANCE}) SELECT DISTINCT {PROVENANCE} FROM other.provenance o
             WHERE NOT EXISTS (SELECT 1 FROM main.provenance p WHERE {})",
            same("p", "o", PROVENANCE)
        ),
        format!(
            // Columns with nulls have no unique index, so equal rows may exist more than once.
            "CREATE TEMP TABLE provenance_map AS SELECT o.id AS old, min(p.id) AS new
             FROM other.provenance o JOIN main.provenance p ON {} GROUP BY o.id",
            same("p", "o", PROVENANCE)
        ),
        format!("INSERT OR IGNORE INTO kernels ({KERNELS}) SELECT {KERNELS} FROM other.kernels"),
        "INSERT OR IGNORE INTO problems (kernel, name, sizes)
         SELECT k.id, o.name, o.sizes FROM other.problems o
         JOIN other.kernels x ON x.id = o.kernel
         JOIN main.kernels k ON k.name = x.name AND k.version = x.version"
            .to_owned(),
        "CREATE TEMP TABLE problem_map AS SELECT o.id AS old, p.id AS new FROM other.problems o
         JOIN other.kernels x ON x.id = o.kernel
         JOIN main.kernels k ON k.name = x.name AND k.version = x.version
         JOIN main.problems p ON p.kernel = k.id AND p.name = o.name AND p.sizes = o.sizes"
            .to_owned(),
        "INSERT OR IGNORE INTO definitions (body) SELECT body FROM other.definitions".to_owned(),
    ];
    all.extend(of_runs());
    all.extend(of_candidates());
    for (table, columns) in OF_VERDICTS {
        all.push(format!(
            "INSERT OR IGNORE INTO {table} (verdict, {columns}) SELECT m.new, {}
             FROM other.{table} o JOIN verdict_map m ON m.old = o.verdict",
            qualify("o", columns)
        ));
    }
    all.push(format!(
        "INSERT INTO profiles (candidate, device, {PROFILES}) SELECT m.new, d.id, {}
         FROM other.profiles o JOIN candidate_map m ON m.old = o.candidate
         JOIN other.devices x ON x.id = o.device
         JOIN main.devices d ON d.name = x.name AND d.kind = x.kind WHERE true
         ON CONFLICT (candidate, device, source) DO UPDATE
         SET tool = excluded.tool, metrics = excluded.metrics, profiled_at = excluded.profiled_at
         WHERE excluded.profiled_at > profiles.profiled_at",
        qualify("o", PROFILES)
    ));
    all.push(format!(
        "INSERT INTO baselines (task, {BASELINES}) SELECT m.new, {}
         FROM other.baselines o JOIN task_map m ON m.old = o.task
         WHERE NOT EXISTS (SELECT 1 FROM main.baselines b WHERE b.task = m.new
                           AND b.command = o.command AND b.measured_at = o.measured_at)",
        qualify("o", BASELINES)
    ));
    all.extend(of_evolutions());
    all
}

/// Returns the statements for runs and their tasks. A run that is still running elsewhere is
/// imported as interrupted; one that has ended there since also ends here.
fn of_runs() -> [String; 3] {
    [
        // `WHERE true`: without it SQLite parses ON CONFLICT as the ON of a join ("UPSERT", "Parsing
        // Ambiguity").
        "INSERT INTO runs (name, device, selector, recording_path, recording_hash, seed, strategy,
                           settings, state, owner, started_at, ended_at)
         SELECT o.name, d.id, o.selector, o.recording_path, o.recording_hash, o.seed, o.strategy,
                o.settings, iif(o.state = 'running', 'interrupted', o.state), NULL, o.started_at,
                o.ended_at
         FROM other.runs o JOIN other.devices x ON x.id = o.device
         JOIN main.devices d ON d.name = x.name AND d.kind = x.kind WHERE true
         ON CONFLICT (name) DO UPDATE SET state = excluded.state, ended_at = excluded.ended_at
         WHERE excluded.state = 'finished' AND runs.state IN ('interrupted', 'failed')"
            .to_owned(),
        "INSERT OR IGNORE INTO tasks (run, problem, definition, default_config, space_path)
         SELECT r.id, m.new, d.id, o.default_config, o.space_path
         FROM other.tasks o JOIN other.runs x ON x.id = o.run JOIN main.runs r ON r.name = x.name
         JOIN problem_map m ON m.old = o.problem
         JOIN other.definitions y ON y.id = o.definition JOIN main.definitions d ON d.body = y.body"
            .to_owned(),
        "CREATE TEMP TABLE task_map AS SELECT o.id AS old, t.id AS new
         FROM other.tasks o JOIN other.runs x ON x.id = o.run JOIN main.runs r ON r.name = x.name
         JOIN problem_map m ON m.old = o.problem
         JOIN main.tasks t ON t.run = r.id AND t.problem = m.new"
            .to_owned(),
    ]
}

/// Returns the statements for candidates and their verdicts. An announcement without a result is
/// not imported. A proof elsewhere changes the verdict here.
fn of_candidates() -> [String; 5] {
    [
        "INSERT OR IGNORE INTO candidates (problem, hash, config)
         SELECT m.new, o.hash, o.config FROM other.candidates o
         JOIN problem_map m ON m.old = o.problem"
            .to_owned(),
        "CREATE TEMP TABLE candidate_map AS SELECT o.id AS old, c.id AS new
         FROM other.candidates o JOIN problem_map m ON m.old = o.problem
         JOIN main.candidates c ON c.problem = m.new AND c.hash = o.hash"
            .to_owned(),
        format!(
            "INSERT OR IGNORE INTO compilations (candidate, {COMPILATIONS}) SELECT m.new, {}
             FROM other.compilations o JOIN candidate_map m ON m.old = o.candidate",
            qualify("o", COMPILATIONS)
        ),
        // In the order of ids, which decides between verdicts of the same time.
        "INSERT OR IGNORE INTO verdicts (task, candidate, provenance, sequence, verdict, detail,
                                         max_error, compared, charged_us, origin, judged_at)
         SELECT t.new, c.new, p.new, o.sequence, o.verdict, o.detail, o.max_error, o.compared,
                o.charged_us, o.origin, o.judged_at
         FROM other.verdicts o JOIN task_map t ON t.old = o.task
         JOIN candidate_map c ON c.old = o.candidate JOIN provenance_map p ON p.old = o.provenance
         WHERE o.sequence IS NOT NULL ORDER BY o.id
         ON CONFLICT (task, candidate) DO UPDATE
         SET verdict = excluded.verdict, detail = excluded.detail, compared = excluded.compared,
             max_error = excluded.max_error, judged_at = excluded.judged_at
         WHERE verdicts.verdict = 'ok' AND excluded.compared IS NOT verdicts.compared
           AND (excluded.compared = 'whole' OR excluded.judged_at > verdicts.judged_at)"
            .to_owned(),
        "CREATE TEMP TABLE verdict_map AS SELECT o.id AS old, v.id AS new
         FROM other.verdicts o JOIN task_map t ON t.old = o.task
         JOIN candidate_map c ON c.old = o.candidate
         JOIN main.verdicts v ON v.task = t.new AND v.candidate = c.new
         WHERE o.sequence IS NOT NULL AND v.verdict = o.verdict AND v.judged_at = o.judged_at"
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests;
