//! `atom` and `red`.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use super::access::{Place, Touch};
use super::cta::Cta;
use super::order::Publishing;
use super::transfer::{generic, lanes};
use super::warp::Warp;
use crate::lower::program::{Atom, AtomOp, AtomType, Data};
use crate::num::half::{self, Bfloat16, Fp16};
use crate::num::{Round, double, single};

impl Atom {
    /// A number for reductions whose order cannot be told from what they leave behind: whole-number
    /// ones that give nothing back. 0 for others; only equal numbers go together.
    fn commutes(&self) -> u8 {
        let whole = matches!(
            self.ty,
            AtomType::U32 | AtomType::S32 | AtomType::U64 | AtomType::S64
        );
        if self.dest != Data::Nothing || !whole || !self.device_wide {
            return 0;
        }
        let wide = self.ty.bytes() == 8;
        let signed = matches!(self.ty, AtomType::S32 | AtomType::S64);
        let op = match self.op {
            AtomOp::Add => 1,
            AtomOp::And => 2,
            AtomOp::Or => 3,
            AtomOp::Xor => 4,
            AtomOp::Min => 5 + u8::from(signed),
            AtomOp::Max => 7 + u8::from(signed),
            _ => return 0,
        };
        op << 1 | u8::from(wide)
    }
}

impl Cta<'_> {
    pub(super) fn atom(&mut self, w: &mut Warp, a: &Atom, mask: u32) {
        let bytes = a.ty.bytes();
        self.count(w, &a.at, mask, bytes, true);
        let commutes = a.commutes();
        for lane in lanes(mask) {
            let at = w.address(&a.at, lane);
            let thread = w.index * 32 + lane;
            let name = generic(a.at.area, at);
            let publishing = Publishing {
                order: a.order,
                device_wide: a.device_wide,
                modifies: true,
            };
            self.publish(thread, name, publishing);
            let touch = Touch {
                strong: true,
                narrow: !a.device_wide,
                observes: a.dest != Data::Nothing,
                commutes,
                needs_written: true,
                ..Touch::write(lane, bytes)
            };
            let Some(place) = self.touch(w, a.at.area, at, touch) else {
                continue;
            };
            let (b, c) = (w.value(a.b, lane), w.value(a.c, lane));
            let old = self.modify(w, place, bytes, |old| apply(a.op, a.ty, old, b, c));
            self.observe(thread, name, publishing);
            self.version += u64::from(apply(a.op, a.ty, old, b, c) != old);
            if a.dest != Data::Nothing {
                w.set(a.dest, lane, old);
            }
        }
    }

    /// Replaces a value in one step; gives the old one.
    fn modify(&mut self, w: &mut Warp, place: Place, bytes: u32, f: impl Fn(u64) -> u64) -> u64 {
        let Place::Global(l) = place else {
            let old = self.get(w, place, 0, bytes);
            self.put(w, place, 0, bytes, f(old));
            return old;
        };
        let words = &self.context.memory.allocations[l.index].words;
        let word = (l.offset / 4) as usize;
        if bytes == 8 {
            // Two words cannot change in one step: the launch has one lock for those.
            let _lock = self.context.wide.lock();
            let old = self.get(w, place, 0, 8);
            let new = f(old);
            words[word].store(new as u32, SeqCst);
            words[word + 1].store((new >> 32) as u32, SeqCst);
            return old;
        }
        let shift = (l.offset & 3) as u32 * 8;
        let cut = if bytes == 4 {
            u32::MAX
        } else {
            (1 << (bytes * 8)) - 1
        };
        step(&words[word], |whole| {
            let old = whole >> shift & cut;
            (whole & !(cut << shift)) | (f(old.into()) as u32 & cut) << shift
        })
        .checked_shr(shift)
        .map_or(0, |old| u64::from(old & cut))
    }
}

fn step(word: &AtomicU32, f: impl Fn(u32) -> u32) -> u32 {
    let mut old = word.load(SeqCst);
    loop {
        match word.compare_exchange(old, f(old), SeqCst, SeqCst) {
            Ok(old) => return old,
            Err(now) => old = now,
        }
    }
}

/// The new value.
pub(crate) fn apply(op: AtomOp, ty: AtomType, old: u64, b: u64, c: u64) -> u64 {
    match op {
        AtomOp::Exch => return b,
        AtomOp::Cas => {
            let cut = if ty.bytes() == 8 {
                u64::MAX
            } else {
                (1 << (ty.bytes() * 8)) - 1
            };
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
