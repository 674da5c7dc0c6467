//! Results of some blocks of a reference kernel.

use super::ranges::union;
use super::tiling::Tiling;
use super::writers::PointWriters;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use tuner_core::plan::PlanArgument;

/// A reference kernel on one problem.
#[derive(Debug, Clone, Default)]
pub(super) struct PartialReference {
    /// One buffer for each output; only the known elements are valid.
    pub(super) outputs: Arc<Vec<Vec<u8>>>,
    /// Known elements of each output, ascending.
    pub(super) known: Vec<Vec<Range<u64>>>,
    /// The blocks that ran.
    pub(super) blocks: BTreeSet<u64>,
    /// Lane instructions of the first block; `None` if it did not end.
    pub(super) cost: Option<u64>,
    /// Warp instructions that the first block was allowed.
    pub(super) allowed: u64,
    /// Distribution of each output over the blocks; `None` if their results cannot be separated.
    pub(super) tilings: Vec<Option<Tiling>>,
    /// Blocks that write the points of an in-out buffer or an output without a known tiling.
    pub(super) writers: BTreeMap<usize, Vec<PointWriters>>,
    /// The kernel was compared with float64.
    pub(super) proven: bool,
}

impl PartialReference {
    /// Returns the points of an output with only completed writers; `None` if the writers are unknown.
    fn complete(&self, number: usize) -> Option<Vec<Range<u64>>> {
        let points = self.writers.get(&number).filter(|all| !all.is_empty())?;
        let ran = |point: &&PointWriters| point.blocks.iter().all(|at| self.blocks.contains(at));
        let complete: Vec<_> = points
            .iter()
            .filter(ran)
            .map(|p| p.elements.clone())
            .collect();
        Some(union(&complete, &[]))
    }

    /// Returns the elements of an output whose values are final; `shared` if several blocks may
    /// contribute to one element.
    pub(super) fn final_elements(
        &self,
        number: usize,
        argument: &PlanArgument,
        shared: bool,
    ) -> Vec<Range<u64>> {
        let wrote = self.known.get(number).map_or(&[][..], Vec::as_slice);
        let complete = self.complete(number).unwrap_or_default();
        match (argument.role.is_updated(), shared) {
            // With only some of its blocks run, an element may hold a partial value.
            (true, true) => complete,
            // A changed element has one writer; an unchanged one may have no known writer.
            (true, false) => union(wrote, &complete),
            _ => wrote.to_vec(),
        }
    }

    /// Returns the memory of the outputs.
    pub(super) fn bytes(&self) -> u64 {
        self.outputs.iter().map(|output| output.len() as u64).sum()
    }
}
