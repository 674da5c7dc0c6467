//! Elements that a proof compares with an oracle: after a whole run, at least a million elements
//! of every output, or all of them.

use super::sampling::PIECE_MAX;
use rand::{RngExt as _, SeedableRng as _};
use std::ops::Range;

/// Minimum elements of an output that a proof compares; smaller outputs are compared whole.
pub(super) const PROOF_ELEMENTS: u64 = 1_000_000;

/// Chooses pieces of a fully written range, ascending and disjoint. The range is cut into equal
/// slices, and each contributes one piece at a position drawn from the seed.
pub(super) fn compared_pieces(written: &Range<u64>, tile: u64, seed: u64) -> Vec<Range<u64>> {
    let total = written.end - written.start;
    let tile = tile.max(1);
    let piece = tile.min(PIECE_MAX);
    let pieces = PROOF_ELEMENTS.div_ceil(piece);
    let slice = total / pieces;
    // A slice barely larger than its piece is compared whole.
    if slice < piece.saturating_mul(3) {
        return vec![written.clone()];
    }
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed ^ total);
    let place = |number: u64| {
        // The shift into a tile below is shorter than a piece, so this margin keeps pieces apart.
        let chosen = rng.random_range(piece..=slice - piece);
        let start = written.start + number * slice + chosen;
        // Inside one tile, whose error norm is judged: a piece across two would yield two short
        // norms.
        let start = start - start % tile + (start % tile).min(tile - piece);
        start..start + piece
    };
    let mut chosen: Vec<Range<u64>> = (0..pieces).map(place).collect();
    // Edge handling fails at the two ends.
    if let Some(first) = chosen.first_mut() {
        *first = written.start..written.start + piece;
    }
    if let Some(last) = chosen.last_mut() {
        *last = written.end - piece..written.end;
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the number of elements, and that the pieces ascend without overlap inside the output.
    fn check(total: u64, tile: u64) {
        let pieces = compared_pieces(&(0..total), tile, 7);
        let compared: u64 = pieces.iter().map(|piece| piece.end - piece.start).sum();
        assert!(
            compared >= PROOF_ELEMENTS.min(total),
            "{total} {tile}: {compared}"
        );
        assert!(pieces.windows(2).all(|pair| pair[0].end <= pair[1].start));
        assert_eq!(pieces[0].start, 0);
        assert_eq!(pieces[pieces.len() - 1].end, total);
    }

    #[test]
    fn a_million_elements_or_all_are_compared() {
        for total in [
            1,
            1000,
            999_999,
            1_000_001,
            1_999_999,
            2_100_000,
            1 << 24,
            1 << 32,
        ] {
            for tile in [1, 3, 64, 1024, 1 << 20] {
                check(total, tile);
            }
        }
    }

    #[test]
    fn an_output_without_elements_has_nothing_to_compare() {
        assert_eq!(compared_pieces(&(0..0), 64, 7), vec![0..0]);
    }
}
