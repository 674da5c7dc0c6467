//! Accesses of a whole warp to global memory.

use std::sync::atomic::Ordering::Relaxed;

use super::super::access::word_mask;
use super::super::cta::Cta;
use super::super::device::AccessKind;
use super::super::transfer::lanes;
use super::super::warp::Warp;
use super::{Kind, Row, Words, cut, merged};
use crate::hazard::Space;
use crate::hazard::global::{BlockOfLaunch, OpenChunk};
use crate::hazard::report::Location;
use crate::hazard::shadow::{Epoch, Stamp};
use crate::memory::Allocation;

/// Word of a lane's access: its index, the byte offset of the access, and the accessed bytes.
#[derive(Clone, Copy)]
struct WordAccess {
    word: usize,
    at: u64,
    part: u32,
}

impl Cta<'_> {
    pub(super) fn global_row<const N: usize>(
        &mut self,
        w: &mut Warp,
        row: &Row,
        mask: u32,
        kind: Kind,
        words: &mut Words,
    ) -> u32 {
        let context = self.context;
        let Some(index) = row.allocation else {
            return 0;
        };
        let allocation = &*context.memory.allocations[index];
        let offsets = lanes(mask).map(|lane| row.at[lane]);
        let noted = AccessKind {
            bytes: kind.bytes,
            write: kind.write,
            atomic: false,
        };
        self.note_access(index, offsets, noted);
        let epoch = Epoch::from_clocks(&self.clocks);
        let checks = context.checks;
        let (races, unwritten) = (checks.races, checks.uninitialized && !kind.write);
        // Most reads are of inputs, where one test of the row replaces those of each word.
        let is_input = !unwritten || allocation.init.is_complete();
        if is_input && !kind.write {
            let firsts = lanes(mask).map(|lane| (row.at[lane] / 4) as usize);
            if !races || allocation.shadow.are_quiet(firsts, N, context.launch) {
                for lane in lanes(mask) {
                    load::<N>(allocation, row.at[lane], lane, kind, words);
                }
                return mask;
            }
        }
        let mut open: Option<OpenChunk<'_>> = None;
        let (mut changed, mut mark) = (false, allocation.init.marker());
        for lane in lanes(mask) {
            let at = row.at[lane];
            let first = (at / 4) as usize;
            let part = word_mask(at, kind.bytes);
            let stamp = self.stamp(w.index * 32 + lane, kind);
            for word in first..first + N {
                if unwritten && !allocation.init.has_word(word, part) {
                    self.unwritten_global(usize::from(stamp.thread), word, allocation);
                }
                if kind.write {
                    mark.word(word, part);
                }
            }
            if races && (kind.write || !allocation.shadow.are_quiet([first], N, context.launch)) {
                if !open.as_ref().is_some_and(|o| o.holds(first)) {
                    // The old chunk is released first: two workers must not wait for each other.
                    drop(open.take());
                    let mut chunk = allocation.shadow.open(first);
                    if kind.write {
                        context.save(&mut chunk, allocation);
                    }
                    open = Some(chunk);
                }
                if let Some(open) = &mut open {
                    for word in first..first + N {
                        let target = WordAccess { word, at, part };
                        self.global_order(open, allocation, target, &stamp, kind, epoch);
                    }
                }
            }
            if kind.write && context.program.addresses_only {
                continue;
            }
            if kind.write {
                let memory = &allocation.words[first..first + N];
                for (word, from) in memory.iter().zip(words.iter()) {
                    changed |= store(word, from[lane], part, at);
                }
            } else {
                load::<N>(allocation, at, lane, kind, words);
            }
        }
        self.version += u64::from(changed);
        mask
    }

    /// Records an access in the shadow of global memory.
    #[inline(always)]
    fn global_order(
        &mut self,
        open: &mut OpenChunk<'_>,
        allocation: &Allocation,
        target: WordAccess,
        stamp: &Stamp,
        kind: Kind,
        epoch: Epoch,
    ) {
        let WordAccess { word, at, part } = target;
        let here = BlockOfLaunch {
            launch: self.context.launch,
            block: self.block,
        };
        if part == 15 && open.plain(word, stamp, kind.write, here, epoch) {
            return;
        }
        let access = kind.access(stamp);
        if let Some(c) = self.global_access(open, allocation, word, part, &access) {
            let place = Location::new(Space::Global, allocation.base + at);
            self.race(access.thread, place, kind.write, c);
        }
    }
}

/// Loads the words of a lane, which begin at the byte `at`.
#[inline(always)]
fn load<const N: usize>(
    allocation: &Allocation,
    at: u64,
    lane: usize,
    kind: Kind,
    words: &mut Words,
) {
    let first = (at / 4) as usize;
    let part = word_mask(at, kind.bytes);
    let memory = &allocation.words[first..first + N];
    for (word, to) in memory.iter().zip(words.iter_mut()) {
        to[lane] = cut(word.load(Relaxed), part, at);
    }
}

/// Stores to a word that other blocks may use; returns whether its value changed.
#[inline(always)]
fn store(word: &std::sync::atomic::AtomicU32, new: u32, part: u32, at: u64) -> bool {
    let old = word.load(Relaxed);
    if part == 15 {
        word.store(new, Relaxed);
        return old != new;
    }
    // A block on another core may store the neighbouring bytes at the same time.
    let _ = word.fetch_update(Relaxed, Relaxed, |old| Some(merged(old, new, part, at)));
    merged(old, new, part, at) != old
}
