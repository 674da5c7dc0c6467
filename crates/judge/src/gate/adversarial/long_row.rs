//! A sparse matrix or graph with one row that is much longer than the others, and empty rows.

use super::{CaseInputs, beside_reference};
use tuner_core::fill::{Fill, LongRow};
use tuner_core::plan::{Plan, PlanArgument};

/// Builds the inputs; `None` unless two arguments are offsets and indices of one graph.
pub(super) fn make(plan: &Plan, seed: u64) -> Option<CaseInputs> {
    let long = long_row(plan, seed)?;
    beside_reference(plan, seed, |_, argument| {
        let (fill, count) = (&argument.fill, argument.count());
        fill.with_long_row(argument.element, seed, count, long)
    })
}

/// Returns the long row: half of all entries, but at most one per column.
fn long_row(plan: &Plan, seed: u64) -> Option<LongRow> {
    let offsets = |of: &PlanArgument| match of.fill {
        Fill::CsrOffsets { entries } => Some((of.count().checked_sub(1)?, entries)),
        _ => None,
    };
    let indices = |of: &PlanArgument| match of.fill {
        Fill::CsrIndices { rows, columns } => Some((rows, of.count(), columns)),
        _ => None,
    };
    let (rows, entries) = plan.arguments.iter().find_map(offsets)?;
    let graphs = plan.arguments.iter().filter_map(indices);
    let (.., columns) = graphs
        .clone()
        .find(|(r, e, _)| (*r, *e) == (rows, entries))?;
    // With several graphs the row would have to fit all of them.
    let one = graphs.clone().all(|(r, e, _)| (r, e) == (rows, entries));
    // A row has less than twice the average, and three times with the entries of an empty one: no row gets more
    // entries than there are columns, which it would repeat.
    let average = entries.div_ceil(rows.max(1));
    let further = (entries / 2).min(columns.saturating_sub(average * 3));
    (one && rows > 1 && further > 0).then(|| LongRow {
        row: seed % rows,
        entries: further,
        has_empty: average * 3 <= columns,
    })
}
