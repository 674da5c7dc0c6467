//! Accesses of more than four registers a lane.

use super::memory::{Memory, Window, check_alignment, lanes};
use super::registers::{Dest, Source};
use super::warp::Warp;
use gpu_arithmetic::Lanes as Row;

/// Bytes of an access to two groups of four registers.
const PAIR_BYTES: u8 = 32;

/// Returns the words of 32 bytes whose bit is set: the half, the number of the register in the half, and the offset.
/// Those of a half are in successive registers.
fn words_of(words: u8) -> impl Iterator<Item = (usize, u8, u64)> {
    let set = (0..8_u8).filter(move |n| words >> n & 1 == 1);
    set.map(move |n| {
        let half = if n < 4 { 0xf } else { 0xf0 };
        let before = words & half & ((1 << n) - 1);
        (
            usize::from(n / 4),
            before.count_ones() as u8,
            u64::from(n) * 4,
        )
    })
}

impl Memory<'_> {
    /// Loads words of 32 bytes of global memory a lane, the lower half into the first registers.
    pub(super) fn load_pair(
        &mut self,
        w: &mut Warp,
        at: &[u64; 32],
        dest: [Dest; 2],
        words: u8,
        mask: u32,
    ) -> Result<(), String> {
        lanes(mask).try_for_each(|lane| check_alignment(at[lane], PAIR_BYTES))?;
        let mut rows = Vec::with_capacity(8);
        for (half, number, offset) in words_of(words) {
            let mut row: Row = [0; 32];
            for lane in lanes(mask) {
                row[lane] = self.load(w, Window::Global, lane, at[lane] + offset, 4)?[0];
            }
            rows.push((dest[half].next(number), row));
        }
        w.note(at, Window::Global, mask, PAIR_BYTES, false);
        // The address may be in one of the registers.
        for (register, row) in rows {
            w.registers.set(register, mask, &row);
        }
        Ok(())
    }

    /// Stores 32 bytes to global memory a lane, from the first registers to the lower half.
    pub(super) fn store_pair(
        &mut self,
        w: &mut Warp,
        at: &[u64; 32],
        source: [Source; 2],
        mask: u32,
    ) -> Result<(), String> {
        lanes(mask).try_for_each(|lane| check_alignment(at[lane], PAIR_BYTES))?;
        for (half, number, offset) in words_of(u8::MAX) {
            let row = w.registers.raw(source[half].from.nth(number));
            for lane in lanes(mask) {
                let value = [row[lane], 0, 0, 0];
                self.store(w, Window::Global, lane, at[lane] + offset, 4, value)?;
            }
        }
        w.note(at, Window::Global, mask, PAIR_BYTES, true);
        Ok(())
    }
}
