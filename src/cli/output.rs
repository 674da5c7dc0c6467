//! Standard output: no other module writes to it.

use super::{CommandResult, fit, terminal};
use crate::exit;
use clap::ValueEnum;
use serde::Serialize;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use tuner_core::escape;

/// If true, tables show all columns even on a narrow terminal.
static WIDE: AtomicBool = AtomicBool::new(false);

/// Makes tables show all columns.
pub(crate) fn show_all_columns() {
    WIDE.store(true, Ordering::Relaxed);
}

/// Output format of a read command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Aligned columns.
    Table,
    /// One JSON document.
    Json,
    /// Comma-separated values with a header row.
    Csv,
    /// A Markdown table.
    Md,
}

/// Writes a result to standard output, with a final newline and without terminal control sequences.
/// A closed pipe (`| head`) is not an error.
///
/// # Errors
/// Any other failure to write, such as a full disk at a redirection's target.
pub(crate) fn print(text: &str) -> std::io::Result<()> {
    let mut text = escape::lines(text);
    if !text.ends_with('\n') {
        text.push('\n');
    }
    print_bytes(terminal::result(&text).as_bytes())
}

/// Prints a command's result and returns its exit code.
pub(crate) fn result(text: &str) -> CommandResult {
    print(text)?;
    Ok(exit::DONE)
}

/// Writes exactly these bytes to standard output. A closed pipe is not an error.
///
/// # Errors
/// Any other failure to write.
pub(crate) fn print_bytes(bytes: &[u8]) -> std::io::Result<()> {
    let written = terminal::aside(|| {
        let mut out = std::io::stdout().lock();
        out.write_all(bytes).and_then(|()| out.flush())
    });
    match written {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Formats rows under headings. The caller makes JSON from typed values, because a table's cells
/// are already text.
#[must_use]
pub(crate) fn rows(format: Format, headings: &[&str], rows: &[Vec<String>]) -> String {
    match format {
        Format::Csv => csv(headings, rows),
        Format::Md => markdown(headings, rows),
        Format::Table | Format::Json => table(headings, rows),
    }
}

/// A column of a table: its heading, and the cell of a value.
pub(crate) type Column<R> = (&'static str, fn(&R) -> String);

/// Formats a value as JSON without terminal control sequences.
///
/// # Errors
/// A value that JSON cannot represent.
pub(crate) fn json<T: Serialize + ?Sized>(value: &T) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(value).map(|document| escape::json(&document))
}

/// Formats values as JSON or in columns.
///
/// # Errors
/// A value that JSON cannot represent.
pub(crate) fn values<R: Serialize>(
    format: Format,
    columns: &[Column<R>],
    values: &[R],
) -> Result<String, serde_json::Error> {
    match format {
        Format::Json => json(values),
        _ => Ok(in_columns(format, columns, values)),
    }
}

/// Formats values in columns.
#[must_use]
pub(crate) fn in_columns<R>(format: Format, columns: &[Column<R>], values: &[R]) -> String {
    let headings: Vec<&str> = columns.iter().map(|(heading, _)| *heading).collect();
    let cells = |value: &R| columns.iter().map(|(_, cell)| cell(value)).collect();
    rows(
        format,
        &headings,
        &values.iter().map(cells).collect::<Vec<_>>(),
    )
}

/// Formats an optional value.
pub(crate) fn or(nothing: &str, value: Option<impl ToString>) -> String {
    value.map_or_else(|| nothing.to_owned(), |value| value.to_string())
}

/// Formats an optional number.
pub(crate) fn number(nothing: &str, value: Option<f64>, digits: usize) -> String {
    or(nothing, value.map(|value| format!("{value:.digits$}")))
}

fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    table_dropping(headings, rows, &fit::EXPENDABLE)
}

/// Formats a table that omits columns on a narrow terminal: first those in `expendable`, in order.
pub(crate) fn table_dropping(
    headings: &[&str],
    rows: &[Vec<String>],
    expendable: &[&str],
) -> String {
    let width = terminal::columns().filter(|_| !WIDE.load(Ordering::Relaxed));
    fitted(headings, rows, width, expendable)
}

/// Formats a table for a terminal, and for at most `most` columns elsewhere.
pub(crate) fn table_within(headings: &[&str], rows: &[Vec<String>], most: usize) -> String {
    let width = Some(terminal::columns().unwrap_or(most));
    fitted(headings, rows, width, &fit::EXPENDABLE)
}

fn fitted(
    headings: &[&str],
    rows: &[Vec<String>],
    width: Option<usize>,
    expendable: &[&str],
) -> String {
    // A line break in external text would look like another row.
    let line = |row: &Vec<String>| row.iter().map(|cell| escape::line(cell)).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(line).collect();
    let Some(width) = width else {
        return laid_out(headings, &rows);
    };
    let fitted = fit::fit(headings, &rows, width, expendable);
    let headings: Vec<&str> = fitted.headings.iter().map(String::as_str).collect();
    let mut text = laid_out(&headings, &fitted.rows);
    if !fitted.common.is_empty() {
        let common = fit::broken(&fitted.common, width.saturating_sub(2));
        text.insert_str(0, &format!(" {}\n\n", common.replace('\n', "\n ")));
    }
    match fitted.left_out {
        0 => {}
        1 => text.push_str(" 1 column is left out; --wide shows it\n"),
        more => text.push_str(&format!(
            " {more} columns are left out; --wide shows them\n"
        )),
    }
    text
}

fn laid_out(headings: &[&str], rows: &[Vec<String>]) -> String {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_content_arrangement(comfy_table::ContentArrangement::Disabled);
    table.set_header(headings.iter().copied());
    for row in rows {
        table.add_row(row);
    }
    let text = table.to_string();
    let mut trimmed: String = text
        .lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect();
    if trimmed.is_empty() {
        trimmed.push('\n');
    }
    trimmed
}

fn csv(headings: &[&str], rows: &[Vec<String>]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    // Writing to a Vec cannot fail, and every row has one cell for each heading.
    let _ = writer.write_record(headings.iter().map(|name| escape::csv(name)));
    for row in rows {
        let _ = writer.write_record(row.iter().map(|cell| escape::csv(cell)));
    }
    let bytes = writer.into_inner().unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn markdown(headings: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    // An underscore inside a word is plain text, and headings are words.
    let heading = |name: &&str| escape::markdown(name).replace("\\_", "_");
    let mut text = line(headings.iter().map(heading).collect());
    text.push_str(&line(headings.iter().map(|_| "---".to_owned()).collect()));
    for row in rows {
        text.push_str(&line(
            row.iter()
                .map(|cell| escape::markdown(cell).replace('|', "\\|"))
                .collect(),
        ));
    }
    text
}
