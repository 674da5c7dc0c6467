//! Atomic operations on memory.

use super::memory::{AddressOp, Memory, Window, lanes, lanes_where, split};
use super::registers::{Dest, Pred, Source};
use super::warp::Warp;
use gpu_arithmetic::Lanes as Row;
use gpu_arithmetic::atomic::apply;
use gpu_arithmetic::atomic::{AtomOp, AtomType};
use vgpu::exec::others::{Added, Additions};

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
    /// Predicate set in lanes whose operation took place: all of them, except where a
    /// compare-and-swap returns its success.
    pub(super) done: Option<Pred>,
    pub(super) values: [Source; 2],
}

impl Memory<'_> {
    /// Executes an atomic operation, one element and one lane after the other.
    pub(super) fn atomic(&mut self, w: &mut Warp, a: &Atomic, mask: u32) -> Result<(), String> {
        let first = a.at.addresses(&w.registers);
        let bytes = if a.ty.bytes() == 8 { 8 } else { 4 };
        if a.elements > 1 {
            // The address of the whole vector must be aligned.
            for lane in lanes(mask) {
                self.load(w, a.at.window, lane, first[lane], bytes * a.elements)?;
            }
        }
        let mut old_rows: [Row; 4] = [[0; 32]; 4];
        let words = usize::from(bytes / 4);
        for (n, old) in (0..a.elements).zip(old_rows.chunks_mut(words)) {
            let offset = u64::from(n * bytes);
            let at = first.map(|address| address.wrapping_add(offset));
            let values = a
                .values
                .map(|source| w.registers.raw_wide(source.from.nth(n)));
            let each = lanes(mask).map(|lane| (lane, at[lane], values[0][lane]));
            let additions = self.others.additions(a.op, a.ty, a.dest.is_some(), each);
            // In the order of lanes, as in the PTX executor: sums of floats depend on it.
            for lane in lanes(mask) {
                let values = values.map(|row| row[lane]);
                let [low, high] = self.atomic_lane(w, a, lane, at[lane], values, &additions)?;
                for (row, word) in old.iter_mut().zip([low, high]) {
                    row[lane] = word;
                }
            }
        }
        w.note_atomic(&first, a.at.window, mask, bytes * a.elements);
        if let Some(dest) = a.dest {
            let count = words * usize::from(a.elements);
            for (n, row) in (0..).zip(old_rows.iter().take(count)) {
                w.registers.set(dest.next(n), mask, row);
            }
        }
        if let Some(done) = a.done {
            let took_place = match a.returns_success {
                true => lanes_where(|lane| old_rows[0][lane] != 0),
                false => u32::MAX,
            };
            w.registers.set_truth(done, mask, took_place);
        }
        Ok(())
    }

    /// Executes the atomic operation of a lane on one element; returns the words of its result.
    fn atomic_lane(
        &mut self,
        w: &mut Warp,
        a: &Atomic,
        lane: usize,
        at: u64,
        [b, c]: [u64; 2],
        additions: &Additions,
    ) -> Result<[u32; 2], String> {
        let bytes = if a.ty.bytes() == 8 { 8 } else { 4 };
        let [low, high, ..] = self.load(w, a.at.window, lane, at, bytes)?;
        let old = u64::from(high) << 32 | u64::from(low);
        let is_global = split(a.at.window, at).0 == Window::Global;
        let Added { value: b, before } = additions.added(lane, at, is_global, b);
        // Values are read from pairs of registers, whatever the type.
        let cut = if bytes == 8 { u64::MAX } else { 0xffff_ffff };
        let new = apply(a.op, a.ty, old, b & cut, c & cut);
        let value = [new as u32, (new >> 32) as u32, 0, 0];
        self.store(w, a.at.window, lane, at, bytes, value)?;
        let back = match a.returns_success {
            true => u64::from(old == b & cut),
            false => old.wrapping_add(before),
        };
        Ok([back as u32, (back >> 32) as u32])
    }
}
