//! The asynchronous proxy: bulk copies read shared memory by another path than stores write it.
//!
//! A store of the generic proxy is visible to a bulk copy only if a `fence.proxy.async` lies
//! between the two in causality order (PTX ISA 9.0, 8.9.5): by the writer before the barrier, or by
//! the copying thread after it. Writes of bulk copies need no such fence.

use super::cta::Cta;
use super::transfer::lanes;
use super::warp::Warp;
use crate::hazard::clock::Seen;
use crate::hazard::report::Location;
use crate::hazard::{HazardKind, Space};
use crate::lower::program::Op;

/// A proxy fence: the accesses of its thread before it.
pub(super) type ProxyFence = Seen;

/// Proxy fences recorded per thread: more than the stages of any pipeline.
const FENCES_MAX: usize = 32;

impl Cta<'_> {
    /// Executes `fence.proxy.async`.
    pub(super) fn proxy_fence(&mut self, w: &Warp, mask: u32) {
        if !self.context.checks.races {
            return;
        }
        for lane in lanes(mask) {
            let thread = w.index * 32 + lane;
            let fence = self.clocks.mark(thread);
            let floor = self.clocks.floor;
            let fences = &mut self.threads[thread].proxy_fences;
            // A fence after a block barrier covers everything that earlier fences cover.
            let whole = fences.iter().rposition(|fence| fence.segment < floor);
            fences.drain(..whole.unwrap_or(0));
            if fences.len() == FENCES_MAX {
                fences.remove(0);
            }
            fences.push(fence);
        }
    }

    /// Reports words that a bulk copy or product of `thread` reads and that a generic store wrote without a
    /// proxy fence in between.
    pub(super) fn check_proxy(&mut self, thread: usize, words: &[u32]) {
        if !self.context.checks.races {
            return;
        }
        let reader = if self.is_product(self.pc) {
            "a wgmma"
        } else {
            "a bulk copy"
        };
        for word in words {
            let Some((segment, pc, writer)) = self.shadow.last_write(*word as usize) else {
                continue;
            };
            let writing = self.context.program.code.get(pc as usize);
            if writing.is_some_and(|inst| matches!(inst.op, Op::Bulk(_) | Op::Tensor(_))) {
                continue;
            }
            if !self.is_fenced(thread, writer, segment) {
                let place = Location::new(Space::Shared, u64::from(*word) * 4);
                self.hazard(HazardKind::Race, thread, place, pc, || {
                    format!(
                        "{reader} reads shared memory that ordinary stores wrote, without \
                         `fence.proxy.async` between them"
                    )
                });
            }
        }
    }

    /// Reports whether a proxy fence lies between a write and the current point of `thread`.
    fn is_fenced(&self, thread: usize, writer: usize, segment: u32) -> bool {
        let between = |fence: &ProxyFence| {
            fence.covers(writer, segment)
                && self.clocks.ordered(thread, fence.thread, fence.segment)
        };
        // Mostly the fence of the writer or of the copying thread.
        let near = [writer, thread].into_iter();
        let mut near = near.flat_map(|t| &self.threads[t].proxy_fences);
        near.any(between)
            || self
                .threads
                .iter()
                .flat_map(|t| &t.proxy_fences)
                .any(between)
    }
}
