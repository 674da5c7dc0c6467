//! Values that the ISA leaves open, drawn from the seed of the schedule: multiprocessor and warp
//! numbers, clocks.
//!
//! PTX ISA 9.0, chapter 10: `%smid` is below `%nsmid`, not contiguous; `%warpid` is below
//! `%nwarpid` and need not be the warp's index in its block. Blocks that are resident at the same
//! time and do not fit on one multiprocessor have different multiprocessors.

use super::launch::BlockOrder;
use super::workers::Permutation;

/// Placement of the blocks of a launch on multiprocessors.
#[derive(Debug)]
pub(super) struct Placement {
    seed: u64,
    multiprocessors: u64,
    /// Block slots on all multiprocessors, in a drawn order.
    slots: Permutation,
    slot_count: u64,
    /// Numbers of the multiprocessors.
    numbers: Permutation,
    /// Warps that a multiprocessor holds.
    warps: u32,
    /// Nothing is drawn: one multiprocessor, and warps in the order of their blocks.
    plain: bool,
}

/// Returns the range of multiprocessor numbers (`%nsmid`) of a GPU with `count` multiprocessors.
pub(super) fn multiprocessor_numbers(count: u32) -> u32 {
    // More numbers than multiprocessors: `%smid` need not be contiguous.
    count + count.div_ceil(8)
}

/// Mixes bits: different inputs have different outputs (SplitMix64).
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

impl Placement {
    /// Creates a placement for a GPU of `multiprocessors`, each with room for `blocks_each` blocks
    /// and `warps` warps.
    pub(super) fn new(seed: u64, multiprocessors: u32, blocks_each: u64, warps: u32) -> Placement {
        let shuffled = |salt, count| {
            Permutation::new(
                BlockOrder::Shuffled {
                    seed: mix(seed ^ salt),
                },
                count,
            )
        };
        let slot_count = u64::from(multiprocessors) * blocks_each;
        Placement {
            seed,
            multiprocessors: multiprocessors.into(),
            slots: shuffled(1, slot_count),
            slot_count,
            numbers: shuffled(2, multiprocessor_numbers(multiprocessors).into()),
            warps,
            plain: false,
        }
    }

    /// Draws no numbers of multiprocessors and warps, if `plain`.
    pub(super) fn with_plain_numbers(self, plain: bool) -> Placement {
        Placement { plain, ..self }
    }

    /// Returns `%smid` of a block.
    pub(super) fn multiprocessor(&self, block: u64) -> u32 {
        if self.plain {
            return 0;
        }
        // Blocks beyond the capacity of the GPU take over the slots of finished ones.
        let slot = self.slots.apply(block % self.slot_count);
        self.numbers.apply(slot % self.multiprocessors) as u32
    }

    /// Returns `%warpid` of a warp in a block of `warps_of_block` warps.
    pub(super) fn warp(&self, block: u64, warp: u32, warps_of_block: u32) -> u32 {
        if self.plain {
            return warp;
        }
        let slot = self.slots.apply(block % self.slot_count);
        // The first warp number is drawn per multiprocessor; blocks on it then have consecutive
        // ranges, so that resident warps have distinct numbers.
        let start = mix(self.seed ^ (slot % self.multiprocessors) << 8) % u64::from(self.warps);
        let before = slot / self.multiprocessors * u64::from(warps_of_block);
        ((start + before + u64::from(warp)) % u64::from(self.warps)) as u32
    }

    /// Returns the initial clock of a block, in cycles.
    pub(super) fn clock(&self, block: u32) -> u64 {
        mix(self.seed ^ u64::from(block) << 16) & 0x3fff_ffff
    }

    /// Returns the cycles between two reads of a clock.
    pub(super) fn cycles(&self, now: u64) -> u64 {
        16 + mix(self.seed ^ now) % 256
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn blocks_that_fill_the_gpu_have_a_multiprocessor_each_below_nsmid() {
        for seed in [0, 1, 77] {
            let placement = Placement::new(seed, 58, 1, 48);
            let all: BTreeSet<u32> = (0..58).map(|b| placement.multiprocessor(b)).collect();
            assert_eq!(all.len(), 58);
            assert!(
                all.iter()
                    .all(|number| *number < multiprocessor_numbers(58))
            );
            assert_ne!(all, (0..58).collect(), "the numbers are not contiguous");
        }
    }

    #[test]
    fn warps_of_a_multiprocessor_have_different_numbers() {
        let placement = Placement::new(3, 2, 4, 32);
        let mut taken = BTreeSet::new();
        for block in 0..8 {
            for warp in 0..8 {
                let number = placement.warp(block, warp, 8);
                assert!(number < 32);
                assert!(taken.insert((placement.multiprocessor(block), number)));
            }
        }
    }

    #[test]
    fn another_seed_is_another_placement() {
        let draw = |seed| {
            let placement = Placement::new(seed, 108, 2, 64);
            let blocks = (0..16).map(|b| placement.multiprocessor(b));
            (
                blocks.collect::<Vec<_>>(),
                placement.clock(0),
                placement.warp(0, 0, 4),
            )
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1).0, draw(2).0);
        assert_ne!(draw(1).1, draw(2).1);
    }
}
