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

/// Additions of the lanes of an instruction that takes numbers from counters in global memory.
#[derive(Debug, Clone, Default)]
pub struct Numbers {
    turns: (u64, u64),
    /// Lane, address and value of each.
    additions: Vec<(usize, u64, u64)>,
}

impl Others {
    /// Returns the additions of an instruction that takes numbers: one with a result, while a block
    /// runs alone in its turn. `additions` are lane, address and value of each.
    pub fn numbers(
        &self,
        op: AtomOp,
        ty: AtomType,
        additions: impl Iterator<Item = (usize, u64, u64)>,
    ) -> Numbers {
        let whole = [AtomType::U32, AtomType::S32, AtomType::U64, AtomType::S64].contains(&ty);
        match self.turns {
            Some(turns) if op == AtomOp::Add && whole => Numbers {
                turns,
                additions: additions.collect(),
            },
            _ => Numbers::default(),
        }
    }

    /// Returns the number that an atomic operation of a lane on `value` at an address adds.
    #[must_use]
    pub fn added(&self, at: u64, op: AtomOp, value: u64) -> Added {
        let arrives = op == AtomOp::Add && self.barrier == Some(at);
        Added {
            value: if arrives { ALL_ARRIVED } else { value },
            before: 0,
        }
    }
}

impl Numbers {
    /// Returns the number that a lane adds, if the instruction takes numbers.
    ///
    /// Compilers combine the additions of a warp to one, so that its lanes take their numbers
    /// together: the last of them adds for the other blocks.
    #[must_use]
    pub fn added(&self, lane: usize) -> Option<Added> {
        let (_, at, value) = self.additions.iter().find(|(other, ..)| *other == lane)?;
        let mut same = self.additions.iter().filter(|(_, other, _)| other == at);
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
        Some(Added {
            value: value.wrapping_add(rest),
            before: sum.wrapping_mul(rank),
        })
    }
}

impl Launch {
    /// Returns the effect of the other blocks on a block, or a cluster of `each` blocks, that runs
    /// alone; `workspace` is the address of the workspace of a cooperative launch.
    #[must_use]
    pub fn others(&self, workspace: Option<u64>, each: u64) -> Others {
        let blocks: u64 = self.grid.iter().map(|extent| u64::from(*extent)).product();
        let alone = matches!(&self.blocks, BlockSet::List(list) if list.len() == 1) && blocks > 1;
        if !alone {
            return Others::default();
        }
        Others {
            barrier: workspace.map(|address| address + 4),
            turns: self.turn.map(|rank| (rank, blocks / each.max(1))),
        }
    }
}
