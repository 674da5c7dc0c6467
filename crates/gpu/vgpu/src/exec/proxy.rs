//! The asynchronous proxy: bulk copies read shared memory by another path than stores write it.
//!
//! A store of the generic proxy is visible to a bulk copy only if a `fence.proxy.async` lies
//! between the two in causality order (PTX ISA 9.0, 8.9.5): by the writer before the barrier, or by
//! the copying thread after it. Writes of bulk copies need no such fence.

use super::cta::Cta;
use super::transfer::lanes;
use super::unchanged::{MAX_LOAD_WORDS, Written};
use super::warp::Warp;
use crate::hazard::clock::Seen;
use crate::hazard::report::Location;
use crate::hazard::shadow::LastWrite;
use crate::hazard::{HazardKind, Space};
use crate::lower::program::{Op, ProxyFence};

/// A `fence.proxy.async` that was executed.
#[derive(Debug, Clone)]
pub(super) struct PastFence {
    /// Accesses that happen before it.
    seen: Seen,
    /// State spaces that it covers.
    shared: bool,
    global: bool,
}

/// Proxy fences recorded per thread: more than the stages of any pipeline.
const FENCES_MAX: usize = 32;

impl Cta<'_> {
    /// Executes a fence of proxies or of `mbarrier.init`.
    pub(super) fn proxy_fence(&mut self, w: &Warp, fence: ProxyFence, mask: u32) {
        if !self.context.checks.races {
            return;
        }
        for lane in lanes(mask) {
            let thread = w.index * 32 + lane;
            let (shared, global) = match fence {
                ProxyFence::Async { shared, global } => (shared, global),
                ProxyFence::MbarrierInit => {
                    self.fence_inits(thread);
                    continue;
                }
                ProxyFence::MapRelease => {
                    self.fence_maps(thread, None);
                    continue;
                }
                ProxyFence::MapAcquire(at) => {
                    self.fence_maps(thread, Some(w.address(&at, lane)));
                    continue;
                }
            };
            let seen = self.clocks.mark(thread);
            let floor = self.clocks.floor;
            let fences = &mut self.threads[thread].proxy_fences;
            // A fence after a block barrier covers everything that earlier fences cover.
            let whole = fences
                .iter()
                .rposition(|fence| fence.seen.segment < floor && fence.shared && fence.global);
            fences.drain(..whole.unwrap_or(0));
            if fences.len() == FENCES_MAX {
                fences.remove(0);
            }
            fences.push(PastFence {
                seen,
                shared,
                global,
            });
        }
    }

    /// Reports words that a bulk copy or product of `thread` reads and that a generic store wrote without a
    /// proxy fence in between.
    pub(super) fn check_proxy(&mut self, thread: usize, words: &[u32]) {
        if !self.context.checks.races {
            return;
        }
        let reader = self.asynchronous_name(self.pc);
        for word in words {
            let writes = self.shadow.last_writes(*word as usize);
            let early = (0..4).find_map(|byte| {
                // Mostly one store wrote the whole word.
                let new = byte == 0 || writes[byte] != writes[byte - 1];
                writes[byte].filter(|write| new && self.is_unfenced(thread, *write))
            });
            if let Some(LastWrite { pc, .. }) = early {
                let place = Location::new(Space::Shared, u64::from(*word) * 4);
                let writing = self.context.program.code.get(pc as usize);
                let writer = match writing.map(|inst| &inst.op) {
                    Some(Op::CpAsync(_)) => "`cp.async`",
                    _ => "ordinary stores",
                };
                self.hazard(HazardKind::Race, thread, place, pc, || {
                    format!(
                        "{reader} reads shared memory that {writer} wrote, without \
                         `fence.proxy.async` between them"
                    )
                });
            }
        }
    }

    /// Reports whether the asynchronous proxy may not see a write to shared memory at the current point of
    /// `thread`.
    fn is_unfenced(&self, thread: usize, write: LastWrite) -> bool {
        let writing = self.context.program.code.get(write.pc as usize);
        // These write through the asynchronous proxy, too, and need no fence.
        !writing.is_some_and(|inst| matches!(inst.op, Op::Bulk(_) | Op::Tensor(_)))
            && !self.is_fenced(thread, write.thread, write.segment, |fence| fence.shared)
    }

    /// Reports global memory that a bulk copy of `thread` reads and that ordinary stores of its block
    /// wrote in this launch without a proxy fence in between.
    /// `writes`: the last ones to each piece of the range at an address.
    pub(super) fn check_global_proxy(
        &mut self,
        thread: usize,
        at: u64,
        writes: &[[Written; MAX_LOAD_WORDS]],
    ) {
        let (code, block) = (&self.context.program.code, self.block);
        let early = |written: &Written| {
            let (stamp, of) = (*written)?;
            let writing = code.get(stamp.pc as usize);
            let bulk = writing.is_some_and(|inst| matches!(inst.op, Op::Bulk(_) | Op::Tensor(_)));
            // Other blocks cannot be asked for their fences.
            let early = of == block
                && !bulk
                && !self.is_fenced(thread, stamp.thread.into(), stamp.segment, |f| f.global);
            early.then_some(stamp.pc)
        };
        // Reports name addresses in steps of 16 bytes.
        let places = (at..).step_by(16).flat_map(|at| [at; 4]);
        let mut found = places.zip(writes.iter().flatten());
        let found = found.find_map(|(at, written)| Some((at, early(written)?)));
        if let Some((at, pc)) = found {
            let place = Location::new(Space::Global, at);
            self.hazard(HazardKind::Race, thread, place, pc, || {
                "a bulk copy reads global memory that ordinary stores of this launch wrote, \
                 without `fence.proxy.async` between them"
                    .to_owned()
            });
        }
    }

    /// Reports whether a proxy fence lies between a write and the current point of `thread`.
    fn is_fenced(
        &self,
        thread: usize,
        writer: usize,
        segment: u32,
        covers: impl Fn(&PastFence) -> bool,
    ) -> bool {
        let between = |fence: &PastFence| {
            let seen = &fence.seen;
            covers(fence)
                && seen.covers(writer, segment)
                && self.clocks.ordered(thread, seen.thread, seen.segment)
        };
        // Mostly the fence of the writer or of the copying thread.
        let near = [writer, thread].into_iter();
        let near = near.filter_map(|t| self.threads.get(t));
        let mut near = near.flat_map(|thread| &thread.proxy_fences);
        near.any(between)
            || self
                .threads
                .iter()
                .flat_map(|t| &t.proxy_fences)
                .any(between)
    }
}
