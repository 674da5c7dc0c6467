//! Elements of the outputs that a sample compares. They are chosen only from the outputs' index space and
//! the seed of the data, so that they are equal for every candidate and for the reference.
//!
//! A kernel could compute only the compared elements if it knew them: a new seed draws others.

use std::ops::Range;
use tuner_core::plan::{Plan, PlanArgument};

/// Consecutive elements of a point: one for each lane of a warp.
const POINT_ELEMENTS: u64 = 32;

/// Points drawn uniformly from an output.
const DRAWN_POINTS: u64 = 256;

/// Byte offsets at which 32-bit arithmetic overflows.
const OVERFLOWS: [u64; 2] = [1 << 31, 1 << 32];

/// Elements of one output, by its number among the compared arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Point {
    pub(super) output: usize,
    pub(super) elements: Range<u64>,
}

/// Chooses the points of a plan, the most revealing first. `seed` draws the random ones.
pub(super) fn choose_points(plan: &Plan, seed: u64) -> Vec<Point> {
    let outputs: Vec<Vec<Range<u64>>> = plan
        .compared()
        .map(|argument| points_of_output(argument, &plan.tile_sizes, seed))
        .collect();
    let longest = outputs.iter().map(Vec::len).max().unwrap_or(0);
    let mut points = Vec::new();
    // Outputs take turns: each gets its first points before any gets its last.
    for turn in 0..longest {
        for (output, ranges) in outputs.iter().enumerate() {
            if let Some(elements) = ranges.get(turn).cloned() {
                points.push(Point { output, elements });
            }
        }
    }
    points
}

fn points_of_output(argument: &PlanArgument, tile_sizes: &[u64], seed: u64) -> Vec<Range<u64>> {
    let size = argument.element.size() as u64;
    let count = argument.bytes() / size;
    if count == 0 {
        return Vec::new();
    }
    let columns = argument.shape.last().copied().unwrap_or(1).clamp(1, count);
    let rows = count / columns;
    let mut starts = borders(&argument.shape, count);
    let far = OVERFLOWS.iter().map(|bytes| bytes / size);
    starts.extend(far.chain(OVERFLOWS).filter(|element| *element < count));
    let fixed = starts.len();
    let mut rng = Splitmix(seed ^ count);
    let mut drawn = (0..DRAWN_POINTS).map(|stratum| {
        // One from each of equal parts, so that no large region is omitted.
        let part = (count / DRAWN_POINTS).max(1);
        (stratum * part + rng.next() % part).min(count - 1)
    });
    let mut corners = corners(rows, columns, tile_sizes).into_iter();
    // Tile corners find faults at edges; drawn elements find the remaining ones.
    loop {
        let (corner, element) = (corners.next(), drawn.next());
        if corner.is_none() && element.is_none() {
            break;
        }
        starts.extend(corner);
        starts.extend(element);
    }
    // Without a shuffle a small sample would consist of neighbouring blocks.
    rng.shuffle(&mut starts[fixed..]);
    let mut seen = std::collections::HashSet::new();
    starts.retain(|start| seen.insert(*start));
    let end = |start: u64| {
        (start + POINT_ELEMENTS)
            .min(count)
            .min((start / columns + 1) * columns)
    };
    starts.into_iter().map(|start| start..end(start)).collect()
}

/// Returns the elements that a sample of any size needs: the middle, the end, then the last and the
/// first index of each extent, the innermost first.
fn borders(shape: &[u64], count: u64) -> Vec<u64> {
    // The last element gets a separate point: blocks that omit a remainder end just before it.
    let mut starts = vec![count / 2, count.saturating_sub(POINT_ELEMENTS), count - 1];
    let (mut ends, mut stride) = (Vec::new(), 1u64);
    for extent in shape.iter().rev().copied().filter(|extent| *extent > 1) {
        // Other indices are those of the middle element.
        let at = count / 2 / stride % extent;
        let first = (count / 2).saturating_sub(at * stride);
        starts.push((first + (extent - 1) * stride).min(count - 1));
        ends.push(first);
        stride = stride.saturating_mul(extent);
    }
    starts.push(0);
    starts.extend(ends);
    starts
}

/// Returns first elements of the tiles at the near and the far corner, for tiles of 2^k and 3 * 2^k
/// rows and columns and of the given sizes.
fn corners(rows: u64, columns: u64, tile_sizes: &[u64]) -> Vec<u64> {
    let mut found = vec![(rows - 1) * columns, columns - 1];
    let sizes = (3..40).flat_map(|k| [1u64 << k, 3u64 << (k - 1)]);
    let sizes = sizes.chain(tile_sizes.iter().copied());
    for tile in sizes.filter(|tile| *tile < rows.max(columns)) {
        let last_row = rows / tile * tile;
        let last_column = columns / tile * tile;
        let row_edges = [tile - 1, tile, last_row.saturating_sub(1), last_row];
        let column_edges = [tile - 1, tile, last_column.saturating_sub(1), last_column];
        for row in row_edges.into_iter().filter(|row| *row < rows) {
            found.push(row * columns);
        }
        for column in column_edges.into_iter().filter(|column| *column < columns) {
            found.push(column);
            found.push((rows - 1) * columns + column);
        }
    }
    found
}

/// A generator whose numbers depend on its seed alone (Steele, Lea and Flood, "Fast Splittable
/// Pseudorandom Number Generators", 2014): points must not change with a library's version.
struct Splitmix(u64);

impl Splitmix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn shuffle(&mut self, items: &mut [u64]) {
        for last in (1..items.len()).rev() {
            let other = self.next() % (last as u64 + 1);
            items.swap(last, usize::try_from(other).unwrap_or(last));
        }
    }
}

#[cfg(test)]
mod tests;
