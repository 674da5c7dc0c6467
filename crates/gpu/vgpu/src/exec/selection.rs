//! Unwritten bytes in values that only selections use: `selp` decides whether they are read.

use std::borrow::Cow;
use std::collections::HashMap;

use super::cta::Cta;
use super::transfer::lanes;
use super::warp::Warp;
use crate::hazard::HazardKind;
use crate::hazard::report::Location;
use crate::lower::SELECTS;
use crate::lower::program::NONE;
use crate::lower::selection::Selection;

/// A read of unwritten bytes that counts where its value is chosen.
#[derive(Debug, Clone)]
pub(super) struct DeferredRead {
    kind: HazardKind,
    /// The load.
    pc: u32,
    place: Location,
    detail: Cow<'static, str>,
}

/// Deferred reads by thread and number of the value.
pub(super) type DeferredReads = HashMap<(u32, u32), DeferredRead>;

impl Cta<'_> {
    /// Reports a read of unwritten bytes by the current instruction, or keeps it until a `selp` chooses the
    /// value.
    #[cold]
    pub(super) fn report_unwritten(
        &mut self,
        kind: HazardKind,
        thread: usize,
        place: Location,
        detail: impl FnOnce() -> Cow<'static, str>,
    ) {
        let program = self.context.program;
        let marks = program.code.get(self.pc as usize).map_or(0, |i| i.marks);
        if marks & SELECTS != 0
            && let Some(Selection::Load(number)) = program.selections.get(&self.pc)
        {
            let read = DeferredRead {
                kind,
                pc: self.pc,
                place,
                detail: detail(),
            };
            self.deferred.insert((thread as u32, *number), read);
            return;
        }
        self.hazard(kind, thread, place, NONE, || detail().into_owned());
    }

    /// Handles a load or a selection of such values before its execution.
    #[cold]
    pub(super) fn select(&mut self, w: &Warp, pc: u32, active: u32) {
        let program = self.context.program;
        let keep = program.code.get(pc as usize).map_or(0, |inst| inst.keep);
        // A sliced launch does not compute the conditions of other selections.
        if self.context.skip_unless != 0 && keep & self.context.skip_unless == 0 {
            return;
        }
        match program.selections.get(&pc) {
            Some(Selection::Load(number)) => {
                for lane in lanes(active) {
                    let thread = Self::thread(w, lane) as u32;
                    self.deferred.remove(&(thread, *number));
                }
            }
            Some(Selection::Choose {
                values,
                condition,
                negated,
                into,
            }) => {
                let row = w.regs.preds[*condition as usize];
                let chosen = if *negated { !row } else { row };
                for lane in lanes(active) {
                    let value = values[usize::from(chosen >> lane & 1 == 0)];
                    self.choose(Self::thread(w, lane), value, *into);
                }
            }
            None => {}
        }
    }

    /// Reports the read of a chosen value, or passes it on to a result that only selections use.
    fn choose(&mut self, thread: usize, value: Option<u32>, into: Option<u32>) {
        let key = |number: u32| (thread as u32, number);
        let read = value.and_then(|number| self.deferred.get(&key(number)).cloned());
        match (read, into) {
            (Some(read), Some(into)) => {
                self.deferred.insert(key(into), read);
            }
            (None, Some(into)) => {
                self.deferred.remove(&key(into));
            }
            (Some(read), None) => {
                let DeferredRead {
                    kind,
                    place,
                    detail,
                    ..
                } = read;
                // The hazard is the load's, which has the source line of the read.
                let here = std::mem::replace(&mut self.pc, read.pc);
                self.hazard(kind, thread, place, NONE, || detail.into_owned());
                self.pc = here;
            }
            (None, None) => {}
        }
    }
}
