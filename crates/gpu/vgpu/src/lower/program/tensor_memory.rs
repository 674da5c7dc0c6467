//! Operations on tensor memory.

use super::{Address, ReduxNumbers};
use crate::tensor_core::{Fill, ProductKind, Shape};

/// `tcgen05`. An address of tensor memory has no state space: only its base and offset count.
#[derive(Debug, Clone)]
pub(crate) enum TensorMemoryOp {
    /// Writes the address of this many columns (a row) to shared memory.
    Allocate {
        at: Address,
        columns: u32,
    },
    /// Rows of the address and of the number of columns.
    Free {
        first: u32,
        columns: u32,
    },
    Relinquish,
    Load(TensorTransfer),
    Store(TensorTransfer),
    WaitLoads,
    WaitStores,
    /// `tcgen05.cp`: rows of 16 or 32 bytes of shared memory.
    Fill {
        at: Address,
        /// Row of the descriptor.
        descriptor: u32,
        fill: Fill,
        /// Blocks of `.cta_group`.
        blocks: u32,
    },
    Product(Box<TensorProduct>),
    /// `tcgen05.shift`: 32 rows of 32 bytes move by a lane.
    Shift {
        at: Address,
        /// Blocks of `.cta_group`.
        blocks: u32,
    },
    Commit {
        at: Address,
        /// Row of the mask of blocks whose objects it arrives at, or `NONE`.
        multicast: u32,
    },
}

impl TensorMemoryOp {
    /// Reports whether all threads of a warp execute it together.
    pub(crate) fn is_aligned(&self) -> bool {
        !matches!(
            self,
            TensorMemoryOp::Product(_)
                | TensorMemoryOp::Fill { .. }
                | TensorMemoryOp::Shift { .. }
                | TensorMemoryOp::Commit { .. }
        )
    }
}

/// `tcgen05.ld` and `tcgen05.st`.
#[derive(Debug, Clone)]
pub(crate) struct TensorTransfer {
    pub(crate) shape: Shape,
    /// A register has the low halves of two columns.
    pub(crate) packed: bool,
    pub(crate) at: Address,
    pub(crate) data: Vec<u32>,
    /// Numbers of the registers of a load among the fragments.
    pub(crate) fragments: Vec<u32>,
    /// `.red`.
    pub(crate) reduction: Option<TensorReduction>,
}

/// Smallest or largest of what a thread loads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TensorReduction {
    pub(crate) max: bool,
    pub(crate) numbers: ReduxNumbers,
    /// Row of the result.
    pub(crate) dest: u32,
}

/// Operand A of a product.
#[derive(Debug, Clone)]
pub(crate) enum TensorSource {
    /// Address of tensor memory.
    Memory(Address),
    /// Row of a descriptor of shared memory.
    Descriptor(u32),
}

/// `tcgen05.mma`.
#[derive(Debug, Clone)]
pub(crate) struct TensorProduct {
    pub(crate) kind: ProductKind,
    pub(crate) d: Address,
    pub(crate) a: TensorSource,
    /// Row of the descriptor of B.
    pub(crate) b: u32,
    /// Row of the instruction descriptor.
    pub(crate) form: u32,
    /// Addresses of the scales of A and B.
    pub(crate) scales: Option<[Address; 2]>,
    /// Scales of a row.
    pub(crate) scales_each: usize,
    /// Rows of the masks of lanes that are not written.
    pub(crate) disabled: Vec<u32>,
    /// As in [`super::Wgmma`].
    pub(crate) adds: u32,
    pub(crate) adds_negated: bool,
    /// D is divided by two to this power first.
    pub(crate) shift: u32,
    /// Blocks of `.cta_group`.
    pub(crate) blocks: u32,
    /// The rows of A move by a lane afterwards (`.ashift`).
    pub(crate) shifts: bool,
    /// What only weight-stationary products have.
    pub(crate) stationary: Option<Stationary>,
}

/// Operands of `tcgen05.mma.ws`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stationary {
    /// Number of the buffer of B.
    pub(crate) buffer: usize,
    /// B may come from the buffer, and stays there.
    pub(crate) reads: bool,
    pub(crate) keeps: bool,
    /// Row of the mask of columns, or `NONE`.
    pub(crate) columns: u32,
}
