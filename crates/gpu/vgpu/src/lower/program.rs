//! The flat program of one entry. The functions it calls are laid out after it, with separate
//! registers, so a register is a fixed row and a call is a jump.

use std::collections::HashMap;

use super::definedness::Watch;
use crate::counters::Class;
use crate::hazard::SourceLine;

mod callees;
mod images;
mod matrices;
mod operation;
mod tensor_memory;

pub(crate) use callees::{Call, CallPointer, External, Function, Routine, RuntimeCall};
pub(crate) use images::{
    Boundary, Fetch, ImageQuery, ImageShape, Queried, SurfaceAccess, SurfaceKind,
};
pub(crate) use matrices::{
    FragmentUse, MmaBits, MmaF64, MmaOp, MmaScales, SparsePlaces, Wgmma, WgmmaSource, WmmaMem,
    WmmaOp,
};
pub(crate) use operation::{
    AsyncStore, Atom, AtomHalves, Bar, Bulk, CarryOp, CpAsync, MbarOp, Mem, Op, ProxyFence,
    ReduxNumbers, Shuffle, StackOp, Synchronizes, TensorCopy, WarpOp, every_byte,
};
pub(crate) use tensor_memory::{
    Stationary, TensorMemoryOp, TensorProduct, TensorReduction, TensorSource, TensorTransfer,
};

/// No register or no target.
pub(crate) const NONE: u32 = u32::MAX;
/// Generic address of shared offset 0. The low half is zero, so that truncating a generic address
/// to 32 bits yields the shared offset, as on a GPU.
pub(crate) const SHARED_WINDOW: u64 = 0x7100_0000_0000;
/// Generic address of local offset 0.
pub(crate) const LOCAL_WINDOW: u64 = 0x7200_0000_0000;
/// Generic address of the kernel's parameters.
pub(crate) const PARAM_WINDOW: u64 = 0x7300_0000_0000;
/// Local address of the first frame on the stack of a thread.
pub(crate) const STACK: u64 = 1 << 32;
/// Size of each window.
pub(crate) const WINDOW: u64 = 1 << 40;

/// State space of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Area {
    Generic,
    Global,
    Shared,
    /// Shared memory of the blocks of a cluster.
    Cluster,
    Local,
    /// The kernel's parameters: read only.
    KernelParam,
    /// Parameters of functions, after the local memory of a thread.
    CallParam,
}

/// A register as source or destination of memory instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Data {
    R32(u32),
    R64(u32),
    /// An unused destination.
    Nothing,
}

/// An address: row of a 64-bit or 32-bit base, plus an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) area: Area,
    pub(crate) base: Data,
    pub(crate) offset: i64,
}

/// Memory order of a strong access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// An ordinary access.
    Weak,
    /// `.volatile`.
    Volatile,
    /// `.relaxed` (and atomics without a qualifier).
    Relaxed,
    Acquire,
    Release,
    AcqRel,
}

/// One instruction.
#[derive(Debug, Clone)]
pub(crate) struct Inst {
    pub(crate) op: Op,
    /// Guard predicate: `NONE`, or its row and whether it is negated.
    pub(crate) guard: u32,
    pub(crate) guard_negated: bool,
    pub(crate) class: Class,
    /// Operations per lane, for the FLOP counters.
    pub(crate) flops: u8,
    /// [`super::JOIN`], [`super::WATCHED`], [`super::FRAGMENT`].
    pub(crate) marks: u8,
    /// Slices that include it: [`ptx::skeleton::CONTROL`], [`ptx::skeleton::ADDRESSES`].
    pub(crate) keep: u8,
    /// PTX line.
    pub(crate) line: u32,
    /// Index in [`Program::sources`] plus 1.
    pub(crate) source: u32,
}

/// A value that is known only at launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Constant {
    /// A number.
    Value(u64),
    /// Address of a module variable plus an offset; generic windows are global addresses.
    Global(u32, u64),
    /// Address of a shared variable in its block.
    Shared(u64),
    /// A special register.
    Special(Special),
}

impl Constant {
    /// Reports whether the lanes of a warp may see different values.
    pub(crate) fn differs_by_lane(self) -> bool {
        use Special::{Lane, MaskEq, MaskGe, MaskGt, MaskLe, MaskLt, Tid};
        matches!(
            self,
            Self::Special(Tid(_) | Lane | MaskEq | MaskLt | MaskLe | MaskGt | MaskGe)
        )
    }
}

/// Special registers that are constant while a thread runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Special {
    Tid(u8),
    Ntid(u8),
    Ctaid(u8),
    Nctaid(u8),
    Lane,
    Warp,
    Nwarps,
    Sm,
    Nsm,
    Grid,
    MaskEq,
    MaskLt,
    MaskLe,
    MaskGt,
    MaskGe,
    DynamicShared,
    TotalShared,
    WorkspaceHigh,
    WorkspaceLow,
    /// Index of the block in its cluster, and the blocks of a cluster, by axis.
    ClusterCtaid(u8),
    ClusterNctaid(u8),
    ClusterRank,
    ClusterSize,
    /// Index of the cluster in the grid, and the clusters of the grid, by axis.
    ClusterId(u8),
    Nclusters(u8),
    ExplicitCluster,
}

/// A statically sized shared variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) start: u32,
    pub(crate) bytes: u32,
}

/// Location of a pointer at launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PointerSource {
    /// Byte of the parameter buffer.
    Parameter(u32),
    /// Index among the module's variables.
    Variable(u32),
}

/// One entry, ready to run.
#[derive(Debug, Default)]
pub(crate) struct Program {
    pub(crate) code: Vec<Inst>,
    /// The entry bounds its registers, which `setmaxnreg` needs to have an effect.
    pub(crate) bounds_registers: bool,
    /// Functions that it calls.
    pub(crate) functions: Vec<Function>,
    /// The places there of those called through pointers, by address.
    pub(crate) pointed: HashMap<u64, u32>,
    pub(crate) rows32: u32,
    pub(crate) rows64: u32,
    pub(crate) preds: u32,
    pub(crate) constants32: Vec<(u32, Constant)>,
    pub(crate) constants64: Vec<(u32, Constant)>,
    /// Shared variables; the dynamic one starts at `dynamic_at`.
    pub(crate) shared: Vec<Extent>,
    /// That of them which stands for reserved shared memory.
    pub(crate) reserved: Option<Extent>,
    pub(crate) dynamic_at: u32,
    pub(crate) uses_dynamic: bool,
    /// Minimum number of bytes from `dynamic_at` on, whatever the launch requests: the size of an
    /// `.extern` array with a size.
    pub(crate) dynamic_least: u32,
    /// Local bytes per thread, then the bytes of call parameters after them.
    pub(crate) local_bytes: u32,
    pub(crate) param_bytes: u32,
    pub(crate) sources: Vec<SourceLine>,
    /// Pointers from which addresses are computed, by PTX line.
    pub(crate) pointers: HashMap<u32, PointerSource>,
    /// It calls `malloc` or `free`, or launches kernels, whose parameters are in the heap.
    pub(crate) allocates: bool,
    /// Kernels that it may launch, by the address that a pointer to them holds: name and bytes of parameters.
    pub(crate) kernels: HashMap<u64, (String, u32)>,
    /// It has fences or ordered accesses.
    pub(crate) has_fences: bool,
    /// It has atomics or ordered accesses.
    pub(crate) has_strong: bool,
    /// It polls volatile flags, so that volatile stores may set flags.
    pub(crate) polls: bool,
    /// It synchronises other than by whole-block and whole-warp barriers.
    pub(crate) partial_sync: bool,
    /// A slice that computes addresses and no values: a store changes nothing but the record of
    /// written bytes.
    pub(crate) addresses_only: bool,
    /// Number of registers whose definedness is tracked.
    pub(crate) watched: u32,
    /// The first of them are undefined when a thread begins.
    pub(crate) undefined_at_entry: u32,
    pub(crate) watches: HashMap<u32, Watch>,
    /// It uses tensor memory.
    pub(crate) tensor_memory: bool,
    /// Number of registers that hold fragments of `wgmma` or results of `tcgen05.ld`, and the other
    /// instructions that use them.
    pub(crate) fragments: u32,
    pub(crate) fragment_uses: HashMap<u32, FragmentUse>,
    /// Directives about clusters.
    pub(crate) cluster: ptx::ast::ClusterDirectives,
    /// Some branch depends on the block's index.
    pub(crate) by_block: bool,
    /// Control flow depends on other blocks.
    pub(crate) by_others: bool,
}
