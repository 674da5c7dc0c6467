//! Rows on standard output, as they come.

use super::Row;
use crate::cli::output::{self, Format};
use std::collections::BTreeSet;
use std::io;
use tuner_core::escape;
use tuner_judge::timing::predict::Explanation;
use tuner_space::Space;

/// Columns after the parameters.
const HEADINGS: [&str; 22] = [
    "verdict",
    "time_us",
    "low_us",
    "high_us",
    "reliability",
    "bound",
    "occupancy",
    "waves",
    "registers",
    "spill_bytes",
    "shared_bytes",
    "warp_instructions",
    "global_load_bytes",
    "global_store_bytes",
    "global_load_sectors",
    "global_store_sectors",
    "shared_wavefronts",
    "bank_conflicts",
    "local_bytes",
    "fp32_flops",
    "tensor_flops",
    "detail",
];

/// Prints rows: those of CSV and JSON as they come, those of a table when their widths are known.
/// Rows whose time is not reliable come last, in their own order.
pub(super) struct Printer {
    format: Format,
    /// The parameters' names.
    names: Vec<String>,
    /// The model's counters, which are columns of CSV: those of the first row that has all of them.
    metrics: Option<Vec<String>>,
    /// Rows that wait for the columns, or for a table.
    waiting: Vec<Row>,
    /// Rows that come last.
    doubtful: Vec<Row>,
    printed: usize,
    /// The line of names is there.
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

    /// Takes the next row, and prints what may be printed.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub(super) fn add(&mut self, row: Row) -> io::Result<()> {
        if self.format == Format::Csv && self.metrics.is_none() {
            let names = row.explanation.as_ref().map(|e| e.metrics.keys());
            let names: Vec<String> = names.into_iter().flatten().cloned().collect();
            // A row without machine code has no more than its duration.
            self.metrics = (names.len() > 1).then_some(names);
        }
        if row.is_doubtful() {
            self.doubtful.push(row);
        } else {
            self.waiting.push(row);
        }
        match self.format {
            Format::Json => self.print(),
            Format::Csv if self.metrics.is_some() => self.print(),
            Format::Csv | Format::Table | Format::Md => Ok(()),
        }
    }

    /// Prints what is left.
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
        headings.extend(HEADINGS);
        if self.format == Format::Csv {
            // Too many for a table: they are for machines to read.
            headings.extend(self.metrics.iter().flatten().map(String::as_str));
        }
        headings
    }

    /// The next elements of the array, as the whole array would be written.
    fn json(&self, rows: &[Row]) -> io::Result<String> {
        let mut text = String::new();
        for (number, row) in rows.iter().enumerate() {
            let first = self.printed + number == 0;
            text.push_str(if first { "[" } else { "," });
            for line in serde_json::to_string_pretty(row)?.lines() {
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
            // It has no line breaks, for its names are words.
            true => text
                .split_once('\n')
                .map_or_else(String::new, |(_, rows)| rows.to_owned()),
        }
    }
}

fn cells(format: Format, row: &Row) -> Vec<String> {
    let optional = |value: Option<String>| value.unwrap_or_default();
    let count = |pick: fn(&Explanation) -> f64| {
        optional(row.explanation.as_ref().map(|e| format!("{:.0}", pick(e))))
    };
    let ratio = |pick: fn(&Explanation) -> f64| {
        optional(row.explanation.as_ref().map(|e| format!("{:.3}", pick(e))))
    };
    let detail = match format {
        Format::Csv | Format::Json => row.detail.clone(),
        Format::Table | Format::Md => row.detail.lines().next().unwrap_or_default().to_owned(),
    };
    let mut cells: Vec<String> = row
        .config
        .iter()
        .map(|(_, value)| value.to_string())
        .collect();
    cells.extend([
        row.verdict.to_string(),
        optional(row.time_us.map(|time| format!("{time:.3}"))),
        optional(
            row.explanation
                .as_ref()
                .map(|e| format!("{:.3}", e.interval_us[0])),
        ),
        optional(
            row.explanation
                .as_ref()
                .map(|e| format!("{:.3}", e.interval_us[1])),
        ),
        row.reliability.clone(),
        optional(row.explanation.as_ref().map(|e| e.bound.clone())),
        ratio(|e| e.occupancy),
        ratio(|e| e.waves),
        optional(row.registers.map(|value| value.to_string())),
        optional(row.spill_bytes.map(|value| value.to_string())),
        optional(row.shared_bytes.map(|value| value.to_string())),
        count(|e| e.warp_instructions),
        count(|e| e.global_load_bytes),
        count(|e| e.global_store_bytes),
        count(|e| e.global_load_sectors),
        count(|e| e.global_store_sectors),
        count(|e| e.shared_wavefronts),
        count(|e| e.bank_conflicts),
        count(|e| e.local_bytes),
        count(|e| e.fp32_flops),
        count(|e| e.tensor_flops),
        detail,
    ]);
    cells
}
