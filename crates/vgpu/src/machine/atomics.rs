//! Atomic operations on memory.

use super::memory::{Memory, Where, lanes};
use super::registers::{Dest, Source, Truth};
use super::warp::Warp;
use crate::exec::regs::Row;
use crate::num::half::{self, Bfloat16, Fp16};
use crate::num::{Round, double, single};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AtomicOp {
    Add,
    Min,
    Max,
    Inc,
    Dec,
    And,
    Or,
    Xor,
    Exchange,
    Compare,
    /// As `Compare`, but what comes back is whether it was replaced.
    CompareTold,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AtomicType {
    U32,
    S32,
    U64,
    S64,
    F32,
    F64,
    F16x2,
    Bf16x2,
}

/// An atomic operation, lane by lane.
#[derive(Debug, Clone, Copy)]
pub(super) struct Atomic {
    pub(super) at: Where,
    pub(super) op: AtomicOp,
    pub(super) ty: AtomicType,
    pub(super) dest: Option<Dest>,
    /// Set where the operation took place, which is everywhere.
    pub(super) done: Option<Truth>,
    pub(super) values: [Source; 2],
}

impl Memory<'_> {
    /// Executes an atomic operation, lane after lane.
    pub(super) fn atomic(&mut self, w: &mut Warp, a: &Atomic, mask: u32) -> Result<(), String> {
        let at = a.at.addresses(&w.registers);
        let bytes = a.ty.bytes();
        let values = a.values.map(|source| w.registers.raw_wide(source.from));
        let mut old_rows: [Row; 2] = [[0; 32]; 2];
        for lane in lanes(mask) {
            let [low, high, ..] = self.load(w, a.at.window, lane, at[lane], bytes)?;
            let old = u64::from(high) << 32 | u64::from(low);
            let [b, c] = values.map(|row| row[lane]);
            let cut = if bytes == 8 { u64::MAX } else { 0xffff_ffff };
            let new = apply(a.op, a.ty, old, b & cut, c & cut);
            let value = [new as u32, (new >> 32) as u32, 0, 0];
            self.store(w, a.at.window, (lane, at[lane]), bytes, value)?;
            let back = match a.op {
                AtomicOp::CompareTold => u64::from(old == b & cut),
                _ => old,
            };
            old_rows[0][lane] = back as u32;
            old_rows[1][lane] = (back >> 32) as u32;
        }
        w.note(&at, a.at.window, mask, bytes, true);
        if let Some(dest) = a.dest {
            w.registers.set(dest, mask, &old_rows[0]);
            if bytes == 8 {
                w.registers.set(dest.next(1), mask, &old_rows[1]);
            }
        }
        if let Some(done) = a.done {
            w.registers.set_truth(done, mask, u32::MAX);
        }
        Ok(())
    }
}

impl AtomicType {
    fn bytes(self) -> u8 {
        match self {
            AtomicType::U64 | AtomicType::S64 | AtomicType::F64 => 8,
            _ => 4,
        }
    }
}

/// The new value.
fn apply(op: AtomicOp, ty: AtomicType, old: u64, b: u64, c: u64) -> u64 {
    match op {
        AtomicOp::Exchange => return b,
        AtomicOp::Compare | AtomicOp::CompareTold => return if old == b { c } else { old },
        AtomicOp::And => return old & b,
        AtomicOp::Or => return old | b,
        AtomicOp::Xor => return old ^ b,
        AtomicOp::Inc => return if old >= b { 0 } else { old + 1 },
        AtomicOp::Dec => return if old == 0 || old > b { b } else { old - 1 },
        _ => {}
    }
    let pick = |x: i128, y: i128| match op {
        AtomicOp::Min => x.min(y) as u64,
        AtomicOp::Max => x.max(y) as u64,
        _ => old.wrapping_add(b),
    };
    match ty {
        AtomicType::U32 => pick(i128::from(old as u32), i128::from(b as u32)) & 0xffff_ffff,
        AtomicType::S32 => pick(i128::from(old as i32), i128::from(b as i32)) & 0xffff_ffff,
        AtomicType::U64 => pick(old.into(), b.into()),
        AtomicType::S64 => pick((old as i64).into(), (b as i64).into()),
        AtomicType::F32 => {
            let (x, y) = (f32::from_bits(old as u32), f32::from_bits(b as u32));
            let sum = match op {
                AtomicOp::Min => single::min(x, y),
                AtomicOp::Max => single::max(x, y),
                _ => single::add_rn(x, y),
            };
            sum.to_bits().into()
        }
        AtomicType::F64 => double::add(f64::from_bits(old), f64::from_bits(b), Round::Rn).to_bits(),
        AtomicType::F16x2 => {
            half::map2(old as u32, b as u32, |x, y| halves::<Fp16>(op, x, y)).into()
        }
        AtomicType::Bf16x2 => {
            half::map2(old as u32, b as u32, |x, y| halves::<Bfloat16>(op, x, y)).into()
        }
    }
}

fn halves<H: half::Half>(op: AtomicOp, x: u16, y: u16) -> u16 {
    match op {
        AtomicOp::Min => half::min::<H>(x, y),
        AtomicOp::Max => half::max::<H>(x, y),
        _ => half::add::<H>(x, y),
    }
}
