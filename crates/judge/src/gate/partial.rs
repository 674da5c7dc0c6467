//! Results of some blocks of a reference kernel.

use super::adversarial::Data;
use super::naive::{Kernel, places};
use super::points::choose_points;
use super::ranges::{overlap, union};
use super::sampling::{COMPARED_MAX, thin};
use super::tiling::{Tiling, spread};
use super::verify::{Gate, Pass, Stop};
use super::writers::PointWriters;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use tuner_core::plan::{PlanArgument, Role};

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
    /// Returns the points of an output all of whose writers have run; `None` if the writers are
    /// unknown.
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
        match (argument.role, shared) {
            // What some of the blocks left in an element may be a part of its value.
            (Role::Inout, true) => complete,
            // An element that changed has one writer; of one that kept its value none may be known.
            (Role::Inout, false) => union(wrote, &complete),
            _ => wrote.to_vec(),
        }
    }

    /// Returns the memory of the outputs.
    pub(super) fn bytes(&self) -> u64 {
        self.outputs.iter().map(|output| output.len() as u64).sum()
    }
}

impl Gate<'_> {
    /// Chooses up to `most` blocks of a reference kernel that write elements among `written` of output
    /// `number`: those of the first points first, so that they meet the candidate's.
    pub(super) fn reference_blocks(
        &mut self,
        data: Data,
        kernel: &Kernel<'_>,
        naive: &mut PartialReference,
        (number, written, pass): (usize, &[Range<u64>], &Pass),
        most: u64,
    ) -> Result<BTreeSet<u64>, Stop> {
        let argument = self.plan.compared().nth(number);
        let inout = argument.is_some_and(|argument| argument.role == Role::Inout);
        let tiling = naive.tilings.get(number).copied().flatten();
        // An element of an in-out buffer that no block writes is known from a trace alone.
        if (inout || tiling.is_none())
            && let Entry::Vacant(unknown) = naive.writers.entry(number)
        {
            // Once for all candidates: a trace covers all blocks of the grid.
            unknown.insert(self.trace_reference(data, kernel, number)?);
        }
        let traced = naive.writers.get(&number).filter(|all| !all.is_empty());
        let points = match (traced, tiling) {
            (Some(points), _) => points.clone(),
            (None, Some(tiling)) => self.tiled_points(data, number, &tiling, written),
            (None, None) => Vec::new(),
        };
        let mut blocks = BTreeSet::new();
        // What a candidate leaves as it was is wrong more often than what it writes.
        let untouched = pass.untouched.get(number).map_or(&[][..], Vec::as_slice);
        add_writing(&mut blocks, &points, untouched, (most / 2).max(1));
        add_writing(&mut blocks, &points, written, most);
        if let Some(tiling) = tiling {
            let left = most.saturating_sub(blocks.len() as u64);
            if left > 0 {
                let all = tiling.blocks(&thin(written, COMPARED_MAX, 1));
                blocks.extend(spread(&all, left));
            }
            // The comparison with float64 needs elements at fixed positions, which the sample may
            // lack.
            if let (Some(_), false) = (kernel.oracle, naive.proven) {
                blocks.extend(tiling.blocks(&places(tiling.count)));
            }
        }
        Ok(blocks)
    }

    /// Returns the points among `written` with the blocks that a tiling assigns to them.
    fn tiled_points(
        &self,
        data: Data,
        number: usize,
        tiling: &Tiling,
        written: &[Range<u64>],
    ) -> Vec<PointWriters> {
        let points = choose_points(self.plan, data.seed);
        let points = points.into_iter().filter(|point| point.output == number);
        let points = points.map(|point| PointWriters {
            blocks: {
                let own = overlap(std::slice::from_ref(&point.elements), written);
                tiling.blocks(&own).into_iter().collect()
            },
            elements: point.elements,
        });
        points.collect()
    }
}

/// Adds blocks that write points among these elements, the first points first, up to `most`.
fn add_writing(
    blocks: &mut BTreeSet<u64>,
    points: &[PointWriters],
    elements: &[Range<u64>],
    most: u64,
) {
    for point in points {
        let wanted = !overlap(std::slice::from_ref(&point.elements), elements).is_empty();
        let new = point.blocks.iter().filter(|at| !blocks.contains(at));
        // An element with only some of its blocks would be incomplete, so a point's blocks are
        // added together.
        if wanted && (blocks.len() + new.count()) as u64 <= most {
            blocks.extend(&point.blocks);
        }
    }
}
