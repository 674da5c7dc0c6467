//! Which machine instruction stands for which PTX instruction.

use std::collections::HashMap;

use crate::counters::Class;
use crate::exec::trace::{BlockTrace, Run};
use crate::lower::program::{MbarOp, NONE, Op, Order, Program};
use crate::num::mma::Element;
use crate::sass::{Instr, Jump, Kernel, Unit};

/// A machine instruction that stands for a PTX instruction one to one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Anchor {
    /// Index of its PTX instruction in [`Map::pcs`].
    pub(super) slot: u32,
    /// It is the first of those that its PTX instruction was split into.
    pub(super) first: bool,
}

/// Types of matrix instructions that go at rates of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Matrix {
    /// Half precision, either kind.
    #[default]
    F16,
    Tf32,
    /// Integers of 8 bits and fewer.
    Int,
    /// Floats of 8 bits.
    F8,
    F64,
}

impl Matrix {
    fn of(op: &Op) -> Matrix {
        let element = match op {
            Op::Mma(m) => m.form.a,
            Op::WmmaMma(m) => m.form.a,
            Op::MmaF64(_) => return Matrix::F64,
            _ => return Matrix::F16,
        };
        match element {
            Element::F16 | Element::Bf16 => Matrix::F16,
            Element::Tf32 => Matrix::Tf32,
            Element::E4m3 | Element::E5m2 => Matrix::F8,
            Element::S8 | Element::U8 | Element::S4 | Element::U4 => Matrix::Int,
        }
    }

    /// The type that machine code of this operation executes: what lacks a unit of its own is
    /// converted first.
    fn executed(self, opcode: u16) -> Matrix {
        match opcode {
            0x037 => Matrix::Int,
            0x03f => Matrix::F64,
            0x07a => Matrix::F8,
            _ if self == Matrix::Tf32 => Matrix::Tf32,
            _ => Matrix::F16,
        }
    }
}

/// Instructions that are few beside others and matter more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Few {
    /// Accesses to global memory.
    Global,
    /// Products of matrices.
    Tensor,
}

/// A piece of machine code as the walk sees it.
#[derive(Debug, Clone, Default)]
pub(super) struct PieceMap {
    /// Some of its anchors that are executed whenever it is: the slot, and which execution of it
    /// from now on.
    pub(super) probes: Vec<(u32, u32)>,
    /// Some of its guarded anchors, where there are no others: they may stand for the side of a
    /// branch that the PTX did not take.
    pub(super) guarded: Vec<(u32, u32)>,
    /// PTX instructions of a piece without `probes`.
    pub(super) weak: Vec<u32>,
}

/// Machine code and PTX side by side.
#[derive(Debug, Default)]
pub(super) struct Map {
    /// Anchor of each machine instruction.
    pub(super) anchors: Vec<Option<Anchor>>,
    /// PTX instruction of each slot.
    pub(super) pcs: Vec<u32>,
    /// Whether it is of a kind that is few, and takes most of the time.
    pub(super) few: Vec<Option<Few>>,
    /// PTX instructions by which a warp asks whether it may go on, ascending.
    asks: Vec<u32>,
    /// Those of `pcs` that are not among them, ascending.
    works: Vec<u32>,
    pub(super) pieces: Vec<PieceMap>,
    /// Multiply-adds of each machine instruction and their type, where it is a matrix instruction.
    pub(super) tensor: Vec<(u32, Matrix)>,
}

/// Anchors looked at to find out whether a piece is next.
pub(super) const PROBES: usize = 24;

fn fits(unit: Unit, opcode: u16, class: Class, op: &Op) -> bool {
    match unit {
        Unit::Global => class == Class::Global && !matches!(op, Op::CpAsync(_)),
        Unit::CopyAsync => matches!(op, Op::CpAsync(_)),
        Unit::Shared => class == Class::Shared || class == Class::Global,
        Unit::Atomic | Unit::SharedAtomic => class == Class::Atomic,
        Unit::Fma => matches!(opcode, 0x020 | 0x021 | 0x023) && class == Class::Fp32,
        Unit::Half => class == Class::Fp16,
        Unit::Double => class == Class::Fp64,
        Unit::Tensor => class == Class::Tensor,
        Unit::Barrier => matches!(op, Op::Bar(_)),
        Unit::Shuffle => class == Class::Shuffle,
        Unit::Special => class == Class::Special || class == Class::Convert,
        _ => false,
    }
}

/// Waiting for a barrier in memory, or for a flag. (A volatile load is taken for one of a flag, and
/// then relaxed, only where it ends the loop that it is in.)
fn asks(op: &Op) -> bool {
    match op {
        Op::Mbar(_, op) => matches!(**op, MbarOp::Wait { .. }),
        Op::Load(load) => !matches!(load.order, Order::Weak | Order::Volatile),
        _ => false,
    }
}

impl Map {
    /// `traces` tell how often PTX instructions were executed, by which one that became several
    /// machine instructions differs from one of an unrolled loop.
    pub(super) fn new(kernel: &Kernel, program: &Program, traces: &[BlockTrace]) -> Map {
        let visits = visits(program, traces);
        let mut by_line: HashMap<u32, Vec<u32>> = HashMap::new();
        for (pc, inst) in program.code.iter().enumerate() {
            by_line.entry(inst.line).or_default().push(pc as u32);
        }
        let mut map = Map {
            asks: (program.code.iter().zip(0..))
                .filter(|(inst, _)| asks(&inst.op))
                .map(|(_, pc)| pc)
                .collect(),
            anchors: vec![None; kernel.code.len()],
            tensor: vec![(0, Matrix::F16); kernel.code.len()],
            ..Map::default()
        };
        let mut slots: HashMap<u32, u32> = HashMap::new();
        for piece in &kernel.flow.pieces {
            let range = piece.start as usize..piece.end as usize;
            let found = map.piece(
                &kernel.code[range],
                piece.start,
                program,
                &visits,
                &by_line,
                &mut slots,
            );
            map.pieces.push(found);
        }
        let work = |pc: &&u32| map.asks.binary_search(pc).is_err();
        map.works = map.pcs.iter().filter(work).copied().collect();
        map.works.sort_unstable();
        map
    }

    /// Whether a warp that executes these instructions again and again waits for others: it asks,
    /// and does nothing else. How often depends on the virtual GPU's schedule and says nothing of a
    /// real one's time.
    pub(super) fn spins(&self, run: &Run) -> bool {
        let inside = |pcs: &[u32]| {
            let first = pcs.partition_point(|pc| *pc < run.start);
            pcs.get(first).is_some_and(|pc| *pc < run.end)
        };
        inside(&self.asks) && !inside(&self.works)
    }

    fn piece(
        &mut self,
        code: &[Instr],
        start: u32,
        program: &Program,
        visits: &[i64],
        by_line: &HashMap<u32, Vec<u32>>,
        slots: &mut HashMap<u32, u32>,
    ) -> PieceMap {
        // PTX instruction of each machine instruction that could stand for one.
        let pcs: Vec<u32> = code
            .iter()
            .map(|instr| {
                let fitting = by_line.get(&instr.line).into_iter().flatten().find(|pc| {
                    let inst = &program.code[**pc as usize];
                    fits(instr.unit, instr.opcode, inst.class, &inst.op)
                });
                fitting.copied().unwrap_or(NONE)
            })
            .collect();
        let mut copies: HashMap<u32, u32> = HashMap::new();
        pcs.iter()
            .filter(|pc| **pc != NONE)
            .for_each(|pc| *copies.entry(*pc).or_default() += 1);
        let usual = usual(&copies, visits);
        let mut seen: HashMap<u32, u32> = HashMap::new();
        let mut consumed: Vec<(u32, u32, bool)> = Vec::new();
        for (i, pc) in pcs.iter().enumerate().filter(|(_, pc)| **pc != NONE) {
            let split = split(copies[pc], visits[*pc as usize], usual);
            let index = seen.entry(*pc).or_default();
            let first = index.is_multiple_of(split);
            let which = *index / split;
            *index += 1;
            let next = slots.len() as u32;
            let slot = *slots.entry(*pc).or_insert(next);
            if slot == next {
                self.pcs.push(*pc);
                self.few.push(match program.code[*pc as usize].class {
                    Class::Global => Some(Few::Global),
                    Class::Tensor => Some(Few::Tensor),
                    _ => None,
                });
            }
            let at = start as usize + i;
            self.anchors[at] = Some(Anchor { slot, first });
            if code[i].unit == Unit::Tensor {
                let inst = &program.code[*pc as usize];
                let each = u32::from(inst.flops) * 16 * 32 / 2;
                let matrix = Matrix::of(&inst.op).executed(code[i].opcode);
                self.tensor[at] = (each / split, matrix);
            }
            if first {
                consumed.push((slot, which, code[i].guarded));
            }
        }
        let some = |guarded: bool| -> Vec<(u32, u32)> {
            let all = consumed.iter().filter(|(.., g)| *g == guarded);
            let all: Vec<(u32, u32)> = all.map(|(slot, which, _)| (*slot, *which)).collect();
            let step = all.len().div_ceil(PROBES).max(1);
            all.iter().step_by(step).copied().collect()
        };
        let probes = some(false);
        let guarded = match probes.is_empty() {
            true => some(true),
            false => Vec::new(),
        };
        let mut weak: Vec<u32> = Vec::new();
        if probes.is_empty() {
            // A jump bears the line of the one that ended the piece before it in the PTX; where
            // lanes part and meet, that of whatever is near. Guarded ones may stand for the side of
            // a branch that the PTX did not take.
            let own = |i: &&Instr| matches!(i.jump, Jump::None | Jump::Exit);
            let any_plain = code.iter().filter(own).any(|i| !i.guarded);
            let told = code
                .iter()
                .filter(own)
                .filter(|i| !(any_plain && i.guarded));
            let lines = told.filter_map(|i| by_line.get(&i.line));
            weak.extend(lines.filter_map(|pcs| pcs.first()).take(64));
            weak.dedup();
            weak.truncate(8);
        }
        PieceMap {
            probes,
            guarded,
            weak,
        }
    }
}

/// How often each PTX instruction was executed.
fn visits(program: &Program, traces: &[BlockTrace]) -> Vec<i64> {
    let mut counts = vec![0; program.code.len() + 1];
    for run in traces.iter().flat_map(|t| &t.warps).flat_map(|w| &w.runs) {
        counts[run.start as usize] += 1;
        counts[run.end as usize] -= 1;
    }
    let mut sum = 0;
    for count in &mut counts {
        sum += *count;
        *count = sum;
    }
    counts
}

/// How often a piece is entered, from the PTX instructions in it: the middle of what each says.
fn usual(copies: &HashMap<u32, u32>, visits: &[i64]) -> f64 {
    let rates = copies
        .iter()
        .map(|(pc, n)| visits[*pc as usize] as f64 / f64::from(*n));
    let mut rates: Vec<f64> = rates.filter(|r| *r > 0.0).collect();
    rates.sort_unstable_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or(0.0)
}

/// Machine instructions that one execution of a PTX instruction became.
fn split(copies: u32, visits: i64, usual: f64) -> u32 {
    let rate = visits as f64 / f64::from(copies);
    if rate <= 0.0 {
        return 1;
    }
    ((usual / rate).round() as u32).clamp(1, copies)
}
