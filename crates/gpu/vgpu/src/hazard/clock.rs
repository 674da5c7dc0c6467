//! Happens-before inside a block.
//!
//! Time is one counter per block. Each thread has a *segment*: the time of its last
//! synchronisation. An access is stamped with its thread and segment. Full barriers raise `floor`,
//! full warp barriers raise the warp's floor: everything stamped below is ordered, which one
//! comparison finds. Only other synchronisation (named barriers, `mbarrier`, fences, partial warp
//! barriers) needs vector clocks: `know[u][t]` is the segment of `t` below which `u` has seen
//! everything.

use std::ops::Range;
use std::sync::Arc;

use super::sync::Acquired;

/// Vector clock of a block: one entry per thread, then one per [agent](AGENTS). Where the order of execution
/// is kept as well, as many entries for that follow.
pub(crate) type Clock = Arc<[u32]>;

/// Agents of a block: they stand for writes that no thread has, and that only those see who waited
/// for them. Each `mbarrier` has one for the copies that it counts; some share one.
pub(crate) const AGENTS: usize = 17;

/// The agent of `mbarrier.init` behind `fence.mbarrier_init`.
pub(crate) const INIT_AGENT: usize = AGENTS - 1;

/// Returns the agent of the copies that an `mbarrier` counts.
pub(crate) fn copy_agent(address: u32) -> usize {
    // Objects of one ring lie side by side.
    (address / 8) as usize % INIT_AGENT
}

/// Synchronisation state of the threads of a block.
#[derive(Debug)]
pub(crate) struct Clocks {
    pub(crate) threads: usize,
    time: u32,
    pub(crate) floor: u32,
    pub(crate) warp_floor: Vec<u32>,
    pub(crate) segment: Vec<u32>,
    know: Vec<Option<Clock>>,
    /// By agent: the segment below which all threads have seen everything.
    agent_floor: [u32; AGENTS],
    /// The same of the order of execution.
    agent_executed: [u32; AGENTS],
    /// Releases of other blocks that each thread acquired.
    pub(crate) foreign: Vec<Option<Arc<Vec<Acquired>>>>,
    /// Some `know` or `foreign` is set.
    partial: bool,
    /// Every reader must be recorded separately.
    pub(crate) exact_readers: bool,
    /// The segment that the last release began, and the last that it covers.
    released: Option<(u32, u32)>,
    /// Vector clocks have the order of execution behind that of memory, with as many entries.
    keeps_execution: bool,
    /// Accesses are judged by the order of execution.
    judges_execution: bool,
}

/// Snapshot of the accesses that happen before a point of a thread.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) thread: usize,
    /// Its last segment before that point.
    pub(crate) segment: u32,
    threads: usize,
    floor: u32,
    warp_floor: u32,
    agent_floor: [u32; AGENTS],
    know: Option<Clock>,
}

impl Seen {
    /// Reports whether an access of a thread of the block in a segment happened before the point.
    pub(crate) fn covers(&self, thread: usize, segment: u32) -> bool {
        let known = self.know.as_ref();
        known.is_some_and(|know| segment < know[thread])
            || match thread.checked_sub(self.threads) {
                Some(agent) => segment < self.agent_floor[agent],
                None => {
                    segment < self.floor
                        || thread == self.thread && segment <= self.segment
                        || thread / 32 == self.thread / 32 && segment < self.warp_floor
                }
            }
    }
}

/// Joins `clock` into `all`.
pub(crate) fn join(all: &mut Option<Clock>, clock: Clock) {
    match all {
        Some(old) if Arc::ptr_eq(old, &clock) => {}
        // Mostly one of them covers the other: threads that wait for the same object share one.
        Some(old) if old.iter().zip(clock.iter()).all(|(a, b)| a <= b) => *old = clock,
        Some(old) if clock.iter().zip(old.iter()).all(|(a, b)| a <= b) => {}
        Some(old) => raise(Arc::make_mut(old), &clock),
        None => *all = Some(clock),
    }
}

/// Takes the maximum of two clocks, thread by thread.
fn raise(all: &mut [u32], by: &[u32]) {
    for (a, b) in all.iter_mut().zip(by) {
        *a = (*a).max(*b);
    }
}

impl Clocks {
    /// Creates clocks at time `start`, at least 1: accesses with earlier stamps are ordered.
    pub(crate) fn new(threads: usize, exact_readers: bool, start: u32) -> Clocks {
        Clocks {
            threads,
            time: start,
            floor: start,
            warp_floor: vec![start; threads.div_ceil(32)],
            segment: vec![start; threads],
            know: vec![None; threads],
            agent_floor: [start; AGENTS],
            agent_executed: [start; AGENTS],
            foreign: vec![None; threads],
            partial: false,
            exact_readers,
            released: None,
            keeps_execution: false,
            judges_execution: false,
        }
    }

    /// Returns clocks that keep the order of execution beside that of memory, if `keeps`. Relaxed synchronisation
    /// adds to it, too.
    pub(crate) fn keeping_execution(self, keeps: bool) -> Clocks {
        Clocks {
            keeps_execution: keeps,
            ..self
        }
    }

    /// Judges the following accesses by the order of execution, or by that of memory again.
    pub(crate) fn judge_execution(&mut self, on: bool) {
        self.judges_execution = on && self.keeps_execution;
    }

    /// Reports whether an access of `thread` at `segment` happens before the current point of
    /// `observer`.
    #[inline]
    pub(crate) fn ordered(&self, observer: usize, thread: usize, segment: u32) -> bool {
        if thread < self.threads
            && (thread == observer
                || segment < self.floor
                || (thread / 32 == observer / 32 && segment < self.warp_floor[observer / 32]))
        {
            return true;
        }
        if thread >= self.threads && self.agent_has_passed(thread, segment) {
            return true;
        }
        // The flag spares the common kernels, which only have full barriers, a load per access.
        self.partial
            && self.know[observer].as_ref().is_some_and(|k| {
                segment < k[thread]
                    || self.judges_execution && segment < k[self.threads + AGENTS + thread]
            })
    }

    /// Reports whether all threads have seen the writes of an agent, numbered behind the threads.
    pub(crate) fn agent_has_passed(&self, agent: usize, segment: u32) -> bool {
        let floors = match self.judges_execution {
            true => &self.agent_executed,
            false => &self.agent_floor,
        };
        let floor = floors.get(agent - self.threads);
        floor.is_some_and(|floor| segment < *floor)
    }

    /// Begins a segment of an agent. Returns the number by which stamps name it, and the segment.
    pub(crate) fn agent_segment(&mut self, agent: usize) -> (usize, u32) {
        (self.threads + agent, self.tick())
    }

    /// Adds the writes of an agent up to a segment to a clock.
    pub(crate) fn publish(&self, (agent, segment): (usize, u32), all: &mut Option<Clock>) {
        let all = all.get_or_insert_with(|| self.empty());
        let entry = &mut Arc::make_mut(all)[agent];
        *entry = (*entry).max(segment + 1);
    }

    /// Records that a thread has waited for the writes of an agent up to a segment.
    pub(crate) fn learn(&mut self, thread: usize, event: (usize, u32)) {
        self.partial = true;
        let mut known = self.know[thread].take();
        self.publish(event, &mut known);
        self.know[thread] = known;
    }

    /// Adds what a thread knows of fenced `mbarrier.init` to a clock.
    pub(crate) fn release_inits_to(&self, thread: usize, all: &mut Option<Clock>) {
        let agent = self.threads + INIT_AGENT;
        let known = self.know[thread].as_ref().map_or(0, |known| known[agent]);
        if known > 0 {
            self.publish((agent, known - 1), all);
        }
    }

    /// Returns the clock of nothing.
    fn empty(&self) -> Clock {
        let orders = 1 + usize::from(self.keeps_execution);
        std::iter::repeat_n(0, orders * (self.threads + AGENTS)).collect()
    }

    /// Returns what a clock says of the order of execution alone.
    fn execution_of(&self, clock: &Clock) -> Clock {
        let (memory, execution) = clock.split_at(self.threads + AGENTS);
        let mut all = self.empty();
        if let Some(all) = Arc::get_mut(&mut all) {
            let all = &mut all[self.threads + AGENTS..];
            raise(all, memory);
            raise(all, execution);
        }
        all
    }

    /// Joins what was executed before the current point of `thread` into `all`; it enters a new segment.
    pub(crate) fn release_execution_to(&mut self, thread: usize, all: &mut Option<Clock>) {
        if !self.keeps_execution {
            return;
        }
        let known = self.join_all(std::iter::once(thread));
        join(all, self.execution_of(&known));
        self.segment[thread] = self.tick();
    }

    /// Adds what was executed before a release to the clock of `thread`.
    pub(crate) fn acquire_execution(&mut self, thread: usize, clock: &Clock) {
        if self.keeps_execution {
            self.acquire(thread, &self.execution_of(clock));
        }
    }

    /// Reports whether only barriers of the whole block or of whole warps have ordered anything so
    /// far.
    pub(crate) fn is_whole(&self) -> bool {
        !self.partial
    }

    /// Returns the time of the last segment.
    pub(crate) fn now(&self) -> u32 {
        self.time
    }

    /// Begins a new segment.
    pub(crate) fn tick(&mut self) -> u32 {
        self.time += 1;
        self.time
    }

    /// Records a barrier passed by every thread of the block.
    pub(crate) fn full_barrier(&mut self) {
        let now = self.tick();
        if self.partial {
            // The floor covers all that vector clocks knew of the block; only agents and other
            // blocks remain.
            let mut last: Option<&Clock> = None;
            for known in self.know.iter().flatten() {
                if !last.is_some_and(|last| Arc::ptr_eq(last, known)) {
                    raise(&mut self.agent_floor, &known[self.threads..]);
                    let (_, executed) = known.split_at(self.threads + AGENTS);
                    raise(
                        &mut self.agent_executed,
                        executed.get(self.threads..).unwrap_or_default(),
                    );
                    last = Some(known);
                }
            }
            raise(&mut self.agent_executed, &self.agent_floor);
            self.know.fill(None);
            self.share_foreign(&(0..self.threads).collect::<Vec<_>>());
        }
        // `partial` stays set: what was acquired from other blocks must still be passed on.
        self.floor = now;
        self.segment.fill(now);
    }

    /// Records a warp barrier passed by all live threads of a warp.
    pub(crate) fn full_warp(&mut self, warp: usize, lanes: &[usize]) {
        // Without vector clocks the warp's floor says everything. With them, what one lane knows of
        // threads outside the warp reaches the others only through a joint clock.
        if self.partial {
            let joined = self.join_all(lanes.iter().copied());
            for &t in lanes {
                self.know[t] = Some(joined.clone());
            }
            self.share_foreign(lanes);
        }
        let now = self.tick();
        for &t in lanes {
            self.segment[t] = now;
        }
        self.warp_floor[warp] = now;
    }

    /// Records a barrier passed by some threads; those of `arrived` only release, those of `waited`
    /// also acquire.
    pub(crate) fn subset(&mut self, arrived: &[usize], waited: &[usize]) {
        let joined = self.join_all(arrived.iter().chain(waited).copied());
        self.partial = true;
        let all: Vec<usize> = arrived.iter().chain(waited).copied().collect();
        let foreign = self.joined_foreign(&all);
        for &t in waited {
            self.know[t] = Some(joined.clone());
            self.foreign[t].clone_from(&foreign);
        }
        let now = self.tick();
        // A new segment for all of them: accesses after the barrier must not count as before it.
        for t in all {
            self.segment[t] = now;
        }
    }

    /// Returns the accesses that happen before the current point of `thread`, which enters a new
    /// segment.
    pub(crate) fn mark(&mut self, thread: usize) -> Seen {
        let seen = Seen {
            thread,
            segment: self.segment[thread],
            threads: self.threads,
            floor: self.floor,
            warp_floor: self.warp_floor[thread / 32],
            agent_floor: self.agent_floor,
            know: self.know[thread].clone(),
        };
        // Accesses after this point must not count as covered by the snapshot.
        self.segment[thread] = self.tick();
        seen
    }

    /// Returns the clock of `thread` including its own accesses; it enters a new segment.
    pub(crate) fn release(&mut self, thread: usize) -> Clock {
        let clock = self.join_all(std::iter::once(thread));
        let covered = self.segment[thread];
        self.segment[thread] = self.tick();
        self.released = Some((self.segment[thread], covered));
        clock
    }

    /// Returns the segment of a strong access of `thread` for those that observe it: what a release
    /// by the access itself covers includes the access.
    pub(crate) fn segment_of_strong(&self, thread: usize) -> u32 {
        let now = self.segment[thread];
        self.released
            .filter(|(segment, _)| *segment == now)
            .map_or(now, |(_, covered)| covered)
    }

    /// Joins the clock of `thread` into `all`; it enters a new segment.
    pub(crate) fn release_to(&mut self, thread: usize, all: &mut Option<Clock>) {
        match all.as_mut().and_then(Arc::get_mut) {
            // Threads of a block arrive at the same object one after the other: the clock is
            // updated in place.
            Some(all) => self.join_into(all, std::iter::once(thread)),
            None => join(all, self.join_all(std::iter::once(thread))),
        }
        self.segment[thread] = self.tick();
    }

    /// Joins only the accesses of `thread` itself into `all`; it enters a new segment.
    pub(crate) fn release_own_to(&mut self, thread: usize, all: &mut Option<Clock>) {
        let mut own = self.empty();
        if let Some(own) = Arc::get_mut(&mut own) {
            own[thread] = self.segment[thread] + 1;
        }
        join(all, own);
        self.segment[thread] = self.tick();
    }

    /// Reports whether `thread` has acquired a release by one of some threads.
    pub(crate) fn has_observed(&self, thread: usize, mut threads: Range<usize>) -> bool {
        let known = self.know[thread].as_ref();
        known.is_some_and(|known| threads.any(|t| known.get(t).is_some_and(|until| *until > 0)))
    }

    /// Adds the clock of a release to that of `thread`.
    pub(crate) fn acquire(&mut self, thread: usize, clock: &Clock) {
        self.partial = true;
        join(&mut self.know[thread], clock.clone());
    }

    /// Adds releases of other blocks.
    pub(crate) fn acquire_foreign(&mut self, thread: usize, acquired: Acquired) {
        self.partial = true;
        let mut list = self.foreign[thread].as_deref().cloned().unwrap_or_default();
        acquired.add_to(&mut list);
        self.foreign[thread] = Some(Arc::new(list));
    }

    fn join_all(&self, threads: impl Iterator<Item = usize>) -> Clock {
        let mut all = self.empty();
        if let Some(all) = Arc::get_mut(&mut all) {
            self.join_into(all, threads);
        }
        all
    }

    fn join_into(&self, all: &mut [u32], threads: impl Iterator<Item = usize>) {
        let mut last: Option<&Clock> = None;
        // Threads that waited together share one clock: it is joined once.
        for t in threads {
            if let Some(known) = &self.know[t]
                && !last.is_some_and(|l| Arc::ptr_eq(l, known))
            {
                raise(all, known);
                last = Some(known);
            }
            let warp = t / 32;
            // A warp floor above the block floor is not in any vector clock: it is added for the
            // warp's threads.
            if self.warp_floor[warp] > self.floor {
                let end = (warp * 32 + 32).min(self.threads);
                for o in &mut all[warp * 32..end] {
                    *o = (*o).max(self.warp_floor[warp]);
                }
            }
            // Entries are exclusive bounds: the thread's current segment is covered.
            all[t] = all[t].max(self.segment[t] + 1);
        }
    }

    fn joined_foreign(&self, threads: &[usize]) -> Option<Arc<Vec<Acquired>>> {
        let mut joined: Option<Arc<Vec<Acquired>>> = None;
        for list in threads.iter().filter_map(|t| self.foreign[*t].as_ref()) {
            match &mut joined {
                None => joined = Some(list.clone()),
                Some(j) if Arc::ptr_eq(j, list) => {}
                Some(j) => {
                    let all = Arc::make_mut(j);
                    list.iter().for_each(|a| a.add_to(all));
                }
            }
        }
        joined
    }

    fn share_foreign(&mut self, threads: &[usize]) {
        let joined = self.joined_foreign(threads);
        for t in threads {
            self.foreign[*t].clone_from(&joined);
        }
    }
}
