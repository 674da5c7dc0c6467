//! A sparse matrix or graph with one row that is much longer than the others.

use super::CaseInputs;
use std::sync::Arc;
use tuner_core::fill::{Fill, LongRow};
use tuner_core::plan::{Plan, PlanArgument, PlanReference};

/// Builds the inputs; `None` where no two arguments are offsets and indices of one graph.
pub(super) fn make(plan: &Plan, seed: u64) -> Option<CaseInputs> {
    let kernel = matches!(plan.reference, PlanReference::Kernel { oracle: None, .. });
    if !kernel || plan.generators.is_some() {
        return None;
    }
    let long = long_row(plan, seed)?;
    let mut inputs = Vec::with_capacity(plan.arguments.len());
    for (index, argument) in plan.arguments.iter().enumerate() {
        if !argument.role.is_filled() {
            inputs.push(None);
            continue;
        }
        let count = argument.count();
        let made = argument
            .fill
            .with_long_row(argument.element, seed, count, long);
        inputs.push(Some(match made {
            Some(made) => made,
            None => argument.content(seed, index as u64).ok()?,
        }));
    }
    Some(CaseInputs {
        inputs: Arc::new(inputs),
        exact: false,
        excused: Vec::new(),
    })
}

/// Returns the long row: half of all entries, but no more than a row has columns.
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
    // Of two graphs it would have to fit both.
    let one = graphs.clone().all(|(r, e, _)| (r, e) == (rows, entries));
    let further = (entries / 2).min(columns.saturating_sub(entries / rows.max(1) * 2));
    (one && rows > 1 && further > 0).then(|| LongRow {
        row: seed % rows,
        entries: further,
    })
}
