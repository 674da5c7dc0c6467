//! Operations on matrices, with the rows of their operands.

use gpu_arithmetic::mma::{BitMma, BlockScales, Mma};
use gpu_arithmetic::wmma::{Fragment, Wmma};

use super::Address;

/// `mma.sync` with its rows.
#[derive(Debug, Clone)]
pub(crate) struct MmaOp {
    pub(crate) form: Mma,
    pub(crate) a: Vec<u32>,
    pub(crate) b: Vec<u32>,
    pub(crate) c: Vec<u32>,
    pub(crate) d: Vec<u32>,
    /// `.block_scale`.
    pub(crate) scales: Option<MmaScales>,
    /// `.sp`: row of the metadata and the selector of its lanes.
    pub(crate) sparse: Option<(u32, u32)>,
}

/// Scales of the blocks of A and B, with their rows.
#[derive(Debug, Clone)]
pub(crate) struct MmaScales {
    pub(crate) form: BlockScales,
    /// Scales of A and of B.
    pub(crate) words: [u32; 2],
    /// Number of the first byte, and of the thread, of A and of B.
    pub(crate) selectors: [[u32; 2]; 2],
}

/// `mma.sync` on matrices of bits.
#[derive(Debug, Clone)]
pub(crate) struct MmaBits {
    pub(crate) form: BitMma,
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
    /// Bytes of which its rows begin at a multiple, in shared memory and elsewhere.
    pub(crate) aligns: [u64; 2],
}

/// Operand A of a `wgmma`.
#[derive(Debug, Clone)]
pub(crate) enum WgmmaSource {
    /// Rows of the warp's part.
    Registers(Vec<u32>),
    /// Row of a descriptor of shared memory.
    Descriptor(u32),
}

/// `wgmma.mma_async`: 64 rows, a quarter in each warp.
#[derive(Debug, Clone)]
pub(crate) struct Wgmma {
    /// Form of 16 rows and 8 columns.
    pub(crate) form: Mma,
    pub(crate) columns: u32,
    pub(crate) d: Vec<u32>,
    pub(crate) a: WgmmaSource,
    /// Row of the descriptor of B.
    pub(crate) b: u32,
    /// Predicate row of `scale-d`; `NONE` for a constant, which is false where `adds_negated` is set.
    pub(crate) adds: u32,
    pub(crate) adds_negated: bool,
    /// Signs of A and B are inverted.
    pub(crate) negate: [bool; 2],
    /// A and B are stored along M and N instead of along K.
    pub(crate) transposed: [bool; 2],
    /// Of a sparse A.
    pub(crate) places: Option<SparsePlaces>,
    /// Numbers of the registers of D and A among the fragments.
    pub(crate) fragments_d: Vec<u32>,
    pub(crate) fragments_a: Vec<u32>,
}

/// Places of the nonzero elements of a sparse A.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SparsePlaces {
    /// Row of the metadata.
    pub(crate) metadata: u32,
    pub(crate) selector: u32,
}

/// Use of fragments of `wgmma` by another instruction, by their numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FragmentUse {
    pub(crate) reads: Vec<u32>,
    pub(crate) writes: Vec<u32>,
    /// A plain copy of one register to another.
    pub(crate) copies: bool,
    /// It sets a constant.
    pub(crate) constant: bool,
}
