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

/// An addition, with those of the other blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Added {
    /// The number to be added.
    pub value: u64,
    /// The part of it that others add before: the result is larger by it.
    pub before: u64,
}

impl Others {
    /// Returns the number that an atomic operation on `value` at an address adds. `returns` tells
    /// that the instruction returns the old number.
    #[must_use]
    pub fn added(&self, at: u64, op: AtomOp, ty: AtomType, returns: bool, value: u64) -> Added {
        let whole = matches!(
            ty,
            AtomType::U32 | AtomType::S32 | AtomType::U64 | AtomType::S64
        );
        if op == AtomOp::Add && self.barrier == Some(at) {
            return Added {
                value: ALL_ARRIVED,
                before: 0,
            };
        }
        match self.turns {
            Some((rank, all)) if op == AtomOp::Add && returns && whole => Added {
                value: value.wrapping_mul(all),
                before: value.wrapping_mul(rank),
            },
            _ => Added { value, before: 0 },
        }
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
