//! Operations of lowered instructions.

use super::atomics::Atomic;
use super::boxes::BoxCopy;
use super::images::ImageOp;
use super::memory::{Access, AddressOp, Copy, StateSpace};
use super::registers::{Origin, Pred, Registers, Source};
use super::sync::Sync;
use super::tensor_core::TensorCoreOp;
use super::warpgroup::Product;

/// Operation of an instruction that accesses registers only, for the lanes of a mask.
pub(super) type Run = Box<dyn Fn(&mut Registers, u32) + Send + std::marker::Sync>;
/// An instruction that the machine does not implement.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("instruction {name} at {address:#x}")]
pub struct Unavailable {
    /// Name with all modifiers.
    pub name: String,
    /// Byte address in the kernel's code.
    pub address: u32,
}

/// Operands of a block-wide barrier.
#[derive(Debug, Clone, Copy)]
pub(super) struct Barrier {
    pub(super) index: Source,
    /// Number of participating threads; all if absent.
    pub(super) threads: Option<Source>,
    /// True if the number of threads is the high half of its word.
    pub(super) packed: bool,
    pub(super) waits: bool,
    /// Reduction of a predicate: 0 counts, 1 is all, 2 is any.
    pub(super) reduction: Option<(u8, Pred)>,
}

/// Control-flow operation. Targets are instruction indices.
pub(super) enum Control {
    Branch(u32, Pred),
    /// All lanes jump if the predicate holds in any lane.
    BranchAny(u32, Pred),
    /// Jumps if lanes of a mask are in other paths.
    Diverged(u32, Source),
    /// Jumps if all lanes of a mask are in this path.
    Converged(u32, Source),
    /// Jumps to the byte address in a register pair plus an offset.
    Indirect(Origin, i64),
    /// Calls the function whose address the origin holds.
    Call(Origin),
    /// Stops the launch.
    Trap,
    Exit,
    /// Sets the participants of a convergence barrier to the present lanes.
    Join(u8),
    Sync(u8),
    Break(u8, Pred),
    /// Waits for the lanes of a mask, or for all.
    Members(Option<Source>),
    Yield,
    Barrier(Box<Barrier>),
    /// Arrives at the barrier of the cluster, and waits for the phase of the last arrival.
    ClusterArrive,
    ClusterWait,
    /// Waits until all warps of the warp-group have issued all but this many groups of products.
    Products(u32),
}

/// Operation of an instruction.
pub(super) enum Op {
    Registers(Run),
    /// Loads constants from a per-lane address.
    Constants(Run, Origin),
    Nothing,
    Control(Control),
    Memory(Box<Access>),
    Atomic(Box<Atomic>),
    Copy(Box<Copy>),
    Sync(Box<Sync>),
    /// A warp's part of a product of its warp-group.
    Product(Box<Product>),
    /// Copies a box of a tensor.
    Tensor(Box<BoxCopy>),
    /// A texture fetch, a surface access or a query of one.
    Image(Box<ImageOp>),
    /// An operation of tensor memory.
    TensorCore(Box<TensorCoreOp>),
    /// Tests a generic address for a state space.
    Space(AddressOp, Pred, StateSpace),
    /// Unknown operation.
    Unavailable(Box<Unavailable>),
}
