//! Atomic operations on memory.

use super::memory::{AddressOp, Memory, lanes};
use super::registers::{Dest, Pred, Source};
use super::warp::Warp;
use gpu_arithmetic::Lanes as Row;
use gpu_arithmetic::atomic::apply;
use gpu_arithmetic::atomic::{AtomOp, AtomType};
use vgpu::exec::launch::ALL_ARRIVED;

/// An atomic operation of each lane.
#[derive(Debug, Clone, Copy)]
pub(super) struct Atomic {
    pub(super) at: AddressOp,
    pub(super) op: AtomOp,
    pub(super) ty: AtomType,
    /// Elements of a vector, each an atomic operation of its own; 1 for a number.
    pub(super) elements: u8,
    /// Returns the success of a compare-and-swap instead of the old word.
    pub(super) returns_success: bool,
    pub(super) dest: Option<Dest>,
    /// Predicate set in lanes whose operation took place: always all of them.
    pub(super) done: Option<Pred>,
    pub(super) values: [Source; 2],
}

impl Memory<'_> {
    /// Executes an atomic operation, one lane after the other.
    pub(super) fn atomic(&mut self, w: &mut Warp, a: &Atomic, mask: u32) -> Result<(), String> {
        if a.elements > 1 {
            return self.atomic_vector(w, a, mask);
        }
        let at = a.at.addresses(&w.registers);
        let bytes = if a.ty.bytes() == 8 { 8 } else { 4 };
        let values = a.values.map(|source| w.registers.raw_wide(source.from));
        let mut old_rows: [Row; 2] = [[0; 32]; 2];
        // In the order of lanes, as in the PTX executor: sums of floats depend on it.
        for lane in lanes(mask) {
            let [low, high, ..] = self.load(w, a.at.window, lane, at[lane], bytes)?;
            let old = u64::from(high) << 32 | u64::from(low);
            let [mut b, c] = values.map(|row| row[lane]);
            // The other blocks of the grid do not run: one arrival counts for all of them.
            if self.solo_grid_barrier == Some(at[lane]) && a.op == AtomOp::Add {
                b = ALL_ARRIVED.into();
            }
            let cut = if bytes == 8 { u64::MAX } else { 0xffff_ffff };
            let new = apply(a.op, a.ty, old, b & cut, c & cut);
            let value = [new as u32, (new >> 32) as u32, 0, 0];
            self.store(w, a.at.window, lane, at[lane], bytes, value)?;
            let back = if a.returns_success {
                u64::from(old == b & cut)
            } else {
                old
            };
            old_rows[0][lane] = back as u32;
            old_rows[1][lane] = (back >> 32) as u32;
        }
        w.note_atomic(&at, a.at.window, mask, bytes);
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

    /// Executes an atomic operation on vectors of words, element after element.
    fn atomic_vector(&mut self, w: &mut Warp, a: &Atomic, mask: u32) -> Result<(), String> {
        const WORD_BYTES: u8 = 4;
        let first = a.at.addresses(&w.registers);
        let values = a.values.first().map(|source| source.from);
        let mut old_rows: [Row; 4] = [[0; 32]; 4];
        // The address of the whole vector must be aligned.
        for lane in lanes(mask) {
            self.load(w, a.at.window, lane, first[lane], WORD_BYTES * a.elements)?;
        }
        for (n, old_row) in (0..a.elements).zip(&mut old_rows) {
            let row = values.map_or([0; 32], |from| w.registers.raw(from.nth(n)));
            let at = first.map(|address| address.wrapping_add(u64::from(n * WORD_BYTES)));
            for lane in lanes(mask) {
                let [old, ..] = self.load(w, a.at.window, lane, at[lane], WORD_BYTES)?;
                let new = apply(a.op, a.ty, old.into(), row[lane].into(), 0);
                let value = [new as u32, 0, 0, 0];
                self.store(w, a.at.window, lane, at[lane], WORD_BYTES, value)?;
                old_row[lane] = old;
            }
        }
        w.note_atomic(&first, a.at.window, mask, WORD_BYTES * a.elements);
        if let Some(dest) = a.dest {
            for (n, row) in (0..a.elements).zip(&old_rows) {
                w.registers.set(dest.next(n), mask, row);
            }
        }
        if let Some(done) = a.done {
            w.registers.set_truth(done, mask, u32::MAX);
        }
        Ok(())
    }
}
