//! Results of `tuner verify` on the terminal.

use super::{Line, Outcome};
use crate::cli::output::{self, Column, Format, number, or};

const COLUMNS: [Column<Line>; 11] = [
    ("file", |line| line.file.clone()),
    ("problem", |line| line.problem.clone()),
    ("shipped for", |line| line.shipped_device.clone()),
    ("checked on", |line| line.device.clone()),
    ("outcome", |line| line.outcome.table_word().to_owned()),
    ("source", |line| line.source.to_owned()),
    ("code", |line| match &line.changes {
        None => "not compared".to_owned(),
        Some(changes) if changes.is_empty() => "same".to_owned(),
        Some(changes) => {
            let texts: Vec<String> = changes.iter().map(ToString::to_string).collect();
            texts.join(", ")
        }
    }),
    ("compared", |line| or("-", line.compared)),
    ("shipped us", |line| format!("{:.3}", line.shipped_us_p50)),
    ("ratio", |line| number("-", line.ratio, 4)),
    ("detail", |line| line.detail.clone()),
];

pub(super) fn text(format: Format, lines: &[Line]) -> Result<String, serde_json::Error> {
    output::values(format, &COLUMNS, lines)
}

/// Prints failures, skipped entries and changes to standard error.
pub(super) fn tell(lines: &[Line]) {
    for line in lines {
        let what = match line.outcome {
            Outcome::Regression => "regression",
            Outcome::Wrong => "wrong",
            Outcome::Skipped => "skipped",
            Outcome::Passed => continue,
        };
        say!("{what}: {} {}: {}", line.file, line.problem, line.detail);
    }
    for line in lines {
        for change in line.changes.iter().flatten() {
            say!("changed: {} {}: {change}", line.file, line.problem);
        }
    }
}
