//! Blocks in which no path can run: reports the reason, or releases paths that may continue.

use super::cta::Cta;
use super::step::waiting_lanes;
use super::stop::{Halt, Stop};
use super::warp::{State, Warp};
use crate::hazard::HazardKind;
use crate::hazard::report::Location;
use crate::lower::program::{NONE, Op, WarpOp};

/// Releases a path when none is ready, or reports why none can continue and halts the block.
pub(super) fn resolve(cta: &mut Cta<'_>, warps: &mut [Warp]) {
    // From the harmless to the fatal: exits first, then definite errors, then reconvergence points
    // that may be broken up, and only then waits that can never end.
    for w in warps.iter_mut() {
        if retry_members(cta, w) {
            return;
        }
    }
    if divergent_barrier(cta, warps) || absent_members(cta, warps) {
        return;
    }
    if warps.iter_mut().any(|w| w.break_reconvergence(0)) {
        return;
    }
    if divergent_members(cta, warps) {
        return;
    }
    different_barriers(cta);
}

/// Retries waiting operations whose named lanes may have exited since.
fn retry_members(cta: &Cta<'_>, w: &mut Warp) -> bool {
    let mut any = false;
    for at in 0..w.paths.len() {
        let p = w.paths[at];
        if p.state != State::Members {
            continue;
        }
        let Op::Warp { mask, .. } = &cta.context.program.code[p.pc as usize].op else {
            continue;
        };
        // Paths that wait at one instruction may be complete together only, or one of them alone.
        let here = [p.mask, waiting_lanes(cta, w, p.pc)];
        if here
            .iter()
            .any(|here| Cta::groups(w, *mask, *here).is_some())
        {
            w.paths[at].state = State::Ready;
            any = true;
        }
    }
    any
}

/// Reports an aligned barrier of lanes that other lanes of the warp wait for to converge.
fn divergent_barrier(cta: &mut Cta<'_>, warps: &[Warp]) -> bool {
    for w in warps {
        let parked = w
            .reconvergence_points
            .iter()
            .any(|m| m.in_use && m.arrived != 0 && !m.call);
        let at_barrier = w.paths.iter().find(|p| matches!(p.state, State::Barrier));
        let Some(p) = at_barrier.filter(|_| parked) else {
            continue;
        };
        let aligned = match &cta.context.program.code[p.pc as usize].op {
            Op::Bar(bar) => bar.aligned,
            Op::ClusterWait { aligned } => *aligned,
            _ => false,
        };
        // Without `.aligned` a part of a warp may execute a barrier alone (PTX ISA, `barrier`).
        if !aligned {
            continue;
        }
        cta.pc = p.pc;
        let thread = w.index * 32 + p.mask.trailing_zeros() as usize;
        cta.hazard(
            HazardKind::BarrierDivergence,
            thread,
            Location::NONE,
            NONE,
            || "a barrier in code that only some threads of the warp reach".to_owned(),
        );
        cta.halted = Some(Halt(
            Stop::Deadlock,
            "threads wait at a barrier that others of their warp do not reach",
        ));
        return true;
    }
    false
}

/// Reports a warp-wide operation whose named lanes wait for its own lanes to converge.
fn absent_members(cta: &mut Cta<'_>, warps: &mut [Warp]) -> bool {
    for w in warps.iter_mut() {
        let parked: u32 = w
            .reconvergence_points
            .iter()
            .filter(|m| m.in_use && !m.call)
            .map(|m| m.arrived)
            .sum();
        let named = w.paths.iter().any(|p| {
            p.state == State::Members
                && match &cta.context.program.code[p.pc as usize].op {
                    Op::Warp { mask, .. } => {
                        let lane = p.mask.trailing_zeros() as usize;
                        w.regs.r32[*mask as usize][lane] & parked != 0
                    }
                    // Those that wait here are for all lanes of the warp.
                    Op::TensorMemory(_) => parked != 0,
                    _ => false,
                }
        });
        if named {
            return divergent_members(cta, std::slice::from_mut(w));
        }
    }
    false
}

/// Reports lanes that wait at warp-wide operations for lanes that never reach them.
fn divergent_members(cta: &mut Cta<'_>, warps: &mut [Warp]) -> bool {
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
        cta.pc = first.pc;
        let thread = w.index * 32 + first.mask.trailing_zeros() as usize;
        let barrier = matches!(
            &cta.context.program.code[first.pc as usize].op,
            Op::Warp { op, .. } if **op == WarpOp::Barrier
        );
        cta.hazard(
            HazardKind::BarrierDivergence,
            thread,
            Location::NONE,
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
        cta.halted = Some(Halt(
            Stop::Deadlock,
            "a warp waits for lanes that never arrive",
        ));
        return true;
    }
    false
}

/// Reports that all remaining threads wait at barriers of the block.
fn different_barriers(cta: &mut Cta<'_>) {
    let waiters = cta.waiters();
    if let Some((thread, pc, text)) = cta.cluster_waiter() {
        cta.pc = pc;
        let other = waiters.first().map_or(NONE, |x| x.2);
        cta.hazard(HazardKind::Deadlock, thread, Location::NONE, other, || text);
        cta.halted = Some(Halt(Stop::Deadlock, "no thread can make progress"));
        return;
    }
    let Some(&(id, thread, pc, counted)) = waiters.first() else {
        cta.halted = Some(Halt(Stop::Deadlock, "no thread can run"));
        return;
    };
    cta.pc = pc;
    let other = waiters.iter().find(|x| x.2 != pc);
    // Block-wide barriers at different instructions, or one that exited threads do not reach, are
    // divergence. Named barriers that wait for each other are a deadlock.
    let mut live = cta.live.iter().take(cta.context.cluster.blocks);
    // The array has an entry for each block of the largest cluster; the unused ones are 0, as if
    // all threads had exited.
    let exited = live.any(|live| *live < cta.context.threads);
    let kind = if other.is_some_and(|o| !o.3 && !counted) || (exited && other.is_none()) {
        HazardKind::BarrierDivergence
    } else {
        HazardKind::Deadlock
    };
    let count = waiters.len();
    cta.hazard(kind, thread, Location::NONE, other.map_or(NONE, |o| o.2), || {
        let also = if exited { "; other threads have exited" } else { "" };
        format!("no thread can continue: {count} groups of threads wait, the first at barrier {id}{also}")
    });
    cta.halted = Some(Halt(Stop::Deadlock, "no thread can make progress"));
}
