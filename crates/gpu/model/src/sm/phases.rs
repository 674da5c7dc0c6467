//! Barriers of a block: phases that end when all signals of the recorded execution have come.
//!
//! One mechanism serves block-wide barriers (`BAR`) and those in shared memory (`mbarrier`), whose phases
//! bulk copies end as well. The trace says which warps take part in a phase, so subsets of a block need no
//! counts of threads.

use super::{Sm, Stall};
use vgpu::exec::trace::{BlockTrace, Signal, SignalKind};

/// Contributors of a phase in the trace of a block.
#[derive(Debug, Clone, Copy, Default)]
struct Expected {
    signals: u32,
    /// Bulk copies are among them.
    copies: bool,
    /// Products in tensor memory are.
    products: bool,
}

/// Phases of one block.
#[derive(Debug, Clone, Default)]
pub(super) struct Phases {
    expected: Vec<Expected>,
}

/// State of the phases of a resident block.
#[derive(Debug, Clone, Default)]
pub(super) struct PhaseStates {
    /// Missing signals and end cycle, by phase.
    states: Vec<(u32, u64)>,
}

impl Phases {
    /// Collects the contributors of all phases.
    pub(super) fn new(trace: &BlockTrace) -> Phases {
        let mut expected = Vec::new();
        for signal in trace.warps.iter().flat_map(|warp| &warp.signals) {
            let at = signal.phase as usize;
            if at >= expected.len() {
                expected.resize(at + 1, Expected::default());
            }
            if signal.kind != SignalKind::Waits {
                expected[at].signals += 1;
                expected[at].copies |= signal.kind == SignalKind::Copies;
                expected[at].products |= signal.kind == SignalKind::ArrivesAfterProducts;
            }
        }
        Phases { expected }
    }

    /// Returns the state at the beginning of a block.
    pub(super) fn begin(&self) -> PhaseStates {
        let states = self.expected.iter().map(|phase| (phase.signals, 0));
        PhaseStates {
            states: states.collect(),
        }
    }

    /// Returns the reason for a wait.
    fn reason(&self, phase: u32) -> Stall {
        match self.expected.get(phase as usize) {
            Some(expected) if expected.copies => Stall::LongScoreboard,
            Some(expected) if expected.products => Stall::MathPipe,
            _ => Stall::Barrier,
        }
    }
}

impl PhaseStates {
    /// Counts a signal that comes at a cycle; returns the end of the phase if it was the last.
    fn signal(&mut self, phase: u32, cycle: u64) -> Option<u64> {
        let (missing, end) = self.states.get_mut(phase as usize)?;
        *missing = missing.saturating_sub(1);
        *end = (*end).max(cycle);
        (*missing == 0).then_some(*end)
    }

    /// Returns the end of a phase if all signals have been sent.
    fn end(&self, phase: u32) -> Option<u64> {
        let (missing, end) = self.states.get(phase as usize)?;
        (*missing == 0).then_some(*end)
    }
}

/// Cycles of an instruction at which its signals count.
#[derive(Debug, Clone, Copy)]
pub(super) struct SignalTimes {
    pub(super) arrives: u64,
    /// End of its bulk copy.
    pub(super) copied: u64,
    /// End of the products of the warp in tensor memory.
    pub(super) multiplied: u64,
    /// Cycles from the end of a phase to the next instruction of a warp that waits.
    pub(super) wakes: u64,
}

impl Sm<'_> {
    /// Sends the signals of the present instruction of a warp; must be called before the warp goes on.
    pub(super) fn send_signals(&mut self, warp_index: usize, times: SignalTimes) {
        let work = self.work;
        let trace = &work.trace.warps[self.warps[warp_index].index];
        loop {
            let warp = &mut self.warps[warp_index];
            let Some(signal) = warp.cursor.signal(trace) else {
                return;
            };
            let Signal { phase, kind, .. } = *signal;
            let (slot, copies) = (warp.slot, warp.copies);
            let cycle = match kind {
                SignalKind::Waits => {
                    self.wait_for(warp_index, phase, times.wakes);
                    continue;
                }
                SignalKind::Arrives => times.arrives,
                SignalKind::ArrivesAfterCopies => times.arrives.max(copies),
                SignalKind::Copies => times.copied,
                SignalKind::ArrivesAfterProducts => times.multiplied,
            };
            if let Some(end) = self.phases_of[slot].signal(phase, cycle) {
                self.wake(slot, phase, end);
            }
        }
    }

    /// Holds a warp until a phase ends.
    fn wait_for(&mut self, warp_index: usize, phase: u32, wakes: u64) {
        let end = self.phases_of[self.warps[warp_index].slot].end(phase);
        let why = self.phases.reason(phase);
        let warp = &mut self.warps[warp_index];
        warp.hold = (end.map_or(0, |end| end + wakes), why);
        warp.waits = match end {
            Some(_) => None,
            None => Some((phase, wakes)),
        };
    }

    /// Lets the warps go on that wait for a phase.
    fn wake(&mut self, slot: usize, phase: u32, end: u64) {
        let mut first = u64::MAX;
        for warp in self.warps.iter_mut().filter(|warp| warp.slot == slot) {
            let Some((_, wakes)) = warp.waits.filter(|(awaited, _)| *awaited == phase) else {
                continue;
            };
            warp.waits = None;
            if warp.ready < end + wakes {
                (warp.ready, warp.why) = (end + wakes, warp.hold.1);
            }
            first = first.min(warp.ready);
        }
        for core in &mut self.cores {
            core.next = core.next.min(first);
        }
    }

    /// Lets all waiting warps go on: no signal is left that could end their wait, because the trace is cut.
    pub(super) fn release_stuck(&mut self) -> bool {
        let now = self.out.cycles + 1;
        let mut any = false;
        for warp in self.warps.iter_mut().filter(|warp| warp.waits.is_some()) {
            warp.waits = None;
            warp.ready = warp.ready.max(now);
            any = true;
        }
        for core in &mut self.cores {
            core.next = core.next.min(now);
        }
        any
    }
}
