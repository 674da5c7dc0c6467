//! The flat program of one entry: every function it calls is laid out behind it, with registers of
//! its own, so a register is a fixed row and a call is a jump.

use gpu_arithmetic::atomic::{AtomOp, AtomType};
use ptx::structs::Unwritten;
use std::collections::HashMap;
use std::sync::Arc;

mod callees;

pub(crate) use callees::{Call, CallPointer, External, Function, Routine};

use super::definedness::Watch;
use crate::counters::Class;
use crate::exec::regs::{AluFn, Slots};
use crate::exec::stop::Stop;
use crate::hazard::SourceLine;
use gpu_arithmetic::mma::Mma;
use gpu_arithmetic::wmma::{Fragment, Wmma};

/// No register, no target.
pub(crate) const NONE: u32 = u32::MAX;
/// Generic address of shared offset 0. The low half is zero: cutting a generic address to 32 bits
/// gives the shared offset, as on a GPU.
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
    Local,
    /// The kernel's parameters: read only.
    KernelParam,
    /// Parameters of functions: behind the local memory of a thread.
    CallParam,
}

/// A register as source or destination of memory instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Data {
    R32(u32),
    R64(u32),
    /// A destination nobody wants.
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
    /// `.relaxed` (and atomics without a word).
    Relaxed,
    Acquire,
    Release,
    AcqRel,
}

/// Load or store.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Mem {
    pub(crate) at: Address,
    /// Bytes of one element.
    pub(crate) width: u32,
    pub(crate) signed: bool,
    pub(crate) data: Vec<Data>,
    pub(crate) order: Order,
    /// Scope reaches beyond the block.
    pub(crate) device_wide: bool,
    pub(crate) unwritten: Unwritten,
    /// A load through the non-coherent cache.
    pub(crate) read_only: bool,
    /// For loads: the bytes that somebody uses; bit 0 is the first.
    pub(crate) used: u32,
}

/// A bit for each of so many bytes.
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
        signed: bool,
        dest: u32,
        a: u32,
    },
    /// `elect.sync`.
    Elect { dest: u32, pred: u32 },
    /// `bar.warp.sync`.
    Barrier,
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

/// `mbarrier` operations.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum MbarOp {
    Init {
        count: u32,
    },
    Inval,
    /// Arrive: count row or `NONE`, bytes expected or `NONE`, state destination, and whether the
    /// arrival drops out of later phases.
    Arrive {
        count: u32,
        expect: u32,
        state: Data,
        drop: bool,
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
        acquire: bool,
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
    /// Row of the bytes really read, or `NONE`.
    pub(crate) source_bytes: u32,
    /// Predicate (and negation) under which nothing is read and zeros are written, or `NONE`.
    pub(crate) ignore: u32,
}

/// `cp.async.bulk` and `cp.reduce.async.bulk` between shared and global.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bulk {
    pub(crate) to: Address,
    pub(crate) from: Address,
    pub(crate) bytes: u32,
    /// The `mbarrier` that counts the bytes; none for stores, which use bulk groups.
    pub(crate) mbarrier: Option<Address>,
    /// `cp.reduce.async.bulk`: the operation on each element of the destination, and its type.
    pub(crate) reduce: Option<(AtomOp, AtomType)>,
}

/// What an instruction does.
#[derive(Debug, Clone)]
pub(crate) enum Op {
    Alu(AluFn, Slots),
    /// 32-bit `fma.rn.f32` and friends over whole rows.
    FmaF32(Slots),
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
    /// `fence.proxy.async` that covers shared memory.
    ProxyFence,
    CpAsync(Box<CpAsync>),
    CommitGroup,
    WaitGroup(u32),
    CommitBulk,
    WaitBulk(u32),
    Bulk(Box<Bulk>),
    Mbar(Address, Box<MbarOp>),
    LdMatrix {
        at: Address,
        count: u8,
        trans: bool,
        data: [u32; 4],
    },
    StMatrix {
        at: Address,
        count: u8,
        trans: bool,
        data: [u32; 4],
    },
    MovMatrix {
        dest: u32,
        source: u32,
    },
    Mma(Box<MmaOp>),
    MmaF64(Box<MmaF64>),
    WmmaMma(Box<WmmaOp>),
    WmmaMem(Box<WmmaMem>),
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
    /// `setp` with two destinations or a boolean third source: after the compare.
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

/// `mma.sync` with its rows.
#[derive(Debug, Clone)]
pub(crate) struct MmaOp {
    pub(crate) form: Mma,
    pub(crate) a: Vec<u32>,
    pub(crate) b: Vec<u32>,
    pub(crate) c: Vec<u32>,
    pub(crate) d: Vec<u32>,
}

/// `mma.sync` in double precision.
#[derive(Debug, Clone)]
pub(crate) struct MmaF64 {
    pub(crate) m: usize,
    pub(crate) k: usize,
    pub(crate) round: gpu_arithmetic::Round,
    pub(crate) a: Vec<u32>,
    pub(crate) b: Vec<u32>,
    pub(crate) c: Vec<u32>,
    pub(crate) d: Vec<u32>,
}

/// `wmma.mma`.
#[derive(Debug, Clone)]
pub(crate) struct WmmaOp {
    pub(crate) form: Wmma,
    pub(crate) a: Vec<u32>,
    pub(crate) b: Vec<u32>,
    pub(crate) c: Vec<u32>,
    pub(crate) d: Vec<u32>,
}

/// `wmma.load` and `wmma.store`.
#[derive(Debug, Clone)]
pub(crate) struct WmmaMem {
    pub(crate) at: Address,
    pub(crate) fragment: Fragment,
    pub(crate) row_major: bool,
    /// Bits of an element.
    pub(crate) bits: u32,
    /// Row of the stride, in elements.
    pub(crate) stride: u32,
    pub(crate) data: Vec<u32>,
    pub(crate) store: bool,
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

/// One instruction.
#[derive(Debug, Clone)]
pub(crate) struct Inst {
    pub(crate) op: Op,
    /// Guard predicate: `NONE`, or its row and whether it is negated.
    pub(crate) guard: u32,
    pub(crate) guard_negated: bool,
    pub(crate) class: Class,
    /// Operations a lane, for the flop counters.
    pub(crate) flops: u8,
    /// [`super::JOIN`], [`super::WATCHED`].
    pub(crate) marks: u8,
    /// Which slices it is in: [`ptx::skeleton::CONTROL`], [`ptx::skeleton::ADDRESSES`].
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
    /// A special register.
    Special(Special),
}

/// Special registers that do not change while a thread runs.
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
    Zero,
    One,
}

/// A statically sized shared variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) start: u32,
    pub(crate) bytes: u32,
}

/// Where a launch finds a pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PointerPlace {
    /// Byte of the parameter block.
    Parameter(u32),
    /// Number among the module's variables.
    Variable(u32),
}

/// One entry, ready to run.
#[derive(Debug, Default)]
pub(crate) struct Program {
    pub(crate) code: Vec<Inst>,
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
    pub(crate) dynamic_at: u32,
    pub(crate) uses_dynamic: bool,
    /// Bytes from `dynamic_at` on that there are whatever the launch gives: those of an `.extern` array
    /// that has a size.
    pub(crate) dynamic_least: u32,
    /// Local bytes a thread, then the bytes of call parameters behind them.
    pub(crate) local_bytes: u32,
    pub(crate) param_bytes: u32,
    pub(crate) sources: Vec<SourceLine>,
    /// The pointers that addresses are computed from, by PTX line.
    pub(crate) pointers: HashMap<u32, PointerPlace>,
    /// It calls `malloc` or `free`.
    pub(crate) allocates: bool,
    /// It has fences or ordered accesses.
    pub(crate) has_fences: bool,
    /// It polls volatile flags, so that volatile stores may be flags being set.
    pub(crate) polls: bool,
    /// It synchronises other than by whole-block and whole-warp barriers.
    pub(crate) partial_sync: bool,
    /// Number of registers whose definedness is tracked, and the instructions that do so.
    pub(crate) watched: u32,
    /// The first of them are undefined when a thread begins.
    pub(crate) undefined_at_entry: u32,
    pub(crate) watches: HashMap<u32, Watch>,
    /// Some branch depends on the block's index.
    pub(crate) by_block: bool,
    /// The way depends on what other blocks have done.
    pub(crate) by_others: bool,
}
