//! Hazards of a launch as the caller sees them.

use std::collections::HashSet;
use std::hash::Hash;

use super::cta::Context;
use crate::hazard::report::{Collector, Occurrence};
use crate::hazard::shadow::Conflict;
use crate::hazard::{Hazard, HazardAccess, HazardAllocation, HazardConflict, SourceLine, Space};
use crate::lower::program::{Inst, NONE, Op, PointerSource, Program};
use crate::memory::Near;

/// Gives the hazards that were found, with their places in the source.
pub(super) fn list(context: &Context<'_>, found: Collector) -> Vec<Hazard> {
    let program = context.program;
    let all = found.found.into_iter();
    all.map(|((kind, pc, other), f)| {
        let inst = program.code.get(pc as usize);
        Hazard {
            kind,
            source: source(program, pc),
            other: if other == NONE {
                None
            } else {
                source(program, other)
            },
            ptx_line: inst.map_or(0, |i| i.line),
            block: context.ctaid(f.block.into()),
            thread: context.tid(f.thread as usize),
            address: f.address,
            space: f.space,
            repeated: f.repeated,
            access: inst.and_then(|i| access(i, f.space)),
            allocation: context.allocation(pc, &f),
            conflict: f.conflict.map(|c| context.conflict(&f, &c)),
            detail: f.detail,
        }
    })
    .collect()
}

/// Keeps so many hazards. Those of different lines come first: unrolled code has many pairs of instructions of the
/// same two lines, which would leave no room for others.
pub(super) fn limit(hazards: &mut Vec<Hazard>, most: usize) {
    let places = hazards.iter().map(|hazard| {
        let text = hazard.source.is_none().then(|| hazard.detail.clone());
        (
            hazard.kind,
            hazard.source.clone(),
            hazard.other.clone(),
            text,
        )
    });
    let mut kept = varied(places, most).into_iter();
    hazards.retain(|_| kept.next() == Some(true));
}

/// Tells which elements to keep if there is room for `most`: the first of each value before further ones.
fn varied<T: Eq + Hash>(values: impl Iterator<Item = T>, most: usize) -> Vec<bool> {
    let mut seen = HashSet::new();
    let is_first: Vec<bool> = values.map(|value| seen.insert(value)).collect();
    let firsts = seen.len().min(most);
    let mut room = [most - firsts, firsts];
    let keep = is_first.into_iter().map(|first| {
        let left = &mut room[usize::from(first)];
        let keep = *left > 0;
        *left = left.saturating_sub(1);
        keep
    });
    keep.collect()
}

fn source(program: &Program, pc: u32) -> Option<SourceLine> {
    let inst = program.code.get(pc as usize)?;
    program
        .sources
        .get(inst.source.checked_sub(1)? as usize)
        .cloned()
}

/// The access of an instruction to a space.
fn access(inst: &Inst, space: Space) -> Option<HazardAccess> {
    let (bytes, write) = match &inst.op {
        Op::Load(m) => (m.width * m.data.len() as u32, false),
        Op::Store(m) => (m.width * m.data.len() as u32, true),
        Op::Atom(a) => (a.bytes(), true),
        Op::CpAsync(c) => (c.bytes, space == Space::Shared),
        Op::LdMatrix { rows, .. } => (rows.bytes(), false),
        Op::StMatrix { .. } => (16, true),
        Op::WmmaMem(m) => (m.bits.div_ceil(8), m.store),
        Op::Mbar(..) => (8, true),
        _ => return None,
    };
    Some(HazardAccess { bytes, write })
}

impl Context<'_> {
    /// The allocation at the pointer that the address of an instruction is computed from.
    pub(super) fn meant(&self, pc: u32) -> Option<Near<'_>> {
        let inst = self.program.code.get(pc as usize)?;
        let pointer = match self.program.pointers.get(&inst.line)? {
            PointerSource::Parameter(start) => {
                let bytes = self.params.get(*start as usize..)?;
                u64::from_le_bytes(*bytes.first_chunk()?)
            }
            PointerSource::Variable(index) => *self.globals.get(*index as usize)?,
        };
        self.memory.holder(pointer)
    }

    fn allocation(&self, pc: u32, found: &Occurrence) -> Option<HazardAllocation> {
        if found.space != Space::Global {
            return None;
        }
        let at = found.address;
        let hit = self.memory.find(at).and_then(|_| self.memory.holder(at));
        // Outside all allocations the nearest one may be a mere neighbor: the pointer in the code
        // names the buffer that was meant.
        let near = hit
            .or_else(|| self.meant(pc))
            .or_else(|| self.memory.nearest(at))?;
        Some(HazardAllocation {
            buffer: near.buffer,
            name: near.name.to_owned(),
            offset: at.wrapping_sub(near.base) as i64,
            bytes: near.bytes,
            freed: near.freed,
        })
    }

    fn conflict(&self, found: &Occurrence, c: &Conflict) -> HazardConflict {
        let thread = match c.block {
            Some(NONE) => None,
            block => {
                let block = self.ctaid(block.unwrap_or(found.block).into());
                Some([block, self.tid(c.thread)])
            }
        };
        let inst = self.program.code.get(c.pc as usize);
        HazardConflict {
            thread,
            write: c.was_write,
            asynchronous: c.in_flight,
            bytes: inst.and_then(|i| access(i, found.space)).map(|a| a.bytes),
            ptx_line: inst.map_or(0, |i| i.line),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::varied;

    fn kept(values: &str, most: usize) -> String {
        let keep = varied(values.chars(), most).into_iter();
        let kept = values.chars().zip(keep).filter(|(_, keep)| *keep);
        kept.map(|(value, _)| value).collect()
    }

    #[test]
    fn one_of_each_place_is_kept_before_more_of_the_same() {
        assert_eq!(kept("aaaabaac", 4), "aabc");
        assert_eq!(kept("aaaabaac", 2), "ab");
        assert_eq!(kept("aabb", 4), "aabb");
        assert_eq!(kept("aaab", 0), "");
    }
}
