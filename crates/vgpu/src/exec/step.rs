//! The inner loop: one path of a warp until it waits, splits, ends or used up its turn.

use super::cta::Cta;
use super::misc;
use super::regs::{FULL, Regs, Slots};
use super::stop::{Halt, Stop};
use super::warp::{Path, ReconvergencePoint, State, Warp};
use super::{matrices, transfer::lanes};
use crate::hazard::{HazardKind, Space};
use crate::lower::program::{Inst, NONE, Op, WarpOp};
use crate::lower::{JOIN, WATCHED};
use gpu_arithmetic::single;
use ptx::skeleton::{ADDRESSES, UNUSED};

/// What a path does after an instruction.
enum Next {
    /// Goes on at the next instruction.
    On,
    /// Goes on elsewhere.
    Jump(u32),
    /// Was stored away: another path may run.
    Stop,
}

/// Runs one path of `w` for at most `turn` instructions. Returns how many it ran.
pub(super) fn run(team: &mut Cta<'_>, w: &mut Warp, path: usize, turn: u64) -> u64 {
    let code: &[Inst] = &team.context.program.code;
    let skip_unless = team.context.skip_unless;
    let (mut ran, mut lane_sum) = (0u64, 0u64);
    let (mut pc, mask) = (w.paths[path].pc, w.paths[path].mask);
    let meeting = w.paths[path].meeting;
    team.running = w.index;
    team.open_run(pc);
    loop {
        let inst = &code[pc as usize];
        if inst.marks != 0 {
            if inst.marks & JOIN != 0 && meets(w, meeting, pc) {
                team.close_run(pc);
                w.paths[path].state = State::Gone;
                w.arrive(meeting, mask);
                break;
            }
            if inst.marks & WATCHED != 0 && w.is_watching(inst) {
                team.watch(w, inst, pc, mask);
            }
        }
        let active = mask & guarded(w, inst);
        ran += 1;
        if active == 0 {
            pc += 1;
            if ran < turn {
                continue;
            }
            team.close_run(pc);
            w.paths[path].pc = pc;
            break;
        }
        let count = u64::from(active.count_ones());
        lane_sum += count;
        let flops = count * u64::from(inst.flops);
        team.counters.count(inst.class, flops);
        let skipped = skip_unless != 0 && (inst.keep & skip_unless == 0 || seen(team, inst, pc));
        if skipped || computed(w, inst, active) {
            pc += 1;
            continue;
        }
        team.pc = pc;
        w.paths[path].pc = pc;
        match execute(team, w, path, inst, active, mask) {
            Next::On => pc += 1,
            Next::Jump(to) => {
                team.close_run(pc + 1);
                pc = to;
                team.open_run(pc);
                if ran >= turn || team.polled {
                    w.paths[path].pc = pc;
                    break;
                }
            }
            Next::Stop => {
                team.close_run(pc + 1);
                break;
            }
        }
        if team.halted.is_some() {
            team.close_run(pc);
            break;
        }
    }
    team.counters.warp_instructions += ran;
    team.counters.lane_instructions += lane_sum;
    ran
}

/// Whether a path that comes to `pc` has reached its reconvergence point.
#[inline]
fn meets(w: &Warp, meeting: u32, pc: u32) -> bool {
    if meeting == NONE {
        return false;
    }
    let m = &w.meetings[meeting as usize];
    m.pc == pc && !m.call
}

/// The lanes that an instruction's guard lets execute.
#[inline]
pub(super) fn guarded(w: &Warp, inst: &Inst) -> u32 {
    if inst.guard == NONE {
        return FULL;
    }
    let p = w.regs.preds[inst.guard as usize];
    if inst.guard_negated { !p } else { p }
}

/// Executes an instruction that reads and writes registers alone; whether it is one.
#[inline]
fn computed(w: &mut Warp, inst: &Inst, active: u32) -> bool {
    match &inst.op {
        Op::Alu(f, slots) => f(&mut w.regs, slots, active),
        Op::FmaF32(slots) => fma(&mut w.regs, slots, active),
        _ => return false,
    }
    true
}

/// Whether a load is one whose value nobody needs, and whose addresses are known well enough.
fn seen(team: &mut Cta<'_>, inst: &Inst, pc: u32) -> bool {
    inst.keep & UNUSED != 0
        && team.context.skip_unless == ADDRESSES
        && team.warp_trace().is_some_and(|trace| trace.knows(pc))
}

fn fma(r: &mut Regs, s: &Slots, mask: u32) {
    let [a, b, c, _] = s.s.map(|i| i as usize);
    let out = single::fma_rn_lanes::<false>(&r.r32[a], &r.r32[b], &r.r32[c]);
    let to = &mut r.r32[s.d as usize];
    if mask == FULL {
        *to = out;
    } else {
        lanes(mask).for_each(|l| to[l] = out[l]);
    }
}

fn execute(
    team: &mut Cta<'_>,
    w: &mut Warp,
    path: usize,
    inst: &Inst,
    active: u32,
    mask: u32,
) -> Next {
    match &inst.op {
        Op::Load(m) => team.load(w, m, active),
        Op::Store(m) if inst.marks & WATCHED != 0 && w.undefined_registers != 0 => {
            team.store_defined(w, m, active)
        }
        Op::Store(m) => team.store(w, m, active),
        Op::Branch { target, join } => {
            return branch(team, w, path, (*target, *join), active, mask);
        }
        Op::LdMatrix {
            at,
            count,
            trans,
            data,
        } => {
            team.ldmatrix(w, at, *trans, &data[..usize::from(*count)]);
        }
        Op::StMatrix {
            at,
            count,
            trans,
            data,
        } => {
            team.stmatrix(w, at, *trans, &data[..usize::from(*count)]);
        }
        Op::Mma(m) => matrices::mma(w, m),
        Op::CpAsync(c) => team.copy_async(w, c, active),
        Op::CommitGroup => team.commit_group(w, active),
        Op::WaitGroup(n) => team.wait_group(w, *n, active),
        Op::Warp { mask: row, op } => return members(team, w, path, *row, op, active),
        Op::Bar(b) => {
            if team.arrive_at(w, b, active) {
                w.paths[path].state = State::Barrier;
                // Lanes the guard leaves out do not wait; they go on as a path of their own.
                leave_behind(w, path, active, mask);
                return Next::Stop;
            }
        }
        Op::Atom(a) => team.atom(w, a, active),
        Op::Fence { device_wide } => {
            lanes(active).for_each(|l| team.fence(w.index * 32 + l, *device_wide));
        }
        Op::MmaF64(m) => matrices::mma_f64(w, m),
        Op::WmmaMma(m) => matrices::wmma(w, m),
        Op::WmmaMem(m) => team.wmma_memory(w, m, active),
        Op::MovMatrix { dest, source } => {
            let row = gpu_arithmetic::layout::movmatrix(&w.regs.r32[*source as usize]);
            w.regs.r32[*dest as usize] = row;
        }
        Op::Mbar(at, op) => team.mbarrier(w, at, op, active),
        Op::Bulk(b) => team.bulk(w, b, active),
        Op::CommitBulk => team.commit_bulk(w, active),
        Op::WaitBulk(left) => team.wait_bulk(w, *left, active),
        Op::ProxyFence => team.proxy_fence(w, active),
        Op::Nop | Op::Sleep => {}
        _ => return control(team, w, path, inst, active, mask),
    }
    Next::On
}

fn control(
    team: &mut Cta<'_>,
    w: &mut Warp,
    path: usize,
    inst: &Inst,
    active: u32,
    mask: u32,
) -> Next {
    match &inst.op {
        Op::BranchTable {
            index,
            targets,
            join,
        } => table(team, w, path, (*index, targets, *join), active, mask),
        Op::Call(call) => {
            leave_behind(w, path, active, mask);
            team.call(w, path, call, active);
            Next::Stop
        }
        Op::CallPointer(call) => {
            leave_behind(w, path, active, mask);
            team.call_pointer(w, path, call, active);
            Next::Stop
        }
        Op::CopyIn { frame, copies } => {
            team.copy_in(w, *frame, copies, active);
            Next::On
        }
        Op::Return => {
            leave_behind(w, path, active, mask);
            team.leave_function(w, path, active);
            Next::Stop
        }
        Op::Exit => {
            leave_behind(w, path, active, mask);
            let meeting = w.paths[path].meeting;
            w.paths[path].state = State::Gone;
            w.alive &= !active;
            w.withdraw(meeting, active, NONE);
            team.leave(w, active);
            Next::Stop
        }
        Op::Trap(stop) => {
            let thread = w.index * 32 + active.trailing_zeros() as usize;
            let what = match stop {
                Stop::Breakpoint => "brkpt: a breakpoint",
                _ => "trap: the kernel stopped itself (a failed assertion or __trap)",
            };
            let nowhere = (Space::Generic, 0);
            team.hazard(HazardKind::Crashed, thread, nowhere, NONE, || {
                what.to_owned()
            });
            team.halted = Some(Halt(*stop, "the kernel stopped itself"));
            Next::Stop
        }
        Op::External(call) => {
            team.call_external(w, call, active);
            match team.halted {
                Some(_) => Next::Stop,
                None => Next::On,
            }
        }
        op => {
            misc::registers(team, w, op, active);
            Next::On
        }
    }
}

/// Makes a path of the lanes that an instruction's guard left out: they go on after it.
fn leave_behind(w: &mut Warp, path: usize, active: u32, mask: u32) {
    let rest = mask & !active;
    if rest == 0 {
        return;
    }
    let Path { pc, meeting, .. } = w.paths[path];
    w.paths[path].mask = active;
    w.add_path(Path {
        pc: pc + 1,
        mask: rest,
        meeting,
        state: State::Ready,
    });
}

fn branch(
    team: &mut Cta<'_>,
    w: &mut Warp,
    path: usize,
    (target, join): (u32, u32),
    active: u32,
    mask: u32,
) -> Next {
    if active == mask {
        return Next::Jump(target);
    }
    team.counters.divergent_branches += 1;
    let pc = w.paths[path].pc;
    let meeting = split_at(w, path, join, mask);
    w.paths[path].state = State::Gone;
    // The path added last runs first: the lanes that fall through, as on a GPU, unless the others
    // leave at once: those have exited by the time that the rest comes to a barrier.
    let leaves = matches!(team.context.program.code[target as usize].op, Op::Exit);
    let taken = Path {
        pc: target,
        mask: active,
        meeting,
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

/// The meeting of the parts of a path that splits.
fn split_at(w: &mut Warp, path: usize, join: u32, mask: u32) -> u32 {
    let parent = w.paths[path].meeting;
    if join == NONE {
        return parent;
    }
    // In a loop, those who leave wait at the meeting that is already there.
    if parent != NONE {
        let m = &w.meetings[parent as usize];
        if m.pc == join && !m.call {
            return parent;
        }
    }
    w.meet(ReconvergencePoint {
        pc: join,
        expected: mask,
        arrived: 0,
        parent,
        call: false,
        in_use: true,
        call_pc: NONE,
        callee: NONE,
    })
}

fn table(
    team: &mut Cta<'_>,
    w: &mut Warp,
    path: usize,
    (index, targets, join): (u32, &[u32], u32),
    active: u32,
    mask: u32,
) -> Next {
    let rows = w.regs.r32[index as usize];
    let Some(bad) = lanes(active).find(|l| rows[*l] as usize >= targets.len()) else {
        let first = rows[active.trailing_zeros() as usize & 31];
        if active == mask && lanes(active).all(|l| rows[l] == first) {
            return Next::Jump(targets[first as usize]);
        }
        let pc = w.paths[path].pc;
        let meeting = split_at(w, path, join, mask);
        w.paths[path].state = State::Gone;
        if mask != active {
            w.add_path(Path {
                pc: pc + 1,
                mask: mask & !active,
                meeting,
                state: State::Ready,
            });
        }
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
                meeting,
                state: State::Ready,
            });
            rest &= !group;
        }
        return Next::Stop;
    };
    team.hazard(
        HazardKind::Crashed,
        w.index * 32 + bad,
        (Space::Generic, 0),
        NONE,
        || {
            format!(
                "a branch table of {} targets is indexed with {}",
                targets.len(),
                rows[bad]
            )
        },
    );
    team.halted = Some(Halt(Stop::IllegalTarget, "a branch to nowhere"));
    Next::Stop
}

/// A warp-wide operation: runs when every lane named is here, else the path waits.
fn members(
    team: &mut Cta<'_>,
    w: &mut Warp,
    path: usize,
    row: u32,
    op: &WarpOp,
    active: u32,
) -> Next {
    if let Some(groups) = Cta::groups(w, row, active) {
        for group in groups {
            team.collective(w, row, op, group, active);
        }
        return Next::On;
    }
    w.paths[path].state = State::Members;
    // Others may wait at the same instruction: together they may be complete.
    let pc = w.paths[path].pc;
    let mut here = 0;
    for p in w
        .paths
        .iter()
        .filter(|p| p.state == State::Members && p.pc == pc)
    {
        here |= p.mask;
    }
    let guard = &team.context.program.code[pc as usize];
    if guard.guard != NONE {
        let p = w.regs.preds[guard.guard as usize];
        here &= if guard.guard_negated { !p } else { p };
    }
    if here == active {
        return Next::Stop;
    }
    if let Some(groups) = Cta::groups(w, row, here) {
        for group in groups {
            team.collective(w, row, op, group, here);
        }
        for p in w
            .paths
            .iter_mut()
            .filter(|p| p.state == State::Members && p.pc == pc)
        {
            p.pc += 1;
            p.state = State::Ready;
        }
    }
    Next::Stop
}
