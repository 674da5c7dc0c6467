//! Where the threads of a warp go behind an instruction that decides on it.

use super::{Fault, stopped};
use crate::memory::lanes;
use crate::program::Control;
use crate::registers::{Origin, Source, Truth};
use crate::system;
use crate::warp::{State, Warp};

/// Where the current path goes on; `None` where it waits or has ended. Lanes that go elsewhere
/// become paths of their own.
pub(super) fn jump(
    warp: &mut Warp,
    control: &Control,
    on: u32,
    mask: u32,
    pc: u32,
) -> Result<Option<u32>, Fault> {
    let next = pc + 1;
    let asked = |warp: &Warp, truth: &Truth| on & warp.registers.truth(*truth);
    Ok(match control {
        Control::Branch(to, truth) => {
            let taken = asked(warp, truth);
            if taken == 0 {
                return Ok(Some(next));
            }
            if taken != mask {
                warp.part(taken, *to);
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
        Control::Trap if on != 0 => return Err(stopped(pc, "a trap".to_owned())),
        Control::Trap => Some(next),
        Control::System(at) => {
            if on != 0 {
                system::call(warp, *at, on).map_err(|what| stopped(pc, what))?;
            }
            Some(next)
        }
        Control::Indirect(from, base) => {
            if on == 0 {
                return Ok(Some(next));
            }
            Some(indirect(warp, (*from, *base), on, mask, pc)?)
        }
        other => waiting(warp, other, on, mask, next),
    })
}

/// The lanes that live of a mask that a register holds.
fn lanes_of(warp: &Warp, source: &Source, mask: u32) -> u32 {
    let row = warp.registers.int(source);
    row[mask.trailing_zeros() as usize & 31] & warp.alive
}

/// Where the current path goes on behind an instruction at which it may wait or end; `None` where it
/// does.
fn waiting(warp: &mut Warp, control: &Control, on: u32, mask: u32, next: u32) -> Option<u32> {
    match control {
        Control::Exit => {
            if on == 0 {
                return Some(next);
            }
            warp.paths[warp.current].pc = next;
            warp.exit(on);
            None
        }
        Control::Join(barrier) => {
            for lane in lanes(on) {
                warp.registers.barriers[usize::from(*barrier)][lane] = on;
            }
            Some(next)
        }
        Control::Sync(_) | Control::Members(_) | Control::Barrier(_) if on == 0 => Some(next),
        Control::Sync(barrier) => {
            if on != mask {
                warp.part(mask & !on, next);
            } else if warp.all_here(*barrier) {
                return Some(next);
            }
            warp.meet(*barrier);
            None
        }
        Control::Break(barrier, truth) => {
            let left = on & warp.registers.truth(*truth);
            warp.paths[warp.current].pc = next;
            warp.leave(*barrier, left);
            None
        }
        Control::Members(lanes) => {
            let named = lanes
                .as_ref()
                .map_or(u32::MAX, |lanes| lanes_of(warp, lanes, mask));
            if named & warp.alive & !mask == 0 {
                return Some(next);
            }
            warp.wait(State::Members(named));
            None
        }
        Control::Yield => {
            if warp.paths.len() == 1 {
                return Some(next);
            }
            warp.paths[warp.current].pc = next;
            None
        }
        Control::Barrier(_) => {
            if on != mask {
                warp.part(mask & !on, next);
            }
            None
        }
        _ => Some(next),
    }
}

/// To what a register holds; lanes that hold something else go there.
fn indirect(
    warp: &mut Warp,
    (from, base): (Origin, i64),
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
        u32::try_from(at / 16)
            .ok()
            .filter(|_| at >= 0 && at % 16 == 0)
    };
    if on != mask {
        warp.part(mask & !on, pc + 1);
    }
    let mut rest = on;
    loop {
        let first = targets[rest.trailing_zeros() as usize & 31];
        let group: u32 = lanes(rest)
            .filter(|l| targets[*l] == first)
            .map(|l| 1 << l)
            .sum();
        let lane = rest.trailing_zeros() as usize & 31;
        let to = number(lane).ok_or_else(|| stopped(pc, format!("a jump to {first:#x}")))?;
        rest &= !group;
        if rest == 0 {
            return Ok(to);
        }
        warp.part(group, to);
    }
}
