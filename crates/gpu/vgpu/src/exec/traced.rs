//! Recording of traces by the executor.

use super::cta::Cta;
use super::trace::WarpTrace;
use super::transfer::lanes;
use std::ops::Range;

impl Cta<'_> {
    /// Returns the trace of the running warp.
    #[inline]
    pub(super) fn warp_trace(&mut self) -> Option<&mut WarpTrace> {
        let traces = self.trace.as_mut()?;
        let (cluster, warp) = (&self.context.cluster, self.running);
        let rank = cluster.rank(warp * 32);
        traces
            .get_mut(rank)?
            .warps
            .get_mut(warp - rank * cluster.warps)
    }

    /// Begins a run of instructions at `start`.
    #[inline]
    pub(super) fn open_run(&mut self, start: u32) {
        if let Some(trace) = self.warp_trace() {
            trace.open(start);
        }
    }

    /// Ends the current run before `end`.
    #[inline]
    pub(super) fn close_run(&mut self, end: u32) {
        if let Some(trace) = self.warp_trace() {
            trace.close(end);
        }
    }

    /// Records a global access.
    #[cold]
    pub(super) fn trace_global(
        &mut self,
        at: &[u64; 32],
        base: u64,
        mask: u32,
        bytes: u32,
        write: bool,
    ) {
        let pc = self.pc;
        if let Some(trace) = self.warp_trace() {
            trace.global(pc, at, base, mask, bytes, write);
            if write {
                for lane in lanes(mask) {
                    let start = at[lane].wrapping_add(base);
                    let words = start / 4..=start.saturating_add(u64::from(bytes) - 1) / 4;
                    trace.stored.extend(words);
                }
            }
        }
    }

    /// Records a bulk copy from or to ranges of global memory.
    #[cold]
    pub(super) fn trace_bulk(
        &mut self,
        ranges: impl Iterator<Item = Range<u64>> + Clone,
        write: bool,
    ) {
        let pc = self.pc;
        if let Some(trace) = self.warp_trace() {
            trace.bulk(pc, ranges.clone(), write);
            if write {
                let words = ranges.flat_map(|range| range.start / 4..range.end.div_ceil(4));
                trace.stored.extend(words);
            }
        }
    }

    /// Records a shared access.
    #[cold]
    pub(super) fn trace_shared(
        &mut self,
        wavefronts: u64,
        conflicts: u64,
        mask: u32,
        bytes: u32,
        write: bool,
    ) {
        let pc = self.pc;
        if let Some(trace) = self.warp_trace() {
            trace.shared(pc, wavefronts, conflicts, mask, bytes, write);
        }
    }
}
