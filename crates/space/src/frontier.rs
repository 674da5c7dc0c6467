//! State of a partial configuration, and the order in which parameters are chosen.
#![expect(
    clippy::indexing_slicing,
    reason = "there is a number of bits for each parameter of the space"
)]

use super::expr::{Bits, Op, Splits, Term, TermId, Terms};
use std::collections::{HashMap, HashSet};

/// Returns the terms whose values describe the state once the parameters in `fixed` are chosen: the largest
/// parts of the constraints `open` that depend only on these parameters. For a sum or product of whole
/// numbers, that part is the sum or product of its chosen operands.
pub(super) fn frontier(terms: &mut Terms, open: &[TermId], fixed: &Bits) -> Vec<TermId> {
    let mut slots: HashSet<TermId> = HashSet::new();
    walk(terms, open, fixed, &mut |_, _, part| {
        slots.insert(part);
    });
    let mut slots: Vec<TermId> = slots.into_iter().collect();
    slots.sort_unstable();
    slots
}

/// Returns, for every flattened sum or product above the frontier, its operands with the chosen ones merged
/// into the frontier's term.
pub(super) fn splits(terms: &mut Terms, roots: &[TermId], fixed: &Bits) -> Splits {
    let mut splits = Splits::new();
    walk(terms, roots, fixed, &mut |terms, parent, part| {
        let Some(parent) = parent else { return };
        let Term::Op(_, args) = terms.term(parent) else {
            return;
        };
        if !args.contains(&part) {
            let open = args
                .iter()
                .copied()
                .filter(|arg| !closed(terms, *arg, fixed));
            splits.insert(parent, std::iter::once(part).chain(open).collect());
        }
    });
    splits
}

fn closed(terms: &Terms, id: TermId, fixed: &Bits) -> bool {
    let vars = terms.vars(id);
    !vars.is_empty() && vars.is_subset(fixed)
}

/// Visits the frontier, each part with its open term.
fn walk(
    terms: &mut Terms,
    roots: &[TermId],
    fixed: &Bits,
    visit: &mut impl FnMut(&Terms, Option<TermId>, TermId),
) {
    let mut seen: HashSet<TermId> = HashSet::new();
    let mut stack: Vec<(Option<TermId>, TermId)> = roots.iter().map(|root| (None, *root)).collect();
    while let Some((parent, id)) = stack.pop() {
        if terms.vars(id).is_empty() {
            continue;
        }
        if terms.vars(id).is_subset(fixed) {
            visit(terms, parent, id);
            continue;
        }
        if !seen.insert(id) {
            continue;
        }
        let Term::Op(op, args) = terms.term(id) else {
            continue;
        };
        let (op, args) = (*op, args.to_vec());
        let done: Vec<TermId> = args
            .iter()
            .copied()
            .filter(|arg| closed(terms, *arg, fixed))
            .collect();
        // Only whole numbers are flattened, so only their terms have more than two operands here.
        if matches!(op, Op::Add | Op::Mul) && args.len() > 2 && done.len() > 1 {
            let part = terms.op(op, done);
            visit(terms, Some(id), part);
            let open = args.into_iter().filter(|arg| !closed(terms, *arg, fixed));
            stack.extend(open.map(|arg| (Some(id), arg)));
        } else {
            stack.extend(args.into_iter().map(|arg| (Some(id), arg)));
        }
    }
}

/// Estimator of state counts and work, in bits (base-2 logarithms).
struct Estimator<'t> {
    terms: &'t mut Terms,
    roots: &'t [TermId],
    /// Bits of each parameter's number of values.
    bits: &'t [f64],
    spreads: HashMap<TermId, f64>,
    states: HashMap<Vec<u32>, f64>,
}

impl Estimator<'_> {
    /// Estimates the bits of the number of different values of a term.
    fn spread(&mut self, id: TermId) -> f64 {
        if let Some(known) = self.spreads.get(&id) {
            return *known;
        }
        let free: f64 = self
            .terms
            .vars(id)
            .iter()
            .map(|var| self.bits[var as usize])
            .sum();
        let spread = match self.terms.term(id).clone() {
            Term::Const(_) => 0.0,
            Term::Var(var) => self.bits[var as usize],
            Term::Op(op, args) => {
                let parts: f64 = args.iter().map(|arg| self.spread(*arg)).sum();
                match op {
                    Op::Not | Op::Bool | Op::In | Op::NotIn => 1.0,
                    Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::Eq | Op::Ne => 1.0,
                    // Sums and products of small numbers coincide often.
                    Op::Add | Op::Mul if self.terms.vars(id).len() > 1 => 0.75 * parts,
                    _ => parts,
                }
            }
        };
        let spread = spread.min(free);
        self.spreads.insert(id, spread);
        spread
    }

    /// Estimates the bits of the number of states once the parameters in `fixed` are chosen.
    fn state(&mut self, fixed: &Bits) -> f64 {
        let key: Vec<u32> = fixed.iter().collect();
        if let Some(known) = self.states.get(&key) {
            return *known;
        }
        let open: Vec<TermId> = self
            .roots
            .iter()
            .copied()
            .filter(|root| !self.terms.vars(*root).is_subset(fixed))
            .collect();
        let slots = frontier(self.terms, &open, fixed);
        let mut vars = Bits::default();
        let mut sum = 0.0;
        for slot in slots {
            vars.union(self.terms.vars(slot));
            sum += self.spread(slot);
        }
        let free: f64 = vars.iter().map(|var| self.bits[var as usize]).sum();
        let state = sum.min(free);
        self.states.insert(key, state);
        state
    }

    /// Orders the parameters from `start`, always choosing the one that keeps the state smallest.
    fn greedy(&mut self, vars: &[u32], start: u32) -> (f64, Vec<u32>) {
        let mut order = vec![start];
        let mut fixed = Bits::default();
        fixed.insert(start);
        let mut work = self.bits[start as usize].exp2();
        while order.len() < vars.len() {
            let before = self.state(&fixed);
            let mut best: Option<(f64, u32)> = None;
            for var in vars.iter().copied().filter(|var| !fixed.contains(*var)) {
                let mut with = fixed.clone();
                with.insert(var);
                let after = self.state(&with);
                let transitions = before + self.bits[var as usize];
                let cost = after.exp2() + 0.1 * transitions.exp2();
                if best.is_none_or(|(least, _)| cost < least) {
                    best = Some((cost, var));
                }
            }
            let Some((_, var)) = best else { break };
            work += (before + self.bits[var as usize]).exp2();
            fixed.insert(var);
            order.push(var);
        }
        (work, order)
    }

    /// Estimates the work of a construction in this order: the sum of all layers' transitions.
    fn work(&mut self, order: &[u32]) -> f64 {
        let mut fixed = Bits::default();
        let mut work = 0.0;
        let mut before = 0.0;
        for var in order {
            work += (before + self.bits[*var as usize]).exp2();
            fixed.insert(*var);
            before = self.state(&fixed);
        }
        work
    }

    /// Moves single parameters to other positions while that reduces the estimated work.
    fn improve(&mut self, mut order: Vec<u32>, effort: usize) -> Vec<u32> {
        let mut least = self.work(&order);
        let mut improved = true;
        let mut tries = 0;
        while improved {
            improved = false;
            for from in 0..order.len() {
                for to in 0..order.len() {
                    tries += 1;
                    if tries > effort || self.states.len() > effort {
                        return order;
                    }
                    let mut moved = order.clone();
                    let var = moved.remove(from);
                    moved.insert(to, var);
                    let work = self.work(&moved);
                    if work < least * 0.999 {
                        (least, order, improved) = (work, moved, true);
                    }
                }
            }
        }
        order
    }
}

/// Orders the parameters of a group so that the diagram stays small. Builds greedy orders from several
/// starting points, selects the one with the least estimated work, and improves it by moving single
/// parameters. The greedy order alone chooses small parameters too early, which multiplies all later
/// layers. The declared order only breaks ties, so that construction time hardly depends on the
/// declaration.
pub(super) fn order(terms: &mut Terms, roots: &[TermId], vars: &[u32], bits: &[f64]) -> Vec<u32> {
    /// Maximum number of evaluated frontiers; each takes a few microseconds.
    const MAX_FRONTIERS: usize = 4000;
    /// Number of transitions that take as long as the search for a better order.
    const MIN_TRANSITIONS: f64 = 4000.0;
    /// Maximum number of visits of constraints for one order, which take seconds; beyond, the declared
    /// order is used.
    const MAX_VISITS: usize = 100_000_000;
    let pairs = vars.len().saturating_mul(vars.len());
    if pairs.saturating_mul(roots.len()) > MAX_VISITS {
        return vars.to_vec();
    }
    let mut estimator = Estimator {
        terms,
        roots,
        bits,
        spreads: HashMap::new(),
        states: HashMap::new(),
    };
    // Every greedy order evaluates about `vars²` frontiers.
    let starts = (MAX_FRONTIERS / (vars.len() * vars.len()).max(1)).clamp(1, vars.len().max(1));
    let mut best: Option<(f64, Vec<u32>)> = None;
    for start in vars.iter().take(starts) {
        let (work, order) = estimator.greedy(vars, *start);
        if best.as_ref().is_none_or(|(least, _)| work < *least) {
            best = Some((work, order));
        }
    }
    let (work, order) = best.unwrap_or((0.0, vars.to_vec()));
    if work < MIN_TRANSITIONS {
        return order;
    }
    estimator.improve(order, MAX_FRONTIERS)
}
