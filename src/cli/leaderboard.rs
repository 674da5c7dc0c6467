//! `tuner leaderboard`: ranked results.

use super::output::{self, Format, number, or};
use super::results::{Selection, block_on, board_name, kernels_named, note_unproven};
use super::stale::{self, Present};
use super::{CliError, CommandResult, history, lineage};
use crate::exit;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use tuner_core::escape;
use tuner_core::objective::{Objective, Objectives, front};
use tuner_core::record::{LeaderboardRow, TaskKey, rank_class};
use tuner_report::us as digits;
use tuner_store::{BestPeriod, Board, LeaderboardQuery, Store, VerdictCount};

/// Show the best configurations, ranked
///
/// Ranked within kernel, problem, device and kind of time: predicted and measured times are never
/// mixed. Each configuration counts with its best measurement; each kernel with the newest version
/// of its template (an edited template inherits no time). `=` after a rank: the 95 % interval of the
/// ratio to the best contains 1, so the difference is not significant.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tuner leaderboard                                  everything
  tuner leaderboard gemm_f32 --top 5
  tuner leaderboard gemm_f32 --device vgpu:h100 --format json
  tuner leaderboard --device replay:conv2d_A100.json.gz --format csv > results.csv
  tuner leaderboard gemm_f32 --at v1.2               as it stood at that commit
  tuner leaderboard gemm_f32 --history               what was best when, and what ended it
  tuner leaderboard gemm_f32 --pareto=time,registers  what nothing beats in both
  tuner leaderboard gemm_f32 --lineage               changes of the code, by parent

compared: how results were compared with the reference at the size of the problem. `whole`: all blocks
ran and every output was compared; `sampled`: a sample of the blocks; `smaller_problems`: on smaller
problems only; `unknown`: stored by an older version. The last two rank after all others.

gate: the checks before the time. `first`: one seed, one run, because the candidate was not near the
best; `screening`: the same on a worker of a fleet; `check`: every check problem; `timing`: three seeds,
repeated; `final`: every check, of a finalist.

A `+` behind a commit: the template or the search space differed from it (the JSON has the SHA-256
of the difference). `stale`: the template was edited since.")]
pub(crate) struct Args {
    /// Kernels, by name or search space file [default: all]
    #[arg(value_name = "KERNEL|FILE.yaml")]
    kernels: Vec<String>,

    #[command(flatten)]
    selection: Selection,

    /// Number of rows for each kernel, problem and device [default: 10 in a table, else all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    top: Option<u32>,

    /// Show the leaderboard as of this commit
    #[arg(long, value_name = "COMMIT")]
    at: Option<String>,

    /// Show the best configuration over time, with the commit that replaced each
    #[arg(long, conflicts_with_all = ["at", "top"])]
    history: bool,

    /// Show only the Pareto front of two objectives: time and one of registers, p90, code_size and
    /// energy
    /// [default objectives: time,registers]
    #[arg(long, value_name = "TIME,OTHER", num_args = 0..=1, require_equals = true, default_missing_value = "time,registers", conflicts_with = "history")]
    pareto: Option<Objectives>,

    /// Show the family tree of changed code (`tuner evolve`) with its figures
    #[arg(long, conflicts_with_all = ["at", "top", "history", "pareto"])]
    lineage: bool,

    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// Rows of a table without `--top`.
const TABLE_ROWS: usize = 10;

/// Runs the command.
pub(crate) fn run(args: &Args) -> CommandResult {
    if args.lineage {
        let text = block_on(lineage::text(&args.kernels, &args.selection, args.format))?;
        return output::result(&text);
    }
    if args.history {
        let periods = block_on(read_history(args))?;
        let text = history::text(args.format, &periods)?;
        return output::result(&text);
    }
    let (mut boards, counts) = block_on(read(args))?;
    Present::default().mark(&mut boards);
    let text = match args.format {
        Format::Json => {
            let rows: Vec<&LeaderboardRow> = boards.iter().flat_map(|board| &board.rows).collect();
            output::json(&rows)?
        }
        Format::Table => tables(&boards),
        format => flat(format, &boards),
    };
    output::print(&text)?;
    say_part!("{}", summary(&counts));
    stale::warn(&boards);
    Ok(exit::DONE)
}

async fn read_history(args: &Args) -> Result<Vec<BestPeriod>, CliError> {
    let store = args.selection.open().await?;
    let mut periods = Vec::new();
    for kernel in kernels_named(&args.kernels)? {
        let query = args.selection.query(kernel.as_deref(), None);
        let found = store.history(&query).await?;
        if found.is_empty() {
            let kernel = kernel.as_deref();
            args.selection.explain_nothing(&store, kernel).await?;
        }
        periods.extend(found);
    }
    store.close().await?;
    Ok(periods)
}

async fn read(args: &Args) -> Result<(Vec<Board>, Vec<VerdictCount>), CliError> {
    let store = args.selection.open().await?;
    let top = match (args.top, args.format) {
        (Some(top), _) => Some(top as usize),
        (None, Format::Table) => Some(TABLE_ROWS),
        (None, _) => None,
    };
    let commits = match &args.at {
        Some(commit) => Some(history::commits_at(&store, commit).await?),
        None => None,
    };
    let (mut boards, mut counts) = (Vec::new(), Vec::new());
    for kernel in kernels_named(&args.kernels)? {
        let kernel = kernel.as_deref();
        let mut query = args.selection.query(kernel, top);
        query.commits.clone_from(&commits);
        let found = match args.pareto {
            Some(objectives) => front_boards(&store, query.clone(), objectives).await?,
            None => store.boards(&query).await?,
        };
        if found.is_empty() {
            args.selection.explain_nothing(&store, kernel).await?;
        }
        boards.extend(found);
        counts.extend(store.verdict_counts(&query).await?);
    }
    store.close().await?;
    Ok((boards, counts))
}

/// Returns the boards with only their Pareto-optimal rows in both objectives, by time.
#[expect(
    clippy::indexing_slicing,
    reason = "columns have a cell for each row; indexing JSON gives null where a key is missing"
)]
async fn front_boards(
    store: &Store,
    query: LeaderboardQuery,
    objectives: Objectives,
) -> Result<Vec<Board>, CliError> {
    let top = query.top.unwrap_or(usize::MAX);
    let query = LeaderboardQuery {
        // A row of any rank may be the best in the other objective.
        top: None,
        code_sizes: true,
        ..query
    };
    let mut boards = store.boards(&query).await?;
    for board in &mut boards {
        let all = board.rows.len();
        let best = board.rows.iter().map(|row| rank_class(row.compared)).min();
        board
            .rows
            // A row of a lower class would enter the front by its other objective alone.
            .retain(|row| row.is_proven() && Some(rank_class(row.compared)) == best);
        note_unproven(all - board.rows.len(), &board_name(board));
        let known: Vec<(usize, [f64; 2])> = board
            .rows
            .iter()
            .zip(protocol_factors(&board.rows))
            .enumerate()
            .filter_map(|(at, (row, factor))| {
                let [first, second] = objectives.both().map(|each| match each {
                    Objective::Time | Objective::P90 => Some(each.of_row(row)? * factor),
                    _ => each.of_row(row),
                });
                Some((at, [first?, second?]))
            })
            .collect();
        if known.is_empty() && !board.rows.is_empty() {
            say!("{}: no result has both {objectives}", board.key);
        }
        let points: Vec<[f64; 2]> = known.iter().map(|(_, point)| *point).collect();
        let kept = front(&points).into_iter().take(top);
        board.rows = kept.map(|at| board.rows[known[at].0].clone()).collect();
    }
    Ok(boards)
}

/// Returns the factor that scales each row's time to its rank among rows of one class: a row of the search
/// that ranks below a finalist with a longer time is treated as slower than the finalist.
fn protocol_factors(ranked: &[LeaderboardRow]) -> impl Iterator<Item = f64> {
    let mut slowest = 0.0_f64;
    ranked.iter().map(move |row| {
        slowest = slowest.max(row.time_us_p50);
        match row.time_us_p50 < slowest {
            true => slowest / row.time_us_p50 * (1.0 + 1e-9),
            false => 1.0,
        }
    })
}

/// Formats one table for each group.
fn tables(boards: &[Board]) -> String {
    let mut text = String::new();
    for board in boards {
        if !text.is_empty() {
            text.push('\n');
        }
        let (key, timing) = (&board.key, board.timing);
        let name = format!("{}  {}  on {}", key.kernel, key.problem, key.device);
        let _ = writeln!(text, "{}, {timing}\n", escape::line(&name));
        text.push_str(&table(board));
    }
    if text.is_empty() {
        text.push_str("no candidate passed\n");
    }
    text
}

/// Formats a group's rows without empty columns.
#[expect(
    clippy::indexing_slicing,
    reason = "columns have a cell for each row; indexing JSON gives null where a key is missing"
)]
fn table(board: &Board) -> String {
    let tied = board.rows.iter().filter(|row| row.tied_with_best).count() > 1;
    let shown = shown_columns();
    let columns: Vec<(&str, Vec<String>)> = shown
        .iter()
        .map(|shown| (shown.heading, board.rows.iter().map(shown.cell).collect()))
        .filter(|(_, cells): &(&str, Vec<String>)| cells.iter().any(|cell| cell != "-"))
        .collect();
    let mut headings = vec!["rank"];
    headings.extend(columns.iter().map(|(heading, _)| *heading));
    headings.push("configuration");
    let rows: Vec<Vec<String>> = board
        .rows
        .iter()
        .enumerate()
        .map(|(at, row)| {
            let tie = if tied && row.tied_with_best { "=" } else { "" };
            let mut cells = vec![format!("{}{tie}", row.rank)];
            cells.extend(columns.iter().map(|(_, column)| column[at].clone()));
            cells.push(board.definition.varied(&row.config));
            cells
        })
        .collect();
    let mut expendable: Vec<&Shown> = shown.iter().filter(|it| it.dropped.is_some()).collect();
    expendable.sort_by_key(|shown| shown.dropped);
    let expendable: Vec<&str> = expendable.iter().map(|shown| shown.heading).collect();
    output::table_dropping(&headings, &rows, &expendable)
}

/// A column of the leaderboard. Its meaning is the doc comment of the field in [`LeaderboardRow`].
struct LeaderboardColumn {
    /// Key in JSON, and heading in CSV and Markdown; an interval is two columns there.
    key: &'static str,
    /// Omitted from CSV and Markdown if no row has a value.
    optional: bool,
    /// Its form in a table, if it is shown there.
    shown: Option<Shown>,
}

/// A column of a table.
#[derive(Clone, Copy)]
struct Shown {
    /// Place from the left.
    place: u8,
    heading: &'static str,
    /// The cell of a row; `-` for a missing value.
    cell: fn(&LeaderboardRow) -> String,
    /// Position in the order in which a narrow terminal omits columns; `None`: never omitted.
    dropped: Option<u8>,
}

/// Returns the table's columns from the left.
fn shown_columns() -> Vec<Shown> {
    let mut shown: Vec<Shown> = COLUMNS.iter().filter_map(|column| column.shown).collect();
    shown.sort_by_key(|shown| shown.place);
    shown
}

const fn hidden(key: &'static str) -> LeaderboardColumn {
    LeaderboardColumn {
        key,
        optional: false,
        shown: None,
    }
}

const fn shown(
    key: &'static str,
    place: u8,
    heading: &'static str,
    dropped: Option<u8>,
    cell: fn(&LeaderboardRow) -> String,
) -> LeaderboardColumn {
    LeaderboardColumn {
        key,
        optional: false,
        shown: Some(Shown {
            place,
            heading,
            cell,
            dropped,
        }),
    }
}

const fn optional(column: LeaderboardColumn) -> LeaderboardColumn {
    LeaderboardColumn {
        optional: true,
        ..column
    }
}

/// All columns in the order of CSV and Markdown; new ones are appended.
const COLUMNS: [LeaderboardColumn; 33] = [
    hidden("rank"),
    hidden("kernel"),
    hidden("problem"),
    hidden("device"),
    hidden("device_kind"),
    hidden("timing"),
    hidden("config"),
    shown("time_us_p50", 1, "p50 us", None, |row| {
        digits(row.time_us_p50)
    }),
    shown("time_us_p90", 2, "p90 us", Some(4), |row| {
        several(row, digits(row.time_us_p90))
    }),
    shown("ci95_us", 3, "95 % interval", Some(6), |row| {
        let interval = row.ci95_us.filter(|_| row.samples > 1);
        let text = interval.map(|[low, high]| format!("{} .. {}", digits(low), digits(high)));
        or("-", text)
    }),
    hidden("samples"),
    hidden("tied_with_best"),
    shown("speedup_vs_default", 5, "x default", None, |row| {
        number("-", row.speedup_vs_default, 2)
    }),
    hidden("speedup_vs_baseline"),
    shown("compared", 6, "compared", Some(3), |row| {
        or("-", row.compared)
    }),
    shown("commit", 12, "commit", Some(2), |row| {
        let dirty = if row.dirty == Some(true) { "+" } else { "" };
        let commit = row.commit.as_deref().map(history::short);
        or("-", commit.map(|commit| format!("{commit}{dirty}")))
    }),
    hidden("dirty"),
    hidden("template_hash"),
    hidden("cubin_hash"),
    shown("registers", 8, "regs", Some(8), |row| {
        or("-", row.registers)
    }),
    shown("spill_bytes", 9, "spill", Some(7), |row| {
        or("-", row.spill_bytes)
    }),
    hidden("shared_bytes"),
    hidden("max_error"),
    hidden("seed"),
    hidden("run_id"),
    shown("measured_at", 14, "date", Some(1), |row| {
        row.measured_at.get(..10).unwrap_or("-").to_owned()
    }),
    hidden("diff_hash"),
    shown("stale", 13, "stale", None, |row| {
        let stale = row.stale == Some(true);
        if stale { "stale" } else { "-" }.to_owned()
    }),
    shown("gate", 7, "gate", None, |row| or("-", row.gate.as_ref())),
    optional(shown("code_bytes", 10, "code", None, |row| {
        or("-", row.code_bytes)
    })),
    optional(shown("energy_mj", 11, "mJ", None, |row| {
        or("-", row.energy_mj.map(digits))
    })),
    optional(hidden("energy_ci95_mj")),
    optional(shown("search_us", 4, "search us", Some(5), |row| {
        or("-", row.search_us.map(digits))
    })),
];

/// Hides the spread of a single sample.
fn several(row: &LeaderboardRow, cell: String) -> String {
    if row.samples > 1 {
        cell
    } else {
        "-".to_owned()
    }
}

/// Formats all columns. Cells come from the JSON serialization, so that a value has the same
/// spelling in every format.
#[expect(
    clippy::indexing_slicing,
    reason = "columns have a cell for each row; indexing JSON gives null where a key is missing"
)]
fn flat(format: Format, boards: &[Board]) -> String {
    let rows: Vec<serde_json::Value> = boards
        .iter()
        .flat_map(|board| &board.rows)
        .map(|row| serde_json::to_value(row).unwrap_or_default())
        .collect();
    let has_value = |key: &str| rows.iter().any(|row| !row[key].is_null());
    let columns: Vec<&LeaderboardColumn> = COLUMNS
        .iter()
        .filter(|column| !column.optional || has_value(column.key))
        .collect();
    let is_interval = |key: &str| key.contains("ci95");
    let headings: Vec<String> = columns
        .iter()
        .flat_map(|column| match is_interval(column.key) {
            true => ["_low", "_high"]
                .map(|end| format!("{}{end}", column.key))
                .to_vec(),
            false => vec![column.key.to_owned()],
        })
        .collect();
    let cells = |row: &serde_json::Value| {
        columns
            .iter()
            .flat_map(|column| match is_interval(column.key) {
                true => [0, 1].map(|end| cell(&row[column.key][end])).to_vec(),
                false => vec![cell(&row[column.key])],
            })
            .collect()
    };
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    output::rows(
        format,
        &headings,
        &rows.iter().map(cells).collect::<Vec<_>>(),
    )
}

fn cell(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Null => String::new(),
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Formats the candidates by verdict, a line for each kernel, problem and device.
fn summary(counts: &[VerdictCount]) -> String {
    let mut groups: BTreeMap<&TaskKey, Vec<String>> = BTreeMap::new();
    for count in counts {
        let part = format!("{} {}", count.count, count.verdict);
        groups.entry(&count.key).or_default().push(part);
    }
    groups
        .into_iter()
        .map(|(key, parts)| format!("{key}: {}\n", parts.join(", ")))
        .collect()
}

#[cfg(test)]
mod tests;
