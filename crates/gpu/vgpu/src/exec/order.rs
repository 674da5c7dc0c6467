//! Fences, releases and acquires.

use std::sync::Arc;
use std::sync::PoisonError;

use super::bulk_stores::BulkGroup;
use super::cta::Cta;
use super::map_fences::MapFence;
use super::proxy::PastFence;
use super::tensor_core::Issued;
use super::tensor_memory::Region;
use super::unchanged::Source;
use super::warp::Warp;
use crate::hazard::clock::Clock;
use crate::hazard::shadow::Strength;
use crate::hazard::sync::{Acquired, Published, Variable};
use crate::lower::program::{Data, Op, Order, SHARED_WINDOW, Synchronizes, WINDOW};
use gpu_arithmetic::atomic::AtomOp;

/// Ordering state of one thread: what it has fenced or read but not yet ordered.
#[derive(Debug, Clone, Default)]
pub(super) struct Thread {
    /// State at the last fence, which the thread's later strong stores publish.
    fence: Option<Published>,
    /// Results of strong loads; they take effect at the next fence whose scope includes the writer.
    pending: Vec<PendingAcquire>,
    /// Asynchronous copies: ranges of shared memory by group; the last group is open.
    pub(super) copies: Vec<Vec<CopyDestination>>,
    /// The last of those that an `mbarrier` counts, by its agent.
    pub(super) counted_copies: Vec<(usize, u32)>,
    /// Objects that it initialised by `mbarrier.init` since its last `fence.mbarrier_init`.
    pub(super) inits: Vec<u32>,
    /// Its latest proxy fences, oldest first.
    pub(super) proxy_fences: Vec<PastFence>,
    /// Its latest `fence.proxy.tensormap`, oldest first.
    pub(super) map_fences: Vec<MapFence>,
    /// Bulk copies out of shared memory, by group; the last group is open.
    pub(super) bulk: Vec<BulkGroup>,
    /// Stores of its warp to tensor memory that were not waited for, if it is the first thread.
    pub(super) tensor_stores: Vec<Region>,
    /// Its products and copies of tensor cores.
    pub(super) issued: Issued,
}

impl Thread {
    /// Resets the state to that of a new thread; the memory of its lists is reused.
    pub(super) fn reset(&mut self) {
        self.fence = None;
        self.pending.clear();
        self.copies.clear();
        self.counted_copies.clear();
        self.inits.clear();
        self.proxy_fences.clear();
        self.bulk.clear();
        self.tensor_stores.clear();
        self.issued.clear();
        self.map_fences.clear();
    }
}

/// An acquire of a strong load that no fence has completed yet.
#[derive(Debug, Clone)]
struct PendingAcquire {
    acquired: Acquired,
    /// Clock published by the same block; taken once.
    own: Option<Clock>,
}

/// Words of shared memory that a copy fills.
#[derive(Debug, Clone)]
pub(super) struct CopyDestination {
    pub(super) first: u32,
    pub(super) words: u32,
    /// Its source in global memory; none where the copy only writes zeros.
    pub(super) source: Option<Source>,
}

/// A strong access to a synchronisation variable.
#[derive(Debug, Clone, Copy)]
pub(super) struct Publishing {
    pub(super) order: Order,
    /// Its scope is wider than the block.
    pub(super) device_wide: bool,
    /// It is a read-modify-write.
    pub(super) modifies: bool,
}

impl Cta<'_> {
    /// Reports whether a warp lets others run before an instruction: once before each access whose
    /// order among those of other threads matters.
    pub(super) fn gives_way(&mut self, w: &mut Warp, op: &Op) -> bool {
        let observes = match op {
            // Whether an exchange changes memory depends on what it finds, or what it ends.
            Op::Atom(atom) => {
                atom.dest != Data::Nothing || matches!(atom.op, AtomOp::Cas | AtomOp::Exch)
            }
            Op::Load(m) => self.strength(m.order) != Strength::Plain,
            Op::Store(m) if m.order != Order::Weak => false,
            _ => return false,
        };
        // A reduction or store depends on earlier accesses only if one of them returned a value:
        // histograms go on.
        if !w.gave_way && (observes || w.observed) {
            (w.gave_way, w.observed, self.gave_way) = (true, false, true);
            return true;
        }
        (w.gave_way, w.observed) = (false, w.observed || observes);
        false
    }

    fn published(&mut self, thread: usize, device_wide: bool) -> Published {
        let clock = self.clocks.release(thread);
        Published {
            block: self.block,
            floor: self.clocks.floor,
            clock,
            foreign: self.clocks.foreign[thread].clone(),
            device_wide,
        }
    }

    /// Implements `fence` and `membar`.
    pub(super) fn fence(&mut self, thread: usize, device_wide: bool) {
        // PTX ISA 8.9: a fence first completes acquires of earlier reads, then covers all of it for
        // later writes.
        self.apply_pending(thread, device_wide);
        let published = self.published(thread, device_wide);
        self.threads[thread].fence = Some(published);
    }

    /// Completes the thread's pending acquires: orders it after writes of its own block, and with
    /// `device_wide` after those of others.
    pub(super) fn apply_pending(&mut self, thread: usize, device_wide: bool) {
        let mut pending = std::mem::take(&mut self.threads[thread].pending);
        for p in &mut pending {
            let acquired = p.acquired.clone().fenced(device_wide);
            self.take(thread, acquired, p.own.take());
        }
        // Acquires from other blocks stay pending until a fence of device scope.
        pending.retain(|p| !device_wide && p.acquired.is_wide());
        self.threads[thread].pending = pending;
    }

    /// Orders a thread after the arrivals of the finished phases of an `mbarrier`.
    pub(super) fn acquire_phase(&mut self, at: u32, thread: usize, acquire: Synchronizes) {
        let several = self.context.cluster.blocks > 1;
        let Some(m) = self.mbarriers.get_mut(at) else {
            return;
        };
        let clock = match acquire {
            Synchronizes::Nothing => None,
            Synchronizes::Block if several => m.own[1].clone(),
            _ => m.finished.clone(),
        };
        let executed = m.finished.clone();
        if let Some(clock) = clock {
            self.clocks.acquire(thread, &clock);
        }
        if let Some(executed) = executed {
            self.clocks.acquire_execution(thread, &executed);
        }
    }

    fn take(&mut self, thread: usize, acquired: Acquired, own: Option<Clock>) {
        if let Some(clock) = own {
            self.clocks.acquire(thread, &clock);
        }
        self.clocks.acquire_foreign(thread, acquired);
    }

    /// Shares the fences of some threads of a barrier with all of them.
    pub(super) fn spread_fences(&mut self, threads: &[usize]) {
        if !self.context.program.has_fences {
            return;
        }
        let fences = || {
            threads
                .iter()
                .filter_map(|t| self.threads[*t].fence.as_ref())
        };
        // A fence of block scope adds nothing to one of device scope.
        let wide = fences().any(|f| f.device_wide);
        let mut joined: Option<Published> = None;
        let mut last: Option<&Clock> = None;
        // Threads that fenced together hold the same clock: it is joined once.
        for f in fences().filter(|f| f.device_wide == wide) {
            if last.is_some_and(|l| Arc::ptr_eq(l, &f.clock)) {
                continue;
            }
            last = Some(&f.clock);
            match &mut joined {
                None => joined = Some(f.clone()),
                Some(j) => j.join(f),
            }
        }
        if joined.is_some() {
            for t in threads {
                self.threads[*t].fence.clone_from(&joined);
            }
        }
    }

    fn variable(&mut self, address: u64, create: bool) -> Option<Arc<Variable>> {
        if (SHARED_WINDOW..SHARED_WINDOW + WINDOW).contains(&address) {
            if create {
                return Some(self.variables.entry(address).or_default().clone());
            }
            return self.variables.get(&address).cloned();
        }
        let mut all = self
            .context
            .variables
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if create {
            Some(all.entry(address).or_default().clone())
        } else {
            all.get(&address).cloned()
        }
    }

    /// Before a strong write to `address` (generic): publishes what the thread fenced, or all it
    /// has done for a release. The value must be written afterwards, so that its readers find the
    /// release.
    pub(super) fn publish(&mut self, thread: usize, address: u64, write: Publishing) {
        if !self.context.program.has_fences || !self.context.checks.races {
            return;
        }
        let wide = write.device_wide;
        let published = if matches!(write.order, Order::Release | Order::AcqRel) {
            Some(self.published(thread, wide))
        } else {
            // A write of block scope is not atomic for other blocks, whatever the fence.
            self.threads[thread].fence.clone().map(|fence| Published {
                device_wide: fence.device_wide && wide,
                ..fence
            })
        };
        if let Some(variable) = self.variable(address, published.is_some()) {
            variable.write(write.modifies, published);
        }
    }

    /// After a strong read of `address` (generic): acquires what earlier releases published, at
    /// once or at the thread's next fence.
    pub(super) fn observe(&mut self, thread: usize, address: u64, read: Publishing) {
        if !self.context.program.has_fences || !self.context.checks.races {
            return;
        }
        let Some(variable) = self.variable(address, false) else {
            return;
        };
        let Some(acquired) = variable.seen(self.block, read.device_wide) else {
            return;
        };
        let own = variable.of_block(self.block);
        if matches!(read.order, Order::Acquire | Order::AcqRel) {
            return self.take(thread, acquired, own);
        }
        // A read-modify-write after a fence acquires at once: the common ticket pattern has no
        // second fence.
        if read.modifies
            && let Some(fence) = &self.threads[thread].fence
        {
            let wide = fence.device_wide;
            self.take(thread, acquired.clone().fenced(wide), own.clone());
            if wide {
                return;
            }
        }
        let pending = &mut self.threads[thread].pending;
        // A polling loop observes again and again: without this each poll would add an entry.
        pending.retain(|p| !acquired.holds(&p.acquired));
        pending.push(PendingAcquire { acquired, own });
    }
}
