//! A result row, in the documented form.

use crate::cli::output::{self, Column, Format, or};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use tuner_core::judgement::Judgement;
use tuner_core::record::{Compared, ConfigValues, Verdict, assignments, config_as_object};
use tuner_report::low_parallelism::TimedProblem;

/// The judgement on a (configuration, problem) pair.
#[derive(Debug, Clone, Serialize)]
pub(super) struct CheckRow {
    pub(super) kernel: String,
    pub(super) problem: String,
    #[serde(with = "config_as_object")]
    pub(super) config: ConfigValues,
    #[serde(flatten, serialize_with = "what_was_found")]
    pub(super) judgement: Judgement,
    /// Target of the compiled code; null if it was not compiled.
    #[serde(skip)]
    pub(super) arch: Option<String>,
    pub(super) registers: Option<u32>,
    pub(super) spill_bytes: Option<u64>,
    pub(super) shared_bytes: Option<u64>,
    /// Largest error of the judgement.
    pub(super) max_error: Option<f64>,
    /// Kind of comparison at this size; null if the candidate did not pass.
    pub(super) compared: Option<Compared>,
    /// Tolerance with its reason; null without a comparison.
    pub(super) tolerance: Option<String>,
    pub(super) device: String,
    /// Hash of the SASS; null if there is none.
    pub(super) cubin_hash: Option<String>,
    /// Counters of the virtual GPU, if the pair ran.
    #[serde(flatten)]
    pub(super) seen: Option<RunFigures>,
    /// Warnings: legal but fragile.
    pub(super) warnings: Vec<String>,
    /// The space has no reference: results are not compared.
    #[serde(skip)]
    pub(super) hazards_only: bool,
    /// The parameters that differ from their defaults, for tables.
    #[serde(skip)]
    pub(super) changed: ConfigValues,
}

/// Serializes a judgement without its largest error, which is a later column.
fn what_was_found<S: Serializer>(judgement: &Judgement, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("verdict", &judgement.verdict)?;
    map.serialize_entry("hazards", &judgement.hazards)?;
    map.serialize_entry("detail", &judgement.detail)?;
    map.end()
}

/// Counters of a run on the virtual GPU. Work is summed over all blocks.
#[derive(Debug, Clone, Serialize)]
pub(super) struct RunFigures {
    /// Predicted time, µs.
    pub(super) predicted_us: f64,
    /// Blocks of the longest launch.
    pub(super) blocks: u64,
    /// Additional shared memory wavefronts due to bank conflicts.
    pub(super) bank_conflicts: f64,
    /// All shared memory wavefronts.
    pub(super) shared_wavefronts: f64,
    /// Predicted time, if the problem is tuned and not only checked.
    #[serde(skip)]
    pub(super) timed: Option<TimedProblem>,
}

impl CheckRow {
    /// Replaces the verdicts that a guessed launch of this entry may have caused.
    pub(super) fn without_hazards(&mut self, entry: &str) {
        let verdict = self.judgement.verdict;
        // The kernel was not launched, so that the guess does not affect these verdicts.
        if matches!(verdict, Verdict::Rejected | Verdict::CompileFailed) {
            return;
        }
        let found = match verdict {
            Verdict::Ok | Verdict::Unchecked => String::new(),
            _ => format!("; with the guess: {verdict}: {}", self.judgement.detail),
        };
        let detail = format!(
            "not judged: the launch of `{entry}` is guessed; write the grid and the block of your \
             program and remove `guessed: true`{found}"
        );
        self.judgement = Judgement::new(Verdict::Unchecked, detail);
        (self.max_error, self.compared, self.tolerance) = (None, None, None);
        // `unchecked` counts as passed for a space without a reference; here nothing was judged.
        self.hazards_only = false;
    }

    /// Reports whether all requested checks passed.
    pub(super) fn passed(&self) -> bool {
        self.judgement.verdict == Verdict::Ok
            || self.hazards_only && self.judgement.verdict == Verdict::Unchecked
    }
}

/// Columns with the same position in tables and files.
const COLUMNS: [Column<CheckRow>; 11] = [
    ("kernel", |row| row.kernel.clone()),
    ("problem", |row| row.problem.clone()),
    ("device", |row| row.device.clone()),
    ("verdict", |row| row.judgement.verdict.to_string()),
    ("registers", |row| or("", row.registers)),
    ("spill_bytes", |row| or("", row.spill_bytes)),
    ("shared_bytes", |row| or("", row.shared_bytes)),
    ("max_error", |row| or("", row.max_error.map(margin))),
    ("compared", |row| or("", row.compared)),
    ("blocks", |row| {
        or("", row.seen.as_ref().map(|seen| seen.blocks))
    }),
    ("bank_conflicts", |row| {
        or("", row.seen.as_ref().map(conflicts))
    }),
];

/// Formats the rows.
pub(super) fn format_rows(format: Format, rows: &[CheckRow]) -> Result<String, serde_json::Error> {
    if format == Format::Json {
        return output::json(rows);
    }
    let cells: Vec<Vec<String>> = match format {
        Format::Table => folded(rows),
        _ => rows.iter().map(|row| cells(format, row)).collect(),
    };
    let mut headings = COLUMNS.map(|(heading, _)| heading).to_vec();
    headings.extend(["config", "detail", "warnings"]);
    Ok(output::rows(format, &headings, &cells))
}

/// Builds a table's cells, with one row for all configurations that fail in the same way.
fn folded(rows: &[CheckRow]) -> Vec<Vec<String>> {
    let failure = |row: &CheckRow| {
        let failed = row.judgement.verdict != Verdict::Ok;
        let first = first_line(row).to_owned();
        failed.then(|| (row.problem.clone(), row.judgement.verdict, first))
    };
    let mut shown: Vec<(&CheckRow, usize)> = Vec::new();
    for row in rows {
        let same = shown.iter_mut().find(|(first, _)| {
            failure(row).is_some() && first.kernel == row.kernel && failure(first) == failure(row)
        });
        match same {
            Some((_, count)) => *count += 1,
            None => shown.push((row, 1)),
        }
    }
    let each = shown.into_iter().map(|(row, count)| {
        let mut cells = cells(Format::Table, row);
        if let Some(cell) = cells.get_mut(COLUMNS.len())
            && count > 1
        {
            cell.push_str(&format!(" and {} more", count - 1));
        }
        cells
    });
    each.collect()
}

fn cells(format: Format, row: &CheckRow) -> Vec<String> {
    // A table shows the changed parameters; a file all of them.
    let config = match format {
        Format::Csv | Format::Json => assignments(&row.config, ","),
        Format::Table | Format::Md if row.changed.is_empty() => "default".to_owned(),
        Format::Table | Format::Md => assignments(&row.changed, ","),
    };
    let detail = match format {
        Format::Csv | Format::Json => row.judgement.detail.clone(),
        Format::Table | Format::Md => first_line(row).to_owned(),
    };
    let mut cells: Vec<String> = COLUMNS.iter().map(|(_, cell)| cell(row)).collect();
    cells.extend([
        config,
        detail,
        // Below a table each warning is printed once.
        match format {
            Format::Table => String::new(),
            _ => row.warnings.join("; "),
        },
    ]);
    cells
}

fn first_line(row: &CheckRow) -> &str {
    row.judgement.detail.lines().next().unwrap_or_default()
}

/// Formats an error as a share of the tolerance; a very large one without digits.
fn margin(error: f64) -> String {
    if error < 1e6 {
        format!("{error:.3}")
    } else {
        format!("{error:.1e}")
    }
}

/// Formats `120 (3 %)`: additional wavefronts, and their share of all.
fn conflicts(seen: &RunFigures) -> String {
    let share = 100.0 * seen.bank_conflicts / seen.shared_wavefronts.max(1.0);
    format!("{:.0} ({share:.0} %)", seen.bank_conflicts)
}
