//! Blocks that do not run, as a block that runs alone sees them.

use super::launch::{BlockSet, Launch};
use gpu_arithmetic::atomic::{AtomOp, AtomType};

/// Increment by the last block that arrives at a grid barrier: the bit by which the others see that
/// all have arrived (`sync_grids` of cooperative groups).
const ALL_ARRIVED: u64 = 1 << 31;

/// Effect of the blocks that do not run on the additions of one that runs alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Others {
    /// Address of the word that a cooperative grid synchronises on: all have arrived.
    barrier: Option<u64>,
    /// Clusters that add before this one and in all, each time that this one adds.
    turns: Option<(u64, u64)>,
}

/// An addition of a lane, with those of the other blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Added {
    /// The number to be added.
    pub value: u64,
    /// The part of it that others add before: the result is larger by it.
    pub before: u64,
}

/// Atomic operations of the lanes of an instruction, with the effect of the other blocks on them.
#[derive(Debug, Clone, Default)]
pub struct Additions {
    barrier: Option<u64>,
    turns: (u64, u64),
    /// Lane, address and value of each, if the instruction takes numbers from counters.
    taking: Vec<(usize, u64, u64)>,
}

impl Others {
    /// Prepares the operations of an instruction. One that returns the old numbers takes them, while a
    /// block runs alone in its turn. `lanes` are lane, address and value of each.
    pub fn additions(
        &self,
        op: AtomOp,
        ty: AtomType,
        returns: bool,
        lanes: impl Iterator<Item = (usize, u64, u64)>,
    ) -> Additions {
        let whole = [AtomType::U32, AtomType::S32, AtomType::U64, AtomType::S64].contains(&ty);
        if op != AtomOp::Add {
            return Additions::default();
        }
        let turns = self.turns.filter(|_| whole && returns);
        Additions {
            barrier: self.barrier,
            turns: turns.unwrap_or_default(),
            taking: turns.map_or_else(Vec::new, |_| lanes.collect()),
        }
    }
}

impl Additions {
    /// Returns the number that a lane uses for its value; counters are in global memory.
    ///
    /// Compilers combine the additions of a warp to one, so that its lanes take their numbers
    /// together: the last of them adds for the other blocks.
    #[must_use]
    pub fn added(&self, lane: usize, at: u64, is_global: bool, value: u64) -> Added {
        let alone = |value| Added { value, before: 0 };
        if self.barrier == Some(at) {
            return alone(ALL_ARRIVED);
        }
        if !is_global || !self.taking.iter().any(|(other, ..)| *other == lane) {
            return alone(value);
        }
        let mut same = self.taking.iter().filter(|(_, other, _)| *other == at);
        let sum = same
            .clone()
            .fold(0_u64, |sum, (.., value)| sum.wrapping_add(*value));
        let (rank, all) = self.turns;
        let is_last = same.next_back().is_some_and(|(other, ..)| *other == lane);
        let rest = if is_last {
            sum.wrapping_mul(all - 1)
        } else {
            0
        };
        Added {
            value: value.wrapping_add(rest),
            before: sum.wrapping_mul(rank),
        }
    }
}

impl Launch {
    /// Returns the effect of the other blocks on a block, or a cluster of that shape, that runs alone;
    /// `workspace` is the address of the workspace of a cooperative launch.
    #[must_use]
    pub fn others(&self, workspace: Option<u64>, cluster: Option<[u32; 3]>) -> Others {
        let blocks: u64 = self.grid.iter().map(|extent| u64::from(*extent)).product();
        let alone = matches!(&self.blocks, BlockSet::List(list) if list.len() == 1) && blocks > 1;
        if !alone {
            return Others::default();
        }
        let each: u32 = cluster.map_or(1, |shape| shape.iter().product());
        Others {
            barrier: workspace.map(|address| address + 4),
            turns: self
                .turn
                .map(|rank| (rank, blocks / u64::from(each.max(1)))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_taken_in_turn_and_an_arrival_is_that_of_all() {
        let mut launch = Launch::new("k", [8, 1, 1], [32, 1, 1], Vec::new());
        launch.blocks = BlockSet::List(vec![3]);
        launch.turn = Some(1);
        let others = launch.others(Some(96), Some([2, 1, 1]));
        let lanes = [(0, 100, 1), (1, 100, 1), (2, 200, 5)];
        let add = others.additions(AtomOp::Add, AtomType::U32, true, lanes.into_iter());
        let added = |lane, at, value| {
            let added = add.added(lane, at, true, value);
            (added.value, added.before)
        };
        // Its address is that of the grid's word.
        assert_eq!(added(0, 100, 1), (ALL_ARRIVED, 0));
        // The fourth part of the clusters is before, and the rest after.
        assert_eq!(added(2, 200, 5), (20, 5));
        // Shared memory has no other takers.
        assert_eq!(add.added(2, 200, false, 5).value, 5);
        let plain = others.additions(AtomOp::Add, AtomType::U32, false, lanes.into_iter());
        assert_eq!(plain.added(2, 200, true, 5).value, 5);
    }
}
