//! Incremental output of rows.

use super::Row;
use crate::cli::output::{self, Column, Format, number, or};
use std::collections::BTreeSet;
use std::io;
use tuner_core::escape;
use tuner_judge::explanation::Explanation;
use tuner_space::Space;

/// Columns after the parameters, except the last, which is the detail.
const COLUMNS: [Column<Row>; 21] = [
    ("verdict", |row| row.verdict.to_string()),
    ("time_us", |row| number("", row.time_us, 3)),
    ("low_us", |row| figure(row, 3, |e| e.interval_us[0])),
    ("high_us", |row| figure(row, 3, |e| e.interval_us[1])),
    ("reliability", |row| row.reliability.clone()),
    ("bound", |row| {
        or("", row.explanation.as_ref().map(|e| &e.bound))
    }),
    ("occupancy", |row| figure(row, 3, |e| e.occupancy)),
    ("waves", |row| figure(row, 3, |e| e.waves)),
    ("registers", |row| or("", row.registers)),
    ("spill_bytes", |row| or("", row.spill_bytes)),
    ("shared_bytes", |row| or("", row.shared_bytes)),
    ("warp_instructions", |row| {
        figure(row, 0, |e| e.warp_instructions)
    }),
    ("global_load_bytes", |row| {
        figure(row, 0, |e| e.global_load_bytes)
    }),
    ("global_store_bytes", |row| {
        figure(row, 0, |e| e.global_store_bytes)
    }),
    ("global_load_sectors", |row| {
        figure(row, 0, |e| e.global_load_sectors)
    }),
    ("global_store_sectors", |row| {
        figure(row, 0, |e| e.global_store_sectors)
    }),
    ("shared_wavefronts", |row| {
        figure(row, 0, |e| e.shared_wavefronts)
    }),
    ("bank_conflicts", |row| figure(row, 0, |e| e.bank_conflicts)),
    ("local_bytes", |row| figure(row, 0, |e| e.local_bytes)),
    ("fp32_flops", |row| figure(row, 0, |e| e.fp32_flops)),
    ("tensor_flops", |row| figure(row, 0, |e| e.tensor_flops)),
];

fn figure(row: &Row, digits: usize, pick: fn(&Explanation) -> f64) -> String {
    number("", row.explanation.as_ref().map(pick), digits)
}

/// Row printer: CSV and JSON rows are printed immediately, table rows when the widths are known. Rows with
/// an unreliable time are last, in their order.
pub(super) struct Printer {
    format: Format,
    /// The parameters' names.
    names: Vec<String>,
    /// Counters of the model, which are CSV columns: those of the first complete row.
    metrics: Option<Vec<String>>,
    /// Rows that wait for the columns or for a table.
    waiting: Vec<Row>,
    /// Unreliable rows, printed last.
    doubtful: Vec<Row>,
    printed: usize,
    /// The header line was printed.
    named: bool,
}

impl Printer {
    pub(super) fn new(format: Format, space: &Space) -> Self {
        let names = space.parameters().iter().map(|p| p.name.clone());
        Self {
            format,
            names: names.collect(),
            metrics: None,
            waiting: Vec::new(),
            doubtful: Vec::new(),
            printed: 0,
            named: false,
        }
    }

    /// Adds the next row and prints complete ones.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub(super) fn add(&mut self, row: Row) -> io::Result<()> {
        if self.format == Format::Csv && self.metrics.is_none() {
            let names = row.explanation.as_ref().map(|e| e.metrics.keys());
            let names: Vec<String> = names.into_iter().flatten().cloned().collect();
            // A row without SASS has only its duration.
            self.metrics = (names.len() > 1).then_some(names);
        }
        if row.is_doubtful() {
            self.doubtful.push(row);
        } else {
            self.waiting.push(row);
        }
        match self.format {
            Format::Json => self.print(),
            // The header line is printed first and has to name the counters.
            Format::Csv if self.metrics.is_some() => self.print(),
            Format::Csv | Format::Table | Format::Md => Ok(()),
        }
    }

    /// Prints the remaining rows.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub(super) fn end(mut self) -> io::Result<()> {
        let last = std::mem::take(&mut self.doubtful);
        if self.metrics.is_none() {
            let all = self.waiting.iter().chain(&last);
            let all = all.filter_map(|row| row.explanation.as_ref());
            let names: BTreeSet<&String> = all.flat_map(|e| e.metrics.keys()).collect();
            self.metrics = Some(names.into_iter().cloned().collect());
        }
        self.waiting.extend(last);
        self.print()?;
        if self.format == Format::Json {
            let end = if self.printed == 0 { "[]\n" } else { "\n]\n" };
            output::print_bytes(end.as_bytes())?;
        }
        Ok(())
    }

    fn print(&mut self) -> io::Result<()> {
        let rows = std::mem::take(&mut self.waiting);
        let text = match self.format {
            Format::Json => self.json(&rows)?,
            Format::Csv => self.csv(&rows),
            Format::Table | Format::Md => {
                let cells: Vec<Vec<String>> =
                    rows.iter().map(|row| cells(self.format, row)).collect();
                output::rows(self.format, &self.headings(), &cells)
            }
        };
        self.printed += rows.len();
        self.named = true;
        output::print_bytes(escape::lines(&text).as_bytes())
    }

    fn headings(&self) -> Vec<&str> {
        let mut headings: Vec<&str> = self.names.iter().map(String::as_str).collect();
        headings.extend(COLUMNS.iter().map(|(heading, _)| *heading));
        headings.push("detail");
        if self.format == Format::Csv {
            // Too many for a table: only for machine-readable formats.
            headings.extend(self.metrics.iter().flatten().map(String::as_str));
        }
        headings
    }

    /// Formats the next array elements as parts of the whole array.
    fn json(&self, rows: &[Row]) -> io::Result<String> {
        let mut text = String::new();
        for (number, row) in rows.iter().enumerate() {
            let first = self.printed + number == 0;
            text.push_str(if first { "[" } else { "," });
            for line in output::json(row)?.lines() {
                text.push_str("\n  ");
                text.push_str(line);
            }
        }
        Ok(text)
    }

    fn csv(&self, rows: &[Row]) -> String {
        let metrics = self.metrics.as_deref().unwrap_or_default();
        let all =
            rows.iter().map(|row| {
                let mut cells = cells(self.format, row);
                let value = |name| row.explanation.as_ref()?.metrics.get(name);
                cells.extend(metrics.iter().map(|name| {
                    value(name).map_or_else(String::new, |value| format!("{value:.6}"))
                }));
                cells
            });
        let text = output::rows(self.format, &self.headings(), &all.collect::<Vec<_>>());
        match self.named {
            false => text,
            // It has no line breaks, because its names are words.
            true => text
                .split_once('\n')
                .map_or_else(String::new, |(_, rows)| rows.to_owned()),
        }
    }
}

fn cells(format: Format, row: &Row) -> Vec<String> {
    let values = row.config.iter().map(|(_, value)| value.to_string());
    let figures = COLUMNS.iter().map(|(_, cell)| cell(row));
    let mut cells: Vec<String> = values.chain(figures).collect();
    cells.push(match format {
        Format::Csv | Format::Json => row.detail.clone(),
        Format::Table | Format::Md => row.detail.lines().next().unwrap_or_default().to_owned(),
    });
    cells
}
