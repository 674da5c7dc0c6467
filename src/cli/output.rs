//! The only place that writes to standard output.

use clap::ValueEnum;
use std::io::{IsTerminal as _, Write as _};
use tuner_core::escape;

/// How a read command prints its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Aligned columns for people.
    Table,
    /// One JSON document.
    Json,
    /// Comma-separated values with a header row.
    Csv,
    /// A Markdown table.
    Md,
}

/// Writes a result to standard output, with a final newline and without what would command a
/// terminal. A closed pipe (`| head`) is no error.
///
/// # Errors
/// Any other failure to write, such as a full disk behind a redirection.
pub(crate) fn print(text: &str) -> std::io::Result<()> {
    print_bytes(escape::lines(text).as_bytes())?;
    if text.ends_with('\n') {
        Ok(())
    } else {
        print_bytes(b"\n")
    }
}

/// Writes to standard output exactly this. A closed pipe is no error.
///
/// # Errors
/// Any other failure to write.
pub(crate) fn print_bytes(bytes: &[u8]) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Whether standard error is a terminal: decides between a live progress bar and plain lines.
#[must_use]
pub(crate) fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// Rows under headings in the asked-for format. JSON is made by the caller from typed values,
/// because a table's cells are already text.
#[must_use]
pub(crate) fn rows(format: Format, headings: &[&str], rows: &[Vec<String>]) -> String {
    match format {
        Format::Csv => csv(headings, rows),
        Format::Md => markdown(headings, rows),
        Format::Table | Format::Json => table(headings, rows),
    }
}

fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_content_arrangement(comfy_table::ContentArrangement::Disabled);
    table.set_header(headings.iter().copied());
    for row in rows {
        table.add_row(row.iter().map(|cell| escape::line(cell)));
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
    // Writing to a Vec cannot fail, and every row has as many cells as there are headings.
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
