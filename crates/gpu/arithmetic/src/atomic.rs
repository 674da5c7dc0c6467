//! Results of atomic operations (`atom`, `red`; `ATOM`, `RED`).

use crate::half::{self, Bfloat16, Fp16};
use crate::{Round, double, single};

/// Operation of an atomic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtomOp {
    /// Sum.
    Add,
    /// Minimum.
    Min,
    /// Maximum.
    Max,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Exchange: the operand.
    Exch,
    /// Compare and swap: the third operand if the old value equals the second.
    Cas,
    /// Increment, wrapping to 0 after the operand.
    Inc,
    /// Decrement, wrapping to the operand before 0.
    Dec,
}

/// Type of an atomic, with PTX's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "PTX's names of its types")]
pub enum AtomType {
    U32,
    S32,
    U64,
    S64,
    F32,
    F64,
    F16,
    Bf16,
    F16x2,
    Bf16x2,
    B16,
}

impl AtomType {
    /// Size, bytes.
    #[must_use]
    pub fn bytes(self) -> u32 {
        match self {
            AtomType::U64 | AtomType::S64 | AtomType::F64 => 8,
            AtomType::F16 | AtomType::Bf16 | AtomType::B16 => 2,
            _ => 4,
        }
    }
}

/// Returns the value in memory after the operation; only the low [`AtomType::bytes`] of `old`, `b`
/// and `c` count.
#[must_use]
pub fn apply(op: AtomOp, ty: AtomType, old: u64, b: u64, c: u64) -> u64 {
    match op {
        AtomOp::Exch => return b,
        AtomOp::Cas => {
            let cut = if ty.bytes() == 8 {
                u64::MAX
            } else {
                (1 << (ty.bytes() * 8)) - 1
            };
            // The comparand is a whole register.
            return if old == b & cut { c } else { old };
        }
        AtomOp::And => return old & b,
        AtomOp::Or => return old | b,
        AtomOp::Xor => return old ^ b,
        _ => {}
    }
    match ty {
        AtomType::U32 => integer(op, old as u32 as i128, b as u32 as i128, old, b),
        AtomType::S32 => integer(op, old as i32 as i128, b as i32 as i128, old, b),
        AtomType::U64 => integer(op, old as i128, b as i128, old, b),
        AtomType::S64 => integer(op, old as i64 as i128, b as i64 as i128, old, b),
        AtomType::F32 => {
            let (x, y) = (f32::from_bits(old as u32), f32::from_bits(b as u32));
            let r = match op {
                AtomOp::Min => single::min(x, y),
                AtomOp::Max => single::max(x, y),
                _ => single::add_rn(x, y),
            };
            r.to_bits().into()
        }
        // PTX has no other atomic arithmetic on doubles.
        AtomType::F64 => {
            let (x, y) = (f64::from_bits(old), f64::from_bits(b));
            double::add(x, y, Round::Rn).to_bits()
        }
        AtomType::F16 | AtomType::B16 => halves::<Fp16>(op, old as u16, b as u16).into(),
        AtomType::Bf16 => halves::<Bfloat16>(op, old as u16, b as u16).into(),
        AtomType::F16x2 => half::map2(old as u32, b as u32, |x, y| halves::<Fp16>(op, x, y)).into(),
        AtomType::Bf16x2 => {
            half::map2(old as u32, b as u32, |x, y| halves::<Bfloat16>(op, x, y)).into()
        }
    }
}

fn halves<H: half::Half>(op: AtomOp, x: u16, y: u16) -> u16 {
    match op {
        AtomOp::Min => half::min::<H>(x, y),
        AtomOp::Max => half::max::<H>(x, y),
        _ => half::add::<H>(x, y),
    }
}

fn integer(op: AtomOp, x: i128, y: i128, old: u64, b: u64) -> u64 {
    match op {
        AtomOp::Min => x.min(y) as u64,
        AtomOp::Max => x.max(y) as u64,
        AtomOp::Inc => {
            let (old, b) = (old as u32, b as u32);
            if old >= b { 0 } else { u64::from(old) + 1 }
        }
        AtomOp::Dec => {
            let (old, b) = (old as u32, b as u32);
            if old == 0 || old > b {
                b.into()
            } else {
                u64::from(old) - 1
            }
        }
        _ => old.wrapping_add(b),
    }
}
