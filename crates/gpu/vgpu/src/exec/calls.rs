//! Calls and returns: parameters, frames of functions that may be entered again, diverging targets.

use std::ops::Range;

use super::cta::Cta;
use super::stop::{Halt, Stop};
use super::transfer::lanes;
use super::warp::{Path, ReconvergencePoint, State, Warp};
use crate::arch::LOCAL_BYTES;
use crate::hazard::report::Location;
use crate::hazard::{HazardKind, Space};
use crate::lower::program::{Call, CallPointer, Function, NONE, Op, STACK};

/// Registers and parameters of a function, for all lanes, while a call enters it again.
#[derive(Debug, Default)]
pub(super) struct Saved {
    r32: Vec<[u32; 32]>,
    r64: Vec<[u64; 32]>,
    preds: Vec<u32>,
    undefined: Vec<u32>,
    /// Address of its frame.
    frame: Option<[u64; 32]>,
    /// Lane after lane.
    params: Vec<u8>,
}

/// Bytes of stack that an activation takes: its frame, and its registers as if they were spilled.
fn stack_bytes(f: &Function) -> u64 {
    let Range { start, end } = &f.own;
    let registers = 4 * (end.rows32 - start.rows32) + 8 * (end.rows64 - start.rows64);
    let params = end.params - start.params;
    u64::from((f.frame_bytes + registers + params).next_multiple_of(16))
}

/// Bytes that an activation takes at least: its local variables and its return address.
fn declared_bytes(f: &Function) -> u32 {
    const RETURN_ADDRESS: u32 = 8;
    (f.frame_bytes + RETURN_ADDRESS).next_multiple_of(RETURN_ADDRESS)
}

/// Returns the call parameters that are saved, in a lane whose own begin at `first`.
fn saved_params(f: &Function, first: usize) -> [Range<usize>; 2] {
    let own = f.own.start.params..f.own.end.params;
    [own, f.formals.clone()].map(|r| first + r.start as usize..first + r.end as usize)
}

impl Warp {
    /// Makes the stack of each thread at least this large.
    pub(super) fn grow_stack(&mut self, program_bytes: usize, bytes: usize) {
        let wanted = (program_bytes + bytes).next_multiple_of(16);
        if wanted <= self.stride {
            return;
        }
        // Doubling: a deep recursion would otherwise copy the stacks of all lanes at each call.
        let (old, new) = (self.stride, wanted.max(self.stride * 2).max(4096));
        let mut local = vec![0; new * 32];
        let mut written = vec![false; new * 32];
        for lane in 0..32 {
            local[lane * new..][..old].copy_from_slice(&self.local[lane * old..][..old]);
            written[lane * new..][..old].copy_from_slice(&self.local_written[lane * old..][..old]);
        }
        (self.local, self.local_written, self.stride) = (local, written, new);
    }

    /// Saves the state of a function, for the lanes of the call at this reconvergence point.
    fn save(&mut self, at: u32, f: &Function, params_at: usize) {
        let Range { start, end } = &f.own;
        let rows = |from: u32, to: u32| from as usize..to as usize;
        let saved = Saved {
            r32: self.regs.r32[rows(start.rows32, end.rows32)].to_vec(),
            r64: self.regs.r64[rows(start.rows64, end.rows64)].to_vec(),
            preds: self.regs.preds[rows(start.preds, end.preds)].to_vec(),
            undefined: self.undefined[rows(start.watched, end.watched)].to_vec(),
            frame: self.regs.r64.get(f.frame_row as usize).copied(),
            params: (0..32)
                .flat_map(|lane| saved_params(f, lane * self.stride + params_at))
                .flat_map(|bytes| &self.local[bytes])
                .copied()
                .collect(),
        };
        let at = at as usize;
        if self.saved.len() <= at {
            self.saved.resize_with(at + 1, Saved::default);
        }
        self.saved[at] = saved;
    }

    /// Restores the state that was saved at a reconvergence point.
    fn restore(&mut self, at: u32, f: &Function, params_at: usize, mask: u32) {
        let saved = std::mem::take(&mut self.saved[at as usize]);
        let start = &f.own.start;
        let rows = self.regs.r32[start.rows32 as usize..].iter_mut();
        for (row, old) in rows.zip(&saved.r32) {
            lanes(mask).for_each(|l| row[l] = old[l]);
        }
        let rows = self.regs.r64[start.rows64 as usize..].iter_mut();
        for (row, old) in rows.zip(&saved.r64) {
            lanes(mask).for_each(|l| row[l] = old[l]);
        }
        let rows = self.regs.preds[start.preds as usize..].iter_mut();
        for (row, old) in rows.zip(&saved.preds) {
            *row = (*row & !mask) | (old & mask);
        }
        for (register, old) in (start.watched..).zip(&saved.undefined) {
            self.set_undefined(register, mask, *old);
        }
        if let Some(frame) = &saved.frame {
            let row = &mut self.regs.r64[f.frame_row as usize];
            lanes(mask).for_each(|l| row[l] = frame[l]);
        }
        let each = saved.params.len() / 32;
        for lane in lanes(mask) {
            let mut rest = &saved.params[lane * each..][..each];
            for to in saved_params(f, lane * self.stride + params_at) {
                let (bytes, more) = rest.split_at(to.len());
                self.local[to].copy_from_slice(bytes);
                rest = more;
            }
        }
        // Other lanes of the same call may return later.
        self.saved[at as usize] = saved;
    }

    /// Copies call parameters of the lanes of a mask.
    fn copy_parameters(&mut self, base: usize, list: &[(u32, u32, u32)], mask: u32) {
        for lane in lanes(mask) {
            let start = lane * self.stride + base;
            for (from, to, bytes) in list {
                let (from, to) = (start + *from as usize, start + *to as usize);
                self.local.copy_within(from..from + *bytes as usize, to);
            }
        }
    }
}

/// A function that lanes of a path call.
struct Entering<'a> {
    function: u32,
    arguments: &'a [(u32, u32, u32)],
    caller: u32,
    parent: u32,
}

impl<'a> Cta<'a> {
    /// Calls a function by name; the path of the lanes is gone afterwards.
    pub(super) fn call(&mut self, w: &mut Warp, path: usize, call: &Call, active: u32) {
        let entering = Entering {
            function: call.function,
            arguments: &call.arguments,
            caller: call.caller,
            parent: w.paths[path].reconvergence,
        };
        let pc = w.paths[path].pc;
        w.paths[path].state = State::Retired;
        self.enter(w, pc, &entering, active);
    }

    /// Calls the functions that the lanes of a path point to, one after the other.
    pub(super) fn call_pointer(
        &mut self,
        w: &mut Warp,
        path: usize,
        call: &CallPointer,
        active: u32,
    ) {
        let program = self.context.program;
        let row = w.regs.r64[call.address as usize];
        let known = |lane: usize| {
            let number = program.pointed.get(&row[lane])?;
            let f = program.functions.get(*number as usize)?;
            let alike = |formal: &[(u32, u32)], actual: &[(u32, u32)]| {
                let sizes = |list: &[(u32, u32)]| list.iter().map(|(_, bytes)| *bytes).collect();
                let (formal, actual): (Vec<u32>, Vec<u32>) = (sizes(formal), sizes(actual));
                formal == actual
            };
            let right = alike(&f.params, &call.arguments) && alike(&f.returns, &call.results);
            right.then_some(*number)
        };
        if let Some(lane) = lanes(active).find(|lane| known(*lane).is_none()) {
            return self.no_function(w, lane, row[lane]);
        }
        let (pc, mut parent) = (w.paths[path].pc, w.paths[path].reconvergence);
        w.paths[path].state = State::Retired;
        let mut groups: Vec<(u32, u32)> = Vec::new();
        for lane in lanes(active) {
            let number = known(lane).unwrap_or(NONE);
            match groups.iter_mut().find(|(other, _)| *other == number) {
                Some((_, mask)) => *mask |= 1 << lane,
                None => groups.push((number, 1 << lane)),
            }
        }
        if groups.len() > 1 {
            self.counters.divergent_branches += 1;
            parent = w.add_reconvergence_point(ReconvergencePoint {
                pc: pc + 1,
                expected: active,
                arrived: 0,
                parent,
                call: false,
                in_use: true,
                call_pc: NONE,
                callee: NONE,
                since: 0,
            });
        }
        // The path made last runs first: the one of the first lane.
        for (number, mask) in groups.into_iter().rev() {
            let f = &program.functions[number as usize];
            let pairs = call.arguments.iter().zip(&f.params);
            let arguments: Vec<_> = pairs
                .map(|((from, bytes), (to, _))| (*from, *to, *bytes))
                .collect();
            let entering = Entering {
                function: number,
                arguments: &arguments,
                caller: call.caller,
                parent,
            };
            self.enter(w, pc, &entering, mask);
            if self.halted.is_some() {
                return;
            }
        }
    }

    fn no_function(&mut self, w: &Warp, lane: usize, address: u64) {
        let thread = Self::thread(w, lane);
        let place = Location::new(Space::Generic, address);
        self.hazard(HazardKind::Crashed, thread, place, NONE, || {
            format!("a call of address 0x{address:x}, where no function of this type is")
        });
        self.halted = Some(Halt(Stop::IllegalTarget, "a call to nowhere"));
    }

    /// Lets lanes enter a function from the call at `pc`.
    fn enter(&mut self, w: &mut Warp, pc: u32, entering: &Entering<'_>, mask: u32) {
        let program = self.context.program;
        let base = program.local_bytes as usize;
        let f = &program.functions[entering.function as usize];
        let reconvergence = w.add_reconvergence_point(ReconvergencePoint {
            pc: pc + 1,
            expected: mask,
            arrived: 0,
            parent: entering.parent,
            call: true,
            in_use: true,
            call_pc: pc,
            callee: entering.function,
            since: 0,
        });
        if let Some(caller) = program.functions.get(entering.caller as usize) {
            w.save(reconvergence, caller, base);
        }
        w.copy_parameters(base, entering.arguments, mask);
        if f.frame_row != NONE && !self.push_frame(w, f, mask) {
            return;
        }
        w.add_path(Path {
            pc: f.start,
            mask,
            reconvergence,
            state: State::Ready,
        });
    }

    /// Makes a frame on the stacks of the lanes of a mask; `false` where one is full.
    fn push_frame(&mut self, w: &mut Warp, f: &Function, mask: u32) -> bool {
        let program = self.context.program;
        let fixed = (program.local_bytes + program.param_bytes) as usize;
        let bytes = stack_bytes(f);
        let deepest = lanes(mask).max_by_key(|l| w.stack[*l]).unwrap_or(0);
        let needed = w.stack[deepest] + bytes;
        let declared = declared_bytes(f);
        let limit = self.context.stack_bytes;
        let beyond = lanes(mask).any(|lane| w.frames[lane] + declared > limit);
        if beyond || needed + fixed as u64 > u64::from(LOCAL_BYTES) {
            let thread = Self::thread(w, deepest);
            let top = Location::new(Space::Local, w.stack[deepest]);
            self.hazard(HazardKind::Crashed, thread, top, NONE, || {
                let bytes = if beyond { limit } else { LOCAL_BYTES };
                format!(
                    "the stack overflows at a call of `{}`: a thread has {bytes} bytes",
                    f.name
                )
            });
            self.halted = Some(Halt(Stop::StackOverflow, "the stack overflows"));
            return false;
        }
        w.grow_stack(fixed, needed as usize);
        for lane in lanes(mask) {
            w.regs.r64[f.frame_row as usize][lane] = STACK + w.stack[lane];
            let first = lane * w.stride + fixed + w.stack[lane] as usize;
            // A function that has returned may have left values here, which must not count as
            // written.
            w.local_written[first..first + f.frame_bytes as usize].fill(false);
            w.stack[lane] += bytes;
            w.frames[lane] += declared;
        }
        true
    }

    /// Copies parameters to where their address points.
    pub(super) fn copy_in(&self, w: &mut Warp, frame: u32, copies: &[(u32, u32, u32)], mask: u32) {
        let program = self.context.program;
        let base = program.local_bytes as usize;
        let fixed = base + program.param_bytes as usize;
        for lane in lanes(mask) {
            let start = lane * w.stride;
            let to_start = match frame {
                NONE => start,
                row => start + fixed + (w.regs.r64[row as usize][lane] - STACK) as usize,
            };
            for (from, to, bytes) in copies {
                let (from, to) = (start + base + *from as usize, to_start + *to as usize);
                let bytes = *bytes as usize;
                w.local.copy_within(from..from + bytes, to);
                w.local_written[to..to + bytes].fill(true);
            }
        }
    }

    /// Implements `ret` of a function: lanes return to the innermost call.
    pub(super) fn leave_function(&mut self, w: &mut Warp, path: usize, active: u32) {
        let from = w.paths[path].reconvergence;
        w.paths[path].state = State::Retired;
        // Reconvergence points inside the function are skipped: their lanes leave them by returning.
        let mut at = from;
        while at != NONE && !w.reconvergence_points[at as usize].call {
            at = w.reconvergence_points[at as usize].parent;
        }
        if at == NONE {
            return;
        }
        let program = self.context.program;
        let base = program.local_bytes as usize;
        let ReconvergencePoint {
            call_pc, callee, ..
        } = w.reconvergence_points[at as usize];
        let f = &program.functions[callee as usize];
        if f.frame_row != NONE {
            let bytes = stack_bytes(f);
            lanes(active).for_each(|lane| {
                w.stack[lane] -= bytes;
                w.frames[lane] -= declared_bytes(f);
            });
        }
        let (results, caller): (&[_], u32) = match &program.code[call_pc as usize].op {
            Op::Call(call) => (&call.results, call.caller),
            Op::CallPointer(call) => {
                let pairs = f.returns.iter().zip(&call.results);
                let results = pairs.map(|((from, bytes), (to, _))| (*from, *to, *bytes));
                (&results.collect::<Vec<_>>(), call.caller)
            }
            _ => (&[], NONE),
        };
        match program.functions.get(caller as usize) {
            Some(caller) => {
                // The results of a function that called itself are among what is given back.
                let returned = w.results(base, results, active);
                w.restore(at, caller, base, active);
                w.put_results(base, results, &returned, active);
            }
            None => w.copy_parameters(base, results, active),
        }
        w.withdraw(from, active, at);
        w.arrive(at, active);
    }
}

impl Warp {
    /// The results of a function, lane after lane.
    fn results(&self, base: usize, list: &[(u32, u32, u32)], mask: u32) -> Vec<u8> {
        let mut all = Vec::new();
        for lane in lanes(mask) {
            for (from, _, bytes) in list {
                let from = lane * self.stride + base + *from as usize;
                all.extend_from_slice(&self.local[from..from + *bytes as usize]);
            }
        }
        all
    }

    fn put_results(&mut self, base: usize, list: &[(u32, u32, u32)], all: &[u8], mask: u32) {
        let mut rest = all;
        for lane in lanes(mask) {
            for (_, to, bytes) in list {
                let (value, more) = rest.split_at(*bytes as usize);
                let to = lane * self.stride + base + *to as usize;
                self.local[to..to + value.len()].copy_from_slice(value);
                rest = more;
            }
        }
    }
}
