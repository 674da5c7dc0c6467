//! Bulk copies out of shared memory, which they read until the issuing thread waits for their
//! group.
//!
//! The executor copies at once. To find a store that comes too early, it records the last write of
//! each word when the copy is issued, and compares it at the wait.

use super::cta::Cta;
use super::transfer::lanes;
use super::warp::Warp;
use crate::hazard::Space;
use crate::hazard::report::Location;
use crate::hazard::shadow::Conflict;
use crate::lower::program::NONE;

/// A word that a bulk copy reads: its last write at issue, and the instruction of the copy.
#[derive(Debug, Clone)]
pub(super) struct BulkSource {
    word: u32,
    written: Option<(u32, u32, usize)>,
    pc: u32,
}

impl Cta<'_> {
    /// Checks that words are visible to the asynchronous proxy, and adds them to a thread's open group.
    pub(super) fn bulk_reads(&mut self, thread: usize, words: &[u32]) {
        self.check_proxy(thread, words);
        if !self.context.checks.races {
            return;
        }
        let readings = self.sources_of(words);
        let groups = &mut self.threads[thread].bulk;
        if groups.is_empty() {
            groups.push(Vec::new());
        }
        if let Some(open) = groups.last_mut() {
            open.extend(readings);
        }
    }

    /// Returns the last writes of words that a copy reads from now on.
    pub(super) fn sources_of(&self, words: &[u32]) -> Vec<BulkSource> {
        let source = |word: &u32| BulkSource {
            word: *word,
            written: self.shadow.last_write(*word as usize),
            pc: self.pc,
        };
        words.iter().map(source).collect()
    }

    /// Implements `cp.async.bulk.commit_group`.
    pub(super) fn commit_bulk(&mut self, w: &Warp, mask: u32) {
        for lane in lanes(mask) {
            self.threads[w.index * 32 + lane].bulk.push(Vec::new());
        }
    }

    /// Implements `cp.async.bulk.wait_group`: all but `left` committed groups have read their
    /// sources; `NONE` at the thread's exit means all groups.
    pub(super) fn wait_bulk(&mut self, w: &Warp, left: u32, mask: u32) {
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
            let readings: Vec<BulkSource> = groups.drain(..done).flatten().collect();
            self.check_sources(thread, readings);
        }
    }

    /// Reports stores to words between a copy that reads them and its end.
    pub(super) fn check_sources(&mut self, thread: usize, readings: Vec<BulkSource>) {
        for r in readings {
            let now = self.shadow.last_write(r.word as usize);
            if let Some((_, pc, writer)) = now
                && now != r.written
            {
                let conflict = Conflict {
                    pc: r.pc,
                    thread,
                    block: None,
                    was_write: false,
                    in_flight: true,
                };
                // The hazard is attributed to the store: it came too early.
                let here = std::mem::replace(&mut self.pc, pc);
                self.race(
                    writer,
                    Location::new(Space::Shared, u64::from(r.word) * 4),
                    true,
                    conflict,
                );
                self.pc = here;
            }
        }
    }
}
