//! Bulk copies out of shared memory, which they read until the issuing thread waits for their
//! group.
//!
//! The executor copies at once. To find a store that comes too early, it records the last write of
//! each word when the copy is issued, and compares it at the wait.

use super::access::{Touch, word_mask};
use super::cta::Cta;
use super::transfer::lanes;
use super::unchanged::BulkRange;
use super::warp::Warp;
use crate::hazard::Space;
use crate::hazard::report::Location;
use crate::hazard::shadow::LastWrite;
use crate::lower::program::NONE;

/// A word that a bulk copy reads: the last write to each byte at issue, and the instruction of the copy.
#[derive(Debug, Clone)]
pub(super) struct BulkSource {
    word: u32,
    written: [Option<LastWrite>; 4],
    pc: u32,
}

impl BulkSource {
    /// Returns the address of the word in shared memory.
    pub(super) fn address(&self) -> u64 {
        u64::from(self.word) * 4
    }
}

/// Copies that a thread committed together.
#[derive(Debug, Clone, Default)]
pub(super) struct BulkGroup {
    /// Reads that are not finished.
    sources: Vec<BulkSource>,
    /// Writes that are not finished.
    written: Vec<BulkDestination>,
    /// Tensor maps of its copies.
    maps: Vec<BulkRange>,
}

/// Elements of global memory that a bulk copy writes.
#[derive(Debug, Clone, Copy)]
struct BulkDestination {
    at: u64,
    /// The access, which is repeated when the copy is complete.
    touch: Touch,
    pc: u32,
}

impl Cta<'_> {
    /// Checks that words are visible to the asynchronous proxy, and adds them to a thread's open group.
    pub(super) fn bulk_reads(&mut self, thread: usize, words: &[u32]) {
        self.check_proxy(thread, words);
        if self.context.checks.races {
            let readings = self.sources_of(words);
            self.open_group(thread).sources.extend(readings);
        }
    }

    /// Adds the tensor map of a copy to a thread's open group.
    pub(super) fn bulk_map(&mut self, thread: usize, map: Option<BulkRange>) {
        if let Some(map) = map {
            self.open_group(thread).maps.push(map);
        }
    }

    /// Adds what a bulk copy writes to a thread's open group.
    pub(super) fn bulk_writes(&mut self, thread: usize, at: u64, touch: Touch) {
        if self.context.checks.races && self.context.skip_unless == 0 {
            let pc = self.pc;
            let written = BulkDestination { at, touch, pc };
            self.open_group(thread).written.push(written);
        }
    }

    fn open_group(&mut self, thread: usize) -> &mut BulkGroup {
        let groups = &mut self.threads[thread].bulk;
        if groups.is_empty() {
            groups.push(BulkGroup::default());
        }
        let last = groups.len() - 1;
        &mut groups[last]
    }

    /// Returns the last writes of words that a copy reads from now on.
    pub(super) fn sources_of(&self, words: &[u32]) -> Vec<BulkSource> {
        let source = |word: &u32| BulkSource {
            word: *word,
            written: self.shadow.last_writes(*word as usize),
            pc: self.pc,
        };
        words.iter().map(source).collect()
    }

    /// Implements `cp.async.bulk.commit_group`.
    pub(super) fn commit_bulk(&mut self, w: &Warp, mask: u32) {
        for lane in lanes(mask) {
            self.threads[w.index * 32 + lane]
                .bulk
                .push(BulkGroup::default());
        }
    }

    /// Implements `cp.async.bulk.wait_group`: all but `left` committed groups have read their
    /// sources, and unless only this is waited for, written their results; `NONE` at the thread's
    /// exit means all groups.
    pub(super) fn wait_bulk(&mut self, w: &Warp, left: u32, read: bool, mask: u32) {
        for lane in lanes(mask) {
            let thread = w.index * 32 + lane;
            let groups = &mut self.threads[thread].bulk;
            // The last entry is the open group, which no wait counts.
            let keep = if left == NONE { 0 } else { left as usize + 1 };
            let done = groups.len().saturating_sub(keep);
            // Most threads store nothing in bulk, and each comes here at its exit.
            if done == 0 {
                continue;
            }
            let done_groups = groups[..done].iter_mut();
            // A wait for the reads of a copy is one for its map, too (PTX ISA, `cp.async.bulk.wait_group`).
            let (mut readings, mut maps) = (Vec::new(), Vec::new());
            for group in done_groups {
                readings.append(&mut group.sources);
                maps.append(&mut group.maps);
            }
            let written: Vec<BulkDestination> = match read {
                true => Vec::new(),
                false => groups.drain(..done).flat_map(|g| g.written).collect(),
            };
            self.check_sources(thread, readings);
            for map in maps {
                self.check_range(thread, &map);
            }
            for destination in written {
                self.complete_write(thread, destination);
            }
        }
    }

    /// Records a write of a bulk copy once more when it is complete: who read the element between
    /// has read it too early, and who reads it later must be ordered behind the wait.
    fn complete_write(&mut self, thread: usize, written: BulkDestination) {
        let Some(found) = self.context.memory.find(written.at) else {
            return;
        };
        let allocation = &self.context.memory.allocations[found.index];
        let here = std::mem::replace(&mut self.pc, written.pc);
        let mask = word_mask(found.offset, written.touch.bytes);
        let first = (found.offset / 4) as usize;
        for word in first..first + written.touch.bytes.div_ceil(4) as usize {
            self.order_global(
                allocation,
                (word, mask),
                (thread, written.at),
                &written.touch,
            );
        }
        self.pc = here;
    }

    /// Reports stores to words between a copy that reads them and its end.
    pub(super) fn check_sources(&mut self, thread: usize, readings: Vec<BulkSource>) {
        for r in readings {
            let now = self.shadow.last_writes(r.word as usize);
            let mut bytes = now.iter().zip(&r.written);
            let early = bytes.find_map(|(now, then)| now.filter(|_| now != then));
            if let Some(LastWrite {
                pc, thread: writer, ..
            }) = early
            {
                let place = Location::new(Space::Shared, r.address());
                self.written_early(thread, r.pc, (pc, writer), place);
            }
        }
    }
}
