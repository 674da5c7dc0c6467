//! Control flow of a function: basic blocks, immediate post-dominators, control dependence.

use std::collections::HashSet;

use super::ast::{Body, Instruction, Operand};
use super::intent::labels;

/// Returns the immediate post-dominator of each basic block; `None` if only the end of the function
/// is common, or the end cannot be reached. A successor equal to the number of blocks is the end.
///
/// Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm", 2001, on the reversed graph.
#[must_use]
pub fn post_dominators(successors: &[Vec<usize>]) -> Vec<Option<usize>> {
    let end = successors.len();
    let mut predecessors = vec![Vec::new(); end + 1];
    for (block, next) in successors.iter().enumerate() {
        for to in next {
            predecessors[*to].push(block);
        }
    }
    let order = reverse_post_order(&predecessors, end);
    let mut number = vec![usize::MAX; end + 1];
    for (index, block) in order.iter().enumerate() {
        number[*block] = index;
    }
    let mut dominator = vec![usize::MAX; end + 1];
    dominator[end] = end;
    let mut changed = true;
    while changed {
        changed = false;
        // The first one is the end itself.
        for &block in order.iter().skip(1) {
            let known = successors[block].iter().copied();
            let known = known.filter(|next| dominator[*next] != usize::MAX);
            let new = known.reduce(|a, b| intersect(a, b, &dominator, &number));
            let new = new.unwrap_or(usize::MAX);
            if new != dominator[block] {
                dominator[block] = new;
                changed = true;
            }
        }
    }
    let found = dominator.into_iter().take(end);
    found
        .map(|block| Some(block).filter(|b| *b < end))
        .collect()
}

/// Returns the blocks that reach the end, in reverse post-order of the reversed graph.
fn reverse_post_order(predecessors: &[Vec<usize>], end: usize) -> Vec<usize> {
    let mut seen = vec![false; predecessors.len()];
    let mut order = Vec::new();
    let mut stack = vec![(end, 0)];
    seen[end] = true;
    while let Some((block, next)) = stack.pop() {
        match predecessors[block].get(next) {
            Some(&before) => {
                stack.push((block, next + 1));
                if !seen[before] {
                    seen[before] = true;
                    stack.push((before, 0));
                }
            }
            None => order.push(block),
        }
    }
    order.reverse();
    order
}

fn intersect(mut a: usize, mut b: usize, dominator: &[usize], number: &[usize]) -> usize {
    while a != b {
        while number[a] > number[b] {
            a = dominator[a];
        }
        while number[b] > number[a] {
            b = dominator[b];
        }
    }
    a
}

/// Basic blocks of a function body.
#[derive(Debug)]
pub(super) struct Flow {
    /// First instruction of each block, then the number of instructions.
    starts: Vec<usize>,
    /// Block of each instruction.
    block: Vec<usize>,
    /// Conditional terminators on which each block is control dependent, as instructions.
    deciders: Vec<Vec<usize>>,
    post: Vec<Option<usize>>,
}

impl Flow {
    /// Computes the control flow of a body. A `trap` ends a thread without reaching the end: code
    /// after an assertion does not depend on it. `None` for a branch with unknown targets.
    pub(super) fn new(body: &Body<'_>) -> Option<Self> {
        let code = &body.instructions;
        let resolve = labels(body);
        let mut targets: Vec<Vec<usize>> = Vec::with_capacity(code.len());
        for i in code {
            targets.push(branch_targets(body, i, &resolve)?);
        }
        let mut leaders: HashSet<usize> = targets.iter().flatten().copied().collect();
        leaders.insert(0);
        leaders.extend(
            (0..code.len())
                .filter(|at| ends_block(&code[*at]))
                .map(|at| at + 1),
        );
        let mut starts: Vec<usize> = leaders.into_iter().filter(|at| *at < code.len()).collect();
        starts.sort_unstable();
        starts.push(code.len());
        let count = starts.len() - 1;
        let block_at = |at: usize| starts.partition_point(|start| *start <= at) - 1;
        let block: Vec<usize> = (0..code.len()).map(block_at).collect();
        let block_of = |at: usize| if at >= code.len() { count } else { block[at] };
        let successors: Vec<Vec<usize>> = (0..count)
            .map(|b| {
                let last = starts[b + 1] - 1;
                let i = &code[last];
                let mut next: Vec<usize> = targets[last].iter().map(|at| block_of(*at)).collect();
                if matches!(i.opcode, "ret" | "exit") {
                    next.push(count);
                }
                if i.guard.is_some() || !ends_block(i) {
                    next.push(block_of(last + 1));
                }
                next
            })
            .collect();
        let post = post_dominators(&successors);
        let deciders = deciders(&successors, &post, &starts);
        Some(Self {
            starts,
            block,
            deciders,
            post,
        })
    }

    /// Returns the conditional terminators that decide whether the instruction is executed.
    pub(super) fn deciders(&self, at: usize) -> &[usize] {
        &self.deciders[self.block[at]]
    }

    /// Returns the instruction where the paths out of a terminator reconverge; the number of
    /// instructions if that is the end.
    pub(super) fn join(&self, at: usize) -> usize {
        match self.post[self.block[at]] {
            Some(block) => self.starts[block],
            None => self.block.len(),
        }
    }
}

/// Reports whether an instruction ends its basic block.
pub(super) fn ends_block(i: &Instruction<'_>) -> bool {
    match i.opcode {
        "bra" | "brx" | "ret" | "exit" => true,
        "trap" | "brkpt" => i.guard.is_none(),
        _ => false,
    }
}

fn branch_targets(
    body: &Body<'_>,
    i: &Instruction<'_>,
    resolve: &impl Fn(u32, &str) -> Option<usize>,
) -> Option<Vec<usize>> {
    match (i.opcode, i.operands.as_slice()) {
        ("bra", [Operand::Name(label, 0), ..]) => Some(vec![resolve(i.scope, label)?]),
        ("brx", [_, Operand::Name(table, 0)]) => {
            let (_, names) = body.tables.iter().find(|(name, _)| name == table)?;
            names.iter().map(|name| resolve(i.scope, name)).collect()
        }
        ("bra" | "brx", _) => None,
        _ => Some(Vec::new()),
    }
}

/// Computes control dependence (Ferrante, Ottenstein and Warren, "The Program Dependence Graph",
/// 1987): a block depends on a branch if it post-dominates one of its successors, but not the
/// branch itself.
fn deciders(
    successors: &[Vec<usize>],
    post: &[Option<usize>],
    starts: &[usize],
) -> Vec<Vec<usize>> {
    let end = successors.len();
    let mut found = vec![Vec::new(); end];
    for (block, next) in successors
        .iter()
        .enumerate()
        .filter(|(_, next)| next.len() > 1)
    {
        let stop = post[block].unwrap_or(end);
        let terminator = starts[block + 1] - 1;
        for to in next {
            let mut at = *to;
            while at != stop && at < end {
                let deciders: &mut Vec<usize> = &mut found[at];
                // Another successor has led here before, and on from here.
                if deciders.last() == Some(&terminator) {
                    break;
                }
                deciders.push(terminator);
                at = post[at].unwrap_or(end);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests;
