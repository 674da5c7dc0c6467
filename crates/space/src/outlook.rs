//! Possible results of open constraints during the construction of a diagram.

use super::expr::{Bits, Op, Program, Splits, TermId, Val};
use super::group::Group;
use super::interval::{self, Abs};

/// Evaluator of the open constraints' possible results for a state.
pub(super) struct Outlook {
    program: Program,
    /// Registers with the ranges of open parameters and of everything that depends only on them.
    registers: Vec<Abs>,
    /// Steps that depend on the state.
    dynamic: Vec<usize>,
    /// Open constraints that use each slot.
    users: Vec<Vec<usize>>,
}

impl Outlook {
    #[expect(
        clippy::indexing_slicing,
        reason = "registers are numbered by the program of the same outlook, parameters by their space"
    )]
    pub(super) fn new(
        group: &Group<'_>,
        open: &[TermId],
        slots: &[TermId],
        splits: &Splits,
        fixed: &Bits,
    ) -> Self {
        let mut vars = Bits::default();
        for root in open {
            vars.union(group.terms.vars(*root));
        }
        let ahead: Vec<u32> = vars.iter().filter(|var| !fixed.contains(*var)).collect();
        let mut inputs = slots.to_vec();
        inputs.extend(ahead.iter().map(|var| group.inputs[*var as usize]));
        let phases: Vec<&[TermId]> = open.chunks(1).collect();
        let program = Program::compile(group.terms, &phases, &inputs, splits);
        let mut registers: Vec<Abs> = program.registers().iter().map(Abs::from_value).collect();
        for (at, var) in ahead.iter().enumerate() {
            let domain = &group.domains[*var as usize];
            registers[slots.len() + at] = group.allowed[*var as usize]
                .iter()
                .map(|choice| Abs::from_value(&domain[*choice as usize]))
                .reduce(Abs::hull)
                .unwrap_or(Abs::UNSET);
        }
        // Slots on which each register depends: registers without slots are constant in the whole layer,
        // and the others show which constraints use a slot.
        let mut depends: Vec<Bits> = vec![Bits::default(); registers.len()];
        for (slot, bits) in depends.iter_mut().take(slots.len()).enumerate() {
            bits.insert(slot as u32);
        }
        let mut dynamic = Vec::new();
        for (at, step) in program.steps.iter().enumerate() {
            let mut bits = Bits::default();
            for arg in &step.args {
                bits.union(&depends[*arg as usize]);
            }
            if bits.is_empty() {
                registers[step.dst as usize] = run(step.op, &step.args, &registers);
            } else {
                dynamic.push(at);
            }
            depends[step.dst as usize] = bits;
        }
        let users = (0..slots.len() as u32)
            .map(|slot| {
                (0..open.len())
                    .filter(|root| depends[program.outputs[*root] as usize].contains(slot))
                    .collect()
            })
            .collect();
        Self {
            program,
            registers,
            dynamic,
            users,
        }
    }

    /// Returns scratch registers for [`judge`](Self::judge).
    pub(super) fn registers(&self) -> Vec<Abs> {
        self.registers.clone()
    }

    /// Reports whether the state has a valid completion; clears slots that no longer matter.
    #[expect(
        clippy::indexing_slicing,
        reason = "registers are numbered by the program of the same outlook, parameters by their space"
    )]
    pub(super) fn judge(&self, registers: &mut [Abs], state: &mut [Val]) -> bool {
        for (register, value) in registers.iter_mut().zip(state.iter()) {
            *register = Abs::from_value(value);
        }
        for at in &self.dynamic {
            let step = &self.program.steps[*at];
            registers[step.dst as usize] = run(step.op, &step.args, registers);
        }
        let verdict = |root: usize| registers[self.program.outputs[root] as usize];
        if (0..self.program.outputs.len()).any(|root| verdict(root).never()) {
            return false;
        }
        // A slot whose constraints are all satisfied for every completion no longer distinguishes states.
        for (value, users) in state.iter_mut().zip(&self.users) {
            if users.iter().all(|root| verdict(*root).always()) {
                *value = Val::Unset;
            }
        }
        true
    }
}

#[expect(
    clippy::indexing_slicing,
    reason = "registers are numbered by the program of the same outlook, parameters by their space"
)]
fn run(op: Op, args: &[u32], registers: &[Abs]) -> Abs {
    match *args {
        [a] => interval::apply(op, &[registers[a as usize]]),
        [a, b] => interval::apply(op, &[registers[a as usize], registers[b as usize]]),
        ref many => {
            let args: Vec<Abs> = many.iter().map(|arg| registers[*arg as usize]).collect();
            interval::apply(op, &args)
        }
    }
}
