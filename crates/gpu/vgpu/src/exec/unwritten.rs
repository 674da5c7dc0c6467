//! Reads of bytes that were never written, and those of them that count.

use ptx::structs::Unwritten;

use super::cta::Cta;
use crate::hazard::report::Location;
use crate::hazard::{HazardKind, Space};
use crate::lower::program::Op;
use crate::memory::Allocation;
use crate::module::plain_name;

impl Cta<'_> {
    #[cold]
    pub(super) fn unwritten(&mut self, thread: usize, space: Space, at: u64) {
        let place = Location::new(space, at);
        let written = || match self.shared_state.get((at / 4) as usize) {
            Some(state) if space == Space::Shared => u32::from(*state) & 15,
            _ => 0,
        };
        let excused = self.is_unused(at, written())
            || space == Space::Shared
                && (self.is_padding(at)
                    || self.reads_undefined(thread, at)
                    || self.is_reserved(place));
        if excused {
            return;
        }
        self.report_unwritten(HazardKind::Uninitialized, thread, place, || {
            format!("a load of {space} memory that was never written").into()
        });
    }

    /// Reports a read of bytes of global memory that were never written.
    #[cold]
    pub(super) fn unwritten_global(&mut self, thread: usize, word: usize, from: &Allocation) {
        let place = Location::new(Space::Global, from.base + word as u64 * 4);
        let written = (0..4).filter(|byte| from.init.has_word(word, 1 << byte));
        if self.is_unused(place.address, written.fold(0, |all, byte| all | 1 << byte)) {
            return;
        }
        let name = &from.name;
        if from.unset {
            self.report_unwritten(HazardKind::Uninitialized, thread, place, || {
                format!(
                    "reads the variable `{}` of the module, which has no initializer and was never \
                     set: give its value under `variables`",
                    plain_name(name)
                )
                .into()
            });
            return;
        }
        if from.module.is_none() {
            self.report_unwritten(HazardKind::Uninitialized, thread, place, || {
                format!("a load of global memory of `{name}` that was never written").into()
            });
            return;
        }
        self.report_unwritten(HazardKind::ModuleState, thread, place, || {
            let name = plain_name(name);
            format!(
                "module_state: reads the variable `{name}` of the module, in which an earlier run \
                 left another value than it is loaded with"
            )
            .into()
        });
    }

    /// Reports whether a place is in the shared memory that the system reserves. Its clients order their accesses by
    /// means that CUDA does not promise, such as the order of a warp's instructions.
    pub(super) fn is_reserved(&self, place: Location) -> bool {
        let offset = self.context.cluster.offset(place.address);
        let reserved = self.context.program.reserved;
        place.space == Space::Shared
            && reserved.is_some_and(|r| offset.wrapping_sub(r.start.into()) < r.bytes.into())
    }

    /// Reports whether the current load uses only the bytes `written` of the word at `at`, a bit each.
    pub(super) fn is_unused(&self, at: u64, written: u32) -> bool {
        let Op::Load(m) = &self.context.program.code[self.pc as usize].op else {
            return false;
        };
        let bytes = m.width * m.data.len() as u32;
        // The address of a smaller load is not known from its word.
        if bytes < 4 || !bytes.is_power_of_two() {
            return false;
        }
        // A load is aligned to its size.
        let counted = m.counted >> (at % u64::from(bytes));
        counted & 15 & !written == 0
    }

    /// Reports whether the current load copies a struct whose word at `at` holds padding, or sets a
    /// bit field in it.
    fn is_padding(&self, at: u64) -> bool {
        let Op::Load(m) = &self.context.program.code[self.pc as usize].op else {
            return false;
        };
        let copied = u64::from((m.width * m.data.len() as u32).max(4));
        // The struct is aligned to the size of the vector load that copies it.
        let start = at / copied * copied;
        match m.unwritten {
            Unwritten::Hazard | Unwritten::Deferred => false,
            Unwritten::BitField => true,
            Unwritten::Padding => (start..start + copied).step_by(4).any(|a| {
                self.shared_state
                    .get((a / 4) as usize)
                    .is_some_and(|s| s & 15 != 0)
            }),
        }
    }
}

/// Reports whether a load of local memory copies a struct with padding, or sets a bit field.
#[cold]
pub(super) fn excused(op: &Op, written: &[bool]) -> bool {
    let Op::Load(m) = op else { return false };
    match m.unwritten {
        Unwritten::Hazard | Unwritten::Deferred => false,
        Unwritten::BitField => true,
        Unwritten::Padding => written.contains(&true),
    }
}
