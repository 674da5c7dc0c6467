//! Import of a CUTLASS profiler table as the baseline of a measured kernel.

use super::Args;
use crate::cli::{CliError, CommandResult, usage};
use crate::exit;
use std::path::Path;
use tuner_core::baseline_record::{BaselineRecord, Moment, Visit};
use tuner_core::record::TimingKind;
use tuner_store::{Board, DeviceFilter, LeaderboardQuery, RunId, Store};

/// A row with a time.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    operation: String,
    m: i64,
    n: i64,
    k: i64,
    runtime_us: f64,
}

/// Stores, for every measured problem of the kernel, the fastest operation of its sizes.
pub(super) async fn import(args: &Args, text: &str) -> CommandResult {
    let rows = rows(&args.file, text)?;
    let Some(kernel) = &args.kernel else {
        refuse!(
            "{}: say which kernel this is the baseline of: --kernel NAME",
            args.file.display()
        );
    };
    if rows.is_empty() {
        say!("{}: no operation passed", args.file.display());
        return Ok(exit::NOTHING_PASSED);
    }
    let store = Store::open(&args.db).await?;
    let query = LeaderboardQuery {
        kernel: Some(kernel.clone()),
        device: args.device.clone().map(DeviceFilter::Name),
        top: Some(1),
        timings: vec![TimingKind::Measured],
        ..LeaderboardQuery::default()
    };
    let boards = store.boards(&query).await?;
    let mut stored = 0;
    for board in &boards {
        if let Some(row) = fastest(&rows, board) {
            keep(&store, args, board, row).await?;
            stored += 1;
        }
    }
    store.close().await?;
    if stored == 0 {
        let sizes: Vec<String> = rows
            .iter()
            .map(|row| format!("{}x{}x{}", row.m, row.n, row.k))
            .collect();
        refuse!(
            "{}: no measured problem of `{kernel}`{} has sizes of the table ({}); a baseline \
             requires measured times of the same GPU: `tuner run {kernel} --device cuda` first",
            args.db.display(),
            args.device
                .as_ref()
                .map_or(String::new(), |device| format!(" on `{device}`")),
            first_few(sizes)
        );
    }
    Ok(exit::DONE)
}

fn first_few(mut sizes: Vec<String>) -> String {
    sizes.dedup();
    let more = if sizes.len() > 4 { ", …" } else { "" };
    sizes.truncate(4);
    format!("{}{more}", sizes.join(", "))
}

/// Returns the fastest operation of a board's sizes.
fn fastest<'r>(rows: &'r [Row], board: &Board) -> Option<&'r Row> {
    let size = |name: &str| {
        let found = board
            .sizes
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.and_then(|(_, value)| value.as_i64())
    };
    let (m, n, k) = (size("M")?, size("N")?, size("K")?);
    rows.iter()
        .filter(|row| (row.m, row.n, row.k) == (m, n, k))
        .min_by(|a, b| a.runtime_us.total_cmp(&b.runtime_us))
}

async fn keep(store: &Store, args: &Args, board: &Board, row: &Row) -> Result<(), CliError> {
    let lines = store.time_lines(board).await?;
    let Some(run) = lines.last().map(|line| RunId::from_text(&line.run.name)) else {
        return Ok(());
    };
    let record = BaselineRecord {
        command: vec!["tuner import".to_owned(), args.file.display().to_string()],
        name: Some(format!("CUTLASS {}", row.operation)),
        version: None,
        // The profiler prints only the mean of its runs.
        visits: vec![Visit {
            moment: Moment::After,
            p50_us: row.runtime_us,
            p90_us: row.runtime_us,
            reference_us: None,
        }],
        reference: None,
        failure: None,
    };
    store.store_baseline(&run, &board.key, record).await?;
    say!(
        "{} on {}: {:.3} us by {}",
        board.key.problem,
        board.key.device,
        row.runtime_us,
        row.operation
    );
    Ok(())
}

/// Counts the rows that passed.
pub(in crate::cli) fn count_rows(file: &Path, text: &str) -> Result<usize, CliError> {
    rows(file, text).map(|rows| rows.len())
}

/// Parses the rows that passed. Blank lines and text between tables are skipped.
fn rows(file: &Path, text: &str) -> Result<Vec<Row>, CliError> {
    let wrong = |line: usize, column: usize, what: String| {
        usage(format!(
            "{}:{line}:{column}: error: {what}\nhelp: give the file that `cutlass_profiler --output` wrote",
            file.display()
        ))
    };
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .flexible(true)
        .from_reader(text.as_bytes());
    let head = reader
        .headers()
        .map_err(|error| wrong(1, 1, error.to_string()))?
        .clone();
    let column = |name: &str| {
        head.iter()
            .position(|known| known.eq_ignore_ascii_case(name))
            .ok_or_else(|| wrong(1, 1, format!("the table has no column `{name}`")))
    };
    let (operation, disposition, status) = (
        column("Operation")?,
        column("Disposition")?,
        column("Status")?,
    );
    let sizes = [column("m")?, column("n")?, column("k")?];
    let runtime = column("Runtime")?;
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| wrong(1, 1, error.to_string()))?;
        let line = record.position().map_or(1, csv::Position::line) as usize;
        let cell = |at: usize| record.get(at).unwrap_or_default();
        // A failed or unchecked operation is not a baseline.
        if cell(status) != "success" || !matches!(cell(disposition), "passed" | "not_verified") {
            continue;
        }
        let number = |at: usize| {
            cell(at)
                .parse::<f64>()
                .ok()
                .filter(|value| value.is_finite() && *value > 0.0)
                .ok_or_else(|| {
                    let name = head.get(at).unwrap_or_default();
                    wrong(
                        line,
                        at + 1,
                        format!("`{}` is not a valid {name}", cell(at)),
                    )
                })
        };
        let [m, n, k] = sizes.map(number);
        rows.push(Row {
            operation: cell(operation).to_owned(),
            m: m? as i64,
            n: n? as i64,
            k: k? as i64,
            // The profiler's unit is the millisecond.
            runtime_us: number(runtime)? * 1e3,
        });
    }
    Ok(rows)
}
