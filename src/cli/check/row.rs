//! One line of the answer, in the contract's form.

use crate::cli::output::{self, Column, Format, or};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use tuner_core::judgement::Judgement;
use tuner_core::record::{Compared, ConfigValues, Verdict, assignments, config_as_object};
use tuner_report::low_parallelism::TimedProblem;

/// The judgement on one (configuration, problem).
#[derive(Debug, Clone, Serialize)]
pub(super) struct CheckRow {
    pub(super) kernel: String,
    pub(super) problem: String,
    #[serde(with = "config_as_object")]
    pub(super) config: ConfigValues,
    #[serde(flatten, serialize_with = "what_was_found")]
    pub(super) judgement: Judgement,
    pub(super) registers: Option<u32>,
    pub(super) spill_bytes: Option<u64>,
    pub(super) shared_bytes: Option<u64>,
    /// The judgement's, which stands here in the answer.
    pub(super) max_error: Option<f64>,
    /// How results were compared at this size; null where the candidate did not pass.
    pub(super) compared: Option<Compared>,
    /// How far results may be from the reference, and why; null where nothing was compared.
    pub(super) tolerance: Option<String>,
    pub(super) device: String,
    /// Hash of the machine code; null where there is none.
    pub(super) cubin_hash: Option<String>,
    /// What the virtual GPU counted, where the pair ran.
    #[serde(flatten)]
    pub(super) seen: Option<Seen>,
    /// What is right and yet should not stay so, with the reason.
    pub(super) warnings: Vec<String>,
    /// The space has no reference: nothing is compared.
    #[serde(skip)]
    pub(super) hazards_only: bool,
    /// The parameters that differ from their defaults, for people.
    #[serde(skip)]
    pub(super) changed: ConfigValues,
}

/// A judgement but for its largest error, which stands further down in the answer.
fn what_was_found<S: Serializer>(judgement: &Judgement, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("verdict", &judgement.verdict)?;
    map.serialize_entry("hazards", &judgement.hazards)?;
    map.serialize_entry("detail", &judgement.detail)?;
    map.end()
}

/// What a run on the virtual GPU shows beside its verdict. Work is that of all blocks.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Seen {
    /// Predicted time, µs.
    pub(super) predicted_us: f64,
    /// Blocks of the longest launch.
    pub(super) blocks: u64,
    /// Wavefronts of shared memory that bank conflicts cost.
    pub(super) bank_conflicts: f64,
    /// All wavefronts of shared memory.
    pub(super) shared_wavefronts: f64,
    /// Its time, where the problem is one that is tuned and not one that is only checked.
    #[serde(skip)]
    pub(super) timed: Option<TimedProblem>,
}

impl CheckRow {
    /// All that was asked for is well.
    pub(super) fn passed(&self) -> bool {
        self.judgement.verdict == Verdict::Ok
            || self.hazards_only && self.judgement.verdict == Verdict::Unchecked
    }
}

/// The columns before those that a table shows in another way than a file.
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

/// The rows in the asked-for format.
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

/// The cells of a table, with one row for all configurations that fail in the same way.
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
    // A table shows what is special about a configuration; a file keeps all of it.
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
        // Below a table each warning is told once.
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

/// An error as a part of what is allowed; one far beyond is no figure to be exact about.
fn margin(error: f64) -> String {
    if error < 1e6 {
        format!("{error:.3}")
    } else {
        format!("{error:.1e}")
    }
}

/// `120 (3 %)`: wavefronts that conflicts cost, and their share of all.
fn conflicts(seen: &Seen) -> String {
    let share = 100.0 * seen.bank_conflicts / seen.shared_wavefronts.max(1.0);
    format!("{:.0} ({share:.0} %)", seen.bank_conflicts)
}
