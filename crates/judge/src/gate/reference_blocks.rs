//! Choice of the blocks of a reference kernel that is not run whole.

use super::adversarial::Data;
use super::naive::{Kernel, places};
use super::partial::PartialReference;
use super::points::choose_points;
use super::ranges::overlap;
use super::sampling::{COMPARED_MAX, thin};
use super::tiling::{Tiling, spread};
use super::verify::{Gate, Stop};
use super::writers::PointWriters;
use std::collections::BTreeSet;
use std::collections::btree_map::Entry;
use std::ops::Range;

/// Elements of an output that a candidate is compared at.
#[derive(Debug, Clone, Copy)]
pub(super) struct WantedElements<'w> {
    /// The output, by its number among the compared arguments.
    pub(super) number: usize,
    pub(super) written: &'w [Range<u64>],
    /// Wanted elements of an in-out buffer that no block of the candidate writes.
    pub(super) untouched: &'w [Range<u64>],
}

impl Gate<'_> {
    /// Chooses up to `most` blocks of a reference kernel that write wanted elements. Blocks of the first
    /// points come first, so that they coincide with the candidate's.
    pub(super) fn reference_blocks(
        &mut self,
        data: Data,
        kernel: &Kernel<'_>,
        naive: &mut PartialReference,
        wanted: WantedElements<'_>,
        most: u64,
    ) -> Result<BTreeSet<u64>, Stop> {
        let WantedElements {
            number,
            written,
            untouched,
        } = wanted;
        let argument = self.plan.compared().nth(number);
        let inout = argument.is_some_and(|argument| argument.role.is_updated());
        let tiling = naive.tilings.get(number).copied().flatten();
        // Only a trace shows that no block writes an element of an in-out buffer.
        if (inout || tiling.is_none())
            && let Entry::Vacant(unknown) = naive.writers.entry(number)
        {
            // Traced once for all candidates: a trace covers all blocks of the grid.
            unknown.insert(self.trace_reference(data, kernel, number)?);
        }
        let traced = naive.writers.get(&number).filter(|all| !all.is_empty());
        let points = match (traced, tiling) {
            (Some(points), _) => points.clone(),
            (None, Some(tiling)) => self.tiled_points(data, number, &tiling, written),
            (None, None) => Vec::new(),
        };
        let mut blocks = BTreeSet::new();
        // Elements that a candidate leaves unchanged are wrong more often than written ones.
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
