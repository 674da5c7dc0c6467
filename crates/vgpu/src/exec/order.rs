//! Fences, releases and acquires.

use std::sync::Arc;
use std::sync::PoisonError;

use super::cta::Cta;
use crate::hazard::clock::Clock;
use crate::hazard::sync::{Acquired, Published, Variable};
use crate::lower::program::{Order, SHARED_WINDOW, WINDOW};

/// What one thread has published or read but not ordered yet.
#[derive(Debug, Clone, Default)]
pub(super) struct Thread {
    /// State at the last fence: what a strong store publishes after it.
    fence: Option<Published>,
    /// Read by strong loads; counts after the next fence or barrier.
    pending: Vec<(Acquired, Vec<Clock>)>,
    /// Asynchronous copies: places in shared memory by group; the last group is open.
    pub(super) copies: Vec<Vec<Copied>>,
    /// Bulk copies out of shared memory, by group; the last group is open.
    pub(super) bulk: Vec<Vec<super::bulk_stores::Reading>>,
}

/// Words of shared memory that a copy fills.
#[derive(Debug, Clone, Copy)]
pub(super) struct Copied {
    pub(super) first: u32,
    pub(super) words: u32,
}

impl Cta<'_> {
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

    /// `fence` and `membar`.
    pub(super) fn fence(&mut self, thread: usize, device_wide: bool) {
        self.apply_pending(thread);
        let published = self.published(thread, device_wide);
        self.threads[thread].fence = Some(published);
    }

    /// What the thread read from synchronisation variables orders it from now on.
    pub(super) fn apply_pending(&mut self, thread: usize) {
        for (acquired, clocks) in std::mem::take(&mut self.threads[thread].pending) {
            self.take(thread, acquired, &clocks);
        }
    }

    fn take(&mut self, thread: usize, acquired: Acquired, clocks: &[Clock]) {
        for clock in clocks {
            self.clocks.acquire(thread, clock);
        }
        self.clocks.acquire_foreign(thread, acquired);
    }

    /// After a barrier, what some of its threads fenced is fenced for all of them.
    pub(super) fn spread_fences(&mut self, threads: &[usize]) {
        if !self.context.program.has_fences {
            return;
        }
        let fences = || {
            threads
                .iter()
                .filter_map(|t| self.threads[*t].fence.as_ref())
        };
        // A fence of the block adds nothing to what one of the device covers.
        let wide = fences().any(|f| f.device_wide);
        let mut joined: Option<Published> = None;
        let mut last: Option<&Clock> = None;
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

    /// Before a strong write to `address` (generic): publishes what the thread fenced, or with a
    /// release all it has done. The value must follow, so that whoever reads it finds this.
    pub(super) fn publish(&mut self, thread: usize, address: u64, order: Order, device_wide: bool) {
        if !self.context.program.has_fences || !self.context.checks.races {
            return;
        }
        let published = if matches!(order, Order::Release | Order::AcqRel) {
            Some(self.published(thread, device_wide))
        } else {
            self.threads[thread].fence.clone()
        };
        if let Some(published) = published
            && let Some(variable) = self.variable(address, true)
        {
            variable.release(published);
        }
    }

    /// After a strong read of `address` (generic): takes what earlier releases published, at once
    /// or at the thread's next fence or barrier.
    pub(super) fn observe(&mut self, thread: usize, address: u64, order: Order, modifies: bool) {
        if !self.context.program.has_fences || !self.context.checks.races {
            return;
        }
        let Some(variable) = self.variable(address, false) else {
            return;
        };
        if variable.releases() == 0 {
            return;
        }
        let clocks = variable.of_block(self.block);
        let acquired = Acquired::new(&variable);
        // A read-modify-write after a fence takes at once: the usual ticket has no second one.
        let fenced = modifies && self.threads[thread].fence.is_some();
        if matches!(order, Order::Acquire | Order::AcqRel) || fenced {
            self.take(thread, acquired, &clocks);
        } else {
            let pending = &mut self.threads[thread].pending;
            pending.retain(|(a, _)| !a.same_variable(&acquired));
            pending.push((acquired, clocks));
        }
    }
}
