//! Values that the ISA leaves open, drawn from the seed of the schedule: multiprocessor and warp
//! numbers, numbers of launches, clocks.
//!
//! PTX ISA 9.0, chapter 10: `%smid` is below `%nsmid`, not contiguous; `%warpid` is below
//! `%nwarpid` and need not be the warp's index in its block. Blocks that are resident at the same
//! time and do not fit on one multiprocessor have different multiprocessors.

use super::launch::BlockOrder;
use super::workers::Permutation;

/// Reads of a clock after which no step of a block is long: a warp that polls gives up after a second, perhaps, and
/// reads the clock a million times in one here.
const READS_WITH_LONG_STEPS: u32 = 128;

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
    number_count: u32,
    /// Warps that a multiprocessor holds.
    warps: u32,
    /// Nothing is drawn: one multiprocessor, and warps in the order of their blocks.
    plain: bool,
}

/// Returns the range of multiprocessor numbers (`%nsmid`) of a GPU with `count` multiprocessors.
fn multiprocessor_numbers(seed: u64, count: u32) -> u32 {
    match seed {
        // More numbers than multiprocessors: `%smid` need not be contiguous.
        0 => count + count.div_ceil(8),
        // On most GPUs it is: a kernel that waits for the number of its GPU meets it in the second run.
        _ => count,
    }
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
        let number_count = multiprocessor_numbers(seed, multiprocessors);
        Placement {
            seed,
            multiprocessors: multiprocessors.into(),
            slots: shuffled(1, slot_count),
            slot_count,
            numbers: shuffled(2, number_count.into()),
            number_count,
            warps,
            plain: false,
        }
    }

    /// Draws no numbers of multiprocessors and warps, if `plain`.
    pub(super) fn with_plain_numbers(self, plain: bool) -> Placement {
        Placement { plain, ..self }
    }

    /// Returns `%nsmid`.
    pub(super) fn multiprocessor_count(&self) -> u32 {
        self.number_count
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

    /// Returns the cycles between two reads of a clock: a few, and now and then as many as a warp waits that others
    /// keep from running. `reads` is the number of earlier reads of the block.
    pub(super) fn cycles(&self, now: u64, reads: u32) -> u64 {
        let drawn = mix(self.seed ^ now);
        match drawn >> 60 {
            0 if !self.plain && reads < READS_WITH_LONG_STEPS => 16 + (drawn & 0xf_ffff),
            _ => 16 + drawn % 256,
        }
    }

    /// Returns `%gridid` of launch number `launch` of this memory.
    pub(super) fn grid(&self, launch: u32) -> u32 {
        if self.plain {
            return launch;
        }
        // Of a context whose other launches nobody knows.
        (mix(self.seed ^ 4) as u32 >> 8).wrapping_add(launch)
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
            let most = placement.multiprocessor_count();
            assert!(all.iter().all(|number| *number < most));
            let contiguous: BTreeSet<u32> = (0..58).collect();
            assert_eq!(all != contiguous, seed == 0, "the first draw has gaps");
            assert_eq!(most > 58, seed == 0);
        }
    }

    #[test]
    fn launches_have_different_grid_numbers_which_do_not_count_from_zero() {
        let (one, other) = (Placement::new(1, 58, 1, 48), Placement::new(2, 58, 1, 48));
        assert_eq!(one.grid(3), one.grid(2) + 1);
        assert_ne!(one.grid(0), other.grid(0));
        assert_ne!(Placement::new(0, 58, 1, 48).grid(1), 1);
        assert_eq!(one.with_plain_numbers(true).grid(2), 2);
    }

    #[test]
    fn some_steps_of_the_clock_are_long() {
        let placement = Placement::new(1, 58, 1, 48);
        let steps: Vec<u64> = (0..1000).map(|now| placement.cycles(now, 0)).collect();
        let long = steps.iter().filter(|step| **step > 1000).count();
        assert!((30..100).contains(&long), "{long}");
        assert!(steps.iter().all(|step| *step >= 16));
    }

    #[test]
    fn a_block_that_reads_the_clock_until_it_has_waited_long_enough_does_not_get_there_by_leaps() {
        for seed in 0..20 {
            let placement = Placement::new(seed, 58, 1, 48);
            let begin = placement.clock(3);
            let end = (0..1_000_000).fold(begin, |now, reads| now + placement.cycles(now, reads));
            assert!(end - begin < 200_000_000, "{seed}: {}", end - begin);
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
