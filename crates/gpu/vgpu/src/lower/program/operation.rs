//! Operations of the flat program, with the rows of their operands.

use gpu_arithmetic::atomic::{AtomOp, AtomType};
use gpu_arithmetic::layout::MatrixRows;
use ptx::structs::Unwritten;
use std::sync::Arc;

use super::{
    Address, Area, Call, CallPointer, Data, External, Fetch, ImageQuery, MmaBits, MmaF64, MmaOp,
    Order, SurfaceAccess, TensorMemoryOp, Wgmma, WmmaMem, WmmaOp,
};
use crate::exec::regs::{AluFn, Slots};
use crate::exec::shadow_values::ShadowedAlu;
use crate::exec::stop::Stop;
use crate::tensor_box::CopyMode;

/// Load or store.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Mem {
    pub(crate) at: Address,
    /// Bytes of one element.
    pub(crate) width: u32,
    pub(crate) signed: bool,
    pub(crate) data: Vec<Data>,
    pub(crate) order: Order,
    /// The scope is wider than the block.
    pub(crate) device_wide: bool,
    pub(crate) unwritten: Unwritten,
    /// A load through the non-coherent cache.
    pub(crate) read_only: bool,
    /// For loads: the used bytes; bit 0 is the first.
    pub(crate) used: u32,
    /// For loads: the bytes of which the contents count; bit 0 is the first.
    pub(crate) counted: u32,
}

/// Returns a mask of `bytes` bytes, one bit each.
pub(crate) fn every_byte(bytes: u32) -> u32 {
    u32::MAX >> (32 - bytes.clamp(1, 32))
}

/// `atom` and `red`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Atom {
    pub(crate) at: Address,
    pub(crate) op: AtomOp,
    pub(crate) ty: AtomType,
    pub(crate) dest: Data,
    pub(crate) b: Data,
    pub(crate) c: Data,
    pub(crate) order: Order,
    pub(crate) device_wide: bool,
    /// Size of the vector whose first element this is, bytes: its alignment. 0 for any other.
    pub(crate) vector_bytes: u32,
    /// Upper halves of an exchange or a comparison of 128 bits; the others are the lower ones.
    pub(crate) upper: Option<AtomHalves>,
}

impl Atom {
    /// Size of the access, bytes.
    pub(crate) fn bytes(&self) -> u32 {
        self.ty.bytes() << u32::from(self.upper.is_some())
    }

    /// Reports whether a register takes the old value.
    pub(crate) fn returns(&self) -> bool {
        let upper = self.upper.as_ref();
        self.dest != Data::Nothing || upper.is_some_and(|upper| upper.dest != Data::Nothing)
    }
}

/// Registers of one half of an atomic of 128 bits.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AtomHalves {
    pub(crate) dest: Data,
    pub(crate) b: Data,
    pub(crate) c: Data,
}

/// `fence.proxy` and `fence.mbarrier_init`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProxyFence {
    /// Between ordinary accesses and the asynchronous proxy, in these state spaces.
    Async { shared: bool, global: bool },
    /// Releases the thread's `mbarrier.init`s by its next arrival at the barrier of the cluster.
    MbarrierInit,
    /// Releases the thread's changes of tensor maps.
    MapRelease,
    /// Acquires the changes of the tensor map at an address.
    MapAcquire(Address),
}

/// `shfl.sync` modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shuffle {
    Up,
    Down,
    Bfly,
    Idx,
}

/// Warp-wide operations that wait for the lanes of a member mask.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum WarpOp {
    Shfl {
        mode: Shuffle,
        dest: u32,
        pred: u32,
        a: u32,
        b: u32,
        c: u32,
    },
    /// `vote.sync`: 0 all, 1 any, 2 uni (to a predicate), 3 ballot (to a register).
    Vote {
        mode: u8,
        dest: u32,
        source: u32,
        negated: bool,
    },
    /// `match.sync`: any or all, of 32 or 64 bits.
    Match {
        all: bool,
        dest: u32,
        pred: u32,
        a: Data,
    },
    /// `redux.sync`.
    Redux {
        op: AtomOp,
        numbers: ReduxNumbers,
        dest: u32,
        a: u32,
    },
    /// `elect.sync`.
    Elect { dest: u32, pred: u32 },
    /// `bar.warp.sync`.
    Barrier,
}

/// Numbers of a reduction over a warp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReduxNumbers {
    Unsigned,
    Signed,
    /// Floats, or their absolute values; `nan`: a NaN is the result.
    Floats {
        nan: bool,
        absolute: bool,
    },
}

/// `bar` and `barrier`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bar {
    /// Row of the barrier's number.
    pub(crate) id: u32,
    /// Row of the thread count, or `NONE`.
    pub(crate) count: u32,
    pub(crate) arrive: bool,
    pub(crate) aligned: bool,
    /// `bar.red`: 0 and, 1 or, 2 popc, with destination, source predicate and its negation.
    pub(crate) red: Option<(u8, u32, u32, bool)>,
}

/// Threads that a release or an acquire at an `mbarrier` may order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Synchronizes {
    /// None: it is relaxed.
    Nothing,
    /// Those of the own block: its scope is `.cta`.
    Block,
    /// All that reach the object. An operation without a scope is one of these, since compilers and
    /// libraries omit it at barriers of a cluster.
    Cluster,
}

/// Operations on an `mbarrier`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum MbarOp {
    Init {
        count: u32,
    },
    Inval,
    /// Arrive: count row or `NONE`, expected bytes or `NONE`, state destination, and whether the
    /// arrival drops out of later phases.
    Arrive {
        count: u32,
        expect: u32,
        state: Data,
        drop: bool,
        /// It publishes to other blocks: not with the scope `.cta`, nor with `.relaxed`.
        release: Synchronizes,
        /// It may complete the phase: not with `.noComplete`.
        completes: bool,
    },
    ExpectTx {
        bytes: u32,
    },
    CompleteTx {
        bytes: u32,
    },
    /// Test or try: state or parity source, destination predicate.
    Wait {
        parity: bool,
        state: Data,
        dest: u32,
        acquire: Synchronizes,
    },
    /// `cp.async.mbarrier.arrive`.
    AsyncArrive {
        noinc: bool,
    },
    PendingCount {
        state: Data,
        dest: u32,
    },
}

/// `cp.async` of 4, 8 or 16 bytes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CpAsync {
    pub(crate) to: Address,
    pub(crate) from: Address,
    pub(crate) bytes: u32,
    /// Row of the number of bytes read, or `NONE`.
    pub(crate) source_bytes: u32,
    /// Predicate row under which nothing is read and zeros are written, or `NONE`.
    pub(crate) ignore: u32,
}

/// `st.async` and `red.async`: a store to the cluster's shared memory that an `mbarrier` counts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AsyncStore {
    pub(crate) to: Address,
    pub(crate) mbarrier: Address,
    /// Bytes of one element.
    pub(crate) width: u32,
    pub(crate) data: Vec<Data>,
    /// `red.async`: the operation and its type.
    pub(crate) reduce: Option<(AtomOp, AtomType)>,
    /// All blocks of the cluster receive it at the same places.
    pub(crate) everywhere: bool,
}

/// An operation on the top of a thread's stack. Operands are 64-bit rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StackOp {
    /// Allocates bytes.
    Allocate { dest: u32, bytes: u32, align: u32 },
    /// Reads the top.
    Save { dest: u32 },
    /// Frees what was allocated since the top had this value.
    Restore { source: u32 },
}

/// `cp.async.bulk` and `cp.reduce.async.bulk` between shared and global memory, or from the own
/// shared memory to that of a block of the cluster.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bulk {
    pub(crate) to: Address,
    pub(crate) from: Address,
    pub(crate) bytes: u32,
    /// The `mbarrier` that counts the bytes; `None` for stores, which use bulk groups.
    pub(crate) mbarrier: Option<Address>,
    /// Row of the mask of blocks that receive the bytes, or `NONE`.
    pub(crate) multicast: u32,
    /// `cp.reduce.async.bulk`: the operation on each element of the destination, and its type.
    pub(crate) reduce: Option<(AtomOp, AtomType)>,
    /// Bytes of each 16 that are copied; `NONE` where all are.
    pub(crate) byte_mask: u32,
}

/// `cp.async.bulk.tensor` and `cp.reduce.async.bulk.tensor`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TensorCopy {
    /// Address of the tensor map.
    pub(crate) map: Address,
    /// Its offsets are rows.
    pub(crate) mode: CopyMode,
    /// Rows of the coordinates, innermost dimension first.
    pub(crate) coordinates: Vec<u32>,
    pub(crate) shared: Address,
    /// The `mbarrier` that counts the bytes; `None` for stores, which use bulk groups.
    pub(crate) mbarrier: Option<Address>,
    /// Row of the mask of blocks that receive the box, or `NONE`.
    pub(crate) multicast: u32,
    /// `.cta_group::2`: the `mbarrier` may be that of the other block of a pair.
    pub(crate) pair: bool,
    pub(crate) reduce: Option<AtomOp>,
}

/// Operation of an instruction.
#[derive(Debug, Clone)]
pub(crate) enum Op {
    Alu(AluFn, Slots),
    /// 32-bit `fma.rn.f32` and friends over whole rows.
    FmaF32(Slots),
    /// An operation on registers in a program with shadow values.
    Shadowed(Box<ShadowedAlu>),
    Load(Box<Mem>),
    Store(Box<Mem>),
    Atom(Box<Atom>),
    Branch {
        target: u32,
        join: u32,
    },
    BranchTable {
        index: u32,
        targets: Arc<[u32]>,
        join: u32,
    },
    Call(Box<Call>),
    CallPointer(Box<CallPointer>),
    /// Copies parameters of a function to local memory: from (among the call parameters), to, bytes.
    CopyIn {
        /// Row of the frame that `to` is in, or `NONE`.
        frame: u32,
        copies: Vec<(u32, u32, u32)>,
    },
    /// `alloca`, `stacksave`, `stackrestore`.
    Stack(StackOp),
    Return,
    Exit,
    Trap(Stop),
    External(Box<External>),
    Bar(Box<Bar>),
    Warp {
        mask: u32,
        op: Box<WarpOp>,
    },
    ActiveMask {
        dest: u32,
    },
    Fence {
        device_wide: bool,
    },
    /// `fence.proxy`, `fence.mbarrier_init`.
    ProxyFence(ProxyFence),
    /// `st.bulk`: zeros in shared memory.
    Clear {
        at: Address,
        /// Row of the number of bytes.
        bytes: u32,
    },
    /// `setmaxnreg` to this number of registers of a thread.
    SetRegisters {
        count: u32,
        increase: bool,
    },
    CpAsync(Box<CpAsync>),
    CommitGroup,
    WaitGroup(u32),
    CommitBulk,
    WaitBulk {
        /// Groups that may stay in flight.
        left: u32,
        /// Only their sources must have been read.
        read: bool,
    },
    Bulk(Box<Bulk>),
    AsyncStore(Box<AsyncStore>),
    /// `mapa`: the address of the same place in the block with this rank.
    MapAddress {
        dest: Data,
        address: Data,
        rank: u32,
        generic: bool,
    },
    /// `getctarank`: the rank of the block that an address belongs to.
    BlockRank {
        dest: u32,
        address: Data,
        generic: bool,
    },
    /// `barrier.cluster.arrive`.
    ClusterArrive {
        release: bool,
        aligned: bool,
    },
    /// `barrier.cluster.wait`.
    ClusterWait {
        aligned: bool,
    },
    Tensor(Box<TensorCopy>),
    TensorMemory(Box<TensorMemoryOp>),
    Fetch(Box<Fetch>),
    Surface(Box<SurfaceAccess>),
    ImageQuery(Box<ImageQuery>),
    Mbar(Address, Box<MbarOp>),
    LdMatrix {
        at: Address,
        count: u8,
        rows: MatrixRows,
        data: [u32; 4],
    },
    StMatrix {
        at: Address,
        count: u8,
        rows: MatrixRows,
        data: [u32; 4],
    },
    MovMatrix {
        dest: u32,
        source: u32,
    },
    Mma(Box<MmaOp>),
    MmaF64(Box<MmaF64>),
    MmaBits(Box<MmaBits>),
    WmmaMma(Box<WmmaOp>),
    WmmaMem(Box<WmmaMem>),
    Wgmma(Box<Wgmma>),
    WgmmaFence,
    WgmmaCommit,
    /// `wgmma.wait_group`: the groups that may stay in flight.
    WgmmaWait(u32),
    Clock {
        dest: Data,
    },
    /// `isspacep`.
    IsSpace {
        area: Area,
        dest: u32,
        source: u32,
    },
    /// Multi-word arithmetic with the carry bit: add, sub, mad.lo, mad.hi; 32 or 64 bits.
    Carry(Box<CarryOp>),
    /// Split or join of registers: `mov.b64 {a, b}, c`.
    Unpack {
        from: Data,
        to: Vec<Data>,
        width: u32,
    },
    Pack {
        from: Vec<Data>,
        to: Data,
        width: u32,
    },
    /// `setp` with two destinations or a boolean third source: the step after the comparison.
    SetpCombine {
        p: u32,
        q: u32,
        compare: u32,
        with: u32,
        negated: bool,
        how: u8,
    },
    Nop,
    Sleep,
}

/// `add.cc` and its family.
#[derive(Debug, Clone)]
pub(crate) struct CarryOp {
    /// Opcode without its width: 0 add, 1 sub, 2 mad.lo, 3 mad.hi.
    pub(crate) op: u8,
    pub(crate) signed: bool,
    pub(crate) carry_in: bool,
    pub(crate) carry_out: bool,
    pub(crate) dest: Data,
    pub(crate) sources: [Data; 3],
}
