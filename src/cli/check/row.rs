//! A result row, in the documented form.

use crate::cli::output::{self, Column, Format, or};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use tuner_core::judgement::Judgement;
use tuner_core::record::{Compared, ConfigValues, Verdict, assignments, config_as_object};
use tuner_core::units::counted;
use tuner_report::low_parallelism::TimedProblem;
use tuner_space::Argument;

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
    /// Predicted time and work.
    #[serde(skip)]
    pub(super) time: TimedProblem,
    /// The problem is tuned and not only checked.
    #[serde(skip)]
    pub(super) tuned: bool,
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
        self.retract(detail);
    }

    /// Replaces a hazard that guessed contents, values or extents of these arguments may have caused.
    pub(super) fn without_hazards_of_guesses(&mut self, arguments: &[Argument]) {
        let verdict = self.judgement.verdict;
        if !is_of_data(verdict) {
            return;
        }
        let found = &self.judgement.detail;
        let is_cause = |argument: &&Argument| {
            let is_beyond = verdict == Verdict::OutOfBounds
                && argument.guessed_extent
                && found.contains(&format!("`{}`", argument.name));
            argument.guessed || is_beyond
        };
        let guesses = arguments.iter().filter(is_cause);
        let guesses: Vec<String> = guesses.map(|it| format!("`{}`", it.name)).collect();
        if guesses.is_empty() {
            return;
        }
        let detail = format!(
            "not judged: with what is guessed of {}: {verdict}: {found}; write the contents, values and \
             shapes of your program and remove `guessed: true` and `guessed_extent: true`",
            guesses.join(", ")
        );
        self.retract(detail);
    }

    /// Replaces the verdict, as nothing was judged.
    fn retract(&mut self, detail: String) {
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

/// Reports whether contents and values of arguments may be the cause of a verdict: by addresses and loops.
fn is_of_data(verdict: Verdict) -> bool {
    matches!(
        verdict,
        Verdict::LaunchFailed
            | Verdict::OutOfBounds
            | Verdict::Misaligned
            | Verdict::Deadlock
            | Verdict::Race
            | Verdict::Timeout
            | Verdict::Crashed
            | Verdict::OutOfMemory
            | Verdict::Nondeterministic
    )
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

/// Formats the rows; a table has one for all configurations that pass on a problem, unless
/// `verbose`.
pub(super) fn format_rows(
    format: Format,
    rows: &[CheckRow],
    verbose: bool,
) -> Result<String, serde_json::Error> {
    if format == Format::Json {
        return output::json(rows);
    }
    let cells: Vec<Vec<String>> = match format {
        Format::Table => folded(rows, verbose),
        _ => rows.iter().map(|row| cells(format, row)).collect(),
    };
    let mut headings = COLUMNS.map(|(heading, _)| heading).to_vec();
    headings.extend(["config", "detail", "warnings"]);
    Ok(output::rows(format, &headings, &cells))
}

/// Builds a table's cells, with one row for all configurations that fail in the same way, and one
/// for all that pass.
fn folded(rows: &[CheckRow], verbose: bool) -> Vec<Vec<String>> {
    let mut groups: Vec<Vec<&CheckRow>> = Vec::new();
    for row in rows {
        let joins = |first: &CheckRow| {
            first.kernel == row.kernel
                && first.problem == row.problem
                && first.judgement.verdict == row.judgement.verdict
                && match row.passed() {
                    true => !verbose,
                    false => first_line(first) == first_line(row),
                }
        };
        let same = |group: &&mut Vec<&CheckRow>| group.first().is_some_and(|first| joins(first));
        match groups.iter_mut().find(same) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups
        .iter()
        .filter_map(|group| folded_cells(group))
        .collect()
}

/// Builds the cells of a group of rows.
fn folded_cells(rows: &[&CheckRow]) -> Option<Vec<String>> {
    let (first, others) = rows.split_first()?;
    let mut cells = cells(Format::Table, first);
    if others.is_empty() {
        return Some(cells);
    }
    let passed = first.passed();
    if passed {
        for (cell, column) in cells.iter_mut().zip(&COLUMNS) {
            *cell = range_cell(column, rows);
        }
    }
    let place = COLUMNS.len();
    if let Some(config) = cells.get_mut(place) {
        *config = match passed {
            true => counted(rows.len(), "configuration"),
            false => format!("{config} and {} more", others.len()),
        };
    }
    if let Some(detail) = cells.get_mut(place + 1)
        && rows.iter().any(|row| first_line(row) != detail)
    {
        detail.clear();
    }
    Some(cells)
}

/// Formats the worst of a column of errors, and the range of another column.
fn range_cell(column: &Column<CheckRow>, rows: &[&CheckRow]) -> String {
    let (heading, cell) = *column;
    let worst = |figure: fn(&CheckRow) -> Option<f64>| {
        let known = rows.iter().filter_map(|row| Some((figure(row)?, row)));
        let worst = known.max_by(|(a, _), (b, _)| a.total_cmp(b));
        worst.map_or_else(String::new, |(_, row)| cell(row))
    };
    match heading {
        "max_error" => return worst(|row| row.max_error),
        "bank_conflicts" => return worst(|row| row.seen.as_ref().map(conflict_share)),
        _ => {}
    }
    let mut texts: Vec<String> = Vec::new();
    for text in rows.iter().map(|row| cell(row)) {
        if !text.is_empty() && !texts.contains(&text) {
            texts.push(text);
        }
    }
    let numbers: Result<Vec<u64>, _> = texts.iter().map(|text| text.parse()).collect();
    let range = numbers.ok().and_then(|numbers| {
        let (least, most) = (numbers.iter().min()?, numbers.iter().max()?);
        (least < most).then(|| format!("{least}-{most}"))
    });
    range.unwrap_or_else(|| texts.join("/"))
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
    let share = 100.0 * conflict_share(seen);
    format!("{:.0} ({share:.0} %)", seen.bank_conflicts)
}

/// Returns the share of additional wavefronts.
fn conflict_share(seen: &RunFigures) -> f64 {
    seen.bank_conflicts / seen.shared_wavefronts.max(1.0)
}
