//! Values that only selections use: where a load finds unwritten bytes, the `selp` that chooses the value
//! reads them, and one that discards it does not.

use std::collections::{HashMap, HashSet};

use super::program::Op;
use super::{Lower, SELECTS};
use ptx::ast::{Body, Instruction, Operand, Reg};
use ptx::structs::Unwritten;

/// Effect of an instruction on such values, which have numbers in the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Selection {
    /// A load of a value.
    Load(u32),
    /// A `selp`.
    Choose {
        /// The values where the condition is true and false.
        values: [Option<u32>; 2],
        /// Row of the condition.
        condition: u32,
        negated: bool,
        /// The result, where it is such a value too.
        into: Option<u32>,
    },
}

/// Registers of a function that hold such values, with their numbers.
pub(super) type Selected = HashMap<Reg, u32>;

impl<'a> Lower<'a> {
    /// Numbers the registers of a function that hold such values.
    pub(super) fn number_selected(
        &mut self,
        body: &Body<'_>,
        unwritten: &HashMap<usize, Unwritten>,
    ) -> Selected {
        let loads = unwritten
            .iter()
            .filter(|(_, may)| **may == Unwritten::Selected);
        let loaded: HashSet<Reg> = loads
            .filter_map(|(at, _)| destination(body.instructions.get(*at)?))
            .collect();
        if loaded.is_empty() {
            return Selected::new();
        }
        let mut tracked: Vec<Reg> = ptx::structs::track_selected(body, loaded);
        tracked.sort_unstable_by_key(|reg| reg.0);
        let first = self.program.selected;
        self.program.selected += tracked.len() as u32;
        tracked.into_iter().zip(first..).collect()
    }

    /// Marks an instruction that was lowered to the code from `first` on, if it concerns such a value.
    pub(super) fn mark_selection(&mut self, i: &Instruction<'a>, first: usize) {
        if self.function.selected.is_empty() || !matches!(i.opcode, "ld" | "ldu" | "selp") {
            return;
        }
        let number = |operand: &Operand<'_>| match operand {
            Operand::Reg(reg) => self.function.selected.get(reg).copied(),
            _ => None,
        };
        let found = match (i.opcode, i.operands.as_slice()) {
            ("selp", [into, a, b, condition]) => {
                let values = [number(a), number(b)];
                let (reg, negated) = match condition {
                    Operand::Reg(reg) => (*reg, false),
                    Operand::Not(reg) => (*reg, true),
                    _ => return,
                };
                let (true, Ok(condition)) = (values != [None, None], self.pred_row(reg)) else {
                    return;
                };
                Some(Selection::Choose {
                    values,
                    condition,
                    negated,
                    into: number(into),
                })
            }
            (_, [into, ..]) => number(into).map(Selection::Load),
            _ => None,
        };
        let Some(selection) = found else { return };
        let code = &mut self.program.code;
        let is_load = |at: &usize| matches!(code[*at].op, Op::Load(_));
        let at = match selection {
            // Conversions may follow the load.
            Selection::Load(_) => (first..code.len()).find(is_load),
            // The values are read before conversions of the operands change their rows.
            Selection::Choose { .. } => (first < code.len()).then_some(first),
        };
        let Some(at) = at else { return };
        code[at].marks |= SELECTS;
        self.program.selections.insert(at as u32, selection);
    }
}

/// Returns the one register that an instruction sets.
fn destination(i: &Instruction<'_>) -> Option<Reg> {
    match i.operands.first() {
        Some(Operand::Reg(reg)) => Some(*reg),
        _ => None,
    }
}
