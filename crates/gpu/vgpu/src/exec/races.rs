//! Races: the words of a report.

use super::cta::Cta;
use crate::hazard::HazardKind;
use crate::hazard::report::Location;
use crate::hazard::shadow::Conflict;
use crate::lower::program::{NONE, Op, TensorMemoryOp};

impl Cta<'_> {
    /// Returns the thread that issued the last copy of an agent; a thread itself otherwise.
    pub(super) fn issuer_of(&self, thread: usize) -> usize {
        let agent = thread.checked_sub(self.clocks.threads);
        agent
            .and_then(|agent| self.issuers.get(agent).copied())
            .unwrap_or(thread)
    }

    /// Reports whether an instruction is an operation on an `mbarrier`.
    pub(super) fn is_mbarrier(&self, pc: u32) -> bool {
        let inst = self.context.program.code.get(pc as usize);
        inst.is_some_and(|inst| matches!(inst.op, Op::Mbar(..)))
    }

    /// Reports whether an instruction is a `wgmma`.
    pub(super) fn is_product(&self, pc: u32) -> bool {
        let inst = self.context.program.code.get(pc as usize);
        inst.is_some_and(|inst| matches!(inst.op, Op::Wgmma(_)))
    }

    /// Returns the name of an asynchronous instruction.
    pub(super) fn asynchronous_name(&self, pc: u32) -> &'static str {
        let inst = self.context.program.code.get(pc as usize);
        match inst.map(|inst| &inst.op) {
            Some(Op::Wgmma(_)) => "a wgmma",
            Some(Op::Bulk(_) | Op::Tensor(_)) => "a bulk copy",
            Some(Op::TensorMemory(op)) => match **op {
                TensorMemoryOp::Product(_) => "a tcgen05.mma",
                TensorMemoryOp::Fill { .. } => "a tcgen05.cp",
                TensorMemoryOp::Shift { .. } => "a tcgen05.shift",
                TensorMemoryOp::Store(_) => "a tcgen05.st",
                _ => "a tcgen05 instruction",
            },
            _ => "an asynchronous copy",
        }
    }

    /// Records a race.
    #[cold]
    pub(super) fn race(
        &mut self,
        thread: usize,
        place: Location,
        writes: bool,
        conflict: Conflict,
    ) {
        if self.is_reserved(place) {
            return;
        }
        let context = self.context;
        let thread = self.issuer_of(thread);
        let conflict = Conflict {
            thread: self.issuer_of(conflict.thread),
            ..conflict
        };
        let act = if writes { "a write" } else { "a read" };
        let (earlier, waits) = match (conflict.was_write, conflict.in_flight) {
            (true, true) if self.is_mbarrier(conflict.pc) => ("a write", ""),
            (_, true) => (
                self.asynchronous_name(conflict.pc),
                " that was not waited for",
            ),
            (true, false) => ("a write", ""),
            (false, false) => ("a read", ""),
        };
        let holder = self.holder_of(thread, place);
        let mut found = self.occurrence(thread, place);
        let conflict = self
            .context
            .conflict_in_block(self.block, found.block, conflict);
        found.conflict = Some(conflict);
        let block = found.block;
        let key = (HazardKind::Race, self.pc, conflict.pc);
        self.found.add(key, found, || {
            let who = match conflict.block {
                Some(NONE) => "several other blocks".to_owned(),
                Some(b) if b != block => {
                    let [x, y, z] = context.ctaid(b.into());
                    match self.context.cluster.blocks {
                        1 => format!("block ({x}, {y}, {z})"),
                        _ => {
                            let [a, b, c] = context.tid(conflict.thread);
                            format!("thread ({a}, {b}, {c}) of block ({x}, {y}, {z})")
                        }
                    }
                }
                // Several readers share a stamp that names one of them.
                _ if conflict.thread == thread && !conflict.in_flight => {
                    "another thread of the same block".to_owned()
                }
                _ => {
                    let [x, y, z] = context.tid(conflict.thread);
                    format!("thread ({x}, {y}, {z}) of the same block")
                }
            };
            format!(
                "{act} of {} memory{holder} is not ordered with {earlier}{waits} by {who}",
                place.space
            )
        });
    }
}
