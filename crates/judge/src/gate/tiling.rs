//! Mapping from output elements to the blocks of a naive kernel that write them, inferred from
//! the elements of one block.
//!
//! A wrong inference costs only work: only elements that a block actually wrote are compared.

use std::collections::BTreeSet;
use std::ops::Range;

/// Distribution of an output over blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tiling {
    /// Elements of the output.
    pub(super) count: u64,
    /// Elements of a row: the last extent.
    columns: u64,
    /// Rows and columns of a block's tile.
    tile: [u64; 2],
    /// Blocks along x.
    along_x: u64,
    layout: Layout,
}

/// Arrangement of tiles in the grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// A tile is a run of consecutive elements, counted as columns of one long row.
    Runs,
    /// x of the grid runs along the rows, y and z down the columns.
    AcrossX,
    /// Tiles are numbered row by row, independent of the shape of the grid.
    Numbered,
    /// x of the grid runs down the columns, y along the rows.
    DownX,
}

impl Tiling {
    /// Infers the layout from the elements that block `block` of a grid wrote, ascending; `None` if
    /// no layout explains them.
    pub(super) fn learn(
        shape: &[u64],
        grid: [u64; 3],
        block: u64,
        wrote: &[Range<u64>],
    ) -> Option<Self> {
        let (first, last) = (wrote.first()?.start, wrote.last()?.end - 1);
        let count = shape.iter().product();
        let columns = shape.last().copied().unwrap_or(1).max(1);
        let left = wrote.iter().map(|range| range.start % columns).min()?;
        let right = wrote
            .iter()
            .map(|range| (range.end - 1) % columns)
            .max()?
            .max(left);
        let rows = last / columns - first / columns + 1;
        let of = |layout, columns, tile| Self {
            count,
            columns,
            tile,
            along_x: grid[0],
            layout,
        };
        let run = (wrote.len() == 1).then(|| of(Layout::Runs, count, [1, last - first + 1]));
        let tile = [rows, right - left + 1];
        let tiled = [Layout::AcrossX, Layout::Numbered, Layout::DownX];
        let tiled = tiled.into_iter().map(|layout| of(layout, columns, tile));
        run.into_iter()
            .chain(tiled)
            // Both ends must map back to the block that wrote them; any other layout is refuted.
            .find(|tiling| [first, last].map(|at| tiling.block(at)) == [block; 2])
    }

    fn block(&self, element: u64) -> u64 {
        let down = element / self.columns / self.tile[0];
        let across = element % self.columns / self.tile[1];
        match self.layout {
            Layout::Runs => across,
            Layout::AcrossX => across + self.along_x * down,
            Layout::Numbered => across + self.columns.div_ceil(self.tile[1]) * down,
            Layout::DownX => down + self.along_x * across,
        }
    }

    /// Returns the blocks that write these elements.
    pub(super) fn blocks(&self, elements: &[Range<u64>]) -> BTreeSet<u64> {
        let mut blocks = BTreeSet::new();
        for range in elements {
            let mut at = range.start;
            while at < range.end {
                blocks.insert(self.block(at));
                let column = at % self.columns;
                at += (self.tile[1] - column % self.tile[1]).min(self.columns - column);
            }
        }
        blocks
    }
}

/// Returns at most `most` of the blocks, evenly spaced.
pub(super) fn spread(blocks: &BTreeSet<u64>, most: u64) -> BTreeSet<u64> {
    let step = (blocks.len() as u64).div_ceil(most.max(1)).max(1);
    let step = usize::try_from(step).unwrap_or(usize::MAX);
    blocks.iter().copied().step_by(step).collect()
}

#[cfg(test)]
mod tests;
