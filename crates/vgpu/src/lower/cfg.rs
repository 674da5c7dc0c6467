//! Control flow: where paths that a branch split meet again, its immediate post-dominator.

use super::JOIN;
use super::program::{Inst, NONE, Op};

/// Fills in the `join` of every branch and marks the instructions where paths may meet.
pub(super) fn mark_joins(code: &mut [Inst]) {
    let blocks = Blocks::of(code);
    let post = blocks.post_dominators();
    for pc in 0..code.len() {
        let block = blocks.of_pc[pc] as usize;
        // Lanes that would only meet to exit together exit at once, so that a barrier that the
        // others wait at need not wait for them.
        let join = post[block]
            .map(|b| blocks.starts[b as usize])
            .filter(|join| {
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
    successors: Vec<Vec<u32>>,
}

impl Blocks {
    fn of(code: &[Inst]) -> Blocks {
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
        let mut successors = vec![Vec::new(); starts.len()];
        for (b, list) in successors.iter_mut().enumerate() {
            let end = starts.get(b + 1).map_or(code.len(), |s| *s as usize);
            let last = &code[end - 1];
            let falls = last.guard != NONE;
            match &last.op {
                Op::Branch { target, .. } => list.push(of_pc[*target as usize]),
                Op::BranchTable { targets, .. } => {
                    list.extend(targets.iter().map(|t| of_pc[*t as usize]));
                }
                Op::Return | Op::Exit | Op::Trap(_) => {}
                _ => {
                    list.extend(of_pc.get(end));
                    continue;
                }
            }
            if falls {
                list.extend(of_pc.get(end));
            }
        }
        Blocks {
            starts,
            of_pc,
            successors,
        }
    }

    /// Immediate post-dominator of each block; `None` where only the end is common. (Cooper,
    /// Harvey and Kennedy, "A simple, fast dominance algorithm", on the reversed graph.)
    fn post_dominators(&self) -> Vec<Option<u32>> {
        let n = self.starts.len();
        let exit = n;
        let mut preds = vec![Vec::new(); n + 1];
        for (b, succ) in self.successors.iter().enumerate() {
            for s in succ {
                preds[*s as usize].push(b);
            }
            if succ.is_empty() {
                preds[exit].push(b);
            }
        }
        let order = self.reverse_order(&preds, exit);
        let mut number = vec![usize::MAX; n + 1];
        for (i, b) in order.iter().enumerate() {
            number[*b] = i;
        }
        let mut idom = vec![usize::MAX; n + 1];
        idom[exit] = exit;
        let mut changed = true;
        while changed {
            changed = false;
            for &b in order.iter().skip(1) {
                let succ = &self.successors[b];
                let mut new = usize::MAX;
                let ends = succ.is_empty().then_some(exit);
                for s in succ.iter().map(|s| *s as usize).chain(ends) {
                    if idom[s] == usize::MAX {
                        continue;
                    }
                    new = if new == usize::MAX {
                        s
                    } else {
                        meet(new, s, &idom, &number)
                    };
                }
                if new != idom[b] {
                    idom[b] = new;
                    changed = true;
                }
            }
        }
        (0..n)
            .map(|b| Some(idom[b]).filter(|d| *d < n).map(|d| d as u32))
            .collect()
    }

    /// Blocks that reach the end, in reverse post-order of the reversed graph.
    fn reverse_order(&self, preds: &[Vec<usize>], exit: usize) -> Vec<usize> {
        let mut seen = vec![false; preds.len()];
        let mut out = Vec::new();
        let mut stack = vec![(exit, 0)];
        seen[exit] = true;
        while let Some((b, next)) = stack.pop() {
            match preds[b].get(next) {
                Some(&p) => {
                    stack.push((b, next + 1));
                    if !seen[p] {
                        seen[p] = true;
                        stack.push((p, 0));
                    }
                }
                None => out.push(b),
            }
        }
        out.reverse();
        out
    }
}

fn meet(mut a: usize, mut b: usize, idom: &[usize], number: &[usize]) -> usize {
    while a != b {
        while number[a] > number[b] {
            a = idom[a];
        }
        while number[b] > number[a] {
            b = idom[b];
        }
    }
    a
}
