//! Branches: paths split at them, and reconverge at their join.

use super::super::cta::Cta;
use super::super::stop::{Halt, Stop};
use super::super::transfer::lanes;
use super::super::warp::{Path, ReconvergencePoint, State, Warp};
use super::Next;
use crate::hazard::HazardKind;
use crate::hazard::report::Location;
use crate::lower::program::{NONE, Op};

/// Operands of a `brx.idx`: row of the index, targets, reconvergence point.
pub(super) struct JumpTable<'a> {
    pub(super) index: u32,
    pub(super) targets: &'a [u32],
    pub(super) join: u32,
}

pub(super) fn branch(
    cta: &mut Cta<'_>,
    w: &mut Warp,
    path: usize,
    target: u32,
    join: u32,
    active: u32,
    mask: u32,
) -> Next {
    if active == mask {
        return Next::Jump(target);
    }
    cta.counters.divergent_branches += 1;
    let pc = w.paths[path].pc;
    let reconvergence = split_at(w, path, join, mask);
    w.paths[path].state = State::Retired;
    // The path added last runs first: the lanes that fall through, as on a GPU. If the taken path
    // exits at once it runs first: its lanes have then exited before the rest reaches a barrier.
    let leaves = matches!(cta.context.program.code[target as usize].op, Op::Exit);
    let taken = Path {
        pc: target,
        mask: active,
        reconvergence,
        state: State::Ready,
    };
    let fallen = Path {
        pc: pc + 1,
        mask: mask & !active,
        ..taken
    };
    let order = if leaves {
        [fallen, taken]
    } else {
        [taken, fallen]
    };
    order.into_iter().for_each(|p| w.add_path(p));
    Next::Stop
}

/// Returns the reconvergence point of the parts of a path that splits.
fn split_at(w: &mut Warp, path: usize, join: u32, mask: u32) -> u32 {
    let parent = w.paths[path].reconvergence;
    if join == NONE {
        return parent;
    }
    // In a loop, leaving lanes wait at the reconvergence point that exists already.
    if parent != NONE {
        let m = &w.reconvergence_points[parent as usize];
        if m.pc == join && !m.call {
            return parent;
        }
    }
    w.add_reconvergence_point(ReconvergencePoint {
        pc: join,
        expected: mask,
        arrived: 0,
        parent,
        call: false,
        in_use: true,
        call_pc: NONE,
        callee: NONE,
        since: 0,
    })
}

pub(super) fn branch_table(
    cta: &mut Cta<'_>,
    w: &mut Warp,
    path: usize,
    table: &JumpTable<'_>,
    active: u32,
    mask: u32,
) -> Next {
    let JumpTable {
        index,
        targets,
        join,
    } = *table;
    let rows = w.regs.r32[index as usize];
    let Some(bad) = lanes(active).find(|l| rows[*l] as usize >= targets.len()) else {
        let first = rows[active.trailing_zeros() as usize & 31];
        if active == mask && lanes(active).all(|l| rows[l] == first) {
            return Next::Jump(targets[first as usize]);
        }
        cta.counters.divergent_branches += 1;
        let pc = w.paths[path].pc;
        let reconvergence = split_at(w, path, join, mask);
        w.paths[path].state = State::Retired;
        if mask != active {
            w.add_path(Path {
                pc: pc + 1,
                mask: mask & !active,
                reconvergence,
                state: State::Ready,
            });
        }
        // One path per distinct target, in order of the lowest lane.
        let mut rest = active;
        while rest != 0 {
            let value = rows[rest.trailing_zeros() as usize];
            let group: u32 = lanes(rest)
                .filter(|l| rows[*l] == value)
                .map(|l| 1 << l)
                .sum();
            let pc = targets[value as usize];
            w.add_path(Path {
                pc,
                mask: group,
                reconvergence,
                state: State::Ready,
            });
            rest &= !group;
        }
        return Next::Stop;
    };
    cta.hazard(
        HazardKind::Crashed,
        w.index * 32 + bad,
        Location::NONE,
        NONE,
        || {
            format!(
                "a branch table of {} targets is indexed with {}",
                targets.len(),
                rows[bad]
            )
        },
    );
    cta.halted = Some(Halt(Stop::IllegalTarget, "a branch to nowhere"));
    Next::Stop
}
