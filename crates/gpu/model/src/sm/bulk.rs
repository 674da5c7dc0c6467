//! Bulk copies between global and shared memory: the tensor memory accelerator (TMA).
//!
//! A copy takes some 170 cycles more than a load (Luo et al., arXiv 2501.12084), its issue 32, and at most 384
//! lines of 128 bytes are on their way for a multiprocessor (FlashGPU-Sim, configuration SM90_H100).

use super::Sm;
use super::paths::Issue;
use crate::code::Bulk;
use crate::cursor::AccessLookup;
use std::collections::VecDeque;

/// Cycles of a copy beyond those of a load.
const EXTRA_CYCLES: u64 = 170;
/// Cycles between the begins of two copies.
const ISSUE_CYCLES: u64 = 32;
/// Bytes on their way at most.
const MAX_BYTES: u64 = 384 * 128;
/// Bytes of a sector.
const SECTOR_BYTES: u64 = 32;

/// Copies of a multiprocessor.
#[derive(Debug, Default)]
pub(super) struct CopyEngine {
    free: u64,
    /// End cycle and bytes of the loads on their way.
    under_way: VecDeque<(u64, u64)>,
    bytes: u64,
}

impl CopyEngine {
    /// Returns the begin of a copy that is issued now.
    fn begin(&mut self, now: u64, bytes: u64) -> u64 {
        let mut start = self.free.max(now);
        while let Some((end, landed)) = self.under_way.front().copied() {
            let fits = self.bytes + bytes <= MAX_BYTES;
            if end > start && fits {
                break;
            }
            if !fits {
                start = start.max(end);
            }
            self.bytes -= landed;
            self.under_way.pop_front();
        }
        self.free = start + ISSUE_CYCLES;
        start
    }

    fn note(&mut self, end: u64, bytes: u64) {
        self.under_way.push_back((end, bytes));
        self.bytes += bytes;
    }
}

impl Sm<'_> {
    /// Executes a bulk copy and returns the cycle at which its bytes have arrived.
    pub(super) fn bulk(&mut self, issue: Issue, direction: Bulk) -> u64 {
        let (found, trace) = self.lookup_access(issue.warp_index);
        let AccessLookup::Access(access, _) = found else {
            return issue.now + EXTRA_CYCLES;
        };
        let sectors = trace.sectors_of(access);
        let bytes = sectors.len() as u64 * SECTOR_BYTES;
        let start = self.copies.begin(issue.now, bytes);
        let replica = self.warps[issue.warp_index].replica;
        let write = direction == Bulk::Store;
        let fetched = sectors
            .iter()
            .map(|sector| self.first_fetch(*sector, replica, write))
            .sum();
        let tally = &mut self.out.tally;
        if write {
            tally.stored_sectors += sectors.len() as u64;
        } else {
            tally.l1_sectors += sectors.len() as u64;
        }
        let end = self.fetch_sectors(start, sectors.len() as u64, fetched, write);
        if write {
            // The source is free when it was read.
            let read = start + bytes.div_ceil(u64::from(self.work.arch.shared_bytes_per_clock));
            let warp = &mut self.warps[issue.warp_index];
            warp.copies = warp
                .copies
                .max(read + u64::from(self.work.arch.shared_cycles));
            return end;
        }
        self.copies.note(end + EXTRA_CYCLES, bytes);
        end + EXTRA_CYCLES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_wait_for_room() {
        let mut engine = CopyEngine::default();
        for end in [1000, 2000, 3000] {
            engine.begin(0, 16384);
            engine.note(end, 16384);
        }
        assert_eq!(engine.begin(0, 16384), 1000);
        assert_eq!(engine.bytes, 2 * 16384);
    }
}
