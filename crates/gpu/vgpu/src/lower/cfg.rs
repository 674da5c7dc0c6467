//! Control flow: reconvergence points of branches, at their immediate post-dominators.

use super::JOIN;
use super::program::{Inst, NONE, Op};
use ptx::flow::post_dominators;

/// Fills in the `join` of every branch and marks the instructions where paths may reconverge.
pub(super) fn mark_joins(code: &mut [Inst]) {
    let blocks = Blocks::from_code(code);
    let post = post_dominators(&blocks.successors);
    for pc in 0..code.len() {
        // Groups of lanes that call different functions meet after the call.
        if matches!(code[pc].op, Op::CallPointer(_)) {
            code[pc + 1].marks |= JOIN;
            continue;
        }
        let block = blocks.of_pc[pc] as usize;
        // Lanes that would reconverge only to exit do so at once: a barrier that the other lanes
        // wait at must not wait for them.
        let join = post[block].map(|b| blocks.starts[b]).filter(|join| {
            let first = &code[*join as usize];
            !(matches!(first.op, Op::Exit) && first.guard == NONE)
        });
        let join = join.unwrap_or(NONE);
        match &mut code[pc].op {
            Op::Branch { join: j, .. } | Op::BranchTable { join: j, .. } => *j = join,
            _ => continue,
        }
        if join != NONE {
            code[join as usize].marks |= JOIN;
        }
    }
}

struct Blocks {
    starts: Vec<u32>,
    of_pc: Vec<u32>,
    /// Successors of each block; the number of blocks stands for the exit.
    successors: Vec<Vec<usize>>,
}

impl Blocks {
    fn from_code(code: &[Inst]) -> Blocks {
        let mut leader = vec![false; code.len() + 1];
        leader[0] = true;
        for (pc, inst) in code.iter().enumerate() {
            match &inst.op {
                Op::Branch { target, .. } => leader[*target as usize] = true,
                Op::BranchTable { targets, .. } => {
                    targets.iter().for_each(|t| leader[*t as usize] = true);
                }
                Op::Return | Op::Exit | Op::Trap(_) => {}
                _ => continue,
            }
            leader[pc + 1] = true;
        }
        let starts: Vec<u32> = (0..code.len() as u32)
            .filter(|p| leader[*p as usize])
            .collect();
        let mut of_pc = vec![0; code.len()];
        let mut block = 0;
        for pc in 0..code.len() {
            if pc > 0 && leader[pc] {
                block += 1;
            }
            of_pc[pc] = block;
        }
        let count = starts.len();
        let mut successors = vec![Vec::new(); count];
        for (b, list) in successors.iter_mut().enumerate() {
            let end = starts.get(b + 1).map_or(code.len(), |s| *s as usize);
            let last = &code[end - 1];
            // A guarded terminator falls through in the lanes that its guard disables.
            let falls = last.guard != NONE;
            match &last.op {
                Op::Branch { target, .. } => list.push(of_pc[*target as usize] as usize),
                Op::BranchTable { targets, .. } => {
                    list.extend(targets.iter().map(|t| of_pc[*t as usize] as usize));
                }
                Op::Return | Op::Exit | Op::Trap(_) => {}
                _ => {
                    list.extend(of_pc.get(end).map(|b| *b as usize));
                }
            }
            if falls {
                list.extend(of_pc.get(end).map(|b| *b as usize));
            }
            // Post-dominance needs a path to the exit from every block, also from those that never
            // end.
            if list.is_empty() {
                list.push(count);
            }
        }
        Blocks {
            starts,
            of_pc,
            successors,
        }
    }
}
