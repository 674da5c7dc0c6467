//! Choice of the blocks of a launch to run if the whole grid would take too long.

use super::verify::Demands;
use std::ops::Range;
use tuner_core::plan::Plan;

/// Returns the representative block, which is not at an edge.
pub(super) fn first(total: u64) -> u64 {
    total / 2
}

/// Chooses the blocks of each launch if the outputs do not determine them: the number that the demands
/// allow at `costs` lane instructions per block.
pub(super) fn blocks(plan: &Plan, demands: &Demands, seed: u64, costs: &[u64]) -> Vec<Vec<u64>> {
    let launches = plan.launches.iter().zip(costs);
    let blocks = launches.map(|(launch, cost)| {
        let wanted = (demands.sample_limit / (*cost).max(1)).clamp(1, BLOCKS_MAX);
        let mut blocks = others(seed, launch.blocks(), wanted - 1);
        let first = first(launch.blocks());
        blocks.insert(blocks.partition_point(|block| *block < first), first);
        blocks
    });
    blocks.collect()
}

/// Maximum number of sampled blocks of one launch.
pub(super) const BLOCKS_MAX: u64 = 64;

/// Returns up to `wanted` blocks other than the [`first`], ascending: both ends of the grid, then random
/// ones.
fn others(seed: u64, total: u64, wanted: u64) -> Vec<u64> {
    use rand::{RngExt as _, SeedableRng as _};
    let first = first(total);
    if total <= wanted + 1 {
        return (0..total).filter(|block| *block != first).collect();
    }
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed ^ total);
    let mut chosen = std::collections::BTreeSet::new();
    // Edge handling fails at the ends, so they come before random blocks.
    let mut ends = [total - 1, 0].into_iter();
    while (chosen.len() as u64) < wanted {
        let block = ends.next().unwrap_or_else(|| rng.random_range(0..total));
        if block != first {
            chosen.insert(block);
        }
    }
    chosen.into_iter().collect()
}

/// Maximum number of compared elements of a sampled output: an oracle element costs a dot product.
pub(super) const COMPARED_MAX: u64 = 1 << 14;

/// Multiplications of a comparison with an oracle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WorkBudget {
    /// Cost of one element.
    pub(super) element: u64,
    /// Limit of all elements.
    pub(super) total: u64,
}

/// Returns the number of elements to compare within the budget.
pub(super) fn compared_max(budget: WorkBudget) -> u64 {
    (2 * budget.total / budget.element.max(1)).clamp(COMPARED_MAX / 4, COMPARED_MAX)
}

/// Thins the written ranges to at most `most` elements. Every range keeps its two ends. If these are
/// shorter than a tile, half of the elements are whole tiles of some ranges, for the norm.
pub(super) fn thin(written: &[Range<u64>], most: u64, tile: u64) -> Vec<Range<u64>> {
    let total: u64 = written.iter().map(|range| range.end - range.start).sum();
    if total <= most || written.len() < 2 {
        return written.to_vec();
    }
    let ranges = written.len() as u64;
    let piece = tile.clamp(1, PIECE_MAX);
    // Ends shorter than a tile cannot be judged by the tile's norm.
    let short = most / ranges / 2 < piece;
    let of_ends = if short { most / 2 } else { most };
    let keep = (of_ends / ranges).max(2) / 2;
    let mut kept = std::collections::BTreeMap::new();
    for Range { start, end } in written.iter().cloned() {
        if end - start <= 2 * keep {
            kept.insert(start, end);
        } else {
            kept.extend([(start, start + keep), (end - keep, end)]);
        }
    }
    let tiles = if short { of_ends / piece } else { 0 };
    let step = ranges.div_ceil(tiles.max(1));
    let some = written.iter().step_by(usize::try_from(step).unwrap_or(1));
    for range in some.take(usize::try_from(tiles).unwrap_or(0)) {
        let start = range.start.next_multiple_of(tile.max(1));
        if start + piece <= range.end {
            let end = kept.entry(start).or_insert(start + piece);
            *end = (*end).max(start + piece);
        }
    }
    apart(kept)
}

/// Returns ranges ordered by start, without the parts that earlier ranges cover.
fn apart(ranges: std::collections::BTreeMap<u64, u64>) -> Vec<Range<u64>> {
    let mut end = 0;
    let apart = ranges.into_iter().filter_map(|(start, last)| {
        let start = start.max(end);
        end = end.max(last);
        (start < last).then_some(start..last)
    });
    apart.collect()
}

/// Limits the multiplications for comparing one output with an oracle: on the virtual GPU the cost
/// of the candidate itself, on a real GPU and for published results more.
pub(super) fn work_max(screening: bool) -> u64 {
    if screening { 1 << 27 } else { 1 << 30 }
}

/// The same limit for a hard case, which is compared whole if affordable because its results are
/// stored on disk: 20 s of one core for a matrix product of 4096³.
pub(super) const HARD_WORK_MAX: u64 = 1 << 36;

/// Elements of a piece of a tile that is compared if whole tiles cost too much.
pub(super) const PIECE_MAX: u64 = 1024;

/// Returns the ranges, or pieces of their tiles up to the limit for a problem that is too large to compare
/// whole on the host. The pieces are both ends and random others, equal for every candidate.
pub(super) fn affordable(
    written: &[Range<u64>],
    tile: u64,
    budget: WorkBudget,
    seed: u64,
) -> Vec<Range<u64>> {
    use rand::{RngExt as _, SeedableRng as _};
    let total: u64 = written.iter().map(|range| range.end - range.start).sum();
    let most = (budget.total / budget.element.max(1)).max(PIECE_MAX);
    let [whole] = written else {
        // Several ranges are already a sample.
        return written.to_vec();
    };
    if total <= most {
        return written.to_vec();
    }
    let tile = tile.clamp(1, total);
    let piece = tile.min(PIECE_MAX);
    let at = |number: u64, offset: u64| {
        let start = whole.start + number * tile + offset;
        start..(start + piece).min(whole.end)
    };
    let tiles = total.div_ceil(tile);
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed ^ total);
    let mut pieces = std::collections::BTreeMap::new();
    let mut keep = |range: Range<u64>| {
        if range.start < range.end {
            pieces.insert(range.start, range.end);
        }
    };
    keep(at(0, 0));
    keep(whole.end - piece..whole.end);
    for _ in 0..(most / piece).saturating_sub(2) {
        // Inside one tile, whose norm is judged as a whole.
        let offset = rng.random_range(0..=tile - piece);
        keep(at(rng.random_range(0..tiles), offset));
    }
    apart(pieces)
}

#[cfg(test)]
mod tests;
