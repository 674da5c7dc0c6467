//! Sparse matrices and graphs in compressed rows (CSR): matching offsets and indices.

use super::{Fill, uniforms};

/// Maximum shift of row boundaries, in steps: below 0.5, they remain ascending.
const ROW_JITTER: f64 = 0.49;

/// Random stream shared by the offsets and indices of one graph.
const GRAPH: u64 = 0x6772_6170_6820;

/// Distance of the rows without entries in a graph with a long row.
const EMPTY_STEP: u64 = 5;

/// A row with this number of additional entries; the others share the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongRow {
    /// The row.
    pub row: u64,
    /// Its further entries.
    pub entries: u64,
    /// The first row, the last one and each fifth are empty; their neighbours have their entries.
    pub has_empty: bool,
}

/// Extents of a sparse matrix or a graph.
#[derive(Debug, Clone, Copy)]
pub(super) struct Csr {
    rows: u64,
    /// Entries of all rows.
    entries: u64,
    long: Option<LongRow>,
}

impl Csr {
    /// Returns the graph that `count` elements of a fill describe; `None` if the fill is not of a graph.
    pub(super) fn of(fill: &Fill, count: u64, long: Option<LongRow>) -> Option<Csr> {
        let (rows, entries) = match *fill {
            Fill::CsrOffsets { entries } => (count.saturating_sub(1), entries),
            Fill::CsrIndices { rows, .. } => (rows, count),
            _ => return None,
        };
        let long = long.filter(|long| long.row < rows && long.entries <= entries);
        Some(Csr {
            rows,
            entries,
            long,
        })
    }

    /// Returns element `index` of the fill.
    pub(super) fn value(&self, fill: &Fill, seed: u64, index: u64) -> u64 {
        match *fill {
            Fill::CsrIndices { columns, .. } => self.column(seed, columns, index),
            _ => self.row_offset(seed, index),
        }
    }

    /// Returns the offset of a row. The entries of an empty row belong to the next one, those of the last
    /// row to its predecessor.
    fn row_offset(&self, seed: u64, row: u64) -> u64 {
        let before = row.checked_sub(1).filter(|_| row < self.rows);
        let row = match before {
            Some(before) if self.is_empty(before) => before,
            _ if row + 1 == self.rows && self.is_empty(row) => self.rows,
            _ => row,
        };
        self.boundary(seed, row)
    }

    /// Reports whether a row has no entries. No two such rows are neighbours.
    fn is_empty(&self, row: u64) -> bool {
        let with_empty = self.long.filter(|long| long.has_empty);
        if with_empty.is_none_or(|long| long.row == row) || row >= self.rows {
            return false;
        }
        let to_end = self.rows - row;
        let is_inner = row % EMPTY_STEP == EMPTY_STEP / 2 && to_end > 2;
        row == 0 || to_end == 1 || is_inner
    }

    /// Returns the offset of a row in a graph without empty rows.
    fn boundary(&self, seed: u64, row: u64) -> u64 {
        let rows = self.rows;
        let (further, shared) = match self.long {
            Some(long) => {
                let behind = u64::from(row > long.row);
                (behind * long.entries, self.entries - long.entries)
            }
            None => (0, self.entries),
        };
        if row == 0 || rows == 0 {
            return 0;
        }
        if row >= rows {
            return self.entries;
        }
        let (unit, _) = uniforms(seed, GRAPH, row);
        let place = row as f64 + 2.0 * ROW_JITTER * (unit - 0.5);
        further + ((place / rows as f64 * shared as f64) as u64).min(shared)
    }

    /// Returns the range of entries of the row of an entry.
    fn row_of(&self, seed: u64, entry: u64) -> (u64, u64) {
        // The last row that begins at or before the entry.
        let (mut low, mut high) = (0, self.rows);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.row_offset(seed, middle) <= entry {
                low = middle;
            } else {
                high = middle;
            }
        }
        (self.row_offset(seed, low), self.row_offset(seed, low + 1))
    }

    /// Returns the column of an entry: the columns are divided into as many parts as the row has entries.
    fn column(&self, seed: u64, columns: u64, entry: u64) -> u64 {
        let (first, behind) = self.row_of(seed, entry);
        let degree = (behind - first).max(1) as f64;
        let number = (entry - first.min(entry)) as f64;
        let bound = |number: f64| (number * columns as f64 / degree) as u64;
        let (low, high) = (bound(number), bound(number + 1.0));
        let (unit, _) = uniforms(seed, GRAPH + 1, entry);
        let within = (unit * high.saturating_sub(low) as f64) as u64;
        (low + within).min(columns.saturating_sub(1))
    }
}
