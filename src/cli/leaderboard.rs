//! `tuner leaderboard`: ranked results.
#![expect(
    clippy::indexing_slicing,
    reason = "columns have a cell for each row; indexing JSON gives null where a key is missing"
)]

use super::output::{self, Column, Format, number, or};
use super::results::{Selection, block_on, board_name, kernels_named, note_unproven};
use super::stale::{self, Present};
use super::{CliError, CommandResult, history};
use crate::exit;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use tuner_core::escape;
use tuner_core::objective::{Objectives, front};
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

    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// Rows of a table without `--top`.
const TABLE_ROWS: usize = 10;

/// Runs the command.
pub(crate) fn run(args: &Args) -> CommandResult {
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
async fn front_boards(
    store: &Store,
    query: LeaderboardQuery,
    objectives: Objectives,
) -> Result<Vec<Board>, CliError> {
    let top = query.top.unwrap_or(usize::MAX);
    let query = LeaderboardQuery {
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
            .retain(|row| row.is_proven() && Some(rank_class(row.compared)) == best);
        note_unproven(all - board.rows.len(), &board_name(board));
        let point = |row: &LeaderboardRow| {
            let [first, second] = objectives.both().map(|each| each.of_row(row));
            Some([first?, second?])
        };
        let known: Vec<(usize, [f64; 2])> = board
            .rows
            .iter()
            .enumerate()
            .filter_map(|(at, row)| Some((at, point(row)?)))
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
fn table(board: &Board) -> String {
    let tied = board.rows.iter().filter(|row| row.tied_with_best).count() > 1;
    let columns: Vec<(&str, Vec<String>)> = CELLS
        .iter()
        .map(|(heading, cell)| (*heading, board.rows.iter().map(cell).collect()))
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
    output::rows(Format::Table, &headings, &rows)
}

/// The table's columns; `-` for a missing value.
const CELLS: [Column<LeaderboardRow>; 13] = [
    ("p50 us", |row| digits(row.time_us_p50)),
    ("p90 us", |row| several(row, digits(row.time_us_p90))),
    ("95 % interval", |row| {
        let interval = row.ci95_us.filter(|_| row.samples > 1);
        let text = interval.map(|[low, high]| format!("{} .. {}", digits(low), digits(high)));
        or("-", text)
    }),
    ("x default", |row| number("-", row.speedup_vs_default, 2)),
    ("compared", |row| or("-", row.compared)),
    ("gate", |row| or("-", row.gate.as_ref())),
    ("regs", |row| or("-", row.registers)),
    ("spill", |row| or("-", row.spill_bytes)),
    ("code", |row| or("-", row.code_bytes)),
    ("mJ", |row| or("-", row.energy_mj.map(digits))),
    ("commit", |row| {
        let dirty = if row.dirty == Some(true) { "+" } else { "" };
        let commit = row.commit.as_deref().map(history::short);
        or("-", commit.map(|commit| format!("{commit}{dirty}")))
    }),
    ("stale", |row| {
        let stale = row.stale == Some(true);
        if stale { "stale" } else { "-" }.to_owned()
    }),
    ("date", |row| {
        row.measured_at.get(..10).unwrap_or("-").to_owned()
    }),
];

/// Hides a spread of a single sample.
fn several(row: &LeaderboardRow, cell: String) -> String {
    if row.samples > 1 {
        cell
    } else {
        "-".to_owned()
    }
}

/// The JSON keys as columns; the interval as two.
const COLUMNS: [&str; 34] = [
    "rank",
    "kernel",
    "problem",
    "device",
    "device_kind",
    "timing",
    "config",
    "time_us_p50",
    "time_us_p90",
    "ci95_us_low",
    "ci95_us_high",
    "samples",
    "tied_with_best",
    "speedup_vs_default",
    "speedup_vs_baseline",
    "compared",
    "commit",
    "dirty",
    "template_hash",
    "cubin_hash",
    "registers",
    "spill_bytes",
    "shared_bytes",
    "max_error",
    "seed",
    "run_id",
    "measured_at",
    "diff_hash",
    "stale",
    "gate",
    "code_bytes",
    "energy_mj",
    "energy_ci95_mj_low",
    "energy_ci95_mj_high",
];

fn flat(format: Format, boards: &[Board]) -> String {
    let rows = || boards.iter().flat_map(|board| &board.rows);
    let mut columns = COLUMNS.to_vec();
    if rows().all(|row| row.code_bytes.is_none()) {
        columns.retain(|column| *column != "code_bytes");
    }
    if rows().all(|row| row.energy_mj.is_none()) {
        columns.retain(|column| !column.starts_with("energy"));
    }
    let rows: Vec<Vec<String>> = rows()
        .map(|row| {
            // The JSON serialization, so that a value has the same spelling in every format.
            let row = serde_json::to_value(row).unwrap_or_default();
            let value = |column: &&str| match column.rsplit_once('_') {
                Some((interval, "low")) => cell(&row[interval][0]),
                Some((interval, "high")) => cell(&row[interval][1]),
                _ => cell(&row[*column]),
            };
            columns.iter().map(value).collect()
        })
        .collect();
    output::rows(format, &columns, &rows)
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
