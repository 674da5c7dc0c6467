//! Position of a warp on its recorded path through the SASS.

use vgpu::exec::trace::{Access, Signal, WarpTrace};

/// A position on the path of one warp.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor {
    /// Index of the next instruction.
    pub(super) at: u32,
    /// Index of the present run.
    run: usize,
    /// Number of executed instructions.
    step: u64,
    /// Index of the next access.
    access: usize,
    /// Index of the next signal.
    signal: usize,
    pub(super) done: bool,
}

/// Recorded access of a memory instruction.
#[derive(Debug, Clone, Copy)]
pub(super) enum AccessLookup<'t> {
    /// The access, with a second one for a copy.
    Access(&'t Access, Option<&'t Access>),
    /// No active lane.
    Inactive,
    /// Outside the kept part of the trace.
    Unknown,
}

impl Cursor {
    /// Creates a cursor at the first instruction of a warp.
    pub(super) fn new(trace: &WarpTrace) -> Cursor {
        Cursor {
            at: trace.runs.first().map_or(0, |run| run.start),
            run: 0,
            step: 0,
            access: 0,
            signal: 0,
            done: trace.runs.is_empty(),
        }
    }

    /// Returns the access of the present instruction.
    pub(super) fn access<'t>(&mut self, trace: &'t WarpTrace) -> AccessLookup<'t> {
        let list = &trace.accesses;
        // The model does not look up every access, and never the second one of a copy by itself.
        while list.get(self.access).is_some_and(|a| a.at < self.step) {
            self.access += 1;
        }
        match list.get(self.access) {
            Some(access) if access.at == self.step => {
                // An asynchronous copy reads global memory and writes shared memory.
                let pair = list.get(self.access + 1).filter(|b| b.at == access.at);
                AccessLookup::Access(access, pair)
            }
            // A trace keeps the first accesses of a warp, so that dropped ones are behind its last.
            None if trace.dropped > 0 => AccessLookup::Unknown,
            _ => AccessLookup::Inactive,
        }
    }

    /// Takes the next signal of the present instruction.
    pub(super) fn signal<'t>(&mut self, trace: &'t WarpTrace) -> Option<&'t Signal> {
        while trace
            .signals
            .get(self.signal)
            .is_some_and(|s| s.at < self.step)
        {
            self.signal += 1;
        }
        let found = trace.signals.get(self.signal)?;
        (found.at == self.step).then(|| {
            self.signal += 1;
            found
        })
    }

    /// Advances past the present instruction.
    pub(super) fn step(&mut self, trace: &WarpTrace) {
        self.step += 1;
        self.at += 1;
        let Some(run) = trace.runs.get(self.run) else {
            self.done = true;
            return;
        };
        if self.at < run.end {
            return;
        }
        self.run += 1;
        match trace.runs.get(self.run) {
            Some(next) => self.at = next.start,
            None => self.done = true,
        }
    }
}
