//! `tuner run --plan`: the tasks of a run with estimated times.

use super::CliError;
use super::output;
use super::results::block_on;
use super::terminal::LINE_WIDTH;
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
    ("weight", |row| weight(row.weight)),
    ("known", |row| row.known.to_string()),
    ("a trial", |row| estimate(row.trial)),
    ("first trials", |row| estimate(row.first_trials)),
];

/// Times below this are shown in milliseconds.
const SHORT: Duration = Duration::from_millis(100);

fn estimate(time: Option<Duration>) -> String {
    output::or("unknown", time.map(short))
}

fn short(time: Duration) -> String {
    match time.as_millis() {
        0 => "<1ms".to_owned(),
        millis if time < SHORT => format!("{millis}ms"),
        _ => format_duration(time),
    }
}

/// Formats a weight in a few characters.
fn weight(weight: f64) -> String {
    let text = weight.to_string();
    match text.len() {
        ..=8 => text,
        _ => format!("{weight:.3e}"),
    }
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
    let cells = |row: &PlannedRow| COLUMNS.iter().map(|(_, cell)| cell(row)).collect();
    let cells: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let headings = COLUMNS.map(|(heading, _)| heading);
    let mut text = output::table_within(&headings, &cells, LINE_WIDTH);
    let known: Vec<Duration> = rows.iter().filter_map(|row| row.first_trials).collect();
    let device = &prepared.facts().name;
    let tasks = counted(rows.len(), "task");
    if known.len() < rows.len() {
        text.push_str(&format!(
            "{tasks} on {device}; no run noted the time of a trial of {}\n",
            rows.len() - known.len()
        ));
    } else {
        text.push_str(&format!("{tasks} on {device}\n"));
    }
    if !known.is_empty() {
        text.push_str(&format!(
            "first trials of {}, where a time is known: {}; then by expected gain per {}\n",
            counted(known.len(), "task"),
            short(known.iter().sum()),
            prepared.cost_unit()
        ));
    }
    if let Some(budget) = prepared.plan().limits.budget {
        let share = budget / u32::try_from(rows.len().max(1)).unwrap_or(u32::MAX);
        text.push_str(&format!(
            "budget {}: {} per task; a task whose trial takes longer is postponed\n",
            format_duration(budget),
            short(share)
        ));
    }
    Ok(text)
}
