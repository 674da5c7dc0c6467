//! Blocks in which nothing can run: what is wrong, and letting go of what may.

use super::cta::Cta;
use super::stop::{Halt, Stop};
use super::warp::{State, Warp};
use crate::hazard::{HazardKind, Space};
use crate::lower::program::{NONE, Op, WarpOp};

/// Nothing is ready. Lets something run, or reports why nothing can and halts the block.
pub(super) fn resolve(team: &mut Cta<'_>, warps: &mut [Warp]) {
    for w in warps.iter_mut() {
        if retry_members(team, w) {
            return;
        }
    }
    if divergent_barrier(team, warps) || absent_members(team, warps) {
        return;
    }
    if warps.iter_mut().any(Warp::break_meetings) {
        return;
    }
    if divergent_members(team, warps) {
        return;
    }
    different_barriers(team);
}

/// Lanes named by a waiting operation may have exited since.
fn retry_members(team: &Cta<'_>, w: &mut Warp) -> bool {
    let mut any = false;
    for at in 0..w.paths.len() {
        let p = w.paths[at];
        if p.state != State::Members {
            continue;
        }
        if let Op::Warp { mask, .. } = &team.context.program.code[p.pc as usize].op
            && Cta::groups(w, *mask, p.mask).is_some()
        {
            w.paths[at].state = State::Ready;
            any = true;
        }
    }
    any
}

/// Lanes of a warp wait at a barrier for the whole warp, while others wait for them to converge.
fn divergent_barrier(team: &mut Cta<'_>, warps: &[Warp]) -> bool {
    for w in warps {
        let parked = w
            .meetings
            .iter()
            .any(|m| m.in_use && m.arrived != 0 && !m.call);
        let at_barrier = w.paths.iter().find(|p| matches!(p.state, State::Barrier));
        let Some(p) = at_barrier.filter(|_| parked) else {
            continue;
        };
        let Op::Bar(bar) = &team.context.program.code[p.pc as usize].op else {
            continue;
        };
        if !bar.aligned {
            continue;
        }
        team.pc = p.pc;
        let thread = w.index * 32 + p.mask.trailing_zeros() as usize;
        team.hazard(
            HazardKind::BarrierDivergence,
            thread,
            (Space::Generic, 0),
            NONE,
            || "a barrier in code that only some threads of the warp reach".to_owned(),
        );
        team.halted = Some(Halt(
            Stop::Deadlock,
            "threads wait at a barrier that others of their warp do not reach",
        ));
        return true;
    }
    false
}

/// Lanes wait for others that themselves wait for them to converge.
fn absent_members(team: &mut Cta<'_>, warps: &mut [Warp]) -> bool {
    for w in warps.iter_mut() {
        let parked: u32 = w
            .meetings
            .iter()
            .filter(|m| m.in_use && !m.call)
            .map(|m| m.arrived)
            .sum();
        let named = w.paths.iter().any(|p| {
            p.state == State::Members
                && match &team.context.program.code[p.pc as usize].op {
                    Op::Warp { mask, .. } => {
                        let lane = p.mask.trailing_zeros() as usize;
                        w.regs.r32[*mask as usize][lane] & parked != 0
                    }
                    _ => false,
                }
        });
        if named {
            return divergent_members(team, std::slice::from_mut(w));
        }
    }
    false
}

/// Lanes wait for others at warp-wide operations that those never reach.
fn divergent_members(team: &mut Cta<'_>, warps: &mut [Warp]) -> bool {
    for w in warps.iter_mut() {
        let waiting: Vec<_> = w
            .paths
            .iter()
            .filter(|p| p.state == State::Members)
            .copied()
            .collect();
        let Some(first) = waiting.first() else {
            continue;
        };
        let other = waiting
            .iter()
            .find(|p| p.pc != first.pc)
            .map_or(NONE, |p| p.pc);
        team.pc = first.pc;
        let thread = w.index * 32 + first.mask.trailing_zeros() as usize;
        let barrier = matches!(
            &team.context.program.code[first.pc as usize].op,
            Op::Warp { op, .. } if **op == WarpOp::Barrier
        );
        team.hazard(
            HazardKind::BarrierDivergence,
            thread,
            (Space::Generic, 0),
            other,
            || {
                let what = if barrier {
                    "a warp barrier"
                } else {
                    "a warp-wide operation"
                };
                format!("threads wait at {what} for lanes of their member mask that never reach it")
            },
        );
        team.halted = Some(Halt(
            Stop::Deadlock,
            "a warp waits for lanes that never come",
        ));
        return true;
    }
    false
}

/// All that is left waits at barriers of the block.
fn different_barriers(team: &mut Cta<'_>) {
    let waiters = team.waiters();
    let Some(&(id, thread, pc, counted)) = waiters.first() else {
        team.halted = Some(Halt(Stop::Deadlock, "no thread can run"));
        return;
    };
    team.pc = pc;
    let other = waiters.iter().find(|x| x.2 != pc);
    let exited = team.live < team.context.threads;
    let kind = if other.is_some_and(|o| !o.3 && !counted) || (exited && other.is_none()) {
        HazardKind::BarrierDivergence
    } else {
        HazardKind::Deadlock
    };
    let count = waiters.len();
    team.hazard(kind, thread, (Space::Generic, 0), other.map_or(NONE, |o| o.2), || {
        let also = if exited { "; other threads have exited" } else { "" };
        format!("no thread can go on: {count} groups of threads wait, the first at barrier {id}{also}")
    });
    team.halted = Some(Halt(Stop::Deadlock, "no thread can make progress"));
}
