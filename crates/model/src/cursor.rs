//! Where a warp is on the way that it took through the machine code when it was executed.

use vgpu::exec::trace::{Access, WarpTrace};

/// A warp on its way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor {
    /// The instruction that is next.
    pub(super) at: u32,
    /// The run that it is in.
    run: usize,
    /// Instructions passed.
    step: u64,
    /// The first access that was not passed.
    access: usize,
    pub(super) done: bool,
}

/// What became of a memory instruction.
#[derive(Debug, Clone, Copy)]
pub(super) enum Found<'t> {
    /// It went there (and there, for a copy).
    Access(&'t Access, Option<&'t Access>),
    /// No lane took part.
    Nothing,
    /// It is beyond what the trace kept.
    Unknown,
}

impl Cursor {
    /// A warp before its first instruction.
    pub(super) fn new(trace: &WarpTrace) -> Cursor {
        Cursor {
            at: trace.runs.first().map_or(0, |run| run.start),
            run: 0,
            step: 0,
            access: 0,
            done: trace.runs.is_empty(),
        }
    }

    /// The access of the instruction at hand.
    pub(super) fn access<'t>(&mut self, trace: &'t WarpTrace) -> Found<'t> {
        let list = &trace.accesses;
        while list.get(self.access).is_some_and(|a| a.at < self.step) {
            self.access += 1;
        }
        match list.get(self.access) {
            Some(access) if access.at == self.step => {
                // An asynchronous copy reads global memory and writes shared memory.
                let pair = list.get(self.access + 1).filter(|b| b.at == access.at);
                Found::Access(access, pair)
            }
            None if trace.dropped > 0 => Found::Unknown,
            _ => Found::Nothing,
        }
    }

    /// Passes the instruction at hand.
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
