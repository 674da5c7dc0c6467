//! Memory that threads allocate on their stacks: `alloca`, `stacksave`, `stackrestore`.
//!
//! A stack grows upwards here, so that the end of what was allocated last is the end of the thread's memory.

use super::cta::Cta;
use super::stop::{Halt, Stop};
use super::transfer::lanes;
use super::warp::Warp;
use crate::arch::LOCAL_BYTES;
use crate::hazard::report::Location;
use crate::hazard::{HazardKind, Space};
use crate::lower::program::{NONE, STACK, StackOp};

impl Cta<'_> {
    /// Executes an operation on the stacks of the lanes of a mask; `false` where one overflows.
    pub(super) fn stack(&mut self, w: &mut Warp, op: StackOp, mask: u32) -> bool {
        match op {
            StackOp::Save { dest } => {
                lanes(mask).for_each(|l| w.regs.r64[dest as usize][l] = STACK + w.stack[l]);
            }
            StackOp::Restore { source } => {
                for lane in lanes(mask) {
                    let top = w.regs.r64[source as usize][lane];
                    self.restore_stack(w, lane, top);
                }
            }
            StackOp::Allocate { dest, bytes, align } => {
                for lane in lanes(mask) {
                    let bytes = w.regs.r64[bytes as usize][lane];
                    let Some(at) = self.allocate_on_stack(w, lane, bytes, align) else {
                        return false;
                    };
                    w.regs.r64[dest as usize][lane] = at;
                }
            }
        }
        true
    }

    fn restore_stack(&mut self, w: &mut Warp, lane: usize, top: u64) {
        let old = w.stack[lane];
        let Some(new) = top.checked_sub(STACK).filter(|new| *new <= old) else {
            let thread = Self::thread(w, lane);
            let place = Location::new(Space::Local, top);
            self.hazard(HazardKind::Crashed, thread, place, NONE, || {
                "stackrestore of a value that no stacksave of this function returned".to_owned()
            });
            return;
        };
        w.stack[lane] = new;
        w.frames[lane] = w.frames[lane].saturating_sub((old - new) as u32);
    }

    fn allocate_on_stack(
        &mut self,
        w: &mut Warp,
        lane: usize,
        bytes: u64,
        align: u32,
    ) -> Option<u64> {
        let program = self.context.program;
        let fixed = u64::from(program.local_bytes + program.param_bytes);
        let old = w.stack[lane];
        let start = old.next_multiple_of(align.into());
        let end = start.saturating_add(bytes);
        let taken = end - old;
        let limit = u64::from(self.context.stack_bytes);
        let beyond = u64::from(w.frames[lane]).saturating_add(taken) > limit;
        if beyond || end.saturating_add(fixed) > u64::from(LOCAL_BYTES) {
            let thread = Self::thread(w, lane);
            let place = Location::new(Space::Local, old);
            self.hazard(HazardKind::Crashed, thread, place, NONE, || {
                let most = if beyond { limit } else { LOCAL_BYTES.into() };
                format!("the stack overflows at alloca of {bytes} bytes: a thread has {most} bytes")
            });
            self.halted = Some(Halt(Stop::StackOverflow, "the stack overflows"));
            return None;
        }
        w.grow_stack(fixed as usize, end as usize);
        let first = lane * w.stride + fixed as usize;
        // What was freed may have left values here, which must not count as written.
        w.local_written[first + start as usize..first + end as usize].fill(false);
        w.stack[lane] = end;
        w.frames[lane] += taken as u32;
        Some(STACK + start)
    }
}
