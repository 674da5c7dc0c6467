//! `tuner run --plan`: the tasks of a run with estimated times.

use super::CliError;
use super::output::{self, Format};
use super::results::block_on;
use std::path::Path;
use std::time::Duration;
use tuner_core::units::counted;
use tuner_engine::format_duration;
use tuner_engine::job::{PlannedRow, Prepared, Request};
use tuner_store::Store;

const COLUMNS: [output::Column<PlannedRow>; 7] = [
    ("kernel", |row| row.kernel.clone()),
    ("problem", |row| row.problem.clone()),
    ("valid", |row| row.valid.clone()),
    ("weight", |row| row.weight.to_string()),
    ("known", |row| row.known.to_string()),
    ("a trial", |row| estimate(row.trial)),
    ("first trials", |row| estimate(row.first_trials)),
];

fn estimate(time: Option<Duration>) -> String {
    output::or("unknown", time.map(format_duration))
}

/// Describes what the run would do; neither compiles a candidate nor writes the database.
pub(super) fn describe(request: &Request, folder: &Path, db: &Path) -> Result<String, CliError> {
    let mut prepared = Prepared::new(request, folder)?;
    let rows = block_on(async {
        // A first run has no database to read yet.
        let store = match db.is_file() {
            true => Some(Store::open_read(db).await?),
            false => None,
        };
        let rows = prepared.planned(store.as_ref()).await?;
        if let Some(store) = store {
            store.close().await?;
        }
        Ok::<_, CliError>(rows)
    })?;
    let mut text = output::in_columns(Format::Table, &COLUMNS, &rows);
    let known: Vec<Duration> = rows.iter().filter_map(|row| row.first_trials).collect();
    let device = &prepared.facts().name;
    text.push_str(&format!(
        "{} on {device}; {} of them without a trial in this database\n",
        counted(rows.len(), "task"),
        rows.len() - known.len()
    ));
    let first: Duration = known.iter().sum();
    if !known.is_empty() {
        text.push_str(&format!(
            "first trials of the others: {}; then by expected gain per second\n",
            format_duration(first)
        ));
    }
    if let Some(budget) = prepared.plan().limits.budget {
        let share = budget / u32::try_from(rows.len().max(1)).unwrap_or(u32::MAX);
        text.push_str(&format!(
            "budget {}: {} per task; a task whose trial takes longer is postponed\n",
            format_duration(budget),
            format_duration(share)
        ));
    }
    Ok(text)
}
