//! Fits tables to the terminal: fewer columns, and cells on several lines.

use std::fmt::Write as _;

/// Columns that may be omitted, the least important first; a command may have its own list.
pub(super) const EXPENDABLE: [&str; 30] = [
    "warnings",
    "fix",
    "global_load_sectors",
    "global_store_sectors",
    "global_load_bytes",
    "global_store_bytes",
    "shared_wavefronts",
    "warp_instructions",
    "fp32_flops",
    "tensor_flops",
    "local_bytes",
    "low_us",
    "high_us",
    "waves",
    "bank_conflicts",
    "blocks",
    "max_error",
    "shared_bytes",
    "occupancy",
    "compared",
    "95 % interval",
    "against",
    "shipped from",
    "timing",
    "bound",
    "began",
    "spill_bytes",
    "registers",
    "reliability",
    "run",
];
/// Both ends of an interval: shown or omitted together.
const INTERVAL: [&str; 2] = ["low_us", "high_us"];
/// Smallest width of a wrapped cell.
const MIN_CELL_WIDTH: usize = 16;

/// A fitted table.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FittedTable {
    pub(super) headings: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
    /// Values shared by all rows, printed once.
    pub(super) common: String,
    /// Number of omitted columns.
    pub(super) left_out: usize,
}

/// Fits a table to this number of terminal columns: omits empty columns, prints values shared by
/// all rows once, wraps long cells, and finally omits columns: first those in `expendable`.
#[expect(
    clippy::indexing_slicing,
    reason = "each column has a cell for each row, of which there are some"
)]
pub(super) fn fit(
    headings: &[&str],
    rows: &[Vec<String>],
    width: usize,
    expendable: &[&str],
) -> FittedTable {
    let mut columns: Vec<Column<'_>> = headings
        .iter()
        .enumerate()
        .map(|(at, heading)| Column::new(heading, rows.iter().map(|row| row.get(at))))
        .collect();
    let mut common = String::new();
    if total(&columns) > width {
        columns.retain(|column| column.cells.iter().any(|cell| !cell.is_empty()));
    }
    if rows.len() > 1 && total(&columns) > width {
        columns.retain(|column| {
            let first = column.cells[0];
            // A verdict belongs in its column, and an interval's ends belong together.
            let stays = column.heading == "verdict" || INTERVAL.contains(&column.heading);
            let same = column.cells.iter().all(|cell| *cell == first) && !stays;
            if same && first.chars().count() <= MIN_CELL_WIDTH {
                let gap = if common.is_empty() { "" } else { ", " };
                let _ = write!(common, "{gap}{} {first}", column.heading);
            }
            !(same && first.chars().count() <= MIN_CELL_WIDTH)
        });
    }
    let before = columns.len();
    while columns.len() > 1 && least(&columns) > width {
        let by_name = expendable.iter().find_map(|name| {
            let found = columns.iter().position(|column| column.heading == *name);
            found.filter(|_| columns.len() > 1)
        });
        // Then from the right, except identifying columns.
        let removed = columns.remove(by_name.unwrap_or(columns.len() - 1));
        // One end of an interval alone is useless.
        if INTERVAL.contains(&removed.heading) {
            columns.retain(|column| !INTERVAL.contains(&column.heading));
        }
    }
    let room = rooms(&columns, width);
    let cells = |row: usize| {
        let each = columns.iter().zip(&room);
        each.map(|(column, room)| broken(column.cells[row], *room))
            .collect()
    };
    FittedTable {
        headings: columns.iter().map(|c| c.heading.to_owned()).collect(),
        rows: (0..rows.len()).map(cells).collect(),
        common,
        left_out: before - columns.len(),
    }
}

struct Column<'t> {
    heading: &'t str,
    cells: Vec<&'t str>,
    width: usize,
}

impl<'t> Column<'t> {
    fn new(heading: &'t str, cells: impl Iterator<Item = Option<&'t String>>) -> Self {
        let cells: Vec<&str> = cells.map(|cell| cell.map_or("", String::as_str)).collect();
        let widths = cells.iter().map(|cell| cell.chars().count());
        Self {
            width: widths.max().unwrap_or(0).max(heading.chars().count()),
            heading,
            cells,
        }
    }

    /// Returns the width with wrapped cells.
    fn least(&self) -> usize {
        self.width
            .min(MIN_CELL_WIDTH.max(self.heading.chars().count()))
    }
}

/// Sums the widths; a column has a blank on each side.
fn total(columns: &[Column<'_>]) -> usize {
    columns.iter().map(|column| column.width + 2).sum()
}

fn least(columns: &[Column<'_>]) -> usize {
    columns.iter().map(|column| column.least() + 2).sum()
}

/// Assigns widths: the natural one, except for the widest columns, which share the rest.
#[expect(
    clippy::indexing_slicing,
    reason = "each column has a cell for each row, of which there are some"
)]
fn rooms(columns: &[Column<'_>], width: usize) -> Vec<usize> {
    let mut rooms: Vec<usize> = columns.iter().map(|column| column.width).collect();
    let sum = |rooms: &[usize]| rooms.iter().map(|room| room + 2).sum::<usize>();
    while sum(&rooms) > width {
        let shrinks = |at: &usize| rooms[*at] > columns[*at].least();
        let widest = (0..rooms.len()).filter(shrinks).max_by_key(|at| rooms[*at]);
        let Some(widest) = widest else { break };
        rooms[widest] -= 1;
    }
    rooms
}

/// Wraps a text to lines of at most this number of characters, after commas and blanks.
pub(super) fn broken(cell: &str, room: usize) -> String {
    if cell.chars().count() <= room {
        return cell.to_owned();
    }
    let mut lines: Vec<String> = vec![String::new()];
    for piece in cell.split_inclusive([' ', ',']) {
        let used = |lines: &Vec<String>| lines.last().map_or(0, |line| line.chars().count());
        let length = piece.trim_end().chars().count();
        if used(&lines) > 0 && used(&lines) + length > room {
            lines.push(String::new());
        }
        for character in piece.chars() {
            if used(&lines) >= room {
                // A blank at the end of a full line does not start a new line.
                if character == ' ' {
                    continue;
                }
                lines.push(String::new());
            }
            if let Some(line) = lines.last_mut() {
                line.push(character);
            }
        }
    }
    let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests;
