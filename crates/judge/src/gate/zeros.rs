//! A run on inputs with zeros.
//!
//! Numbers that are drawn from a range are hardly ever exactly zero, so a kernel that divides by an input
//! agrees with a reference that guards against zero, and a root that is computed as `x * rsqrt(x)` with
//! one that is not. Beside a reference kernel, whose operation nobody described, the inputs get a row of
//! zeros and scattered ones. Zeros are equal to each other, and an index of a maximum or the order of
//! equal keys is no error, so only one rule holds: where the reference is finite, the candidate must be.

use super::adversarial::{Case, Data};
use super::hard_reference::budget;
use super::verify::{Gate, Pass, Stop};
use crate::session::Order;
use std::ops::Range;
use tuner_core::plan::PlanArgument;
use tuner_core::record::Verdict;

/// PTX operations that return an infinity or NaN for a finite operand.
const UNBOUNDED: [&str; 4] = ["div.", "rcp.", "sqrt.", "lg2."];

impl Gate<'_> {
    /// Judges the candidate on inputs with zeros, as far as the limits allow. A candidate or a reference
    /// that fails on them otherwise says nothing: nobody promised it zeros.
    pub(super) fn zeros(&mut self, first_data: Data, first: &Pass) -> Result<(), Stop> {
        let data = Data {
            case: Some(Case::Zeros),
            ..first_data
        };
        let unbounded = || {
            UNBOUNDED
                .iter()
                .any(|name| self.plan.code.ptx.contains(name))
        };
        if !self.affords_hard(first)
            || !unbounded()
            || self.references.hard(&self.keyed, data).is_none()
        {
            return Ok(());
        }
        let Some(reference) = self.reference_budget(first_data) else {
            return Ok(());
        };
        let kept = (self.hazards.len(), self.warnings.len(), self.note.clone());
        self.block_budget = Some(budget(first));
        let pass = self.pass(data, Order::Natural);
        self.block_budget = Some(reference);
        let found = pass.and_then(|pass| {
            let ended = pass.budget_exhausted.is_none();
            let found = if ended {
                self.not_finite(data, &pass)
            } else {
                Ok(None)
            };
            self.forget(&pass);
            found
        });
        self.block_budget = None;
        // Findings on zeros say nothing about the declared inputs.
        self.hazards.truncate(kept.0);
        self.warnings.truncate(kept.1);
        self.note = kept.2;
        match found {
            Ok(Some(detail)) => Err(self.reject(Verdict::Incorrect, detail)),
            Ok(None) | Err(_) => Ok(()),
        }
    }

    /// Describes the first output element that is not finite where the reference is.
    fn not_finite(&mut self, data: Data, pass: &Pass) -> Result<Option<String>, Stop> {
        for number in 0..pass.outputs.len() {
            let (index, ref contents) = pass.outputs[number];
            let argument = &self.plan.arguments[index];
            let size = argument.element.size() as u64;
            let all: Vec<_> = std::iter::once(0..argument.bytes() / size).collect();
            let got = self.bytes_of(contents)?.into_owned();
            let Some((outputs, known)) = self.naive(data, number, &all, pass)? else {
                continue;
            };
            let want = outputs.get(number).map_or(&[][..], Vec::as_slice);
            let detail = match &argument.layout {
                None => describe(argument, &got, want, &known),
                Some(layout) => {
                    let fields = layout.fields.iter().zip(argument.columns());
                    let mut found = fields.map(|(field, column)| {
                        let known = layout.known(field, &known);
                        let (got, want) = (layout.column(field, &got), layout.column(field, want));
                        describe(&column, &got, &want, &known)
                    });
                    found.find_map(|found| found)
                }
            };
            if let Some(detail) = detail {
                let problem = &self.plan.problem;
                return Ok(Some(format!("{detail} (problem {problem}, {data})")));
            }
        }
        Ok(None)
    }
}

/// Describes the elements that are not finite where the reference is; `None` if there are none.
fn describe(
    argument: &PlanArgument,
    got: &[u8],
    want: &[u8],
    known: &[Range<u64>],
) -> Option<String> {
    let element = argument.element;
    if !element.is_float() {
        return None;
    }
    let size = element.size();
    let values = got.chunks_exact(size).zip(want.chunks_exact(size));
    let values = values.map(|(got, want)| (element.decode(got), element.decode(want)));
    let inside = |at: &u64| known.iter().any(|range| range.contains(at));
    let mut wrong = (0u64..)
        .zip(values)
        .filter(|(at, (got, want))| !got.is_finite() && want.is_finite() && inside(at));
    let (at, (got, want)) = wrong.next()?;
    let count = 1 + wrong.count();
    let name = &argument.name;
    Some(format!(
        "{count} elements of `{name}` are not finite though the reference is; first {name}{} = \
         {got:e}, expected {want:e}",
        super::compare::subscript(at, &argument.shape)
    ))
}
