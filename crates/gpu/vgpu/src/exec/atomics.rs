//! Atomics: `atom` and `red`.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use super::access::{CheckedLocation, Touch};
use super::cta::Cta;
use super::order::Publishing;
use super::others::Added;
use super::rounding::apply_randomly;
use super::transfer::{generic, lanes};
use super::warp::Warp;
use crate::hazard::Space;
use crate::hazard::shadow::Strength;
use crate::lower::program::{Area, Atom, Data};
use gpu_arithmetic::atomic::{AtomOp, AtomType, apply};

/// One element that a reducing bulk copy adds to global memory.
pub(super) struct BulkElement {
    pub(super) op: AtomOp,
    pub(super) ty: AtomType,
    pub(super) at: u64,
    pub(super) value: u64,
}

/// Returns the commutativity class of a reduction: not zero for an integer one without a result,
/// whose order leaves no trace in memory. Only reductions of the same class commute. 0 for others.
fn commuting(op: AtomOp, ty: AtomType) -> u8 {
    let whole = matches!(
        ty,
        AtomType::U32 | AtomType::S32 | AtomType::U64 | AtomType::S64
    );
    let wide = ty.bytes() == 8;
    let signed = matches!(ty, AtomType::S32 | AtomType::S64);
    let op = match op {
        AtomOp::Add => 1,
        AtomOp::And => 2,
        AtomOp::Or => 3,
        AtomOp::Xor => 4,
        // The same bits have another order as signed numbers: minima of both kinds do not commute.
        AtomOp::Min => 5 + u8::from(signed),
        AtomOp::Max => 7 + u8::from(signed),
        // An exchange leaves the last operand. `inc` and `dec` wrap at their operand, which may
        // differ from one update to the next.
        _ => 0,
    };
    // The width is part of the class: the carries of a 64-bit sum cross the words of a 32-bit one.
    if whole && op != 0 {
        op << 1 | u8::from(wide)
    } else {
        0
    }
}

impl Cta<'_> {
    pub(super) fn atom(&mut self, w: &mut Warp, a: &Atom, mask: u32) {
        let bytes = a.bytes();
        self.count(w, &a.at, mask, bytes, true);
        // A block-scoped atomic does not commute with those of other blocks: it is not atomic
        // towards them.
        let gives_nothing = !a.returns() && a.device_wide;
        let commutes = if gives_nothing {
            commuting(a.op, a.ty)
        } else {
            0
        };
        let each = lanes(mask).map(|lane| (lane, w.address(&a.at, lane), w.value(a.b, lane)));
        let others = self.context.others;
        let additions = others.additions(a.op, a.ty, a.returns(), each);
        for lane in lanes(mask) {
            let at = w.address(&a.at, lane);
            // Vectors exist in global memory only.
            if a.vector_bytes != 0
                && !self.aligned(w, Space::Global, at, &Touch::write(lane, a.vector_bytes))
            {
                continue;
            }
            let thread = w.index * 32 + lane;
            let name = generic(a.at.area, at);
            let publishing = Publishing {
                order: a.order,
                device_wide: a.device_wide,
                modifies: true,
            };
            // Published before the value is written, so that a reader of the value finds the
            // release.
            self.publish(thread, name, publishing);
            let touch = Touch {
                strength: Strength::Strong,
                narrow: !a.device_wide,
                observes: a.returns(),
                commutes,
                needs_written: true,
                ..Touch::write(lane, bytes)
            };
            let Some(place) = self.touch(w, a.at.area, at, touch) else {
                continue;
            };
            if a.upper.is_some() {
                self.exchange_wide(w, a, lane, place);
                self.observe(thread, name, publishing);
                continue;
            }
            let (b, c) = (w.value(a.b, lane), w.value(a.c, lane));
            let is_global = matches!(place, CheckedLocation::Global(_));
            let Added { value: b, before } = additions.added(lane, at, is_global, b);
            // The coin is drawn once, because the update may be retried.
            let coins = &mut w.regs.coins;
            let toss = coins.is_active().then(|| coins.draw().of_lane(lane));
            let result = |old| match toss {
                Some(toss) => apply_randomly(toss, a.op, a.ty, old, b, c),
                None => apply(a.op, a.ty, old, b, c),
            };
            let old = self.modify(w, place, bytes, result);
            // Observed after the read, which may have returned the value of a release.
            self.observe(thread, name, publishing);
            // An update that changes nothing is no progress: a spin with `atom.cas` would otherwise
            // hide a deadlock.
            self.version += u64::from(result(old) != old);
            if a.dest != Data::Nothing {
                w.set(a.dest, lane, old.wrapping_add(before));
            }
        }
    }

    /// Performs an exchange, or a comparison and an exchange, of 128 bits for a lane.
    fn exchange_wide(&mut self, w: &mut Warp, a: &Atom, lane: usize, place: CheckedLocation) {
        let Some(upper) = &a.upper else { return };
        let b = [w.value(a.b, lane), w.value(upper.b, lane)];
        let c = [w.value(a.c, lane), w.value(upper.c, lane)];
        let context = self.context;
        // One at a time, as those of 64 bits.
        let lock = context.wide.lock();
        let old = [self.get(w, place, 0, 8), self.get(w, place, 8, 8)];
        let new = match a.op {
            AtomOp::Cas if old != b => old,
            AtomOp::Cas => c,
            _ => b,
        };
        if new != old {
            for (offset, half) in [(0, new[0]), (8, new[1])] {
                self.put(w, place, offset, 8, half);
            }
        }
        drop(lock);
        for (dest, half) in [(a.dest, old[0]), (upper.dest, old[1])] {
            if dest != Data::Nothing {
                w.set(dest, lane, half);
            }
        }
    }

    /// Performs one element of a reducing bulk copy in a state space: a relaxed atomic of device
    /// scope. Returns the access.
    pub(super) fn reduce_element(
        &mut self,
        w: &mut Warp,
        lane: usize,
        area: Area,
        element: BulkElement,
    ) -> Touch {
        let BulkElement { op, ty, at, value } = element;
        let touch = Touch {
            strength: Strength::Strong,
            commutes: commuting(op, ty),
            needs_written: true,
            ..Touch::write(lane, ty.bytes())
        };
        if let Some(place) = self.touch(w, area, at, touch) {
            let old = self.modify(w, place, ty.bytes(), |old| apply(op, ty, old, value, 0));
            self.version += u64::from(apply(op, ty, old, value, 0) != old);
        }
        touch
    }

    /// Replaces a value atomically and returns the old one.
    pub(super) fn modify(
        &mut self,
        w: &mut Warp,
        place: CheckedLocation,
        bytes: u32,
        f: impl Fn(u64) -> u64,
    ) -> u64 {
        let CheckedLocation::Global(l) = place else {
            // Shared and local memory belong to one block, which runs on one thread.
            let old = self.get(w, place, 0, bytes);
            self.put(w, place, 0, bytes, f(old));
            return old;
        };
        let words = &self.context.memory.allocations[l.index].words;
        let word = (l.offset / 4) as usize;
        if bytes == 8 {
            // The host has no atomic for two 32-bit words: the launch has one lock for 64-bit
            // atomics.
            let _lock = self.context.wide.lock();
            let old = self.get(w, place, 0, 8);
            let new = f(old);
            words[word].store(new as u32, SeqCst);
            words[word + 1].store((new >> 32) as u32, SeqCst);
            return old;
        }
        // The host has no atomic for a part of a word that others update as a whole: a narrow
        // update exchanges the word, or a concurrent one of its other half would be lost.
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
