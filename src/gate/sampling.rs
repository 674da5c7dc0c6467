//! Which blocks of a launch run when the whole grid would take too long.

use super::verify::Demands;
use crate::device::plan::Plan;
use crate::device::session::Blocks;
use std::ops::Range;

/// Which blocks a pass runs, and whether finding out has dirtied the buffers.
#[derive(Debug, Clone)]
pub(super) struct Selection {
    /// For each launch.
    pub(super) blocks: Vec<Blocks>,
    pub(super) probed: bool,
}

impl Selection {
    /// Everything.
    pub(super) fn whole(plan: &Plan) -> Self {
        Self {
            blocks: vec![Blocks::All; plan.launches.len()],
            probed: false,
        }
    }

    /// What the demands allow, after one block of each launch has cost `costs` lane instructions.
    ///
    /// A sample of several launches shows hazards and counts work, but its result cannot be
    /// compared: a later launch reads what all blocks of an earlier one would have written.
    pub(super) fn by_cost(plan: &Plan, demands: &Demands, seed: u64, costs: &[u64]) -> Self {
        let launches = || plan.launches.iter().zip(costs);
        let whole = launches()
            .map(|(launch, cost)| cost.saturating_mul(launch.blocks()))
            .fold(0, u64::saturating_add);
        if whole <= demands.whole_limit {
            return Self {
                probed: true,
                ..Self::whole(plan)
            };
        }
        let blocks = launches().map(|(launch, cost)| {
            let total = launch.blocks();
            let wanted = (demands.sample_limit / cost).clamp(2, 64);
            if total <= wanted {
                Blocks::All
            } else {
                Blocks::Some(sample(seed, total, wanted))
            }
        });
        Self {
            blocks: blocks.collect(),
            probed: true,
        }
    }

    pub(super) fn sampled(&self) -> bool {
        self.blocks
            .iter()
            .any(|blocks| matches!(blocks, Blocks::Some(_)))
    }
}

/// First, last and random blocks of a grid, ascending.
fn sample(seed: u64, total: u64, wanted: u64) -> Vec<u64> {
    use rand::{RngExt as _, SeedableRng as _};
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed ^ total);
    let mut chosen = std::collections::BTreeSet::from([0, total - 1]);
    while (chosen.len() as u64) < wanted.min(total) {
        chosen.insert(rng.random_range(0..total));
    }
    chosen.into_iter().collect()
}

/// Elements of a sampled output that are compared at most: an oracle element costs a dot product.
const COMPARED_MAX: u64 = 1 << 14;

/// At most [`COMPARED_MAX`] elements of the written ranges: every range keeps its two ends.
pub(super) fn thin(written: &[Range<u64>]) -> Vec<Range<u64>> {
    let total: u64 = written.iter().map(|range| range.end - range.start).sum();
    if total <= COMPARED_MAX || written.len() < 2 {
        return written.to_vec();
    }
    let keep = (COMPARED_MAX / written.len() as u64).max(2) / 2;
    let ends = |range: &Range<u64>| {
        if range.end - range.start <= 2 * keep {
            vec![range.clone()]
        } else {
            vec![range.start..range.start + keep, range.end - keep..range.end]
        }
    };
    written.iter().flat_map(ends).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_holds_both_ends_of_the_grid_and_as_many_blocks_as_wanted() {
        for seed in 0..20 {
            let blocks = sample(seed, 1000, 7);
            assert_eq!(blocks.len(), 7);
            assert_eq!((blocks[0], blocks[6]), (0, 999));
            assert!(blocks.is_sorted());
        }
        assert_eq!(sample(1, 3, 64), [0, 1, 2]);
    }

    #[test]
    fn thinning_keeps_both_ends_of_every_range() {
        let ranges: Vec<Range<u64>> = (0..4).map(|i| i << 20..(i << 20) + 100_000).collect();
        let thinned = thin(&ranges);
        let total: u64 = thinned.iter().map(|r| r.end - r.start).sum();
        assert!(total <= COMPARED_MAX, "{total}");
        for range in &ranges {
            assert!(thinned.iter().any(|r| r.start == range.start));
            assert!(thinned.iter().any(|r| r.end == range.end));
        }
    }
}
