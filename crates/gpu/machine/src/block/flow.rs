//! Control flow of a warp after jumps, barriers and exits.

use super::{Fault, fault_at};
use crate::memory::lanes;
use crate::op::Control;
use crate::registers::{Origin, Pred, Source};
use crate::system;
use crate::warp::{State, Warp};

/// Executes a jump and returns the next instruction of the current path; `None` if it waits or has
/// exited. Lanes with another target become separate paths.
pub(super) fn jump(
    warp: &mut Warp,
    control: &Control,
    on: u32,
    mask: u32,
    pc: u32,
) -> Result<Option<u32>, Fault> {
    let next = pc + 1;
    let asked = |warp: &Warp, truth: &Pred| on & warp.registers.truth(*truth);
    Ok(match control {
        Control::Branch(to, truth) => {
            let taken = asked(warp, truth);
            if taken == 0 {
                return Ok(Some(next));
            }
            if taken != mask {
                warp.diverge(taken, *to);
                return Ok(Some(next));
            }
            Some(*to)
        }
        Control::BranchAny(to, truth) => Some(if asked(warp, truth) != 0 { *to } else { next }),
        Control::Diverged(to, lanes) => {
            let away = lanes_of(warp, lanes, mask) & !mask != 0;
            Some(if away && on != 0 { *to } else { next })
        }
        Control::Converged(to, lanes) => {
            let away = lanes_of(warp, lanes, mask) & !mask != 0;
            Some(if !away && on != 0 { *to } else { next })
        }
        Control::Trap if on != 0 => return Err(fault_at(pc, "a trap".to_owned())),
        Control::Trap => Some(next),
        Control::Call(_) if on == 0 => Some(next),
        Control::Call(at) => {
            match system::call(warp, *at, on).map_err(|what| fault_at(pc, what))? {
                true => Some(next),
                false => Some(indirect(warp, *at, 0, on, mask, pc)?),
            }
        }
        Control::Indirect(from, base) => {
            if on == 0 {
                return Ok(Some(next));
            }
            Some(indirect(warp, *from, *base, on, mask, pc)?)
        }
        other => waiting(warp, other, on, mask, next),
    })
}

/// Returns the live lanes of a mask in a register.
fn lanes_of(warp: &Warp, source: &Source, mask: u32) -> u32 {
    let row = warp.registers.int(source);
    row[mask.trailing_zeros() as usize & 31] & warp.alive
}

/// Executes an instruction that may wait or exit and returns the next instruction of the current
/// path; `None` if it waits or has exited.
fn waiting(warp: &mut Warp, control: &Control, on: u32, mask: u32, next: u32) -> Option<u32> {
    match control {
        Control::Exit => {
            if on == 0 {
                return Some(next);
            }
            // Lanes that the guard switches off continue behind the exit.
            warp.paths[warp.current].pc = next;
            warp.exit(on);
            None
        }
        Control::Join(barrier) => {
            // The mask is stored per lane: divergent paths use one barrier with different
            // participants.
            for lane in lanes(on) {
                warp.registers.barriers[usize::from(*barrier)][lane] = on;
            }
            Some(next)
        }
        Control::Sync(_) | Control::Members(_) | Control::Barrier(_) if on == 0 => Some(next),
        Control::Sync(barrier) => {
            if on != mask {
                warp.diverge(mask & !on, next);
            } else if warp.all_here(*barrier) {
                return Some(next);
            }
            warp.wait_reconvergence(*barrier);
            None
        }
        Control::Break(barrier, truth) => {
            let left = on & warp.registers.truth(*truth);
            // Resuming other paths changes their indices: the block selects the next path anew.
            warp.paths[warp.current].pc = next;
            warp.leave(*barrier, left);
            None
        }
        Control::Members(lanes) => {
            let named = lanes
                .as_ref()
                .map_or(u32::MAX, |lanes| lanes_of(warp, lanes, mask));
            // Exited lanes are not waited for.
            if named & warp.alive & !mask == 0 {
                return Some(next);
            }
            warp.wait(State::Members(named));
            None
        }
        Control::Yield => {
            // No other path of the warp could run first.
            if warp.paths.len() == 1 {
                return Some(next);
            }
            warp.paths[warp.current].pc = next;
            None
        }
        Control::Products(_) => None,
        Control::ClusterArrive | Control::ClusterWait if on == 0 => Some(next),
        Control::Barrier(_) | Control::ClusterArrive | Control::ClusterWait => {
            // Lanes that the guard switches off do not take part: they continue as a separate path.
            if on != mask {
                warp.diverge(mask & !on, next);
            }
            None
        }
        _ => Some(next),
    }
}

/// Jumps to a register's value; lanes with another value become separate paths.
fn indirect(
    warp: &mut Warp,
    from: Origin,
    base: i64,
    on: u32,
    mask: u32,
    pc: u32,
) -> Result<u32, Fault> {
    let targets = warp
        .registers
        .raw_wide(from)
        .map(|at| (at as i64).wrapping_add(base));
    let number = |lane: usize| {
        let at = targets[lane];
        // Instructions have 16 bytes.
        u32::try_from(at / 16)
            .ok()
            .filter(|_| at >= 0 && at % 16 == 0)
    };
    if on != mask {
        warp.diverge(mask & !on, pc + 1);
    }
    let mut rest = on;
    loop {
        let first = targets[rest.trailing_zeros() as usize & 31];
        let group: u32 = lanes(rest)
            .filter(|l| targets[*l] == first)
            .map(|l| 1 << l)
            .sum();
        let lane = rest.trailing_zeros() as usize & 31;
        let to = number(lane).ok_or_else(|| fault_at(pc, format!("a jump to {first:#x}")))?;
        rest &= !group;
        if rest == 0 {
            return Ok(to);
        }
        warp.diverge(group, to);
    }
}
