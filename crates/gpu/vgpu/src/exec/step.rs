//! The inner loop: runs one path of a warp until it waits, splits, ends or has used up its turn.

use super::cta::Cta;
use super::misc;
use super::regs::{FULL, Regs, Slots};
use super::shadow_values;
use super::stop::{Halt, Stop};
use super::warp::{Path, State, Warp};
use super::{matrices, transfer::lanes};
use crate::hazard::HazardKind;
use crate::hazard::report::Location;
use crate::lower::program::{Inst, NONE, Op, TensorMemoryOp, WarpOp};
use crate::lower::{FRAGMENT, JOIN, WATCHED};
use gpu_arithmetic::single;
use ptx::skeleton::{ADDRESSES, UNUSED};

mod branch;

use branch::{JumpTable, branch, branch_table};

/// Continuation of a path after an instruction.
enum Next {
    /// Continues at the next instruction.
    Continue,
    /// Continues at another instruction.
    Jump(u32),
    /// The path is suspended: another one may run.
    Stop,
}

/// Runs one path of `w` for at most `turn` instructions. Returns the number executed.
pub(super) fn run(cta: &mut Cta<'_>, w: &mut Warp, path: usize, turn: u64) -> u64 {
    let code: &[Inst] = &cta.context.program.code;
    let skip_unless = cta.context.skip_unless;
    let (mut ran, mut lane_sum) = (0u64, 0u64);
    let (mut pc, mask) = (w.paths[path].pc, w.paths[path].mask);
    let reconvergence = w.paths[path].reconvergence;
    cta.running = w.index;
    cta.open_run(pc);
    loop {
        let inst = &code[pc as usize];
        // Few instructions are marked: one test keeps these checks out of the common path.
        if inst.marks != 0 {
            if inst.marks & JOIN != 0 && reaches_reconvergence(w, reconvergence, pc) {
                cta.close_run(pc);
                w.paths[path].state = State::Retired;
                w.arrive(reconvergence, mask);
                break;
            }
            if inst.marks & WATCHED != 0 && w.is_watching(inst) {
                cta.watch(w, inst, pc, mask);
            }
            if inst.marks & FRAGMENT != 0
                && w.products.is_some()
                && mask & enabled_lanes(w, inst) != 0
                && let Some(uses) = cta.context.program.fragment_uses.get(&pc)
            {
                cta.use_fragments(w, pc, uses);
            }
        }
        let active = mask & enabled_lanes(w, inst);
        if cta.context.switches && active != 0 && cta.gives_way(w, &inst.op) {
            // It is executed, and counted, at the next turn.
            cta.close_run(pc);
            w.paths[path].pc = pc;
            break;
        }
        // A GPU issues an instruction that its guard disables in every lane, so it counts.
        ran += 1;
        if active == 0 {
            pc += 1;
            if ran < turn {
                continue;
            }
            cta.close_run(pc);
            w.paths[path].pc = pc;
            break;
        }
        // Counted before it may be skipped: counters describe the kernel, not what was executed of it.
        let count = u64::from(active.count_ones());
        lane_sum += count;
        let flops = count * u64::from(inst.flops);
        cta.counters.count(inst.class, flops);
        let skipped =
            skip_unless != 0 && (inst.keep & skip_unless == 0 || is_known_load(cta, inst, pc));
        // Only jumps check the limit of the turn: every loop has one.
        if skipped || execute_alu(w, inst, active) {
            pc += 1;
            continue;
        }
        // Operations on registers report no hazard and never suspend a path: only others need to
        // know where they are.
        cta.pc = pc;
        w.paths[path].pc = pc;
        match execute(cta, w, path, inst, active, mask) {
            Next::Continue => pc += 1,
            Next::Jump(to) => {
                cta.close_run(pc + 1);
                pc = to;
                cta.open_run(pc);
                if ran >= turn || cta.polled {
                    w.paths[path].pc = pc;
                    break;
                }
            }
            Next::Stop => {
                cta.close_run(pc + 1);
                break;
            }
        }
        if cta.halted.is_some() {
            cta.close_run(pc);
            break;
        }
    }
    cta.counters.warp_instructions += ran;
    cta.counters.lane_instructions += lane_sum;
    ran
}

/// Reports whether a path at `pc` has reached its reconvergence point.
#[inline]
fn reaches_reconvergence(w: &Warp, reconvergence: u32, pc: u32) -> bool {
    if reconvergence == NONE {
        return false;
    }
    let m = &w.reconvergence_points[reconvergence as usize];
    m.pc == pc && !m.call
}

/// Returns the lanes that an instruction's guard enables.
#[inline]
pub(super) fn enabled_lanes(w: &Warp, inst: &Inst) -> u32 {
    if inst.guard == NONE {
        return FULL;
    }
    let p = w.regs.preds[inst.guard as usize];
    if inst.guard_negated { !p } else { p }
}

/// Executes an instruction that only reads and writes registers; returns `false` for any other.
#[inline]
fn execute_alu(w: &mut Warp, inst: &Inst, active: u32) -> bool {
    match &inst.op {
        Op::Alu(f, slots) => f(&mut w.regs, slots, active),
        Op::FmaF32(slots) => fma(&mut w.regs, slots, active),
        _ => return false,
    }
    true
}

/// Reports whether a load has an unused value and sufficiently known addresses.
fn is_known_load(cta: &mut Cta<'_>, inst: &Inst, pc: u32) -> bool {
    inst.keep & UNUSED != 0
        && cta.context.skip_unless == ADDRESSES
        && cta.warp_trace().is_some_and(|trace| trace.knows(pc))
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
    cta: &mut Cta<'_>,
    w: &mut Warp,
    path: usize,
    inst: &Inst,
    active: u32,
    mask: u32,
) -> Next {
    match &inst.op {
        Op::Shadowed(alu) => shadow_values::execute(w, alu, active),
        Op::Load(m) if inst.marks & WATCHED != 0 && cta.may_read_undefined(m) => {
            cta.load_undefined(w, m, active);
        }
        Op::Load(m) if w.shadows.is_some() => cta.load_shadowed(w, m, active),
        Op::Load(m) => cta.load(w, m, active),
        Op::Store(m) if inst.marks & WATCHED != 0 && w.undefined_registers != 0 => {
            cta.store_defined(w, m, active);
            cta.store_shadows(w, m, active);
        }
        Op::Store(m) => {
            cta.store(w, m, active);
            cta.store_shadows(w, m, active);
        }
        Op::Branch { target, join } => {
            return branch(cta, w, path, *target, *join, active, mask);
        }
        Op::LdMatrix {
            at,
            count,
            rows,
            data,
        } => {
            let data = &data[..usize::from(*count)];
            match w.shadows {
                None => cta.ldmatrix(w, at, *rows, data),
                Some(_) => cta.ldmatrix_shadowed(w, at, *rows, data),
            }
        }
        Op::StMatrix {
            at,
            count,
            rows,
            data,
        } => {
            cta.stmatrix(w, at, *rows, &data[..usize::from(*count)]);
        }
        Op::Mma(m) => {
            let shadows = w.mma_shadows(m);
            matrices::mma(w, m);
            w.set_product(&m.d, shadows, m.form.d);
        }
        Op::Wgmma(m) => cta.wgmma(w, m, active),
        Op::WgmmaFence => cta.wgmma_fence(w),
        Op::WgmmaCommit => cta.wgmma_commit(w),
        Op::WgmmaWait(left) => {
            if !cta.wgmma_wait(w, *left) {
                return Next::Jump(w.paths[path].pc);
            }
        }
        Op::CpAsync(c) => cta.copy_async(w, c, active),
        Op::CommitGroup => cta.commit_group(w, active),
        Op::WaitGroup(n) => cta.wait_group(w, *n, active),
        Op::Warp { mask: row, op } => return execute_warp_op(cta, w, path, *row, op, active),
        Op::Bar(b) => {
            if cta.arrive_at(w, b, active) {
                w.paths[path].state = State::Barrier;
                // Lanes that the guard disables do not wait; they continue as a separate path.
                split_disabled(w, path, active, mask);
                return Next::Stop;
            }
        }
        Op::Atom(a) if w.shadows.is_some() => cta.atom_shadowed(w, a, active),
        Op::Atom(a) => cta.atom(w, a, active),
        Op::Fence { device_wide } => {
            lanes(active).for_each(|l| cta.fence(w.index * 32 + l, *device_wide));
        }
        Op::MmaF64(m) => matrices::mma_f64(w, m),
        Op::MmaBits(m) => matrices::mma_bits(w, m),
        Op::WmmaMma(m) => {
            let shadows = w.wmma_shadows(m);
            matrices::wmma(w, m);
            w.set_product(&m.d, shadows, m.form.0.d);
        }
        Op::WmmaMem(m) => {
            cta.wmma_memory(w, m, active);
            cta.wmma_store_shadows(w, m, active);
        }
        Op::MovMatrix { dest, source } => {
            let row = gpu_arithmetic::layout::movmatrix(&w.regs.r32[*source as usize]);
            w.regs.r32[*dest as usize] = row;
        }
        Op::Mbar(at, op) => cta.mbarrier(w, at, op, active),
        Op::Bulk(b) => cta.bulk(w, b, active),
        Op::AsyncStore(s) => cta.async_store(w, s, active),
        Op::Tensor(c) => cta.tensor_copy(w, c, active),
        Op::TensorMemory(op) if op.is_aligned() => {
            return execute_aligned(cta, w, path, op, active);
        }
        Op::TensorMemory(op) => cta.issue_tensor_core(w, op, active),
        Op::CommitBulk => cta.commit_bulk(w, active),
        Op::WaitBulk { left, read } => cta.wait_bulk(w, *left, *read, active),
        Op::ProxyFence(fence) => cta.proxy_fence(w, *fence, active),
        Op::Clear { at, bytes } => cta.clear(w, at, *bytes, active),
        Op::SetRegisters { count, increase } => cta.set_registers(w, *count, *increase, active),
        Op::ClusterArrive { release, aligned } => {
            cta.cluster_arrive(w, active, *release, *aligned);
        }
        Op::ClusterWait { aligned } => {
            if cta.cluster_wait(w, active, *aligned) {
                w.paths[path].state = State::Barrier;
                split_disabled(w, path, active, mask);
                return Next::Stop;
            }
        }
        Op::Nop | Op::Sleep => {}
        _ => return execute_control(cta, w, path, inst, active, mask),
    }
    Next::Continue
}

fn execute_control(
    cta: &mut Cta<'_>,
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
        } => {
            let table = JumpTable {
                index: *index,
                targets,
                join: *join,
            };
            branch_table(cta, w, path, &table, active, mask)
        }
        Op::Call(call) => {
            split_disabled(w, path, active, mask);
            cta.call(w, path, call, active);
            Next::Stop
        }
        Op::CallPointer(call) => {
            split_disabled(w, path, active, mask);
            cta.call_pointer(w, path, call, active);
            Next::Stop
        }
        Op::CopyIn { frame, copies } => {
            cta.copy_in(w, *frame, copies, active);
            Next::Continue
        }
        Op::Stack(op) => match cta.stack(w, *op, active) {
            true => Next::Continue,
            false => Next::Stop,
        },
        Op::Return => {
            split_disabled(w, path, active, mask);
            cta.leave_function(w, path, active);
            Next::Stop
        }
        Op::Exit => {
            split_disabled(w, path, active, mask);
            let reconvergence = w.paths[path].reconvergence;
            w.paths[path].state = State::Retired;
            w.alive &= !active;
            // Other paths must not wait for lanes that never arrive.
            w.withdraw(reconvergence, active, NONE);
            cta.leave(w, active);
            Next::Stop
        }
        Op::Trap(stop) => {
            let thread = w.index * 32 + active.trailing_zeros() as usize;
            let what = match stop {
                Stop::Breakpoint => "brkpt: a breakpoint",
                _ => "trap: the kernel stopped itself (a failed assertion or __trap)",
            };
            let nowhere = Location::NONE;
            cta.hazard(HazardKind::Crashed, thread, nowhere, NONE, || {
                what.to_owned()
            });
            cta.halted = Some(Halt(*stop, "the kernel stopped itself"));
            Next::Stop
        }
        Op::External(call) => {
            cta.call_external(w, call, active);
            match cta.halted {
                Some(_) => Next::Stop,
                None => Next::Continue,
            }
        }
        op => {
            let moved = w.moved_shadows(op);
            misc::registers(cta, w, op, active);
            w.set_moved(moved, active);
            Next::Continue
        }
    }
}

/// Splits off the lanes that an instruction's guard disabled, which continue after it.
fn split_disabled(w: &mut Warp, path: usize, active: u32, mask: u32) {
    let rest = mask & !active;
    if rest == 0 {
        return;
    }
    let Path {
        pc, reconvergence, ..
    } = w.paths[path];
    w.paths[path].mask = active;
    w.add_path(Path {
        pc: pc + 1,
        mask: rest,
        reconvergence,
        state: State::Ready,
    });
}

/// Executes an operation of a whole warp on tensor memory if all its lanes have arrived, by whatever way;
/// otherwise the path waits.
fn execute_aligned(
    cta: &mut Cta<'_>,
    w: &mut Warp,
    path: usize,
    op: &TensorMemoryOp,
    active: u32,
) -> Next {
    if active == FULL {
        return match cta.tensor_memory(w, op) {
            true => Next::Continue,
            false => Next::Jump(w.paths[path].pc),
        };
    }
    w.paths[path].state = State::Members;
    if waiting_lanes(cta, w, w.paths[path].pc) == FULL {
        let done = cta.tensor_memory(w, op);
        release_waiting(w, w.paths[path].pc, done);
    }
    Next::Stop
}

/// Returns the lanes that wait at an instruction and are enabled by its guard.
pub(super) fn waiting_lanes(cta: &Cta<'_>, w: &Warp, pc: u32) -> u32 {
    let waiting = |p: &&Path| p.state == State::Members && p.pc == pc;
    let here = w
        .paths
        .iter()
        .filter(waiting)
        .fold(0, |all, p| all | p.mask);
    here & enabled_lanes(w, &cta.context.program.code[pc as usize])
}

/// Lets the paths that wait at an instruction continue behind it, or try it again.
fn release_waiting(w: &mut Warp, pc: u32, done: bool) {
    for p in &mut w.paths {
        if p.state == State::Members && p.pc == pc {
            p.pc += u32::from(done);
            p.state = State::Ready;
        }
    }
}

/// Executes a warp-wide operation if every named lane has arrived; otherwise the path waits.
fn execute_warp_op(
    cta: &mut Cta<'_>,
    w: &mut Warp,
    path: usize,
    row: u32,
    op: &WarpOp,
    active: u32,
) -> Next {
    if let Some(groups) = Cta::groups(w, row, active) {
        for group in groups {
            cta.collective(w, row, op, group, active);
        }
        return Next::Continue;
    }
    w.paths[path].state = State::Members;
    // Other paths wait at the same instruction: together they may be complete.
    let pc = w.paths[path].pc;
    let here = waiting_lanes(cta, w, pc);
    if here == active {
        return Next::Stop;
    }
    if let Some(groups) = Cta::groups(w, row, here) {
        for group in groups {
            cta.collective(w, row, op, group, here);
        }
        // This path is among them: all of them continue after the operation.
        release_waiting(w, pc, true);
    }
    Next::Stop
}
