//! Accesses of a whole warp to shared memory.

use super::super::access::word_mask;
use super::super::cta::Cta;
use super::super::regs::FULL;
use super::super::transfer::lanes;
use super::super::warp::Warp;
use super::{Kind, Row, Words, cut, merged};
use crate::hazard::Space;
use crate::hazard::report::Location;
use crate::hazard::shadow::{Conflict, Epoch, Stamp, WIDE_WORDS};
use crate::lower::program::Area;
use gpu_arithmetic::host::vectorised;

impl Cta<'_> {
    pub(super) fn shared_row<const N: usize>(
        &mut self,
        w: &mut Warp,
        row: &Row,
        mask: u32,
        kind: Kind,
        words: &mut Words,
    ) -> u32 {
        // The quick path has changed nothing where it fails: the lanes are simply done again one by
        // one.
        if self.shared_quick::<N>(w, row, mask, kind, words) {
            return mask;
        }
        let (mut done, mut changed) = (mask, false);
        for lane in lanes(mask) {
            let at = row.at[lane];
            let (first, part) = ((at / 4) as usize, word_mask(at, kind.bytes));
            let touched = self.touch(w, Area::Shared, at, kind.touch(lane));
            if touched.is_none() {
                done &= !(1 << lane);
                continue;
            }
            let shared = &mut self.shared[first..first + N];
            if kind.write {
                for (word, from) in shared.iter_mut().zip(words.iter()) {
                    let new = merged(*word, from[lane], part, at);
                    changed |= *word != new;
                    *word = new;
                }
            } else {
                for (word, to) in shared.iter().zip(words.iter_mut()) {
                    to[lane] = cut(*word, part, at);
                }
            }
        }
        self.version += u64::from(changed);
        done
    }

    /// Executes an access to whole words that exist and, for reads, were written. Otherwise returns
    /// `false` and changes nothing. One pass each for the states of the words, their order, and the
    /// data.
    #[inline(always)]
    fn shared_quick<const N: usize>(
        &mut self,
        w: &Warp,
        row: &Row,
        mask: u32,
        kind: Kind,
        words: &mut Words,
    ) -> bool {
        if kind.bytes != 4 * N as u32 {
            return false;
        }
        // Lanes are below 32 anyway: the mask spares the vectorized loops a bounds check.
        let place = |lane: usize| (row.at[lane & 31] / (4 * N as u64)) as usize;
        let read_unwritten = kind.write || !self.context.checks.uninitialized;
        // High four bits: the bytes exist. Low four: they were written.
        let needed = if read_unwritten { 0xf0 } else { 0xff };
        let states = self.shared_state.as_chunks_mut::<N>().0;
        let mut all = needed;
        for_each_lane(mask, |lane| {
            states[place(lane)].iter().for_each(|s| all &= s);
        });
        // Nothing is changed up to here.
        if all != needed {
            return false;
        }
        if kind.write {
            for_each_lane(mask, |lane| {
                states[place(lane)].iter_mut().for_each(|s| *s |= 15);
            });
        }
        if self.context.checks.races {
            self.shared_order::<N>(w, row, mask, kind);
            if kind.write && self.have_products_read() {
                for lane in lanes(mask) {
                    let first = row.at[lane] as usize / 4;
                    let thread = w.index * 32 + lane;
                    (first..first + N).for_each(|word| self.check_product_reads(thread, word));
                }
            }
        }
        let shared = self.shared.as_chunks_mut::<N>().0;
        if kind.write {
            let mut changed = 0;
            for_each_lane(mask, |lane| {
                for (word, from) in shared[place(lane)].iter_mut().zip(words.iter()) {
                    changed |= *word ^ from[lane & 31];
                    *word = from[lane & 31];
                }
            });
            self.version += u64::from(changed != 0);
        } else {
            for_each_lane(mask, |lane| {
                for (word, to) in shared[place(lane)].iter().zip(words.iter_mut()) {
                    to[lane & 31] = *word;
                }
            });
        }
        true
    }

    /// Records an access of whole words in the shadow of shared memory.
    #[inline(always)]
    fn shared_order<const N: usize>(&mut self, w: &Warp, row: &Row, mask: u32, kind: Kind) {
        let epoch = Epoch::from_clocks(&self.clocks);
        // Two lanes of this warp have just read the same word: one more changes nothing.
        let repeats = if kind.write {
            0
        } else {
            self.repeats(w, row, mask)
        };
        let (pc, shadow, clocks) = (self.pc, &mut self.shadow, &self.clocks);
        // Reported after the loop: `race` needs the whole block, which the closure borrows in
        // parts.
        let mut races: Vec<(usize, u64, Conflict)> = Vec::new();
        for_each_lane(mask & !repeats, |lane| {
            let thread = w.index * 32 + lane;
            let mut stamp = Stamp::plain(thread, clocks.segment[thread], pc);
            if kind.in_flight {
                stamp = stamp.in_flight();
            }
            let first = (row.at[lane & 31] / 4) as usize;
            if N == WIDE_WORDS
                && clocks.exact_readers
                && let Ok(found) = shadow.access_wide(first, &kind.access(&stamp), clocks)
            {
                let of_each_word = found.map(|c| [(thread, row.at[lane & 31], c); WIDE_WORDS]);
                races.extend(of_each_word.into_iter().flatten());
                return;
            }
            for i in 0..N {
                let cell = &mut shadow.cells(first, N)[i];
                if !cell.plain(&stamp, kind.write, epoch)
                    && let Some(c) = shadow.access(first + i, 15, &kind.access(&stamp), clocks)
                {
                    races.push((thread, row.at[lane & 31], c));
                }
            }
        });
        for (thread, at, conflict) in races {
            self.race(
                thread,
                Location::new(Space::Shared, at),
                kind.write,
                conflict,
            );
        }
    }

    /// Returns the lanes that read the same as the two lanes before them, in the same segment.
    #[inline(always)]
    fn repeats(&self, w: &Warp, row: &Row, mask: u32) -> u32 {
        let threads = w.index * 32..w.index * 32 + 32;
        if mask != FULL || self.clocks.exact_readers {
            return 0;
        }
        let Some(segments) = self.clocks.segment.get(threads) else {
            return 0;
        };
        vectorised(
            #[inline(always)]
            || {
                let (mut bits, mut other) = (0, 0);
                for lane in 2..32 {
                    let at = row.at[lane];
                    let same = at == row.at[lane - 1] && at == row.at[lane - 2];
                    bits |= u32::from(same) << lane;
                }
                for segment in segments {
                    other |= segment ^ segments[0];
                }
                if other == 0 { bits } else { 0 }
            },
        )
    }
}

/// Calls `f` for the lanes of a mask, with a separate loop for a full one.
#[inline(always)]
fn for_each_lane(mask: u32, mut f: impl FnMut(usize)) {
    if mask == FULL {
        (0..32).for_each(f);
    } else {
        lanes(mask).for_each(&mut f);
    }
}
